"""`LDA`: recovery of topics, new documents against enumeration, scikit-learn's checks, bad input."""

import itertools
import os
import pickle
import signal
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from cumulant.admixture import LDA, Corpus, held_out_likelihood
from cumulant.admixture.held_out import memberships_given
from cumulant.admixture.prior_estimation import symmetric_prior
from cumulant.optim import InterruptedWarning

TOPICS = np.kron(np.eye(3), np.full(10, 0.1))  # three topics of ten words each


def texts(n=60, length=80, seed=0):
    rng = np.random.default_rng(seed)
    members = rng.dirichlet(np.full(3, 0.3), size=n)
    return np.array([rng.multinomial(length, row) for row in members @ TOPICS]), members


@pytest.fixture(scope="module")
def fitted():
    return LDA(3, n_sweeps=400, burn_in=100, thin=2, n_chains=2, random_state=0).fit(texts()[0])


def aligned(model):
    """Which of the fitted topics is which of the true ones."""
    return (TOPICS @ model.components_.T).argmax(axis=1)


def test_topics_are_recovered(fitted):
    _, members = texts()
    order = aligned(fitted)
    assert sorted(order) == [0, 1, 2]
    assert_allclose(fitted.components_.sum(axis=1), 1.0)
    assert abs(fitted.components_[order] - TOPICS).max() < 0.03
    assert abs(fitted.memberships_[:, order] - members).mean() < 0.03
    inside = abs(fitted.memberships_[:, order] - members) < 2 * fitted.memberships_sd_[:, order] + 1e-3
    assert inside.mean() > 0.85
    assert fitted.result_.r_hat < 1.05
    names = [f"w{j}" for j in range(30)]
    assert {frozenset(words) for words in fitted.top_words(10, names)} == {
        frozenset(names[first : first + 10]) for first in (0, 10, 20)
    }


def test_new_documents(fitted):
    counts, members = texts(20, seed=1)
    found = fitted.memberships(counts)
    order = aligned(fitted)
    assert abs(found.mean[:, order] - members).mean() < 0.04
    assert_array_equal(fitted.transform(counts), found.mean)
    assert_array_equal(fitted.transform(scipy.sparse.csr_matrix(counts[3:5])), found.mean[3:5])  # on its own
    empty = fitted.memberships(np.zeros((1, 30)))
    assert_allclose(empty.mean, 1 / 3)
    assert_allclose(empty.sd, np.sqrt((1 / 3) * (2 / 3) / 1.3))
    assert fitted.log_likelihood(np.zeros((1, 30))).documents == 0.0


def exact_document(words, frequencies, prior):
    """``p(w)`` and ``E[tau], E[tau^2]`` given the words, by a sum over all components."""
    k, total = len(prior), prior.sum()
    p, mean, square = 0.0, np.zeros(k), np.zeros(k)
    for z in itertools.product(range(k), repeat=len(words)):
        a = prior + np.bincount(z, minlength=k)
        log = gammaln(a).sum() - gammaln(prior).sum() + gammaln(total) - gammaln(a.sum())
        weight = np.exp(log) * np.prod([frequencies[c, j] for c, j in zip(z, words, strict=True)])
        p += weight
        mean += weight * a / a.sum()
        square += weight * a * (a + 1) / (a.sum() * (a.sum() + 1))
    return p, mean / p, square / p


def test_memberships_and_probabilities_of_documents_are_those_of_the_enumeration():
    rng = np.random.default_rng(2)
    frequencies, prior = rng.dirichlet(np.full(6, 0.4), size=3), np.array([0.3, 0.5, 0.9])
    counts = rng.multinomial(7, np.full(6, 1 / 6), size=4)
    corpus = Corpus.from_counts(counts)
    exact = [exact_document(np.repeat(np.arange(6), row), frequencies, prior) for row in counts]
    found = memberships_given(corpus, frequencies, prior, n_sweeps=20_000, seed=1)
    assert_allclose(found.mean, [each[1] for each in exact], atol=0.01)  # s.d. of tau below 0.3: s.e. below 0.003
    assert_allclose(found.sd**2 + found.mean**2, [each[2] for each in exact], atol=0.01)
    # Unbiased, with few particles and many runs.
    held = held_out_likelihood(corpus, frequencies, prior, n_particles=4, n_runs=4000, n_moves=1, rng=3)
    truth = np.log([each[0] for each in exact])
    assert (held.errors < 0.02).all()
    assert (abs(held.documents - truth) < 4 * held.errors).all()
    assert_allclose(held.per_word, truth.sum() / 28, atol=4 * held.standard_error)


def test_held_out_texts_prefer_the_right_number_of_topics(fitted):
    counts = texts(30, seed=4)[0]
    one = LDA(1, n_sweeps=20, burn_in=0, random_state=0).fit(texts()[0])
    found = fitted.log_likelihood(counts)
    assert fitted.score(counts) == found.per_word > one.score(counts) + 0.1
    assert_allclose(fitted.perplexity(counts), np.exp(-found.per_word))
    assert 0 < found.standard_error < 0.01
    # One topic: the words are independent, and nothing is estimated.
    assert_allclose(one.score(counts), (counts @ np.log(one.components_[0])).sum() / counts.sum())


