"""Nearest points of convex sets: Euclidean projections, and Bregman projections onto the simplex and affine sets.

Each function takes points with vectors on the last axis (matrices on the last two), batched over leading axes, and the
set's own parameters; a radius is a number, or an array with one entry for each vector of the batch. All are
differentiable wherever the projection is, and give one element of its generalised derivative elsewhere.
"""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.geometry._calling import (
    FINITE,
    NON_NEGATIVE,
    NOT_NAN,
    POSITIVE,
    SYMMETRIC,
    Requirement,
    matrices,
    public_function,
    square,
    vectors,
)
from cumulant.geometry.bregman_projection import BregmanProjection, bregman_affine
from cumulant.geometry.entropies import Shannon
from cumulant.geometry.spectral_maps import singular_map, spectral_map, transpose

__all__ = [
    "BregmanProjection",
    "affine",
    "box",
    "bregman_affine",
    "kl_affine",
    "kl_simplex",
    "l1_ball",
    "l2_ball",
    "linf_ball",
    "non_negative",
    "positive_semidefinite",
    "simplex",
    "spectral_norm_ball",
]

_SOME_MASS = Requirement(
    "of positive and finite sum", lambda value, _: (jnp.sum(value, axis=-1) > 0) & jnp.isfinite(jnp.sum(value, axis=-1))
)
_ORDERED = Requirement("at least the lower bound", lambda value, a: value >= a["lower"])


@public_function(x=FINITE, lower=NOT_NAN, upper=(NOT_NAN, _ORDERED))
def box(x, lower, upper):
    """The nearest point of ``lower <= x <= upper``; bounds may be infinite.

    >>> box([-2.0, 0.5, 3.0], 0.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    return jnp.where(x < lower, lower, jnp.where(x > upper, upper, x))


@public_function(x=FINITE)
def non_negative(x):
    """The nearest point of ``x >= 0``.

    >>> non_negative([-0.3, 0.8])
    array([0. , 0.8])
    """
    return jnp.where(x > 0, x, 0.0)


@public_function(shapes=vectors("x"), x=FINITE, radius=POSITIVE)
def simplex(x, radius=1.0):
    """The nearest point of ``{p >= 0, sum p = radius}``: ``max(x - t, 0)`` with the one ``t`` that gives the sum.

    Exact, by sorting (Held, Wolfe and Crowder 1974; Duchi et al. 2008).

    >>> simplex([0.5, 2.0, 1.5])
    array([0.  , 0.75, 0.25])
    """
    radius = _column(radius)
    x = x - jax.lax.stop_gradient(
        jnp.max(x, axis=-1, keepdims=True)
    )  # the answer does not change; the sums get smaller
    ordered = -jnp.sort(-x, axis=-1)
    levels = (jnp.cumsum(ordered, axis=-1) - radius) / np.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    active = jnp.sum(ordered > levels, axis=-1, keepdims=True)
    level = jnp.take_along_axis(levels, active - 1, axis=-1)
    return jnp.where(x > level, x - level, 0.0)


@public_function(shapes=vectors("x"), x=FINITE, radius=POSITIVE)
def l1_ball(x, radius=1.0):
    """The nearest point of ``{|x|_1 <= radius}``: outside, the simplex projection of ``|x|`` with the signs of ``x``.

    >>> l1_ball([0.5, -2.0, 1.5])
    array([ 0.  , -0.75,  0.25])
    """
    inside = jnp.sum(jnp.abs(x), axis=-1, keepdims=True) <= _column(radius)
    return jnp.where(inside, x, jnp.sign(x) * simplex(jnp.abs(x), radius))


@public_function(shapes=vectors("x"), x=FINITE, radius=POSITIVE)
def l2_ball(x, radius=1.0):
    """The nearest point of ``{|x|_2 <= radius}``: ``x min(1, radius / |x|)``.

    >>> l2_ball([3.0, 4.0], 1.0)
    array([0.6, 0.8])
    """
    radius = _column(radius)
    size = jax.lax.stop_gradient(
        jnp.max(jnp.abs(x), axis=-1, keepdims=True)
    )  # |x| = size |x / size|, which cannot overflow
    scaled = x / jnp.where(size > 0, size, 1.0)
    square_norm = jnp.sum(scaled**2, axis=-1, keepdims=True)
    norm = jnp.sqrt(jnp.where(square_norm > 0, square_norm, 1.0))
    return jnp.where((square_norm > 0) & (size * norm > radius), scaled * (radius / norm), x)


@public_function(shapes=vectors("x"), x=FINITE, radius=POSITIVE)
def linf_ball(x, radius=1.0):
    """The nearest point of ``{|x|_inf <= radius}``: each coordinate is clipped.

    >>> linf_ball([3.0, -0.5], 1.0)
    array([ 1. , -0.5])
    """
    radius = _column(radius)
    return jnp.where(jnp.abs(x) > radius, jnp.sign(x) * radius, x)


def _affine_shapes(arguments: dict) -> None:
    vectors("x", "b")(arguments)
    x, A, b = (np.shape(arguments[name]) for name in ("x", "A", "b"))
    if len(A) != 2 or A[1] != x[-1] or A[0] != b[-1]:
        raise ValueError(f"A must have shape (len(b), len(x)); got A of shape {A}, b of shape {b} and x of shape {x}")


def _affine_holds(arguments: dict, answer) -> None:
    A, b, x = (np.asarray(each) for each in (arguments["A"], arguments["b"], answer))
    miss = np.linalg.norm(x @ A.T - b, axis=-1)
    allowed = np.sqrt(np.finfo(x.dtype).eps) * (
        np.linalg.norm(b, axis=-1) + np.linalg.norm(A) * np.linalg.norm(x, axis=-1)
    )
    if np.any(miss > allowed):
        raise DomainError(
            f"b of affine must be in the range of A: the nearest point has |A x - b| = {np.max(miss):.3g}"
        )


@public_function(shapes=_affine_shapes, after=_affine_holds, x=FINITE, A=FINITE, b=FINITE)
def affine(x, A, b):
    """The nearest point of ``{A x = b}``: ``x - A^+ (A x - b)`` with the pseudo-inverse, so `A` may have any rank.

    If ``A x = b`` has no solution this is refused; under `jit`, where it cannot be seen, the nearest least-squares
    solution is returned.

    >>> affine([0.0, 0.0], [[1.0, 2.0], [2.0, 4.0]], [2.0, 4.0]).round(12)
    array([0.4, 0.8])
    """
    inverse = jnp.linalg.pinv(A, rtol=max(A.shape) * jnp.finfo(A.dtype).eps)
    for _ in range(2):  # the second pass removes the rounding of the first
        x = x - (x @ A.T - b) @ inverse.T
    return x


@public_function(shapes=square("X"), X=(FINITE, SYMMETRIC), floor=FINITE)
def positive_semidefinite(X, floor=0.0):
    """The nearest symmetric matrix (Frobenius norm) with eigenvalues at least `floor`: those below are raised to it.

    >>> positive_semidefinite([[1.0, 2.0], [2.0, 1.0]]).round(12)
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    return (X + transpose(X)) / 2 + spectral_map(_shortfall, _shortfall_secant, X, _column(floor))


