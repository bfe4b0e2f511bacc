"""Certificates of expected divergences against the truth, over random families, priors, parameters and sample sizes.

The truth is computed with 40 digits, another way: moments of gamma and chi-squared variables in closed form, integrals
and sums with mpmath.
"""

import mpmath as mp
import numpy as np
import pytest

import cumulant.families as fam
from cumulant.errors import CertificateError
from cumulant.families.risk import expected_kl

CASES = 400


def _phi(z):
    return z - 1 - mp.log(z)


def _log(rng, low, high):
    return float(10 ** rng.uniform(low, high))


def _gamma_type(rng):
    families = (
        fam.Exponential(),
        fam.NormalKnownMean(0.5),
        fam.LaplaceKnownCentre(),
        fam.Rayleigh(),
        fam.GammaKnownShape(_log(rng, -1, 2)),
        fam.WeibullKnownShape(1.5),
    )
    family = families[rng.integers(len(families))]
    theta, n = np.array([-_log(rng, -6, 6)]), int(rng.integers(1, 40))
    alpha, mean = mp.mpf(family.alpha), float(family.to_mean(theta)[0])
    if rng.random() < 0.5:
        p = n * alpha
        return family, theta, n, None, alpha * (1 / (p - 1) + mp.digamma(p) - mp.log(p)) if p > 1 else mp.inf
    strength, prior_mean = _log(rng, -2, 3), mean * _log(rng, -2, 2)
    p, n0, r = n * alpha, mp.mpf(strength), mp.mpf(prior_mean) / mp.mpf(mean)

    def integrand(t):  # W = p exp(t) is Gamma(p, 1)
        z = (n0 + n) / (n0 * r + n * mp.exp(t))
        return alpha * _phi(z) * mp.exp(p * mp.log(p) + p * t - p * mp.exp(t) - mp.loggamma(p))

    width = 60 / mp.sqrt(p) if p > 1 else 60 / p
    ends = [-width, -width / 4, -width / 16, 0, mp.log1p(30 / p) / 4, mp.log1p(30 / p), mp.log1p(200 / p)]
    return family, theta, n, fam.ConjugatePrior([prior_mean], strength), mp.quad(integrand, ends)


def _normal(rng):
    """Maximum likelihood, where the sample mean and the scatter are independent."""
    size, n = int(rng.integers(1, 5)), int(rng.integers(2, 60))
    root = rng.normal(size=(size, size)) * _log(rng, -3, 3)
    covariance, mean = root @ root.T, rng.normal(size=size) * _log(rng, -3, 3)
    lost = int(rng.integers(2))
    if lost:
        family: fam.ExponentialFamily = fam.MultivariateNormal(size)
        theta = family.natural(mean=mean, covariance=covariance)
    else:
        family = fam.MultivariateNormalKnownMean(mean)
        theta = family.natural(covariance=covariance)
    free = n - lost - size - 1
    if free <= 0:
        return family, theta, n, None, mp.inf
    inverse = mp.mpf(size * n) / free  # E trace S_n^-1 for a covariance of one
    logs = sum(mp.digamma(mp.mpf(n - lost - i) / 2) for i in range(size)) + size * mp.log(mp.mpf(2) / n)
    return family, theta, n, None, (inverse * (1 + mp.mpf(lost) / n) - size + logs) / 2


def _independent(rng):
    size, n = int(rng.integers(1, 6)), int(rng.integers(2, 60))
    mean, shared = rng.normal(size=size) * _log(rng, -3, 3), rng.random() < 0.5
    k = size if shared else 1  # coordinates of one variance, v_n = v chi2_{k (n - 1)} / (k n)
    if shared:
        family: fam.ExponentialFamily = fam.MultivariateNormalIsotropic(size)
        theta = family.natural(mean=mean, variance=_log(rng, -6, 6))
    else:
        family = fam.MultivariateNormalDiagonal(size)
        theta = family.natural(mean=mean, variances=10 ** rng.uniform(-6, 6, size))
    degrees = mp.mpf(k * (n - 1))
    if degrees <= 2:
        return family, theta, n, None, mp.inf
    inverse, logs = k * n / (degrees - 2), mp.digamma(degrees / 2) + mp.log(mp.mpf(2) / (k * n))
    return family, theta, n, None, mp.mpf(size) / 2 * (inverse * (1 + mp.mpf(1) / n) - 1 + logs)


