"""Objectives that live in more (or fewer) variables than the loss they are made of, so that constraints are smooth.

``|w|_1`` is not differentiable; with twice the variables it is linear under smooth constraints. *Split*: ``w =
w+ - w-`` with both parts non-negative (Carbonetto 2009, equation 2.61). *Bound*: ``-u <= w <= u`` (2.64). The simplex
loses its last coordinate and becomes a set with an interior.

A lifted objective has `coefficients` (the variables of the loss), `lift_gradient` and `lift_curvature` (from those of
the loss), and a strictly feasible `start`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import is_concrete, not_negative, problem_type
from cumulant.optim.protocol import Problem
from cumulant.optim.solvers.newton import _hessian


class Lifted(Problem):
    """What the objectives of this file derive from the loss."""

    loss: Any

    @property
    def _loss_size(self) -> int | None:
        shape = self.loss.shape
        return None if shape is None else int(np.prod(shape))

    def coefficients(self, x: Any) -> Any:
        """The variables of the loss."""
        raise NotImplementedError

    def penalty(self, x: Any) -> Any:
        """The linear term that is added to the loss."""
        return jnp.zeros((), x.dtype)

    def lift_gradient(self, gradient: Any) -> Any:
        """The gradient in ``x``, from the one of the loss."""
        raise NotImplementedError

    def lift_curvature(self, curvature: Any, size: int) -> Any:
        """The curvature in ``x``, from that of the loss in its `size` variables: a number, a diagonal or a matrix."""
        raise NotImplementedError

    def value(self, x: Any) -> Any:
        """``f(x)``."""
        return self.loss.value(self.coefficients(x)) + self.penalty(x)

    def gradient(self, x: Any) -> Any:
        """``grad f(x)``."""
        return self.lift_gradient(self.loss.gradient(self.coefficients(x)))

    def hessian(self, x: Any) -> Any:
        """``hess f(x)``, from the Hessian of the loss."""
        w = self.coefficients(x)
        return self.lift_curvature(_hessian(self.loss, w), w.size)


@problem_type
class Plain(Lifted):
    """The loss itself, in its own variables."""

    loss: Any

    @property
    def shape(self) -> Any:
        """The shape of ``x``."""
        return self.loss.shape

    def coefficients(self, x):
        """``x``."""
        return x

    def lift_gradient(self, gradient):
        """The gradient as it is."""
        return gradient

    def lift_curvature(self, curvature, size):
        """The curvature as it is."""
        return curvature


class LiftedL1(Lifted):
    """A loss and ``weight |w|_1``, in twice as many variables as the loss has."""

    weight: Any

    def __post_init__(self):
        if is_concrete(self.weight):
            for each in np.ravel(np.asarray(self.weight)):
                not_negative(each, "weight")

    @property
    def shape(self) -> Any:
        """Twice as many as the loss has."""
        return None if self._loss_size is None else (2 * self._loss_size,)


@problem_type
class SplitL1(LiftedL1):
    """``loss(w+ - w-) + weight sum(w+ + w-)`` for ``x = (w+, w-) >= 0``.

    The gradient is ``(g, -g) + weight``. A matrix ``H`` for the loss becomes ``[[H, -H], [-H, H]]``, singular; a number
    or a diagonal stands for the same curvature in both halves, as in the on-line rule (2.62, 2.63).
    """

    loss: Any
    weight: Any

    def start(self, p: int, scale: float = 1.0) -> np.ndarray:
        """``w+ = w- = scale``, so that ``w = 0``."""
        return np.full(2 * p, float(scale))

    def coefficients(self, x):
        """``w+ - w-``."""
        plus, minus = jnp.split(x, 2, axis=-1)
        return plus - minus

    def penalty(self, x):
        """``weight sum x``."""
        return jnp.sum(self.weight * sum(jnp.split(x, 2, axis=-1)))

    def lift_gradient(self, gradient):
        """``(g + weight, weight - g)``."""
        return jnp.concatenate([gradient + self.weight, self.weight - gradient])

    def lift_curvature(self, curvature, size):
        """``(h, h)``; a matrix becomes ``[[H, -H], [-H, H]]``."""
        if jnp.ndim(curvature) == 2:
            return jnp.block([[curvature, -curvature], [-curvature, curvature]])
        return jnp.concatenate([curvature, curvature]) if jnp.ndim(curvature) == 1 else curvature


@problem_type
class BoundL1(LiftedL1):
    """``loss(w) + weight sum u`` for ``x = (w, u)`` with ``-u <= w <= u``. The curvature of ``u`` is zero."""

    loss: Any
    weight: Any

    def start(self, p: int, scale: float = 1.0) -> np.ndarray:
        """``w = 0``, ``u = scale``."""
        return np.concatenate([np.zeros(p), np.full(p, float(scale))])

    def coefficients(self, x):
        """``w``."""
        return jnp.split(x, 2, axis=-1)[0]

    def penalty(self, x):
        """``weight sum u``."""
        return jnp.sum(self.weight * jnp.split(x, 2, axis=-1)[1])

    def lift_gradient(self, gradient):
        """``(g, weight)``."""
        return jnp.concatenate([gradient, jnp.broadcast_to(jnp.asarray(self.weight, gradient.dtype), gradient.shape)])

    def lift_curvature(self, curvature, size):
        """``(h, 0)``; a matrix stays as it is and is read as the block of ``w``."""
        if jnp.ndim(curvature) == 2:
            return curvature
        whole = jnp.broadcast_to(curvature, (size,))
        return jnp.concatenate([whole, jnp.zeros_like(whole)])


@problem_type
class OnSimplex(Lifted):
    """``loss(x, total - sum x)``: a loss of points of the simplex, as a function of all coordinates but the last."""

    loss: Any
    total: Any = 1.0

    @property
    def shape(self) -> Any:
        """One less than the loss has."""
        return None if self._loss_size is None else (self._loss_size - 1,)

    def start(self, p: int, scale: float = 1.0) -> np.ndarray:
        """The centre of the simplex; `scale` does nothing."""
        return np.full(p - 1, float(self.total) / p)

    def coefficients(self, x):
        """``(x, total - sum x)``."""
        return jnp.append(x, self.total - jnp.sum(x))

    def lift_gradient(self, gradient):
        """``g_j - g_last``."""
        return gradient[:-1] - gradient[-1]

    def lift_curvature(self, curvature, size):
        """``E^T H E`` with ``E`` the derivative of `coefficients`; a number stays a number, as a stand-in."""
        if jnp.ndim(curvature) == 0:
            return curvature
        if jnp.ndim(curvature) == 1:
            return jnp.diag(curvature[:-1]) + curvature[-1]
        H = curvature
        return H[:-1, :-1] - H[:-1, -1:] - H[-1:, :-1] + H[-1, -1]
