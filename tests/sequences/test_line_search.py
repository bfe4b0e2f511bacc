"""The line searches of dual ascent, where it starts, and when all gaps are computed again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from cumulant import optim
from cumulant.sequences import (
    ChainCRF,
    ChainMarginals,
    ChainProblem,
    SequenceDualAscent,
    SequenceLBFGS,
    TreeCRF,
    TreeMarginals,
    TreeProblem,
    block_search,
)
from tests.reference import chains
from tests.sequences.cases import TINY_OPTIMUM, inconsistency, joint_law, ragged, random_marginals, tiny
from tests.sequences.graph_cases import graphs
from tests.sequences.test_sdca import update


def test_derivatives_of_the_first_search_of_the_tiny_problem():
    """Published numbers: at 0 the sum of both divergences, at 1 minus the squared length of the direction."""
    problem = tiny()
    search = block_search(problem, problem.start(0.1), 0)
    assert_allclose(search.slope(0.0), 2.98036575763157, rtol=1e-13)
    assert_allclose(search.slope(1.0), -3.201298290637919, rtol=1e-13)
    assert_allclose(search.slope(0.37), 0.346976932126, rtol=1e-11)
    assert_allclose(search.curvature(0.37), -5.781406879, rtol=1e-9)
    assert_allclose(brentq(search.slope, 0.0, 1.0, xtol=1e-14), 0.430753778, rtol=2e-9)


def joint_of(problem, mu, i):
    """All probabilities of the chain with these marginals."""
    first, last = problem.data.offsets[i : i + 2]
    return chains.markov_joint(mu.nodes[first:last], mu.pairs[first - i : last - i - 1])


def test_the_search_is_that_of_the_dual():
    """Slopes two ways, by differences of the value, and the value from enumerated entropies and the dual."""
    rng = np.random.default_rng(0)
    problem = ChainProblem(ragged(rng, longest=4), 3, l2=0.3)
    for trial in range(12):
        mu, i = random_marginals(problem, np.random.default_rng(trial)), trial % problem.n_terms
        w = problem.weights_of(problem.residual(mu))
        nu = problem.conjugate_marginals(w)
        search = block_search(problem, mu, i)
        p, q = (
            joint_law(problem, np.random.default_rng(trial).normal(size=problem.shape), i)[0],
            joint_of(problem, nu, i),
        )
        assert_allclose(search.slope(0.0), np.sum(p * np.log(p / q)) + np.sum(q * np.log(q / p)), rtol=1e-9)
        assert search.slope(0.0) >= 0 >= search.slope(1.0)
        for gamma in (0.0, 0.2, 0.7, 1.0):
            assert_allclose(search.slope(gamma), search.slope_by_divergences(gamma), atol=1e-9)
            h, between = 1e-5, min(max(gamma, 0.05), 0.95)  # nearer to an end, some m change by more than themselves
            difference = (search.value(between + h) - search.value(between - h)) / (2 * h)
            assert_allclose(search.slope(between), difference, rtol=1e-5, atol=1e-6)
            difference = (search.slope(between + h) - search.slope(between - h)) / (2 * h)
            assert_allclose(search.curvature(between), difference, rtol=1e-5, atol=1e-6)
            moved = ChainMarginals(*(part.copy() for part in mu))
            first, last = problem.data.offsets[i : i + 2]
            moved.nodes[first:last] += gamma * (nu.nodes - mu.nodes)[first:last]
            moved.pairs[first - i : last - i - 1] += gamma * (nu.pairs - mu.pairs)[first - i : last - i - 1]
            gained = problem.n_terms * (problem.dual(moved) - problem.dual(mu))
            assert_allclose(search.value(gamma) - search.value(0.0), gained, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["chains", "graphs"])
@pytest.mark.parametrize(
    "settings",
    [
        {"first_step": "half"}, {"first_step": "previous"}, {"line_search": "bounded"}, {"straightness": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_every_search_finds_the_highest_point(kind, settings):
    rng = np.random.default_rng(1)
    problem = ChainProblem(ragged(rng), 3, l2=0.3) if kind == "chains" else TreeProblem(graphs(rng), 2, l2=0.3)
    solver = SequenceDualAscent(sampling="max", subprecision=1e-8, max_epochs=1, **settings)
    state = solver.init(problem, None, 0)
    for i in range(3):
        copies = [part.copy() for part in state.mu]
        members = np.array([i])
        expected = brentq(block_search(problem, state.mu, i).slope, 0.0, 1.0, xtol=1e-13)
        counters = np.zeros(3)
        problem.ascend(
            state.hidden, state.mu, members, state.gaps, solver.tree(np.ones(1), np.ones(1)), np.ones(problem.n_terms),
            drawing=solver.drawing, search=solver.search(state.steps), sigma=1.0, source=(0, 0, i), counters=counters,
        )  # fmt: skip
        assert_allclose(counters[2], expected, atol=2e-7 if settings != {"line_search": "bounded"} else 1e-6)
        assert any(not np.array_equal(a, b) for a, b in zip(copies, state.mu, strict=True))
        if settings == {"first_step": "previous"}:
            assert state.steps[i] == counters[2]
    if settings == {"first_step": "half"}:
        assert np.all(state.steps == 0.5)


def test_one_step_of_newton_from_one_half():
    """A step longer than 1/2 is a bisection: after the first evaluation the search is at most 1/2 away from 1/2."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        problem = ChainProblem(ragged(rng, n=3), 3, l2=float(10 ** rng.uniform(-4, 1)))
        solver = SequenceDualAscent(first_step="half", subprecision=0.5, start=("mixture", 10 ** rng.uniform(-6, -1)))
        state = solver.init(problem, None, 0)
        search = block_search(problem, state.mu, 0)
        slope, curvature = search.slope(0.5), search.curvature(0.5)
        step = -slope / curvature
        expected = 0.5 + step if abs(step) <= 0.5 else (0.75 if slope > 0 else 0.25)
        counters = np.zeros(3)
        problem.ascend(
            state.hidden, state.mu, np.array([0]), state.gaps, solver.tree(np.ones(1), np.ones(1)), np.ones(3),
            drawing=(0, 0.0), search=solver.search(state.steps), sigma=1.0, source=(0, 0, 0), counters=counters,
        )  # fmt: skip
        assert counters[1] == 1
        assert_allclose(counters[2], expected, rtol=1e-9)


