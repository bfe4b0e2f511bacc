"""The baselines on the two spin glasses: independent codes agree on the first instance."""

import numpy as np
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


def verdicts(settled=0, **off):
    """Of made-up errors, those named moved: rows of an error of log Z, one of the means, and log Z."""
    found = {
        "grid": {"mean field": -8.0, "mean field, blocks": -0.3, "Bethe": 0.3, "Kikuchi": 0.0, "tree-reweighted": 13.0},
        "complete": {"mean field": -2.0, "mean field, blocks": -0.5, "Bethe": 9.0, "tree-reweighted": 115.0},
    }
    for place, methods in off.items():
        found[place] |= methods
    rows = {
        place: {name: np.array([[error, 0.1, 150.0]] * 2) for name, error in methods.items()}
        for place, methods in found.items()
    }
    return [claim.verdict == "reproduced" for claim in experiment._claims(rows, settled, 2)]


def test_each_verdict_turns_where_its_claim_is_false():
    assert verdicts() == [True] * 6
    assert verdicts(grid={"Bethe": -0.6}) == [False, *[True] * 5]
    assert verdicts(grid={"tree-reweighted": 15.1}) == [True, False, *[True] * 4]
    assert verdicts(settled=1) == [True, True, False, True, True, True]
    assert verdicts(complete={"Bethe": -4.0}) == [True, True, True, False, True, True]
    assert verdicts(complete={"tree-reweighted": 49.0}) == [True, True, True, True, False, True]
    assert verdicts(complete={"mean field": 0.1}) == verdicts(grid={"tree-reweighted": -0.1}) == [*[True] * 5, False]


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
