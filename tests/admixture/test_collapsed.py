"""`collapsed_gibbs`: means against enumeration, runs that are stopped, resumed, saved; bad input."""

import os
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.admixture import CollapsedResult, Corpus, collapsed_gibbs
from cumulant.errors import FileFormatError
from cumulant.optim import InterruptedWarning
from tests.reference import admixture as reference

GENOTYPES = Corpus.from_genotypes([[[0, 1], [0, 2]], [[1, 1], [2, -1]], [[-1, -1], [-1, -1]]])
WORDS = Corpus.from_counts(np.random.default_rng(0).poisson(0.5, size=(20, 30)))


def arrays(result):
    return {"log_joint": result.log_joint, "z": result.state.x, **result.sums._asdict()}


def test_means_are_those_of_the_enumeration():
    # Priors that differ name the components, so that the exact means are those of every chain.
    nu, eta, k = np.array([0.4, 1.5]), np.linspace(0.5, 0.9, GENOTYPES.n_words), 2
    states, p, _ = reference.enumerate_posterior(GENOTYPES, k, nu, eta)
    tau, square, beta = np.zeros((3, k)), np.zeros((3, k)), np.zeros((k, GENOTYPES.n_words))
    for z, weight in zip(states, p, strict=True):
        n, m = reference.counts(z, GENOTYPES.document, GENOTYPES.word, 3, GENOTYPES.n_words, k)
        a, shapes = nu + n, eta + m
        total = a.sum(axis=1, keepdims=True)
        tau += weight * a / total
        square += weight * a * (a + 1) / (total * (total + 1))
        starts = GENOTYPES.locus_starts
        beta += weight * shapes / np.repeat(np.add.reduceat(shapes, starts[:-1], axis=1), np.diff(starts), axis=1)
    chains = 8
    result = collapsed_gibbs(
        GENOTYPES, k, document_prior=nu, word_prior=eta, n_sweeps=1000, burn_in=50, thin=1, n_chains=chains, rng=3
    )
    sd = np.sqrt(square - tau**2)
    for name, exact in (("memberships", tau), ("memberships_sd", sd), ("frequencies", beta)):
        found = np.array([getattr(result, name)(chain) for chain in range(chains)])
        error = found.std(axis=0, ddof=1) / np.sqrt(chains)
        assert (abs(found.mean(axis=0) - exact) < 6 * error + 1e-12).all()
    assert_allclose(result.memberships()[2], nu / nu.sum())  # no calls at all: the prior
    assert_allclose(result.memberships_sd()[2], sd[2])
    assert_allclose(np.add.reduceat(result.frequencies(), GENOTYPES.locus_starts[:-1], axis=1), 1.0)
    assert result.r_hat < 1.01
    assert result.effective_sample_size > 500


def test_counts_of_kept_draws_make_the_means():
    result = collapsed_gibbs(WORDS, 3, n_sweeps=40, burn_in=10, thin=10, n_chains=2, keep=True, rng=0)
    assert result.assignments is not None
    assert result.assignments.shape == (2, 4, WORDS.n_tokens)
    assert result.assignments.dtype == np.uint8
    draws = [result.counts(1, draw) for draw in range(4)]
    total = 0.3 + WORDS.lengths[:, None]
    assert_allclose(result.memberships(1), np.mean([(0.1 + each.documents) / total for each in draws], axis=0))
    words = [each.words for each in draws]
    want = np.mean([(0.1 + m) / (0.1 * WORDS.n_words + m.sum(axis=1, keepdims=True)) for m in words], axis=0)
    assert_allclose(result.frequencies(1), want)
    assert_allclose(result.log_joint[1, 2], result.posterior.log_joint(result.assignments[1, 2].astype(int)))
    assert result.best_chain == result.log_joint.mean(axis=1).argmax()
    with pytest.raises(ValueError, match="keep=True"):
        collapsed_gibbs(WORDS, 2, n_sweeps=10, burn_in=0, n_chains=1).counts(0, 0)


@pytest.mark.parametrize("k", [3, 250], ids=["dense", "sparse"])
def test_a_saved_run_is_resumed_bit_for_bit(k, tmp_path):
    arguments = {"burn_in": 7, "thin": 3, "n_chains": 2, "keep": True, "rng": 4}
    whole = collapsed_gibbs(WORDS, k, n_sweeps=31, **arguments)
    first = collapsed_gibbs(WORDS, k, n_sweeps=10, **arguments)
    before = {name: each.copy() for name, each in arrays(first).items()}
    loaded = CollapsedResult.load(first.save(tmp_path / "run"))
    second = loaded.resume(21, n_jobs=1)
    for name, each in arrays(whole).items():
        assert_array_equal(arrays(second)[name], each)
        assert_array_equal(arrays(first)[name], before[name])
    assert_array_equal(second.assignments, whole.assignments)
    assert whole.log_joint.shape == (2, 10)
    assert second.status == "max_steps"


def test_the_clock_and_ctrl_c_keep_what_there_is():
    corpus = Corpus.from_counts(np.full((200, 100), 10))
    late = collapsed_gibbs(corpus, 8, n_sweeps=10**6, burn_in=0, thin=1, n_chains=2, rng=0, time_limit=0.3)
    assert late.status == "time_limit"
    assert late.log_joint.shape[1] == late.state.sweeps > 0
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(InterruptedWarning, match="interrupted after"):
        stopped = collapsed_gibbs(corpus, 8, n_sweeps=10, burn_in=10**6, thin=1, n_chains=2, rng=0)
    timer.join()
    assert stopped.status == "interrupted"
    with pytest.raises(ValueError, match="no draws: the run ended after"):
        stopped.memberships()
    again = collapsed_gibbs(corpus, 8, n_sweeps=late.state.sweeps, burn_in=0, thin=1, n_chains=2, rng=0)
    assert_array_equal(again.log_joint, late.log_joint)


def test_one_component_and_empty_documents():
    corpus = Corpus.from_counts([[2, 0, 1], [0, 0, 0]])
    one = collapsed_gibbs(corpus, 1, n_sweeps=10, burn_in=0, rng=0)
    assert_array_equal(one.memberships(), 1.0)
    assert_allclose(one.frequencies(), [[2.1 / 3.3, 0.1 / 3.3, 1.1 / 3.3]])
    assert one.log_joint.shape == (4, 1)
    nothing = collapsed_gibbs(Corpus.from_counts(np.zeros((2, 3))), 4, n_sweeps=10, burn_in=0, rng=0)
    assert_allclose(nothing.memberships(), 0.25)
    assert_allclose(nothing.frequencies(), 1 / 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_sweeps": 0}, "n_sweeps must be a whole number of at least 1; got 0"),
        ({"burn_in": -1}, "burn_in"),
        ({"thin": 0}, "thin"),
        ({"n_chains": 1.5}, "n_chains"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"init": [0, 1]}, "init must be whole numbers"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        collapsed_gibbs(WORDS, 2, **arguments)


def test_other_things_are_refused(tmp_path):
    with pytest.raises(TypeError, match="corpus must be a Corpus"):
        collapsed_gibbs([[1, 2]], 2)  # type: ignore[arg-type]
    result = collapsed_gibbs(WORDS, 2, n_sweeps=10, burn_in=0, n_chains=2, rng=0)
    with pytest.raises(ValueError, match="chain must be a whole number below 2"):
        result.memberships(2)
    path = result.save(tmp_path / "run")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError):
        CollapsedResult.load(path)
