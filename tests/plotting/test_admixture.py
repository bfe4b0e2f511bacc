"""Pictures of admixtures."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from cumulant.plotting.admixture import compare, distances, memberships


def _heights(ax):
    """Of each component (rows) at each individual."""
    return np.array([patch.get_data().values - patch.get_data().baseline for patch in ax.patches])


def test_bars_add_up_and_populations_stand_together():
    tau = np.random.default_rng(0).dirichlet([0.5] * 9, size=6)
    ax = memberships(tau, ["b", "a", "b", "a", "b", "c"])
    heights = _heights(ax)
    np.testing.assert_allclose(heights.sum(axis=0), 1.0)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a", "c"]
    first = {tuple(np.round(column, 12)) for column in heights.T[:3]}
    assert first == {tuple(np.round(tau[i], 12)) for i in (0, 2, 4)}


def test_many_components_have_different_colours():
    ax = memberships(np.full((3, 25), 0.04))
    assert len({(patch.get_facecolor(), patch.get_hatch()) for patch in ax.patches}) == 25


def test_rows_of_bars_keep_colours_and_order():
    """The second row has the components of the first in another order, and one of them in two parts."""
    two = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.0, 1.0]])
    three = np.array([[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.3, 0.1, 0.6], [0.7, 0.0, 0.3]])
    fig = compare({"K = 2": two, "K = 3": three}, ["a", "a", "b", "b"])
    top, bottom = fig.axes
    colours = [[patch.get_facecolor() for patch in ax.patches] for ax in (top, bottom)]
    assert colours[1][1] == colours[0][0]
    assert len(set(colours[1])) == 3
    assert set(colours[0]) < set(colours[1])
    np.testing.assert_allclose(_heights(bottom).sum(axis=0), 1.0)
    np.testing.assert_allclose(_heights(top)[0], two[[0, 1, 3, 2], 0])  # in the order of the last row
    assert [label.get_text() for label in bottom.get_xticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="same individuals"):
        compare({2: two, 3: three[:3]})
    with pytest.raises(ValueError, match="at least one fit"):
        compare({})


def test_the_map_shows_the_distances():
    matrix = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.5, 0.0]])
    ax = distances(matrix, ["x", "y", "x"])
    np.testing.assert_array_equal(ax.images[0].get_array(), matrix[np.ix_([0, 2, 1], [0, 2, 1])])


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="square"):
        distances(np.ones((2, 3)))
    with pytest.raises(ValueError, match="populations must name"):
        memberships(np.ones((2, 1)), ["a"])