def test_safe_steps_never_lower_the_dual_and_fixed_steps_are_taken():
    rng = np.random.default_rng(3)
    problem = ChainProblem(ragged(rng, n=12), 3)
    for blocks in (1, 3):
        solver = SequenceDualAscent("uniform", line_search="safe", n_blocks=blocks, max_epochs=1)
        state, dual = solver.init(problem, None, 0), -np.inf
        for _ in range(30):
            state = solver.step(problem, state)
            before, dual = dual, problem.dual(state.mu)
            assert dual >= before - 1e-13
        assert state.counters[:, 1].sum() == 0
        steps = 1 / (1 + blocks * problem.squared_radii / (problem.l2 * 12))
        assert_allclose(state.steps, steps)
        assert steps.min() <= state.counters[:, 2].sum() / state.counters[:, 0].sum() <= steps.max()
    solver = SequenceDualAscent("uniform", line_search=0.25, max_epochs=1)
    state = solver.step(problem, solver.init(problem, None, 0))
    assert state.counters[0, 2] == 0.25 * state.counters[0, 0]


@pytest.mark.parametrize(
    "settings",
    [
        {"first_step": "half"}, {"first_step": "previous"}, {"line_search": "bounded"}, {"line_search": 0.3},
        {"start": ("potential", 10.0)}, {"refresh": 2}, {"refresh": 3, "n_blocks": 2, "sampling": "max"},
    ],
    ids=str,
)  # fmt: skip
def test_every_setting_reaches_the_optimum_with_a_true_certificate(settings, tmp_path):
    rng = np.random.default_rng(4)
    problem = ChainProblem(ragged(rng, n=30), 3)
    start = np.zeros(problem.shape)
    expected = optim.run(SequenceLBFGS(), problem, start, tol=1e-12, max_steps=500)
    result = optim.run(SequenceDualAscent(**settings), problem, start, tol=1e-8, max_steps=1000, rng=0)
    assert result.status == "converged"
    assert 0 <= result.value - expected.value + 1e-12 <= result.certificate.upper + 2e-12
    # and a run that was interrupted is resumed bit for bit
    solver, path = SequenceDualAscent(**settings), tmp_path / "run.npz"
    whole = optim.run(solver, problem, start, tol=None, max_steps=4, rng=5)
    optim.run(solver, problem, start, tol=None, max_steps=2, rng=5, checkpoint=path)
    resumed = optim.run(solver, problem, start, tol=None, max_steps=4, rng=5, checkpoint=path)
    assert np.array_equal(whole.x, resumed.x)


