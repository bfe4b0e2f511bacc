"""Variational sequential Monte Carlo: the experiments run in their quick form, and claims that any size allows hold."""

import pytest

from cumulant.experiments.base import find


def verdicts(name, tmp_path):
    report = find(name).run(tmp_path, quick=True)
    assert report.pictures[0].stat().st_size > 5_000
    return {claim.statement: claim.verdict for claim in report.claims}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vsmc-demo", ("the method ends near", "annealing ends in one", "the effective sample size falls")),
        ("vsmc-ferromagnet", ("at low temperatures", "the couplings that are found")),
        ("vsmc-spin-glass", ("the number of states of energy zero",)),
        ("vsmc-overlap", ("two couplings keep",)),
        ("vsmc-steps", ("a tangent-line model", "the quadratic model of the naive", "the effective sample size ranks")),
    ],
)
def test_claims_that_hold_at_any_size(name, words, tmp_path):
    found = verdicts(name, tmp_path)
    for word in words:
        (verdict,) = (each for statement, each in found.items() if statement.startswith(word))
        assert verdict != "not reproduced", word
