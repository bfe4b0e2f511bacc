"""Stochastic gradient methods on chains: equal to dense updates by enumeration, and the optimum by every road."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from cumulant import optim
from cumulant.sequences import ChainProblem, SequenceData, SequenceLBFGS
from cumulant.sequences.chain.chain_kernels import log_partition
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.solvers.gradient_descent import SequenceGradientDescent
from cumulant.sequences.solvers.sag import SequenceSAG
from cumulant.sequences.solvers.sgd import SequenceSGD
from cumulant.sequences.solvers.variance_reduced import SequenceSAGA, SequenceSVRG
from tests.reference import stochastic_chains as reference
from tests.reference.chains import scores_of_all
from tests.sequences.cases import TINY_OPTIMUM, TINY_WEIGHTS, ragged, tiny

FAST = {
    "SAG": SequenceSAG(sampling="uniform"),
    "SAG, fixed step": SequenceSAG(sampling="uniform", line_search=False),
    "SAG-NUS": SequenceSAG(),
    "SAG-NUS, bounds": SequenceSAG(line_search=False),
    "SAG-NUS*": SequenceSAG(line_search="skip"),
    "SAG-NUS, port": SequenceSAG(variant="port"),
    "SAG-NUS*, port": SequenceSAG(variant="port", line_search="skip"),
    "SAGA": SequenceSAGA(),
    "SVRG": SequenceSVRG(),
    "gradient descent": SequenceGradientDescent(),
    "gradient descent, backtracking": SequenceGradientDescent("backtracking"),
}
SGDS = {
    "SGD": SequenceSGD(),
    "SGD, constant": SequenceSGD("constant"),
    "SGD, averaged": SequenceSGD(average=True),
}
ALL = FAST | SGDS


def named(solvers):
    return pytest.mark.parametrize("solver", list(solvers.values()), ids=list(solvers))


def small(seed=0, **settings):
    return ChainProblem(ragged(np.random.default_rng(seed), n=7, longest=4), 3, **settings)


def epochs_of(solver, problem, epochs, seed):
    """The state after some epochs from weights of zero."""
    state = solver.init(problem, np.zeros(problem.shape), seed)
    for _ in range(epochs):
        state = solver.step(problem, state)
    return state


def best(problem):
    return optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-13, max_steps=2000)


# Against dense updates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_the_log_partition_function_by_the_forward_pass(scale):
    rng = np.random.default_rng(0)
    for length in (1, 2, 5):
        scores, matrix = scale * rng.normal(size=(length, 3)), scale * rng.normal(size=(3, 3))
        found = log_partition(scores, length, matrix, np.empty((3, 3)), *np.empty((2, length, 3)))
        assert_allclose(found, logsumexp(scores_of_all(scores, matrix)), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("settings", [{}, {"bias": False}, {"l2": 3.0}, {"l2": 1e-3}], ids=str)
@pytest.mark.parametrize("nonuniform", [False, True])
@pytest.mark.parametrize("search", [True, "skip"])
def test_sag_is_the_dense_algorithm(settings, nonuniform, search):
    problem = small(1, **settings)
    w, calls, trials = reference.sag_recalled(problem, 5, 3, nonuniform=nonuniform, search=search)
    state = epochs_of(SequenceSAG("nus" if nonuniform else "uniform", search), problem, 5, 3)
    assert_allclose(state.x, w, rtol=1e-9, atol=1e-11)
    assert state.counters.tolist() == [calls, trials]


@pytest.mark.parametrize("settings", [{}, {"bias": False, "l2": 1.0}], ids=str)
def test_the_port_is_the_dense_algorithm(settings):
    problem = small(2, **settings)
    w, calls = reference.sag_port(problem, 6, 4)
    state = epochs_of(SequenceSAG(variant="port"), problem, 6, 4)
    assert_allclose(state.x, w, rtol=1e-9, atol=1e-11)
    assert state.counters[0] == calls


@pytest.mark.parametrize("l2", [None, 40.0])
@pytest.mark.parametrize("snapshot", [None, 1, 2])
def test_saga_and_svrg_are_the_dense_algorithms(l2, snapshot):
    problem = small(3, l2=l2)
    step = 0.5 / (feature_radii(problem).max() + problem.l2)
    solver = SequenceSAGA(step) if snapshot is None else SequenceSVRG(step, snapshot)
    state = epochs_of(solver, problem, 5, 5)
    assert_allclose(state.x, reference.saga(problem, 5, 5, step, snapshot), rtol=1e-9, atol=1e-12)
    assert state.counters[0] == 5 * problem.n_terms + (0 if snapshot is None else -(-5 // snapshot) * problem.n_terms)


@pytest.mark.parametrize("l2", [None, 300.0])  # the second shrinks the scale below where it is multiplied out
@pytest.mark.parametrize("schedule", ["constant", "decreasing"])
def test_sgd_and_its_mean_are_the_dense_algorithm(l2, schedule):
    problem = small(4, l2=l2)
    smooth = feature_radii(problem).max() + problem.l2
    steps = {
        "constant": lambda t: 1 / (2 * smooth),
        "decreasing": lambda t: 2 / (4 * smooth + problem.l2 * t),
    }[schedule]
    last, mean = reference.sgd(problem, 6, 6, steps)
    assert_allclose(epochs_of(SequenceSGD(schedule), problem, 6, 6).x, last, rtol=1e-9, atol=1e-13)
    solver = SequenceSGD(schedule, average=True)
    assert_allclose(solver.solution(problem, epochs_of(solver, problem, 6, 6)), mean, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "solver", [SequenceSAG(), SequenceSAG("uniform", False), SequenceSAGA(), SequenceSVRG()], ids=str
)
def test_the_stored_sum_is_the_sum_of_what_is_stored(solver):
    problem = small(5)
    state = epochs_of(solver, problem, 30, 0)
    total = problem._gathered((state.nodes, state.counts.sum(axis=0))) - problem.n_terms * problem.gold
    assert_allclose(state.total, total, atol=1e-12)


# The optimum, and what is claimed on the way --------------------------------------------------------------------------


@named(FAST)
def test_the_optimum_of_the_tiny_problem(solver):
    result = optim.run(solver, tiny(), np.zeros((7, 2)), tol=1e-9, rng=0, max_steps=30_000, every=50)
    assert result.status == "converged"
    assert_allclose(result.value, TINY_OPTIMUM, rtol=1e-8)
    assert_allclose(result.x, TINY_WEIGHTS, atol=1e-4)


@named(FAST)
def test_the_optimum_of_random_problems(solver):
    for seed, settings in ((0, {"l2": 0.05}), (1, {"bias": False}), (2, {"l2": 2.0})):
        problem = ChainProblem(ragged(np.random.default_rng(seed), n=12, longest=5, scale=0.7), 3, **settings)
        expected = best(problem)
        result = optim.run(solver, problem, np.zeros(problem.shape), tol=1e-8, rng=1, max_steps=100_000, every=100)
        assert result.status == "converged"
        assert abs(result.value - expected.value) <= 1e-6
        ours, theirs = result.certificate, expected.certificate
        assert -theirs.upper <= result.value - expected.value <= ours.upper
        assert np.linalg.norm(result.x - expected.x) <= ours.details["|w - w*|"] + theirs.details["|w - w*|"]


def test_sgd_comes_as_near_as_it_can():
    """Decreasing steps end within 1e-6 on an easy problem; constant ones stay in a ball."""
    problem = ChainProblem(
        ragged(np.random.default_rng(6), n=10, labels=2, longest=3, attributes=2, scale=0.5), 2, l2=2.0
    )
    expected, start = best(problem).value, np.zeros(problem.shape)
    for solver, within in ((SequenceSGD(average=True), 1e-6), (SequenceSGD(), 1e-4), (SequenceSGD("constant"), 0.1)):
        result = optim.run(solver, problem, start, tol=None, max_steps=40_000, every=40_000, rng=0)
        assert 0 <= result.value - expected <= within
        assert result.value - expected <= result.certificate.upper


@named(ALL)
def test_bounds_hold_all_along_and_are_not_loose_beyond_the_theory(solver):
    """``excess <= |grad|^2 / (2 l2) <= (L / l2) excess``, with ``L = l2 + mean R``."""
    problem = ChainProblem(ragged(np.random.default_rng(7), n=9), 3)
    expected = best(problem).value
    trace = optim.run(solver, problem, np.zeros(problem.shape), tol=None, max_steps=60, rng=2).trace
    excess = trace.value - expected
    constant = problem.l2 + feature_radii(problem).mean()
    assert np.all(excess <= trace.bound + 1e-12)
    assert np.all(trace.bound <= constant / problem.l2 * excess + 1e-12)
    assert excess[-1] < excess[0]


def mean_path(problem, solver, epochs, seeds, optimum):
    """Means over seeds of the squared distance and of the excess, after each epoch, with their standard errors."""
    found = np.empty((seeds, epochs, 2))
    for seed in range(seeds):
        state = solver.init(problem, np.zeros(problem.shape), seed)
        for epoch in range(epochs):
            state = solver.step(problem, state)
            x = solver.solution(problem, state)
            found[seed, epoch] = np.sum((x - optimum.x) ** 2), problem.value(x) - optimum.value
    return found.mean(axis=0), found.std(axis=0) / np.sqrt(seeds)


def test_the_bounds_of_sgd_hold_on_average():
    problem = ChainProblem(
        ragged(np.random.default_rng(8), n=6, labels=2, longest=3, attributes=2), 2, l2=0.5, n_jobs=1
    )
    optimum = best(problem)
    smooth = feature_radii(problem).max() + problem.l2
    start = np.sum(optimum.x**2)
    noise = np.mean(
        [np.sum((reference.loss(problem, optimum.x, i)[1] + problem.l2 * optimum.x) ** 2) for i in range(6)]
    )
    t = 6 * np.arange(1, 41)
    gamma = 1 / (2 * smooth)
    mean, error = mean_path(problem, SequenceSGD("constant"), 40, 200, optimum)
    bound = smooth / 2 * (1 - gamma * problem.l2) ** t * start + gamma * noise * smooth / problem.l2
    assert np.all(mean[:, 1] <= bound + 3 * error[:, 1])
    mean, error = mean_path(problem, SequenceSGD(), 40, 200, optimum)
    largest = max(4 * smooth * start, 8 * noise / problem.l2) / problem.l2
    assert np.all(mean[:, 0] <= largest / (t + 4 * smooth / problem.l2) + 3 * error[:, 0])


def test_gradient_descent_contracts():
    problem = small(9)
    optimum = best(problem)
    state = SequenceGradientDescent().init(problem, np.zeros(problem.shape), 0)
    factor = 1 - problem.l2 / (problem.l2 + feature_radii(problem).mean())
    for _ in range(50):
        before = np.linalg.norm(state.x - optimum.x)
        assert_allclose(state.gradient, problem.gradient(state.x), atol=1e-14)
        state = SequenceGradientDescent().step(problem, state)
        assert np.linalg.norm(state.x - optimum.x) <= factor * before + 1e-12


# Work, memory, seeds --------------------------------------------------------------------------------------------------


@named(ALL)
def test_counters(solver):
    problem = small(10)
    n, epochs = problem.n_terms, 6
    last = optim.run(solver, problem, np.zeros(problem.shape), tol=None, max_steps=epochs, rng=0).trace
    updates, calls, trials = (last[name][-1] for name in ("updates", "oracle_calls", "line_search_evaluations"))
    if isinstance(solver, SequenceGradientDescent):
        assert updates == epochs
        assert calls == (n + trials if solver.step_size == "backtracking" else (1 + epochs) * n)
        assert trials % n == 0
        return
    assert updates == n * epochs
    assert calls == updates + trials + (3 * n if isinstance(solver, SequenceSVRG) else 0)
    assert (trials > 0) == (isinstance(solver, SequenceSAG) and solver.line_search is not False)


def test_skipping_saves_line_searches():
    problem = ChainProblem(ragged(np.random.default_rng(11), n=30), 3)
    trials = [
        epochs_of(solver, problem, 60, 0).counters[1] for solver in (SequenceSAG(), SequenceSAG(line_search="skip"))
    ]
    assert trials[1] < 0.5 * trials[0]


def test_the_memory_is_that_of_nodes_and_one_matrix_for_each_sequence():
    rng = np.random.default_rng(12)
    problem = ChainProblem(ragged(rng, n=20, labels=9, longest=40), 9)
    state = SequenceSAG().init(problem, np.zeros(problem.shape), 0)
    tokens, n, k = len(problem.labels), 20, 9
    assert state.nodes.nbytes + state.counts.nbytes == 8 * k * (tokens + n * k)
    assert 3 * (state.nodes.nbytes + state.counts.nbytes) < 8 * k**2 * (tokens - n)


@named(ALL)
def test_the_same_seed_gives_the_same_answer(solver, tmp_path):
    problem = small(13)
    start = np.zeros(problem.shape)
    whole = optim.run(solver, problem, start, tol=None, max_steps=9, rng=5)
    again = optim.run(solver, problem, start, tol=None, max_steps=9, rng=5)
    optim.run(solver, problem, start, tol=None, max_steps=4, rng=5, checkpoint=tmp_path / "run.npz")
    resumed = optim.run(solver, problem, start, tol=None, max_steps=9, rng=5, checkpoint=tmp_path / "run.npz")
    assert np.array_equal(whole.x, again.x)
    assert np.array_equal(whole.x, resumed.x)
    if not isinstance(solver, SequenceGradientDescent):
        assert not np.array_equal(whole.x, optim.run(solver, problem, start, tol=None, max_steps=9, rng=6).x)


@functools.cache
def strange():
    """One label; no attributes; sequences of one token; scores whose exponentials overflow: each with its minimum."""
    rng, found = np.random.default_rng(14), []
    for labels, attributes, longest, scale in ((1, 2, 3, 1.0), (2, 0, 3, 1.0), (3, 2, 1, 1.0), (2, 2, 4, 300.0)):
        data = ragged(rng, n=5, labels=labels, attributes=attributes, longest=longest, scale=scale)
        problem = ChainProblem(data, labels)
        found.append((problem, best(problem).value))
    return found


@named(ALL)
def test_strange_data_never_make_nan(solver):
    for problem, expected in strange():
        result = optim.run(solver, problem, np.zeros(problem.shape), tol=None, max_steps=20, rng=0)
        assert result.status == "max_steps"
        assert np.all(np.isfinite(result.x))
        assert result.value - expected <= result.certificate.upper + 1e-10


def test_bad_settings_are_refused():
    for make, message in [
        (lambda: SequenceSAG("importance"), "sampling must be"),
        (lambda: SequenceSAG(line_search="always"), "line_search must be"),
        (lambda: SequenceSAG(variant="new"), "variant must be"),
        (lambda: SequenceSAG("uniform", variant="port"), "non-uniform"),
        (lambda: SequenceSAG(step_size=0.1), "line_search must be False"),
        (lambda: SequenceSAG(line_search=False, step_size=-1.0), "positive"),
        (lambda: SequenceSAGA(0.0), "positive"),
        (lambda: SequenceSVRG(snapshot_epochs=0), "at least 1"),
        (lambda: SequenceSGD("fast"), "schedule"),
        (lambda: SequenceGradientDescent("exact"), "backtracking"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()
    data = SequenceData(np.ones((2, 1)), [0, 1, 2], [0, 1])
    for solver in ALL.values():
        with pytest.raises(ValueError, match="l1 must be 0"):
            solver.init(ChainProblem(data, 2, l1=0.1), np.zeros((6, 2)), 0)
