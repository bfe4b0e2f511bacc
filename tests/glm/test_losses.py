import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from cumulant import families
from cumulant.glm.objective.losses import FamilyLoss, loss_of
from tests.glm.cases import FAMILIES, features, observations
from tests.reference import glm as reference

ETA = np.linspace(-8, 8, 41)


def ys(family):
    return observations(family, features(n=len(ETA)))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_compiled_loss_is_half_the_deviance_with_its_derivatives(family):
    y = ys(family)
    loss = loss_of(family, y)
    value, slope, curvature = loss.terms(ETA)
    assert_allclose(value, reference.loss(family, y, ETA), rtol=1e-12, atol=1e-13)
    assert_allclose(slope, reference.slope(family, y, ETA), rtol=1e-12, atol=1e-14)
    h = 1e-5
    numeric = (reference.slope(family, y, ETA + h) - reference.slope(family, y, ETA - h)) / (2 * h)
    assert_allclose(curvature, numeric, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("eta", [-745.0, -40.0, -1e-9, 0.0, 1e-9, 40.0, 745.0, 1e6])
def test_the_logistic_loss_at_extreme_scores(eta):
    value, slope, curvature = loss_of("bernoulli", np.array([1.0])).terms(np.array([eta]))
    assert_allclose(value[0], np.logaddexp(0, -eta), rtol=1e-13, atol=1e-300)
    assert_allclose(slope[0], -1 / (1 + np.exp(min(eta, 700.0))), rtol=1e-13, atol=1e-300)
    assert curvature[0] >= 0


@pytest.mark.parametrize("family", FAMILIES)
def test_the_conjugate_is_the_largest_difference(family):
    y = ys(family)
    loss = loss_of(family, y)
    slope = loss.terms(np.clip(ETA, -3, 3))[1]
    found = loss.conjugate(slope)
    for i in range(0, len(y), 5):
        best = minimize_scalar(
            lambda t, i=i: reference.loss(family, y[i], t) - slope[i] * t, bounds=(-12, 12), method="bounded",
            options={"xatol": 1e-10},
        )  # fmt: skip
        assert_allclose(found[i], -best.fun, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_reach_ends_at_the_boundary_of_the_conjugate(family):
    y = ys(family)
    loss = loss_of(family, y)
    slope = loss.terms(ETA / 4)[1]
    change = 5.0 * np.random.default_rng(0).normal(size=len(y))
    t = loss.reach(slope, change)
    assert 0 < t <= 1
    assert np.all(np.isfinite(loss.conjugate(slope + t * change)))
    inside = {
        "bernoulli": lambda s: np.all((s + y >= 0) & (s + y <= 1)),
        "poisson": lambda s: np.all(s + y >= 0),
        "gamma": lambda s: np.all(s <= 1),
        "normal": lambda s: True,
    }[family]
    assert inside(slope + (1 - 1e-9) * t * change)
    assert t == 1 or not inside(slope + 1.001 * t * change)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("bernoulli", families.Bernoulli()),
        ("poisson", families.Poisson()),
        ("normal", families.NormalKnownVariance(1.0)),
    ],
)
def test_a_compiled_loss_is_that_of_its_family(name, family):
    y = ys(name)
    compiled, eta = loss_of(name, y), ETA / 2
    theta = eta[:, None]
    means = np.asarray(family.to_mean(theta))[:, 0]
    own = np.asarray(family.log_partition(theta)) - eta * y
    assert_allclose(
        compiled.terms(eta)[0] - compiled.constant, own, rtol=1e-12, atol=1e-12
    ) if name != "normal" else None
    assert_allclose(compiled.terms(eta)[1], means - y, rtol=1e-12, atol=1e-13)
    assert_allclose(compiled.terms(eta)[2], np.asarray(family.fisher(theta))[:, 0, 0], rtol=1e-11)
    assert_allclose(compiled.mean(eta), means, rtol=1e-13)


def test_any_family_with_one_parameter_has_a_loss():
    y = np.array([0.5, 1.5, 4.0])
    loss = loss_of(families.Exponential(), y)
    assert isinstance(loss, FamilyLoss)
    eta = np.array([-2.0, -0.5, -0.25])
    value, slope, curvature = loss.terms(eta)
    assert_allclose(
        value, -np.log(-eta) - eta * y - 1 - np.log(y), rtol=1e-12, atol=1e-15
    )  # A = -log(-theta), A* = -1 - log mu
    assert_allclose(slope, -1 / eta - y, rtol=1e-12)
    assert_allclose(curvature, 1 / eta**2, rtol=1e-12)
    assert_allclose(loss.conjugate(slope), eta * slope - value, rtol=1e-10, atol=1e-12)
    assert np.isinf(loss.terms(np.array([-1.0, 0.5, -1.0]))[0][1])


