"""Experiments on conditional mean field, in their quick form."""

import pytest

from cumulant.experiments import find


def test_the_four_node_example(tmp_path):
    report = find("cmf-four-nodes").run(tmp_path, quick=True)
    assert [claim.verdict for claim in report.claims if claim.verdict == "not reproduced"] == []
    assert len(report.claims) == 17
    assert report.pictures[0].stat().st_size > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cmf-grid", "cmf-complete"])
def test_the_spin_glasses(name, tmp_path):
    report = find(name).run(tmp_path, quick=True)
    assert len(report.claims) > 5
    assert "free edges" in report.notes
    assert all(picture.stat().st_size > 5_000 for picture in report.pictures)
