"""How public functions are called: precision, tracing, constants inside a trace, and refusals."""

import threading
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.geometry import Shannon, projections
from cumulant.pytrees import pytree


def test_numpy_and_python_are_computed_in_double_and_jax_in_its_own_precision():
    for x in ([1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2], np.float32)):
        answer = projections.simplex(x)
        assert isinstance(answer, np.ndarray)
        assert answer.dtype == np.float64
    assert projections.simplex(jnp.array([1.0, 2.0])).dtype == jnp.float32
    assert projections.simplex(jnp.array([1, 2])).dtype == jnp.float32
    with jax.enable_x64(True):
        assert projections.simplex(jnp.array([1.0, 2.0], jnp.float32), 2.0).dtype == jnp.float32
        assert projections.simplex(jnp.array([1.0, 2.0])).dtype == jnp.float64


def test_constants_inside_a_trace():
    inner, outer = jnp.array([0.5, 2.0]), np.array([0.5, 2.0])

    @jax.jit
    def f(x):
        return x + Shannon().value(inner) + Shannon().value(outer)

    assert_allclose(f(1.0), 1 + 2 * Shannon().value(outer), rtol=1e-6)


def test_values_are_not_looked_at_under_a_trace():
    assert jnp.isnan(jax.jit(Shannon().gradient)(jnp.array([-1.0]))[0])
    with pytest.raises(ValueError, match="must be vectors on the last axis"):  # shapes are
        jax.jit(Shannon().gradient)(1.0)


def test_threads_have_their_own_context():
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(projections.simplex([1.0, 2.0]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert all(each.dtype == np.float64 for each in answers)


def test_a_refusal_finds_the_entry_when_arguments_broadcast():
    with pytest.raises(DomainError, match=r"upper of box must be at least the lower bound; got 1\. at index 1"):
        projections.box([0.0, 0.0], [0.0, 2.0], 1.0)


def test_a_pytree_keeps_its_class_its_settings_and_its_keys():
    @pytree
    @dataclass(frozen=True)
    class One:
        size: int = field(metadata={"static": True})
        value: Any = 0.0

    @pytree
    @dataclass(frozen=True)
    class Two:
        size: int = field(metadata={"static": True})
        value: Any = 0.0

    assert jax.tree.structure(One(1)) == jax.tree.structure(One(1))
    assert jax.tree.structure(One(1)) != jax.tree.structure(One(2))
    assert jax.tree.structure(One(1)) != jax.tree.structure(Two(1))  # as `register_dataclass` would have it
    assert jax.tree.map(lambda v: v + 1, One(3, 1.0)) == One(3, 2.0)
    assert jax.tree_util.tree_leaves_with_path(One(3, 1.0))[0][0] == (jax.tree_util.GetAttrKey("value"),)

    program = jax.jit(lambda tree: tree.value * tree.size + (1.0 if isinstance(tree, One) else 2.0))
    assert [float(program(cls(5, 2.0))) for cls in (One, Two, One)] == [11.0, 12.0, 11.0]
