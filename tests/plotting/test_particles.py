"""The trace of a particle run shows what the run recorded."""

import numpy as np

from cumulant import graphical, particles
from cumulant.plotting.particles import trace


def test_the_trace_shows_log_z_and_effective_sizes_of_each_island():
    model = graphical.Ising(graphical.grid(3, 3), 0.8)
    result = particles.anneal(model, 50, 5, ess_threshold=0.95, n_islands=2, rng=0)
    left, right = trace(result, exact=model.log_partition())
    np.testing.assert_array_equal(left.lines[1].get_ydata(), result.trace["log_z"][1])
    np.testing.assert_array_equal(right.lines[0].get_ydata(), result.trace["ess"][0])
    assert right.lines[1].get_xdata().size == result.trace["resampled"][0].sum() > 0
    assert left.lines[2].get_ydata()[0] == model.log_partition()
