"""A network with one hidden layer as a problem of `cumulant.optim`: closed-form gradients, variable projection."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.layers.activations import activation
from cumulant.optim.problems.base import array, is_concrete, problem_type, static
from cumulant.optim.protocol import Problem
from cumulant.precision import precise
from cumulant.randomness import generator


class _Network(Problem):
    """What the two problems share: they are smooth, nothing is known of their constants, and one pass gives the value
    and the gradient in closed form.
    """

    @precise
    def value(self, x):
        """The loss."""
        return self.value_and_gradient(x)[0]


@problem_type
class OneHiddenLayer(_Network):
    """``f(W, u) = |rho(A W^T) u - y|^2 / (2 n)``: a regression by ``q`` neurons ``a -> <u, rho(W a)>``.

    The unknown is one matrix ``x = [W, u]`` of shape ``(q, p + 1)``. With ``Phi = rho(A W^T)`` and ``e = Phi u - y``,

        ``grad_u = Phi^T e``,      ``grad_W = [rho'(W A^T) o (u e^T)] A``      (over ``n``; Peyré 2021, section 9.2).

    It is not convex, and no certificate is issued for it. Append a column of ones to ``A`` for biases.

    Parameters
    ----------
    A, y : arrays of shape (n, p) and (n,)
    activation : str
        ``"sigmoid"``, ``"atan"``, ``"tanh"`` or ``"relu"``.
    reduction : str
        ``"mean"`` as above, or ``"sum"`` without the ``1 / n``.

    Examples
    --------
    >>> layer = OneHiddenLayer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 1.0, -1.0], reduction="sum")
    >>> x = np.array([[0.5, -0.5, 1.0], [1.0, 2.0, -1.0]])
    >>> print(layer.value(x).round(9), layer.gradient(x)[:, 2].round(8))
    1.285624357 [-0.36142611 -0.88199254]
    """

    A: Any
    y: Any
    activation: str = static("sigmoid")
    reduction: str = static("mean")

    def __post_init__(self):
        activation(self.activation)
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be 'mean' or 'sum'; got {self.reduction!r}")
        if not is_concrete(self.A, self.y):
            return
        A, y = array(self.A, "A", 2), array(self.y, "y", 1)
        if A.shape[0] != y.size or 0 in A.shape:
            raise ValueError(f"A must have one row for each entry of y; got shapes {A.shape} and {y.shape}")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "y", y)

    @property
    def weight(self) -> float:
        """What multiplies the sum of the losses: ``1 / n`` or 1."""
        return 1.0 / self.A.shape[0] if self.reduction == "mean" else 1.0

    @precise
    def value_and_gradient(self, x):
        """``f`` and its gradient at ``x = [W, u]``, in one pass."""
        value, of_W, of_u = _loss(self, x[:, :-1], x[:, -1])
        return value, jnp.concatenate([of_W, of_u[:, None]], axis=1)

    @precise
    def predict(self, x, A):
        """``rho(A W^T) u`` at other inputs."""
        return activation(self.activation).value(A @ x[:, :-1].T) @ x[:, -1]

    @precise
    def outer(self, W):
        """The ``u`` that is best for these inner weights: least squares, of least norm where it is not unique."""
        return jnp.linalg.lstsq(activation(self.activation).value(self.A @ W.T), self.y)[0]

    def start(self, units: int, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """Random rows of norm `scale` for ``W``, and ``u = 0``: identical rows would stay identical for ever.

        The gradient in ``W`` is then zero at the very first step, by design.
        """
        checks.whole("units", units)
        W = generator(rng).normal(size=(units, self.A.shape[1]))
        W *= scale / np.linalg.norm(W, axis=1, keepdims=True)
        return np.concatenate([W, np.zeros((units, 1))], axis=1)

    def projected(self) -> "VariableProjection":
        """The problem in ``W`` alone."""
        return VariableProjection(self)

    def gradient_rounding(self, x) -> float:
        """An allowance for the rounding of the gradient in float64."""
        return 2.0**-46 * float(np.linalg.norm(self.gradient(x)) + np.linalg.norm(x))


def _loss(layer, W, u):
    rho = activation(layer.activation)
    inside = layer.A @ W.T
    features = rho.value(inside)
    error = features @ u - layer.y
    of_W = ((rho.slope(inside) * error[:, None]) * u[None, :]).T @ layer.A
    return layer.weight * jnp.dot(error, error) / 2, layer.weight * of_W, layer.weight * (features.T @ error)


@problem_type
class VariableProjection(_Network):
    """``W -> min_u f(W, u)``: the outer weights of a `OneHiddenLayer` are solved for (Golub and Pereyra 1973).

    Its gradient is ``grad_W f(W, u*(W))``: by the envelope theorem the change of ``u*`` does not count.

    Examples
    --------
    >>> layer = OneHiddenLayer([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.0, 1.0, -1.0], reduction="sum")
    >>> W = np.array([[0.5, -0.5], [1.0, 2.0]])
    >>> layer.outer(W).round(8)
    array([-1.36637052,  0.7463533 ])
    >>> bool(layer.projected().value(W) <= layer.value(np.column_stack([W, [1.0, -1.0]])))
    True
    """

    layer: OneHiddenLayer

    @precise
    def value_and_gradient(self, x):
        """The loss at the best outer weights and its gradient in ``W``."""
        value, of_W, _ = _loss(self.layer, x, self.layer.outer(x))
        return value, of_W

    def full(self, W: Any) -> np.ndarray:
        """``[W, u*(W)]``, a point of the problem with both."""
        return np.column_stack([np.asarray(W), np.asarray(self.layer.outer(W))])
