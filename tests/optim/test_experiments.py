"""The experiments on optimisation, in their quick form."""

import numpy as np
import pytest

from cumulant.experiments import acceleration, gd_conditioning, implicit_bias, ista, mirror_descent, sgd_sga_sag

EXPERIMENTS = [acceleration, gd_conditioning, implicit_bias, ista, mirror_descent, sgd_sga_sag]


@pytest.mark.parametrize(
    "experiment",
    # What takes seconds even in its quick form goes with the slow ones.
    [pytest.param(each, marks=pytest.mark.slow if each in (acceleration, sgd_sga_sag) else ()) for each in EXPERIMENTS],
    ids=lambda module: module.__name__.rpartition(".")[2],
)
def test_every_claim_is_reproduced_or_corrected(experiment):
    report = experiment.run(quick=True)
    assert report.pictures == ()
    for claim in report.claims:
        assert claim.verdict != "not reproduced", claim
        assert claim.item, claim
        assert claim.ours
    assert experiment.TITLE
    assert "Peyré" in experiment.SOURCE


def test_verdicts_on_curves_turn_where_the_curves_do():
    k = np.arange(31.0)
    two = np.ones((2, 1))
    fast, slow, linear = two / (1 + k), two / (1 + k) ** 0.5, two * 10 ** (-0.3 * k)
    for claim, good, bad in (
        (sgd_sga_sag._adapts, fast, slow),
        (sgd_sga_sag._linear, linear, fast),
        (lambda curve: sgd_sga_sag._early(curve, two[0] * 1e-1 + 0 * k), linear * 0.01, fast),
        (lambda curve: sgd_sga_sag._ordering({"SAG": curve, "SGA": fast, "SGD": slow}), linear, slow),
    ):
        assert claim(good).verdict == "reproduced"
        assert claim(bad).verdict == "not reproduced"
    late, long = np.arange(201.0), 10 ** (-0.1 * np.arange(201.0))
    assert sgd_sga_sag._late(two / (1 + late), long).verdict == "reproduced"
    assert sgd_sga_sag._late(two * long, long).verdict == "not reproduced"


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_whole_experiment_draws_its_picture(experiment, tmp_path):
    pytest.importorskip("matplotlib")
    report = experiment.run(output=tmp_path, rng=1)
    assert all(claim.verdict != "not reproduced" for claim in report.claims)
    (picture,) = report.pictures
    assert picture.stat().st_size > 10_000
