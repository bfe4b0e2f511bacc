"""Variational particles of an admixture on a corpus whose evidence is known."""

import numpy as np
import pytest

from cumulant import particles
from cumulant.admixture import AdmixtureFamily, AdmixtureModel, Corpus, variational_evidence
from cumulant.particles.chains import take
from tests.admixture.test_model import THETA, flat, member, moments_of
from tests.admixture.tiny import ASSIGNMENTS, CORPUS, LOG_EVIDENCE, MODEL

TWO_LOCI = AdmixtureModel(Corpus.from_genotypes([[[0, 1], [2, 0]], [[1, 1], [1, -1]]], n_alleles=[2, 3]), 2, 0.7, 0.5)


def test_the_parts_of_the_family_belong_together():
    family = AdmixtureFamily(TWO_LOCI)
    assert particles.check_family(family, n=2000) < 5
    x_A, _ = family.begin(5, np.random.default_rng(0))
    theta, vector = np.random.default_rng(1).uniform(0.2, 1.0, (2, family.dim))
    for closed, which, rest in (
        (family.block_values, 0, (theta,)),
        (family.block_means, 1, (theta,)),
        (family.block_products, 2, (theta, vector)),
    ):
        np.testing.assert_allclose(closed(x_A, *rest), family._call(which, x_A, *rest), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_published_method_reaches_the_published_bound(seed):
    """The bound within 0.02. Each word occurs twice, so that all members with ``phi - gamma = 1`` and ``eta + 2 gamma =
    1/2`` are the posterior: which of them is reached means nothing.
    """
    published = particles.Safeguard("joint-quadratic", variance=0.95)
    result = variational_evidence(MODEL, 2000, 100, safeguard=published, exchange=False, rng=seed)
    assert result.log_partition("bound") == pytest.approx(LOG_EVIDENCE, abs=0.02)
    *eta, phi, gamma = result.theta[0]
    np.testing.assert_allclose([phi - gamma, *(np.array(eta) + 2 * gamma)], [1.0] + 6 * [0.5], atol=0.02)


def test_log_gammas_of_a_large_prior_leave_weights_that_sum_to_one():
    """Increments are 1e9 and more, and lose digits; the truth is a sum in 200 digits."""
    model = AdmixtureModel(CORPUS, 2, 0.7, 1e8)
    result = variational_evidence(model, 50, 5, finish=20, rng=0)
    assert result.draws.weights.sum() == pytest.approx(1.0)
    assert result.log_partition() == pytest.approx(-6.591673742008658, abs=0.1)


@pytest.mark.parametrize("safeguard", ["joint-quadratic", "exact"])
def test_the_bound_and_the_finish_find_the_evidence(safeguard):
    result = variational_evidence(MODEL, 2000, 100, finish=20, safeguard=safeguard, rng=0)
    assert result.log_partition("bound") == pytest.approx(LOG_EVIDENCE, abs=0.03)
    assert result.log_partition() == pytest.approx(LOG_EVIDENCE, abs=0.03)
    assert (np.array(result.path[0]) >= 0).all()
    phi, gamma = result.theta[0, -2:]
    assert phi - gamma == pytest.approx(1.0, abs=0.05)


def test_the_gradient_with_frequencies_summed_out_has_less_variance():
    """At the member of the published divergence, from exact draws; both have the mean of the enumeration."""
    family, n, trials, rng = AdmixtureFamily(MODEL), 50, 600, np.random.default_rng(0)
    theta, W, probabilities = flat(THETA), np.full(n, 1 / n), np.exp(member(THETA)[1])
    within = probabilities @ family.block_products(MODEL.counts(ASSIGNMENTS), theta, theta - family.target)
    between = moments_of(THETA)[1] - within
    x_A = MODEL.counts(ASSIGNMENTS[rng.choice(64, size=n * trials, p=probabilities)])
    x_B = family.sample_B(x_A, theta, rng)
    found = np.empty((trials, 2, theta.size))
    for k, at in enumerate(np.arange(n * trials).reshape(trials, n)):
        for rb in (False, True):
            found[k, int(rb)] = particles.kl_gradient(W, take(x_A, at), take(x_B, at), theta, family, rao_blackwell=rb)
    plain, summed = (found[:, k].std(axis=0, ddof=1) for k in (0, 1))
    assert (summed < plain).all()
    error = found.std(axis=0, ddof=1) / np.sqrt(trials)
    kept = 1 - 1 / n  # of a covariance between n draws
    for k, expected in enumerate(((between + within) * kept, between * kept + within)):
        assert (np.abs(found[:, k].mean(axis=0) - expected) < 4 * error[k]).all()
