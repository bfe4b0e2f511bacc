"""The two experiments of this package run, and their claims come out as recorded."""

import importlib

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "misses"), [("mlp", {"a network grown by one neuron at a time"}), ("ad_costs", set())]
)
def test_the_claims(name, misses, tmp_path):
    experiment = importlib.import_module(f"cumulant.experiments.{name}")
    report = experiment.run(tmp_path, rng=0)
    missed = {claim.statement for claim in report.claims if claim.verdict == "not reproduced"}
    assert all(any(one.startswith(miss) for miss in misses) for one in missed)
    assert all(picture.exists() and picture.stat().st_size > 5_000 for picture in report.pictures)
