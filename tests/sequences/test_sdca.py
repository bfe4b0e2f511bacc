"""Dual coordinate ascent: known updates, invariants at every update, and the same optimum by every road."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.optim.finite_sums.sum_tree_kernels import tree_build
from cumulant.sequences import ChainProblem, SequenceDualAscent, SequenceLBFGS
from cumulant.sequences.solvers.dual_ascent_kernels import ascend, work_space
from tests.sequences.cases import TINY_OPTIMUM, TINY_WEIGHTS, inconsistency, ragged, tiny


def update(problem, state, i, subprecision=1e-12):
    """One update of sequence `i`, in place; returns its step and the gap it saw."""
    longest, (nodes, pairs) = int(problem.data.lengths.max()), state.mu
    starts, attributes, place = problem.attributes_of_sequences
    widest = int(np.diff(starts).max(initial=1))
    counters = np.zeros(3)
    done = ascend(
        state.hidden, problem.l1 / problem.l2 if problem.l1 else None, problem.bias, *problem.tokens,
        problem.data.offsets, starts, attributes, place, nodes, nodes.reshape(-1), pairs.reshape(-1), np.array([i]),
        state.gaps, tree_build(np.ones(1)), np.ones(problem.n_terms), 0, 0.0, problem.scale, 1.0, subprecision, 100,
        0.0, 0, None, 0, 1, 0, 0, 0, counters, *work_space(problem.n_labels, longest, widest), None,
    )  # fmt: skip
    assert done == 1
    return counters[2], state.gaps[i]


def test_the_first_six_updates_of_the_tiny_problem():
    problem = tiny()
    state = SequenceDualAscent(start=("mixture", 0.1)).init(problem, None, 0)
    expected = [
        (0, 0.430753778, 0.529041997800, 1.335420340348, 1.279884999317),
        (1, 0.397343493, 0.617441485120, 0.974187623639, 0.570749274330),
        (2, 0.302914769, 0.737026845042, 0.937943999730, 1.046986789476),
        (0, 0.266454026, 0.772623877354, 0.833935231430, 0.375158853094),
        (1, 0.533916117, 0.783158574174, 0.881661221098, 0.058341766240),
        (2, 0.290448190, 0.809552583517, 0.832408537086, 0.265443638244),
    ]
    for i, step, dual, primal, gap in expected:
        taken, seen = update(problem, state, i)
        mu = state.mu
        assert_allclose([taken, seen], [step, gap], rtol=2e-9)
        assert_allclose([problem.dual(mu), problem.value(state.hidden)], [dual, primal], rtol=1e-11)


def test_one_sample_and_two_classes_are_solved_in_one_update():
    data = type(tiny().data)(np.ones((1, 1)), [0, 1], [0])
    problem = ChainProblem(data, 2, l2=1.0, bias=False)
    state = SequenceDualAscent(start=("mixture", 0.1)).init(problem, None, 0)
    assert_allclose(state.hidden[0], [0.05, -0.05], rtol=1e-14)
    step, gap = update(problem, state, 0)
    assert_allclose([step, gap], [0.676239371588322, 0.4508814167276982], rtol=1e-10)
    assert_allclose(state.hidden[0], [0.3374158071711997, -0.3374158071711997], rtol=1e-9)
    assert_allclose(problem.value(state.hidden), 0.5254570726100075, rtol=1e-14)


def test_the_optimum_of_the_tiny_problem():
    result = optim.run(SequenceDualAscent(), tiny(), np.zeros((7, 2)), tol=1e-13, rng=0, max_steps=300)
    assert_allclose(result.value, TINY_OPTIMUM, rtol=1e-13)
    assert_allclose(result.x, TINY_WEIGHTS, atol=1e-6)
    assert result.certificate.upper < 1e-11


def test_invariants_at_every_update():
    """Marginals stay consistent, weights stay theirs, the dual never falls, and weak duality holds."""
    rng = np.random.default_rng(0)
    for bias, l1 in ((True, 0.0), (False, 0.0), (True, 0.03)):
        problem = ChainProblem(ragged(rng, n=6), 3, l2=0.1, l1=l1, bias=bias)
        state = SequenceDualAscent().init(problem, None, 0)
        optimum = optim.run(
            SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-12, rng=0, max_steps=500
        ).value
        dual = -np.inf
        for u in range(60):
            update(problem, state, u % 6, subprecision=1e-6)
            mu = state.mu
            assert inconsistency(problem, mu) < 1e-13
            assert_allclose(state.hidden, problem.residual(mu) / problem.l2, atol=1e-12)
            before, dual = dual, problem.dual(mu)
            assert dual >= before - 1e-13
            assert dual <= optimum + 1e-11
            assert problem.value(problem.weights_of(problem.residual(mu))) >= optimum - 1e-11


def test_weights_do_not_drift_over_a_hundred_epochs():
    rng = np.random.default_rng(1)
    problem = ChainProblem(ragged(rng, n=40, longest=8), 3)
    solver = SequenceDualAscent()
    state = solver.init(problem, None, 0)
    for _ in range(100):
        state = solver._epoch(problem, state)
    mu = state.mu
    assert np.max(np.abs(state.hidden - problem.residual(mu) / problem.l2)) < 1e-9
    assert inconsistency(problem, mu) < 1e-12


@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap", "gap-importance", "max"])
def test_every_way_of_sampling_reaches_the_optimum(sampling):
    rng = np.random.default_rng(2)
    problem = ChainProblem(ragged(rng, n=30), 3)
    start = np.zeros(problem.shape)
    expected = optim.run(SequenceLBFGS(), problem, start, tol=1e-12, max_steps=500)
    result = optim.run(SequenceDualAscent(sampling=sampling), problem, start, tol=1e-8, max_steps=1000, rng=0)
    assert result.status == "converged"
    assert_allclose(result.value, expected.value, rtol=1e-7)
    assert result.value - expected.value <= result.certificate.upper
    assert np.linalg.norm(result.x - expected.x) <= result.certificate.details["|w - w*|"]


def test_blocks_reach_the_same_optimum_whatever_the_number_of_threads():
    rng = np.random.default_rng(3)
    data = ragged(rng, n=60, attributes=30)
    expected = optim.run(SequenceLBFGS(), ChainProblem(data, 3), np.zeros((36, 3)), tol=1e-12, max_steps=500).value
    answers = []
    for jobs in (1, 2, 3):
        problem = ChainProblem(data, 3, n_jobs=jobs)
        result = optim.run(
            SequenceDualAscent(n_blocks=3), problem, np.zeros(problem.shape), tol=1e-6, max_steps=1000, rng=0
        )
        answers.append(result.x)
        assert result.status == "converged"
        assert expected <= result.value <= expected + result.certificate.upper
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    rng = np.random.default_rng(4)
    problem = ChainProblem(ragged(rng, n=30), 3)
    start, solver = np.zeros(problem.shape), SequenceDualAscent()
    whole = optim.run(solver, problem, start, tol=None, max_steps=12, rng=5)
    optim.run(solver, problem, start, tol=None, max_steps=5, rng=5, checkpoint=tmp_path / "run.npz")
    resumed = optim.run(solver, problem, start, tol=None, max_steps=12, rng=5, checkpoint=tmp_path / "run.npz")
    assert np.array_equal(whole.x, resumed.x)


def test_marginals_in_single_precision_reach_what_they_can():
    rng = np.random.default_rng(5)
    problem = ChainProblem(ragged(rng, n=30), 3)
    expected = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-12, max_steps=500).value
    result = optim.run(
        SequenceDualAscent(dtype="float32"), problem, np.zeros(problem.shape), tol=1e-4, max_steps=500, rng=0
    )
    assert expected <= result.value + 1e-12
    assert result.value - expected <= result.certificate.upper


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(0, 3), st.sampled_from([1e-3, 1.0, 50.0]))
def test_random_ragged_data_have_a_certified_gap(seed, labels, attributes, scale):
    """Length-1 sequences, one label, no attributes, huge and tiny values: the bound holds, and nothing is NaN."""
    rng = np.random.default_rng(seed)
    problem = ChainProblem(ragged(rng, n=5, labels=labels, attributes=attributes, longest=4, scale=scale), labels)
    result = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-6, max_steps=30, rng=0)
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-10, max_steps=300)
    assert np.all(np.isfinite(result.x))
    assert result.value - best.value <= result.certificate.upper + 1e-10
    assert result.certificate.upper < np.inf


def test_bad_settings_are_refused():
    for setting, message in [
        ({"sampling": "random"}, "sampling must be one of"),
        ({"nonuniformity": 1.5}, "between 0 and 1"),
        ({"start": ("mixture", 0.0)}, "strictly between"),
        ({"dtype": "float16"}, "float64"),
        ({"n_blocks": 0}, "n_blocks"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceDualAscent(**setting)