def test_the_optimum_of_the_tiny_problem_from_every_start():
    problem = tiny()
    weights = np.random.default_rng(5).normal(size=problem.shape)
    for start in (("potential", 3.0), weights, problem.conjugate_marginals(weights)):
        result = optim.run(
            SequenceDualAscent(start=start), problem, np.zeros(problem.shape), tol=1e-13, rng=0, max_steps=300
        )
        assert_allclose(result.value, TINY_OPTIMUM, rtol=1e-12)


def test_potentials_against_enumeration():
    rng = np.random.default_rng(6)
    problem = ChainProblem(ragged(rng, longest=4, n=10), 3)
    mu = problem.start_from_potential(2.0)
    assert inconsistency(problem, mu) < 1e-13
    for i in range(problem.n_terms):
        first, last = problem.data.offsets[i : i + 2]
        y = problem.labels[first:last]
        unary, pair = 2.0 * np.eye(3)[y], np.zeros((last - first - 1, 3, 3))
        pair[np.arange(last - first - 1), y[:-1], y[1:]] = 2.0
        nodes, pairs = chains.marginals_of(chains.joint(unary, pair)[0], last - first, 3)
        assert_allclose(mu.nodes[first:last], nodes, rtol=1e-12)
        assert_allclose(mu.pairs[first - i : last - i - 1], pairs, rtol=1e-12)
    assert problem.start_from_potential(2.0, np.float32).pairs.dtype == np.float32


def test_potentials_of_graphs_are_those_of_chains():
    from tests.sequences.test_tree_problem import chains as as_graphs

    rng = np.random.default_rng(7)
    data = ragged(rng, n=6, longest=5)
    chain, tree = ChainProblem(data, 3, bias=False), TreeProblem(as_graphs(data), 3)
    mu, nu = chain.start_from_potential(1.5), tree.start_from_potential(1.5)
    assert_allclose(tree.entropies(nu), chain.entropies(mu), rtol=1e-10)
    assert_allclose(tree.log_probs(nu, data.labels), chain.log_probs(mu, data.labels), rtol=1e-10)


