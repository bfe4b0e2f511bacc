"""Chains of layers of different sizes: evaluation, back-propagation, and the Jacobian in the cheapest order."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.layers.cost import best_splits
from cumulant.optim.problems.trees import as_floats
from cumulant.precision import precise


def feed_forward(functions: Sequence[Callable[[Any, Any], Any]], thetas: Sequence[Any], x0: Any) -> Any:
    """``x_t`` of ``x_k = f_k(x_{k-1}, theta_k)``, ``k = 1, ..., t``: layers of any sizes, each with its parameters.

    >>> import numpy as np
    >>> def layer(x, theta):
    ...     return jnp.tanh(theta @ x)
    >>> feed_forward([layer, layer], [np.eye(3)[:2], np.ones((1, 2))], np.array([0.5, 0.5, 9.0])).round(4)
    array([0.7279])
    """
    _lengths(functions, thetas)
    return _forward(x0, tuple(thetas), tuple(functions))


def backpropagation(
    functions: Sequence[Callable[[Any, Any], Any]], thetas: Sequence[Any], x0: Any, loss: Callable[[Any], Any]
) -> tuple[Any, list[Any], Any]:
    """``L(x_t)``, its gradients in all ``theta_k`` and that in ``x_0``, by one pass back through the chain.

    ``z_t = grad L(x_t)``; for ``k = t, ..., 1``: ``grad_{theta_k} = [d_theta f_k]^T z_k`` and ``z_{k-1} = [d_x f_k]^T
    z_k`` (Peyré 2021, equation 59, whose range of ``k`` is printed as ``t-1, ..., 0``). Only products of vectors and
    Jacobians are formed. For ``f_k = rho(theta x)``: ``m = rho'(theta x) o z_k``, ``grad_theta = m x^T``, ``z_{k-1} =
    theta^T m``. It is what `jax.grad` computes, written out.

    >>> def layer(x, theta):
    ...     return theta * x
    >>> value, gradients, _ = backpropagation([layer, layer], [2.0, 3.0], 5.0, lambda x: x)
    >>> print(value, *gradients)                                            # 2 * 3 * 5, 3 * 5, 2 * 5
    30.0 15.0 10.0
    """
    _lengths(functions, thetas)
    value, gradients, pulled = _backward(x0, tuple(thetas), tuple(functions), loss)
    return value, list(gradients), pulled


def chain_jacobian(functions: Sequence[Callable[[Any], Any]], x: Any, order: str = "optimal") -> Any:
    """The Jacobian of a chain of layers ``f_t(...f_1(x))`` at a vector, as the product of the Jacobians of the layers.

    Every order gives the same matrix; they differ in multiplications, which `chain_cost` counts: ``"forward"`` starts
    at the input, ``"backward"`` at the output, ``"optimal"`` takes the cheapest of all (Godbole 1973; Griewank and
    Naumann 2003, Jacobian chaining on a chain).

    >>> import numpy as np
    >>> halve = lambda x: x[::2] ** 2
    >>> chain_jacobian([jnp.tanh, halve, jnp.sum], np.zeros(4) + 0.5).round(4)
    array([0.7269, 0.    , 0.7269, 0.    ])
    """
    checks.choice("order", order, ("forward", "backward", "optimal"))
    if not functions:
        raise ValueError("functions must hold at least one layer")
    return _jacobian(x, tuple(functions), order)


def multiply_chain(matrices: Sequence[Any], order: str = "optimal") -> Any:
    """The product of ``matrices = [M_1, ..., M_t]``, the last one leftmost, in one of the orders of `chain_jacobian`.

    >>> import numpy as np
    >>> print(multiply_chain([np.ones((2, 3)), np.ones((1, 2))]))
    [[2. 2. 2.]]
    """
    if not hasattr(matrices, "__len__") or not len(matrices) or any(np.ndim(each) != 2 for each in matrices):
        raise ValueError("matrices must be a list of at least one matrix")
    matrices = [each if hasattr(each, "shape") else np.asarray(each) for each in matrices]
    dims = [matrices[0].shape[1], *(matrix.shape[0] for matrix in matrices)]
    if any(matrix.shape != (m, n) for matrix, (n, m) in zip(matrices, itertools.pairwise(dims), strict=True)):
        raise ValueError(f"matrices must fit: got shapes {', '.join(str(matrix.shape) for matrix in matrices)}")
    checks.choice("order", order, ("forward", "backward", "optimal"))
    splits = best_splits(dims) if order == "optimal" else None

    def product(i, j):
        """``M_{j+1} ... M_{i+1}``, counted from zero."""
        if i == j:
            return matrices[i]
        k = j - 1 if order == "forward" else i if splits is None else int(splits[i, j])
        return product(k + 1, j) @ product(i, k)

    return product(0, len(matrices) - 1)


def _lengths(functions, thetas):
    for name, each in (("functions", functions), ("thetas", thetas)):
        if not hasattr(each, "__len__"):
            raise TypeError(f"{name} must be a list; got {each!r:.60}")
    for function in functions:
        checks.takes("each of functions", function, "x, theta")
    if len(functions) != len(thetas) or not functions:
        raise ValueError(f"thetas must hold one entry for each of functions; got {len(thetas)} for {len(functions)}")


@precise(static=("functions",))
def _forward(x0, thetas, functions):
    x = as_floats(x0)
    for function, theta in zip(functions, as_floats(thetas), strict=True):
        x = function(x, theta)
    return x


@precise(static=("functions", "loss"))
def _backward(x0, thetas, functions, loss):
    x, pulls = as_floats(x0), []
    for function, theta in zip(functions, as_floats(thetas), strict=True):
        x, pull = jax.vjp(function, x, theta)
        pulls.append(pull)
    value, z = jax.value_and_grad(loss)(x)
    gradients = []
    for pull in reversed(pulls):
        z, gradient = pull(z)
        gradients.append(gradient)
    return value, tuple(reversed(gradients)), z


@precise(static=("functions", "order"))
def _jacobian(x, functions, order):
    x, matrices = jnp.asarray(x, jnp.result_type(x, float)), []
    if x.ndim != 1:
        raise ValueError(f"x must be a vector; got shape {x.shape}")
    shape: tuple[int, ...] = ()
    for function in functions:
        flat, was = jnp.ravel(x), x.shape

        def layer(flat, function=function, was=was):
            return jnp.ravel(function(flat.reshape(was)))

        inputs, outputs = flat.size, jax.eval_shape(layer, flat).size
        matrices.append((jax.jacfwd if inputs <= outputs else jax.jacrev)(layer)(flat))
        x = function(x)
        shape = x.shape
    return multiply_chain(matrices, order).reshape(*shape, -1)
