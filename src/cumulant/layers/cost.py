"""What a JAX program costs: operations counted on its jaxpr, and the formulas they are compared with."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from cumulant import checks
from cumulant.errors import CumulantError

# Moving data about is not arithmetic.
_FREE = {
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "dynamic_slice",
    "dynamic_update_slice", "expand_dims", "gather", "iota", "pad", "reshape", "rev", "select_and_gather_add", "slice",
    "squeeze", "stop_gradient", "transpose",
}  # fmt: skip


class Operations(NamedTuple):
    """Multiplications of matrix products (each with its addition), operations entry by entry, and nodes of the graph.

    A call to ``exp`` counts as one operation, a sum as many as it has terms.

    >>> Operations(products=12, elementwise=6, nodes=3).total
    30
    """

    products: int
    elementwise: int
    nodes: int

    @property
    def total(self) -> int:
        """A product and its addition as two operations, plus the others."""
        return 2 * self.products + self.elementwise

    def __add__(self, other: Any) -> "Operations":
        return Operations(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, count: int) -> "Operations":
        """`count` times the operations; the graph has the nodes once."""
        return Operations(self.products * count, self.elementwise * count, self.nodes)


class DerivativeCost(NamedTuple):
    """Operations of a function, and of it together with one derivative: forward (`jvp`) and backward (`vjp`).

    Griewank and Walther (2008, chapter 4).

    >>> cost = derivative_cost(lambda x: x * x, jnp.ones(3))
    >>> cost.value.total
    3
    """

    value: Operations
    jvp: Operations
    vjp: Operations


def operations(function: Callable, *arguments: Any) -> Operations:
    """Count the arithmetic of ``function(*arguments)`` on its jaxpr, without running it; dead code does not count.

    Loops of fixed length count as often as they run; a `while` loop has no count, and is refused.

    The count of Griewank and Walther (2008, section 4.1).

    >>> operations(lambda x: jnp.sum(jnp.tanh(jnp.ones((3, 4)) @ x)), jnp.ones(4))
    Operations(products=12, elementwise=6, nodes=3)
    """
    return _count(jax.make_jaxpr(function)(*arguments).jaxpr)


def derivative_cost(function: Callable, *arguments: Any) -> DerivativeCost:
    """The cost of a function and of its derivatives in one direction, forward (`jax.jvp`) and backward (`jax.vjp`).

    The backward one, for a scalar function, is the whole gradient, at no more than about four times the cost
    of the function whatever the number of inputs (Griewank and Walther 2008, section 3.3); a gradient by forward mode
    takes one `jvp` for each input.

    >>> cost = derivative_cost(lambda x: jnp.sum(jnp.sin(x) * x), jnp.ones(100))
    >>> cost.vjp.total <= 4 * cost.value.total
    True
    """

    def forward(inputs, tangents):
        return jax.jvp(function, inputs, tangents)

    def backward(inputs, cotangents):
        value, pull = jax.vjp(function, *inputs)
        return value, pull(cotangents)

    ones = jax.tree.map(jnp.ones_like, arguments)
    out = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), jax.eval_shape(function, *arguments))
    return DerivativeCost(
        operations(function, *arguments), operations(forward, arguments, ones), operations(backward, arguments, out)
    )


def chain_cost(dims: Sequence[int], order: str = "optimal") -> int:
    """Multiplications to form the Jacobian of a chain of maps between dimensions ``n_0`` to ``n_t``.

    ``"forward"``, from the input: ``n_0 sum_{k=1}^{t-1} n_k n_{k+1}``. ``"backward"``, from the output:
    ``n_t sum_{k=0}^{t-2} n_k n_{k+1}`` (Peyré 2021, section 10.5). ``"optimal"``: the best order of all, by dynamic
    programming (Godbole 1973).

    >>> [chain_cost((784, 100, 100, 10, 1), order) for order in ("forward", "backward", "optimal")]
    [8631840, 89400, 89400]
    """
    checks.choice("order", order, ("forward", "backward", "optimal"))
    if not hasattr(dims, "__len__") or len(dims) < 2:
        raise ValueError(f"dims must hold at least two positive sizes; got {dims!r:.60}")
    n = [checks.whole("each of dims", d) for d in dims]
    t = len(n) - 1
    if order == "forward":
        return n[0] * sum(n[k] * n[k + 1] for k in range(1, t))
    if order == "backward":
        return n[t] * sum(n[k] * n[k + 1] for k in range(t - 1))
    splits = best_splits(n)

    def total(i, j):
        return 0 if i == j else total(i, k := splits[i, j]) + total(k + 1, j) + n[i] * n[k + 1] * n[j + 1]

    return int(total(0, t - 1))


def best_splits(dims: Sequence[int]) -> np.ndarray:
    """For factors ``i..j`` of a chain, the ``k`` with the cheapest product of (``k+1..j``) and (``i..k``).

    By dynamic programming over all products of neighbours (Godbole 1973).

    >>> int(best_splits((100, 5, 200, 5, 100))[0, 3])                     # the last three first, then the first
    0
    """
    n, t = [int(d) for d in dims], len(dims) - 1
    best, splits = np.zeros((t, t), dtype=object), np.zeros((t, t), dtype=int)
    for length in range(1, t):
        for i in range(t - length):
            j = i + length
            costs = [best[i, k] + best[k + 1, j] + n[i] * n[k + 1] * n[j + 1] for k in range(i, j)]
            splits[i, j] = i + int(np.argmin(costs))
            best[i, j] = min(costs)
    return splits


def _count(jaxpr) -> Operations:
    total = Operations(0, 0, 0)
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    for equation in reversed(jaxpr.eqns):
        if not any(v in needed for v in equation.outvars):
            continue
        needed |= {v for v in equation.invars if not isinstance(v, Literal)}
        total += _of_equation(equation)
    return total


def _of_equation(equation) -> Operations:
    name, parameters = equation.primitive.name, equation.params
    if name == "while":
        raise CumulantError("the number of operations of a while loop is not known: count its body instead")
    if name == "scan":
        return _count(parameters["jaxpr"].jaxpr).times(parameters["length"])
    if name == "cond":
        return max((_count(branch.jaxpr) for branch in parameters["branches"]), key=lambda count: count.total)
    inner = [parameters[key] for key in ("jaxpr", "call_jaxpr", "fun_jaxpr") if key in parameters]
    if inner:
        return _count(getattr(inner[0], "jaxpr", inner[0]))
    if name in _FREE:
        return Operations(0, 0, 0)
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        length = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        return Operations(math.prod(equation.outvars[0].aval.shape) * length, 0, 1)
    reduces = name.startswith(("reduce_", "arg", "cum"))
    size = max(math.prod(v.aval.shape) for v in (equation.invars if reduces else equation.outvars))
    return Operations(0, size, 1)
