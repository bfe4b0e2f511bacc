"""Graphical models: every claim of the experiment on theorems, made small."""

from cumulant.experiments import graphical_theorems as experiment


def test_all_claims_hold_and_have_a_label(tmp_path):
    report = experiment.run(tmp_path, quick=True)
    assert {claim.statement: claim.verdict for claim in report.claims if claim.verdict.startswith("not")} == {}
    assert sum(claim.verdict == "corrected" for claim in report.claims) == 2
    assert all(claim.item for claim in report.claims)
    assert report.pictures[0].stat().st_size > 5_000
