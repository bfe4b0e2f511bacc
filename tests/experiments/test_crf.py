"""The figures and the table of chapter 3: they run, the data are the published ones, and so are sizes and optima."""

import importlib

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.experiments import _crf

NAMES = ["table_3_1", "fig_3_3", "fig_3_4", "fig_3_5", "fig_3_8", "fig_3_9", "fig_3_10"]

needs_data = pytest.mark.skipif(_crf.folder() is None, reason="set CUMULANT_DATA to the folder that holds ocr.npz")


def load(name):
    return importlib.import_module(f"cumulant.experiments.crf_{name}")


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_without_the_data(name, tmp_path, monkeypatch):
    monkeypatch.delenv("CUMULANT_DATA", raising=False)
    experiment = load(name)
    assert "Le Priol" in experiment.SOURCE
    report = experiment.run(tmp_path, quick=True, rng=0)
    assert report.claims
    assert not any("handwritten" in claim.statement for claim in report.claims)
    assert "CUMULANT_DATA" in report.notes
    assert all(picture.exists() and picture.stat().st_size > 5_000 for picture in report.pictures)
    assert report.pictures


def test_the_sparse_task_is_the_published_one():
    """Sizes and optimum of the same set made by other code."""
    task = _crf.sparse_words()
    assert task.problem.shape == (6002 + 3 + 9, 9)
    assert (task.problem.n_terms, len(task.problem.labels), len(task.test)) == (400, 5056, 200)
    assert_allclose(task.problem.value(np.zeros(task.problem.shape)), 27.7729, atol=5e-5)
    assert_allclose(task.optimum, 11.9878010451, atol=2e-10)


def test_the_formulas_of_the_table():
    report = load("table_3_1").run()
    assert [claim.verdict for claim in report.claims[:4]] == ["reproduced", "reproduced", "reproduced", "corrected"]
    assert "4,082" in report.claims[0].ours
    assert "1,643,026" in report.claims[0].ours


@needs_data
def test_the_handwritten_words_are_the_published_ones():
    task = _crf.ocr(60)
    assert len(task.test) == 675
    claim = load("table_3_1").run().claims[4]
    assert claim.verdict == "corrected"
    assert "47,010" in claim.ours


@needs_data
@pytest.mark.slow
def test_the_optimum_of_a_thousand_words():
    task = _crf.ocr(1000)
    assert_allclose(task.optimum, 0.8551148420, atol=2e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig_3_3", "fig_3_4"])
def test_gap_sampling_is_best(name):
    claims = load(name).run().claims
    assert claims[0].verdict == "reproduced"


@pytest.mark.slow
def test_all_solvers_reach_the_same_optimum():
    """Within 1e-6 on the sparse task, with the same predictions up to ties."""
    from cumulant.experiments.crf_fig_3_5 import SOLVERS

    task = _crf.sparse_words()
    errors = []
    for name, solver in SOLVERS.items():
        columns = _crf.follow(solver, task.problem, 80, 0, lambda w: {"error": task.errors(w)[0]})
        assert columns["value"][-1] - task.optimum < 1e-6, name
        assert np.all(columns["value"] - task.optimum <= columns["bound"] + 1e-10)
        errors.append(columns["error"][-1])
    assert_allclose(errors, 0.51553, atol=5e-5)
