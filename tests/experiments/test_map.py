"""The figures, the table and the theorems of chapter 5 run, and every claim is reproduced or corrected."""

import importlib

import pytest

NAMES = [
    "fig_5_1",
    "fig_5_2",
    "fig_5_3",
    "fig_5_4",
    "fig_5_5",
    "fig_5_6",
    "fig_5_8",
    "fig_5_9",
    "table_5_1",
    "theorems",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_is_reproduced_or_corrected(name, tmp_path):
    experiment = importlib.import_module(f"cumulant.experiments.map_{name}")
    assert "Le Priol" in experiment.SOURCE
    report = experiment.run(tmp_path, quick=True, rng=0)
    assert report.claims
    assert [claim for claim in report.claims if claim.verdict == "not reproduced"] == []
    assert report.pictures
    assert all(picture.exists() and picture.stat().st_size > 5_000 for picture in report.pictures)


def test_the_claims_that_need_correction():
    corrected = {}
    for name in ("fig_5_1", "fig_5_5", "fig_5_9", "theorems"):
        report = importlib.import_module(f"cumulant.experiments.map_{name}").run(quick=True)
        assert report.pictures == ()
        corrected[name] = sum(claim.verdict == "corrected" for claim in report.claims)
    assert corrected == {"fig_5_1": 1, "fig_5_5": 1, "fig_5_9": 2, "theorems": 10}
