"""Unknowns in a pytree: solvers see one vector, the problem sees the tree."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cumulant import checks
from cumulant.optim.problems.base import problem_type, static
from cumulant.optim.problems.composite import Composite
from cumulant.optim.problems.proximal_map import for_vector
from cumulant.optim.problems.trees import is_tree, unflatten, vector
from cumulant.optim.protocol import DerivedProblem


@problem_type
class Flattened(DerivedProblem):
    """``f(tree(x))`` as a function of one vector."""

    problem: Any
    structure: Any = static()
    shapes: tuple[tuple[int, ...], ...] = static()

    def tree(self, x: Any) -> Any:
        """The tree whose leaves, one after the other, are the entries of ``x``."""
        return unflatten(self.structure, self.shapes, x)

    def value(self, x):
        """``f(tree(x))``."""
        return self.problem.value(self.tree(x))

    def value_and_gradient(self, x):
        """``f(tree(x))`` and its gradient, as a vector."""
        value, gradient = self.problem.value_and_gradient(self.tree(x))
        return value, vector(gradient)

    def hessian_apply(self, x, v):
        """``hess f v``, as a vector."""
        return vector(self.problem.hessian_apply(self.tree(x), self.tree(v)))


def flatten(problem: Any, x0: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """The problem of one vector, the vector ``x0``, and what turns an answer back; an array is left as it is."""
    if not is_tree(x0):
        return problem, x0, lambda x: x
    x0 = jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, jax.Array) else checks.real_array("x0", leaf, finite=False), x0
    )
    leaves, structure = jax.tree.flatten(x0)
    if not leaves:
        raise TypeError(f"x0 must be an array or a tree of arrays; got {x0}")
    smooth = problem.smooth if isinstance(problem, Composite) else problem
    flat = Flattened(smooth, structure, tuple(np.shape(leaf) for leaf in leaves))
    posed = Composite(flat, for_vector(problem.penalty, x0)) if isinstance(problem, Composite) else flat
    return posed, vector(x0), flat.tree
