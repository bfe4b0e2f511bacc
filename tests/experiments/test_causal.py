"""Experiments on categorical cause-effect models in their quick form: no claim fails that their size can judge."""

import pytest

from cumulant.experiments import find


def failed(name, tmp_path):
    report = find(name).run(tmp_path, quick=True)
    assert report.pictures
    assert all(picture.stat().st_size > 5_000 for picture in report.pictures)
    assert all(claim.item for claim in report.claims)
    return [claim.item for claim in report.claims if claim.verdict == "not reproduced"]


def test_radii(tmp_path):
    assert failed("causal-radius", tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["causal-categorical", "causal-single-row", "causal-direction", "causal-theorems"])
def test_figures_theorems_and_the_table(name, tmp_path):
    assert failed(name, tmp_path) == []
