"""Bins: edges that are kept, ties, and values beyond the range."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import Bins


def test_quantiles_have_equal_shares():
    values = np.random.default_rng(0).normal(size=1000)
    bins = Bins.learn(values, 5)
    assert np.bincount(bins.codes(values)).tolist() == [200] * 5
    assert len(bins.labels()) == bins.size == 5


def test_uniform_bins_have_equal_widths():
    bins = Bins.learn([0.0, 1.0, 1.0, 10.0], 4, "uniform")
    assert_allclose(bins.edges, [0, 2.5, 5, 7.5, 10])
    assert bins.codes([2.4, 2.5, 10.0]).tolist() == [0, 1, 3]


def test_ties_make_fewer_bins():
    bins = Bins.learn([0.0] * 8 + [1.0, 2.0], 5)
    assert bins.size == 2
    assert np.all(np.bincount(bins.codes([0.0] * 8 + [1.0, 2.0]), minlength=2) > 0)
    assert Bins.learn([0.0] * 99 + [1.0], 4).codes([0.0, 1.0]).tolist() == [0, 1]
    assert Bins.learn([0.0] + [1.0] * 99, 4).codes([0.0, 1.0]).tolist() == [0, 1]


def test_values_beyond_are_in_the_outer_bins():
    bins = Bins(np.array([0.0, 1.0, 2.0]))
    assert bins.codes([-5.0, 0.0, 2.0, 7.0]).tolist() == [0, 0, 1, 1]
    assert bins.beyond([-5.0, 0.0, 2.0, 7.0]) == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Bins.learn([1.0, 1.0], 3), "at least two different values"),
        (lambda: Bins.learn([], 3), "at least two different values"),
        (lambda: Bins.learn([1.0, np.nan], 3), "must be finite"),
        (lambda: Bins.learn([1.0, 2.0], 1), "n_bins must be a whole number of at least 2"),
        (lambda: Bins.learn([1.0, 2.0], 2, "kmeans"), "strategy must be one of"),
        (lambda: Bins([0.0, 1.0]), "at least three increasing"),
        (lambda: Bins([0.0, 1.0, 1.0]), "at least three increasing"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
