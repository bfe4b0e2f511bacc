"""A thousand random ragged data sets: the certificate bounds what it speaks of, and nothing is NaN, whatever comes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from cumulant import optim
from cumulant.sequences import ChainCRF, SequenceLBFGS

pytestmark = pytest.mark.filterwarnings("ignore:ChainCRF stopped after")  # few epochs will do

NAMES = "abcdef"
VALUES = [0.0, 1e-300, 1e-8, 1.0, -3.5, 1e3, 1e6]

# A token is a list of names, which may repeat and may be empty, or values by name; lengths of one are common.
token = st.one_of(
    st.lists(st.sampled_from(NAMES), max_size=4),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=3),
)
length = st.sampled_from([1, 1, 2, 3, 5])


@st.composite
def data_sets(draw):
    n_labels = draw(st.integers(1, 4))
    lengths = draw(st.lists(length, min_size=1, max_size=6))
    X = [draw(st.lists(token, min_size=t, max_size=t)) for t in lengths]
    y = [draw(st.lists(st.integers(0, n_labels - 1), min_size=t, max_size=t)) for t in lengths]
    return X, y


def problem_of(crf, X, y):
    """The problem that `fit` solved."""
    other = ChainCRF(l2=crf.l2, bias=crf.bias)
    return other._prepare(X, y)


def enumerated(problem, w, i):
    """``log p(y_i | x_i)`` from the scores of all labellings."""
    first, last = problem.data.offsets[i], problem.data.offsets[i + 1]
    k, attributes = problem.n_labels, problem.n_attributes
    scores = problem.data.features[first:last] @ w[:attributes]
    if problem.bias:
        scores = scores + w[attributes]
        scores[0] += w[attributes + 1]
        scores[-1] += w[attributes + 2]
    length, pairs = last - first, w[-k:]
    total = [
        sum(scores[t, y[t]] for t in range(length)) + sum(pairs[y[t], y[t + 1]] for t in range(length - 1))
        for y in itertools.product(range(k), repeat=length)
    ]
    gold = problem.labels[first:last]
    own = sum(scores[np.arange(length), gold]) + sum(pairs[gold[:-1], gold[1:]])
    return own - logsumexp(total)


@settings(max_examples=1000, deadline=None)
@given(data_sets(), st.sampled_from([None, 1e-3, 10.0]), st.booleans())
def test_the_certificate_holds(data, l2, bias):
    X, y = data
    crf = ChainCRF(l2=l2, bias=bias, max_epochs=20, n_jobs=1).fit(X, y)
    problem = problem_of(crf, X, y)
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-10, max_steps=30).value
    rounding = 1e-12 * (1 + abs(best))
    assert np.all(np.isfinite(crf.weights_))
    assert np.isfinite(crf.certificate_.upper)
    assert crf.objective_ - best <= crf.certificate_.upper + rounding
    # Weak duality at every record; what is measured on the way is computed at weights that were updated in place.
    slack = 2.0**-48 * (1.0 + np.abs(problem.data.features.data).max(initial=0.0))
    assert all(row["dual"] <= best + rounding + slack * (1.0 + row["primal"]) for row in crf.history_)
    assert_allclose(crf.objective_, problem.value(crf.weights_), rtol=1e-12)
    marginals = crf.predict_marginals(X)
    assert all(np.all(np.abs(m.sum(axis=1) - 1) < 1e-9) for m in marginals)
    assert [len(labels) for labels in crf.predict(X)] == [len(labels) for labels in y]


@settings(max_examples=100, deadline=None)
@given(data_sets())
def test_likelihoods_against_enumeration(data):
    X, y = data
    crf = ChainCRF(max_epochs=3, n_jobs=1).fit(X, y)
    problem = problem_of(crf, X, y)
    expected = [enumerated(problem, crf.weights_, i) for i in range(len(X))]
    size = 1 + float(np.max(np.abs(problem.data.features @ crf.weights_[: problem.n_attributes]), initial=0.0))
    assert_allclose(crf.log_likelihood(X, y), expected, atol=1e-13 * size, rtol=1e-9)


def test_a_name_that_repeats_counts_twice():
    y = [["D", "N"], ["N"]]
    twice = ChainCRF(tol=1e-8).fit([[["a", "a"], ["b"]], [["b"]]], y)
    by_value = ChainCRF(tol=1e-8).fit([[{"a": 2.0}, {"b": 1.0}], [{"b": 1.0}]], y)
    assert_allclose(twice.weights_, by_value.weights_, rtol=1e-12)


def test_huge_values_do_not_stop_lbfgs():
    """Steps of rounding size have no curvature to learn from."""
    huge = {"e": 1e6, "b": 1.0}
    X, y = [[{}, {"a": 1.0}, huge, huge, huge]], [[1, 0, 0, 0, 1]]
    crf = ChainCRF(l2=1e-3, bias=False, solver="lbfgs", max_epochs=200).fit(X, y)
    assert np.all(np.isfinite(crf.weights_))
