"""Dual coordinate ascent for a loss of the user, as a compiled program: the same updates as the kernel for rows."""

import functools

import jax
import jax.numpy as jnp

from cumulant.optim.finite_sums.finite_sum_programs import in_float64

_GOLDEN = 0.6180339887498949
_ITERATIONS = 30


@in_float64
@jax.jit
def start_program(problem):
    """The slopes at scores of zero, from which a share leads into the domain of every conjugate."""
    shape = (problem.n_terms,) if problem.outputs is None else (problem.n_terms, problem.outputs)
    return jax.vmap(jax.grad(problem.loss.value))(jnp.zeros(shape), jnp.asarray(problem.targets))


def _look(problem, scores, target, old):
    """The slope at the scores of a row, and the row's gap."""
    value, slope = jax.value_and_grad(problem.loss.value)(scores, target)
    return slope, jnp.maximum(value + problem.loss.conjugate(old, target) - jnp.vdot(scores, old), 0.0)


@in_float64
@jax.jit
def gaps_program(problem, x, slopes):
    """The gap of every row and the l1 norm of its residual."""
    scores = problem.A @ x
    new, gaps = jax.vmap(lambda s, t, u: _look(problem, s, t, u))(scores, jnp.asarray(problem.targets), slopes)
    return gaps, jnp.sum(jnp.abs(new - slopes).reshape(len(gaps), -1), axis=1)


def _newton(problem, target, old, delta, scores, value):
    """The root of the slope of the dual along `delta`, by bracketed Newton's method."""
    conjugate = jax.grad(problem.loss.conjugate)

    def slope(gamma):
        return jnp.vdot(delta, scores(gamma) - conjugate(old + gamma * delta, target))

    def narrow(_, carry):
        low, high, gamma = carry
        first, second = jax.jvp(slope, (gamma,), (jnp.ones_like(gamma),))
        rising = first > 0
        low, high = jnp.where(rising, gamma, low), jnp.where(rising, high, gamma)
        following = gamma - first / second
        inside = (following > low) & (following < high)  # false for NaN
        return low, high, jnp.where(inside, following, 0.5 * (low + high))

    half = jnp.asarray(0.5, dtype=delta.dtype)
    return jax.lax.fori_loop(0, _ITERATIONS, narrow, (0 * half, 2 * half, half))[2]


def _golden(problem, target, old, delta, scores, value):
    """The maximum of the dual along `delta`, by golden section."""

    def along(gamma):
        return value(gamma) - problem.loss.conjugate(old + gamma * delta, target)

    def narrow(_, carry):
        low, high = carry
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        rising = along(a) < along(b)
        return jnp.where(rising, a, low), jnp.where(rising, high, b)

    zero = jnp.zeros((), delta.dtype)
    low, high = jax.lax.fori_loop(0, _ITERATIONS, narrow, (zero, zero + 1))
    return 0.5 * (low + high)


def _way(problem, a, v, delta, ratio):
    """Along an update of the dual variable by ``gamma delta``: what is added to ``v``, the scores of the row at
    ``gamma``, and ``-r*(v + gamma move) / ratio`` up to a constant.
    """
    move = -ratio * (a * delta if delta.ndim == 0 else jnp.outer(a, delta))
    regulariser = problem.regulariser
    if regulariser is None:
        scores, square = a @ v, ratio * jnp.vdot(a, a)
        bend = square * jnp.vdot(delta, delta)
        return (
            move,
            lambda gamma: scores - gamma * square * delta,
            lambda gamma: gamma * jnp.vdot(scores, delta) - 0.5 * gamma**2 * bend,
        )

    def value(gamma):
        at = v + gamma * move
        z = regulariser.conjugate_point(at)
        return (regulariser.value(z) - jnp.vdot(at, z)) / ratio

    return move, lambda gamma: a @ regulariser.conjugate_point(v + gamma * move), value


def _drawn(tree, place, n, largest):
    """The row drawn by `place`: the one of the largest leaf, or in proportion to the leaves."""
    capacity = tree.size // 2

    def descend(_, carry):
        k, remainder = 2 * carry[0], carry[1]
        by_weight = (tree[k + 1] > 0) & (remainder >= tree[k])
        right = jnp.where(largest, tree[k + 1] > tree[k], by_weight)
        return k + right, jnp.where(right & ~largest, remainder - tree[k], remainder)

    depth = capacity.bit_length() - 1
    k, _ = jax.lax.fori_loop(0, depth, descend, (jnp.asarray(1), place * tree[1]))
    return jnp.where(tree[1] > 0, k - capacity, jnp.minimum((place * n).astype(int), n - 1))


def _remembered(tree, i, weight, largest):
    capacity = tree.size // 2

    def climb(_, carry):
        k, tree = carry[0] // 2, carry[1]
        first, second = tree[2 * k], tree[2 * k + 1]
        return k, tree.at[k].set(jnp.where(largest, jnp.maximum(first, second), first + second))

    depth = capacity.bit_length() - 1
    return jax.lax.fori_loop(0, depth, climb, (capacity + i, tree.at[capacity + i].set(weight)))[1]


@in_float64
@functools.partial(jax.jit, static_argnames=("kind",))
def ascend_program(problem, A, x, slopes, tree, conditions, nonuniformity, coins, scheme, *, kind):
    """One update for each row of `coins`; `A` is dense. Schemes and kinds are those of the kernel.

    What is carried along is ``v = -(weight / l2) A^T u``, whose image under ``grad r*`` the weights are.
    """
    n, ratio = problem.n_terms, problem.weight / problem.l2
    targets, largest = jnp.asarray(problem.targets), scheme == 4
    regulariser = problem.regulariser
    image = (lambda v: v) if regulariser is None else regulariser.conjugate_point

    def update(carry, pair):
        v, slopes, tree = carry
        weighted = (scheme != 0) & (pair[0] < nonuniformity)
        i = jnp.where(weighted, _drawn(tree, pair[1], n, largest), jnp.minimum((pair[1] * n).astype(int), n - 1))
        a, old = A[i], slopes[i]
        scores = a @ image(v)
        new, gap = _look(problem, scores, targets[i], old)
        delta = new - old
        residual = jnp.sum(jnp.abs(delta)) * jnp.sqrt(conditions[i])
        kept = tree[tree.size // 2 + i]
        weight = jnp.stack([kept, kept, gap, gap * conditions[i], gap, residual])[scheme]
        tree = _remembered(tree, i, weight, largest)
        move, *way = _way(problem, a, v, delta, ratio)
        search = {0: _newton, 1: _golden}.get(kind)
        share = 1 / conditions[i] if search is None else search(problem, targets[i], old, delta, *way)
        return (v + share * move, slopes.at[i].add(share * delta), tree), None

    start = x if regulariser is None else -ratio * A.T @ slopes
    v, slopes, tree = jax.lax.scan(update, (start, slopes, tree), coins)[0]
    return image(v), slopes, tree
