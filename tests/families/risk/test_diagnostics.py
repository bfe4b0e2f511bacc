"""The constants that analyses of stochastic mirror descent need, and what they then say about a run."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad
from scipy.stats import chi2

from cumulant.families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    GammaKnownShape,
    Geometric,
    InverseGaussian,
    Multinomial,
    NegativeBinomial,
    Normal,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
    risk,
)
from cumulant.families.risk import analyses, gamma_spread
from cumulant.families.special import log_minus_digamma


def test_published_values_of_the_variance_condition():
    found = risk.smd_assumption_gamma("variance", [1.0, 0.1, 0.01, 1e-3, 1e-4], 0.1, 0.5)
    assert_allclose(found, [0.765, 17.5, 132, 569, 1992], rtol=2e-3)
    assert risk.smd_assumption_gamma("variance", 0.0, 0.1, 0.5) == np.inf
    # For alpha > 1 one step is bounded, by alpha/(alpha - 1)/gamma^2 at mu = 0, which explodes as the step shrinks.
    assert_allclose(risk.smd_assumption_gamma("variance", 0.0, [0.1, 0.01], 3.0), [150, 15000])
    assert_allclose(risk.smd_assumption_gamma("variance", 1e-9, 0.1, 3.0), 150, rtol=1e-6)


def test_published_values_of_the_condition_at_the_optimum():
    found = risk.smd_assumption_gamma("optimum", [1.0, 0.5, 0.21, 0.199, 0.0], 0.1, 0.5)
    assert_allclose(found, [0.7348, 2.610, 20.11, np.inf, np.inf], rtol=3e-4)
    assert np.isfinite(risk.smd_assumption_gamma("optimum", 0.2, 0.1, 0.5))  # on the edge: still E log T


def test_both_conditions_against_plain_quadrature():
    mu, gamma = 0.7, 0.15
    law = chi2(1)  # T = x^2 with variance one

    def mean(f):  # in g = sqrt(T), where the density is smooth
        return 2 * quad(lambda g: f(g * g) * np.exp(-g * g / 2) / np.sqrt(2 * np.pi), 0, 12, epsabs=1e-13, limit=200)[0]

    assert_allclose(mean(lambda t: t), law.mean(), rtol=1e-10)
    centre = (1 - gamma) * mu + gamma
    moved = lambda t: (1 - gamma) * mu + gamma * t  # noqa: E731
    variance = mean(lambda t: 0.5 * (moved(t) - centre) * (1 / centre - 1 / moved(t))) / gamma**2
    phi = lambda z: z - 1 - np.log(z)  # noqa: E731
    optimum = mean(lambda t: 0.5 * phi((mu + 2 * gamma * (t - 1)) / mu)) / (2 * gamma**2)
    assert_allclose(risk.smd_assumption_gamma("variance", mu, gamma, 0.5), variance, rtol=1e-9)
    assert_allclose(risk.smd_assumption_gamma("optimum", mu, gamma, 0.5), optimum, rtol=1e-9)


def test_the_condition_of_a_normal_against_plain_quadrature():
    for v in (1.0, 0.01):
        centre = 0.9 * v + 0.1

        def integrand(x, v=v, centre=centre):
            variance = 0.9 * v + 0.1 * x * x - (0.1 * x) ** 2
            apart = 0.1 * x * (0.1 * x / variance) + 0.1 * (x * x - 1) * (0.5 / centre - 0.5 / variance)
            return apart / 0.01 * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)

        expected = quad(integrand, -12, 12, limit=500, points=[0])[0]
        assert_allclose(risk.smd_assumption(Normal(), [0.0, -0.5], "variance", [0.0, v], 0.1), expected, rtol=1e-9)


def test_small_steps_lose_no_digits():
    # As gamma -> 0 both constants tend to alpha Var(T)/mu^2 = 1 at mu = mu*: each is a half second derivative.
    for kind in ("variance", "optimum"):
        assert_allclose(risk.smd_assumption_gamma(kind, 1.0, [1e-4, 1e-8], 0.5), 1.0, rtol=1e-3)


def test_other_families():
    normal = NormalKnownVariance(2.0)
    assert risk.smd_assumption(normal, [0.3], "variance", [5.0], 0.1) == 1.0
    family = Categorical(3)
    theta, mu, gamma = family.natural(probabilities=[0.5, 0.3, 0.2]), np.array([0.3, 0.3]), 0.1
    p, full = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    total_variance = total_optimum = 0.0
    for k in range(3):
        one = np.eye(3)[k]
        a, b = (1 - gamma) * full + gamma * one, (1 - gamma) * full + gamma * p
        total_variance += p[k] * np.sum((a - b) * (np.log(a) - np.log(b)))
        c = full + 2 * gamma * (one - p)
        total_optimum += p[k] * np.sum(c * np.log(c / full))
    assert_allclose(risk.smd_assumption(family, theta, "variance", mu, gamma), total_variance / gamma**2, rtol=1e-10)
    assert_allclose(
        risk.smd_assumption(family, theta, "optimum", mu, gamma), total_optimum / (2 * gamma**2), rtol=1e-10
    )
    assert risk.smd_assumption(family, theta, "optimum", [0.05, 0.5], gamma) == np.inf
    bernoulli = Bernoulli()
    assert np.isfinite(risk.smd_assumption(bernoulli, [0.2], "variance", [0.4], 0.2))
    assert risk.smd_assumption(bernoulli, [0.2], "optimum", [0.1], 0.2) == np.inf
    assert risk.smd_assumption(NormalKnownMean(), [-0.5], "gap", [1.0], 0.1) == risk.gap_constant(
        NormalKnownMean(), [-0.5]
    )


def test_gap_constants():
    assert_allclose(risk.gap_constant(NormalKnownMean(), [-3.0]), 0.635181, rtol=1e-6)
    assert_allclose(risk.gap_constant(Exponential(), [-1.0]), 0.577216, rtol=1e-6)
    family = Categorical(3)
    theta = family.natural(probabilities=[0.5, 0.3, 0.2])
    assert_allclose(risk.gap_constant(family, theta), family.entropy(theta), rtol=1e-12)
    assert risk.gap_constant(Normal(), [0.0, -0.5]) == np.inf
    assert risk.gap_constant(Gamma(), [1.0, -1.0]) == np.inf
    assert risk.gap_constant(NormalKnownVariance(2.0), [1.0], batch=4) == 0.125


@pytest.mark.parametrize("batch", [1, 2, 10])
@pytest.mark.parametrize(
    ("family", "theta"),
    [
        (GammaKnownShape(0.7), [-2.0]),
        (Categorical(3), [0.9, 0.4]),
        (Bernoulli(), [0.4]),
        (Poisson(), [0.5]),
        (Normal(), [0.3, -0.4]),
    ],
    ids=str,
)
def test_gap_constants_are_the_mean_drop_of_the_conjugate(family, theta, batch):
    if batch < risk.gap_batch(family):
        assert risk.gap_constant(family, theta, batch) == np.inf
        return
    draws = risk.sample_mean_statistic(family, theta, batch, 100_000, rng=batch)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(_conjugate(family, draws))
    start = float(family.conjugate(family.to_mean(np.asarray(theta))))
    error = np.std(values) / np.sqrt(values.size)
    assert abs(values.mean() - start - risk.gap_constant(family, theta, batch)) < 4 * error + 1e-12


def _conjugate(family, mu):
    """A* on the closure of the mean domain, where 0 log 0 = 0."""
    if isinstance(family, Poisson):
        return np.where(mu > 0, mu * np.log(np.where(mu > 0, mu, 1.0)) - mu, 0.0)[:, 0]
    if isinstance(family, Categorical | Bernoulli):
        p = np.column_stack([mu, 1 - mu.sum(axis=1)]).clip(0)
        return np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=1)
    return family.conjugate(mu)


def test_larger_batches_shrink_the_gap_like_half_the_dimension_over_the_batch():
    k = 2000
    for family, theta in (
        (Exponential(), [-1.0]),
        (Categorical(4), [0.1, 0.2, 0.3]),
        (Normal(), [0.3, -0.4]),
        (Poisson(), [1.0]),
    ):
        assert_allclose(k * risk.gap_constant(family, theta, k), family.dim / 2, rtol=0.01)


def test_constant_steps_stay_within_the_gap():
    # mu_0 = 5 mu*, gamma = .1: E KL(p_n || p*) <= (1 - gamma)^n KL(p_0 || p*) + C.
    rng, trials, gamma, start = np.random.default_rng(0), 100_000, 0.1, 5.0
    phi = lambda y: 0.5 * (y - 1 - np.log(y))  # noqa: E731
    mu, seen = np.full(trials, start), {}
    for n in range(1, 101):
        mu = (1 - gamma) * mu + gamma * rng.chisquare(1, size=trials)
        seen[n] = phi(mu)
    checked = [1, 10, 50, 100]
    mean = np.array([seen[n].mean() for n in checked])
    error = np.array([seen[n].std() for n in checked]) / np.sqrt(trials)
    published = np.array([1.037, 0.264, 0.0247, 0.0258])
    assert np.all(np.abs(mean - published) < 4 * error + [5e-4, 5e-4, 5e-5, 5e-5])
    bound = (1 - gamma) ** np.array(checked) * phi(start) + risk.gap_constant(NormalKnownMean(), [-0.5])
    assert_allclose(bound, [1.711, 1.052, 0.641, 0.635], atol=6e-4)
    assert np.all(mean + 3 * error <= bound)


@pytest.mark.parametrize("alpha", [0.2, 0.5, 1.0, 3.0])
def test_the_table(alpha):
    """Every column is computed: as in table 5.1 of Le Priol (2021), and better where the inequality on one step is."""
    rows = {
        a.name: (a.holds, a.vanishes, a.on_objective, a.last_iterate) for a in risk.smd_analyses(GammaKnownShape(alpha))
    }
    assert rows == {
        "variance": (False, True, True, True),
        "optimum": (False, True, True, True),
        "gap": (True, False, False, True),
    }


def test_the_table_notices_what_is_false(monkeypatch):
    """With a tenth of the constants no inequality on one step holds; with constants of 1/step nothing vanishes."""
    constant, gap = analyses.smd_assumption_gamma, analyses.gap_constant
    monkeypatch.setattr(analyses, "smd_assumption_gamma", lambda *given: 0.1 * constant(*given))
    monkeypatch.setattr(analyses, "gap_constant", lambda *given: 0.1 * gap(*given))
    assert not any(a.last_iterate or a.on_objective for a in risk.smd_analyses())
    monkeypatch.setattr(analyses, "smd_assumption_gamma", lambda kind, r, step, a: constant(kind, r, 0.1, a) / step)
    assert not any(a.vanishes for a in risk.smd_analyses())
    monkeypatch.setattr(analyses, "smd_assumption_gamma", lambda kind, r, step, a: np.ones(np.shape(r))[()])
    assert all(a.holds and np.isfinite(a.constant) for a in risk.smd_analyses())


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_one_step_of_the_table_against_plain_quadrature(alpha):
    ratio, gamma = np.array([0.05, 1.0, 20.0]), 0.3
    F, D, new_F, new_D = analyses._one_step(ratio, gamma, alpha)
    phi = lambda z: alpha * (z - 1 - np.log(z))  # noqa: E731
    assert_allclose(F, phi(1 / ratio), rtol=1e-12)
    assert_allclose(D, phi(ratio), rtol=1e-12)
    root = np.sqrt(stats.gamma(alpha, scale=1 / alpha).ppf(1 - 1e-16))

    def mean(f):  # of T = g^2, where the density of g is smooth
        density = lambda g: 2 * g * stats.gamma(alpha, scale=1 / alpha).pdf(g * g)  # noqa: E731
        return quad(lambda g: f(g * g) * density(g), 1e-12, root, epsabs=1e-12, limit=200)[0]

    for k, r in enumerate(ratio):
        assert_allclose(new_D[k], mean(lambda t, r=r: phi((1 - gamma) * r + gamma * t)), rtol=1e-7)
        assert_allclose(new_F[k], mean(lambda t, r=r: phi(1 / ((1 - gamma) * r + gamma * t))), rtol=1e-7)


@pytest.mark.parametrize("grown", ["f", "divergence"])
def test_each_inequality_of_the_table_needs_what_is_left_after_the_step(monkeypatch, grown):
    """Were it half as much again, or three times, no average of ``f`` would be bounded, nor the last divergence."""
    one_step = analyses._one_step

    def larger(*given):
        F, D, new_F, new_D = one_step(*given)
        return (F, D, 3 * new_F, new_D) if grown == "f" else (F, D, new_F, 1.5 * new_D)

    monkeypatch.setattr(analyses, "_one_step", larger)
    rows = {a.name: a for a in risk.smd_analyses()}
    for name in ("variance", "optimum"):
        assert (rows[name].on_objective, rows[name].last_iterate) == (False, grown == "f")


def test_the_variance_condition_bounds_the_last_iterate_too():
    """``(1 - gamma) D - E D' + S = (1 - gamma) E Breg(mu; mu') + gamma E F'``, an identity on any step."""
    family, truth = Poisson(), np.array([1.3])
    counts = np.arange(60.0)
    mass = np.exp(family.log_prob(counts, family.to_natural(truth)))
    for gamma, mu in ((0.05, 0.4), (0.5, 2.0), (0.9, 7.0)):
        moved = ((1 - gamma) * mu + gamma * counts)[:, None]

        def divergence(first, second):
            return family.bregman_conjugate(*np.broadcast_arrays(first, second))

        D, new_D = divergence([[mu]], truth)[0], mass @ divergence(moved, truth)
        S = gamma**2 * risk.smd_assumption(family, family.to_natural(truth), "variance", [mu], gamma)
        right = (1 - gamma) * mass @ divergence([[mu]], moved) + gamma * mass @ divergence(truth, moved)
        assert_allclose((1 - gamma) * D - new_D + S, right, rtol=1e-9)


