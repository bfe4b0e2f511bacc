"""Criteria, comparison, goodness of fit, profile likelihood, and predictive distributions."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from cumulant import families as fam
from cumulant.errors import DomainError, NoEstimateError


@pytest.fixture(scope="module")
def waits():
    return stats.gamma(3.0, scale=2.0).rvs(300, random_state=0)


@pytest.fixture(scope="module")
def counts():
    return stats.nbinom(1.7, 0.3).rvs(250, random_state=1)


@pytest.fixture(scope="module")
def table(waits):
    return fam.compare(waits, [fam.Exponential(), fam.WeibullKnownShape, fam.Gamma()], simulations=39)


def test_the_criteria_are_those_of_akaike_and_schwarz(waits, table):
    fit = table["Gamma"].estimate
    shape, _, scale = stats.gamma.fit(waits, floc=0)
    best = stats.gamma(shape, scale=scale).logpdf(waits).sum()
    assert_allclose(fit.aic, 4 - 2 * best, rtol=1e-7)
    assert_allclose(fit.bic, 2 * np.log(300) - 2 * best, rtol=1e-7)


def test_families_are_ranked_and_weighed(table):
    assert [each.name.split("(")[0] for each in table] == ["Gamma", "WeibullKnownShape", "Exponential"]
    odds = np.exp(-0.5 * np.array([each.aic - table[0].aic for each in table]))
    assert_allclose([each.weight for each in table], odds / odds.sum())
    assert table[1].estimate.n_parameters == 2
    assert table[2].estimate.n_parameters == 1
    lines = str(table).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("Gamma")
    assert table._repr_html_().count("<tr>") == 4
    assert list(table.to_frame()["parameters"]) == [2, 2, 1]


def test_what_does_not_compare_is_refused(waits):
    with pytest.raises(ValueError, match="all discrete or all continuous"):
        fam.compare(np.round(waits) + 1, [fam.Exponential(), fam.Poisson()])
    with pytest.raises(ValueError, match="at least one family"):
        fam.compare(waits, [])
    with pytest.raises(TypeError, match="families must hold families"):
        fam.compare(waits, ["gamma"])
    with pytest.raises(KeyError, match="no family is called 'Normal'"):
        fam.compare(waits, [fam.Exponential()])["Normal"]


def test_the_distance_is_that_of_anderson_and_darling(waits, table):
    fit = table["Exponential"].estimate
    u = np.sort(stats.expon(scale=waits.mean()).cdf(waits))
    i = np.arange(1, 301)
    expected = -300 - np.mean((2 * i - 1) * (np.log(u) + np.log1p(-u[::-1])))
    assert_allclose(fam.goodness_of_fit(fit.family, waits).distance, expected, rtol=1e-10)
    assert_allclose(table["Exponential"].goodness.distance, expected, rtol=1e-10)
    assert table["Exponential"].goodness.p_value == 1 / 40  # no simulation is that far
    assert table["Gamma"].goodness.p_value > 0.05
    assert table[1].goodness.p_value is None  # the shape was chosen from the data


def test_p_values_are_uniform_where_the_family_is_the_truth():
    """Thirty data sets from the family: p-values by 39 simulations each, by Kolmogorov and Smirnov at 1e-3."""
    family = fam.Poisson()
    theta = family.natural(rate=4.0)
    data = family.sample(np.tile(theta, (30, 1)), 60, rng=2)
    p = [fam.goodness_of_fit(family, data[:, i], simulations=39, rng=i).p_value for i in range(30)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_transforms_of_the_truth_are_uniform():
    for family, theta in ((fam.Poisson(), [0.3]), (fam.Gamma(), [2.0, -1.0])):
        x = family.sample(np.asarray(theta), 4000, rng=3)
        assert stats.kstest(fam.probability_transform(family, theta, x, rng=4), "uniform").pvalue > 1e-3
    with pytest.raises(DomainError, match="no distribution function"):
        fam.probability_transform(fam.Dirichlet(3), np.ones(3), np.full((2, 3), 1 / 3))


# Profile likelihood


def check_profile(found, log_likelihood, bounds):
    best = optimize.minimize_scalar(lambda c: -log_likelihood(c), bounds=bounds, options={"xatol": 1e-10})
    assert_allclose(found.value, best.x, rtol=1e-5)
    assert_allclose(found.estimate.log_likelihood, -best.fun, rtol=1e-9)
    for end in found.interval:
        assert_allclose(2 * (-best.fun - log_likelihood(end)), stats.chi2.ppf(0.95, 1), rtol=1e-6)


def test_the_number_of_successes_by_profile_likelihood(counts):
    def log_likelihood(r):
        return stats.nbinom(r, r / (r + counts.mean())).logpmf(counts).sum()

    found = fam.profile(fam.NegativeBinomial, counts)
    check_profile(found, log_likelihood, (0.1, 20.0))
    assert found.interval[0] < 1.7 < found.interval[1]
    assert found.estimate.n_parameters == 2
    assert "by profile likelihood" in str(found)


def test_the_shape_of_a_weibull_by_profile_likelihood(waits):
    def log_likelihood(k):
        return stats.weibull_min(k, scale=np.mean(waits**k) ** (1 / k)).logpdf(waits).sum()

    check_profile(fam.profile(fam.WeibullKnownShape, waits), log_likelihood, (0.3, 10.0))


def test_the_minimum_of_a_pareto_has_an_exact_interval():
    x = stats.pareto(2.5, scale=3.0).rvs(size=(4000, 8), random_state=5)
    covered = [low <= 3.0 <= high for low, high in (_pareto_interval(row) for row in x)]
    assert abs(np.mean(covered) - 0.9) < 4 * np.sqrt(0.09 / 4000)
    found = fam.profile(fam.ParetoKnownMinimum, x[0], level=0.9)
    assert found.value == x[0].min()
    assert_allclose(found.interval, _pareto_interval(x[0]))


def _pareto_interval(x):
    from cumulant.families.profile import _pareto

    return _pareto(x, 0.9)[1]


def test_the_centre_of_a_laplace_is_the_median():
    x = np.random.default_rng(6).laplace(2.0, 1.0, size=101)
    found = fam.profile(fam.LaplaceKnownCentre, x)
    assert found.value == np.median(x)
    assert found.interval[0] < 2.0 < found.interval[1]


def test_constants_that_the_data_do_not_determine_are_refused():
    with pytest.raises(NoEstimateError, match=r"does not exceed their mean .*Poisson\(\)"):
        fam.profile(fam.NegativeBinomial, [2, 3, 2, 3])
    with pytest.raises(NoEstimateError, match="all 3 observations are equal"):
        fam.profile(fam.WeibullKnownShape, [2.0, 2.0, 2.0])
    with pytest.raises(TypeError, match=r"got GammaKnownShape; Gamma\(\) fits both"):
        fam.profile(fam.GammaKnownShape, [1.0, 2.0])
    with pytest.raises(DomainError, match="x > 0; got -1"):
        fam.profile(fam.WeibullKnownShape, [-1.0, 2.0])


def test_known_constants_have_no_hidden_default():
    for family, name, advice in (
        (fam.NegativeBinomial, "successes", r"families\.profile\(NegativeBinomial, x\)"),
        (fam.WeibullKnownShape, "shape", r"families\.profile\(WeibullKnownShape, x\)"),
        (fam.GammaKnownShape, "shape", r"Gamma\(\) fits it too"),
        (fam.Binomial, "trials", ""),
        (fam.Dirichlet, "size", ""),
        (fam.VonMisesFisher, "size", ""),
    ):
        with pytest.raises(TypeError, match=f"{family.__name__}: missing a required argument: '{name}'.*{advice}"):
            family()


# Predictive distributions


PREDICTIVE = [
    (fam.Bernoulli(), [0.3], 4.0, lambda: stats.betabinom(1, 1.2, 2.8)),
    (fam.Binomial(6), [2.0], 4.0, lambda: stats.betabinom(6, 8.0, 16.0)),
    (fam.Poisson(), [2.0], 3.0, lambda: stats.nbinom(6.0, 3 / 4)),
    (fam.Exponential(), [2.0], 3.0, lambda: stats.lomax(4.0, scale=6.0)),
    (fam.NormalKnownMean(0.5), [2.0], 3.0, lambda: stats.t(5.0, 0.5, np.sqrt(6.0 / 5.0))),
    (fam.NormalKnownVariance(2.0), [1.5], 4.0, lambda: stats.norm(1.5, np.sqrt(2.5))),
    (fam.Normal(), [1.0, 4.0], 5.0, lambda: stats.t(8.0, 1.0, np.sqrt(15.0 * 1.2 / 8.0))),
    (fam.NegativeBinomial(2.5), [2.0], 3.0, None),
    (fam.Geometric(), [2.0], 3.0, lambda: stats.betanbinom(1, 4.0, 6.0)),
]


@pytest.mark.parametrize(("family", "mean", "strength", "twin"), PREDICTIVE, ids=[str(each[0]) for each in PREDICTIVE])
def test_predictive_distributions(family, mean, strength, twin):
    prior = fam.ConjugatePrior(mean, strength)
    predictive = prior.predictive(family)
    x = np.array([0.0, 1.0, 1.0, 0.0, 1.0]) if family.discrete else np.array([0.2, 0.5, 1.0, 3.0, 20.0])
    logs = predictive.log_prob(x)
    if twin is not None:
        assert_allclose(logs, twin().logpmf(x) if family.discrete else twin().logpdf(x), rtol=1e-9)
    if family.dim == 1:  # prior times likelihood, integrated over theta by the trapezoidal rule
        low, high = (-60.0, -1e-9) if not np.all(family.in_domain([0.5])) else (-40.0, 40.0)
        grid = np.linspace(low, high, 200_001)[:, None]
        density = prior.log_density(family, grid)
        likelihood = family.log_prob(x[1], grid)
        weight = np.exp(density - density.max())
        mass = integrate.trapezoid(weight * np.exp(likelihood), x=grid[:, 0]) / integrate.trapezoid(
            weight, x=grid[:, 0]
        )
        assert_allclose(np.exp(logs[1]), mass, rtol=1e-6)
    draws = predictive.sample(20_000, rng=0)
    with jax.enable_x64(True):
        t = np.asarray(family.statistics(np.asarray(draws, dtype=float)))
    assert draws.shape == (20_000,)
    assert np.all(np.abs(t.mean(axis=0) - predictive.mean) <= 5 * t.std(axis=0) / np.sqrt(20_000))


def test_classes_are_predicted_by_their_counts():
    prior = fam.ConjugatePrior([0.5, 0.3], 10.0)
    assert_allclose(np.exp(prior.predictive(fam.Categorical(3)).log_prob([0, 1, 2])), [0.5, 0.3, 0.2], rtol=1e-12)
    family = fam.Multinomial(4, 3)
    x = np.array([[2, 1, 1], [0, 0, 4]])
    found = fam.ConjugatePrior([2.0, 1.2], 2.5).predictive(family).log_prob(x)
    assert_allclose(found, stats.dirichlet_multinomial([5.0, 3.0, 2.0], 4).logpmf(x), rtol=1e-10)


def test_improper_priors_and_families_without_a_closed_form_are_refused():
    with pytest.raises(DomainError, match="not proper"):
        fam.ConjugatePrior([0.5], 0.0).predictive(fam.Bernoulli())
    with pytest.raises(DomainError, match="mean parameter of"):
        fam.ConjugatePrior([1.5], 1.0).predictive(fam.Bernoulli())
    with pytest.raises(NotImplementedError, match="no predictive distribution in closed form"):
        fam.ConjugatePrior([0.0, 2.0], 1.0).predictive(fam.Gamma()).log_prob(1.0)


def test_estimates_of_vectors_print_their_errors_and_intervals():
    x = np.random.default_rng(7).dirichlet([2.0, 3.0, 5.0], size=200)
    fit = fam.Dirichlet(3).estimate(x)
    lines = str(fit).splitlines()
    assert len(lines) == 4
    error = fit.usual_standard_errors["concentration"][1]
    assert lines[2].startswith(f"  concentration[1] = {fit.usual['concentration'][1]:.6g} ± {error:.2g}   95%: [")
    both = fam.Product((fam.Poisson(), fam.Normal())).estimate((np.array([1, 2, 5]), np.array([0.1, 2.0, 3.0])))
    assert "parts.0.rate" in str(both)
