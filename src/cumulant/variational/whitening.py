"""A start and coordinates for stochastic steps: the mode of a target and the curvature there (Laplace's method)."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant.errors import DomainError
from cumulant.precision import precise
from cumulant.pytrees import pytree
from cumulant.sampling import Target

_DENSE = 300  # coordinates up to which the mode is found by Newton's method
_PROBES = 64  # Hessian-vector products of the estimate of a diagonal
_POWERS = 12  # steps of the power iteration


class Laplace(NamedTuple):
    """The mode of a target, a lower triangular ``L`` with ``L L^T`` about the inverse Hessian there, and whether it is:
    where no mode was found it is another point of the search, the one whose Gaussian has the largest evidence bound.
    """

    mode: np.ndarray
    root: np.ndarray
    exact: bool


def laplace(target: Target, start: Any = None, time_limit: float | None = None) -> Laplace:
    """The mode, from `start` (zero by default), and the curvature there.

    Where the search ends at no mode, as it does where the density has none (a hierarchy whose scale may be zero), every
    point that it passed is tried: with the Hessian there, the one with the largest evidence lower bound is returned
    (in the spirit of Pathfinder, Zhang, Carpenter, Gelman and Vehtari 2022).

    >>> from cumulant import variational as vi
    >>> found = laplace(vi.gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]]))
    >>> found.mode.round(6), (found.root @ found.root.T).round(6)
    (array([ 1., -1.]), array([[1. , 0.3],
           [0.3, 0.5]]))
    """
    path = search(target, start, time_limit)
    x = path[-1]
    root = _root(target, x)
    if root is not None:
        slope = root.T @ np.asarray(target.gradient(x))
        if np.linalg.norm(slope) <= 0.1 * np.sqrt(target.dim):
            return Laplace(x, root, True)
    best = None
    draws = np.random.default_rng(0).normal(size=(100, target.dim))
    for point in path:
        root = _root(target, point)
        if root is None:
            continue
        values = np.asarray(target.log_density(point + draws @ root.T))
        elbo = float(np.mean(values)) + float(np.sum(np.log(np.diagonal(root))))
        if np.isfinite(elbo) and (best is None or elbo > best[0]):
            best = elbo, point, root
    if best is None:
        raise DomainError(
            "no mode was found, nor a point on the way where the log-density is concave: is it proper? "
            "Give another start, or transform variables that are bounded"
        )
    return Laplace(best[1], best[2], False)


def search(target: Target, start: Any = None, time_limit: float | None = None) -> list[np.ndarray]:
    """The points of a search for the mode: by Newton's method, for many coordinates by L-BFGS."""
    start = np.zeros(target.dim) if start is None else np.asarray(start, dtype=np.float64)
    if start.shape != (target.dim,):
        raise ValueError(f"start must have shape ({target.dim},); got {start.shape}")
    value, gradient = float(target.log_density(start)), np.asarray(target.gradient(start))
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        raise DomainError(
            f"the log-density at the start is {value}, its gradient {'finite' if np.isfinite(value) else 'unknown'}: "
            "give a start where both are finite"
        )
    path = [start]

    def follow(snapshot) -> bool:
        x = np.asarray(snapshot.x)
        still = np.linalg.norm(x - path[-1]) <= 1e-6 * (1 + np.linalg.norm(x))
        path.append(x)
        return bool(still and snapshot.step > 0)

    small = target.dim <= _DENSE
    optim.run(
        optim.Newton() if small else optim.LBFGS(),
        target.problem(),
        start,
        tol=1e-10,
        max_steps=30 if small else 300,
        every=1 if small else 10,
        callback=follow,
        time_limit=time_limit,
    )
    return [x for x in path if np.all(np.isfinite(x))]


def _root(target: Target, x: np.ndarray) -> np.ndarray | None:
    """``L L^T`` the inverse of the Hessian of ``-log p``; None where that is not positive definite."""
    H = np.asarray(_hessian(target, x))
    if not np.all(np.isfinite(H)):
        return None
    try:
        # From H = U U^T with U upper triangular: L = U^-T is lower triangular.
        U = np.linalg.cholesky(((H + H.T) / 2)[::-1, ::-1])[::-1, ::-1]
    except np.linalg.LinAlgError:
        return None
    diagonal = np.diagonal(U)
    if not diagonal.min() > 1e-12 * diagonal.max():
        return None
    return np.linalg.inv(U).T


