"""The conditional mean field objective: value, gradient and Hessian at weighted configurations."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from cumulant import checks
from cumulant.graphical import Ising
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles.conditional.partitions import Blocks, blocks_of, check_refinement


class Parameters(NamedTuple):
    """Fields of the spins and couplings of the edges of an approximation; zero couplings inside its blocks."""

    fields: np.ndarray
    couplings: np.ndarray

    def towards(self, other: "Parameters", share: float) -> "Parameters":
        """``(1 - share) self + share other``, fields and couplings alike."""
        return Parameters(*((1.0 - share) * a + share * b for a, b in zip(self, other, strict=True)))


class _Features(NamedTuple):
    """What the conditional fields of a block depend on: entries of theta, the spin each acts on, and the spin it is
    multiplied by (the column of ones is the last).
    """

    entry: np.ndarray
    row: np.ndarray
    column: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class ConditionalObjective:
    """``F(t, W) = sum_s w_s sum_A F_A(t, W, x_s)``, to be maximised, for a partition of spins into blocks ``A``.

    The approximation is an Ising model with fields ``t`` and couplings ``W`` that are zero inside blocks: given the
    rest, the spins of a block are independent, with means ``mu_i = tanh(t_i + sum_(j not in A) W_ij x_j)``. With the
    fields of the target ``h~_i = h_i + sum_(j not in A) J_ij x_j`` and ``t~_i`` the argument of the tanh,

        ``F_A = sum_i h~_i mu_i + sum_(ij in A) J_ij mu_i mu_j + sum_i (log 2 cosh t~_i - t~_i mu_i)``
        ``    = log Z_A(x) - KL(q(x_A | x) || p(x_A | x))``,

    so that maximising ``F`` minimises the divergences of the conditional distributions of the blocks, averaged over
    the configurations. ``F`` is not concave, and its sum over blocks is no bound on ``log Z``.

    ``theta`` is ``t``, and with `free_edges` then ``W`` of the edges that join two blocks, in the order of
    ``spins.edges``; without, those have the couplings of the target, and the objective is a sum over blocks, each with
    fields of its own (`groups`).

    Parameters
    ----------
    spins : IsingArrays
        The target; see `of` for one from a model.
    blocks : tuple of arrays
    configurations : array (m, n)
        Of -1 and +1.
    weights : array (m,)
        That sum to one.
    free_edges : bool

    References
    ----------
    Carbonetto (2009), thesis, equations 4.13 to 4.21; 4.14 with the parameters of the target.

    Examples
    --------
    >>> model = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
    >>> states = 2 * ((np.arange(16)[:, None] >> np.arange(4)) & 1) - 1
    >>> objective = ConditionalObjective.of(model, [[0, 1], [2, 3]], states, np.exp(model.log_prob(states)))
    >>> best = np.array([0.381882, 0.249385, -0.701704, -0.464360])
    >>> round(objective.value(best), 6), bool(abs(objective.gradient(best)).max() < 1e-6)
    (3.304688, True)
    """

    spins: IsingArrays
    blocks: Blocks
    configurations: np.ndarray
    weights: np.ndarray
    free_edges: bool = False

    @classmethod
    def of(
        cls, model: Ising, blocks: Any, configurations: Any, weights: Any = None, *, free_edges: bool = False
    ) -> "ConditionalObjective":
        """From a model, blocks of its free spins, and configurations of these, equally weighted by default."""
        spins = IsingArrays.of(checks.instance("model", model, Ising, "an Ising model"))
        x = checks.real_array("configurations", configurations, ndim=2)
        if x.shape[1] != spins.n or not (np.abs(x) == 1).all():
            raise ValueError(f"configurations must have {spins.n} spins, -1 or +1, in each row; got shape {x.shape}")
        w = np.full(len(x), 1.0 / len(x)) if weights is None else checks.real_array("weights", weights, ndim=1)
        if w.shape != (len(x),) or (w < 0).any() or abs(w.sum() - 1.0) > 1e-9:
            raise ValueError(f"weights must be {len(x)} numbers that are not negative and sum to one")
        blocks = blocks_of("blocks", blocks)
        check_refinement([np.arange(spins.n)], blocks)
        return cls(spins, blocks, x, w, free_edges)

    @functools.cached_property
    def connecting(self) -> np.ndarray:
        """The numbers of the edges that join two blocks."""
        block = np.empty(self.spins.n, np.int64)
        for k, members in enumerate(self.blocks):
            block[members] = k
        return np.flatnonzero(block[self.spins.edges[:, 0]] != block[self.spins.edges[:, 1]])

    @property
    def start(self) -> np.ndarray:
        """The parameters of the target, as far as the approximation has them: where solving begins."""
        return np.concatenate([self.spins.fields, self.spins.couplings[self.connecting[: self._free]]])

    def parameters(self, theta: np.ndarray) -> Parameters:
        """`theta` as fields and couplings of all edges."""
        n, couplings = self.spins.n, np.zeros(len(self.spins.edges))
        couplings[self.connecting] = theta[n:] if self.free_edges else self.spins.couplings[self.connecting]
        return Parameters(theta[:n].copy(), couplings)

    @property
    def groups(self) -> list[np.ndarray]:
        """Entries of theta that the objective does not couple with others: blocks, or all of them with free edges."""
        return [np.arange(self.spins.n + self._free)] if self.free_edges else list(self.blocks)

    def terms(self, theta: np.ndarray) -> np.ndarray:
        """The values of the groups, which add up to `value`."""
        h, t, mu, inner = self._sites(theta)
        each = self.weights @ (h * mu + 0.5 * mu * inner + np.logaddexp(t, -t) - t * mu)
        return np.array([each.sum()]) if self.free_edges else np.array([each[block].sum() for block in self.blocks])

    def value(self, theta: np.ndarray) -> float:
        """``F(theta)``."""
        return float(self.terms(theta).sum())

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """``dF/dt_i = E g_i`` and ``dF/dW_ij = E (x_j g_i + x_i g_j)`` with ``g_i = (1 - mu_i^2) r_i``,
        ``r_i = h~_i - t~_i + sum_(j in A) J_ij mu_j``.
        """
        h, t, mu, inner = self._sites(theta)
        g = self.weights[:, None] * (1.0 - mu**2) * (h - t + inner)
        if not self.free_edges:
            return g.sum(axis=0)
        (i, j), x = self.spins.edges[self.connecting].T, self.configurations
        return np.concatenate([g.sum(axis=0), (x[:, j] * g[:, i] + x[:, i] * g[:, j]).sum(axis=0)])

    def hessians(self, theta: np.ndarray) -> list[np.ndarray]:
        """The Hessian within each of the `groups`; it is zero between them.

        In the conditional fields of a block it is ``-s_i (1 + 2 mu_i r_i)`` on the diagonal and ``s_i J_ij s_j`` off
        it, ``s_i = 1 - mu_i^2``; the chain rule does the rest.
        """
        h, t, mu, inner = self._sites(theta)
        s = 1.0 - mu**2
        diagonal = -s * (1.0 + 2.0 * mu * (h - t + inner))
        ones = np.ones((len(mu), 1))
        features = np.hstack([self.configurations, ones]) if self.free_edges else ones
        whole = np.zeros((theta.size, theta.size)) if self.free_edges else None
        found = []
        for (entry, row, column), inside in self._blocks:
            z = features[:, column]
            weighted = self.weights[:, None] * z
            across = (weighted * s[:, row]).T @ (z * s[:, row])
            alone = (weighted * diagonal[:, row]).T @ z
            block = inside * across + np.where(row[:, None] == row, alone, 0.0)
            if whole is None:
                found.append(block)
            else:
                whole[np.ix_(entry, entry)] += block
        return found if whole is None else [whole]

    def hessian(self, theta: np.ndarray) -> np.ndarray:
        """The Hessian as one matrix."""
        out = np.zeros((theta.size, theta.size))
        for group, block in zip(self.groups, self.hessians(theta), strict=True):
            out[np.ix_(group, group)] = block
        return out

    @property
    def _free(self) -> int:
        return self.connecting.size if self.free_edges else 0

    def _sites(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        """``h~``, ``t~``, ``mu`` and ``sum_(j in A) J_ij mu_j``, each (m, n)."""
        own = theta[: self.spins.n]
        if self.free_edges:
            t = own + self.configurations @ self._matrix(self.connecting, theta[self.spins.n :])
        else:
            t = own + self._outside
        mu = np.tanh(t)
        return self.spins.fields + self._outside, t, mu, mu @ self._inside

    def _matrix(self, edges: np.ndarray, couplings: np.ndarray) -> csr_array:
        (i, j), n = self.spins.edges[edges].T, self.spins.n
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
        return csr_array((np.concatenate([couplings, couplings]), (rows, columns)), (n, n))

    @functools.cached_property
    def _outside(self) -> np.ndarray:
        return self.configurations @ self._matrix(self.connecting, self.spins.couplings[self.connecting])

    @functools.cached_property
    def _inside(self) -> csr_array:
        inside = np.setdiff1d(np.arange(len(self.spins.edges)), self.connecting)
        return self._matrix(inside, self.spins.couplings[inside])

    @functools.cached_property
    def _blocks(self) -> list[tuple[_Features, np.ndarray]]:
        """The features of each block, and the couplings inside it between the spins they act on."""
        n, ends = self.spins.n, self.spins.edges[self.connecting[: self._free]]
        entry = np.concatenate([np.arange(n), *([n + np.arange(len(ends))] * 2)])
        row = np.concatenate([np.arange(n), ends[:, 0], ends[:, 1]])
        column = np.concatenate([np.full(n, n if self.free_edges else 0), ends[:, 1], ends[:, 0]])
        found = []
        for block in self.blocks:
            own = np.isin(row, block)
            inside = self._inside[block][:, block].toarray()
            at = np.searchsorted(block, row[own])
            found.append((_Features(entry[own], row[own], column[own]), inside[np.ix_(at, at)]))
        return found
