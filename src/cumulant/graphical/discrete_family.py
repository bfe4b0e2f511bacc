"""Exponential families over finitely many states: log tables that are linear in the parameter."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from cumulant.errors import DomainError
from cumulant.graphical.exact.elimination import MAX_MEMORY, Elimination
from cumulant.graphical.structure import Structure
from cumulant.precision import any_jax
from cumulant.randomness import generator

__all__ = ["DiscreteFamily"]


class DiscreteFamily:
    """``p(x) = exp(<theta, T(x)> - A(theta))`` over variables with finitely many states.

    The logarithms of the factors, one table after the other, are ``design @ theta``, so that ``T(x)`` is the sum of the
    rows of `design` that ``x`` picks, one in each table. Without a `design` it is the identity: ``theta`` are the
    tables themselves and ``T`` their indicators, which is over-complete (adding a number to a table changes ``A`` and
    no probability).

    `theta` may have entries -inf (impossible states) where there is no `design`; ``0 * -inf`` counts as 0 throughout.

    Parameters
    ----------
    structure : Structure
        Cardinalities and scopes.
    design : sparse matrix of shape (entries of all tables, dim), optional
    labels : sequence, optional
        What the states of a variable are called in data: ``(-1, 1)`` for spins; 0, 1, 2, ... without it.
    """

    def __init__(self, structure: Structure, design: Any = None, labels: tuple[int, ...] | None = None):
        self.structure, self.labels = structure, labels
        self.design = None if design is None else csr_array(design)
        self.dim = int(structure.table_starts[-1]) if design is None else self.design.shape[1]  # type: ignore[union-attr]

    def __repr__(self):
        return f"{type(self).__name__}({self.structure.n_variables} variables, dim={self.dim})"

    def __eq__(self, other):
        if not isinstance(other, DiscreteFamily):
            return NotImplemented
        mine, its = self.design, other.design
        same = mine is its or (mine is not None and its is not None and mine.shape == its.shape)
        if same and mine is not None and its is not None:
            same = bool(abs(mine - its).sum() == 0)
        return same and self.labels == other.labels and self.structure == other.structure

    def __hash__(self):
        return hash((self.structure, self.dim, self.labels))

    # Between the parameter and tables --------------------------------------------------------------------------------

    def log_tables(self, theta: Any) -> np.ndarray:
        """The logarithms of all factors as one flat array."""
        theta = self._checked(theta)
        return theta if self.design is None else self.design @ theta

    def mean_of(self, beliefs: np.ndarray) -> np.ndarray:
        """``E T(x)`` from the marginal tables of all factors."""
        return beliefs if self.design is None else self.design.T @ beliefs

    def states(self, x: Any) -> np.ndarray:
        """Data, such as spins, as states 0, 1, 2, ...; a `DomainError` names a value that is none."""
        x = np.asarray(x)
        n = self.structure.n_variables
        if x.ndim == 0 or x.shape[-1] != n:
            raise ValueError(f"x must have the {n} variables on its last axis; got shape {x.shape}")
        whole = x.astype(np.int64) if x.dtype.kind in "iubf" else None
        if whole is None or (x.dtype.kind == "f" and not np.array_equal(whole, x)):
            raise TypeError(f"x must hold whole numbers, the states of the variables; got dtype {x.dtype}")
        if self.labels is not None:
            labels = np.array(self.labels)
            whole = np.searchsorted(labels, whole)
            wrong = labels[np.minimum(whole, labels.size - 1)] != x
        else:
            wrong = (whole < 0) | (whole >= self.structure.cardinalities)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            allowed = self.labels or tuple(range(int(self.structure.cardinalities[place[-1]])))
            raise DomainError(f"variable {place[-1]} has no state {x[place]}: its states are {allowed!s:.60}")
        return whole

    def values(self, states: np.ndarray) -> np.ndarray:
        """States 0, 1, 2, ... as they are called in data; the inverse of `states`."""
        return states if self.labels is None else np.array(self.labels)[states]

    def entries(self, states: np.ndarray) -> np.ndarray:
        """The entry of each table, in the flat array, that these states pick: shape (..., factors)."""
        structure = self.structure
        place = np.zeros((*states.shape[:-1], structure.n_factors), dtype=np.int64)
        width = np.diff(structure.scope_starts)
        for k in range(int(width.max(initial=0))):
            there = width > k
            variables = structure.scopes[structure.scope_starts[:-1][there] + k]
            place[..., there] = place[..., there] * structure.cardinalities[variables] + states[..., variables]
        return place + structure.table_starts[:-1]

    def _checked(self, theta: Any, name: str = "theta") -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape != (self.dim,):
            raise ValueError(f"{name} of {self} must have shape ({self.dim},); got {theta.shape}")
        bad = np.isnan(theta) | (theta == np.inf) | ((theta == -np.inf) & (self.design is not None))
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            allowed = "finite, or -inf for what is impossible" if self.design is None else "finite"
            raise DomainError(f"{name} must be {allowed}; got {theta[at]} at index {at}")
        return theta

    # The questions of every family -----------------------------------------------------------------------------------

    def statistics(self, x: Any) -> np.ndarray:
        """``T(x)``, shape ``(..., dim)``."""
        picked = self.entries(self.states(x))
        out = np.zeros((*picked.shape[:-1], int(self.structure.table_starts[-1])))
        np.put_along_axis(out, picked, 1.0, axis=-1)
        return (
            out if self.design is None else (out.reshape(-1, out.shape[-1]) @ self.design).reshape(*out.shape[:-1], -1)
        )

    def log_partition(self, theta: Any, **options: Any) -> Any:
        """``A(theta)``; of a JAX array, differentiable (its gradient is `to_mean`)."""
        if any_jax(theta):
            from cumulant.graphical.exact.differentiable import log_partition

            return log_partition(self, theta)
        structure, tables, _ = self.structure.restrict(self.log_tables(theta), {})
        return Elimination.of(structure, tables, **options).log_partition()

    def to_mean(self, theta: Any, **options: Any) -> np.ndarray:
        """``mu = grad A(theta) = E T(x)``."""
        return self.value_and_mean(theta, **options)[1]

    def value_and_mean(self, theta: Any, **options: Any) -> tuple[float, np.ndarray]:
        """``A(theta)`` and its gradient by one forward and one backward pass."""
        structure, tables, _ = self.structure.restrict(self.log_tables(theta), {})
        value, _, beliefs = Elimination.of(structure, tables, **options).beliefs()
        if value == -np.inf:
            raise DomainError("every state is impossible under theta: there is no distribution")
        return value, self.mean_of(beliefs)

    def log_prob(self, x: Any, theta: Any, **options: Any) -> np.ndarray:
        """``log p(x)`` for data ``(..., variables)``."""
        return self.score(x, theta) - self.log_partition(theta, **options)

    def score(self, x: Any, theta: Any) -> np.ndarray:
        """``<theta, T(x)>``: the logarithm of the probability but for ``A``; -inf where ``x`` is impossible."""
        return self.log_tables(theta)[self.entries(self.states(x))].sum(axis=-1)

    def entropy(self, theta: Any, **options: Any) -> float:
        """``H = A(theta) - <theta, mu>``, in nats."""
        value, mean = self.value_and_mean(theta, **options)
        return float(value - inner(mean, self._checked(theta)))

    def kl(self, theta: Any, other: Any, **options: Any) -> float:
        """``KL(p_theta || p_other) = A(other) - A(theta) - <mu, other - theta>``; infinite where `other` forbids what
        `theta` allows.
        """
        value, mean = self.value_and_mean(theta, **options)
        gap = self.log_partition(other, **options) - value
        return max(float(gap - inner(mean, self._checked(other)) + inner(mean, self._checked(theta))), 0.0)

    def sample(self, theta: Any, n: int = 1, *, rng: Any = None, **options: Any) -> np.ndarray:
        """`n` independent draws, exact, shape ``(n, variables)``."""
        return self.values(draw(self.structure, self.log_tables(theta), {}, n, rng, **options))


def inner(mean: np.ndarray, theta: np.ndarray) -> float:
    """``<mean, theta>`` where ``0 * -inf = 0``."""
    there = mean > 0 if np.isneginf(theta).any() else np.ones(mean.shape, bool)
    return float(mean[there] @ theta[there])


def draw(structure: Structure, tables: np.ndarray, evidence: dict, n: int, rng: Any, **options: Any) -> np.ndarray:
    """Independent states given the evidence."""
    if n < 0:
        raise ValueError(f"n must not be negative; got {n}")
    smaller, some, left = structure.restrict(tables, evidence)
    solver = Elimination.of(smaller, some, **{"max_memory": MAX_MEMORY, **options})
    if solver.log_partition() == -np.inf:
        raise DomainError("every state is impossible: there is nothing to draw")
    out = np.zeros((n, structure.n_variables), dtype=np.int64)
    for v, x in evidence.items():
        out[:, v] = x
    out[:, left] = solver.sample(generator(rng).random((n, left.size)))
    return out