@precise
def _hessian(target, x):
    return -jax.hessian(target.at)(x)


def scales_at(target: Target, x: np.ndarray, rng: Any) -> np.ndarray:
    """``1 / sqrt(H_ii)``, ``H`` the Hessian of ``-log p``: its diagonal by Hessian-vector products at random signs.

    The estimate of Hutchinson (1990) and Bekas, Kokiopoulou and Saad (2007); entries that are not positive are taken
    from the median.
    """
    signs = rng.choice([-1.0, 1.0], size=(min(_PROBES, 4 * target.dim), target.dim))
    diagonal = np.asarray(_diagonal(target, x, signs))
    positive = np.isfinite(diagonal) & (diagonal > 0)
    if not np.any(positive):
        raise DomainError("the log-density is concave in no coordinate at its mode: is it proper?")
    typical = float(np.median(diagonal[positive]))
    return 1 / np.sqrt(np.where(positive, np.maximum(diagonal, 1e-3 * typical), typical))


@precise
def _diagonal(target, x, signs):
    def add(total, v):
        return total - v * jax.jvp(jax.grad(target.at), (x,), (v,))[1], None

    total, _ = jax.lax.scan(add, jnp.zeros_like(x), signs)
    return total / signs.shape[0]


def estimated_smoothness(target: Target, points: np.ndarray, rng: Any) -> float:
    """The largest curvature of ``-log p`` at some points, by power iteration on Hessian-vector products.

    From below, and at these points only: an assumption about the target, never a bound.

    >>> from cumulant import variational as vi
    >>> target = vi.gaussian([0.0, 0.0], [[1.0, 0.0], [0.0, 0.25]])
    >>> round(estimated_smoothness(target, np.zeros((1, 2)), np.random.default_rng(0)), 3)
    4.0
    """
    values = np.asarray(_largest(target, points, rng.normal(size=points.shape)))
    return float(np.max(values, where=np.isfinite(values), initial=0.0))


@precise
def _largest(target, points, directions):
    def one(x, v):
        def step(v, _):
            Hv = jax.jvp(jax.grad(target.at), (x,), (v / jnp.linalg.norm(v),))[1]
            return Hv, jnp.linalg.norm(Hv)

        return jax.lax.scan(step, v, None, length=_POWERS)[1][-1]

    return jax.lax.map(lambda pair: one(*pair), (points, directions))


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Whitened(Target):
    """A target in coordinates ``v`` with ``z = origin + root v``. Made by `whitened`."""

    @property
    def n_rows(self) -> int:
        """The number of rows of the target."""
        return self.data[0].n_rows

    def at_rows(self, v: Any, rows: Any) -> Any:
        """That of the target."""
        target, origin, root = self.data
        return target.at_rows(_placed(v, origin, root), rows)


def whitened(target: Target, origin: Any, root: Any) -> Target:
    """The target in coordinates ``v`` with ``z = origin + root v``; `root` is a matrix, a vector or a number.

    Its constants are those of the target times the square of the largest or smallest singular value of `root`.

    >>> from cumulant import variational as vi
    >>> target = whitened(vi.gaussian([1.0], [[4.0]]), np.array([1.0]), np.array([[2.0]]))
    >>> round(float(target.gradient([3.0])[0]), 9), round(target.smoothness, 9)
    (-3.0, 1.0)
    """
    origin, root = np.asarray(origin, dtype=np.float64), np.asarray(root, dtype=np.float64)
    known = target.smoothness is not None or target.strong_convexity > 0
    values = np.linalg.svd(root, compute_uv=False) if root.ndim == 2 and known else np.abs(np.atleast_1d(root))
    kind = Whitened if hasattr(target, "at_rows") else Target
    return kind(
        _in_new_coordinates,
        target.dim,
        (target, origin, root),
        None if target.smoothness is None else float(target.smoothness * np.max(values) ** 2),
        float(target.strong_convexity * np.min(values) ** 2),
    )


def _in_new_coordinates(v, data):
    target, origin, root = data
    return target.at(_placed(v, origin, root))


def _placed(v, origin, root):
    return jnp.asarray(origin) + (root @ v if jnp.ndim(root) == 2 else root * v)
