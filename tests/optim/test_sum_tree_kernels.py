"""The trees against plain sums, linear scans and the chi-square law of their draws."""

import numba
import numpy as np
import pytest
from scipy import stats

from cumulant.optim.finite_sums.sum_tree_kernels import (
    max_tree_argmax,
    max_tree_build,
    max_tree_update,
    tree_build,
    tree_draw,
    tree_total,
    tree_update,
)
from tests.reference.sum_tree import draw, padded, pairwise_sum

SIZES = [1, 2, 3, 5, 8, 13, 64, 100, 1000]
BELOW_ONE = np.nextafter(1.0, 0.0)


# Not cached on disk: a cached caller would keep the kernels it was compiled with, whatever became of them since.


@numba.njit
def _update_many(tree, indices, weights):
    for k in range(indices.size):
        tree_update(tree, indices[k], weights[k])


@numba.njit
def _update_many_max(tree, indices, weights):
    for k in range(indices.size):
        max_tree_update(tree, indices[k], weights[k])


@numba.njit
def _draw_many(tree, uniforms, n):
    out = np.empty(uniforms.size, dtype=np.int64)
    for k in range(uniforms.size):
        out[k] = tree_draw(tree, uniforms[k], n)
    return out


@pytest.mark.parametrize("n", SIZES)
def test_the_total_is_the_pairwise_sum(n):
    weights = np.random.default_rng(n).exponential(size=n)
    tree = tree_build(weights)
    assert tree.size == 2 * padded(weights).size
    assert tree_total(tree) == pairwise_sum(padded(weights))


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_a_million_updates_leave_no_drift(n):
    rng = np.random.default_rng(n)
    indices = rng.integers(n, size=1_000_000)
    # Magnitudes from 1e-12 to 1e12: a tree that added differences would have lost the small ones.
    values = 10.0 ** rng.uniform(-12, 12, size=indices.size) * (rng.random(indices.size) > 0.1)
    weights = rng.exponential(size=n)
    tree = tree_build(weights)
    _update_many(tree, indices, values)
    weights[indices] = values  # the last assignment to an index stands, as in the loop
    assert tree_total(tree) == pairwise_sum(padded(weights))
    np.testing.assert_array_equal(tree, tree_build(weights))


@pytest.mark.parametrize("n", SIZES)
def test_draws_invert_the_cumulative_weights(n):
    rng = np.random.default_rng(n)
    weights = rng.integers(0, 5, size=n).astype(float)  # integers: every partial sum is exact
    weights[rng.integers(n)] = 3.0
    tree = tree_build(weights)
    uniforms = np.concatenate([[0.0, BELOW_ONE], rng.random(500), np.arange(weights.sum()) / weights.sum()])
    expected = [draw(weights, u) for u in uniforms]
    np.testing.assert_array_equal(_draw_many(tree, uniforms, n), expected)


@pytest.mark.parametrize("n", [4, 10, 100])
def test_draws_follow_the_weights(n):
    rng = np.random.default_rng(n)
    weights = rng.exponential(size=n) + 0.05
    counts = np.bincount(_draw_many(tree_build(weights), rng.random(100_000), n), minlength=n)
    expected = 100_000 * weights / weights.sum()
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-3


def test_a_wrong_law_is_noticed():
    rng = np.random.default_rng(0)
    weights = np.arange(1.0, 11.0)
    counts = np.bincount(_draw_many(tree_build(weights), rng.random(100_000), 10), minlength=10)
    wrong = weights + 0.3
    assert stats.chisquare(counts, 100_000 * wrong / wrong.sum()).pvalue < 1e-3


@pytest.mark.parametrize("n", [1, 3, 4, 6, 37])
def test_draws_keep_to_positive_weights(n):
    rng = np.random.default_rng(n)
    for _ in range(300):
        weights = 10.0 ** rng.uniform(-300, 300, size=n) * (rng.random(n) < 0.4)
        weights[rng.integers(n)] = 10.0 ** rng.uniform(-320, 300)  # subnormal numbers among them
        tree = tree_build(weights)
        uniforms = np.concatenate([[0.0, 5e-324, 0.5, BELOW_ONE], rng.random(20)])
        drawn = _draw_many(tree, uniforms, n)
        assert drawn.min() >= 0
        assert drawn.max() < n
        assert np.all(weights[drawn] > 0.0)


def test_rounding_past_the_last_positive_weight():
    # 0.1 + 0.2 + 0.3 rounds differently by pairs and from the left, so u close to 1 can overshoot the last leaf.
    for weights in ([0.1, 0.2, 0.3, 0.0], [0.1, 0.7, 0.1, 0.1, 0.1, 0.0, 0.0], [1e16, 1.0, 1.0, 0.0, 0.0]):
        weights = np.array(weights)
        last = np.flatnonzero(weights)[-1]
        drawn = _draw_many(tree_build(weights), np.array([BELOW_ONE]), weights.size)[0]
        assert weights[drawn] > 0.0
        assert drawn <= last


@pytest.mark.parametrize("n", [1, 3, 10])
def test_all_zero_weights_are_drawn_uniformly(n):
    rng = np.random.default_rng(n)
    tree = tree_build(np.ones(n))
    _update_many(tree, np.arange(n), np.zeros(n))
    assert tree_total(tree) == 0.0
    counts = np.bincount(_draw_many(tree, rng.random(100_000), n), minlength=n)
    assert counts.size == n
    assert _draw_many(tree, np.array([0.0, BELOW_ONE]), n).tolist() == [0, n - 1]
    if n > 1:
        assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("n", SIZES)
def test_the_max_tree_finds_the_first_largest(n):
    rng = np.random.default_rng(n)
    weights = rng.integers(0, 6, size=n).astype(float)  # many ties
    tree = max_tree_build(weights)
    for _ in range(300):
        assert max_tree_argmax(tree) == np.argmax(weights)
        i, value = rng.integers(n), float(rng.integers(0, 6))
        weights[i] = value
        _update_many_max(tree, np.array([i]), np.array([value]))
    np.testing.assert_array_equal(tree, max_tree_build(weights))


@pytest.mark.parametrize("n", [1, 1000])
def test_the_max_tree_after_a_million_updates(n):
    rng = np.random.default_rng(n)
    indices, values = rng.integers(n, size=1_000_000), rng.exponential(size=1_000_000)
    weights = np.full(n, 100.0)
    tree = max_tree_build(weights)
    _update_many_max(tree, indices, values)
    weights[indices] = values
    assert max_tree_argmax(tree) == np.argmax(weights)
    np.testing.assert_array_equal(tree, max_tree_build(weights))


def test_all_zero_weights_have_the_first_as_maximum():
    assert max_tree_argmax(max_tree_build(np.zeros(5))) == 0
