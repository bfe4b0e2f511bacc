"""The family of an admixture against sums over all components of all tokens, and published numbers."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import kstest

from cumulant.admixture import AdmixtureModel, Corpus
from cumulant.admixture.model import Counts, Parameters
from tests.admixture.tiny import ASSIGNMENTS, CORPUS, LOG_EVIDENCE, MODEL, SAME

THETA = Parameters(np.array([[0.6, 0.4, 0.9], [0.3, 0.8, 0.5]]), 0.7, 0.2)
TARGET = Parameters(np.full((2, 3), 0.5), 1.0, 0.0)
TWO_LOCI = AdmixtureModel(Corpus.from_genotypes([[[0, 1], [2, 0]], [[1, 1], [1, -1]]], n_alleles=[2, 3]), 2, 0.7, 0.5)


def flat(theta, leading=()):
    eta = np.broadcast_to(theta.eta, (*leading, 2, 3)).reshape(*leading, -1)
    return np.concatenate([eta, *(np.asarray(each)[..., None] for each in theta[1:])], axis=-1)


def member(theta):
    """``c(theta)``, and the logarithms of the probabilities of all components of the tokens."""
    counts = MODEL.counts(ASSIGNMENTS)
    logs = MODEL.log_marginal(counts.words, theta) + MODEL.log_document_part(counts.documents)
    return logsumexp(logs), logs - logsumexp(logs)


def moments_of(theta):
    """``E t`` and ``Cov t`` times ``theta - theta*``, exactly."""
    words = MODEL.counts(ASSIGNMENTS).words
    weights = np.exp(member(theta)[1])
    given = flat(MODEL.moments(words, theta), (64,))
    mean = weights @ given
    delta = Parameters(*(a - b for a, b in zip(theta, TARGET, strict=True)))
    within = weights @ flat(MODEL.covariance_product(words, theta, delta), (64,))
    centred = given - mean
    return mean, within + (weights * (centred @ flat(delta))) @ centred


def test_the_sum_over_components_is_the_evidence():
    assert logsumexp(MODEL.log_joint(ASSIGNMENTS)) == pytest.approx(LOG_EVIDENCE, abs=1e-12)
    assert member(TARGET)[0] == pytest.approx(-2.626050931181, abs=1e-12)
    assert member(TARGET)[0] - MODEL.log_constant == pytest.approx(LOG_EVIDENCE, abs=1e-12)


def test_one_number_for_all_of_eta_is_the_same_as_an_array_of_it():
    words = MODEL.counts(ASSIGNMENTS).words
    np.testing.assert_allclose(
        MODEL.log_marginal(words, Parameters(0.5, 0.3, 0.0)), MODEL.log_marginal(words, TARGET._replace(phi=0.3))
    )


def test_the_normaliser_of_members_that_can_be_drawn():
    theta = Parameters(np.full((2, 3), 0.5), 0.3, 0.3)
    assert MODEL.log_normaliser(theta) == pytest.approx(-0.990736988877, abs=1e-12)
    assert member(theta)[0] == pytest.approx(-0.990736988877, abs=1e-12)
    with pytest.raises(ValueError, match="phi = gamma"):
        MODEL.log_normaliser(THETA)


def test_divergence_gradient_and_means_are_the_published_ones():
    mean, gradient = moments_of(THETA)
    divergence = mean @ (flat(THETA) - flat(TARGET)) + member(TARGET)[0] - member(THETA)[0]
    assert divergence == pytest.approx(0.801290002736, abs=1e-11)
    published = [0.11163128, -0.05314824, 0.26173362, -0.07078293, 0.22046721, 0.16779982, -1.25052492, 2.52592645]
    np.testing.assert_allclose(gradient, published, atol=1e-8)
    means = [-1.42187161, -1.70124825, -1.14380138, -1.79778053, -1.11384942, -1.50399732, -7.11990826, -10.24518874]
    np.testing.assert_allclose(mean, means, atol=1e-8)


def test_the_posterior_of_pairs_of_tokens():
    weights = np.exp(member(TARGET)[1])
    for (i, j), published in SAME.items():
        found = weights @ (ASSIGNMENTS[:, i] == ASSIGNMENTS[:, j])
        assert found == pytest.approx(published, abs=1e-9)


def test_each_locus_has_a_simplex_of_its_own():
    """Against the formula of the collapsed joint, locus by locus in loops, and moments by finite differences."""
    corpus = TWO_LOCI.corpus

    def log_beta(a):
        return gammaln(a).sum() - gammaln(np.sum(a))

    for z in itertools.product(range(2), repeat=corpus.n_tokens):
        expected = 0.0
        for k, (first, last) in itertools.product(range(2), itertools.pairwise(corpus.locus_starts)):
            m = [sum(w == j and c == k for w, c in zip(corpus.word, z, strict=True)) for j in range(first, last)]
            expected += log_beta(0.5 + np.array(m)) - log_beta(np.full(last - first, 0.5))
        for d in range(2):
            n = [sum(e == d and c == k for e, c in zip(corpus.document, z, strict=True)) for k in range(2)]
            expected += log_beta(0.7 + np.array(n)) - log_beta(np.full(2, 0.7))
        assert TWO_LOCI.log_joint(np.array(z)) == pytest.approx(expected, abs=1e-12)
    words = TWO_LOCI.counts(np.array([0, 1, 1, 0, 1, 0, 0])).words
    rng = np.random.default_rng(0)
    theta, direction = (Parameters(rng.uniform(0.2, 1.0, (2, 5)), *rng.uniform(0.2, 1.0, 2)) for _ in range(2))

    def moved(step):
        return Parameters(*(a + step * b for a, b in zip(theta, direction, strict=True)))

    slope = (TWO_LOCI.log_marginal(words, moved(1e-5)) - TWO_LOCI.log_marginal(words, moved(-1e-5))) / 2e-5
    given = TWO_LOCI.moments(words, theta)
    assert sum(np.sum(a * b) for a, b in zip(given, direction, strict=True)) == pytest.approx(slope, rel=1e-8)
    product = TWO_LOCI.covariance_product(words, theta, direction)
    above, below = (TWO_LOCI.moments(words, moved(step)) for step in (1e-5, -1e-5))
    for found, high, low in zip(product, above, below, strict=True):
        np.testing.assert_allclose(found, (high - low) / 2e-5, rtol=1e-6)


def test_dirichlet_draws_with_tiny_parameters_stay_finite_and_have_their_distribution():
    counts = Counts(np.zeros((20_000, 2, 3), np.int32), np.zeros((20_000, 2, 2), np.int32))
    eta = np.array([[1e-3, 1e-3, 1e-3], [0.05, 2.0, 7.5]])
    logs = MODEL.draw_parameters(counts, Parameters(eta, 0.0, 0.0), 5, 0)
    assert np.isfinite(logs.frequencies).all()
    assert logs.frequencies.min() < -745
    np.testing.assert_allclose(np.exp(logs.frequencies).sum(axis=2), 1.0, rtol=1e-12)
    for k, j in ((1, 0), (1, 1), (1, 2)):
        beta = np.exp(logs.frequencies[:, k, j])
        assert kstest(beta, "beta", args=(eta[k, j], eta[k].sum() - eta[k, j])).pvalue > 1e-3
    assert kstest(np.exp(logs.memberships[:, 1, 0]), "beta", args=(0.7, 0.7)).pvalue > 1e-3
    assert logs.frequencies[:, 0].max(axis=1).mean() == pytest.approx(0.0, abs=0.01)  # all mass on one of them


def test_draws_do_not_depend_on_threads_or_on_other_particles():
    counts, logs = MODEL.draw_exactly(50, Parameters(0.5, 0.3, 0.3), 3, n_jobs=1)
    again, others = MODEL.draw_exactly(20, Parameters(0.5, 0.3, 0.3), 3, n_jobs=2)
    np.testing.assert_array_equal(counts.words[:20], again.words)
    np.testing.assert_array_equal(logs.memberships[:20], others.memberships)


def test_a_sweep_is_both_blocks_one_after_the_other():
    counts, _ = MODEL.draw_exactly(7, Parameters(0.5, 0.3, 0.3), 3)
    logs = MODEL.draw_parameters(counts, THETA, 3, 4)
    expected = MODEL.draw_counts(logs, THETA, 3, 4)
    for jobs in (1, 2):
        found = MODEL.sweep(counts, THETA, 1, 3, 4, n_jobs=jobs)
        for ours, one_by_one in zip((*found[0], *found[1]), (*expected, *logs), strict=True):
            np.testing.assert_array_equal(ours, one_by_one)


@pytest.mark.parametrize("model", [MODEL, TWO_LOCI])
def test_sweeps_with_exchanges_leave_a_member_as_it_is(model):
    z = np.array(list(itertools.product(range(2), repeat=model.corpus.n_tokens)))
    every, theta = model.counts(z), Parameters(0.5, 0.9, 0.2)
    logs = model.log_marginal(every.words, theta) + model.log_document_part(every.documents)
    probabilities = np.exp(logs - logsumexp(logs))
    chosen = np.random.default_rng(0).choice(len(z), 40_000, p=probabilities)
    start = Counts(*(each[chosen] for each in every))
    moved, logs = model.sweep(start, theta, 3, 1, 1, exchange=True)
    for values, exact in zip(moved, every, strict=True):
        mean = np.tensordot(probabilities, exact, axes=1)
        deviation = np.sqrt(np.tensordot(probabilities, (exact - mean) ** 2, axes=1))
        assert (np.abs(values.mean(axis=0) - mean) < 4.5 * deviation / 200).all()
        pairs = np.tensordot(probabilities, exact**2, axes=1)
        spread = np.sqrt(np.tensordot(probabilities, (exact.astype(float) ** 2 - pairs) ** 2, axes=1))
        assert (np.abs((values**2).mean(axis=0) - pairs) < 4.5 * spread / 200).all()


def test_exact_draws_have_the_distribution_of_their_member():
    theta = Parameters(np.full((2, 3), 0.5), 0.3, 0.3)
    words = MODEL.draw_exactly(40_000, theta, 1)[0].words
    every, probabilities = MODEL.counts(ASSIGNMENTS).words, np.exp(member(theta)[1])
    for k, j in itertools.product(range(2), range(3)):
        exact = probabilities @ every[:, k, j]
        assert abs(words[:, k, j].mean() - exact) < 4 * words[:, k, j].std() / 200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1; got 0"),
        ({"membership_prior": 0.0}, "membership_prior must be a number between 1e-100"),
        ({"allele_prior": -1.0}, "allele_prior must be a number between 1e-100"),
    ],
)
def test_settings_are_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        AdmixtureModel(CORPUS, **{"n_components": 2, **change})


@pytest.mark.parametrize("z", [[0, 1], [0, 0, 0, 0, 0, 2], [0.5] * 6])
def test_components_of_tokens_are_checked(z):
    with pytest.raises(ValueError, match="z must be"):
        MODEL.log_joint(z)
