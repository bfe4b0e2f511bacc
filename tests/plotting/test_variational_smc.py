"""What is drawn of a run is its trace, and of overlaps their histogram."""

import numpy as np
from numpy.testing import assert_allclose

from cumulant import particles
from cumulant.graphical import Ising, torus
from cumulant.plotting import save
from cumulant.plotting import variational_smc as pictures


def test_a_run_and_its_overlaps(tmp_path):
    result = particles.variational_smc(Ising(torus(4, 4), 0.6), 30, 10, n_islands=2, rng=0)
    axes = pictures.run(result, exact=20.0)
    for ax, name in zip(axes, ("bound", "ess", "distance"), strict=True):
        assert_allclose([line.get_ydata() for line in ax.lines[:2]], result.trace[name])
    assert axes[0].get_legend().get_texts()[0].get_text() == "exact"
    assert save(axes[0].figure, tmp_path / "run.png").stat().st_size > 5000
    found = particles.overlap_distribution(result, bins=9)
    ax = pictures.overlap(found, label="two couplings")
    assert_allclose(ax.patches[0].get_data().values, found.density)
    assert_allclose(np.sum(found.density * np.diff(found.edges)), 1.0)