SIMPLE = [
    (Poisson(), [0.3]),
    (Binomial(7), [0.4]),
    (Multinomial(6, 3), [0.3, -0.2]),
    (Geometric(), [-0.5]),
    (NegativeBinomial(2.5), [-0.7]),
    (Normal(), [0.3, -0.4]),
    (Gamma(), [1.3, -2.0]),
    (Beta(), [1.2, 0.7]),
    (InverseGaussian(), [-1.0, -2.0]),
]


@pytest.mark.parametrize(("family", "theta"), SIMPLE, ids=[str(f) for f, _ in SIMPLE])
def test_constants_of_every_family_against_simulation(family, theta):
    theta = np.asarray(theta)
    mu = np.asarray(family.to_mean(1.2 * theta))
    for kind in ("variance", "optimum"):
        found = risk.monte_carlo_smd(family, theta, kind, mu, 0.2, trials=40_000, rng=3)
        exact = risk.smd_assumption(family, theta, kind, mu, 0.2)
        assert abs(found.value - exact) < 4 * found.standard_error
        assert found.standard_error < 0.05 * exact
    at_truth = family.to_mean(theta)
    for kind in ("variance", "optimum"):  # as steps vanish, E |T - mu*|_F^2 = d
        assert_allclose(risk.smd_assumption(family, theta, kind, at_truth, 1e-4), family.dim, rtol=5e-3)


