"""The baselines on the two spin glasses: independent codes agree on the first instance."""

import pytest
from numpy.testing import assert_allclose

from cumulant.experiments import _spin_glasses as glasses
from cumulant.experiments import spin_glass_baselines as experiment
from cumulant.graphical import complete, grid


def test_tree_reweighted_messages():
    lattice = glasses.tree_reweighted(glasses.instance(0, grid(12, 12)))[0]
    dense = glasses.tree_reweighted(glasses.instance(0, complete(26)))[0]
    assert_allclose(lattice, 166.70, atol=0.01)
    assert_allclose(dense, 162.5 + 0.693147, atol=1e-3)  # the saturated bound: couplings of one sign, and log 2


@pytest.mark.slow
def test_the_first_instance(tmp_path):
    report = experiment.run(tmp_path, quick=True)
    assert [claim.verdict for claim in report.claims] == ["reproduced"] * 6
    assert report.pictures[0].stat().st_size > 5_000
    exact = glasses.exact_by_halves(glasses.instance(0, complete(26)))
    assert_allclose(exact[0], 48.451494, atol=1e-6)
    assert_allclose(exact[1][:4], [0.820481, 0.203852, 0.788273, -0.034248], atol=1e-6)
    lattice = glasses.exact(glasses.instance(0, grid(12, 12)))
    assert_allclose(lattice[0], 153.838123, atol=1e-6)
    assert_allclose(lattice[1][:4], [-0.026187, -0.052066, -0.829193, -0.859022], atol=1e-6)
