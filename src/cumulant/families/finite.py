"""Families from a user's own statistic: over states that can be listed, or from which one can draw."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy.linalg import qr
from scipy.optimize import linprog

from cumulant.families.base import ExponentialFamily, constant, family
from cumulant.families.newton import solve_mean_equation
from cumulant.families.tails import table_log_tails
from cumulant.precision import any_jax


@family
class FiniteFamily(ExponentialFamily):
    """``p(x) = h(x) exp(<theta, T(x)> - A(theta))`` over ``x`` in {0, ..., n - 1}, with any table of statistics.

    ``A(theta) = log sum_x h(x) exp <theta, T(x)>``, the mean map is one-to-one onto the interior of the convex hull of
    the rows of `T` (Barndorff-Nielsen 1978). The statistics must be minimal: no combination of columns is the same for
    all states.

    Parameters
    ----------
    T : array (states, dim)
        The statistics of each state.
    base_measure : array (states,), optional
        ``h``, positive; one without it.

    Examples
    --------
    The number of heads and of runs of three tosses:

    >>> import itertools
    >>> tosses = list(itertools.product([0, 1], repeat=3))
    >>> fam = FiniteFamily.of(lambda x: [sum(x), 1 + (x[0] != x[1]) + (x[1] != x[2])], tosses)
    >>> fam.to_mean([0.0, 0.0])
    array([1.5, 2. ])
    >>> fam.to_mean(fam.to_natural([1.2, 2.5])).round(12)
    array([1.2, 2.5])
    """

    T: Any = constant()
    base_measure: Any = constant()

    usual_domain = "probabilities of the states that a member has"
    domain = "theta finite"
    mean_domain = "mu inside the convex hull of the statistics of the states"
    discrete = True

    def __init__(self, T: Any, base_measure: Any = None):
        T = T if any_jax(T) else np.array(T, dtype=np.float64)
        if T.ndim != 2 or not T.size or not np.isfinite(T).all():
            raise ValueError(f"T must be a finite array (states, dim) with a row for each state; got shape {T.shape}")
        weights = np.ones(len(T)) if base_measure is None else base_measure
        weights = weights if any_jax(weights) else np.array(weights, dtype=np.float64)
        if weights.shape != (len(T),) or not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(
                f"base_measure must be a positive number for each of {len(T)} states (leave out impossible states); "
                f"got shape {weights.shape}, smallest {np.min(weights, initial=np.inf)}"
            )
        centred = np.asarray(T) - np.mean(np.asarray(T), axis=0)
        found: Any = qr(centred, mode="r", pivoting=True)
        size, order = np.abs(np.diag(found[0])), found[1]
        rank = int((size > 1e-10 * max(size[0], 1e-300)).sum()) if size[0] > 0 else 0
        if rank < T.shape[1]:
            kept = sorted(order[:rank].tolist())
            raise ValueError(
                f"T must be minimal: its {T.shape[1]} columns have rank {rank} but for constants, so that theta is not "
                f"determined; keep the columns {kept}"
            )
        object.__setattr__(self, "T", T)
        object.__setattr__(self, "base_measure", weights)

    @classmethod
    def of(cls, statistic: Callable[[Any], Any], states: Iterable[Any], base_measure: Any = None) -> "FiniteFamily":
        """From a function and the list of states; observation ``k`` is the ``k``-th of them."""
        return cls(np.array([np.atleast_1d(statistic(state)) for state in states], dtype=np.float64), base_measure)

    def __repr__(self):
        return f"FiniteFamily({self.n_states} states, dim={self.dim})"

    @property
    def dim(self) -> int:
        return self.T.shape[1]

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.T.shape[0]

    @property
    def support(self) -> str:
        return f"x in {{0, ..., {self.n_states - 1}}}"

    def _rows(self, dtype):
        return jnp.asarray(self.T).astype(dtype)

    def _logs(self, dtype):
        return jnp.log(jnp.asarray(self.base_measure).astype(dtype))

    def _scores(self, theta):
        return theta @ self._rows(theta.dtype).T + self._logs(theta.dtype)

    def statistics(self, x):
        return self._rows(x.dtype)[x.astype(int)]

    def log_base(self, x):
        return self._logs(x.dtype)[x.astype(int)]

    def log_partition(self, theta):
        return logsumexp(self._scores(theta), axis=-1)

    def natural(self, *, probabilities):
        p = jnp.asarray(probabilities)
        if p.shape[-1:] != (self.n_states,):
            raise ValueError(f"probabilities must have {self.n_states} entries on the last axis; got shape {p.shape}")
        scores = jnp.log(p) - self._logs(p.dtype)
        scores = scores - jnp.mean(scores, axis=-1, keepdims=True)
        centred = self._rows(p.dtype) - jnp.mean(self._rows(p.dtype), axis=0)
        theta = scores @ jnp.linalg.pinv(centred).T
        off = jnp.max(jnp.abs(theta @ centred.T - scores), axis=-1, keepdims=True)
        slack = 1e3 * jnp.finfo(p.dtype).eps * (1 + jnp.max(jnp.abs(scores), axis=-1, keepdims=True))
        return jnp.where(off <= slack, theta, jnp.nan)

    def usual(self, theta):
        return {"probabilities": jax.nn.softmax(self._scores(theta), axis=-1)}

    def to_mean(self, theta):
        return jax.nn.softmax(self._scores(theta), axis=-1) @ self._rows(theta.dtype)

    def fisher(self, theta):
        p = jax.nn.softmax(self._scores(theta), axis=-1)
        centred = self._rows(theta.dtype) - (p @ self._rows(theta.dtype))[..., None, :]
        return jnp.einsum("...s,...si,...sj->...ij", p, centred, centred)

    def to_natural(self, mu):
        """The Newton solve; NaN where its decrement does not prove that ``mu`` is inside the hull (Bach 2010)."""
        theta = solve_mean_equation(self, mu)
        rows = self._rows(mu.dtype)
        radius = jnp.sqrt(jnp.max(jnp.sum((rows - _middle(rows)) ** 2, axis=-1)))
        values, vectors = jnp.linalg.eigh(self.fisher(theta))
        along = jnp.einsum("...ji,...j->...i", vectors, self.to_mean(theta) - mu)
        positive = jnp.maximum(values, jnp.finfo(mu.dtype).tiny)
        ratio = 2 * radius * jnp.sqrt(jnp.sum(along**2 / positive, axis=-1) / positive[..., 0])
        doubt = 64 * self.n_states * jnp.finfo(mu.dtype).eps * radius**2
        return jnp.where(((ratio < 1) & (values[..., 0] > doubt))[..., None], theta, jnp.nan)

    def expected_log_base(self, theta):
        return jax.nn.softmax(self._scores(theta), axis=-1) @ self._logs(theta.dtype)

    def in_mean_domain(self, mu):
        return jnp.all(jnp.isfinite(self.to_natural(mu)), axis=-1)

    @property
    def ends(self) -> tuple[float, float]:
        return (0.0, self.n_states - 1.0)

    def _log_tails(self, x, theta):
        return table_log_tails(x, jax.nn.log_softmax(self._scores(theta), axis=-1))

    def in_support(self, x):
        return (x >= 0) & (x < self.n_states) & (x == jnp.floor(x))

    def _example_point(self):
        return np.zeros(())

    def _draw(self, key, theta, shape):
        return jax.random.categorical(key, self._scores(theta), axis=-1, shape=(*shape, *theta.shape[:-1]))

    def _estimable(self, central):
        return jnp.all(jnp.isfinite(central), axis=-1)  # the solve says whether there is an estimate

    def _obstacle(self, central, count):
        why = outside_of_hull(np.asarray(self.T), np.asarray(central)) or "too near to the boundary to tell"
        return f"the mean statistic {central} of {count:g} observations is not inside the hull of the statistics: {why}"

    def _refusal(self, name, value, arguments):
        refusal = super()._refusal(name, value, arguments)
        mu = np.asarray(arguments.get("mu", value))
        why = outside_of_hull(np.asarray(self.T), mu) if name in ("mu", "natural") and mu.ndim == 1 else ""
        return type(refusal)(f"{refusal}: {why}") if why else refusal

    # Bounded statistics

    def statistics_radius(self) -> float:
        """``R`` with ``|T(x) - c| <= R`` for every state: ``Cov T <= R^2``."""
        T = np.asarray(self.T, dtype=np.float64)
        return float(np.sqrt(((T - _middle(T)) ** 2).sum(axis=1).max())) * (1 + 1e-12)

    def directions(self) -> np.ndarray:
        """All of the space, as the statistics are minimal."""
        return np.eye(self.dim)

    def mean_rounding(self, theta: Any) -> float:
        """The relative error that rounding may leave in the probabilities of states."""
        scores = np.abs(np.asarray(self.T)) @ np.abs(np.asarray(theta, dtype=np.float64))
        return 2.0**-53 * (8.0 * (self.n_states + self.dim + 8) + 4.0 * self.dim * float(scores.max()))


def _middle(T: Any) -> Any:
    return (T.max(axis=0) + T.min(axis=0)) / 2


def outside_of_hull(T: np.ndarray, mu: np.ndarray) -> str:
    """Why ``mu`` is not in the relative interior of the convex hull of the rows of ``T``; "" where it is.

    By the linear programme ``max t: mu = sum_x p(x) T(x), p >= t``, whose value is positive inside.
    """
    n = len(T)
    if not np.isfinite(mu).all():
        return "it is not finite"
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.hstack([-np.eye(n), np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.vstack([np.hstack([T.T, np.zeros((T.shape[1], 1))]), np.append(np.ones(n), 0.0)]),
        b_eq=np.append(mu, 1.0),
        bounds=[(0.0, None)] * n + [(None, None)],
    )
    if found.status == 2:
        return f"no distribution over the {n} states has it (a linear programme is infeasible)"
    if found.status == 0 and -found.fun <= 1e-12:
        return "every distribution that has it makes some state impossible, so that theta would be infinite"
    return ""


@dataclass(frozen=True)
class SampledFamily:
    """A family of which only the statistic is known, and how to draw: what learning by sampling needs.

    ``E_theta T`` is estimated by the mean over draws. With ``|T(x) - c| <= radius``, the mean of `n` draws that are
    each within `total_variation` of ``p_theta`` has a bias of at most ``2 radius total_variation`` and a variance of at
    most ``radius^2 / n``. All three rest on the user's word.

    Parameters
    ----------
    dim : int
    statistics : callable
        ``statistics(x) -> (n, dim)`` of `n` draws.
    sampler : callable
        ``sampler(theta, n, rng) -> x``, `n` independent draws.
    radius : float
    total_variation : float
        How far the distribution of a draw may be from ``p_theta``, for every ``theta`` that is met.
    project : callable, optional
        ``project(theta) -> theta``, the Euclidean projection onto a closed convex set to stay in.
    reach : float
        No member of the set is farther from ``project(0)``.

    Examples
    --------
    >>> coin = SampledFamily(1, lambda x: x, lambda t, n, rng: rng.random((n, 1)) < 1 / (1 + np.exp(-t)), 0.5)
    >>> abs(coin.mean_estimate(np.zeros(1), 10_000, np.random.default_rng(0)) - 0.5)[0] < 0.02
    np.True_
    """

    dim: int
    statistics: Callable[[Any], Any]
    sampler: Callable[[np.ndarray, int, np.random.Generator], Any]
    radius: float
    total_variation: float = 0.0
    project: Callable[[np.ndarray], Any] | None = None
    reach: float = np.inf

    def mean_estimate(self, theta: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """The mean statistic of `n` draws."""
        found = np.asarray(self.statistics(self.sampler(theta, n, rng)), dtype=np.float64)
        if found.shape != (n, self.dim) or not np.isfinite(found).all():
            raise ValueError(f"statistics must give finite numbers of shape {(n, self.dim)}; got shape {found.shape}")
        return found.mean(axis=0)
