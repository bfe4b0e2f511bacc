"""The point of an affine set that is nearest in a Bregman divergence, by Newton's method on the dual.

It is the limit of mirror descent, and of the gradient flow of a re-parameterised model, on an under-determined problem:
the implicit bias of the algorithm (Gunasekar et al. 2018; Peyré 2021, section 6.4).
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.geometry._calling import FINITE, public_function
from cumulant.geometry._newton import damped_newton
from cumulant.geometry.entropy import HAS_GRADIENT, Entropy
from cumulant.pytrees import pytree


@pytree
@dataclass(frozen=True)
class BregmanProjection:
    """A point and what shows that it is the projection.

    Attributes
    ----------
    point : array
        ``x``, with ``grad psi(x) = grad psi(x0) + A^T multiplier``.
    multiplier : array
        The dual solution, one entry a constraint.
    residual : array
        ``|A x - b|`` relative to ``|A| |x| + |b|``: is the point in the set?
    dual_residual : array
        The distance of ``grad psi(x) - grad psi(x0)`` to the range of ``A^T``, relative to its length (or to one, where
        that is less): is it the nearest? Both residuals are recomputed from the point alone.
    steps : array
        Newton steps taken.
    """

    point: Any
    multiplier: Any
    residual: Any
    dual_residual: Any
    steps: Any


def _shapes(arguments: dict) -> None:
    entropy = arguments["entropy"]
    if not isinstance(entropy, Entropy):
        raise TypeError(f"entropy must be an Entropy, such as Shannon(); got {entropy!r}")
    n = entropy.event_ndim
    x0, A, b = (np.shape(arguments[name]) for name in ("x0", "A", "b"))
    if len(x0) < n or len(A) != 1 + n or len(b) < 1 or A[1:] != x0[len(x0) - n :] or A[0] != b[-1]:
        event = "len(x0)" if n == 1 else "side, side"
        raise ValueError(
            f"A must have shape (len(b), {event}); got A of shape {A}, b of shape {b} and x0 of shape {x0}"
        )


def _converged(arguments: dict, answer: BregmanProjection) -> None:
    eps = np.finfo(np.asarray(answer.point).dtype).eps
    residual, dual_residual = np.max(np.asarray(answer.residual)), np.max(np.asarray(answer.dual_residual))
    steps = int(np.max(np.asarray(answer.steps)))
    if not residual <= np.sqrt(eps):
        raise NotConvergedError(
            f"bregman_affine found no point of the domain of {arguments['entropy']} with A x = b: "
            f"relative residual {residual:.3g} after {steps} steps. Either there is none, or max_steps is too "
            "small, or x0 spans too many orders of magnitude for this precision"
        )
    if not dual_residual <= eps**0.375:
        raise NotConvergedError(
            f"bregman_affine found a point with A x = b, but not the nearest: dual residual {dual_residual:.3g} after "
            f"{steps} steps. Either max_steps is too small, or x0 spans too many orders of magnitude for this precision"
        )


@public_function(
    static=("max_steps",), objects=("entropy",), shapes=_shapes, after=_converged, x0=(FINITE, HAS_GRADIENT), A=FINITE,
    b=FINITE,
)  # fmt: skip
def bregman_affine(entropy, x0, A, b, *, max_steps=200):
    """The minimiser of ``D(x|x0)`` over ``{x : A x = b}``.

    The dual ``min_nu psi*(grad psi(x0) + A^T nu) - <nu, b>`` is convex with Hessian ``A hess psi^-1 A^T``; it is solved
    by Newton's method with backtracking, on orthonormal combinations of the constraints, so that `A` may have any rank.
    At the solution ``x = grad psi*(grad psi(x0) + A^T nu)``. Differentiable in ``x0``, ``A`` and ``b`` by the implicit
    function theorem.

    Parameters
    ----------
    entropy : Entropy
        Of vectors, or of symmetric matrices; then ``A x`` is ``trace(A_k x)``.
    x0 : array (..., p) or (..., d, d)
        The point to project. Coordinates that start on the boundary stay there.
    A : array (m, p) or (m, d, d)
    b : array (..., m)
    max_steps : int
        Newton steps allowed; a few tens suffice even from ``x0`` near the boundary.

    Returns
    -------
    BregmanProjection
        The point, with residuals that certify it. `NotConvergedError` if the set does not meet the domain.

    Examples
    --------
    >>> from cumulant.geometry import Hypentropy
    >>> bregman_affine(Hypentropy(2e-6), [0.0, 0.0, 0.0], [[1.0, -2.0, 0.5]], [1.0]).point.round(9)
    array([ 7.06851000e-04, -4.99639937e-01,  2.65490000e-05])
    """
    n = entropy.event_ndim
    x0 = jnp.asarray(x0)
    A, b = jnp.asarray(A, x0.dtype), jnp.asarray(b, x0.dtype)
    event, batch = x0.shape[x0.ndim - n :], jnp.broadcast_shapes(x0.shape[: x0.ndim - n], b.shape[:-1])
    starts = jnp.broadcast_to(x0, (*batch, *event)).reshape(-1, *event)
    targets = jnp.broadcast_to(b, (*batch, b.shape[-1])).reshape(-1, b.shape[-1])
    if n == 2:
        A = (A + jnp.swapaxes(A, -2, -1)) / 2  # the skew part sees nothing of a symmetric matrix
    answer = jax.vmap(lambda start, target: _project(entropy, start, A, target, max_steps))(starts, targets)
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), answer)


def _project(entropy, x0, A, b, max_steps):
    """One projection."""
    u0 = entropy.gradient(x0)
    whole, A = A.reshape(A.shape[0], -1), jnp.where(jnp.isfinite(u0), A, 0.0)  # what is on the boundary does not move
    flat = A.reshape(A.shape[0], -1)
    rows, change = _orthonormal_rows(flat)

    def point(nu):
        return entropy.conjugate_gradient(u0 + jnp.tensordot(nu, A, 1))

    def equation(nu):
        return flat @ point(nu).reshape(-1) - b

    def solve(_, start):
        w, steps = _newton(entropy, u0, rows, change @ b, max_steps)
        return start + change.T @ w, steps.astype(b.dtype)  # custom_root wants an auxiliary output that has a tangent

    def tangent_solve(linear, y):
        matrix = jax.jacfwd(linear)(jnp.zeros_like(y))
        return jnp.linalg.pinv(matrix, rtol=y.size * jnp.finfo(y.dtype).eps) @ y

    nu, steps = jax.lax.custom_root(equation, jnp.zeros_like(b), solve, tangent_solve, has_aux=True)
    x = point(nu)
    raw, fixed = jax.lax.stop_gradient((x, (entropy, x, change @ b)))
    x = x + (_polish(*fixed, rows) - raw)  # no more than rounding, and without a derivative

    size = jnp.linalg.norm(whole) * jnp.linalg.norm(x.reshape(-1)) + jnp.linalg.norm(b)
    residual = jnp.linalg.norm(whole @ x.reshape(-1) - b) / jnp.where(size > 0, size, 1.0)
    moved = entropy._rise(x, x0).reshape(-1)
    beyond = moved - rows.T @ (rows @ moved)
    dual_residual = jnp.linalg.norm(beyond) / jnp.maximum(jnp.linalg.norm(moved), 1.0)
    return BregmanProjection(x, nu, *jax.lax.stop_gradient((residual, dual_residual, steps.astype(jnp.int32))))


def _orthonormal_rows(flat):
    """``V^T``, and ``S^-1 U^T``, of the singular value decomposition ``A = U S V^T``; zero where ``A`` has no rank."""
    left, values, right = jnp.linalg.svd(jax.lax.stop_gradient(flat), full_matrices=False)
    kept = values > max(flat.shape) * jnp.finfo(flat.dtype).eps * jnp.max(values, initial=0.0)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    return jnp.where(kept[:, None], right, 0.0), inverse[:, None] * left.T


def _hessian(entropy, x, rows):
    """``rows hess psi(x)^-1 rows^T``, with ones for rows that are zero, and ``hess psi(x)^-1 rows^T`` itself."""
    constraints = rows.reshape(-1, *x.shape)
    images = entropy.inverse_hessian_apply(jnp.broadcast_to(x, constraints.shape), constraints).reshape(rows.shape)
    return rows @ images.T + jnp.diag(jnp.where(jnp.any(rows != 0, axis=-1), 0.0, 1.0)), images


def _polish(entropy, x, target, rows):
    """Two Newton steps on the point itself.

    Far from ``x0`` the dual coordinates of ``x`` are small differences of large numbers, and the point they give misses
    the set by their rounding. A step along ``hess psi^-1 A^T`` puts it there; the dual coordinates change by no more.
    """

    def step(_, x):
        miss = rows @ x.reshape(-1) - target
        matrix, images = _hessian(entropy, x, rows)
        new = x - (jnp.linalg.solve(matrix, miss) @ images).reshape(x.shape)
        better = jnp.linalg.norm(rows @ new.reshape(-1) - target) < jnp.linalg.norm(miss)
        return jnp.where(better & entropy.in_domain(new), new, x)

    return jax.lax.fori_loop(0, 2, step, x)


def _newton(entropy, u0, rows, target, max_steps):
    """The minimiser of ``psi*(u0 + rows^T w) - <w, target>`` for orthonormal rows, some of which may be zero."""
    constraints = rows.reshape(-1, *u0.shape)

    def evaluate(w):
        u = u0 + jnp.tensordot(w, constraints, 1)
        x = entropy.conjugate_gradient(u).reshape(-1)
        return entropy.conjugate(u) - w @ target, rows @ x - target, jnp.linalg.norm(x) + jnp.linalg.norm(target)

    def hessian(w):
        return _hessian(entropy, entropy.conjugate_gradient(u0 + jnp.tensordot(w, constraints, 1)), rows)[0]

    return damped_newton(evaluate, hessian, jnp.zeros_like(target), max_steps)
