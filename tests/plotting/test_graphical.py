"""What is drawn is what was given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import Interval
from cumulant.plotting import graphical, save

EDGES = [(0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 4), (4, 5)]
SIGNS = [1, -1, 1, 1, -1, -1, 1]
MEANS = np.linspace(-0.9, 0.9, 6).reshape(2, 3)


def test_spins_have_their_means_and_couplings_their_signs(tmp_path):
    ax = graphical.spins(MEANS, EDGES, SIGNS, title="six")
    differ, agree, dots = ax.collections
    assert (len(differ.get_segments()), len(agree.get_segments())) == (3, 4)
    assert_allclose(agree.get_segments()[1], [[0, 0], [0, 1]])  # the edge from spin 0 to spin 3, below it
    assert_allclose(dots.get_array(), MEANS.ravel())
    assert_allclose(dots.get_offsets()[4], [1, 1])
    assert save(ax.figure, tmp_path / "spins.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("means", "edges", "couplings", "message"),
    [
        (MEANS.ravel(), EDGES, SIGNS, "means must be a matrix"),
        (MEANS, EDGES, SIGNS[:2], "one number for each"),
        (MEANS, [(0, 6)], [1.0], "numbered from 0 to 5; got 0 to 6"),
    ],
)
def test_spins_that_do_not_fit_together_are_refused(means, edges, couplings, message):
    with pytest.raises(ValueError, match=message):
        graphical.spins(means, edges, couplings)


def test_the_band_keeps_the_best_bounds_so_far():
    ax = graphical.closing([1, 2, 4], [Interval(0, 9), Interval(2, 10), Interval(1, 6)], truth=3.0)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert_allclose(drawn["upper bound"], [9, 9, 6])
    assert_allclose(drawn["lower bound"], [0, 2, 2])
    assert_allclose(drawn["exact"], 3.0)


@pytest.mark.parametrize(
    ("work", "intervals", "message"),
    [
        ([2, 1], [Interval(0, 1)] * 2, "increasing vector"),
        ([1], [], "each of the 0 intervals"),
        ([1], [Interval(-np.inf, 1)], "finite"),
    ],
)
def test_intervals_that_cannot_be_drawn_are_refused(work, intervals, message):
    with pytest.raises(ValueError, match=message):
        graphical.closing(work, intervals)


def test_pixels_and_chains_are_those_given():
    values = np.random.default_rng(0).random((9, 5))
    assert_allclose(graphical.pixels(values).images[0].get_array(), values)
    lines = graphical.chains(values, label="m").lines  # more chains than colours
    assert_allclose([line.get_ydata() for line in lines], values)
    with pytest.raises(ValueError, match="values must be a matrix of finite numbers"):
        graphical.chains([[np.nan]])


def test_snapshots_are_the_states_side_by_side(tmp_path):
    states = [np.where(np.arange(12).reshape(3, 4) % k == 0, 1, -1) for k in (2, 3, 5)]
    axes = graphical.snapshots(states, ["hot", "critical", "cold"])
    assert [ax.get_title() for ax in axes] == ["hot", "critical", "cold"]
    for ax, state in zip(axes, states, strict=True):
        assert_allclose(ax.images[0].get_array(), state)
        assert ax.images[0].get_clim() == (-1.0, 1.0)
    assert save(axes[0].figure, tmp_path / "snapshots.png").stat().st_size > 3000
    with pytest.raises(ValueError, match="one for each"):
        graphical.snapshots(states, ["hot"])
