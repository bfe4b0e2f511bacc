"""The laws of distribution functions, each written once and run over every family of numbers.

One compiled program per family evaluates them all at a fixed batch of members and probabilities.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import families as fam
from cumulant.errors import DomainError
from tests.families import cases

ON_THE_LINE = [f for f in fam.all_families() if cases.nodes(f) is not None]
EACH = pytest.mark.parametrize("family", ON_THE_LINE, ids=str)
P = np.array([1e-9, 0.03, 0.3, 0.6, 0.95, 1 - 1e-6])[:, None]


@functools.cache
def compiled(family):
    """Every method at the quantiles of ``p``, lower and upper, one below them, and below the support."""
    low = family.ends[0]

    def bundle(p, theta):
        x, u = family.quantile(p, theta), family.upper_quantile(p, theta)
        points = jnp.stack([x, u, x - 1, u - 1, jnp.full_like(x, low - 1 if np.isfinite(low) else -1e300)])
        slope = jax.grad(lambda at: jnp.sum(family.cdf(at, theta)))(x)
        return {
            "x": x, "u": u, "slope": slope, "density": jnp.exp(family.log_prob(x, theta)),
            "cdf": family.cdf(points, theta), "survival": family.survival(points, theta),
            "log_cdf": family.log_cdf(points, theta), "log_survival": family.log_survival(points, theta),
        }  # fmt: skip

    return jax.jit(bundle)


def answers(family, p=P):
    theta = cases.members(family, cases.cube(8))
    with jax.enable_x64(True):
        return theta, jax.tree.map(np.asarray, compiled(family)(jnp.asarray(p), jnp.asarray(theta)))


@EACH
def test_quantiles_invert_the_distribution_function(family):
    _, found = answers(family)
    for name, value in found.items():
        assert np.all(np.isfinite(value) | np.isin(name, ["log_cdf", "log_survival"])), name
    assert np.all(np.diff(found["x"], axis=0) >= 0)
    assert np.all(np.diff(found["u"], axis=0) <= 0)
    if family.discrete:
        at, at_upper, before, before_upper = (
            found["cdf"][0],
            found["survival"][1],
            found["cdf"][2],
            found["survival"][3],
        )
        assert np.all(at >= P * (1 - 1e-12))
        assert np.all((before < P) | (found["x"] == 0))
        assert np.all(at_upper <= P * (1 + 1e-12))
        assert np.all((before_upper > P) | (found["u"] == 0))
        return
    # What rounding of x itself changes: near an end of the support that is not zero, floats are coarse.
    coarse = 4 * np.finfo(float).eps * np.abs(found["x"]) * found["density"]
    assert np.all(np.abs(found["cdf"][0] - P) <= 1e-12 * P + coarse)
    upper = np.abs(found["survival"][1] / P - 1)
    ends = np.isfinite(family.ends[1]) | isinstance(family, fam.VonMises)
    assert np.all(upper[1:] <= 1e-11) if ends else np.all(upper <= 1e-12)


@EACH
def test_the_two_tails_add_up_and_are_the_exponentials_of_their_logarithms(family):
    _, found = answers(family)
    assert_allclose(found["cdf"] + found["survival"], 1.0, rtol=1e-14)
    with np.errstate(divide="ignore"):
        for name in ("cdf", "survival"):
            assert_allclose(np.exp(found[f"log_{name}"]), found[name], rtol=1e-13)
            assert np.all((found[name] >= 0) & (found[name] <= 1))


@EACH
def test_the_distribution_function_is_the_sum_or_integral_of_the_density(family):
    theta, found = answers(family)
    if family.discrete:
        x = np.arange(min(61, family.ends[1] + 1))
        sums = np.cumsum(np.exp(family.log_prob(x[:, None], theta)), axis=0)
        assert_allclose(family.cdf(x[:, None], theta), sums, rtol=1e-12)
        assert np.all(family.cdf(x[:, None] + 0.5, theta) == family.cdf(x[:, None], theta))
        return
    assert_allclose(found["slope"][1:-1], found["density"][1:-1], rtol=1e-9)
    # Between the quantiles of .6 and .95, where every density is smooth.
    nodes, weights = np.polynomial.legendre.leggauss(61)
    low, high = found["x"][3], found["x"][4]
    if family.ends == (0.0, np.inf):
        low, high = np.log(low), np.log(high)
    x = low + 0.5 * (high - low) * (1 + nodes[:, None])
    x, jacobian = (np.exp(x), np.exp(x)) if family.ends == (0.0, np.inf) else (x, 1.0)
    mass = 0.5 * (high - low) * np.einsum("n,nb->b", weights, np.exp(family.log_prob(x, theta)) * jacobian)
    assert_allclose(mass, 0.35, rtol=1e-9)


@EACH
def test_they_agree_with_scipy(family):
    usual = cases.usual_parameters(family, cases.cube(8))
    twin = cases.scipy_twin(family, **usual)
    if twin is None:
        return  # classes and states: the sum over them was the test
    _, found = answers(family)
    middle = slice(1, 5)  # scipy's own tails are less accurate
    x = found["x"][middle]
    rtol = 1e-3 if isinstance(family, fam.VonMises) else 1e-8  # scipy's von Mises is a normal from 50 on
    assert_allclose(found["cdf"][0][middle], twin.cdf(x), rtol=rtol)
    assert_allclose(found["survival"][0][middle], twin.sf(x), rtol=rtol)
    if not isinstance(family, fam.VonMises | fam.InverseGaussian):  # solved there to 1e-6, with warnings
        assert_allclose(x, twin.ppf(P[middle]), rtol=1e-9, atol=1e-12)


@EACH
def test_outside_of_the_support_and_at_certainty(family):
    _, found = answers(family, np.array([0.0, 1.0, 0.5, 0.5, 0.5, 0.5])[:, None])
    if isinstance(family, fam.VonMises):
        assert_allclose(found["x"][1] - found["x"][0], 2 * np.pi)
        return
    assert np.all(found["x"][0] == family.ends[0])
    assert np.all(found["x"][1] == family.ends[1])
    assert np.all(found["u"][:2] == found["x"][1::-1])
    assert np.all(found["cdf"][4] == 0)
    assert np.all(found["survival"][4] == 1)


def test_bad_arguments_are_refused_by_name():
    with pytest.raises(DomainError, match=r"p, a probability, must be between 0 and 1; got 1\.5"):
        fam.Normal().quantile([0.5, 1.5], [0.0, -0.5])
    with pytest.raises(DomainError, match="has NaN entries"):
        fam.Normal().cdf(np.nan, [0.0, -0.5])
    with pytest.raises(DomainError, match="natural parameter of"):
        fam.Normal().cdf(0.0, [0.0, 0.5])
    with pytest.raises(TypeError, match=r"has no distribution function: its observations have shape \(3,\)"):
        fam.Dirichlet(3).cdf(np.full(3, 1 / 3), np.ones(3))


def test_quantiles_are_differentiated_by_the_implicit_function_theorem():
    family = fam.Gamma()

    def exact(p, theta):
        return family.quantile(p, theta)

    theta, h = np.array([2.5, -1.5]), 1e-5
    with jax.enable_x64(True):
        slope, by_theta = jax.grad(exact, argnums=(0, 1))(jnp.asarray(0.3), jnp.asarray(theta))
    assert_allclose(slope, np.exp(-family.log_prob(family.quantile(0.3, theta), theta)), rtol=1e-10)
    steps = h * np.eye(2)
    differences = (family.quantile(0.3, theta + steps) - family.quantile(0.3, theta - steps)) / (2 * h)
    assert_allclose(by_theta, differences, rtol=1e-7)
