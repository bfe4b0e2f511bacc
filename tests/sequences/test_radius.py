"""The squared radii against enumeration and published numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.errors import TooWide
from cumulant.sequences import ChainProblem, SequenceData, exact_radii
from cumulant.sequences.chain.radius import feature_radii
from tests.reference import chains


def tiny():
    """Three short sequences with two labels and two attributes."""
    x = [[1, 0], [0, 1], [1, 1], [0, 1], [1, 0], [1, 1]]
    return SequenceData(x, [0, 3, 5, 6], [0, 1, 0, 1, 0, 1])


def exact(data, labels, bias=True):
    x = data.features.toarray()
    spans = zip(data.offsets[:-1], data.offsets[1:], strict=True)
    return np.array([chains.radius(x[a:b], data.labels[a:b], labels, bias) for a, b in spans])


def random_data(rng, n, k, used, signed, attributes=3):
    """`n` sequences of 1 to 4 nodes whose labels are the first `used` of `k`."""
    lengths = rng.integers(1, 5, size=n)
    x = rng.normal(size=(lengths.sum(), attributes)) * (rng.random((lengths.sum(), attributes)) < 0.7)
    x = x if signed else np.abs(x)
    return SequenceData(x, np.concatenate([[0], np.cumsum(lengths)]), rng.integers(used, size=lengths.sum()))


def test_three_short_sequences():
    """Exact (28, 10, 10), and (38, 16, 10) by the closed form: only the third lacks a label."""
    assert_array_equal(exact(tiny(), 2), [28, 10, 10])
    assert_array_equal(feature_radii(ChainProblem(tiny(), 2)), [38, 16, 10])
    assert_array_equal(feature_radii(ChainProblem(tiny(), 3)), exact(tiny(), 3))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("k", "used"), [(2, 1), (3, 2), (3, 1), (4, 3)])
def test_exact_where_a_label_is_absent(k, used, bias):
    data = random_data(np.random.default_rng(k + used), 40, k, used, signed=False)
    assert_allclose(feature_radii(ChainProblem(data, k, bias=bias)), exact(data, k, bias), rtol=1e-13)


@pytest.mark.parametrize("bias", [False, True])
def test_a_column_of_one_sign_is_as_good_as_a_positive_one(bias):
    data = random_data(np.random.default_rng(0), 40, 3, 2, signed=False)
    turned = SequenceData(data.features.toarray() * [-1.0, 1.0, -1.0], data.offsets, data.labels)
    assert_allclose(feature_radii(ChainProblem(turned, 3, bias=bias)), exact(data, 3, bias), rtol=1e-13)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_never_below_the_exact_radius(k, signed, bias):
    data = random_data(np.random.default_rng(k), 150, k, k, signed)
    ours, truth = feature_radii(ChainProblem(data, k, bias=bias)), exact(data, k, bias)
    assert np.all(ours >= truth * (1 - 1e-13))
    some = truth > 0
    assert np.all(ours[~some] == 0)
    assert np.median(ours[some] / truth[some]) < 1.6  # a bound, not a wild guess
    alone = data.lengths == 1
    assert_allclose(ours[alone], truth[alone], rtol=1e-13)


def test_the_bound_for_mixed_signs_is_attained():
    """No biases and no transitions to speak of: one attribute, whose signs another labelling can pull apart."""
    data = SequenceData([[100.0], [-100.0]], [0, 2], [0, 0])
    truth, ours = exact(data, 3, bias=False)[0], feature_radii(ChainProblem(data, 3, bias=False))[0]
    assert ours >= truth
    assert_allclose(ours, truth, atol=2.0)  # 20,000 and what transitions can differ by
    # gold labels that pull the signs apart already, and the opposite
    data = SequenceData([[100.0], [-100.0]], [0, 2], [0, 1])
    truth, ours = exact(data, 2, bias=False)[0], feature_radii(ChainProblem(data, 2, bias=False))[0]
    assert_allclose(truth, 80_000, atol=4.0)
    assert truth <= ours
    assert_allclose(ours, truth, atol=4.0)


def test_values_of_one_attribute_add_up_before_they_are_squared():
    data = SequenceData([[2.0], [3.0]], [0, 2], [0, 0])
    # 5^2 of the labels and of the other labelling; 1^2 for one transition each
    assert_array_equal(feature_radii(ChainProblem(data, 2, bias=False)), [52.0])


def test_one_label_has_one_labelling():
    assert_array_equal(feature_radii(ChainProblem(SequenceData(np.ones((3, 2)), [0, 2, 3], [0, 0, 0]), 1)), [0.0, 0.0])


def test_without_attributes():
    data = SequenceData(np.zeros((3, 2)), [0, 1, 3], [0, 0, 1])
    assert_allclose(feature_radii(ChainProblem(data, 3)), exact(data, 3))


def test_sequences_drawn_from_a_hidden_markov_model():
    """400 sequences over a vocabulary of 2000: the largest is 1060 and the mean 478.6, in a separate implementation."""
    rng, k, v = np.random.default_rng(0), 9, 2000
    moves, first = rng.dirichlet(np.full(k, 0.5), size=k), rng.dirichlet(np.ones(k))
    emission = np.array([np.arange(1, v + 1) ** -1.1 * np.exp(1.5 * rng.normal(size=v)) for _ in range(k)])
    emission /= emission.sum(axis=1, keepdims=True)
    labels, attributes, offsets = [], [], [0]
    for _ in range(400):
        length, words = rng.integers(5, 21), []
        for t in range(length):
            labels.append(rng.choice(k, p=moves[labels[-1]] if t else first))
            words.append(rng.choice(v, p=emission[labels[-1]]))
        for t, word in enumerate(words):
            before = v + words[t - 1] if t else 3 * v
            attributes.append([word, before, 2 * v + words[t + 1] if t + 1 < length else 3 * v + 1])
        offsets.append(len(labels))
    x = np.zeros((len(labels), 3 * v + 2))
    np.add.at(x, (np.arange(len(labels))[:, None], np.array(attributes)), 1.0)
    assert len(labels) == 5056
    radii = feature_radii(ChainProblem(SequenceData(x, offsets, labels), k))
    assert radii.max() == 1060
    assert_allclose(radii.mean(), 478.6, atol=0.05)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_exact_radii_against_enumeration(k, signed, bias):
    data = random_data(np.random.default_rng(10 + k), 60, k, k, signed)
    problem = ChainProblem(data, k, bias=bias)
    assert_allclose(exact_radii(problem), exact(data, k, bias), rtol=1e-12, atol=1e-12)


def test_exact_radii_of_the_tiny_problem_and_of_too_long_a_sequence():
    assert_array_equal(exact_radii(ChainProblem(tiny(), 2)), [28, 10, 10])
    data = SequenceData(np.ones((40, 1)), [0, 40], np.arange(40) % 2)
    with pytest.raises(TooWide, match=r"sequence 0 has 2\^40 labellings"):
        exact_radii(ChainProblem(data, 2))
    assert exact_radii(ChainProblem(data, 3))[0] == feature_radii(ChainProblem(data, 3))[0]  # a label is absent
