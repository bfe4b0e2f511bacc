"""Annealing: a path of distributions from one that can be sampled to the target, and the weights along it."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import betaincinv

from cumulant import checks, randomness
from cumulant.precision import float64, precise
from cumulant.pytrees import pytree
from cumulant.sampling.chains import require_counts
from cumulant.sampling.diagnostics import log_mean_exp, weighted_sample_size
from cumulant.sampling.draws import Draws
from cumulant.sampling.metropolis import MetropolisState
from cumulant.sampling.target import Target


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class GeometricPath:
    """``log f_t = (1 - t) log q + t log p`` for ``t`` in [0, 1]: from a family's distribution ``q`` to a target ``p``.

    Parameters
    ----------
    family, theta
        The start ``q``: a family of numbers or vectors with the dimension of the target, and its natural parameter. It
        must be positive wherever the target is.
    target : Target

    Examples
    --------
    >>> from cumulant.families import MultivariateNormal
    >>> wide = MultivariateNormal(2)
    >>> theta = wide.natural(mean=np.zeros(2), covariance=4 * np.eye(2))
    >>> path = GeometricPath(wide, theta, Target(lambda x: -jnp.sum((x - 1.0) ** 2), 2))
    >>> float(path.at(1.0).log_density([1.0, 2.0])), path.at(0.5).dim
    (-1.0, 2)
    """

    family: Any
    theta: Any
    target: Target

    def __post_init__(self):
        if self.begin.dim != self.target.dim:
            raise ValueError(
                f"the path begins in {self.begin.dim} dimensions and ends in {self.target.dim}: they must agree"
            )

    @property
    def begin(self) -> Target:
        """``q`` as a target."""
        return Target.of(self.family, self.theta)

    def at(self, t: Any) -> Target:
        """The target at ``t``, up to its constant. All of them share one compiled program."""
        return Target(_bridge, self.target.dim, (self.begin, self.target, jnp.asarray(t, dtype=float)))

    def log_ratio(self, x: Any) -> Any:
        """``log p(x) - log q(x)`` at points ``(..., dim)``, up to the constant of the target."""
        return _log_ratio(self.begin, self.target, x)


@precise
@jax.jit
def _log_ratio(begin, target, x):
    return jnp.vectorize(lambda x: target.at(x) - begin.at(x), signature="(d)->()")(x)


def _bridge(x, data):
    begin, target, t = data
    # Where t = 0 the target may be -inf without making the density zero.
    return (1.0 - t) * begin.at(x) + jnp.where(t > 0, t * target.at(x), 0.0)


def next_temperature(log_ratio: Any, t: float, share: float) -> float:
    """The largest ``s`` in (t, 1] at which weights ``exp((s - t) log_ratio)`` keep an effective share of the particles.

    `log_ratio` is an array, or a function of ``s`` that gives the logarithms of the weights themselves. `share` is
    ``weighted_sample_size / particles``, which falls as ``s`` grows; found by bisection.

    >>> next_temperature(np.array([0.0, 0.1]), 0.0, 0.5), next_temperature(np.array([0.0, 50.0]), 0.0, 0.9) < 0.1
    (1.0, True)
    """
    checks.fraction("share", share)
    checks.number("t", t)
    is_function = callable(log_ratio) and not isinstance(log_ratio, type)
    ratio = None if is_function else checks.real_array("log_ratio", log_ratio, ndim=1)

    def logs(s: float) -> np.ndarray:
        return np.asarray(log_ratio(s)) if ratio is None else (s - t) * ratio

    size = logs(t).size
    if not (size and 0 <= t <= 1):
        raise ValueError(f"log_ratio must not be empty, and t between 0 and 1; got {size} entries, t = {t}")
    enough = share * size
    if _sample_size(logs(1.0)) >= enough:
        return 1.0
    low, high = t, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _sample_size(logs(middle)) >= enough:
            low = middle
        else:
            high = middle
    return low if low > t else high


def _sample_size(logs: np.ndarray) -> float:
    """Zero where all weights are."""
    return float(weighted_sample_size(logs)) if logs.max() > -np.inf else 0.0


def annealed_importance_sampling(
    path: GeometricPath,
    sampler: Any,
    n: int,
    *,
    temperatures: Any = 100,
    share: float | None = None,
    steps: int = 1,
    rng: Any = None,
) -> Draws:
    """`n` independent weighted draws from the end of a path, with an estimate of its normaliser.

    Each particle starts from ``q`` and is moved by `steps` transitions of `sampler` at each temperature; its weight is
    ``prod_k f_(k+1)(x_k) / f_k(x_k)``. ``E w = Z / Z_q``, with ``Z_q = 1``: the mean weight is an unbiased estimate of
    ``Z`` for any sampler that leaves each ``f_k`` as it is, mixed or not (Neal 2001).

    Parameters
    ----------
    temperatures : int or array
        A number of equal steps from 0 to 1, or increasing numbers that begin with 0 and end with 1.
    share : float, optional
        Choose the temperatures instead so that each step keeps this effective share of the particles. They then depend
        on the particles, and the estimate is consistent but no longer unbiased.

    Returns
    -------
    Draws
        Shape ``(1, n, dim)``, with `log_weights`, `log_normaliser` and its standard error.

    Examples
    --------
    >>> from cumulant.families import MultivariateNormal
    >>> from cumulant.sampling import HMC
    >>> family = MultivariateNormal(2)
    >>> path = GeometricPath(family, family.natural(mean=np.zeros(2), covariance=9 * np.eye(2)),
    ...                      Target(lambda x: -jnp.sum((x - 1.0) ** 2) / 2, 2))
    >>> draws = annealed_importance_sampling(path, HMC(0.5, 5), 500, temperatures=20, rng=0)
    >>> bool(abs(draws.log_normaliser - np.log(2 * np.pi)) < 4 * draws.log_normaliser_error)
    True
    """
    require_counts(n=(n, 1), steps=(steps, 1))
    given = temperature_schedule(temperatures)
    seed = randomness.seed(rng)
    with float64():
        # The particles and the moves have seeds of their own, both made from the one that was given.
        first, second = np.random.default_rng(seed).integers(2**63, size=2)
        x = np.asarray(path.family.sample(path.theta, n, rng=int(first)), dtype=np.float64).reshape(n, path.target.dim)
        state = sampler.init(path.begin, x, int(second))
        log_weights, used = np.zeros(n), [0.0]
        while used[-1] < 1.0:
            ratio = np.asarray(path.log_ratio(np.asarray(state.x)))
            t = next_temperature(ratio, used[-1], share) if share is not None else float(given[len(used)])
            log_weights += (t - used[-1]) * ratio
            used.append(t)
            if t < 1.0:
                state = _move(sampler, path.at(t), state, steps)
        value, error = log_mean_exp(log_weights)
        settings = {"seed": seed, "temperatures": np.array(used), "acceptance": float(np.mean(state.acceptance))}
        return Draws(
            np.asarray(state.x)[None],
            "annealed",
            settings,
            path.target.shapes,
            log_weights[None],
            value,
            error,
        )


@functools.partial(jax.jit, static_argnames=("steps",))
def _move(sampler, target, state, steps):
    value, gradient = jax.vmap(jax.value_and_grad(target.at))(state.x)
    state = state._replace(log_density=value, gradient=gradient)
    return jax.lax.fori_loop(0, steps, lambda _, s: sampler.step(target, s), state)


def move_at(sampler: Any, target: Target, x: Any, key: Any, steps: int) -> MetropolisState:
    """Chains after `steps` transitions of a sampler from ``x``, ``(n, dim)``, with the shares of proposals accepted."""
    zero = jnp.zeros(len(x))
    state = MetropolisState(x, zero, jnp.zeros_like(x), key, zero, jnp.zeros((), jnp.int32))
    return _move(sampler, target, state, steps)


def temperature_schedule(temperatures: Any) -> np.ndarray:
    """A number of equal steps from 0 to 1, or increasing numbers that begin with 0 and end with 1, as an array."""
    if isinstance(temperatures, int | np.integer) and not isinstance(temperatures, bool) and temperatures >= 1:
        return np.linspace(0.0, 1.0, int(temperatures) + 1)
    given = checks.real_array("temperatures", temperatures)
    if given.ndim != 1 or given.size < 2 or given[0] != 0 or given[-1] != 1 or not (np.diff(given) > 0).all():
        raise ValueError(
            "temperatures must be a positive whole number of steps, or numbers that increase from 0 to 1; "
            f"got {temperatures!r:.80}"
        )
    return given


def lower_from_estimates(estimates: Any, delta: float) -> float:
    """A number below ``log Z`` with probability at least ``1 - delta``, from independent unbiased estimates of ``Z``.

    By Markov's inequality an estimate is above ``Z / p`` with probability at most ``p``, so that the ``k``-th smallest
    of ``R`` is above it with probability at most ``P(Binomial(R, p) >= R - k + 1)``. Where that is ``delta``,
    ``log p + estimate_(k)`` is a lower bound; ``k = 1`` is the smallest of them, ``p = delta^(1/R)``. The best of
    several ``k`` is taken, each with its share of ``delta``. (Gogate, Bidyuk and Dechter 2007 use the minimum.)

    >>> lower_from_estimates(np.zeros(100), 0.01) > -0.2
    True
    """
    checks.fraction("delta", delta)
    ordered = np.sort(checks.real_array("estimates", estimates, ndim=1, finite=False))
    if not ordered.size or np.any(np.isnan(ordered)):
        raise ValueError(f"estimates must be at least one number, without NaN; got {ordered.size}")
    ranks = [2**i for i in range(ordered.size.bit_length()) if 2 ** (i + 1) <= ordered.size] or [1]
    share = delta / len(ranks)
    limits = [np.log(betaincinv(ordered.size - k + 1, k, share)) + ordered[k - 1] for k in ranks]
    return float(max(limits))
