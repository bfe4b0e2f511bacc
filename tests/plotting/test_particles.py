"""The trace of a particle run shows what the run recorded."""

import numpy as np
import pytest

from cumulant import graphical, particles
from cumulant.plotting.particles import mean_errors, trace


def test_the_trace_shows_log_z_and_effective_sizes_of_each_island():
    model = graphical.Ising(graphical.grid(3, 3), 0.8)
    result = particles.anneal(model, 50, 5, ess_threshold=0.95, n_islands=2, rng=0)
    left, right = trace(result, exact=model.log_partition())
    np.testing.assert_array_equal(left.lines[1].get_ydata(), result.trace["log_z"][1])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), result.trace["ess"][0])
    assert right.lines[1].get_xdata().size == result.trace["resampled"][0].sum() > 0
    assert left.lines[2].get_ydata()[0] == model.log_partition()


def test_errors_of_methods_are_points_with_a_bar_and_single_answers_squares():
    runs = {"annealed": [0.02, 0.03, 0.04], "hot": [0.01]}
    ax = mean_errors(runs, lines={"Bethe": 0.2})
    points = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(points[0].get_xdata(), runs["annealed"])
    (bar,) = (line for line in ax.lines if line.get_marker() == "None")
    np.testing.assert_allclose(bar.get_xdata(), 0.03 + 1.96 * 0.01 / np.sqrt(3) * np.array([-1, 1]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["annealed", "hot", "Bethe"]
    with pytest.raises(ValueError, match="errors of hot must be positive"):
        mean_errors({"hot": [0.0]})