@pytest.mark.parametrize(
    ("family", "theta"),
    [(Binomial(7), [0.4]), (Multinomial(6, 3), [0.3, -0.2]), (Geometric(), [-0.5]), (NegativeBinomial(2.5), [-0.7])],
    ids=str,
)
def test_gaps_of_counts_are_sums_over_the_total(family, theta):
    theta = np.asarray(theta)
    draws = risk.sample_mean_statistic(family, theta, 2, 200_000, rng=1)
    r = getattr(family, "successes", 0.0)
    xlogx = lambda x: np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)  # noqa: E731

    def conjugate(mu):
        if r:
            return (xlogx(mu) - xlogx(mu + r))[..., 0]
        rest = family.trials - mu.sum(axis=-1)
        return xlogx(mu).sum(axis=-1) + xlogx(np.maximum(rest, 0.0))

    values = conjugate(draws) - conjugate(np.asarray(family.to_mean(theta))[None])
    error = values.std() / np.sqrt(values.size)
    assert abs(values.mean() - risk.gap_constant(family, theta, 2)) < 4 * error
    assert risk.gap_batch(family) == 1
    assert_allclose(1000 * risk.gap_constant(family, theta, 1000), family.dim / 2, rtol=0.01)


def test_gaps_of_rare_counts_and_nearly_certain_classes():
    """Sums with 400 digits; they were NaN, infinite, or too small by a part in 10^5."""
    with mpmath.workdps(400):

        def xlogx(x):
            return x * mpmath.log(x) if x else mpmath.mpf(0)

        def binomial(theta):
            p, q = (1 / (1 + mpmath.exp(mpmath.mpf(sign * theta))) for sign in (-1, 1))
            law = [(mpmath.binomial(14, c) * p**c * q ** (14 - c), mpmath.mpf(c) / 2) for c in range(15)]
            return mpmath.fsum(m * (xlogx(x) + xlogx(7 - x)) for m, x in law) - xlogx(7 * p) - xlogx(7 * q)

        def poisson(theta):
            rate = mpmath.exp(mpmath.mpf(theta))
            law = [mpmath.exp(-2 * rate) * (2 * rate) ** c / mpmath.factorial(c) for c in range(40)]
            return mpmath.fsum(m * xlogx(mpmath.mpf(c) / 2) for c, m in enumerate(law)) - xlogx(rate)

        def waiting(theta):
            q = mpmath.exp(mpmath.mpf(theta))
            law = [mpmath.binomial(c + 4, c) * (1 - q) ** 5 * q**c for c in range(40)]
            mean = mpmath.mpf(5) / 2 * q / (1 - q)
            conjugate = lambda x: xlogx(x) - xlogx(x + mpmath.mpf(5) / 2)  # noqa: E731
            return mpmath.fsum(m * conjugate(mpmath.mpf(c) / 2) for c, m in enumerate(law)) - conjugate(mean)

        cases = [(Binomial(7), binomial, (-40.0, 40.0, 300.0)), (Poisson(), poisson, (-30.0, -300.0)),
                 (NegativeBinomial(2.5), waiting, (-40.0, -300.0))]  # fmt: skip
        for family, exact, thetas in cases:
            for theta in thetas:
                assert_allclose(risk.gap_constant(family, [theta], 2), float(exact(theta)), rtol=1e-11)
    assert risk.gap_constant(Multinomial(6, 3), [-800.0, 800.0]) == 0.0


