"""The experiments on optimisation, in their quick form."""

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


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_the_whole_experiment_draws_its_picture(experiment, tmp_path):
    pytest.importorskip("matplotlib")
    report = experiment.run(output=tmp_path, rng=1)
    assert all(claim.verdict != "not reproduced" for claim in report.claims)
    (picture,) = report.pictures
    assert picture.stat().st_size > 10_000
