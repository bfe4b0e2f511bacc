"""Targets: values and gradients against closed forms, named variables, constants that contradict each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.families import Gamma, MultivariateNormal, Normal, Wishart
from cumulant.sampling import Target

MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])


def quadratic(x, data):
    mean, precision = data
    return -(x - mean) @ precision @ (x - mean) / 2


def named(x):
    return -((x["centre"] - 3.0) ** 2) - jnp.sum(x["slopes"] ** 2) / 2


def gaussian():
    return Target(quadratic, 2, (MEAN, np.linalg.inv(COVARIANCE)))


def test_values_and_gradients_are_those_of_the_formula_for_batches_too():
    target, x = gaussian(), np.random.default_rng(0).normal(size=(3, 4, 2))
    precision = np.linalg.inv(COVARIANCE)
    expected = -np.einsum("...i,ij,...j->...", x - MEAN, precision, x - MEAN) / 2
    assert_allclose(target.log_density(x), expected, rtol=1e-13)
    assert_allclose(target.gradient(x), -(x - MEAN) @ precision, rtol=1e-12)
    assert isinstance(target.gradient(x), np.ndarray)
    single = target.log_density(jnp.asarray(x[0, 0], dtype=jnp.float32))
    assert isinstance(single, jax.Array)
    assert single.dtype == jnp.float32


def test_named_variables_are_one_vector_for_samplers():
    target = Target(named, {"centre": (), "slopes": (2, 2)})
    x = np.arange(5.0)
    parts = target.unflatten(x)
    assert parts["centre"] == 0.0
    assert_allclose(parts["slopes"], [[1.0, 2.0], [3.0, 4.0]])
    assert target.dim == 5
    assert_allclose(target.log_density(x), -9.0 - 15.0)
    assert_allclose(target.gradient(x), [6.0, -1.0, -2.0, -3.0, -4.0])
    assert Target(named, {"centre": (), "slopes": (1,)}).unflatten(np.zeros((7, 2)))["slopes"].shape == (7, 1)


@pytest.mark.parametrize(
    ("family", "theta", "x"),
    [
        (Normal(), Normal().natural(mean=1.0, variance=2.0), [0.3]),
        (Gamma(), Gamma().natural(shape=2.0, rate=3.0), [0.7]),
        (MultivariateNormal(2), MultivariateNormal(2).natural(mean=MEAN, covariance=COVARIANCE), [0.5, 0.5]),
    ],
    ids=["Normal", "Gamma", "MultivariateNormal"],
)
def test_a_family_at_a_parameter_is_a_target(family, theta, x):
    target = Target.of(family, theta)
    assert_allclose(target.log_density(x), family.log_prob(x[0] if len(x) == 1 else np.array(x), theta), rtol=1e-12)
    with pytest.raises(ValueError, match="numbers or vectors"):
        Target.of(Wishart(2), np.zeros(4))


def test_the_mode_is_found_by_the_loop_of_optim():
    target = Target(quadratic, 2, (MEAN, np.linalg.inv(COVARIANCE)), smoothness=4.0, strong_convexity=0.4)
    result = optim.run(optim.GradientDescent(), target.problem(), [0.0, 0.0], tol=1e-10, max_steps=2000)
    assert 0.2 * np.sum((result.x - MEAN) ** 2) <= result.certificate.upper < 1e-8  # strong convexity
    assert any(assumption.status == "assumed" for assumption in result.certificate.assumptions)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("not a function", 2), TypeError, "function must be"),
        ((named, "two"), TypeError, "number of coordinates"),
        ((named, True), TypeError, "number of coordinates"),
        ((named, 0), ValueError, "at least one coordinate"),
        ((named, {}), ValueError, "at least one coordinate"),
        ((named, 2, None, 0.5, 1.0), ValueError, "smoothness must not be below strong_convexity; got 0.5 and 1.0"),
        ((named, 2, None, -1.0), ValueError, "smoothness must be positive"),
        ((named, 2, None, None, np.inf), ValueError, "strong_convexity must be finite"),
    ],
)
def test_what_is_no_target_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Target(*arguments)
