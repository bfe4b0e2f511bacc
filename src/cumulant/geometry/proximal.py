"""Proximal maps: ``prox(v, step) = argmin_x f(x) + |x - v|^2 / (2 step)``, one function a penalty ``f``.

Vectors lie on the last axis (matrices on the last two), batched over leading axes. `step` is a positive number, or one
for each vector of the batch; `weight` multiplies the penalty, and where the penalty is a sum over coordinates it may be
an array with an entry for each (zero for one that is not penalised). The answer ``x`` is the only point with
``(v - x) / step`` in the subdifferential of ``f`` at ``x``.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.geometry._calling import (
    FINITE,
    NON_NEGATIVE,
    POSITIVE,
    SYMMETRIC,
    Requirement,
    matrices,
    public_function,
    square,
    vectors,
)
from cumulant.geometry.projections import _column, _soft, shrink_singular_values
from cumulant.geometry.spectral_maps import spectral_map, transpose

__all__ = [
    "conjugate",
    "elastic_net",
    "entropy",
    "group",
    "indicator",
    "l1",
    "negative_log",
    "negative_log_det",
    "nuclear",
    "ridge",
]

_STRUCTURES = ("symmetric", "diagonal", "triangular")


@public_function(shapes=vectors("v"), v=FINITE, step=POSITIVE, weight=NON_NEGATIVE)
def l1(v, step=1.0, weight=1.0):
    """Soft thresholding, for ``f = weight |x|_1``: ``sign(v) max(|v| - step weight, 0)``.

    >>> l1([3.0, -0.5, -2.0], 1.0)
    array([ 2.,  0., -1.])
    """
    return _soft(v, _column(step) * weight)


@public_function(shapes=vectors("v"), v=FINITE, step=POSITIVE, weight=NON_NEGATIVE)
def ridge(v, step=1.0, weight=1.0):
    """Shrinkage, for ``f = weight |x|_2^2 / 2``: ``v / (1 + step weight)``.

    >>> ridge([3.0, -1.0], 0.5, weight=2.0)
    array([ 1.5, -0.5])
    """
    return v / (1 + _column(step) * weight)


@public_function(shapes=vectors("v"), v=FINITE, step=POSITIVE, l1=NON_NEGATIVE, l2=NON_NEGATIVE)
def elastic_net(v, step=1.0, l1=1.0, l2=1.0):
    """For ``f = l1 |x|_1 + l2 |x|_2^2 / 2``: soft thresholding, then shrinkage.

    >>> elastic_net([3.0, -0.5], 1.0, l1=1.0, l2=1.0)
    array([1., 0.])
    """
    step = _column(step)
    return _soft(v, step * l1) / (1 + step * l2)


_LABELS = Requirement(
    "group numbers from 0 up, below the length of v", lambda value, a: (value >= 0) & (value < np.shape(a["v"])[-1])
)


def _group_shapes(arguments: dict) -> None:
    vectors("v")(arguments)
    labels, weight, v = arguments["labels"], arguments["weight"], arguments["v"]
    if labels is not None:
        if np.shape(labels) != np.shape(v)[-1:]:
            raise ValueError(
                f"labels must have one entry for each of v's last axis, {np.shape(v)[-1:]}; got {np.shape(labels)}"
            )
        if not np.issubdtype(
            np.asarray(labels).dtype if not isinstance(labels, jax.Array) else labels.dtype, np.integer
        ):
            raise TypeError("labels must be integers: the number of the group of each coordinate")
    elif np.ndim(weight):
        raise ValueError("weight must be a number where v is one group; for several groups give labels")


@public_function(
    integers=("labels",), shapes=_group_shapes, v=FINITE, step=POSITIVE, labels=_LABELS, weight=NON_NEGATIVE
)
def group(v, step=1.0, labels=None, weight=1.0):
    """Block soft thresholding, for ``f = sum_g weight_g |x_g|_2``: ``v_g max(1 - step weight_g / |v_g|, 0)``.

    Parameters
    ----------
    labels : array of int (p,), optional
        The group of each coordinate. Without it the last axis is one group.
    weight : float or array
        One for all, or an array with one for each group number.

    Examples
    --------
    >>> group([3.0, 4.0, 1.0], 1.0, labels=[0, 0, 1])
    array([2.4, 3.2, 0. ])
    """
    step = _column(step)
    if labels is None:
        squares = jnp.sum(v**2, axis=-1, keepdims=True)
    else:
        sums = jax.ops.segment_sum(jnp.moveaxis(v**2, -1, 0), labels, num_segments=v.shape[-1])
        squares = jnp.moveaxis(sums[labels], 0, -1)
        weight = jnp.asarray(weight)[labels] if jnp.ndim(weight) else weight
    threshold = step * weight
    kept = squares > threshold**2
    return jnp.where(kept, v * (1 - threshold / jnp.sqrt(jnp.where(kept, squares, 1.0))), 0.0)


@public_function(shapes=matrices("V"), V=FINITE, step=POSITIVE, weight=NON_NEGATIVE)
def nuclear(V, step=1.0, weight=1.0):
    """Singular value thresholding, for ``f = weight (sum of singular values)``; matrices may be rectangular.

    >>> nuclear([[3.0, 0.0], [0.0, 0.5]], 1.0).round(12)
    array([[2., 0.],
           [0., 0.]])
    """
    return shrink_singular_values(V, step * weight)


@public_function(shapes=vectors("v"), v=FINITE, step=POSITIVE, weight=POSITIVE)
def negative_log(v, step=1.0, weight=1.0):
    """For ``f = -weight sum log x``: ``(v + sqrt(v^2 + 4 s)) / 2``, the root of ``x - v = s / x``, ``s = step weight``.

    >>> negative_log([-0.1, 0.5, 3.0], 0.3).round(7)
    array([0.5      , 0.8520797, 3.0968719])
    """
    return _log_root(v, _column(step) * weight)


def _log_root(v, s):
    """The larger root of ``x^2 - v x - s``, by the formula that does not cancel."""
    root = jnp.hypot(v, 2 * jnp.sqrt(s))
    negative = v < 0
    return jnp.where(negative, 2 * s / jnp.where(negative, root - v, 1.0), (root + v) / 2)


def _log_root_secant(v, w, s):
    product = _log_root(v, s) * _log_root(w, s)
    return product / (product + s)


def _log_det_shapes(arguments: dict) -> None:
    structure = arguments["structure"]
    checks.choice("structure", structure, _STRUCTURES)
    (vectors if structure == "diagonal" else square)("V")(arguments)


def _fits(value, arguments):
    structure = arguments["structure"]
    if structure == "symmetric":
        return SYMMETRIC.holds(value, arguments)
    return value == jnp.tril(value) if structure == "triangular" else np.ones((), bool)


_STRUCTURED = Requirement(lambda a: "lower triangular" if a["structure"] == "triangular" else a["structure"], _fits)


@public_function(static=("structure",), shapes=_log_det_shapes, V=(FINITE, _STRUCTURED), step=POSITIVE, weight=POSITIVE)
def negative_log_det(V, step=1.0, weight=1.0, structure: Literal["symmetric", "diagonal", "triangular"] = "symmetric"):
    """For ``f = -weight log det X`` over matrices of one structure with positive eigenvalues.

    * ``"symmetric"``: `V` is ``(..., d, d)``; each eigenvalue goes through `negative_log`.
    * ``"diagonal"``: `V` is ``(..., d)``, the diagonals; the same as `negative_log`.
    * ``"triangular"``: `V` is ``(..., d, d)``, lower triangular; the diagonal goes through `negative_log`, what is
      below it stays. This is the proximal step of the entropy of a Gaussian with Cholesky factor ``X``.

    >>> negative_log_det([[1.0, 0.0], [-0.7, -0.5]], 0.25, structure="triangular").round(7)
    array([[ 1.2071068,  0.       ],
           [-0.7      ,  0.309017 ]])
    """
    s = step * weight
    if structure == "symmetric":
        return spectral_map(_log_root, _log_root_secant, (V + transpose(V)) / 2, _column(s))
    if structure == "diagonal":
        return _log_root(V, _column(s))
    diagonal = _log_root(jnp.diagonal(V, axis1=-2, axis2=-1), _column(s))
    return jnp.where(np.eye(V.shape[-1], dtype=bool), diagonal[..., None, :], V)


@public_function(shapes=vectors("v"), v=FINITE, step=POSITIVE, weight=POSITIVE)
def entropy(v, step=1.0, weight=1.0):
    """For ``f = weight sum x log x``: the root of ``x + s (log x + 1) = v``, ``s = step weight``.

    It is ``s W(exp(v/s - 1) / s)`` with Lambert's ``W``, computed as ``s omega(v/s - 1 - log s)`` with Wright's
    function ``omega(z) = W(e^z)``, which does not overflow (Corless and Jeffrey 2002).

    >>> entropy([-2.0, 2.0, 1e6]).round(4)
    array([4.75000000e-02, 1.00000000e+00, 9.99985184e+05])
    """
    s = jnp.asarray(_column(step) * weight)
    return s * _wright_omega(v / s - 1 - jnp.log(s))


@jax.custom_jvp
def _wright_omega(z):
    """``omega + log omega = z`` by three steps of a fourth-order iteration (Lawrence, Corless and Jeffrey 2012)."""
    tiny = z < -36.0  # omega = e^z up to rounding
    large = z > 1.0
    series = jnp.log1p(jnp.exp(jnp.where(large | tiny, 0.0, z)))
    safe = jnp.where(large, z, 2.0)
    w = jnp.where(large, safe - jnp.log(safe), series * (1 - jnp.log1p(series) / (2 + series)))
    z_ = jnp.where(tiny, 0.0, z)
    for _ in range(3):
        r = z_ - w - jnp.log(w)
        q = (1 + w) * (1 + w + 2 * r / 3)
        w = w * (1 + r / (1 + w) * (1 + r / (2 * (q - r))))  # q may overflow: then the last factor is one
    return jnp.where(tiny, jnp.exp(jnp.minimum(z, 0.0)), w)


_wright_omega.defjvps(lambda dz, w, z: dz * w / (1 + w))


def indicator(projection: Callable, **parameters: Any) -> Callable:
    """The proximal map of the indicator of a set (zero on it, infinite off it): the projection, whatever the step.

    >>> from cumulant.geometry import projections
    >>> indicator(projections.l2_ball, radius=1.0)([3.0, 4.0], 0.1)
    array([0.6, 0.8])
    """

    def prox(v, step=1.0):
        return projection(v, **parameters)

    return prox


def conjugate(prox: Callable, **parameters: Any) -> Callable:
    """The proximal map of the conjugate ``f*``, by Moreau's identity ``v - step prox_f(v / step, 1 / step)``.

    >>> conjugate(l1)([3.0, -0.5], 2.0)                     # the conjugate of |x|_1 is the indicator of |x|_inf <= 1
    array([ 1. , -0.5])
    """

    def prox_of_conjugate(v, step=1.0):
        v = v if isinstance(v, jax.Array) else np.asarray(v, dtype=np.float64)
        step = step if isinstance(step, jax.Array) or np.ndim(step) == 0 else np.asarray(step, dtype=np.float64)
        wide = _column(step) if isinstance(step, jax.Array) else np.asarray(step)[..., None] if np.ndim(step) else step
        return v - wide * prox(v / wide, 1 / step, **parameters)

    return prox_of_conjugate