def test_priors_are_estimated():
    model = LDA(3, document_prior=5.0, word_prior=5.0, n_sweeps=20, burn_in=200, optimise_priors=True, random_state=1)
    model.fit(texts(200)[0])
    assert 0.15 < model.document_prior_[0] < 0.6  # the truth is 0.3
    assert model.word_prior_[0] < 0.5  # topics have a third of the words


def test_the_estimate_of_a_prior_maximises_the_likelihood():
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(n, rng.dirichlet(np.full(4, 0.5))) for n in rng.integers(0, 30, size=50)])

    def loss(log_a):
        a = np.exp(log_a)
        rows = gammaln(4 * a) - gammaln(4 * a + counts.sum(axis=1))
        return -(rows.sum() + (gammaln(a + counts) - gammaln(a)).sum())

    found: Any = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-8})
    best = np.exp(found.x)
    assert_allclose(symmetric_prior(counts, 3.0), best, rtol=1e-4)
    assert symmetric_prior(np.array([[4, 0], [0, 4]]), 1.0) < 1e-3  # the maximum is at zero
    assert symmetric_prior(np.full((5, 3), 10), 1.0) > 1e2  # at infinity
    assert symmetric_prior(np.zeros((3, 2), int), 0.7) == 0.7


def test_the_same_seed_gives_the_same_answer(fitted):
    again = LDA(3, n_sweeps=400, burn_in=100, thin=2, n_chains=2, random_state=0, n_jobs=1).fit(
        Corpus.from_counts(texts()[0])
    )
    assert_array_equal(again.components_, fitted.components_)
    assert_array_equal(again.transform(texts()[0]), fitted.transform(texts()[0]))
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).memberships_, fitted.memberships_)


def test_saved_and_loaded(fitted, tmp_path):
    loaded = LDA.load(fitted.save(tmp_path / "topics"))
    counts = texts(5, seed=5)[0]
    assert_array_equal(loaded.transform(counts), fitted.transform(counts))
    assert loaded.score(counts) == fitted.score(counts)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.top_words(3) == fitted.top_words(3)


def test_it_is_a_scikit_learn_estimator(monkeypatch):
    # The checks have real numbers where we take counts only: they are rounded once they have passed our own checks.
    original = Corpus.from_counts
    monkeypatch.setattr(Corpus, "from_counts", lambda table: original(np.round(table)))
    model = LDA(2, n_sweeps=20, burn_in=5, random_state=0)
    failed = [r for r in check_estimator(model, on_skip=None, on_fail=None) if r["status"] == "failed"]
    assert [(r["check_name"], str(r["exception"])) for r in failed] == []


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1, -1]], "Negative values"),
        ([[1.5, 1]], "counts must be whole numbers, not negative; got 1.5"),
        ([[np.nan, 1]], "NaN"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (np.zeros((3, 2)), "X has no words at all"),
        ([[1e9, 2e9]], r"less than 2\*\*31 tokens; they add up to 3e\+09"),
        (Corpus.from_genotypes([[[0, 1], [1, 1]]]), "one locus; it has 2"),
    ],
)
def test_bad_counts_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        LDA(2).fit(X)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "online"}, "method must be one of 'collapsed_gibbs'"),
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"n_sweeps": 5}, "n_sweeps must be at least thin, 10"),
        ({"document_prior": -1.0}, "document_prior must be a number between 1e-100"),
        ({"n_chains": 0}, "n_chains"),
    ],
)
def test_bad_parameters_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        LDA(**arguments).fit([[1, 2]])


def test_bad_questions_are_refused(fitted):
    with pytest.raises(NotFittedError):
        LDA().transform([[1, 2]])
    with pytest.raises(ValueError, match="X has 4 features, but LDA is expecting 30"):
        fitted.transform(Corpus.from_counts(np.ones((2, 4))))
    with pytest.raises(ValueError, match="names must name the 30 words; got 1"):
        fitted.top_words(3, ["a"])
    with pytest.raises(ValueError, match="n_runs must be a whole number of at least 2"):
        fitted.log_likelihood(np.ones((1, 30)), n_runs=1)


@pytest.mark.parametrize("optimise", [False, True])
def test_ctrl_c_before_the_first_draw_ends_the_program(optimise):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    model = LDA(8, burn_in=10**6, optimise_priors=optimise, random_state=0)
    with pytest.warns(InterruptedWarning), pytest.raises(KeyboardInterrupt):
        model.fit(np.full((200, 100), 10))
    timer.join()
    assert not hasattr(model, "components_")


def test_documents_without_words_and_words_without_documents():
    counts = np.array([[3, 0, 1], [0, 0, 0], [0, 0, 4]])
    model = LDA(2, n_sweeps=50, burn_in=10, random_state=0).fit(counts)
    assert_allclose(model.memberships_[1], 0.5)
    assert (model.components_ > 0).all()
    assert model.top_words(1, ["a", "b", "c"])[0][0] in ("a", "c")
