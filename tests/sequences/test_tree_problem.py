"""Graphs on junction trees against enumeration of all labellings: objective, dual, gap, and every update of ascent."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant import optim
from cumulant.errors import TooWide
from cumulant.graphical import JunctionTree
from cumulant.optim.finite_sums.sum_tree_kernels import tree_build
from cumulant.sequences import (
    ChainProblem,
    Factors,
    GraphData,
    SequenceDualAscent,
    SequenceLBFGS,
    TreeInference,
    TreeMarginals,
    TreeProblem,
)
from cumulant.sequences.certify import certify_gap, certify_weights
from tests.reference.chains import entropy, kl
from tests.reference.graphs import Enumeration, markov_joint
from tests.sequences.cases import ragged
from tests.sequences.graph_cases import SHAPES, graphs, inconsistency, marginals, scopes_of

SMALL = tuple(shape for shape in SHAPES if shape != "grid")


def problems(rng):
    yield TreeProblem(graphs(rng), 2, l2=0.3)  # 512 labellings of the grid
    yield TreeProblem(graphs(rng, SMALL, labels=3), 3, l2=0.3)
    yield TreeProblem(graphs(rng, SMALL, labels=3), 3, l2=0.3, l1=0.05)


def test_inference_against_enumeration():
    """Log-partition functions, marginals of factors and of nodes, best labellings, scores of labels."""
    rng = np.random.default_rng(0)
    for problem in problems(rng):
        every, w = Enumeration(problem.data, problem.n_labels), 2.0 * rng.normal(size=problem.shape)
        infer, data = problem.inference, problem.data
        log_z, found = problem.log_partitions(w), problem.expectations(w)
        nodes, best = infer.node_marginals(w), data.split(infer.best_labels(w))
        for i in range(len(data)):
            law = every.law(w, i)
            assert_allclose(log_z[i], every.log_partition(w, i), rtol=1e-13)
            assert_allclose(infer.label_scores(w, problem.labels)[i], every.scores(w, i)[every.truth(i)], rtol=1e-12)
            assert np.array_equal(best[i], every.best(w, i))
            for v in range(data.sizes[i]):
                assert_allclose(nodes[data.offsets[i] + v], every.marginal(law, i, [v]), rtol=1e-11, atol=1e-15)
            for kind, factors in data.factors.items():
                for f in np.flatnonzero(data.graph_of(factors.variables[:, 0]) == i):
                    scope = factors.variables[f] - data.offsets[i]
                    assert_allclose(found[kind][f], every.marginal(law, i, scope), rtol=1e-11, atol=1e-15)


def test_scores_of_any_size():
    rng = np.random.default_rng(1)
    data = graphs(rng, scale=1e4)
    problem = TreeProblem(data, 2)
    every, w = Enumeration(data, 2), rng.normal(size=problem.shape)
    value, gradient = problem.value_and_gradient(w)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    assert_allclose(problem.log_partitions(w), [every.log_partition(w, i) for i in range(len(data))], rtol=1e-12)
    nodes = problem.inference.node_marginals(w)
    assert_allclose(nodes.sum(axis=1), 1.0, rtol=1e-12)
    result = optim.run(
        SequenceDualAscent(start=("mixture", 1e-12)), problem, np.zeros(problem.shape), tol=None, max_steps=3, rng=0
    )
    assert np.isfinite(result.certificate.upper)


def test_value_and_gradient():
    """Against enumeration, and the gradient against finite differences of the value by enumeration."""
    rng = np.random.default_rng(2)
    for problem in problems(rng):
        every, w = Enumeration(problem.data, problem.n_labels), rng.normal(size=problem.shape)
        value, gradient = problem.value_and_gradient(w)
        assert value == pytest.approx(problem.value(w), rel=1e-15)
        assert_allclose(value, every.objective(w, problem.l2, problem.l1)[0], rtol=1e-13)
        for _ in range(5):
            direction, h = rng.normal(size=problem.shape), 1e-5
            ahead, behind = (every.objective(w + s * direction, problem.l2)[0] for s in (h, -h))
            assert_allclose(gradient @ direction, (ahead - behind) / (2 * h), rtol=1e-7)


def random_laws(every, rng):
    """A law on the labellings of each graph that factorises over nothing."""
    return [rng.dirichlet(np.full(len(labellings), 0.5)) for labellings in every.all]


def test_the_gap_is_the_mean_divergence_of_any_marginals():
    """``P(w(mu)) - D(mu) = (1/n) sum_i KL(mu_i || nu_i)``, ``mu_i`` the law built from marginals of any law at all."""
    rng = np.random.default_rng(3)
    for problem in problems(rng):
        every, k = Enumeration(problem.data, problem.n_labels), problem.n_labels
        mu = marginals(problem, every, random_laws(every, rng))
        assert inconsistency(problem, mu) < 1e-14
        w = problem.weights_of(problem.residual(mu))
        divergences, joints, tables, below = [], [], 0, 0
        for i in range(problem.n_terms):
            cliques, separators = scopes_of(problem, i)
            ends = np.cumsum([tables] + [k ** len(clique) for clique in cliques])
            ends_below = np.cumsum([below] + [k ** len(separator) for separator in separators])
            tables, below = ends[-1], ends_below[-1]
            joint = markov_joint(
                every.all[i],
                cliques,
                [mu.cliques[a:b] for a, b in itertools.pairwise(ends)],
                separators,
                [mu.separators[a:b] for a, b in itertools.pairwise(ends_below)],
                k,
            )
            assert_allclose(joint.sum(), 1.0, rtol=1e-12)
            assert_allclose(problem.entropies(mu)[i], entropy(joint), rtol=1e-10, atol=1e-14)
            divergences.append(kl(joint, every.law(w, i)))
            joints.append(joint)
        assert_allclose(problem.value(w) - problem.dual(mu), np.mean(divergences), rtol=1e-9)
        assert_allclose(problem.dual(mu, w), problem.dual(mu), rtol=1e-12)
        assert_allclose(problem.block_gaps(mu), divergences, rtol=1e-9, atol=1e-14)
        assert_allclose(problem.divergences(mu, problem.conjugate_marginals(w)), divergences, rtol=1e-9, atol=1e-14)
        drawn = [rng.integers(len(joint)) for joint in joints]
        labels = np.concatenate([every.all[i][own] for i, own in enumerate(drawn)])
        with np.errstate(divide="ignore"):
            expected = [np.log(joint[own]) for joint, own in zip(joints, drawn, strict=True)]
        assert_allclose(problem.log_probs(mu, labels), expected, rtol=1e-9, atol=1e-12)
        certificate = certify_gap(problem, (w, mu))
        assert_allclose(certificate.bound, np.mean(divergences), rtol=1e-9)
        assert certificate.slack < 1e-9


def test_probabilities_of_zero_are_infinitely_far():
    """Forbidden labellings have the logarithm -inf, and what allows them is infinitely far away."""
    rng = np.random.default_rng(15)
    problem = TreeProblem(graphs(rng, ("star", "square")), 2)
    every = Enumeration(problem.data, 2)
    laws = random_laws(every, rng)
    for law, labellings in zip(laws, every.all, strict=True):
        law[labellings[:, 0] == 0] = 0.0  # the first variable of each graph has label 1
        law /= law.sum()
    mu, full = marginals(problem, every, laws), problem.start(0.5)
    assert np.all(np.isinf(problem.divergences(full, mu)))
    assert np.all(np.isfinite(problem.divergences(mu, full)))
    zeros = np.zeros(len(problem.labels), dtype=int)
    assert np.all(np.isneginf(problem.log_probs(mu, zeros)))
    with pytest.raises(ValueError, match="labels must be numbers from 0 to 1"):
        problem.log_probs(mu, zeros + 2)


def test_the_gap_from_the_primal_side_is_the_squared_gradient():
    rng = np.random.default_rng(4)
    problem = TreeProblem(graphs(rng), 2, l2=0.3)
    every, w = Enumeration(problem.data, 2), rng.normal(size=problem.shape)
    mu = marginals(problem, every, [every.law(w, i) for i in range(problem.n_terms)])
    assert_allclose(problem.value(w) - problem.dual(mu), certify_weights(problem, w).bound, rtol=1e-9)
    assert_allclose(problem.gradient(w), 0.3 * (w - problem.weights_of(problem.residual(mu))), atol=1e-12)
    assert_allclose(problem.block_gaps(mu, w), 0.0, atol=1e-13)
    for found, right in zip(problem.conjugate_marginals(w), mu, strict=True):
        assert_allclose(found, right, atol=1e-13)
    squared = np.sum(problem.gradient(w) ** 2)
    assert_allclose(certify_weights(problem, w).bound, squared / (2 * problem.l2), rtol=1e-12)


def test_the_start_is_a_mixture_with_the_labels():
    rng = np.random.default_rng(5)
    problem = TreeProblem(graphs(rng), 2)
    every = Enumeration(problem.data, 2)
    laws = []
    for i, labellings in enumerate(every.all):
        law = np.full(len(labellings), 0.1 / len(labellings))
        law[every.truth(i)] += 0.9
        laws.append(law)
    expected = marginals(problem, every, laws)
    for found, right in zip(problem.start(0.1), expected, strict=True):
        assert_allclose(found, right, rtol=1e-13)


def update(problem, state, i, search=(1e-12, 100, 0.0, 0, None)):
    """One update of graph `i`, in place; returns its step."""
    counters = np.zeros(3)
    problem.ascend(
        state.hidden, state.mu, np.array([i]), state.gaps, tree_build(np.ones(1)), np.ones(problem.n_terms),
        drawing=(0, 0.0), search=search, sigma=1.0, source=(0, 0, 0), counters=counters,
    )  # fmt: skip
    return counters[2]


def test_every_update_keeps_the_laws_of_duality():
    """Consistent marginals, weights that belong to them, the gap of the block, a dual that rises and stays below."""
    rng = np.random.default_rng(6)
    for problem in problems(rng):
        every = Enumeration(problem.data, problem.n_labels)
        optimum = optim.run(
            SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-12, rng=0, max_steps=500
        ).value
        state, dual = SequenceDualAscent().init(problem, None, 0), -np.inf
        for u in range(6 * problem.n_terms):
            i = u % problem.n_terms
            gap = problem.block_gaps(state.mu)[i]
            update(problem, state, i)
            assert_allclose(state.gaps[i], gap, rtol=1e-8, atol=1e-12)
            assert inconsistency(problem, state.mu) < 1e-13
            assert_allclose(state.hidden, problem.residual(state.mu) / problem.l2, atol=1e-12)
            before, dual = dual, problem.dual(state.mu)
            assert before - 1e-13 <= dual <= optimum + 1e-11
            assert every.objective(problem.weights_of(problem.residual(state.mu)), problem.l2, problem.l1)[0] >= dual


def test_the_step_is_the_highest_point_of_the_dual():
    """The line search against a fine grid of convex combinations of the old and the new marginals."""
    rng = np.random.default_rng(7)
    problem = TreeProblem(graphs(rng, SMALL, labels=3), 3, l2=0.3)
    every = Enumeration(problem.data, 3)
    laws = [0.9 * law + 0.1 / len(law) for law in random_laws(every, rng)]
    for i in range(problem.n_terms):
        mu = marginals(problem, every, laws)
        w = problem.residual(mu) / problem.l2
        target = marginals(problem, every, [every.law(w, j) if j == i else law for j, law in enumerate(laws)])
        duals = [
            problem.dual(TreeMarginals(*((1 - s) * a + s * b for a, b in zip(mu, target, strict=True))))
            for s in np.linspace(0, 1, 201)
        ]
        state = SequenceDualAscent().init(problem, None, 0)._replace(hidden=w.copy(), mu=mu)
        step = update(problem, state, i)
        assert abs(step - np.argmax(duals) / 200) <= 1 / 200
        assert problem.dual(state.mu) >= max(duals) - 1e-14


def test_weights_do_not_drift_over_a_hundred_epochs():
    problem = TreeProblem(graphs(np.random.default_rng(8), SMALL * 6, labels=3), 3)
    solver = SequenceDualAscent()
    state = solver.init(problem, None, 0)
    for _ in range(100):
        state = solver._epoch(problem, state)
    assert np.max(np.abs(state.hidden - problem.residual(state.mu) / problem.l2)) < 1e-9
    assert inconsistency(problem, state.mu) < 1e-12


@pytest.fixture(scope="module")
def solved():
    """A problem and its optimum by SciPy on the enumerated likelihood."""
    problem = TreeProblem(graphs(np.random.default_rng(9), (*SMALL, *SMALL, "grid"), labels=2), 2)
    every = Enumeration(problem.data, 2)
    found = minimize(
        every.objective, np.zeros(problem.shape), (problem.l2,), jac=True, method="L-BFGS-B",
        options={"gtol": 1e-11, "ftol": 0.0, "maxiter": 10_000},
    )  # fmt: skip
    assert np.sum(found.jac**2) / (2 * problem.l2) < 1e-15
    return problem, found.fun, found.x


@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap", "gap-importance", "max"])
def test_every_way_of_sampling_reaches_the_optimum(solved, sampling):
    problem, value, w = solved
    result = optim.run(SequenceDualAscent(sampling), problem, np.zeros(problem.shape), tol=1e-9, max_steps=1000, rng=0)
    assert result.status == "converged"
    assert value - 1e-14 <= result.value <= value + result.certificate.upper
    assert np.linalg.norm(result.x - w) <= result.certificate.details["|w - w*|"]
    assert result.certificate.verify(result.subject).bound <= 1e-9 * result.scale


def test_other_settings_and_solvers_reach_the_optimum(solved):
    problem, value, w = solved
    start = np.zeros(problem.shape)
    batch = optim.run(SequenceLBFGS(), problem, start, tol=1e-14, max_steps=500)
    assert_allclose(batch.value, value, rtol=1e-13)
    assert_allclose(batch.x, w, atol=1e-6)
    coarse = optim.run(SequenceDualAscent(dtype="float32"), problem, start, tol=1e-5, max_steps=500, rng=0)
    assert coarse.state.mu.cliques.dtype == np.float32
    assert 0 <= coarse.value - value + 1e-14 <= coarse.certificate.upper
    answers = []
    for jobs in (1, 2, 3):
        same = TreeProblem(problem.data, 2, n_jobs=jobs)
        blocks = optim.run(SequenceDualAscent(n_blocks=3), same, start, tol=1e-6, max_steps=1000, rng=0)
        assert blocks.status == "converged"
        assert value <= blocks.value <= value + blocks.certificate.upper
        answers.append(blocks.x)
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_l1_makes_weights_zero_and_no_law_bounds_the_optimum_wrongly():
    rng = np.random.default_rng(10)
    problem = TreeProblem(graphs(rng, SMALL * 4), 2, l1=0.02)
    result = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-10, max_steps=1000, rng=0)
    assert result.status == "converged"
    assert np.mean(result.x == 0) > 0.2
    every = Enumeration(problem.data, 2)
    assert_allclose(result.value, every.objective(result.x, problem.l2, problem.l1)[0], rtol=1e-12)
    for _ in range(50):
        w = result.x + 10.0 ** rng.uniform(-6, -1) * rng.normal(size=problem.shape)
        assert every.objective(w, problem.l2, problem.l1)[0] >= result.value - result.certificate.upper
        numbers = rng.exponential(size=len(result.state.mu.cliques))  # neither consistent nor normalised
        numbers *= rng.uniform(size=len(numbers)) < 0.7
        assert problem.dual(TreeMarginals(numbers, result.state.mu.separators)) <= result.value


def chains(data):
    """The same sequences as graphs."""
    inner = np.ones(len(data.labels), dtype=bool)
    inner[data.offsets[1:] - 1] = False
    left = np.flatnonzero(inner)
    factors = {
        "nodes": Factors(np.arange(len(data.labels))[:, None], data.features),
        "edges": Factors(np.column_stack([left, left + 1]), np.ones((len(left), 1))),
    }
    return GraphData(data.offsets, factors, data.labels)


def test_a_chain_is_a_tree():
    """The same objective, the same updates in the same order, the same optimum as on `ChainProblem`."""
    rng = np.random.default_rng(11)
    data = ragged(rng, n=25, longest=7)
    for l1 in (0.0, 0.01):
        chain, tree = ChainProblem(data, 3, 0.1, l1, bias=False), TreeProblem(chains(data), 3, 0.1, l1)
        w = rng.normal(size=chain.shape)
        for a, b in zip(chain.value_and_gradient(w), tree.value_and_gradient(w.ravel()), strict=True):
            assert_allclose(b, np.ravel(a), rtol=1e-12, atol=1e-14)
        assert_allclose(tree.squared_radii, chain.squared_radii, rtol=1e-12)
        solver = SequenceDualAscent("uniform")
        one, other = solver.init(chain, None, 3), solver.init(tree, None, 3)
        for _ in range(5):
            one, other = solver._epoch(chain, one), solver._epoch(tree, other)
        assert_allclose(other.hidden, one.hidden.ravel(), atol=1e-11)
        assert_allclose(other.counters, one.counters, rtol=1e-9)
        assert_allclose(tree.entropies(other.mu), chain.entropies(one.mu), rtol=1e-9)
        gap = SequenceDualAscent()
        one, other = gap.init(chain, None, 1), gap.init(tree, None, 2)  # seeds apart: only the optimum is the same
        for _ in range(300):
            one, other = gap._epoch(chain, one), gap._epoch(tree, other)
        assert_allclose(gap.solution(tree, other), gap.solution(chain, one).ravel(), atol=1e-8)


def test_radii_bound_the_features_of_every_labelling():
    rng = np.random.default_rng(12)
    for problem in problems(rng):
        every = Enumeration(problem.data, problem.n_labels)
        for i, bound in enumerate(problem.squared_radii):
            own = every.features[i]
            exact = np.max(np.sum((own - own[every.truth(i)]) ** 2, axis=1))
            assert exact <= bound * (1 + 1e-12)
            assert bound <= 8 * exact + 1e-12  # the relaxed consistency of labels does not cost orders of magnitude


def test_trees_of_ones_own_give_the_same_answers():
    rng = np.random.default_rng(13)
    data = graphs(rng, ("star", "square"), labels=3)
    wide = [JunctionTree.of(5, [(0, 1, 2, 3, 4)]), JunctionTree.from_cliques(4, [(0, 1, 2), (0, 2, 3)], [(1, 0)])]
    own = TreeProblem(GraphData(data.offsets, data.factors, data.labels, wide), 3)
    w = rng.normal(size=own.shape)
    assert own.inference.layout.table_offsets[-1] == 3**5 + 2 * 3**3
    for a, b in zip(TreeProblem(data, 3).value_and_gradient(w), own.value_and_gradient(w), strict=True):
        assert_allclose(a, b, rtol=1e-12)
    wrong = [JunctionTree.of(5, [(0, 1)]), wide[1]]
    with pytest.raises(ValueError, match=r"no clique of the junction tree holds"):
        TreeInference(GraphData(data.offsets, data.factors, trees=wrong), 3)
    with pytest.raises(ValueError, match="a junction tree for each graph"):
        GraphData(data.offsets, data.factors, trees=wide[:1])


def test_equal_structures_are_laid_out_once():
    data = graphs(np.random.default_rng(14), ("grid",) * 50)
    kinds = {kind: Factors(np.sort(f.variables, axis=0), f.features) for kind, f in data.factors.items()}
    layout = TreeInference(GraphData(data.offsets, {"nodes": kinds["nodes"]}), 2).layout
    assert layout.structures.tolist() == [0] * 50
    assert len(layout.tables) == 9


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    problem = TreeProblem(graphs(np.random.default_rng(15), SMALL * 3), 2)
    start, solver = np.zeros(problem.shape), SequenceDualAscent()
    whole = optim.run(solver, problem, start, tol=None, max_steps=6, rng=5)
    optim.run(solver, problem, start, tol=None, max_steps=3, rng=5, checkpoint=tmp_path / "run.npz")
    resumed = optim.run(solver, problem, start, tol=None, max_steps=6, rng=5, checkpoint=tmp_path / "run.npz")
    assert np.array_equal(whole.x, resumed.x)


def test_refusals():
    data = graphs(np.random.default_rng(16), ("square", "single"), labels=3)
    for wrong, message in [
        ({"l2": 0.0}, "l2 must be positive"),
        ({"l1": -1.0}, "l1 must be finite and not negative"),
        ({"n_labels": 2}, "labels must be numbers from 0 to 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            TreeProblem(**({"data": data, "n_labels": 3} | wrong))
    with pytest.raises(ValueError, match="w must be finite"):
        TreeProblem(data, 3).value(np.full(TreeProblem(data, 3).shape, np.nan))
    with pytest.raises(ValueError, match="must have labels"):
        TreeProblem(GraphData(data.offsets, data.factors), 3)
    with pytest.raises(TooWide, match=r"graph 0 needs a table of 3\^3 = 27 entries"):
        TreeProblem(data, 3, max_table=26).value(np.zeros(1))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.floats(0.0, 0.8), st.sampled_from([1e-3, 1.0, 50.0]))
def test_random_graphs_have_the_value_of_enumeration_and_a_certified_gap(seed, labels, density, scale):
    """One label, single nodes, any triangulation, huge and tiny values: the bound holds, and nothing is NaN."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, size=4)
    tuples = [
        (scale * rng.normal(size=(size, 2)), rng.permutation(list(nx.gnp_random_graph(size, density, seed).edges)))
        for size in sizes.tolist()
    ]
    data = GraphData.from_graphs(tuples, [rng.integers(0, labels, size=size) for size in sizes])
    problem = TreeProblem(data, labels)
    result = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-6, max_steps=30, rng=0)
    value, gradient = Enumeration(data, labels).objective(result.x, problem.l2)
    assert_allclose(result.value, value, rtol=1e-11)
    assert_allclose(problem.gradient(result.x), gradient, atol=1e-10 * scale)
    best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-10, max_steps=300)
    assert result.value - best.value <= result.certificate.upper + 1e-10
    assert result.certificate.upper < np.inf
