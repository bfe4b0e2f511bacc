"""The compiled loops over chains against enumeration."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant import optim
from cumulant.kernels import kernel
from cumulant.sequences import ChainProblem, SequenceData, SequenceDualAscent, SequenceLBFGS, tree_entropy
from cumulant.sequences.chain.chain_kernels import (
    _log_passes,
    _range_of,
    _scaled_passes,
    chain_marginals,
    chain_scores,
    soft,
    sparse_scores,
)
from cumulant.sequences.chain.labelling_kernels import best_labels, sample_labels
from tests.compiled import from_python
from tests.reference import chains

SHAPES = [(t, k) for t in (1, 2, 3, 4) for k in (2, 3)]


# Kernels that only kernels call, for tests to call.


@kernel
def range_of(*arguments):
    return _range_of(*arguments)


@kernel
def scaled_passes(*arguments):
    return _scaled_passes(*arguments)


@kernel
def soft_threshold(*arguments):
    return soft(*arguments)


@kernel
def log_passes(*arguments):
    return _log_passes(*arguments)


def scaled(unary, pair):
    length, k = unary.shape
    moved, forward, ahead, nodes = np.empty((k, k)), np.empty((length, k)), np.empty((length, k)), np.empty((length, k))
    top = range_of(unary, length, pair)[1]
    log_z = scaled_passes(unary, length, pair, top, moved, forward, ahead, nodes)
    pairs = forward[:-1, :, None] * moved * ahead[1:, None, :]
    return nodes, pairs, log_z


def logarithmic(unary, pair):
    length, k = unary.shape
    moved, forward, ahead, nodes = np.empty((k, k)), np.empty((length, k)), np.empty((length, k)), np.empty((length, k))
    log_z = log_passes(unary, length, pair, moved, forward, ahead, nodes)
    return nodes, np.exp(forward[:-1, :, None] + pair + ahead[1:, None, :]), log_z


def either(unary, pair):
    length, k = unary.shape
    nodes, pairs = np.empty((length, k)), np.empty((length - 1, k, k))
    work = np.empty((k, k)), np.empty((length, k)), np.empty((length, k))
    log_z = chain_marginals(unary, length, pair, *work, nodes, pairs)
    return nodes, pairs, log_z


def random_scores(length, k, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=scale, size=(length, k)), rng.normal(scale=scale, size=(k, k))


@pytest.mark.parametrize(("length", "k"), SHAPES)
@pytest.mark.parametrize("passes", [scaled, logarithmic, either])
def test_marginals_against_enumeration(passes, length, k):
    for seed, scale in enumerate([0.1, 1.0, 5.0, 30.0]):
        unary, pair = random_scores(length, k, seed, scale)
        p, log_z = chains.joint(unary, pair)
        nodes, pairs = chains.marginals_of(p, length, k)
        ours = passes(unary, pair)
        assert_allclose(ours[0], nodes, rtol=1e-12, atol=1e-300)
        assert_allclose(ours[1], pairs, rtol=1e-12, atol=1e-300)
        assert_allclose(ours[2], log_z, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("length", "k", "scale"), [(1, 2, 1.0), (7, 5, 3.0), (40, 9, 10.0), (200, 26, 2.0)])
def test_the_two_ways_agree(length, k, scale):
    unary, pair = random_scores(length, k, seed=length, scale=scale)
    assert range_of(unary, length, pair)[0] < 350
    fast, slow = scaled(unary, pair), logarithmic(unary, pair)
    for a, b in zip(fast, slow, strict=True):
        assert_allclose(a, b, rtol=1e-11, atol=1e-300)
    for a, b in zip(either(unary, pair), fast, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("width", [349.0, 351.0])
@pytest.mark.parametrize("of_pairs", [0.0, 0.5, 1.0])
def test_on_both_sides_of_the_switch(width, of_pairs):
    """Scores that differ as much as one way takes, and a little more: shared between nodes and pairs."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        unary, pair = rng.random((4, 3)), rng.random((3, 3))
        unary = (unary - unary.min(axis=1, keepdims=True)) / np.ptp(unary, axis=1, keepdims=True)
        pair = (pair - pair.min()) / np.ptp(pair)
        unary, pair = unary * width * (1 - of_pairs) + rng.normal(), pair * width * of_pairs - 3.0
        p, log_z = chains.joint(unary, pair)
        nodes, pairs = chains.marginals_of(p, 4, 3)
        ours = either(unary, pair)
        assert_allclose(ours[0], nodes, rtol=1e-10, atol=1e-200)
        assert_allclose(ours[1], pairs, rtol=1e-10, atol=1e-200)
        assert_allclose(ours[2], log_z, rtol=1e-13)


