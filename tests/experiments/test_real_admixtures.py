"""Experiments on genotypes and texts: what they say without data, and their quick forms with them."""

import os

import pytest

from cumulant.experiments.base import find

with_data = [
    pytest.mark.slow,
    pytest.mark.skipif("CUMULANT_DATA" not in os.environ, reason="CUMULANT_DATA does not name the folder of the data"),
]


@pytest.mark.parametrize("name", ["admixture-real", "topics-reuters"])
def test_without_data_nothing_is_claimed(name, monkeypatch, tmp_path):
    monkeypatch.setenv("CUMULANT_DATA", str(tmp_path))
    report = find(name).run(None)
    assert not report.claims
    assert "set CUMULANT_DATA" in report.notes


@pytest.mark.parametrize(
    ("name", "held"),
    [
        pytest.param("admixture-real", ("cattle, K = 2", "a fit takes less than a minute"), marks=with_data),
        pytest.param("topics-reuters", ("every number of topics", "five million tokens"), marks=with_data),
    ],
)
def test_claims_that_hold_at_any_size(name, held, tmp_path):
    report = find(name).run(tmp_path, quick=True)
    assert all(picture.stat().st_size > 5_000 for picture in report.pictures)
    for words in held:
        (verdict,) = (claim.verdict for claim in report.claims if claim.statement.startswith(words))
        assert verdict == "reproduced", words


@pytest.mark.slow
def test_waste_free_particles_on_lattices(monkeypatch):
    monkeypatch.delenv("CUMULANT_DATA", raising=False)
    report = find("waste-free").run(None, quick=True)
    assert [claim.statement.partition(":")[0] for claim in report.claims[:2]] == [
        "8 x 8 spin glass", "12 x 12 ferromagnet near T_c",
    ]  # fmt: skip
    assert "unknown in" in report.claims[-1].ours
