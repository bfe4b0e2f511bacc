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


def _claim(report, item):
    """The claim of an item; of the first task, where there are several."""
    return next(claim for claim in report.claims if claim.item == item)


def _verdicts(report, *items):
    return [_claim(report, item).verdict for item in items]


@pytest.fixture(scope="module")
def alone():
    """Without the handwritten words and the chunking data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUMULANT_DATA", raising=False)
        figures = ("fig_3_3", "fig_3_4", "fig_3_5", "fig_3_8", "fig_3_9", "fig_3_10")
        return {name: load(name).run(quick=True) for name in figures}


def test_what_must_hold_of_the_figures_even_on_a_small_task(alone):
    """Draws by gap beat uniform ones, precision of the search is no matter, two steps of Newton do, errors agree."""
    figure = alone["fig_3_3"]
    worse = {claim.statement: claim.verdict for claim in figure.claims if claim.item == "section 3.6.3"}
    assert worse["sparse words: uniform draws are worse than draws by gap"] == "reproduced"
    assert float(_claim(alone["fig_3_4"], "section 3.6.3").ours.split(" of ")[1].split()[0]) > 0.3  # 0 to 1: decades
    by_calls, by_updates, _, margin, *_ = alone["fig_3_5"].claims
    assert "oracle calls: SDCA-GAP is much faster" in by_calls.statement
    assert [claim.verdict for claim in (by_calls, by_updates, margin)] == ["reproduced"] * 3
    first, second = alone["fig_3_8"].claims[:2]
    errors = [float(part.split()[-1].rstrip("%")) for part in first.ours.split("; ")[0].split(", ")]
    assert len(errors) == 5
    assert max(errors) - min(errors) < 3.0  # points: three standard errors of a share of 2,500 tokens
    assert second.verdict == "reproduced"
    assert (
        _verdicts(
            alone["fig_3_9"],
            "Figure 3.9",
            "section 3.6.2",
            "section 3.6.2, footnote 4",
            "section 3.6.3, refreshed gaps",
        )
        == ["reproduced"] * 4
    )
    assert _verdicts(alone["fig_3_10"], "Figure 3.10, uniform") == ["reproduced"]


def test_one_step_of_newton_from_one_half_converges_on_sparse_data(alone):
    """The thesis reports the opposite for its sparsest task; the algorithm is the published one."""
    claim = _claim(alone["fig_3_9"], "Figure 3.9, one step on sparse data")
    assert claim.verdict == "not reproduced"
    one, full = (float(value) for value in claim.ours.removeprefix("after 6 epochs ").split(", against "))
    assert abs(one - full) < 0.1


def lines(slopes, epochs=20, seeds=4, bend=0.0, noise=0.01):
    """Logarithms of sub-optimality that fall by these slopes, with a little noise between seeds."""
    rng, t = np.random.default_rng(0), np.arange(epochs + 1.0)
    return {name: 1 - slope * t + bend * t**2 + noise * rng.normal(size=(seeds, 1)) for name, slope in slopes.items()}


def test_verdicts_of_figure_3_3_turn():
    """Which scheme is first, by more than the spread over seeds; and what the largest gap does."""
    published = {"gap": 0.3, "gap-importance": 0.25, "uniform": 0.2, "importance": 0.15, "max": 0.1}

    def verdicts(slopes, estimate=0.1):
        found = lines(published | slopes)
        runs = {"max": {"estimate": np.full((4, 21), estimate), "bound": np.ones((4, 21))}}
        return [claim.verdict for claim in load("fig_3_3")._claims("words", found, runs)]

    right, wrong = "reproduced", "not reproduced"
    assert verdicts({}) == [right, right, right, right, "corrected"]
    assert verdicts({"uniform": 0.35}) == [wrong, right, wrong, right, "corrected"]
    assert verdicts({"gap-importance": 0.3})[1] == wrong
    assert verdicts({"importance": 0.22})[3] == wrong
    assert verdicts({"max": 0.0})[4] == right  # it stops altogether, as published
    assert verdicts({"max": 0.31})[4] == verdicts({}, estimate=0.9)[4] == wrong


def test_verdicts_of_figure_3_4_turn():
    def verdicts(slopes):
        found = lines(dict(zip((0.0, 0.2, 0.5, 0.8, 1.0), slopes, strict=True)))
        return [claim.verdict for claim in load("fig_3_4")._claims(found, 20)]

    assert verdicts((0.1, 0.15, 0.2, 0.24, 0.25)) == ["reproduced", "reproduced"]
    assert verdicts((0.1, 0.15, 0.12, 0.24, 0.25)) == ["not reproduced", "reproduced"]
    assert verdicts((0.1, 0.12, 0.14, 0.16, 0.25)) == ["reproduced", "not reproduced"]


def test_verdicts_of_figure_3_5_turn():
    sparse = {"SDCA": 0.2, "SDCA-GAP": 0.3, "OEG": 0.18, "SAG-NUS": 0.15, "SAG-NUS*": 0.14}
    dense = {"SDCA": 0.1, "SDCA-GAP": 0.13, "OEG": 0.09, "SAG-NUS": 0.25, "SAG-NUS*": 0.24}
    calls = {"SAG-NUS": 2.2, "SAG-NUS*": 1.4}

    def verdicts(task, slopes, seconds=1.0, calls=calls):
        t = np.tile(np.arange(21.0), (4, 1))
        found = {
            name: {
                "excess": values,
                "oracle calls / n": calls.get(name, 1.0) * t,
                "updates / n": t,
                "seconds": (seconds if name == "SDCA-GAP" else 1.0) * t,
            }
            for name, values in lines(slopes).items()
        }
        return [claim.verdict == "reproduced" for claim in load("fig_3_5")._claims(task, found, 20)]

    assert all(verdicts("sparse words", sparse))
    assert verdicts("sparse words", sparse | {"SDCA-GAP": 0.21}) == [False, True, True, True, True, True]
    assert verdicts("sparse words", sparse | {"SAG-NUS": 0.5, "SAG-NUS*": 0.4})[:2] == [False, False]
    assert not verdicts("sparse words", sparse | {"OEG": 0.1})[2]
    assert not verdicts("sparse words", sparse | {"SDCA-GAP": 0.185})[3]
    assert not verdicts("sparse words", sparse | {"SAG-NUS*": 0.16})[4]
    assert not verdicts("sparse words", sparse, calls=calls | {"SAG-NUS*": 2.3})[4]
    assert not verdicts("sparse words", sparse, seconds=9.0)[5]
    words = verdicts("handwritten words", dense)
    assert words == [False, True, True, True, True, True]  # a decade behind SAG-NUS* by oracle calls is not on par
    assert verdicts("handwritten words", dense | {"SDCA-GAP": 0.17})[0]
    assert not verdicts("handwritten words", dense | {"SDCA": 0.3, "SDCA-GAP": 0.31})[1]


def test_verdicts_of_figure_3_8_turn():
    same = dict.fromkeys(("SDCA", "SDCA-GAP", "OEG", "SAG-NUS", "SAG-NUS*"), (0.1, 3))

    def verdicts(**errors):  # the last error, and the epochs after which it is reached
        t, found = np.arange(13.0), {}
        for name, (last, at) in (same | errors).items():
            curve = np.tile(last + 0.4 * np.maximum(1 - t / at, 0), (2, 1))
            found[name] = {"token": curve, "sequence": curve}
        return [claim.verdict == "reproduced" for claim in load("fig_3_8")._claims("words", found)]

    assert verdicts(OEG=(0.1, 5)) == [True] * 4
    assert verdicts(OEG=(0.12, 5)) == [False, True, True, True]
    assert verdicts(OEG=(0.1, 12)) == [True, False, True, True]
    assert verdicts(**{"SAG-NUS": (0.1, 8)}) == [True, True, False, True]
    assert verdicts(OEG=(0.1, 2)) == [True, True, True, False]


def test_verdicts_of_figure_3_9_turn():
    figure = load("fig_3_9")
    for task, harmful in (("sparse words", "reproduced"), ("chunking", "not reproduced")):
        assert figure._one_step(task, "", 3.0).verdict == harmful
        assert figure._one_step(task, "", 0.1).verdict != harmful
    for slope, expected in ((0.2, "reproduced"), (0.21, "not reproduced")):
        found = lines({"1/2": 0.2, "the last step": slope, "the chord": 0.3}, noise=0.0)
        assert figure._first_step("words", found).verdict == expected


def test_verdicts_of_figure_3_10_turn():
    figure, right, wrong = load("fig_3_10"), "reproduced", "not reproduced"

    def verdicts(uniform, by_gap):
        ratios = {share: np.full((2, 21), uniform) for share in (0.0, 0.2, 0.5)}
        ratios |= {share: np.full((2, 21), by_gap) for share in (0.8, 1.0)}
        return [claim.verdict for claim in figure._claims("words", ratios)]

    assert verdicts(1.5, 0.7) == [right, right, right]
    assert verdicts(2.5, 0.7) == [wrong, right, right]
    assert verdicts(1.5, 0.4) == [wrong, right, right]
    assert verdicts(0.9, 1.2) == [right, wrong, wrong]
    estimate = np.tile(10.0 ** -np.linspace(0, 7, 21), (2, 1))
    for factor, expected in ((1.5, right), (3.0, wrong)):
        assert figure._stopping("words", {"estimate": estimate, "bound": factor * estimate}).verdict == expected


def test_theorems():
    report = load("theorems").run(quick=True)
    expected = {
        "Algorithm 2, update": "true, not tight",
        "(3.31)": "true, not tight",
        "(3.32)": "true, not tight",
        "section 3.A.1, numerical issues": "not reproduced",
    }
    for claim in report.claims:
        assert claim.verdict == expected.get(claim.item, "reproduced"), claim.statement
    assert {"Lemma 3.F.6", *(f"Theorem 3.F.{k}" for k in range(1, 6))} <= {claim.item for claim in report.claims}


def test_errata():
    """Each printed form fails on its case, and the corrected one holds; three are only weaker than need be."""
    verdicts = {claim.item: claim.verdict for claim in load("errata").run(quick=True).claims}
    weak = {"(3.76)", "section 3.F.4, sketch", "(3.80)"}
    assert {item for item, verdict in verdicts.items() if verdict == "true, not tight"} == weak
    assert {verdict for item, verdict in verdicts.items() if item not in weak} == {"corrected"}
    assert len(verdicts) == 20


def test_the_chapter_on_background():
    for claim in load("background").run(quick=True).claims:
        loose = claim.item == "(2.21), convex terms"
        assert claim.verdict == ("true, not tight" if loose else "reproduced"), claim.statement


@needs_data
def test_the_handwritten_words_are_the_published_ones():
    task = _crf.ocr(60)
    assert len(task.test) == 675
    claim = _claim(load("table_3_1").run(), "Table 3.1, OCR")
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
