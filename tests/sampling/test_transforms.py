"""Constrained variables: volumes against numerical Jacobians, spaces, and densities that must integrate to one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from cumulant.sampling import constrained

SPACES = [
    ((3,), "real"),
    ((3,), "positive"),
    ((2,), ("bounded", -1.0, 3.0)),
    ((4,), "ordered"),
    ((4,), "simplex"),
    ((2, 3), "simplex"),
    ((3, 3), "correlation"),
    ((4, 4), "correlation"),
    ((2, 3, 3), "correlation"),
]


def flat(x):
    return 0.0 * jnp.sum(x["x"])


def entries(value, shape, kind):
    """The coordinates that a density of the variable is over."""
    if kind == "simplex":
        return value[..., :-1].ravel()
    if kind == "correlation":
        rows, columns = np.tril_indices(shape[-1], -1)
        return value[..., rows, columns].ravel()
    return value.ravel()


@pytest.mark.parametrize(("shape", "kind"), SPACES, ids=str)
def test_volumes_are_those_of_the_jacobian(shape, kind):
    target = constrained(flat, {"x": shape}, {"x": kind})
    (space,) = target.spaces

    def place(v):
        return entries(space.place(v.reshape(space.free_shape))[0], shape, kind)

    with jax.enable_x64(True):
        points = jnp.asarray(np.random.default_rng(0).normal(size=(4, target.dim)))
        jacobians = jax.jit(jax.vmap(jax.jacobian(place)))(points)
        volumes = jax.jit(jax.vmap(target.at))(points)
        assert_allclose(volumes, np.linalg.slogdet(np.asarray(jacobians))[1], atol=1e-10)


def test_variables_are_in_their_spaces():
    shapes = {"e": (3, 3), "b": (2,), "c": (4,), "d": (2, 3), "a": (3,)}
    kinds = {"a": "positive", "b": ("bounded", 0.0, 2.0), "c": "ordered", "d": "simplex", "e": "correlation"}
    target = constrained(lambda x: -jnp.sum(x["a"]), shapes, kinds)
    found = target.constrain(3 * np.random.default_rng(0).normal(size=(50, target.dim)))
    assert [(name, value.shape[1:]) for name, value in found.items()] == list(shapes.items())
    assert np.all(found["a"] > 0)
    assert np.all((found["b"] > 0) & (found["b"] < 2))
    assert np.all(np.diff(found["c"]) > 0)
    assert_allclose(found["d"].sum(axis=-1), 1.0)
    assert_allclose(np.diagonal(found["e"], axis1=1, axis2=2), 1.0)
    assert np.all(np.linalg.eigvalsh(found["e"]) > -1e-12)


def test_a_density_keeps_its_mass():
    target = constrained(lambda x: -x["r"], {"r": ()}, {"r": "positive"})
    mass = quad(lambda v: np.exp(float(target.log_density([v]))), -30, 8)[0]
    assert_allclose(mass, 1.0, rtol=1e-8)


def test_mistakes_are_named():
    for shapes, kinds, word in [
        ({"x": (3,)}, {"y": "positive"}, "y"),
        ({"x": (3,)}, {"x": "round"}, "must be one of"),
        ({"x": (3,)}, {"x": "bounded"}, "bounded"),
        ({"x": (3,)}, {"x": ("bounded", 2.0, 1.0)}, "in order"),
        ({"x": ()}, {"x": "simplex"}, "last axis"),
        ({"x": (2, 3)}, {"x": "correlation"}, "square"),
    ]:
        with pytest.raises(ValueError, match=word):
            constrained(flat, shapes, kinds)
    with pytest.raises(TypeError, match="mapping"):
        constrained(flat, 3, {})
