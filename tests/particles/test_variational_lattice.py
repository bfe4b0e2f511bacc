"""Ising models as two-block families, against all of their states."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax

from cumulant import particles
from cumulant.errors import DomainError
from cumulant.graphical import Ising, complete, grid, torus, torus_log_partition
from cumulant.particles import IsingFamily

RNG = np.random.default_rng(3)


def states(n):
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)


def small(name):
    edges = {"grid": grid(2, 4), "triangles": np.array([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])}[name]
    n = int(edges.max()) + 1
    return Ising(edges, RNG.normal(size=len(edges)), RNG.normal(size=n))


COMB = (np.array([0, 1, 2, 3, 5]), np.array([4, 6, 7]))


@pytest.mark.parametrize("tying", ["global", "sign", "edge"])
@pytest.mark.parametrize(("name", "blocks"), [("grid", "bipartite"), ("grid", COMB), ("grid", "trees"), ("triangles", "auto")])
def test_the_other_block_summed_out_is_the_sum_over_its_states(name, blocks, tying):
    model = small(name)
    family = IsingFamily(model, tying, blocks)
    theta, v = RNG.normal(size=(2, family.dim))
    a, b = states(family.forest_A.nodes.size), states(family.forest_B.nodes.size)
    values, means, products = (
        family.block_values(a, theta), family.block_means(a, theta), family.block_products(a, theta, v),
    )  # fmt: skip
    for s, row in enumerate(a):
        rows = np.repeat(row[None], len(b), axis=0)
        t = family.statistics(rows, b)
        scores = t @ theta + family.draws(rows, b) @ model.fields
        p = softmax(scores)
        assert_allclose(values[s], logsumexp(scores), rtol=1e-13)
        assert_allclose(means[s], p @ t, atol=1e-13)
        centred = t - p @ t
        assert_allclose(products[s], (p * (centred @ v)) @ centred, atol=1e-12)
    everything = family.draws(*(np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))))
    assert_allclose(logsumexp(values), Ising(model.edges, family.couplings(theta), model.fields).log_partition(), rtol=1e-12)
    assert len(np.unique(everything, axis=0)) == 2**model.n_variables
    assert_allclose(family.couplings(family.target), model.couplings, rtol=1e-14)
    assert_allclose(family.log_partition_at_start, Ising(model.edges, 0.0, model.fields).log_partition(), rtol=1e-12)


def test_blocks_are_drawn_from_their_conditionals():
    family = IsingFamily(small("grid"), "edge", COMB)
    row = np.array([1, -1, 1, 1, -1], np.int8)
    b, n = states(3), 40_000
    t = family.statistics(np.repeat(row[None], len(b), axis=0), b)
    p = softmax(t @ family.target + family.draws(np.repeat(row[None], len(b), axis=0), b) @ family.fields)
    drawn = family.sample_B(np.repeat(row[None], n, axis=0), family.target, np.random.default_rng(0))
    counts = np.array([np.sum((drawn == each).all(axis=1)) for each in b])
    assert_allclose(counts, n * p, atol=4.5 * np.sqrt(n * 0.25))
    assert particles.check_family(family, n=20_000) < 5


def test_one_jump_with_a_block_summed_out():
    """From independent spins to 0.3 on 4 x 4: the mean weight is exp(12.785523 - 11.090355)."""
    family, n = IsingFamily(Ising(torus(4, 4), 0.3)), 100_000
    x_A, x_B = family.begin(n, np.random.default_rng(0))
    blocked = np.exp(family.block_values(x_A, family.target) - family.block_values(x_A, family.start))
    naive = np.exp(family.statistics(x_A, x_B) @ family.target)
    exact = np.exp(torus_log_partition(4, 4, 0.3) - 16 * np.log(2))
    assert_allclose(exact, 5.447563, atol=1e-6)
    for weights in (blocked, naive):
        assert abs(weights.mean() - exact) < 4 * weights.std() / np.sqrt(n)
    share = [weights.sum() ** 2 / np.sum(weights**2) / n for weights in (blocked, naive)]
    assert 0.15 < share[0] < 0.25
    assert share[0] > 15 * share[1]


def test_the_gradient_with_a_block_summed_out_has_less_variance():
    """4 x 4, theta = 0.3, target 0.5, 100 exact draws: plain expects -15.523, the exact gradient is -15.680."""
    family, n, trials = IsingFamily(Ising(torus(4, 4), 0.5)), 100, 2000
    x = np.asarray(Ising(torus(4, 4), 0.3).sample(n * trials, rng=0)).astype(np.int8)
    x_A, x_B = x[:, family.forest_A.nodes], x[:, family.forest_B.nodes]
    W, theta = np.full(n, 1 / n), np.array([0.3])
    found = np.array([
        [particles.kl_gradient(W, x_A[i : i + n], x_B[i : i + n], theta, family, rao_blackwell=rb)[0] for rb in (0, 1)]
        for i in range(0, n * trials, n)
    ])  # fmt: skip
    error = found.std(axis=0) / np.sqrt(trials)
    assert abs(found[:, 0].mean() + 15.679738794 * (1 - 1 / n)) < 4 * error[0]
    assert -15.679738794 - 4 * error[1] < found[:, 1].mean() < -15.523 + 4 * error[1]
    assert 1.8 < found[:, 0].std() < 2.15  # published: 1.97
    assert 1.15 < found[:, 1].std() < 1.4  # published: 1.27


def test_the_divergence_is_not_convex():
    """4 x 4, target 1: the second derivative of the KL divergence changes its sign twice."""
    h = 1e-3

    def divergence(theta):
        slope = (torus_log_partition(4, 4, theta + 1e-5) - torus_log_partition(4, 4, theta - 1e-5)) / 2e-5
        return slope * (theta - 1) - torus_log_partition(4, 4, theta)

    second = [(divergence(t + h) - 2 * divergence(t) + divergence(t - h)) / h**2 for t in (0.0, 0.2, 0.3, 0.4)]
    assert_allclose(second, [32, -126.38, -144.47, 277.40], atol=0.05)


def test_refusals():
    with pytest.raises(DomainError, match="does not split into two blocks"):
        IsingFamily(Ising(complete(5), 0.1))
    with pytest.raises(DomainError, match="has a cycle"):
        IsingFamily(Ising(grid(2, 2), 0.1), blocks=(np.arange(4), np.arange(0)))
    with pytest.raises(ValueError, match="each of the 4 variables once"):
        IsingFamily(Ising(grid(2, 2), 0.1), blocks=([0, 1], [1, 2]))
    with pytest.raises(ValueError, match="tying must be one of"):
        IsingFamily(Ising(grid(2, 2), 0.1), "none")
    with pytest.raises(TypeError, match="an Ising model"):
        particles.variational_smc(3.0)
    with pytest.raises(ValueError, match="no evidence"):
        IsingFamily(Ising(grid(2, 2), 0.1).given({0: 1}))
