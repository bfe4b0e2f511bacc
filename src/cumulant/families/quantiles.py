"""Quantiles of families of numbers: Newton's method where the tails have no inverse, bisection of counts."""

import jax
import jax.numpy as jnp

_MOST_STEPS = 200
_MOST_DOUBLINGS = 1100


def quantile(family, p, theta, *, upper: bool):
    """The ``x`` below which (`upper`: above which) a share ``p`` lies; of a count, the smallest that reaches it."""
    if family.discrete:
        return _smallest_count(family, p, theta, upper)
    log_p, log_rest = jnp.log(p), jnp.log1p(-p)
    return family._inverse_tails(*((log_rest, log_p) if upper else (log_p, log_rest)), theta)


def solve_tails(family, log_lower, log_upper, theta):
    """The ``x`` of a continuous family with these tails: Newton's method on the logarithm of the smaller.

    ``family._point(y, theta)`` is a point and the log of its derivative in a coordinate ``y`` of the whole line, zero
    near the middle, in which the density is log-concave: then so are both tails, and Newton's method cannot cycle. Its
    steps are bounded at first, and halve the bracket where they would leave it.
    """
    log_lower, log_upper, middle = jnp.broadcast_arrays(log_lower, log_upper, theta[..., 0])
    left = log_lower < log_upper
    target = jnp.where(left, log_lower, log_upper)
    epsilon = jnp.finfo(target.dtype).eps

    def rise_and_slope(y):
        """How far the log tail is from its target, positive where ``y`` must grow, and its slope."""
        x, log_jacobian = family._point(y, theta)
        lower, upper = family._log_tails(x, theta)
        value = jnp.where(left, lower, upper)
        rise = jnp.where(left, target - value, value - target)
        return rise, jnp.exp(family._log_density(x, theta) + log_jacobian - value)

    def step(state):
        y, low, high, radius, _, count = state
        rise, slope = rise_and_slope(y)
        low, high = jnp.where(rise > 0, y, low), jnp.where(rise < 0, y, high)
        change = rise / slope
        change = jnp.where(jnp.isfinite(change), change, jnp.where(rise > 0, jnp.inf, -jnp.inf))
        new = y + jnp.clip(change, -radius, radius)
        half = low + 0.5 * (high - low)
        new = jnp.where((new > low) & (new < high), new, jnp.where(jnp.isfinite(half), half, y))
        settled = (jnp.abs(rise) <= 4 * epsilon * (1 + jnp.abs(target))) | (jnp.abs(new - y) <= epsilon * jnp.abs(y))
        settled = settled | (jnp.abs(change) <= 0.25 * epsilon) | ~jnp.isfinite(target)
        return jnp.where(settled, y, new), low, high, 2 * radius, settled, count + 1

    def unfinished(state):
        return ~jnp.all(state[4]) & (state[5] < _MOST_STEPS)

    start = jnp.full_like(middle, 0.1)  # beside the middle, where rounding would decide which tail is computed
    infinite = jnp.full_like(start, jnp.inf)
    state = (start, -infinite, infinite, jnp.full_like(start, 2.0), jnp.zeros(start.shape, bool), 0)
    found = jax.lax.stop_gradient(jax.lax.while_loop(unfinished, step, state)[0])
    # One more step, which is the derivative by the implicit function theorem.
    rise, slope = rise_and_slope(found)
    last = rise / jax.lax.stop_gradient(slope)
    y = found + jnp.where(jnp.isfinite(last) & (jnp.abs(last) < 1e-3 * (1 + jnp.abs(found))), last, 0.0)
    y = jnp.where(log_lower == -jnp.inf, -jnp.inf, jnp.where(log_upper == -jnp.inf, jnp.inf, y))
    return family._point(y, theta)[0]


def _smallest_count(family, p, theta, upper):
    """The smallest ``k`` with ``P(X <= k) >= p`` (`upper`: with ``P(X > k) <= p``), up to rounding of ``p``."""
    p, middle = jnp.broadcast_arrays(p, theta[..., 0])
    slack = jnp.finfo(p.dtype).eps * (4 + jnp.abs(jnp.log(jnp.where(p > 0, p, 1.0))))
    top = family.ends[1]

    def reached(k):
        lower, above = family._tails(k, theta)
        return jnp.exp(above) <= p * (1 + slack) if upper else jnp.exp(lower) >= p * (1 - slack)

    def grow(state):
        high, _, count = state
        return jnp.where(reached(high), high, jnp.minimum(2 * high + 1, top)), jnp.all(reached(high)), count + 1

    def halve(state):
        low, high = state[:2]
        half = jnp.floor(low + 0.5 * (high - low))
        fine = reached(half)
        low, high = jnp.where(fine | (half <= low), low, half), jnp.where(fine & (half > low), half, high)
        return low, high, state[2] + 1

    def open_(state):
        low, high, count = state
        half = jnp.floor(low + 0.5 * (high - low))
        return jnp.any((half > low) & (half < high)) & (count < _MOST_DOUBLINGS)

    first = jnp.minimum(jnp.ones_like(middle), top)
    high, _, _ = jax.lax.while_loop(lambda s: ~s[1] & (s[2] < _MOST_DOUBLINGS), grow, (first, jnp.asarray(False), 0))
    found = jax.lax.while_loop(open_, halve, (-jnp.ones_like(middle), high, 0))[1]
    return jnp.where(p <= 0 if upper else p >= 1, top, found)
