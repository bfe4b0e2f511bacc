"""What compiled loops share: which leaves are data, one step, and what is measured after it."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


def _is_data(leaf: Any) -> bool:
    """Whether a leaf of a solver or a problem is data of the compiled program, or part of it (names, flags)."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | float | int) and not isinstance(leaf, bool)


class Program(NamedTuple):
    """All of a solver and a problem that is not data: what a compiled call is keyed by.

    `classes` is there because two structures of dataclasses compare equal (jaxlib 0.10) when only their classes differ.
    """

    structure: Any
    fixed: tuple
    classes: tuple


def _classes(structure: Any) -> tuple:
    node = structure.node_data()
    return (None if node is None else node[0], *(_classes(child) for child in structure.children()))


def split(tree: Any) -> tuple[list, Program]:
    """The data among the leaves of a solver or a problem, and the rest."""
    leaves, structure = jax.tree.flatten(tree)
    fixed = tuple(None if _is_data(leaf) else leaf for leaf in leaves)
    try:
        hash((structure, fixed))
    except TypeError as problem:
        raise TypeError(
            "what is not an array in a solver or problem becomes part of the compiled program and must be hashable "
            f"(module-level functions, strings, frozen dataclasses): {problem}"
        ) from problem
    return [leaf if _is_data(leaf) else None for leaf in leaves], Program(structure, fixed, _classes(structure))


def join(program: Program, data: Sequence) -> Any:
    """What `split` took apart."""
    leaves = [fixed if leaf is None else leaf for leaf, fixed in zip(data, program.fixed, strict=True)]
    return jax.tree.unflatten(program.structure, leaves)


def healthy(state: Any) -> jax.Array:
    """Whether all floating-point numbers of a state are finite."""
    by_shape: dict[tuple, list] = {}  # leaves of one shape are looked at in one pass
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            by_shape.setdefault(leaf.shape, []).append(jnp.isfinite(leaf))
    every = [jnp.all(functools.reduce(jnp.logical_and, flags)) for flags in by_shape.values()]
    return functools.reduce(jnp.logical_and, every, jnp.asarray(True))


def measure(solver: Any, problem: Any, state: Any) -> dict[str, jax.Array]:
    """The solver's own measurements, or the value alone; as scalars of one type, with a bound among them."""
    found = dict(solver.measure(problem, state))
    found.setdefault("bound", jnp.inf)
    return {name: jnp.asarray(number, dtype=float) for name, number in found.items()}


def typed(state: Any) -> Any:
    """The state on strongly typed arrays, so that a step returns the types it was given."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=jnp.result_type(leaf)), state)


def one_step(solver: Any, problem: Any, state: Any) -> Any:
    """The state one step later, in the types of the state before."""
    new = solver.step(problem, state)
    return jax.tree.map(lambda after, before: jnp.asarray(after, dtype=before.dtype), new, state)
