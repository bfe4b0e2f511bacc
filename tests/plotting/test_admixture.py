"""Pictures of admixtures."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from cumulant.plotting.admixture import distances, memberships


def test_bars_add_up_and_populations_stand_together():
    tau = np.random.default_rng(0).dirichlet([0.5] * 9, size=6)
    ax = memberships(tau, ["b", "a", "b", "a", "b", "c"])
    heights = np.array([bar.get_height() for bar in ax.patches]).reshape(9, 6)
    np.testing.assert_allclose(heights.sum(axis=0), 1.0)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a", "c"]
    first = {tuple(np.round(column, 12)) for column in heights.T[:3]}
    assert first == {tuple(np.round(tau[i], 12)) for i in (0, 2, 4)}


def test_the_map_shows_the_distances():
    matrix = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.5, 0.0]])
    ax = distances(matrix, ["x", "y", "x"])
    np.testing.assert_array_equal(ax.images[0].get_array(), matrix[np.ix_([0, 2, 1], [0, 2, 1])])


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="square"):
        distances(np.ones((2, 3)))
    with pytest.raises(ValueError, match="populations must name"):
        memberships(np.ones((2, 1)), ["a"])