def _quadratic(rng):
    n, strength, variance = int(rng.integers(1, 100)), _log(rng, -3, 3), _log(rng, -6, 6)
    family, mean, prior_mean = fam.NormalKnownVariance(variance), *rng.normal(size=2) * _log(rng, -3, 3)
    theta = family.natural(mean=mean)
    off = mp.mpf(prior_mean) - mp.mpf(float(theta[0])) * mp.mpf(variance)
    n0, v = mp.mpf(strength), mp.mpf(variance)
    truth = (v * n + (n0 * off) ** 2) / (2 * v * (n + n0) ** 2)
    return family, theta, n, fam.ConjugatePrior([prior_mean], strength), truth


def _classes(rng):
    """``E sum_k p_k log(p_k / q_k)`` over binomial counts."""
    size, n, trials = int(rng.integers(2, 5)), int(rng.integers(1, 12)), int(rng.integers(1, 4))
    p, q = rng.dirichlet(np.full(size, 0.7), 2) + 1e-6
    p, q = p / p.sum(), q / q.sum()
    strength = _log(rng, -2, 2)
    if size == 2:
        family: fam.ExponentialFamily = fam.Binomial(trials)
        theta = family.natural(probability=p[0])
    else:
        family = fam.Multinomial(trials, size)
        theta = family.natural(probabilities=p)
    mean, prior_mean = np.asarray(family.to_mean(theta)) / trials, q[:-1]
    n0, total, truth = mp.mpf(strength) * trials, n * trials, mp.mpf(0)
    true = [*map(mp.mpf, map(float, mean))]
    prior = [*map(mp.mpf, map(float, prior_mean))]
    for a, b in zip([*true, 1 - sum(true)], [*prior, 1 - sum(prior)], strict=True):
        for x in range(total + 1):
            mass = mp.binomial(total, x) * a**x * (1 - a) ** (total - x)
            truth += mass * a * mp.log(a * (n0 + total) / (n0 * b + x))
    return family, theta, n, fam.ConjugatePrior(trials * prior_mean, strength), trials * truth


def _poisson(rng):
    family, n = fam.Poisson(), int(rng.integers(1, 20))
    theta, strength = np.array([rng.uniform(-3, 2)]), _log(rng, -2, 2)
    rate = mp.exp(mp.mpf(float(theta[0])))
    prior_mean = float(rate) * _log(rng, -2, 2)
    n0, mean, mass, truth = mp.mpf(strength), n * rate, mp.exp(-n * rate), mp.mpf(0)
    for x in range(int(mean + 40 * mp.sqrt(mean) + 80)):
        truth += mass * rate * _phi((n0 * mp.mpf(prior_mean) + x) / ((n0 + n) * rate))
        mass *= mean / (x + 1)
    return family, theta, n, fam.ConjugatePrior([prior_mean], strength), truth


@pytest.mark.slow
def test_no_risk_certificate_is_contradicted_by_the_truth():
    rng, makers = np.random.default_rng(0), (_gamma_type, _normal, _independent, _quadratic, _classes, _poisson)
    issued = dict.fromkeys(("exact", "upper bound"), 0)
    wrong = []
    with mp.workdps(40):
        for k in range(CASES):
            family, theta, n, prior, truth = makers[k % len(makers)](rng)
            for method in issued:
                try:
                    risk = expected_kl(family, theta, n, prior, method)
                except (NotImplementedError, CertificateError):
                    continue
                if risk.certificate is None:
                    assert not np.isfinite(risk.value)
                    assert method != "exact" or mp.isinf(truth)
                    continue
                issued[method] += 1
                certificate = risk.certificate
                above = truth > certificate.upper
                below = method == "exact" and truth < certificate.bound - certificate.slack
                if above or below:
                    wrong.append((str(family), theta, n, prior, method, certificate.upper, mp.nstr(truth, 20)))
                assert certificate.verify(risk.subject).upper == certificate.upper
    assert not wrong, f"{len(wrong)} of {issued}: {wrong[:5]}"
    assert issued["exact"] > 250
    assert issued["upper bound"] > 50
    print(f"certificates issued and true: {issued}")
