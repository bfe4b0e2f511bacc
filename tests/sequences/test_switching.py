"""The solver that is chosen by default: dual ascent, L-BFGS where that is faster, and the same certificate."""

import numpy as np
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.sequences import (
    ChainCRF,
    ChainProblem,
    GraphData,
    SequenceDualAscent,
    SequenceLBFGS,
    SequenceSwitching,
    TreeProblem,
)
from cumulant.sequences.solvers.switching import _left
from tests.sequences.cases import ragged


def stubborn():
    """Strips with strong ties and little to tell labels by: a few large graphs, on which dual ascent crawls."""
    rng, graphs, labels = np.random.default_rng(0), [], []
    edges = [(10 * i + j, 10 * i + j + 1) for i in range(3) for j in range(9)]
    edges += [(10 * i + j, 10 * i + 10 + j) for i in range(2) for j in range(10)]
    for _ in range(30):
        y = np.zeros((3, 10), dtype=int)
        y[:, rng.integers(1, 9) :] = 1
        graphs.append((rng.normal(size=(30, 3)) + 0.5 * y.reshape(-1, 1), edges))
        labels.append(y.ravel())
    return TreeProblem(GraphData.from_graphs(graphs, labels), 2)


def passes_to(solver, problem, tol):
    result = optim.run(solver, problem, np.zeros(problem.shape), tol=tol, max_steps=3000, rng=0)
    assert result.status == "converged"
    return result.trace["oracle_calls"][-1] / problem.n_terms, result


def test_easy_problems_are_left_to_dual_ascent():
    problem = ChainProblem(ragged(np.random.default_rng(0), n=40), 3)
    alone, plain = passes_to(SequenceDualAscent(), problem, 1e-6)
    passes, result = passes_to(SequenceSwitching(tol=1e-6), problem, 1e-6)
    assert passes == alone
    assert np.array_equal(result.x, plain.x)


def test_stubborn_problems_go_to_lbfgs_and_the_certificate_holds():
    problem = stubborn()
    tol = 1e-4
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-11, max_steps=1000).value
    slow, _ = passes_to(SequenceDualAscent(), problem, tol)
    quick, _ = passes_to(SequenceLBFGS(), problem, tol)
    passes, result = passes_to(SequenceSwitching(tol=tol), problem, tol)
    assert passes < 0.5 * slow
    assert passes < quick + 200
    assert result.value - best <= result.certificate.upper


def test_what_is_left_is_read_off_a_straight_line():
    """A gap that falls by a tenth each pass: from 1e-3, three passes to 1e-6; from a flat gap, never."""
    passes = np.arange(8.0)
    falling = np.column_stack([passes, 10.0 ** (4 - passes)])
    assert_allclose(_left(falling, 1e-6), 3.0)
    assert _left(falling, 1e-2) == 0.0
    assert _left(np.column_stack([passes, np.ones(8)]), 0.5) == np.inf
    bumpy = falling.copy()
    bumpy[5, 1] = 1e5  # what goes up on the way does not count
    assert_allclose(_left(bumpy, 1e-6), 3.0)


def test_it_is_what_the_estimator_uses_and_repeats_itself():
    data = ragged(np.random.default_rng(1), n=20, scale=30.0)
    runs = [ChainCRF(l2=1e-4, tol=1e-6, max_epochs=3000, n_jobs=jobs).fit(data) for jobs in (1, 2)]
    assert runs[0].status_ == runs[1].status_ == "converged"
    assert np.array_equal(runs[0].weights_, runs[1].weights_)
    assert runs[0].history_[-1]["oracle_calls"] == runs[1].history_[-1]["oracle_calls"]
    assert runs[0].certificate_.upper <= 1.01e-6 * runs[0].objective_
