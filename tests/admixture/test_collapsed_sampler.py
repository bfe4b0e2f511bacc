"""Collapsed Gibbs sampling against enumeration: the sweep, the chain, the seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

from cumulant import sampling
from cumulant.admixture import CollapsedGibbs, CollapsedPosterior, Corpus
from tests.reference import admixture as reference

TEXT = Corpus.from_counts([[2, 1, 0], [0, 1, 2]])  # documents [0, 0, 1] and [1, 2, 2]
GENOTYPES = Corpus.from_genotypes([[[0, 1], [0, 2]], [[1, 1], [2, -1]]])
METHODS = ("dense", "sparse")


def tiny(corpus=TEXT, k=2):
    """A posterior that can be enumerated, with priors that differ among components and words."""
    nu, eta = np.linspace(0.7, 1.2, k), np.linspace(0.5, 0.9, corpus.n_words)
    return CollapsedPosterior(corpus, k, nu, eta)


def test_the_evidence_and_the_posterior_of_a_tiny_corpus():
    states, p, evidence = reference.enumerate_posterior(TEXT, 2, np.full(2, 0.7), np.full(3, 0.5))
    assert_allclose(evidence, -7.584499878471, atol=1e-11)
    together = [p @ (states[:, i] == states[:, j]) for i, j in ((0, 1), (0, 3), (0, 5))]
    assert_allclose(together, [0.850949817, 0.386224189, 0.285017275], atol=5e-10)


@pytest.mark.parametrize("corpus", [TEXT, GENOTYPES], ids=["text", "genotypes"])
def test_the_log_joint_is_that_of_the_definition(corpus):
    posterior = tiny(corpus, 3)
    for z in np.random.default_rng(0).integers(3, size=(20, corpus.n_tokens)):
        want = reference.log_joint(z, corpus, 3, posterior.document_prior, posterior.word_prior)
        assert_allclose(posterior.log_joint(z), want, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("corpus", "k"), [(TEXT, 2), (GENOTYPES, 2), (TEXT, 3)], ids=["text", "genotypes", "three"])
def test_a_sweep_has_the_transition_matrix_of_the_definition(method, corpus, k):
    posterior = tiny(corpus, k)
    nu, eta = posterior.document_prior, posterior.word_prior
    _, p, _ = reference.enumerate_posterior(corpus, k, nu, eta)
    matrix = reference.transition(corpus, k, nu, eta, posterior.tokens.order)
    assert_allclose(p @ matrix, p, atol=1e-14)  # the sweep that is written down leaves the posterior as it is
    # Ours, from a few states: how often each state comes next, by a chi-square test.
    place, n = k ** np.arange(corpus.n_tokens)[::-1], 2_000
    for row in (0, len(p) // 3, len(p) - 1):
        start = row // place % k
        state = CollapsedGibbs(method, n_jobs=1).init(posterior, np.tile(start, (n, 1)), 5)
        after = CollapsedGibbs(method, n_jobs=1).step(posterior, state).x
        seen, expected = np.bincount(after @ place, minlength=len(p)), n * matrix[row]
        often = expected > 5
        seen, expected = (np.append(each[often], each[~often].sum()) for each in (seen, expected))
        statistic = ((seen - expected) ** 2 / np.maximum(expected, 1e-9))[expected > 0].sum()
        assert chi2.sf(statistic, often.sum() - 1) > 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_draws_have_the_probabilities_of_the_enumeration(method):
    posterior = CollapsedPosterior(TEXT, 2, 0.7, 0.5)
    draws = sampling.sample(CollapsedGibbs(method), posterior, 10_000, chains=2, burn_in=50, rng=1)
    for (i, j), want in {(0, 1): 0.850949817, (0, 3): 0.386224189, (0, 5): 0.285017275}.items():

        def together(z, i=i, j=j):
            return (z[:, i] == z[:, j]).astype(float)

        assert abs(draws.mean(together) - want) < 4 * draws.standard_error(together)


@pytest.mark.parametrize("k", [3, 40])
def test_both_methods_sample_the_same_posterior(k):
    counts = np.random.default_rng(0).poisson(0.4, size=(30, 60))
    posterior = CollapsedPosterior(Corpus.from_counts(counts), k, 0.2, 0.3)
    runs = [sampling.sample(CollapsedGibbs(m), posterior, 300, chains=4, burn_in=200, rng=2) for m in METHODS]
    values = [np.array([[posterior.log_joint(z) for z in chain] for chain in run.values]) for run in runs]
    error = np.sqrt(sum(v.var() / sampling.effective_sample_size(v) for v in values))
    assert abs(values[0].mean() - values[1].mean()) < 4 * error


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_is_a_function_of_the_seed(method):
    posterior = CollapsedPosterior(Corpus.from_counts(np.random.default_rng(3).poisson(1.0, size=(8, 12))), 5)
    one, two = (CollapsedGibbs(method, n_jobs=jobs) for jobs in (1, 2))
    draws = sampling.sample(one, posterior, 6, chains=3, burn_in=2, rng=9).values
    assert_array_equal(draws, sampling.sample(two, posterior, 6, chains=3, burn_in=2, rng=9).values)
    assert_array_equal(draws[:2], sampling.sample(one, posterior, 6, chains=2, burn_in=2, rng=9).values)
    state = one.init(posterior, posterior.starts(3, None, 9), 9)
    for _ in range(8):  # stopped after every sweep
        state = one.step(posterior, state)
    assert_array_equal(draws[:, -1], state.x)
    assert (draws[:, -1] != sampling.sample(one, posterior, 6, chains=3, burn_in=2, rng=10).values[:, -1]).any()


def test_counts_stay_those_of_the_tokens():
    # Long documents and few tokens for each component: lists of the sparse method grow and shrink.
    counts = np.random.default_rng(4).poisson(2.0, size=(3, 200))
    posterior = CollapsedPosterior(Corpus.from_counts(counts), 300, 0.05, 0.01)
    z = sampling.sample(CollapsedGibbs("sparse"), posterior, 5, chains=1, burn_in=30, rng=0).values[0]
    assert z.min() >= 0
    assert z.max() < 300
    start = posterior.log_joint(posterior.starts(1, None, 0)[0])
    assert posterior.log_joint(z[-1]) > start + 500


def test_one_component_and_no_tokens():
    one = CollapsedPosterior(TEXT, 1)
    assert_array_equal(sampling.sample(CollapsedGibbs(), one, 3, burn_in=0, rng=0).values, 0)
    none = CollapsedPosterior(Corpus.from_counts(np.zeros((2, 3))), 2)
    assert sampling.sample(CollapsedGibbs(), none, 3, burn_in=1, rng=0).values.shape == (4, 3, 0)
    assert none.log_joint(np.zeros(0, int)) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"document_prior": 0.0}, r"document_prior must be a number between 1e-100 and 1e\+08, or 2 of them; got 0"),
        ({"document_prior": [0.1, 0.2, 0.3]}, "or 2 of them; got"),
        ({"word_prior": 1e308}, "word_prior must be a number between"),  # variances would be NaN
        ({"word_prior": [0.1, np.nan, 0.1]}, "word_prior must be finite"),
        ({"corpus": Corpus.from_counts(np.zeros((2, 0)))}, "vocabulary is empty"),
    ],
)
def test_bad_posteriors_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        CollapsedPosterior(**{"corpus": TEXT, "n_components": 2} | arguments)


@pytest.mark.parametrize(
    ("start", "words"),
    [([0, 1], "shape"), (np.zeros(6), "whole numbers"), ([0, 0, 0, 0, 0, 2], "from 0 to 1; got 0 to 2")],
)
def test_bad_starts_are_refused(start, words):
    with pytest.raises(ValueError, match=words):
        CollapsedPosterior(TEXT, 2).starts(3, start, 0)
