"""Exponential families over finitely many states: log tables that are linear in the parameter."""

import hashlib
import itertools
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from cumulant.errors import DomainError, NoEstimateError, TooWide
from cumulant.families import Statistics
from cumulant.families.base import Learnable
from cumulant.graphical.exact import differentiable
from cumulant.graphical.exact.covariance import covariance
from cumulant.graphical.exact.elimination import MAX_MEMORY, Elimination
from cumulant.graphical.labels import Labels
from cumulant.graphical.structure import Structure
from cumulant.precision import any_jax
from cumulant.randomness import generator

_LARGEST_RANK = 4096  # parameters up to which the redundant ones are looked for


class DiscreteFamily(Learnable):
    """``p(x) = exp(<theta, T(x)> - A(theta))`` over variables with finitely many states.

    The logarithms of the factors, one table after the other, are ``design @ theta``, so that ``T(x)`` is the sum of the
    rows of `design` that ``x`` picks, one in each table. Without a `design` it is the identity: ``theta`` are the
    tables themselves and ``T`` their indicators, which is over-complete (adding a number to a table changes ``A`` and
    no probability).

    It is a `families.Family`: parameters are batched over leading axes; NumPy is answered in NumPy, and JAX arrays, in
    compiled programs too, by calls back to the host that have their own derivatives. `theta` may have entries -inf
    (impossible states) where there is no `design`; ``0 * -inf`` counts as 0 throughout.

    Parameters
    ----------
    structure : Structure
        Cardinalities and scopes.
    design : sparse matrix of shape (entries of all tables, dim), optional
    labels : Labels, optional
        What variables and states are called in data; 0, 1, 2, ... without it.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> family = Ising([(0, 1), (1, 2)], 0.0).family
    >>> mu = family.to_mean([0.1, 0.2, -0.3, 0.5, -0.7])
    >>> family.to_natural(mu).round(12)
    array([ 0.1,  0.2, -0.3,  0.5, -0.7])
    >>> float(round(family.conjugate(mu) + family.entropy([0.1, 0.2, -0.3, 0.5, -0.7]), 12))
    0.0
    """

    domain = "theta finite, or -inf for what is impossible where tables are the parameter"
    mean_domain = "mu inside the marginal polytope"

    def __init__(self, structure: Structure, design: Any = None, labels: Labels | None = None):
        self.structure = structure
        if labels is not None:
            self.labels = labels
        self.design: Any = None if design is None else csr_array(design)
        self.dim = int(structure.table_starts[-1]) if design is None else int(self.design.shape[1])

    @cached_property
    def labels(self) -> Labels:
        """What variables and states are called."""
        return Labels.of(self.structure.cardinalities)

    def __repr__(self):
        return f"{type(self).__name__}({self.structure.n_variables} variables, dim={self.dim})"

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, DiscreteFamily):
            return NotImplemented
        mine, its = self.design, other.design
        same = mine is its or (mine is not None and its is not None and mine.shape == its.shape)
        if same and mine is not None and its is not None:
            same = bool(abs(mine - its).sum() == 0)
        return same and self.labels == other.labels and self.structure == other.structure

    def __hash__(self):
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.structure, self.dim, self.labels))

    def fingerprint(self) -> str:
        """A digest of all that makes the family, the same in every process: checkpoints know it by that."""
        settings, arrays = self.description()
        digest = hashlib.blake2b(repr(settings).encode(), digest_size=16)
        for name, part in arrays.items():
            digest.update(f"{name}{part.dtype.str}{part.shape}".encode() + part.tobytes())
        return digest.hexdigest()

    def description(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The settings and arrays that `from_description` makes the family from: what files hold."""
        arrays = {name: getattr(self.structure, name) for name in Structure.PARTS}
        if self.design is not None:
            arrays |= {name: getattr(self.design, name) for name in ("data", "indices", "indptr")}
        return {**self.labels.settings(), "values": self.labels.values, "dim": self.dim}, arrays

    @classmethod
    def from_description(
        cls, cardinalities, scope_starts, scopes, dim, names, states, values, data=None, indices=None, indptr=None
    ) -> "DiscreteFamily":
        """The inverse of `description`; a ValueError where its parts do not fit together."""
        structure = Structure.checked(cardinalities, scope_starts, scopes)
        labels = Labels.of(structure.cardinalities, names, states, None if values is None else tuple(values))
        size = int(structure.table_starts[-1])
        return cls(structure, None if data is None else csr_array((data, indices, indptr), (size, dim)), labels)

    # Between the parameter and tables --------------------------------------------------------------------------------

    def log_tables(self, theta: Any) -> np.ndarray:
        """The logarithms of all factors as one flat array, batched as `theta` is."""
        return self._tables(self._checked(theta))

    def _tables(self, theta: np.ndarray) -> np.ndarray:
        if self.design is None:
            return theta
        if theta.ndim == 1:
            return self.design @ theta
        return (self.design @ theta.reshape(-1, self.dim).T).T.reshape(*theta.shape[:-1], -1)

    def mean_of(self, beliefs: np.ndarray) -> np.ndarray:
        """``E T(x)`` from the marginal tables of all factors."""
        return beliefs if self.design is None else self.design.T @ beliefs

    def states(self, x: Any, name: str = "x") -> np.ndarray:
        """Data, such as spins or names, as states 0, 1, 2, ...: see `Labels.encode`."""
        return self.labels.encode(x, name)

    def values(self, states: np.ndarray) -> np.ndarray:
        """States 0, 1, 2, ... as they are called in data; the inverse of `states`."""
        return self.labels.decode(states)

    def _checked(self, theta: Any, name: str = "theta") -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        if theta.shape[-1:] != (self.dim,):
            raise DomainError(
                f"{name}, a {'mean' if name == 'mu' else 'natural'} parameter of {self}, must have {self.dim} entries "
                f"on its last axis; got shape {theta.shape}"
            )
        forbidden = self.design is not None or name == "mu"
        bad = np.isnan(theta) | (theta == np.inf) | ((theta == -np.inf) & forbidden)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            allowed = "finite entries" if forbidden else "entries that are finite, or -inf for what is impossible"
            kind = "mean" if name == "mu" else "natural"
            raise DomainError(f"{kind} parameter of {self} must have {allowed}; got {theta[at]} at index {at}")
        return theta

    def _each(self, function: Callable, *parameters: np.ndarray) -> Any:
        """`function` of one parameter vector each, over their leading axes."""
        if all(p.ndim == 1 for p in parameters):
            return np.asarray(function(*parameters))[()]
        batch = np.broadcast_shapes(*(p.shape[:-1] for p in parameters))
        rows = [np.broadcast_to(p, (*batch, self.dim)).reshape(-1, self.dim) for p in parameters]
        found = [np.asarray(function(*row)) for row in zip(*rows, strict=True)]
        if not found:
            return np.zeros((*batch, *np.shape(function(*np.zeros((len(parameters), self.dim))))))
        return np.stack(found).reshape((*batch, *found[0].shape))[()]

    # The questions of every family -----------------------------------------------------------------------------------

    def statistics(self, x: Any) -> np.ndarray:
        """``T(x)``, shape ``(..., dim)``."""
        states = self.states(x)
        picked = self.structure.picked(states.reshape(-1, self.structure.n_variables))
        T = picked if self.design is None else csr_array(picked @ self.design)
        return T.toarray().reshape(*states.shape[:-1], -1)

    def log_partition(self, theta: Any, **options: Any) -> Any:
        """``A(theta)``; of a JAX array, differentiable (its gradient is `to_mean`)."""
        if any_jax(theta):
            return differentiable.log_partition(self, theta)

        def one(tables):
            structure, some, _ = self.structure.restrict(tables, {})
            return Elimination.of(structure, some, **options).log_partition()

        return self._each(lambda row: one(self._tables(row)), self._checked(theta))

    def to_mean(self, theta: Any, **options: Any) -> Any:
        """``mu = grad A(theta) = E T(x)``."""
        return self.value_and_mean(theta, **options)[1]

    def value_and_mean(self, theta: Any, **options: Any) -> tuple[Any, Any]:
        """``A(theta)`` and its gradient by one forward and one backward pass."""
        if any_jax(theta):
            return differentiable.value_and_mean(self, theta)

        def one(row):
            structure, tables, _ = self.structure.restrict(self._tables(row), {})
            value, _, beliefs = Elimination.of(structure, tables, **options).beliefs()
            if value == -np.inf:
                raise DomainError("every state is impossible under theta: there is no distribution")
            return np.append(self.mean_of(beliefs), value)

        both = self._each(one, self._checked(theta))
        return both[..., -1][()], both[..., :-1]

    def to_natural(self, mu: Any) -> Any:
        """The ``theta`` with ``grad A(theta) = mu``: the maximum-likelihood estimate for the mean statistic ``mu``.

        Where the family is over-complete, the one of least norm. That ``mu`` is inside the marginal polytope is proved
        by the Newton decrement (Bach 2010); `DomainError` gives the reason where it is not, or cannot be told from a
        point of the boundary. In compiled programs NaN is the answer then.
        """
        if any_jax(mu):
            return differentiable.to_natural(self, mu)
        from cumulant.graphical.mean_equation import solve_mean_equation  # it stands on optim, which asks families

        return self._each(lambda row: solve_mean_equation(self, row), self._checked(mu, "mu"))

    def conjugate(self, mu: Any) -> Any:
        """``A*(mu) = max_theta <theta, mu> - A(theta)``: minus the entropy of the member with this mean."""
        theta = self.to_natural(mu)
        return inner(mu if any_jax(mu) else np.asarray(mu, np.float64), theta) - self.log_partition(theta)

    def log_prob(self, x: Any, theta: Any, **options: Any) -> Any:
        """``log p(x)`` for data ``(..., variables)``, broadcast against the batch of `theta`."""
        if any_jax(theta):
            return inner(jnp.asarray(self.statistics(x), theta.dtype), theta) - self.log_partition(theta)
        return self.score(x, theta) - self.log_partition(theta, **options)

    def score(self, x: Any, theta: Any) -> np.ndarray:
        """``<theta, T(x)>``: the logarithm of the probability but for ``A``; -inf where ``x`` is impossible."""
        tables, entries = self.log_tables(theta), self.structure.entries(self.states(x))
        if tables.ndim == 1:
            return tables[entries].sum(axis=-1)
        batch = np.broadcast_shapes(tables.shape[:-1], entries.shape[:-1])
        tables = np.broadcast_to(tables, (*batch, tables.shape[-1]))
        return np.take_along_axis(tables, np.broadcast_to(entries, (*batch, entries.shape[-1])), -1).sum(axis=-1)

    def entropy(self, theta: Any, **options: Any) -> Any:
        """``H = A(theta) - <theta, mu>``, in nats."""
        value, mean = self.value_and_mean(theta, **options)
        return value - inner(mean, theta if any_jax(theta) else self._checked(theta))

    def kl(self, theta: Any, other: Any, **options: Any) -> Any:
        """``KL(p_theta || p_other) = A(other) - A(theta) - <mu, other - theta>``; infinite where `other` forbids what
        `theta` allows.
        """
        if not any_jax(theta, other):
            theta, other = self._checked(theta), self._checked(other)
        value, mean = self.value_and_mean(theta, **options)
        gap = self.log_partition(other, **options) - value - inner(mean, other) + inner(mean, theta)
        # it is never negative; only rounding can say otherwise
        return jnp.maximum(gap, 0.0) if any_jax(gap) else np.maximum(gap, 0.0)

    def bregman(self, theta: Any, other: Any, **options: Any) -> Any:
        """``A(theta) - A(other) - <grad A(other), theta - other>``, which is ``KL(p_other || p_theta)``."""
        return self.kl(other, theta, **options)

    def fisher(self, theta: Any, **options: Any) -> Any:
        """The Fisher information ``hess A(theta) = Cov T(x)``, shape ``(..., dim, dim)``, exact.

        All states one by one where there are few, else one elimination pass for each entry of a table; `TooWide` where
        these do not fit into ``max_memory``. Singular where the family is over-complete.
        """
        if any_jax(theta):
            return differentiable.fisher(self, theta)
        limit = options.get("max_memory", MAX_MEMORY)
        if 8 * self.dim**2 > limit:
            raise TooWide(
                f"the covariance of {self.dim} statistics has {self.dim**2:.3g} entries, more than max_memory = "
                f"{limit} bytes hold: estimate what you need from sample(theta, n) and statistics"
            )
        return self._each(
            lambda row: covariance(self.structure, self._tables(row), self.design, {}, **options), self._checked(theta)
        )

    def sample(self, theta: Any, n: int | tuple[int, ...] = 1, *, rng: Any = None, **options: Any) -> np.ndarray:
        """Independent draws, exact, shape ``(n, *batch, variables)``."""
        shape = (n,) if isinstance(n, int | np.integer) else tuple(n)
        rng, n = generator(rng), math.prod(shape)
        if n < 0:
            raise ValueError(f"n must not be negative; got {n}")
        tables = self.log_tables(theta)
        if tables.ndim == 1:
            drawn = draw(self.structure, tables, {}, n, rng, **options)
        else:
            rows = tables.reshape(-1, tables.shape[-1])
            drawn = np.stack([draw(self.structure, row, {}, n, rng, **options) for row in rows], axis=1)
        return self.values(drawn.reshape(*shape, *tables.shape[:-1], self.structure.n_variables))

    def in_domain(self, theta: Any) -> Any:
        """Whether ``theta`` is a natural parameter: finite, or, where tables are the parameter, -inf for what is
        impossible.
        """
        xp = jnp if any_jax(theta) else np
        theta = xp.asarray(theta, dtype=None if any_jax(theta) else np.float64)
        fine = xp.isfinite(theta) | (xp.isneginf(theta) & (self.design is None))
        return xp.all(fine, axis=-1)

    def in_mean_domain(self, mu: Any) -> Any:
        """Whether ``mu`` is proved to be the mean of a member: see `to_natural`."""
        if any_jax(mu):
            return jnp.all(jnp.isfinite(differentiable.to_natural(self, mu)), axis=-1)

        def inside(row):
            try:
                self.to_natural(row)
            except DomainError:
                return False
            return True

        return self._each(inside, np.asarray(mu, dtype=np.float64))

    # Learning --------------------------------------------------------------------------------------------------------

    def collect(self, x: Any, weights: Any = None) -> Statistics:
        """The `Statistics` of observations on the first axis of `x`: they add up with those of other data sets."""
        states = self.states(x)
        if states.ndim < 2:
            raise DomainError(f"x, data of {self}, must have its observations on the first axis; got {states.shape}")
        if not len(states):
            raise NoEstimateError(f"no observations of {self} were given")
        weights = np.ones(len(states)) if weights is None else np.asarray(weights, dtype=np.float64)
        if weights.shape[:1] != (len(states),):
            raise ValueError(f"weights must have one entry per observation ({len(states)}); got shape {weights.shape}")
        weights = np.broadcast_to(
            weights.reshape(*weights.shape, *(1,) * (states.ndim - 1 - weights.ndim)), states.shape[:-1]
        )
        count = weights.sum(axis=0)
        if not ((weights >= 0) & np.isfinite(weights)).all() or not (count > 0).all():
            raise ValueError("weights must be finite and not negative, and not all zero")
        entries, size = self.structure.entries(states), int(self.structure.table_starts[-1])
        mean = np.zeros((*count.shape, self.dim))
        for at in np.ndindex(count.shape):
            own = np.repeat(weights[(slice(None), *at)], entries.shape[-1])
            counted = np.bincount(entries[(slice(None), *at)].ravel(), own, minlength=size)
            mean[at] = self.mean_of(counted / count[at])
        return Statistics(self, mean, count[()])

    # The solve says whether there is an estimate.

    def _estimable(self, central):
        return jnp.all(jnp.isfinite(central), axis=-1)

    def _obstacle(self, central, count) -> str:
        try:
            self.to_natural(central)
        except DomainError as reason:
            return f"of {count:g} observations, {reason}"
        return "the estimate is not representable"

    def _refusal(self, name: str, value: Any, arguments: Any) -> DomainError:
        try:
            self.to_natural(value) if name == "mu" else self._checked(value, name)
        except DomainError as reason:
            return reason
        return DomainError(f"{name} is not a parameter of {self}; got {value!s:.80}")

    # Bounded statistics ----------------------------------------------------------------------------------------------

    def statistics_radius(self) -> float:
        """``R`` with ``|T(x) - c| <= R`` for every ``x``: ``Cov T <= R^2``, whatever the parameter."""
        return self._radius

    @cached_property
    def _radius(self) -> float:
        from cumulant.graphical.learning.statistics_ball import statistics_ball  # it asks families, which this one is

        return statistics_ball(self, np.arange(self.dim))[1]

    def directions(self) -> np.ndarray:
        """An orthonormal basis (dim, rank) of the differences of statistics: ``theta`` matters along these alone.

        Functions of the variables of a scope are sums, in one way, of functions of its subsets that vanish where some
        variable has state 0. In these coordinates the statistics, but for their constant, have the rank sought.
        """
        return self._directions

    @cached_property
    def _directions(self) -> np.ndarray:
        if self.dim > _LARGEST_RANK:
            raise TooWide(
                f"the redundant ones of {self.dim} parameters are looked for up to {_LARGEST_RANK}: learn them with an "
                "l2 penalty, graphical.fit(method='exact', l2=...)"
            )
        place: dict[tuple, int] = {}
        rows, columns, data = [], [], []
        for f in range(self.structure.n_factors):
            scope, shape = self.structure.scope(f), self.structure.shape(f)
            change = np.ones((1, 1))
            for size in shape:
                corner = np.eye(size)
                corner[1:, 0] = -1.0
                change = np.kron(change, corner)
            for i, states in enumerate(itertools.product(*map(range, shape))):
                key = tuple(sorted((v, x) for v, x in zip(scope, states, strict=True) if x))
                if key:
                    there = np.flatnonzero(change[i])
                    rows += [place.setdefault(key, len(place))] * there.size
                    columns += (there + self.structure.table_starts[f]).tolist()
                    data += change[i, there].tolist()
        C = csr_array((data, (rows, columns)), (len(place), int(self.structure.table_starts[-1])))
        C = (C if self.design is None else csr_array(C @ self.design)).toarray()
        if not C.size:
            return np.zeros((self.dim, 0))
        _, singular, right = np.linalg.svd(C, full_matrices=False)
        rank = int((singular > 1e-10 * singular[0]).sum())
        return np.eye(self.dim) if rank == self.dim else right[:rank].T

    def mean_rounding(self, theta: Any) -> float:
        """The relative error that rounding may leave in marginal probabilities: a few units for each factor and
        variable, and the absolute error of the scores that are exponentiated.
        """
        tables = np.abs(self.log_tables(theta))
        largest = np.maximum.reduceat(
            np.append(np.where(np.isfinite(tables), tables, 0.0), 0.0), self.structure.table_starts[:-1]
        )
        return 2.0**-53 * (8.0 * (self.structure.n_factors + self.structure.n_variables + 8) + 4.0 * largest.sum())


# All of a family is part of a compiled program: it has no arrays that change.
jax.tree_util.register_pytree_node(DiscreteFamily, lambda family: ((), family), lambda family, _: family)


def inner(mean: Any, theta: Any) -> Any:
    """``<mean, theta>`` where ``0 * -inf = 0``, over the last axis."""
    xp = jnp if any_jax(mean, theta) else np
    return (mean * xp.where(mean == 0, 0.0, theta)).sum(axis=-1)


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