def test_refreshed_gaps_are_the_gaps_and_are_paid_for():
    rng = np.random.default_rng(8)
    problem = ChainProblem(ragged(rng, n=20), 3)
    solver = SequenceDualAscent(refresh=2, max_epochs=1)
    state = solver.init(problem, None, 0)
    for epoch in range(1, 5):
        state = solver.step(problem, state)
        assert state.counters[0, 0] == 20 * (epoch + epoch // 2)
        measured = solver.measure(problem, state)
        if epoch % 2 == 0:
            assert_allclose(state.gaps, problem.block_gaps(state.mu), rtol=1e-7, atol=1e-13)
            assert_allclose(measured["estimate"], measured["bound"], rtol=1e-7)
            assert_allclose(state.trees[0][1], state.gaps.sum(), rtol=1e-12)
        else:
            assert abs(measured["estimate"] / measured["bound"] - 1) > 1e-3


def test_starts_that_are_no_distributions_are_refused():
    rng = np.random.default_rng(9)
    problem = ChainProblem(ragged(rng, n=5), 3)
    mu, other = problem.start(0.1), ChainProblem(ragged(rng, n=6), 3).start(0.1)
    bad = ChainMarginals(mu.nodes, mu.pairs * 1.01)
    zero = ChainMarginals(np.eye(3)[problem.labels], mu.pairs)
    tree = TreeProblem(graphs(rng), 2)
    nu = tree.start(0.1)
    for which, start, message in [
        (problem, other, "those of other data"),
        (problem, bad, "agree with each other"),
        (problem, zero, "must be positive"),
        (problem, np.zeros((2, 2)), "start: w must have shape"),
        (tree, TreeMarginals(nu.cliques * 1.01, nu.separators), "agree with each other"),
        (tree, TreeMarginals(nu.cliques, 1.01 * nu.separators), "agree with each other"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceDualAscent(start=start).init(which, None, 0)
    tree.checked_marginals(nu)  # these are accepted


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": ("vertex", 1.0)}, "start must be"),
        ({"start": "potential"}, "start must be"),
        ({"start": ("mixture", 1.0)}, "strictly between 0 and 1"),
        ({"start": ("potential", -1.0)}, "positive and finite"),
        ({"line_search": "exact"}, "line_search must be 'newton'"),
        ({"line_search": 0.0}, "line_search must be"),
        ({"line_search": True}, "line_search must be"),
        ({"first_step": "third"}, "first_step must be one of"),
        ({"refresh": 0}, "refresh must be"),
    ],
)
def test_bad_settings_are_refused_by_solver_and_estimator(settings, message):
    with pytest.raises(ValueError, match=message):
        SequenceDualAscent(**settings)
    with pytest.raises(ValueError, match=message):
        ChainCRF(**settings).fit([np.eye(2)], [[0, 1]])


def words(rng, n):
    y = [rng.integers(0, 3, size=rng.integers(2, 7)) for _ in range(n)]
    return [np.eye(3)[labels] + 0.8 * rng.normal(size=(len(labels), 3)) for labels in y], [own.tolist() for own in y]


def test_the_estimator_passes_its_settings_on_and_keeps_a_test_set_apart():
    rng = np.random.default_rng(10)
    X, y = words(rng, 40)
    X_test, y_test = words(rng, 20)
    settings = {"tol": 1e-7, "first_step": "half", "start": ("potential", 10.0), "refresh": 5, "subprecision": 1e-2}
    crf = ChainCRF(**settings).fit(X, y, X_test=X_test, y_test=y_test)
    assert {name: crf.get_params()[name] for name in settings} == settings
    assert crf.certificate_.upper <= 1e-7 * crf.objective_
    plain = ChainCRF(tol=1e-7).fit(X, y)
    assert not np.array_equal(crf.weights_, plain.weights_)
    assert abs(crf.objective_ - plain.objective_) < 2e-7 * plain.objective_
    watched = ChainCRF(tol=1e-7).fit(X, y, X_test=X_test, y_test=y_test)
    assert np.array_equal(watched.weights_, plain.weights_)  # looking changes nothing
    last = watched.history_[-1]
    assert_allclose(last["test_error"], 1 - watched.score(X_test, y_test), atol=1e-12)
    right = [a == b for a, b in zip(watched.predict(X_test), y_test, strict=True)]
    assert_allclose(last["test_sequence_error"], 1 - np.mean(right), atol=1e-12)
    assert "test_error" not in plain.history_[-1]
    assert last["updates"] == 40 * round(last["updates"] / 40) > 0
    assert 0.1 < last["estimate"] / last["gap"] < 10


def test_a_fitted_model_is_continued():
    rng = np.random.default_rng(11)
    X, y = words(rng, 60)
    crf = ChainCRF(tol=1e-4).fit(X, y)
    plain = ChainCRF(tol=1e-6).fit(X, y)
    for start in (crf, crf.dual_):
        again = ChainCRF(tol=1e-6, start=start).fit(X, y)
        assert again.history_[0]["gap"] < 0.01 * plain.history_[0]["gap"]
        assert again.history_[-1]["oracle_calls"] < plain.history_[-1]["oracle_calls"]
        assert abs(again.objective_ - plain.objective_) < 2e-6 * plain.objective_
    assert ChainCRF(tol=1e-4, start=crf.dual_).fit(X, y).history_ == []  # nothing is left to do
    with pytest.raises(TypeError, match="start must be a fitted ChainCRF"):
        ChainCRF(start=TreeCRF()).fit(X, y)
    with pytest.raises(ValueError, match="start: w must have shape"):
        ChainCRF(start=crf).fit([x[:, :2] for x in X], y)


def test_the_published_search_reaches_the_numbers_of_the_tiny_problem():
    problem = tiny()
    state = SequenceDualAscent(start=("mixture", 0.1)).init(problem, None, 0)
    step, gap = update(problem, state, 0)
    solver = SequenceDualAscent(start=("mixture", 0.1), first_step="half", subprecision=1e-12)
    state, counters = solver.init(problem, None, 0), np.zeros(3)
    problem.ascend(
        state.hidden, state.mu, np.array([0]), state.gaps, solver.tree(np.ones(1), np.ones(1)), np.ones(3),
        drawing=(0, 0.0), search=solver.search(state.steps), sigma=1.0, source=(0, 0, 0), counters=counters,
    )  # fmt: skip
    assert_allclose([counters[2], state.gaps[0]], [step, gap], rtol=1e-11)


@pytest.mark.parametrize(
    "settings", [{}, {"first_step": "half"}, {"first_step": "previous"}, {"line_search": "bounded"}]
)
def test_a_start_of_1e_12_makes_no_nan(settings):
    rng = np.random.default_rng(12)
    problem = ChainProblem(ragged(rng, n=10), 3)
    solver = SequenceDualAscent(start=("mixture", 1e-12), straightness=0.0, max_epochs=1, **settings)
    state, dual = solver.init(problem, None, 0), -np.inf
    for _ in range(5):
        state = solver.step(problem, state)
        before, dual = dual, problem.dual(state.mu)
        assert dual >= before - 1e-6
    assert np.all(np.isfinite(state.hidden))
    assert np.mean(problem.block_gaps(state.mu)) < 0.5 * problem.value(np.zeros(problem.shape))


def test_the_search_of_no_such_sequence_or_at_no_distribution_is_refused():
    problem = tiny()
    mu = problem.start(0.1)
    for i in (-1, 3):
        with pytest.raises(ValueError, match="i must be the number of a sequence or graph, from 0 to 2"):
            block_search(problem, mu, i)
    with pytest.raises(TypeError):
        block_search(problem, mu, 0.5)
    with pytest.raises(ValueError, match="mu: marginals must be positive"):
        block_search(problem, ChainMarginals(np.eye(2)[problem.labels], mu.pairs), 0)


def test_a_model_that_continued_another_is_saved_and_loaded(tmp_path):
    X, y = words(np.random.default_rng(13), 20)
    first = ChainCRF(tol=1e-3).fit(X, y)
    crf = ChainCRF(tol=1e-5, start=first, first_step="half").fit(X, y)
    back = ChainCRF.load(crf.save(tmp_path / "model"))
    assert np.array_equal(back.weights_, crf.weights_)
    assert (back.first_step, back.start) == ("half", ("mixture", 1e-3))
    assert back.verify(X, y).upper <= crf.weights_certificate_.upper * (1 + 1e-9)
