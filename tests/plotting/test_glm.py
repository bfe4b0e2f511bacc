"""What is drawn is what was given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.glm import GLM
from cumulant.plotting import glm, save


def test_the_features_that_enter_first_have_names_and_the_penalty_falls(tmp_path):
    coefficients = np.array([[0.0, 0.0, 0.0], [0.0, -1.0, 0.0], [2.0, -3.0, 0.5]])
    ax = glm.coefficient_path([1.0, 0.1, 0.01], coefficients, names=["a", "b", "c"], named=2)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["b", "a"]
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert_allclose(drawn["b"], coefficients[:, 1])
    assert_allclose(drawn["a"], coefficients[:, 0])
    assert ax.get_xscale() == "log"
    assert ax.xaxis_inverted()
    assert save(ax.figure, tmp_path / "path.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("penalties", "coefficients", "names", "message"),
    [
        ([0.0, 1.0], np.ones((2, 1)), None, "penalties must be a vector of positive numbers"),
        ([1.0], np.ones((2, 1)), None, "a row for each of the 1 penalties"),
        ([1.0], [[np.nan]], None, "coefficients must be finite"),
        ([1.0], [[1.0]], ["a", "b"], "names must be 1"),
    ],
)
def test_a_path_that_does_not_fit_together_is_refused(penalties, coefficients, names, message):
    with pytest.raises(ValueError, match=message):
        glm.coefficient_path(penalties, coefficients, names=names)


def test_bound_and_truth_are_drawn_where_they_are_positive():
    ax = glm.gap_and_truth([1, 2, 3], [1.0, 0.1, 0.01], [0.5, 0.05, -1e-17])
    assert_allclose(ax.lines[0].get_xydata(), [[1, 1.0], [2, 0.1], [3, 0.01]])
    assert_allclose(ax.lines[1].get_xydata(), [[1, 0.5], [2, 0.05]])
    with pytest.raises(ValueError, match="one length"):
        glm.gap_and_truth([1, 2], [1.0], [1.0])


def test_intervals_are_those_of_the_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=60) > 0).astype(int)
    table = GLM("bernoulli", l2=0.0).fit(X, y).summary(X, y, level=0.9)
    ax = glm.coefficient_intervals(table)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x0", "x1"]
    assert_allclose(ax.lines[-1].get_xdata(), table.coef[1:])
    ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    assert_allclose(ends, np.column_stack([table.lower, table.upper])[1:])
    assert "90 %" in ax.get_xlabel()
    assert save(ax.figure, tmp_path / "intervals.png").stat().st_size > 5000
    assert len(glm.coefficient_intervals(table, intercept=True).lines[-1].get_xdata()) == 3