def _shortfall(values, floor):
    return jnp.where(values < floor, floor - values, 0.0)


def _shortfall_secant(x, y, floor):
    return _clip_secant(x, y, floor, jnp.inf) - 1


@public_function(shapes=matrices("X"), X=FINITE, radius=POSITIVE)
def spectral_norm_ball(X, radius=1.0):
    """The nearest matrix (Frobenius norm, any shape) with singular values at most `radius`: larger ones are cut.

    >>> spectral_norm_ball([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]], 1.0).round(12)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0. ]])
    """
    return X - shrink_singular_values(X, radius)


def shrink_singular_values(X, amount):
    """``U max(sigma - amount, 0) V^T``: what `spectral_norm_ball` takes away; the proximal map of the nuclear norm."""
    return singular_map(_soft, _soft_secant, X, _column(amount))


def _soft(x, amount):
    return jnp.where(jnp.abs(x) > amount, x - jnp.sign(x) * amount, 0.0)


def _soft_secant(x, y, amount):
    return 1 - _clip_secant(x, y, -amount, amount)


def _clip_secant(x, y, low, high):
    """The secant of ``min(max(x, low), high)``: the part of the segment from ``y`` to ``x`` that lies within."""
    gap = x - y
    return jnp.where(
        gap == 0,
        (x > low) & (x < high),
        (jnp.clip(x, low, high) - jnp.clip(y, low, high)) / jnp.where(gap == 0, 1.0, gap),
    )


@public_function(shapes=vectors("x"), x=(NON_NEGATIVE, _SOME_MASS), radius=POSITIVE)
def kl_simplex(x, radius=1.0):
    """The point of ``{p >= 0, sum p = radius}`` nearest to ``x >= 0`` in ``KL(p|x)``: ``x`` rescaled.

    >>> kl_simplex([1.0, 3.0])
    array([0.25, 0.75])
    """
    return x / jnp.sum(x, axis=-1, keepdims=True) * _column(radius)


def kl_affine(x0, A, b, **settings) -> BregmanProjection:
    """The point of ``{A x = b, x >= 0}`` nearest to ``x0`` in ``KL(x|x0)``: `bregman_affine` with the Shannon entropy.

    >>> kl_affine([0.1, 0.1], [[1.0, 2.0]], [2.0]).point.round(8)
    array([0.29221444, 0.85389278])
    """
    return bregman_affine(Shannon(), x0, A, b, **settings)


def _column(radius):
    """A number, or one number for each vector of the batch made to meet the last axis."""
    return jnp.asarray(radius)[..., None] if jnp.ndim(radius) else radius
