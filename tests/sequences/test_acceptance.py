"""Published checks that take whole runs: all solvers at one optimum, searches that agree, estimates that are near."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.experiments import _crf
from cumulant.sequences import (
    ChainProblem,
    SequenceDualAscent,
    SequenceExponentiatedGradient,
    SequenceGradientDescent,
    SequenceLBFGS,
    SequenceSAG,
    SequenceSAGA,
    SequenceSGD,
    SequenceSVRG,
)
from tests.sequences.cases import ragged

FOLDER = os.environ.get("CUMULANT_DATA")
SOLVERS = {
    "sdca": SequenceDualAscent(),
    "sdca, published search": SequenceDualAscent(first_step="half", straightness=0.0, start=("potential", 10.0)),
    "oeg": SequenceExponentiatedGradient(),
    "sag": SequenceSAG(sampling="uniform", line_search=False),
    "sag-nus": SequenceSAG(),
    "saga": SequenceSAGA(),
    "svrg": SequenceSVRG(),
    "gd": SequenceGradientDescent(),
}


def reaches(solver, problem, optimum, steps, every=1):
    near = lambda snapshot: snapshot.value <= optimum + 5e-7  # noqa: E731
    start = np.zeros(problem.shape)
    result = optim.run(solver, problem, start, tol=None, max_steps=steps, every=every, callback=near, rng=0)
    assert optimum - 1e-9 <= result.value <= optimum + 1e-6
    return result.x


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_optimum_of_small_sequences(name):
    problem = ChainProblem(ragged(np.random.default_rng(0), n=25), 3, l2=0.2)
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-13, max_steps=500)
    reaches(SOLVERS[name], problem, best.value, 20_000, every=5)


FAST_STEPS = {  # of the theory, 1/L with the largest radius, would need thousands of passes at l2 = 1/n
    "sag": lambda step: SequenceSAG(sampling="uniform", line_search=False, step_size=step),
    "saga": SequenceSAGA,
    "svrg": SequenceSVRG,
    "gd": lambda step: SequenceGradientDescent("backtracking"),
}


def check_on_task(name, case, step, steps):
    solver = FAST_STEPS[name](step) if name in FAST_STEPS else SOLVERS[name]
    w = reaches(solver, case.problem, case.optimum, steps, every=10)
    assert_allclose(case.errors(w), case.errors(case.best.x), atol=2e-3)  # predictions agree up to ties


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "gd" else n for n in SOLVERS])
def test_every_solver_reaches_the_optimum_of_the_sparse_words(name):
    check_on_task(name, _crf.sparse_words(), 0.05, 6_000)


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER and (Path(FOLDER) / "ocr.npz").exists()), reason="set CUMULANT_DATA to its folder")
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_reaches_the_optimum_of_500_handwritten_words(name):
    check_on_task(name, _crf.ocr(500), 0.02, 6_000)


def test_sgd_comes_within_a_hundredth_on_the_sparse_words():
    """The mean of its iterates, as steps fall as 1/t: a tenth of what is left would take ten times as long."""
    task = _crf.sparse_words()
    solver, start = SequenceSGD(step_size=0.05, average=True), np.zeros(task.problem.shape)
    result = optim.run(solver, task.problem, start, tol=None, max_steps=500, every=500, rng=0)
    assert 0 < result.value - task.optimum < 0.01
    assert_allclose(task.errors(result.x), task.errors(task.best.x), atol=0.02)


def test_precisions_of_the_search_give_close_curves():
    """On the same draws: within 0.15 decades to epoch 12, and about two steps of Newton's method an update."""
    task = _crf.sparse_words()
    found = {}
    for precision in (1e-2, 1e-3):
        solver = _crf.dual_ascent("uniform", first_step="half", subprecision=precision)
        found[precision] = _crf.follow(solver, task.problem, 12, 0)
        steps = found[precision]["line_search_evaluations"][-1] / found[precision]["updates"][-1]
        assert 1.5 < steps < 3.0
    excess = [np.log10(columns["value"] - 11.9878010451) for columns in found.values()]
    assert np.max(np.abs(excess[0] - excess[1])) < 0.15
    assert excess[0][-1] < -1.5


def test_the_stale_estimate_is_within_a_factor_three():
    """From epoch 10 on, with draws by gap."""
    task = _crf.sparse_words()
    for seed in range(2):
        found = _crf.follow(_crf.dual_ascent("gap"), task.problem, 16, seed)
        ratio = found["estimate"][10:] / found["bound"][10:]
        assert np.all((ratio > 1 / 3) & (ratio < 3))
