"""Unknowns in a pytree: solvers see one vector, the problem sees the tree."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import problem_type, static
from cumulant.optim.protocol import DerivedProblem


def is_tree(x: Any) -> bool:
    """Whether ``x`` is a structure of arrays: neither an array nor a list of numbers, nor a plain tuple of them.

    >>> is_tree([1.0, 2.0]), is_tree((1.0, 2.0)), is_tree({"w": [1.0]}), is_tree((np.ones(2), 1.0))
    (False, False, True, True)
    """
    if isinstance(x, list) or (type(x) is tuple and all(np.ndim(item) == 0 for item in x)):
        return False
    return not jax.tree_util.all_leaves([x])


@problem_type
class Flattened(DerivedProblem):
    """``f(tree(x))`` as a function of one vector."""

    problem: Any
    structure: Any = static()
    shapes: tuple[tuple[int, ...], ...] = static()

    def tree(self, x: Any) -> Any:
        """The tree whose leaves, one after the other, are the entries of ``x``."""
        sizes = [math.prod(shape) for shape in self.shapes]
        ends = np.cumsum(sizes)
        leaves = [x[end - size : end].reshape(shape) for size, end, shape in zip(sizes, ends, self.shapes, strict=True)]
        return jax.tree.unflatten(self.structure, leaves)

    def value(self, x):
        """``f(tree(x))``."""
        return self.problem.value(self.tree(x))

    def value_and_gradient(self, x):
        """``f(tree(x))`` and its gradient, as a vector."""
        value, gradient = self.problem.value_and_gradient(self.tree(x))
        return value, _vector(gradient)

    def hessian_apply(self, x, v):
        """``hess f v``, as a vector."""
        return _vector(self.problem.hessian_apply(self.tree(x), self.tree(v)))


def flatten(problem: Any, x0: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """The problem of one vector, the vector ``x0``, and what turns an answer back; an array is left as it is."""
    if not is_tree(x0):
        return problem, x0, lambda x: x
    x0 = jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else np.asarray(leaf), x0)
    leaves, structure = jax.tree.flatten(x0)
    flat = Flattened(problem, structure, tuple(np.shape(leaf) for leaf in leaves))
    return flat, _vector(x0), flat.tree


def _vector(tree: Any) -> Any:
    leaves = jax.tree.leaves(tree)
    numpy = jnp if any(isinstance(leaf, jax.Array) for leaf in leaves) else np
    return numpy.concatenate([numpy.reshape(leaf, (-1,)) for leaf in leaves]) if leaves else np.zeros(0)
