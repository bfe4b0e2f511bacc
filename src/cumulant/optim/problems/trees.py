"""Unknowns in a tree of arrays, and the vector of all its leaves."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_tree(x: Any) -> bool:
    """Whether ``x`` is a structure of arrays: neither an array nor a list of numbers, nor a plain tuple of them.

    >>> is_tree([1.0, 2.0]), is_tree((1.0, 2.0)), is_tree({"w": [1.0]}), is_tree((np.ones(2), 1.0))
    (False, False, True, True)
    """
    if isinstance(x, list) or (type(x) is tuple and all(np.ndim(item) == 0 for item in x)):
        return False
    return not jax.tree_util.all_leaves([x])


def as_floats(tree: Any) -> Any:
    """Every leaf as a floating-point array: a start at the integers ``[0, 0]`` is a start at the numbers."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf, float)), tree)


def vector(tree: Any) -> Any:
    """The leaves of a tree, one after the other."""
    leaves = jax.tree.leaves(tree)
    numpy = jnp if any(isinstance(leaf, jax.Array) for leaf in leaves) else np
    return numpy.concatenate([numpy.reshape(leaf, (-1,)) for leaf in leaves]) if leaves else np.zeros(0)


def unflatten(structure: Any, shapes: tuple[tuple[int, ...], ...], x: Any) -> Any:
    """The tree whose leaves, one after the other, are the entries of the vector ``x``."""
    sizes = [math.prod(shape) for shape in shapes]
    ends = np.cumsum(sizes)
    leaves = [x[end - size : end].reshape(shape) for size, end, shape in zip(sizes, ends, shapes, strict=True)]
    return jax.tree.unflatten(structure, leaves)