@pytest.mark.parametrize("shape", [0.05, 2.0, 20.0])
def test_the_gap_of_a_gamma_with_two_draws_is_an_integral_over_a_beta(shape):
    """``4 x_1 x_2 / (x_1 + x_2)^2 = 4 B (1 - B)``, ``B ~ Beta(shape, shape)``; and between the two methods for many."""
    t = np.exp(np.linspace(-45, np.log(40 / shape + 3), 20_001))
    spread = np.where(t < 1e-4, t * t / 2, np.logaddexp(t, -t) - np.log(2))  # of B = (1 + tanh t) / 2
    weight = np.exp(-2 * shape * spread) * t
    at_truth = gamma_spread._conjugate(log_minus_digamma(np.array([shape])))
    expected = weight @ (gamma_spread._conjugate(spread) - at_truth) / weight.sum()
    assert_allclose(risk.gap_constant(Gamma(), [shape, -3.0], 2), expected, rtol=1e-8)
    s = np.geomspace(0.02, 5, 40) / shape
    contour, axis = gamma_spread._density(s, shape, 16), gamma_spread._density_of_many(s, shape, 16)
    assert_allclose(contour / contour.sum(), axis / axis.sum(), atol=1e-8)


def test_gaps_by_simulation():
    for family, theta in ((Gamma(), [1.3, -2.0]), (InverseGaussian(), [-1.0, -2.0])):
        for batch in (2, 20):
            found = risk.monte_carlo_smd(family, theta, "gap", batch=batch, trials=40_000, rng=2)
            assert abs(found.value - risk.gap_constant(family, theta, batch)) < 4 * found.standard_error
    assert risk.monte_carlo_smd(Beta(), [1.0, 2.0], "gap", trials=10).value == np.inf
    assert risk.gap_batch(Beta()) == 2
    with pytest.raises(NotImplementedError, match="monte_carlo_smd estimates it"):
        risk.gap_constant(Beta(), [1.0, 2.0], 2)
    with pytest.raises(ValueError, match="gap_constant sums"):
        risk.monte_carlo_smd(Poisson(), [0.0], "gap")


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="kind must be 'variance', 'optimum' or 'gap'; got 'noise'"):
        risk.smd_assumption(Exponential(), [-1.0], "noise", [1.0], 0.1)
    with pytest.raises(ValueError, match="gamma must be strictly between 0 and 1"):
        risk.smd_assumption(Exponential(), [-1.0], "variance", [1.0], 1.5)
    with pytest.raises(NotImplementedError, match="monte_carlo_smd estimates them"):
        risk.smd_assumption(Dirichlet(3), [1.0, 1.0, 1.0], "variance", [-2.0, -2.0, -2.0], 0.1)
    with pytest.raises(ValueError, match="mean parameter of Exponential"):
        risk.smd_assumption(Exponential(), [-1.0], "variance", [-1.0], 0.1)
