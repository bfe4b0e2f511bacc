"""Estimates: near the boundary, where there is none, under priors, in streams, and with standard errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from cumulant import families as fam
from cumulant.errors import DomainError, NoEstimateError
from tests.families import cases

# Means at a relative distance `gap` from the boundary of the mean domain, and what the natural parameter is there.
NEAR = [
    (fam.Bernoulli(), lambda g: [g]),
    (fam.Bernoulli(), lambda g: [1 - g]),
    (fam.Binomial(7), lambda g: [7 * (1 - g)]),
    (fam.Categorical(4), lambda g: [g, 0.3, 0.4]),
    (fam.Categorical(4), lambda g: [0.3, 0.3, 0.4 * (1 - g)]),
    (fam.Multinomial(6, 3), lambda g: [6 * g, 3.0]),
    (fam.Geometric(), lambda g: [g]),
    (fam.NegativeBinomial(2.5), lambda g: [g]),
    (fam.Poisson(), lambda g: [g]),
    (fam.Exponential(), lambda g: [g]),
    (fam.Gamma(), lambda g: [np.log(3.0) - g, 3.0]),
    (fam.Gamma(), lambda g: [-1 / g, 3.0]),
    (fam.InverseGamma(), lambda g: [np.log(0.2) - g, 0.2]),
    (fam.InverseGaussian(), lambda g: [2.0, 0.5 * (1 + g)]),
    (fam.Beta(), lambda g: [np.log(0.3) - g, np.log(0.7) - g]),
    (fam.Beta(), lambda g: [-1 / g, -g]),
    (fam.Dirichlet(4), lambda g: np.log([0.1, 0.2, 0.3, 0.4]) - g),
    (fam.Dirichlet(4), lambda g: [np.log(0.5) - g, np.log(0.5) - g, -0.1 / g, -0.1 / g]),
    (fam.Normal(), lambda g: [3.0, 9.0 * (1 + g)]),
    (fam.VonMises(), lambda g: [0.6 * (1 - g), 0.8 * (1 - g)]),
    (fam.VonMises(), lambda g: [g, 0.0]),
    (fam.VonMisesFisher(3), lambda g: [0.6 * (1 - g), 0.0, 0.8 * (1 - g)]),
]


@pytest.mark.parametrize(("family", "mean"), NEAR, ids=[f"{f}-{i}" for i, (f, _) in enumerate(NEAR)])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_to_natural_converges_near_the_boundary(family, mean, gap):
    mu = np.asarray(mean(gap), dtype=float)
    theta = family.to_natural(mu)
    assert np.all(family.in_domain(theta))
    back = family.to_mean(theta)
    # To the accuracy that float64 has at this mean: each coordinate to rounding, or to rounding of the gap itself.
    assert_allclose(back, mu, rtol=1e-12, atol=1e-12 * np.max(np.abs(mu)))
    if gap >= 1e-6:
        assert_allclose(family.to_natural(back), theta, rtol=1e-7)


OUTSIDE = [
    (fam.Bernoulli(), [1.0]),
    (fam.Bernoulli(), [-0.1]),
    (fam.Categorical(3), [0.5, 0.5]),
    (fam.Poisson(), [0.0]),
    (fam.Gamma(), [np.log(3.0), 3.0]),
    (fam.Gamma(), [np.log(3.0) + 1e-9, 3.0]),
    (fam.InverseGaussian(), [2.0, 0.5 * (1 - 1e-9)]),
    (fam.Dirichlet(2), np.log([0.5, 0.5]) + 1e-9),
    (fam.Normal(), [3.0, 9.0]),
    (fam.Normal(), [3.0, np.inf]),
    (fam.VonMises(), [0.6, 0.8 + 1e-9]),
    (fam.Product((fam.Poisson(), fam.Bernoulli())), [1.0, 1.0]),
]


@pytest.mark.parametrize(("family", "mu"), OUTSIDE, ids=[f"{f}-{i}" for i, (f, _) in enumerate(OUTSIDE)])
def test_a_mean_on_or_outside_the_boundary_is_refused_by_name(family, mu):
    with pytest.raises(DomainError, match="mean parameter of"):
        family.to_natural(np.asarray(mu))


def test_errors_name_the_culprit_and_its_place():
    theta = np.tile([2.0, -1.0], (10, 1))
    theta[7, 1] = 0.3
    with pytest.raises(DomainError, match=r"theta\[1\] < 0 \(minus the rate\); got \[2\.  0\.3\] at index \(7,\)"):
        fam.Gamma().log_partition(theta)
    with pytest.raises(DomainError, match=r"Gamma\(\) has no member with shape=-1\., rate=2"):
        fam.Gamma().natural(shape=-1.0, rate=2.0)
    with pytest.raises(DomainError, match="probabilities that are positive and add up to 1"):
        fam.Categorical(3).natural(probabilities=[0.5, 0.3, 0.3])
    with pytest.raises(ValueError, match="3 entries on the last axis"):
        fam.Categorical(3).natural(probabilities=[0.5, 0.5])
    with pytest.raises(TypeError, match=r"Gamma\.natural: missing a required argument: 'rate'"):
        fam.Gamma().natural(shape=1.0, scale=2.0)
    with pytest.raises(DomainError, match="NaN entries"):
        fam.Normal().log_prob([1.0, np.nan], [0.0, -0.5])
    with pytest.raises(DomainError, match=r"data of Gamma\(\) must have x > 0; got -1\.0 at index \(1,\)"):
        fam.Gamma().mle([1.0, -1.0])
    with pytest.raises(DomainError, match="x real; got nan"):
        fam.Normal().mle([1.0, np.nan])
    with pytest.raises(DomainError, match="observations on the first axis"):
        fam.Normal().mle(1.0)
    with pytest.raises(DomainError, match=r"shape \(\.\.\., 4\)"):
        fam.Dirichlet(4).mle(np.ones((5, 3)) / 3)


NO_ESTIMATE = [
    (fam.Bernoulli(), [0, 0, 0], "3 observations are failures"),
    (fam.Bernoulli(), [1, 1], "are successes"),
    (fam.Binomial(3), [3, 3], "are successes"),
    (fam.Categorical(4), [0, 1, 3, 3], "class 2 was never seen in 4 observations"),
    (fam.Multinomial(2, 3), [[1, 1, 0], [2, 0, 0]], "class 2 was never seen"),
    (fam.Geometric(), [0, 0], "counts are zero"),
    (fam.NegativeBinomial(2.0), [0], "counts are zero"),
    (fam.Poisson(), [0, 0], "all 2 counts are zero"),
    (fam.Exponential(), [0.0, 0.0], "statistic is zero"),
    (fam.Gamma(), [3.7, 3.7, 3.7], "observations are equal"),
    (fam.InverseGamma(), [0.1, 0.1], "observations are equal"),
    (fam.InverseGaussian(), [0.7, 0.7], "observations are equal"),
    (fam.Beta(), [0.3], "observations are equal"),
    (fam.Dirichlet(3), [[0.2, 0.3, 0.5]] * 4, "observations are equal"),
    (fam.Normal(), [1e9 + 0.1] * 7, "observations are equal"),
    (fam.Normal(), [5.0], "observations are equal"),
    (fam.LogNormal(), [2.2, 2.2], "observations are equal"),
    (fam.NormalKnownMean(2.0), [2.0, 2.0], "statistic is zero"),
    (fam.VonMises(), [0.4, 0.4, 0.4], "directions are equal"),
    (fam.VonMisesFisher(3), [[0.6, 0.0, 0.8]] * 3, "directions are equal"),
    (fam.Product((fam.Normal(), fam.Poisson())), ([1.0, 2.0], [0, 0]), r"in part 2 \(Poisson\(\)\), all 2 counts"),
]


@pytest.mark.parametrize(
    ("family", "x", "reason"), NO_ESTIMATE, ids=[f"{f}-{i}" for i, (f, _, _) in enumerate(NO_ESTIMATE)]
)
def test_where_no_estimate_exists_the_error_says_why_and_suggests_a_prior(family, x, reason):
    x = tuple(map(np.asarray, x)) if isinstance(x, tuple) else np.asarray(x)
    with pytest.raises(NoEstimateError, match=reason) as caught:
        family.mle(x)
    assert "A prior makes one" in str(caught.value)
    # And it does.
    prior = fam.ConjugatePrior(mean=family.to_mean(cases.member(family, 0)), strength=0.5)
    assert np.all(family.in_domain(family.map(x, prior)))


def test_one_bad_data_set_of_a_batch_is_named():
    x = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
    with pytest.raises(NoEstimateError, match=r"data set 1\): all 3 observations are equal"):
        fam.Normal().mle(x)


@pytest.mark.parametrize("family", [fam.Normal(), fam.Gamma(), fam.InverseGaussian()], ids=str)
def test_estimates_do_not_cancel_when_the_mean_is_far_from_the_spread(family):
    """A spread of 1e-7 relative to the mean: the naive mean of x^2 has no digit left."""
    z = np.random.default_rng(0).normal(size=1000)
    x = 1e3 * (1 + 1e-7 * (z - z.mean()) / z.std())
    usual = family.usual(family.mle(x))
    stream = fam.StreamingMAP(family)
    for batch in np.split(x, 20):
        stream = stream.update(batch)
    streamed = family.usual(stream.theta)
    variance = {"Normal": lambda u: u["variance"], "Gamma": lambda u: u["shape"] / u["rate"] ** 2}.get(
        type(family).__name__, lambda u: u["mean"] ** 3 / u["shape"]
    )
    # Inputs are rounded at 1e-16 relative to x, which is 1e-9 of the spread.
    assert_allclose(variance(usual), 1e-8, rtol=1e-6)
    assert_allclose(variance(streamed), 1e-8, rtol=1e-6)


def test_gamma_and_dirichlet_agree_with_a_generic_optimiser():
    rng = np.random.default_rng(1)
    x = rng.gamma(2.3, 1.7, size=2000)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    usual = fam.Gamma().usual(fam.Gamma().mle(x))
    assert_allclose([usual["shape"], 1 / usual["rate"]], [shape, scale], rtol=1e-4)
    y = rng.dirichlet([0.7, 2.0, 5.0], size=1500)
    family = fam.Dirichlet(3)

    def loss(log_a):
        return -np.mean(stats.dirichlet(np.exp(log_a)).logpdf(y.T))

    best = optimize.minimize(loss, np.zeros(3), tol=1e-12)
    assert_allclose(family.mle(y), np.exp(best.x), rtol=1e-4)
    assert -np.mean(family.log_prob(y, family.mle(y))) <= best.fun + 1e-12


def test_weights_count_observations():
    family = fam.Gamma()
    x, weights = np.array([1.0, 2.0, 5.0]), np.array([2.0, 0.0, 3.0])
    assert_allclose(family.mle(x, weights), family.mle([1.0, 1.0, 5.0, 5.0, 5.0]), rtol=1e-12)
    assert family.collect(x, weights).count == 5.0
    for bad in ([1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [np.inf, 1.0, 1.0], [np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match="weights must be"):
            family.mle(x, bad)
    with pytest.raises(ValueError, match="one entry per observation"):
        family.mle(x, [1.0, 2.0])


def test_statistics_add_up_and_only_with_their_own_kind():
    family = fam.Normal()
    x = np.random.default_rng(2).normal(3.0, 2.0, size=100)
    parts = [family.collect(piece) for piece in np.split(x, 10)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.count == 100
    assert_allclose(total.sum, [x.sum(), (x**2).sum()], rtol=1e-13)
    with pytest.raises(ValueError, match="do not add up"):
        total + fam.Gamma().collect([1.0, 2.0])


def test_the_posterior_mean_of_the_mean_parameter_is_the_map_mean():
    """E grad A(theta) = mu under the conjugate density in theta (Diaconis and Ylvisaker 1979), by numerical
    integration.

    The posterior is formed from prior times likelihood, pointwise, and integrated: nothing of `posterior` is used.
    """
    data = {fam.Poisson(): [2.0, 0.0, 3.0], fam.Bernoulli(): [1.0, 0.0, 1.0, 1.0], fam.Exponential(): [0.5, 2.0, 1.0]}
    for family, x in data.items():
        prior = fam.ConjugatePrior(mean=[0.7], strength=2.0)
        low, high = (-40.0, -1e-12) if isinstance(family, fam.Exponential) else (-30.0, 30.0)
        grid = np.linspace(low, high, 400_001)[:, None]
        logs = prior.log_density(family, grid) + sum(family.log_prob(np.float64(v), grid) for v in x)
        density = np.exp(logs - logs.max())
        mean = integrate.simpson(density * family.to_mean(grid)[:, 0], x=grid[:, 0]) / integrate.simpson(
            density, x=grid[:, 0]
        )
        expected = (2.0 * 0.7 + np.sum(x)) / (2.0 + len(x))
        assert_allclose(mean, expected, rtol=1e-6)
        assert_allclose(family.to_mean(family.map(x, prior)), [expected], rtol=1e-12)
        posterior = prior.posterior(family.collect(x))
        assert_allclose(posterior.mean, [expected], rtol=1e-12)
        assert posterior.strength == 2.0 + len(x)
        # The mode of the density on the grid is the MAP, up to the grid's step.
        assert abs(grid[np.argmax(logs), 0] - family.map(x, prior)[0]) <= 2 * (high - low) / 400_000


def test_priors_are_checked():
    with pytest.raises(ValueError, match="strength of a prior"):
        fam.ConjugatePrior(mean=[1.0], strength=-1.0)
    with pytest.raises(DomainError, match="mean parameter of"):
        fam.Poisson().map([1, 2], fam.ConjugatePrior(mean=[-1.0], strength=1.0))
    with pytest.raises(DomainError, match="must have 1 entries"):
        fam.Poisson().map([1, 2], fam.ConjugatePrior(mean=[1.0, 2.0], strength=1.0))
    x = [1.0, 2.0, 4.0]
    assert_allclose(
        fam.Gamma().map(x, fam.ConjugatePrior(mean=[0.0, 2.0], strength=0.0)), fam.Gamma().mle(x), rtol=1e-12
    )


def test_streams_join_under_one_prior_and_start_from_it():
    family, prior = fam.Poisson(), fam.ConjugatePrior(mean=[2.0], strength=1.0)
    empty = fam.StreamingMAP(family, prior)
    assert_allclose(empty.theta, family.to_natural([2.0]))
    assert empty.count == 0
    one, two = empty.update([1, 3]), empty.update([8])
    assert_allclose((one + two).mu, [(2 + 12) / 4])
    assert_allclose((one + empty).theta, one.theta)
    with pytest.raises(ValueError, match="one prior"):
        one + fam.StreamingMAP(family).update([1])
    with pytest.raises(NoEstimateError, match="nothing to estimate from"):
        fam.StreamingMAP(family).theta  # noqa: B018


def test_ten_thousand_single_updates_equal_the_batch_to_1e_12():
    family, rng = fam.Exponential(), np.random.default_rng(3)
    x = rng.exponential(2.0, size=10_000)
    prior = fam.ConjugatePrior(mean=[1.0], strength=3.0)
    mu = np.array([1.0])
    for n, value in enumerate(x, start=1):
        mu = mu - (mu - value) / (3.0 + n)
    batch = family.to_mean(family.map(x, prior))
    assert_allclose(mu, batch, rtol=1e-12)
    stream = fam.StreamingMAP(family, prior)
    for value in x[:300]:
        stream = stream.update([value])
    assert_allclose(stream.mu, family.to_mean(family.map(x[:300], prior)), rtol=1e-12)
    assert_allclose(family.map(x[::-1], prior), family.map(x, prior), rtol=1e-12)


def test_standard_errors_are_those_of_repeated_sampling():
    family = fam.Gamma()
    theta = family.natural(shape=3.0, rate=2.0)
    n, repeats = 400, 2000
    draws = family.sample(np.tile(theta, (repeats, 1)), n, rng=4)
    fits, one = family.mle(draws), family.estimate(draws[:, 0])
    spread = fits.std(axis=0)
    expected = np.sqrt(np.diag(np.linalg.inv(family.fisher(theta))) / n)
    assert_allclose(spread, expected, rtol=0.08)
    assert_allclose(one.standard_errors, expected, rtol=0.25)
    # Coverage of the 90% intervals over the repeats, for the natural and for the usual parameters (binomial, 4 s.e. +
    # 1% bias).
    with jax.enable_x64(True):
        fisher = np.asarray(family.fisher(jnp.asarray(fits)))
    errors = np.sqrt(np.diagonal(np.linalg.inv(fisher), axis1=1, axis2=2) / n)
    covered = np.mean(np.abs(fits - theta) <= stats.norm.ppf(0.95) * errors, axis=0)
    assert np.all(np.abs(covered - 0.9) < 4 * np.sqrt(0.09 / repeats) + 0.01)


def test_an_estimate_reads_like_a_statisticians():
    family = fam.Normal()
    x = np.arange(10.0)
    estimate = family.estimate(x)
    assert estimate.count == 10
    assert_allclose(estimate.usual["mean"], 4.5)
    assert_allclose(estimate.usual_standard_errors["mean"], np.sqrt(8.25 / 10))
    assert_allclose(estimate.usual_standard_errors["variance"], 8.25 * np.sqrt(2 / 10))
    half = stats.norm.ppf(0.975) * np.sqrt(8.25 / 10)
    assert_allclose(estimate.usual_interval(0.95)["mean"], [4.5 - half, 4.5 + half])
    assert estimate.interval(0.95).shape == (2, 2)
    assert np.all(estimate.interval(0.99)[:, 0] < estimate.interval(0.9)[:, 0])
    assert_allclose(estimate.log_likelihood, stats.norm(4.5, np.sqrt(8.25)).logpdf(x).sum())
    assert "mean = 4.5 ± 0.91" in str(estimate)
    with pytest.raises(ValueError, match="level must be"):
        estimate.interval(1.5)
    prior = fam.ConjugatePrior(mean=family.to_mean(family.natural(mean=0.0, variance=1.0)), strength=10.0)
    shrunk = family.estimate(x, prior=prior)
    assert_allclose(shrunk.usual["mean"], 2.25)
    assert_allclose(shrunk.theta, family.map(x, prior))
    batch = fam.Poisson().estimate(np.array([[1, 2], [3, 5]]))
    assert batch.standard_errors.shape == (2, 1)


def test_a_family_of_ones_own_needs_only_its_cumulant():
    """A user's family without closed forms: the truncated geometric on {0, ..., 9}, solved by the general Newton."""
    from cumulant.families.base import ExponentialFamily, family

    @family
    class TruncatedGeometric(ExponentialFamily):
        dim = 1
        support = "x in {0, ..., 9}"
        mean_domain = "0 < mu < 9"
        discrete = True

        def statistics(self, x):
            return x[..., None]

        def log_base(self, x):
            return jnp.zeros_like(x)

        def log_partition(self, theta):
            return jax.scipy.special.logsumexp(theta * jnp.arange(10.0), axis=-1)

        def expected_log_base(self, theta):
            return jnp.zeros_like(theta[..., 0])

        def in_mean_domain(self, mu):
            return (mu[..., 0] > 0) & (mu[..., 0] < 9)

        def in_support(self, x):
            return (x >= 0) & (x <= 9) & (x == jnp.floor(x))

    mine = TruncatedGeometric()
    mu = np.array([[1e-6], [0.5], [4.5], [8.0], [9 - 1e-6]])
    theta = mine.to_natural(mu)
    assert_allclose(mine.to_mean(theta), mu, rtol=1e-9)
    assert_allclose(theta[2], 0.0, atol=1e-9)
    x = [0.0, 1.0, 1.0, 5.0]
    p = np.exp(mine.mle(x) * np.arange(10))
    assert_allclose(np.sum(p * np.arange(10)) / p.sum(), np.mean(x))
    with pytest.raises(DomainError, match="0 < mu < 9"):
        mine.to_natural([9.5])
    with pytest.raises(NotImplementedError, match="TruncatedGeometric must define natural"):
        mine.natural(a=1.0)
