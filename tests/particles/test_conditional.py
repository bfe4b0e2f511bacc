"""Conditional mean field on the four-node example: every number of it by enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference import block_gibbs as reference

from cumulant import graphical, particles
from cumulant.graphical import Ising
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles import BlockGibbs, ConditionalObjective, Parameters, fit_conditional_mean_field
from cumulant.particles.conditional.bridge import product_start

SQUARE = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
STEPS = ([[0, 1], [2, 3]], [[0], [1], [2, 3]], [[0], [1], [2], [3]])
STATES = 2 * ((np.arange(16)[:, None] >> np.arange(4)) & 1) - 1


def states(n):
    return 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1


def matrix(edges, couplings, n):
    W = np.zeros((n, n))
    np.add.at(W, tuple(np.asarray(edges).T), couplings)
    return W + W.T


def scores(parameters, x=STATES, edges=SQUARE.edges):
    return reference.log_f(x, parameters.fields, matrix(edges, parameters.couplings, x.shape[1]))


def probabilities(parameters):
    f = np.exp(scores(parameters))
    return f / f.sum()


@pytest.fixture(scope="module")
def path():
    """The approximations of the example, each fitted to the exact distribution of the one before."""
    found = [product_start(IsingArrays.of(SQUARE), "mean_field")]
    for blocks in STEPS:
        weights = probabilities(found[-1])
        found.append(fit_conditional_mean_field(ConditionalObjective.of(SQUARE, blocks, STATES, weights)))
    return found


def test_the_table_of_the_four_node_example(path):
    fields = [
        (0.087824, 0.033674, -0.678728, -0.478515),
        (0.391940, 0.269913, -0.658393, -0.429870),
        (0.4, 0.3, -0.645490, -0.420364),
        (0.4, 0.3, -0.5, -0.2),
    ]
    for found, expected, log_z in zip(path, fields, (3.101935, 3.260661, 3.369371, 3.367531), strict=True):
        assert_allclose(found.fields, expected, atol=1e-6)
        assert_allclose(np.log(np.exp(scores(found)).sum()), log_z, atol=1e-6)
    assert_allclose(path[0].fields, (0.0878236363, 0.0336738824, -0.6787275811, -0.4785152035), atol=1e-10)
    t = path[0].fields
    assert_allclose(np.logaddexp(t, -t).sum(), 3.1019345609, atol=1e-10)


def test_the_target_of_the_example():
    means = SQUARE.mean()
    assert_allclose(means[:4], (0.108342, 0.068719, -0.401623, -0.266534), atol=1e-6)
    assert_allclose(means[4:], (-0.382914, 0.256428, 0.336831, 0.429665), atol=1e-6)


def test_the_objective_of_the_second_step(path):
    problem = ConditionalObjective.of(SQUARE, STEPS[0], STATES, probabilities(path[0]))
    assert_allclose(problem.value(problem.start), 3.299020384, atol=1e-9)
    assert_allclose(problem.value(path[1].fields), 3.319018298, atol=1e-9)
    away = problem.start + 0.2
    assert_allclose(problem.value(away), 3.183170543, atol=1e-9)
    assert_allclose(problem.gradient(away), (-0.263161, -0.269798, -0.149483, -0.234205), atol=1e-6)
    expected = np.zeros((4, 4))
    expected[:2, :2] = [[-0.777005, -0.361197], [-0.361197, -0.781984]]
    expected[2:, 2:] = [[-0.803108, 0.305793], [0.305793, -0.779161]]
    assert_allclose(problem.hessian(away), expected, atol=1e-6)
    at_best = np.linalg.eigvalsh(problem.hessian(path[1].fields))
    assert_allclose(at_best, (-1.243069, -0.962585, -0.490816, -0.456471), atol=1e-6)


def test_free_edges_of_the_second_step(path):
    by_mean_field = ConditionalObjective.of(SQUARE, STEPS[0], STATES, probabilities(path[0]), free_edges=True)
    found = fit_conditional_mean_field(by_mean_field)
    # Every spin has one neighbour outside its block, and these are independent: nothing is gained by the edges.
    assert_allclose(found.couplings, (0, 0.5, 0.5, 0), atol=1e-8)
    assert_allclose(found.fields, path[1].fields, atol=1e-8)
    target = np.exp(SQUARE.log_prob(STATES))
    fixed, free = (ConditionalObjective.of(SQUARE, STEPS[0], STATES, target, free_edges=f) for f in (False, True))
    one, other = fit_conditional_mean_field(fixed), fit_conditional_mean_field(free)
    assert_allclose(one.fields, (0.381882, 0.249385, -0.701704, -0.464360), atol=1e-6)
    assert_allclose(other.fields, (0.332978, 0.221452, -0.652392, -0.432861), atol=1e-6)
    assert_allclose(other.couplings, (0, 0.426568, 0.440032, 0), atol=1e-6)
    assert_allclose(fixed.value(one.fields), 3.304688, atol=1e-6)
    assert_allclose(free.value(np.append(other.fields, other.couplings[1:3])), 3.310164, atol=1e-6)


def random_problem(seed, free_edges, n=8):
    draw = np.random.default_rng(seed)
    edges = graphical.random_regular(n, 3, rng=seed)
    model = Ising(edges, draw.normal(size=len(edges)), draw.normal(size=n))
    label = draw.integers(0, 3, n)
    blocks = [np.flatnonzero(label == k) for k in range(3) if (label == k).any()]
    x = np.where(draw.random((5, n)) < 0.5, -1, 1)
    problem = ConditionalObjective.of(model, blocks, x, draw.dirichlet(np.ones(5)), free_edges=free_edges)
    return model, problem, problem.start + draw.normal(size=problem.start.size)


@pytest.mark.parametrize("free_edges", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_those_of_the_value(seed, free_edges):
    _, problem, theta = random_problem(seed, free_edges)
    step = 1e-5 * np.eye(theta.size)
    slopes = [(problem.value(theta + e) - problem.value(theta - e)) / 2e-5 for e in step]
    assert_allclose(problem.gradient(theta), slopes, atol=1e-7)
    curvature = [(problem.gradient(theta + e) - problem.gradient(theta - e)) / 2e-5 for e in step]
    assert_allclose(problem.hessian(theta), curvature, atol=1e-7)
    assert_allclose(problem.terms(theta).sum(), problem.value(theta), rtol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_is_log_z_of_the_blocks_minus_divergences(seed):
    model, problem, theta = random_problem(seed, True)
    found = problem.parameters(theta)
    J, W = matrix(model.edges, model.couplings, 8), matrix(model.edges, found.couplings, 8)
    total = 0.0
    for x, weight in zip(problem.configurations, problem.weights, strict=True):
        for block in problem.blocks:
            inside = np.tile(x, (2**block.size, 1))
            inside[:, block] = states(block.size)
            p, q = np.exp(reference.log_f(inside, model.fields, J)), np.exp(reference.log_f(inside, found.fields, W))
            rest = x.copy()
            rest[block] = 0.0  # terms without the block are no part of its log Z
            log_z = np.log(p.sum()) - reference.log_f(rest[None], model.fields, J)[0]
            p, q = p / p.sum(), q / q.sum()
            total += weight * (log_z - np.sum(q * np.log(q / p)))
    assert_allclose(problem.value(theta), total, atol=1e-12)


@pytest.mark.parametrize("free_edges", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_solver_ends_at_a_maximum_from_where_the_hessian_is_indefinite_too(seed, free_edges):
    _, problem, _ = random_problem(seed, free_edges, n=12)
    found = fit_conditional_mean_field(problem)
    theta = np.concatenate([found.fields, found.couplings[problem.connecting] if free_edges else []])
    assert problem.value(theta) >= problem.value(problem.start)
    assert np.abs(problem.gradient(theta)).max() <= 1e-8
    assert np.linalg.eigvalsh(problem.hessian(theta)).max() < 1e-6


def test_single_spins_are_the_target_bit_for_bit():
    model = graphical.spin_glass(graphical.grid(3, 3), fields=1.0, rng=0)
    x = np.where(np.random.default_rng(0).random((7, 9)) < 0.5, -1, 1)
    for free_edges in (False, True):
        problem = ConditionalObjective.of(model, [[i] for i in range(9)], x, free_edges=free_edges)
        found = fit_conditional_mean_field(problem)
        assert np.array_equal(found.fields, model.fields)
        assert np.array_equal(found.couplings, model.couplings)
        assert_allclose(problem.gradient(problem.start), 0.0, atol=1e-16)


def test_the_mean_of_the_weights_is_the_ratio_of_normalisers(path):
    expected = (1.1720172663, 1.1148387531, 0.9981620406)
    spread = {"mixture": (0.0164829, 0.0763812, 0.0771602), "reversal": (0.4818663, 0.2124938, 0.2310595)}
    for k, blocks in enumerate(STEPS):
        kernel = BlockGibbs(SQUARE.edges, tuple(np.array(block) for block in blocks))
        old, new = path[k : k + 2]
        ratio = np.exp(scores(new)).sum() / np.exp(scores(old)).sum()
        assert_allclose(ratio, expected[k], rtol=1e-9)
        p = probabilities(old)
        moved = p @ reference.transition(STATES, blocks, new.fields, matrix(SQUARE.edges, new.couplings, 4))
        for backward, at in (("mixture", moved), ("reversal", p)):
            u = np.exp(kernel.log_weights(STATES.astype(np.int8), old, new, backward))
            assert_allclose(at @ u, ratio, rtol=1e-12)
            assert_allclose(at @ u**2 / ratio**2 - 1, spread[backward][k], atol=1e-7)
    kernel = BlockGibbs(SQUARE.edges, tuple(np.array(block) for block in STEPS[0]))
    ends = np.array([[-1] * 4, [1] * 4], np.int8)
    assert_allclose(np.exp(kernel.log_weights(ends, *path[:2])), (1.0154647, 1.5432363), atol=1e-7)


def test_tempering_divides_the_variance(path):
    for steps, spread in ((1, 0.170024), (2, 0.085987), (5, 0.034322), (20, 0.008552)):
        total, squares = 0.0, 0.0
        for k, blocks in enumerate(STEPS):
            kernel = BlockGibbs(SQUARE.edges, tuple(np.array(block) for block in blocks))
            for s in range(steps):
                old, new = (path[k].towards(path[k + 1], share / steps) for share in (s, s + 1))
                moved = probabilities(old) @ reference.transition(
                    STATES, blocks, new.fields, matrix(SQUARE.edges, new.couplings, 4)
                )
                u = np.exp(kernel.log_weights(STATES.astype(np.int8), old, new))
                total += np.log(moved @ u)
                squares += moved @ u**2 / (moved @ u) ** 2 - 1
        assert_allclose(total, 0.2655965513, atol=1e-10)
        assert_allclose(squares, spread, atol=1e-6)


def test_kernels_against_their_reference():
    draw = np.random.default_rng(0)
    edges = graphical.complete(6)
    blocks = (np.array([0, 3, 4]), np.array([1]), np.array([2, 5]))
    outside = np.array([not any(i in block and j in block for block in blocks) for i, j in edges.tolist()])
    old, new = (Parameters(3 * draw.normal(size=6), draw.normal(size=15) * outside) for _ in range(2))
    x, kernel = states(6), BlockGibbs(edges, blocks)
    for backward in ("mixture", "reversal"):
        found = kernel.log_weights(x.astype(np.int8), old, new, backward)
        before, after = ((p.fields, matrix(edges, p.couplings, 6)) for p in (old, new))
        assert_allclose(found, np.log(reference.weights(x, blocks, before, after, backward)), atol=1e-12)
    n, start = 40_000, 13
    row = reference.transition(x, blocks, new.fields, matrix(edges, new.couplings, 6))[start]
    before = np.tile(x[start].astype(np.int8), (n, 1))
    after = kernel.redraw(before, new, seed=0, step=1)
    counts = np.bincount((after > 0) @ (1 << np.arange(6)), minlength=64) / n
    assert np.all(np.abs(counts - row) <= 4.5 * np.sqrt(row * (1 - row) / n) + 1e-12)
    assert (before == x[start]).all()


def test_large_fields_do_not_overflow():
    kernel = BlockGibbs(np.array([[0, 1]]), (np.arange(2),))
    x = np.array([[1, 1], [1, -1]], np.int8)
    old, new = (Parameters(np.array([s, s]), np.zeros(1)) for s in (-900.0, 1000.0))
    found = kernel.log_weights(x, old, new)
    # One block: u is the ratio of the normalisers 2 cosh(t)^2, the same at every state.
    assert_allclose(found, 200.0, rtol=1e-12)


def test_without_couplings_every_weight_is_one():
    model = Ising(graphical.grid(3, 4), 0.0, np.linspace(-1, 1, 12))
    result = particles.conditional_mean_field(model, 50, temperatures=3, rng=0)
    exact = np.logaddexp(model.fields, -model.fields).sum()
    assert_allclose(result.trace["log_z"], exact, rtol=1e-13)
    assert_allclose(result.trace["ess"], 50, rtol=1e-12)
    for found in result.outcomes[0].population.memory:
        assert_allclose(found.fields, model.fields, atol=1e-14)


def test_two_spins():
    weak, strong = (Ising([(0, 1)], J, [0.0, 0.0]) for J in (0.8, 1.5))
    assert_allclose(product_start(IsingArrays.of(weak), "mean_field").fields, 0.0, atol=1e-6)
    mu = np.tanh(product_start(IsingArrays.of(strong), "mean_field").fields)
    assert_allclose(np.abs(mu), np.tanh(1.5 * np.abs(mu)), atol=1e-12)
    assert np.abs(mu).min() > 0.5
    assert_allclose(strong.log_partition(), np.log(4 * np.cosh(1.5)), atol=1e-12)
