"""The subgraphs world: a chain for ferromagnetic Ising models in a field that mixes in polynomial time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks, randomness, sampling
from cumulant.errors import DomainError
from cumulant.graphical.mixing.certificates import Mixing
from cumulant.graphical.mixing.ferromagnetic import subgraphs_mixing
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.chains import CompiledSampler, Program
from cumulant.graphical.samplers.gibbs import one_by_one
from cumulant.graphical.samplers.subgraphs_kernels import spins_of_subgraphs, subgraph_chain
from cumulant.sampling.draws import Draws
from cumulant.threads import in_parts

_SMALL = 0.05  # below, the identity for the mean multiplies noise by 2 / sinh(2 beta), and spins do better


class SubgraphsWorld:
    """Subgraphs ``X`` of a graph with ``p(X)`` in proportion to ``prod_{e in X} tanh(beta_e) prod_{i odd} tanh(h_i)``.

    A vertex is odd where an odd number of edges of ``X`` meet. This is the high-temperature expansion of the Ising
    model with couplings ``beta >= 0`` and fields ``h`` of one sign (Jerrum and Sinclair 1993): its sum ``Z_sub`` gives

        A = N log 2 + sum_e log cosh beta_e + sum_i log cosh h_i + log Z_sub,
        E[x_i x_j] = tanh beta_e + P(e in X) 2 / sinh(2 beta_e),   E[x_i] = tanh h_i + P(i odd) 2 / sinh(2 h_i).

    The chain turns one edge at a time. From the empty subgraph it is within ``eps`` of this distribution after ``2 m^2
    t^-4 (m/2 log 2 + log(1 / (2 eps)))`` moves, ``m`` edges and ``t = min tanh |h_i|``, at every coupling
    (`subgraphs_mixing`; `mixing` here), where Gibbs sampling of the spins may take exponentially long. A field of zero
    is refused, as subgraphs with an odd vertex there have weight zero and cut the chain's way.

    Parameters
    ----------
    edges : pairs of variables
    beta : number or array
        Couplings, not negative: one for each edge, or one for all.
    field : number or array
        One for each variable, or one for all: all positive or all negative.

    Examples
    --------
    >>> world = SubgraphsWorld([(0, 1), (1, 2), (2, 0)], 0.5, 0.3)
    >>> draws = world.sample(4000, rng=0, chains=4)
    >>> bool(np.abs(world.grad_log_partition(draws) - world.model.mean()).max() < 0.05)
    True
    >>> world.to_spins(draws, rng=1).shape
    (16000, 3)
    """

    def __init__(self, edges: Any, beta: Any, field: Any):
        with checks.about("edges, beta, field"):
            self.model = Ising(edges, beta, field)
        couplings, fields = self.model.couplings, self.model.fields
        if (couplings < 0).any():
            worst = int(couplings.argmin())
            raise DomainError(f"beta must not be negative; edge {worst} has {couplings[worst]:.4g}")
        if not ((fields > 0).all() or (fields < 0).all()):
            raise DomainError("field must be positive at every variable, or negative at every one; zero is refused")
        self.edges = np.ascontiguousarray(self.model.edges)
        self._sign = 1 if fields.size == 0 or fields[0] > 0 else -1
        self._edge_weights, self._site_weights = np.tanh(couplings), np.tanh(np.abs(fields))

    def __repr__(self):
        return f"SubgraphsWorld({self.model.n_variables} variables, {len(self.edges)} edges)"

    @property
    def mixing(self) -> Mixing:
        """How fast chains that begin at the empty subgraph mix, by `subgraphs_mixing`; in single moves."""
        return subgraphs_mixing(len(self.edges), float(self._site_weights.min(initial=1.0)))

    @property
    def log_constant(self) -> float:
        """``A - log Z_sub = N log 2 + sum_e log cosh beta_e + sum_i log cosh h_i``."""
        each = np.concatenate([self.model.couplings, self.model.fields])
        cosh = np.logaddexp(each, -each) - np.log(2.0)
        return float(self.model.n_variables * np.log(2.0) + cosh.sum())

    def odd(self, subgraphs: Any) -> np.ndarray:
        """Whether each variable meets an odd number of edges: subgraphs (..., edges) to (..., variables)."""
        present = self._checked(subgraphs)
        count = np.zeros((*present.shape[:-1], self.model.n_variables), np.int64)
        for end in (0, 1):
            np.add.at(np.moveaxis(count, -1, 0), self.edges[:, end], np.moveaxis(present, -1, 0))
        return count % 2 == 1

    def log_weight(self, subgraphs: Any) -> np.ndarray:
        """``log w(X)`` for subgraphs ``(..., edges)`` of 0 and 1; -inf where an edge with ``beta = 0`` is present."""
        present = self._checked(subgraphs).astype(bool)
        with np.errstate(divide="ignore"):  # tanh 0 = 0: such a subgraph has no weight
            of_edges, of_sites = np.log(self._edge_weights), np.log(self._site_weights)
        odd = self.odd(subgraphs)
        return np.where(present, of_edges, 0.0).sum(axis=-1) + np.where(odd, of_sites, 0.0).sum(axis=-1)

    def sample(self, n: int = 1, rng: Any = None, *, n_jobs: int | None = None, **options: Any) -> Draws:
        """`n` subgraphs of each chain, ``(chains, n, edges)`` of 0 and 1, begun at the empty one, by `EdgeFlips`;
        options are those of `sampling.sample`.
        """
        return sampling.sample(EdgeFlips(n_jobs), self, n, rng=rng, **options)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """One vector ``x`` with an entry for each edge."""
        return {"x": (len(self.edges),)}

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """Where chains begin: at the subgraph `start`, or at the empty one."""
        empty = np.zeros((chains, len(self.edges)), np.uint8)
        return empty if start is None else empty + self._checked(start).astype(np.uint8)

    def grad_log_partition(self, subgraphs: Any, rng: Any = 0) -> np.ndarray:
        """``grad A``, in the order of ``Ising.theta``: an estimate of ``E[x_i]`` and then of ``E[x_i x_j]``.

        By the two identities, with frequencies among the `subgraphs`; where ``beta`` or ``|h|`` is below 0.05, which
        they divide by, from the spins of `to_spins` (seeded by `rng`) instead.
        """
        present = self._checked(subgraphs).reshape(-1, len(self.edges))
        if len(present) == 0:
            raise ValueError("grad_log_partition needs at least one subgraph")
        weights = np.concatenate([self._site_weights, self._edge_weights])
        size = np.concatenate([np.abs(self.model.fields), self.model.couplings])
        often = np.concatenate([self.odd(present).mean(axis=0), present.mean(axis=0)])
        small = size < _SMALL
        mean = weights + often * 2.0 / np.sinh(2.0 * np.where(small, 1.0, size))
        mean[: self._site_weights.size] *= self._sign
        if small.any():
            x = self.to_spins(present, rng).astype(np.float64)
            mean[small] = np.concatenate([x.mean(0), (x[:, self.edges[:, 0]] * x[:, self.edges[:, 1]]).mean(0)])[small]
        return mean

    def to_spins(self, subgraphs: Any, rng: Any = None, *, n_jobs: int | None = None) -> np.ndarray:
        """A spin configuration for each subgraph, shape (subgraphs, variables): exact where the subgraphs are.

        Join every vertex by an edge to a ghost, present where the vertex is odd. Switch on each absent edge with
        probability ``tanh`` of its coupling; then the component of the ghost has the sign of the field and the others
        fair signs (Grimmett and Janson 2009; Huber 2012).
        """
        present = np.ascontiguousarray(self._checked(subgraphs).reshape(-1, len(self.edges)), np.uint8)
        seed, out = randomness.seed(rng), np.empty((len(present), self.model.n_variables), np.int8)
        flat = (self.edges, self._edge_weights, self._site_weights, seed)

        def work(first, last):
            spins_of_subgraphs(present[first:last], out[first:last], *flat, first)

        in_parts(work, len(present), n_jobs)
        return self._sign * out

    def _checked(self, subgraphs: Any) -> np.ndarray:
        present = np.asarray(subgraphs)
        m = len(self.edges)
        if present.shape[-1:] != (m,):
            raise ValueError(f"subgraphs must have the {m} edges on the last axis; got shape {present.shape}")
        if present.dtype.kind not in "biu" or (present.size and not ((present == 0) | (present == 1)).all()):
            raise ValueError("subgraphs must hold 0 and 1: whether each edge is present")
        return present


@dataclass(frozen=True)
class EdgeFlips(CompiledSampler):
    """Metropolis moves of a `SubgraphsWorld`: an edge drawn uniformly is added or removed.

    A sweep is as many moves as there are edges; each move does nothing with probability 1/2.
    """

    n_jobs: int | None = None

    def program(self, world: SubgraphsWorld, chains: int) -> Program:
        """The sweeps over the edges."""
        run = one_by_one(subgraph_chain, world.edges, world._edge_weights, world._site_weights)
        return Program(run, np.arange(len(world.edges)), spins=False)