def test_binomial_counts():
    y, trials, eta = np.array([0.0, 3.0, 7.0]), 7, np.array([0.3, -1.0, 2.0])
    loss = loss_of(families.Binomial(trials), y)
    p = 1 / (1 + np.exp(-eta))
    share = y / trials
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = trials * (
            np.nan_to_num(share * np.log(share / p)) + np.nan_to_num((1 - share) * np.log((1 - share) / (1 - p)))
        )
    value, slope, curvature = loss.terms(eta)
    assert_allclose(value, deviance, rtol=1e-12)
    assert_allclose(slope, trials * p - y, rtol=1e-12)
    assert_allclose(curvature, trials * p * (1 - p), rtol=1e-12)
    assert_allclose(loss.conjugate(slope), eta * slope - value, rtol=1e-10)


def test_softmax_against_its_formula():
    rng = np.random.default_rng(0)
    eta, y = 3 * rng.normal(size=(20, 4)), rng.integers(0, 4, 20)
    loss = loss_of("categorical", y, 4)
    value, slope, mean = loss.terms(eta)
    expected = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    assert_allclose(mean, expected, rtol=1e-12)
    assert_allclose(value, -np.log(expected[np.arange(20), y]), rtol=1e-12, atol=1e-14)
    assert_allclose(slope, expected - np.eye(4)[y], atol=1e-14)
    change = rng.normal(size=(20, 4))
    h = 1e-6
    numeric = (loss.terms(eta + h * change)[1] - loss.terms(eta - h * change)[1]) / (2 * h)
    assert_allclose(loss.apply(mean, change), numeric, atol=1e-8)
    assert_allclose(loss.conjugate(slope), (eta * slope).sum(axis=1) - value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "y", "words"),
    [
        ("poisson", [-1.0, 2.0], "at least 0"),
        ("gamma", [0.0, 2.0], "positive"),
        ("bernoulli", [0.0, 2.0], "between 0 and 1"),
        ("weibull", [1.0], "family must be one of"),
        (families.Normal(), [1.0], "one natural parameter"),
    ],
)
def test_what_a_family_cannot_have_observed(family, y, words):
    with pytest.raises(ValueError, match=words):
        loss_of(family, np.array(y))


def exact_divergence(family, e, s, v):
    """``phi(e) + phi*(s) - s e`` of one row, by its definition."""

    def entropy(m):
        return m * mp.log(m) if m else mp.mpf(0)

    if family == "categorical":
        means = [a + (k == int(v[0])) for k, a in enumerate(s)]
        means = [m / mp.fsum(means) for m in means]
        lse = mp.log(mp.fsum(mp.exp(a) for a in e))
        return mp.fsum(entropy(m) + m * (lse - a) for m, a in zip(means, e, strict=True))
    e, m, r, v = e[0], s[0] + v[0], 1 - s[0], v[0]
    if family == "normal":
        return (e - m) ** 2 / 2
    if family == "bernoulli":
        return mp.log(1 + mp.exp(e)) + entropy(m) + entropy(1 - m) - m * e
    if family == "poisson":
        return mp.exp(e) + entropy(m) - m - m * e
    return v * mp.exp(-e) + entropy(r) - r * mp.log(v) - r + r * e


@pytest.mark.parametrize("family", [*FAMILIES, "categorical"])
def test_divergences_are_within_their_error(family):
    """In 400 digits: as far from the exact ones as a change of the scores by `size` units in the last place allows."""
    rng, mp.mp.dps = np.random.default_rng(0), 400
    for trial in range(150):
        near = 10.0 ** rng.uniform(-17, 1)
        eta = rng.normal(size=3) * 10.0 ** rng.uniform(-3, 2.5 if family == "bernoulli" else 1.5)
        other = eta + near * rng.normal(size=3)
        y = {
            "bernoulli": rng.integers(0, 2, 3) * 1.0,
            "poisson": rng.poisson(3.0, 3) * 1.0,
            "normal": rng.normal(size=3) * 10.0 ** rng.uniform(-8, 8),
            "gamma": rng.gamma(1.0, size=3) + 1e-9,
            "categorical": rng.integers(0, 3, 1),
        }[family]
        loss = loss_of(family, y, 3)
        if family == "categorical":
            eta, other = eta[None], other[None]
        slope = loss.clipped(loss.terms(other)[1])
        found = loss.divergence(eta, slope)
        for i in range(len(y)):
            exact = exact_divergence(
                family, *([mp.mpf(float(a)) for a in np.atleast_1d(b[i])] for b in (eta, slope, y))
            )
            width = mp.mpf(float(found.size[i])) / 2**53
            allowed = mp.mpf(float(np.abs(found.change[i]).sum())) * width + mp.mpf(float(found.error[i]))
            allowed += mp.mpf(float(found.curvature[i])) * width**2 * mp.exp(width) + mp.mpf("1e-300")
            assert abs(exact - mp.mpf(float(found.value[i]))) <= allowed, (trial, i, eta, slope, y)
