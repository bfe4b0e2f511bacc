"""Families from a user's own statistic, against sums written out."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.errors import DomainError, NoEstimateError
from cumulant.families import BoundedFamily, FiniteFamily, SampledFamily

RANKS = list(itertools.permutations(range(4)))


def inversions(order):
    return [sum(a > b for a, b in itertools.combinations(order, 2)), order[0]]


FAMILY = FiniteFamily.of(inversions, RANKS)


def test_a_model_of_rankings():
    theta = np.array([-0.7, 0.3])
    T = np.array([inversions(order) for order in RANKS], dtype=float)
    p = np.exp(T @ theta)
    p /= p.sum()
    assert FAMILY.n_states == 24
    assert_allclose(FAMILY.to_mean(theta), p @ T)
    assert_allclose(FAMILY.usual(theta)["probabilities"], p)
    assert_allclose(FAMILY.entropy(theta), -(p * np.log(p)).sum())
    seen = np.array([0, 3, 3, 17, 5])
    assert_allclose(FAMILY.to_mean(FAMILY.mle(seen)), T[seen].mean(axis=0), atol=1e-12)
    # Mallows: without the second statistic, A(theta) = sum_j log sum_{k<j} exp(k theta)
    mallows = FiniteFamily(T[:, :1])
    assert_allclose(
        mallows.log_partition([-0.7]), sum(np.log(np.exp(-0.7 * np.arange(j)).sum()) for j in range(1, 5)), rtol=1e-14
    )


def test_the_certificate_of_a_fit():
    assert isinstance(FAMILY, BoundedFamily)
    problem = optim.NegativeLogLikelihood(FAMILY, FAMILY.to_mean([-0.7, 0.3]))
    result = optim.run(optim.GradientDescent(), problem, np.zeros(2), max_steps=60)
    gap = problem.value(result.x) - problem.value([-0.7, 0.3])
    assert gap <= result.certificate.verify(result.subject).upper
    assert problem.smoothness >= np.linalg.eigvalsh(FAMILY.fisher([0.0, 0.0]))[-1]


@pytest.mark.parametrize(
    ("mu", "reason"), [([0.0, 1.0], "infeasible"), ([0.0, 0.0], "some state impossible"), ([1.5, 0.0], "some state")]
)
def test_means_outside_are_refused_with_the_reason(mu, reason):
    assert not FAMILY.in_mean_domain(mu)
    with pytest.raises(DomainError, match=reason):
        FAMILY.to_natural(mu)


def test_what_is_not_a_family_is_refused():
    with pytest.raises(ValueError, match=r"2 columns have rank 1 but for constants.*keep the columns \[0\]"):
        FiniteFamily([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="finite array"):
        FiniteFamily([1.0, 2.0])
    with pytest.raises(ValueError, match="positive number for each of 2 states"):
        FiniteFamily([[0.0], [1.0]], [1.0, 0.0])
    with pytest.raises(NoEstimateError, match="not inside the hull"):
        FAMILY.mle([0, 0])
    with pytest.raises(DomainError, match="no member with probabilities"):
        FAMILY.natural(probabilities=np.random.default_rng(0).dirichlet(np.ones(24)))


def test_a_family_known_by_its_sampler():
    def draw(theta, n, rng):
        return FAMILY.sample(theta, n, rng=rng)

    family = SampledFamily(2, FAMILY.statistics, draw, FAMILY.statistics_radius())
    estimate = family.mean_estimate(np.array([-0.7, 0.3]), 20_000, np.random.default_rng(1))
    error = np.sqrt(np.diag(FAMILY.fisher([-0.7, 0.3])) / 20_000)
    assert np.all(np.abs(estimate - FAMILY.to_mean([-0.7, 0.3])) <= 5 * error)
    with pytest.raises(ValueError, match=r"shape \(5, 3\)"):
        SampledFamily(3, FAMILY.statistics, draw, 1.0).mean_estimate(np.zeros(2), 5, np.random.default_rng(1))
