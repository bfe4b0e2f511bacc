"""A start and coordinates for stochastic steps: the mode of a target and the curvature there (Laplace's method)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant.errors import DomainError
from cumulant.precision import precise
from cumulant.sampling import Target


class Laplace(NamedTuple):
    """The mode of a target, a lower triangular ``L`` with ``L L^T`` about the inverse Hessian there, and whether it is:
    where the Hessian is not positive definite its eigenvalues are replaced.
    """

    mode: np.ndarray
    root: np.ndarray
    exact: bool


def laplace(target: Target, start: Any = None, time_limit: float | None = None) -> Laplace:
    """The mode, by L-BFGS from `start` (zero by default), and the curvature there.

    >>> from cumulant import variational as vi
    >>> found = laplace(vi.gaussian([1.0, -1.0], [[1.0, 0.3], [0.3, 0.5]]))
    >>> found.mode.round(6), (found.root @ found.root.T).round(6)
    (array([ 1., -1.]), array([[1. , 0.3],
           [0.3, 0.5]]))
    """
    start = np.zeros(target.dim) if start is None else np.asarray(start, dtype=np.float64)
    if start.shape != (target.dim,):
        raise ValueError(f"start must have shape ({target.dim},); got {start.shape}")
    value, gradient = float(target.log_density(start)), np.asarray(target.gradient(start))
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        raise DomainError(
            f"the log-density at the start is {value}, its gradient {'finite' if np.isfinite(value) else 'unknown'}: "
            "give a start where both are finite"
        )
    found = optim.run(optim.LBFGS(), target.problem(), start, tol=1e-10, max_steps=10, time_limit=time_limit)
    steepness = np.linalg.norm(np.asarray(target.gradient(found.x)))
    if not (np.all(np.isfinite(found.x)) and steepness <= 0.5 * np.linalg.norm(gradient) + 1e-8):
        raise DomainError(
            "no mode was found: the log-density is still rising as steeply as at the start; is it proper?"
        )
    H = np.asarray(_hessian(target, found.x))
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    if not np.all(np.isfinite(values)):
        raise DomainError("the second derivatives of the log-density at its mode are not finite")
    floor = 1e-8 * max(float(np.max(np.abs(values))), 1e-300)
    fixed = np.maximum(np.abs(values), floor)
    # L L^T = V diag(1 / values) V^T with L lower triangular, by an orthogonal factorisation.
    L = np.linalg.qr((vectors / np.sqrt(fixed)).T)[1].T
    return Laplace(np.asarray(found.x), L * np.sign(np.diagonal(L)), bool(np.all(values > floor)))


@precise
def _hessian(target, x):
    return -jax.hessian(target.at)(x)


def whitened(target: Target, origin: Any, root: Any) -> Target:
    """The target in coordinates ``v`` with ``z = origin + root v``; its constants there are not known.

    >>> from cumulant import variational as vi
    >>> round(float(whitened(vi.gaussian([1.0], [[4.0]]), np.array([1.0]), np.array([[2.0]])).gradient([3.0])[0]), 9)
    -3.0
    """
    origin, root = np.asarray(origin, dtype=np.float64), np.asarray(root, dtype=np.float64)
    return Target(_in_new_coordinates, target.dim, (target, origin, root))


def _in_new_coordinates(v, data):
    target, origin, root = data
    return target.at(jnp.asarray(origin) + root @ v)