def test_small_marginals_of_pairs_are_not_lost():
    unary, pair = np.array([[0.0, 0.0], [0.0, -249.0], [-200.0, 0.0]]), np.array([[-150.0, -250.0], [0.0, -250.0]])
    pairs = chains.marginals_of(chains.joint(unary, pair)[0], 3, 2)[1]
    assert pairs[1, 1, 1] > 1e-217
    assert_allclose(either(unary, pair)[1], pairs, rtol=1e-10)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_scores_of_ten_thousand(length, k):
    rng = np.random.default_rng(length)
    for _ in range(10):
        unary, pair = 1e4 * rng.choice([-1.0, 1.0], (length, k)), 1e4 * rng.choice([-1.0, 1.0], (k, k))
        p, log_z = chains.joint(unary, pair)
        nodes, pairs = chains.marginals_of(p, length, k)
        ours = either(unary, pair)
        assert_allclose(ours[0], nodes, rtol=1e-10, atol=1e-12)
        assert_allclose(ours[1], pairs, rtol=1e-10, atol=1e-12)
        assert_allclose(ours[2], log_z, rtol=1e-14)


@pytest.mark.parametrize("shift", [1e3, 1e10, 1e16])
def test_a_large_score_that_all_labels_of_a_node_share_is_no_matter(shift):
    unary, pair = np.array([[0.0, 0.5], [0.25, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.0], [0.0, 1.5]])
    expected = chains.marginals_of(chains.joint(unary, pair)[0], 3, 2)[0]
    if shift == 1e16:  # its neighbours are 2 apart
        unary, pair = 2 * np.round(unary * 2), 2 * np.round(pair * 2)
        expected = chains.marginals_of(chains.joint(unary, pair)[0], 3, 2)[0]
    moved = unary + np.array([[shift], [0.0], [-shift]])
    assert_allclose(either(moved, pair)[0], expected, rtol=1e-5)


@pytest.mark.parametrize("large", [1e10, 1e16])
def test_marginals_sum_to_one_beside_a_large_score(large):
    nodes, pairs, _ = either(np.array([[large, 0.0], [0.3, 0.0]]), np.zeros((2, 2)))
    assert_allclose(nodes.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(pairs.sum(axis=(1, 2)), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_the_entropy_against_enumeration(length, k):
    for seed in range(5):
        p, _ = chains.joint(*random_scores(length, k, seed, 2.0))
        nodes, pairs = chains.marginals_of(p, length, k)
        assert_allclose(tree_entropy(nodes, pairs), chains.entropy(p), rtol=1e-12)
        certain = np.zeros_like(p)
        certain[seed % len(p)] = 1.0
        assert tree_entropy(*chains.marginals_of(certain, length, k)) == 0.0


def test_a_kernel_without_logarithms_says_where_it_needs_them():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 2))
    features[4] *= 1e4  # the scores of the second sequence differ by more than 350
    offsets = [0, 3, 7, 12]
    problem = ChainProblem(SequenceData(features, offsets, rng.integers(0, 3, size=12)), 3, bias=False)
    w = rng.normal(size=problem.shape)
    unary, length = features @ w[:2], 4
    work = np.empty((3, 3)), *np.empty((3, length, 3)), np.empty((length - 1, 3, 3))
    assert range_of(unary[3:7], length, w[2:])[0] > 350
    assert np.isnan(chain_marginals(unary[3:7], length, w[2:], *work, None))
    expected = [chains.joint(unary[a:b], w[2:])[1] for a, b in itertools.pairwise(offsets)]
    assert_allclose(problem.log_partitions(w), expected, rtol=1e-12)
    result = optim.run(
        SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-6, rng=0
    )  # the ascent goes on too
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-9)
    assert result.status == "converged"
    assert abs(result.value - best.value) <= result.certificate.upper + best.certificate.upper


@pytest.mark.parametrize(("length", "k"), SHAPES)
def test_best_labels_against_enumeration(length, k):
    rng = np.random.default_rng(length)
    for _ in range(20):
        unary, pair = rng.normal(size=(length, k)), rng.normal(size=(k, k))
        scores = chains.scores_of_all(unary, pair)
        out = np.empty(length, dtype=np.int64)
        value, origin = np.empty((2, k)), np.empty((length, k), dtype=np.int64)
        score = best_labels(unary, length, pair, value, origin, out)
        assert_array_equal(out, chains.labellings(length, k)[np.argmax(scores)])
        assert_allclose(score, scores.max(), rtol=1e-13)


def test_best_labels_takes_the_lower_of_equal_labels():
    out = np.full(5, -1)
    best_labels(np.zeros((5, 3)), 5, np.zeros((3, 3)), np.empty((2, 3)), np.empty((5, 3), dtype=np.int64), out)
    assert_array_equal(out, 0)


def test_samples_invert_the_conditional_probabilities():
    """A fine grid of uniforms at each node: every label is drawn in proportion to its conditional probability."""
    p, _ = chains.joint(*random_scores(3, 3, 0))
    nodes, pairs = chains.marginals_of(p, 3, 3)
    grid, out = (np.arange(60) + 0.5) / 60, np.empty(3, dtype=np.int64)
    for u, v, w in np.random.default_rng(0).choice(grid, size=(500, 3)):
        sample_labels(nodes, pairs, 3, np.array([u, v, w]), out)
        expected = np.searchsorted(np.cumsum(nodes[0]), u, side="right")
        assert out[0] == expected
        for t, uniform in ((1, v), (2, w)):
            row = pairs[t - 1, out[t - 1]]
            assert out[t] == np.searchsorted(np.cumsum(row / row.sum()), uniform, side="right")


