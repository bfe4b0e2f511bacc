"""Learning a family of which only the statistic and a sampler are known: closed forms, and lies about the sampler."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import brentq

from cumulant.errors import CertificateError
from cumulant.families import FiniteFamily, SampledFamily
from cumulant.graphical import MCMC, FastMixing, SamplingPlan, fit, replay


def draw_coins(theta, n, rng):
    return rng.random((n, theta.size)) < 1 / (1 + np.exp(-theta))


def as_numbers(x):
    return np.asarray(x, dtype=np.float64)


COINS = SampledFamily(2, as_numbers, draw_coins, radius=0.5**0.5)


def best(mean, l2):
    return np.array([brentq(lambda t, m=m: 1 / (1 + np.exp(-t)) - m + l2 * t, -50, 50) for m in mean])


def test_two_coins_are_as_near_as_certified():
    data = np.random.default_rng(0).random((100, 2)) < [0.8, 0.3]
    found = fit(data, COINS, method=MCMC(eps=0.2), l2=0.5, rng=0)
    truth = best(data.mean(axis=0), 0.5)
    assert np.linalg.norm(found.model.theta - truth) <= found.certificate.upper <= 0.2
    assert found.status == "converged"
    assert {a.text for a in found.certificate.assumptions if a.status == "assumed"} == {
        "draws of the sampler are independent and near to the model",
        "|T(x) - c| <= radius for every x",
    }
    found.certificate.verify(found.subject)
    assert (replay(found).path == found.path).all()
    assert found.model.sample(5, rng=0).shape == (5, 2)
    same = fit(data.mean(axis=0), COINS, method=MCMC(eps=0.2), l2=0.5, rng=0)
    assert (same.model.theta == found.model.theta).all()


def test_a_bias_of_the_sampler_is_paid_for():
    """With probability 0.1 a draw is heads, whatever theta is: 0.1 from the model in total variation."""

    def biased(theta, n, rng):
        return draw_coins(theta, n, rng) | (rng.random((n, 1)) < 0.1)

    family = SampledFamily(1, as_numbers, biased, radius=0.5, total_variation=0.1)
    method = MCMC(plan=SamplingPlan(60, 20_000, 1))
    found = fit([0.5], family, method=method, l2=1.0, rng=0)
    exact = fit([0.5], dataclasses.replace(family, total_variation=0.0), method=method, l2=1.0, rng=0)
    assert found.certificate.bound == exact.certificate.bound + 2 * 0.5 * 0.1
    distance = abs(found.model.theta - best([0.5], 1.0))[0]
    assert distance <= found.certificate.upper
    with pytest.raises(CertificateError, match="bias of the sampler"):
        fit([0.5], family, method=MCMC(eps=0.09), l2=1.0, rng=0)


def test_a_finite_family_with_its_own_sampler():
    T = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    finite = FiniteFamily(T)

    def draw(theta, n, rng):
        return rng.choice(4, n, p=np.asarray(finite.usual(theta)["probabilities"]))

    family = SampledFamily(2, lambda x: T[x], draw, finite.statistics_radius())
    mean = np.array([1.1, 0.9])
    found = fit(mean, family, method=MCMC(plan=SamplingPlan(200, 500, 1)), l2=1.0, rng=1)
    gradient = np.asarray(finite.to_mean(found.model.theta)) - mean + found.model.theta
    assert np.linalg.norm(gradient) <= found.certificate.upper  # strong convexity: the distance is no larger
    assert np.linalg.norm(gradient) < 0.2


def test_a_projector_of_ones_own_keeps_the_run_in_its_set():
    """Coins whose parameters add up to zero and are at most 0.4: the nearest to the data, with and without l2."""

    def onto(theta):
        half = np.clip((theta[0] - theta[1]) / 2, -0.4, 0.4)
        return np.array([half, -half])

    family = dataclasses.replace(COINS, project=onto, reach=0.4 * 2**0.5)
    mean = np.array([0.85, 0.45])

    def objective(t, l2):
        return np.log1p(np.exp(t)) + np.log1p(np.exp(-t)) - t * (mean[0] - mean[1]) + l2 * t * t

    grid = np.linspace(-0.4, 0.4, 8001)
    for l2, plan in ((0.5, SamplingPlan(60, 4000, 1)), (0.0, SamplingPlan(60, 50_000, 1))):
        found = fit(mean, family, method=MCMC(plan=plan), l2=l2, rng=0)
        truth = grid[np.argmin(objective(grid, l2))]
        assert found.model.theta.sum() == 0.0
        if l2:
            assert abs(found.model.theta[0] - truth) * 2**0.5 <= found.certificate.upper < family.reach
        else:
            gap = objective(found.model.theta[0], 0.0) - objective(truth, 0.0)
            assert gap <= found.certificate.upper < objective(-0.4, 0.0) - objective(truth, 0.0)
        assert "project is the Euclidean projection onto a convex set" in {
            a.text for a in found.certificate.assumptions if a.status == "assumed"
        }
        assert replay(found).certificate == found.certificate
    biased = dataclasses.replace(family, total_variation=0.01)
    plain, paid = (fit(mean, each, method=MCMC(plan=plan), rng=0).certificate.bound for each in (family, biased))
    assert paid > plain * 1.05
    with pytest.raises(CertificateError, match="need a plan"):
        fit(mean, biased, method=MCMC(eps=1.0), rng=0)
    with pytest.raises(CertificateError, match="leaves every iterate"):
        fit(mean, dataclasses.replace(family, project=lambda theta: 0.5 * theta), method=MCMC(plan=plan), l2=0.5, rng=0)


def test_what_the_data_or_the_draws_contradict_is_refused():
    small = dataclasses.replace(COINS, radius=0.3)
    data = np.array([[0, 0], [1, 1]])
    with pytest.raises(CertificateError, match="radius"):
        fit(data, small, method=MCMC(plan=SamplingPlan(3, 5, 1)), l2=1.0, rng=0)
    with pytest.raises(CertificateError, match="radius"):
        fit([0.9, -0.4], small, method=MCMC(plan=SamplingPlan(3, 5, 1)), l2=1.0, rng=0)
    with pytest.raises(CertificateError, match="l2"):
        fit(data, COINS, method="mcmc", rng=0)
    with pytest.raises(ValueError, match="mcmc"):
        fit(data, COINS, method="exact", l2=1.0)
    with pytest.raises(ValueError, match="mixing and fields"):
        fit(data, COINS, mixing=FastMixing(), l2=1.0)
    with pytest.raises(ValueError, match="smoothness"):
        fit(data, COINS, method=MCMC(smoothness=0.5), l2=1.0)
    with pytest.raises(ValueError, match="statistics"):
        fit(np.zeros((4, 3)), COINS, method="mcmc", l2=1.0)
