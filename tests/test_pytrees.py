"""Pytrees of dataclasses: two classes with equal settings are never taken for each other."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import families as fam
from cumulant.pytrees import pytree


def test_no_two_families_have_the_same_structure():
    structures = [jax.tree.structure(f) for f in fam.all_families()]
    for i, first in enumerate(structures):
        assert all(first != second for second in structures[i + 1 :])


def test_a_compiled_program_is_never_run_for_another_class():
    """With `jax.tree_util.register_dataclass`, about one in six of these answers is another class's."""
    kinds = [pytree(dataclasses.dataclass(frozen=True)(type(f"Kind{i}", (), {"number": i}))) for i in range(80)]
    program = jax.jit(lambda kind, x: x + kind.number)
    assert [int(program(kind(), jnp.zeros((), int))) for kind in kinds] == list(range(80))


def test_static_fields_are_part_of_the_program_and_others_are_leaves():
    @dataclasses.dataclass(frozen=True)
    class Pair:
        size: int
        values: object

    pytree(Pair, static=["size"])
    leaves, structure = jax.tree.flatten(Pair(2, np.ones(3)))
    assert len(leaves) == 1
    assert structure != jax.tree.structure(Pair(3, np.ones(3)))
    back = jax.tree.unflatten(structure, leaves)
    assert back.size == 2
    np.testing.assert_array_equal(back.values, np.ones(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        back.size = 3