def test_samples_keep_to_possible_labels_after_the_first_node():
    nodes, pairs = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[[1.0, 0.0], [0.0, 0.0]]])
    out = np.empty(2, dtype=np.int64)
    sample_labels(nodes, pairs, 2, np.full(2, np.nextafter(1.0, 0.0)), out)
    assert_array_equal(out, 0)


def test_samples_keep_to_possible_labels_at_the_first_node():
    below = np.nextafter(1.0, 0.0)  # what probabilities may add up to, and the largest uniform
    nodes, pairs = np.array([[below, 0.0], [below, 0.0]]), np.array([[[below, 0.0], [0.0, 0.0]]])
    out = np.empty(2, dtype=np.int64)
    sample_labels(nodes, pairs, 2, np.full(2, below), out)
    assert_array_equal(out, 0)


# With features --------------------------------------------------------------------------------------------------------


def random_problem(seed, bias, k=3, attributes=4, lengths=(1, 2, 3, 4)):
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)
    x = rng.normal(size=(tokens, attributes)) * (rng.random((tokens, attributes)) < 0.6)
    data = SequenceData(x, np.concatenate([[0], np.cumsum(lengths)]), rng.integers(k, size=tokens))
    return ChainProblem(data, k, l2=0.3, bias=bias), rng.normal(size=(attributes + 3 * bias + k, k))


@pytest.mark.parametrize("bias", [False, True])
def test_scores_are_inner_products_of_features_and_weights(bias):
    problem, w = random_problem(0, bias)
    offsets = problem.data.offsets
    x = problem.data.features.toarray()
    for i in range(4):
        length = offsets[i + 1] - offsets[i]
        ours, thresholded = np.empty((length, 3)), np.empty((length, 3))
        where = *problem.tokens, offsets[i], offsets[i + 1]
        chain_scores(w, 4, bias, *where, ours)
        from_python(sparse_scores)(w, 0.4, 4, bias, *where, thresholded)
        shrunk = np.sign(w) * np.maximum(np.abs(w) - 0.4, 0.0)
        for weights, scores in ((w, ours), (shrunk, thresholded)):
            whole = chains.scores_of_all(scores, weights[-3:])
            direct = [
                np.sum(weights * chains.features(x[offsets[i] : offsets[i + 1]], y, 3, bias))
                for y in chains.labellings(length, 3)
            ]
            assert_allclose(whole, direct, rtol=1e-12, atol=1e-13)


def test_soft_goes_towards_zero_and_not_beyond():
    for value, expected in ((2.0, 1.5), (-2.0, -1.5), (0.3, 0.0), (-0.3, 0.0), (0.5, 0.0)):
        assert soft_threshold(value, 0.5) == expected
    assert soft_threshold(-1.25, 0.0) == -1.25


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_value_and_gradient_against_enumeration(bias, scale):
    """Expectations of all features at once, by the scaled passes and by those on logarithms."""
    problem, w = random_problem(1, bias)
    w = scale * w
    offsets, x, y = problem.data.offsets, problem.data.features.toarray(), problem.labels
    value, gradient = 0.15 * np.sum(w**2), 0.3 * w
    for i in range(4):
        rows = slice(offsets[i], offsets[i + 1])
        all_features = np.array(
            [chains.features(x[rows], z, 3, bias) for z in chains.labellings(offsets[i + 1] - offsets[i], 3)]
        )
        scores = np.sum(all_features * w, axis=(1, 2))
        own = chains.features(x[rows], y[rows], 3, bias)
        highest = scores.max()
        p = np.exp(scores - highest)
        value += (highest + np.log(p.sum()) - np.sum(w * own)) / 4
        gradient += (np.tensordot(p / p.sum(), all_features, axes=1) - own) / 4
    ours = problem.value_and_gradient(w)
    assert_allclose(ours[0], value, rtol=1e-12)
    assert_allclose(ours[1], gradient, rtol=1e-10, atol=1e-11)


def test_sizes_of_the_handwriting_model():
    """128 pixels, 26 letters: 4082 weights; pair marginals take ``8 K^2 (N - n)`` bytes; P(0) is ``(N / n) log K``."""
    lengths = np.array([3, 1, 5, 2])
    data = SequenceData(np.zeros((11, 128)), np.concatenate([[0], np.cumsum(lengths)]), np.zeros(11, dtype=int))
    problem = ChainProblem(data, 26)
    assert np.prod(problem.shape) == 4082
    assert problem.start().pairs.nbytes == 8 * 26**2 * (11 - 4)
    assert_allclose(problem.value(np.zeros(problem.shape)), 11 / 4 * np.log(26), rtol=1e-14)
