"""Structure learning: the objective and its gap against slow references, and the recovery of known graphs."""

import itertools
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant.errors import CertificateError
from cumulant.graphical import Ising, IsingEstimator, PairwiseMRF, grid, sparse_structure, spin_glass
from cumulant.graphical.learning.conditional_likelihood import block_likelihood, pseudo_likelihood
from cumulant.graphical.learning.sparse_problem import SparseProblem, certify_sparse


def pairs(edges):
    return set(map(tuple, np.sort(np.asarray(edges), axis=1).tolist()))


def problem_of(x, sizes=None, l1=0.1, l2=0.05):
    return SparseProblem.of(np.asarray(x, float), sizes, l2, ~np.eye(x.shape[1], dtype=bool)).along(l1)


def random_theta(problem, rng):
    theta = rng.normal(size=problem.shape)
    theta[1:] = problem.scaled(theta[1:] + theta[1:].T, problem.allowed.astype(float))
    return theta


@pytest.fixture(scope="module")
def spins():
    return Ising(grid(2, 3), 0.4, 0.2).sample(60, rng=0)


def test_the_objective_is_the_pseudo_likelihood_of_spins_and_of_tables(spins):
    rng = np.random.default_rng(0)
    problem = problem_of(spins)
    theta = random_theta(problem, rng)
    edges = np.argwhere(np.triu(problem.allowed))
    W, mean = theta[1:], spins.mean(axis=0)
    plain = np.concatenate([theta[0] - mean @ W, W[tuple(edges.T)]])
    assert_allclose(problem.loss(problem.scores(theta)), pseudo_likelihood(spins, edges)(plain)[0], rtol=1e-12)

    sizes = np.array([2, 3, 2])
    x = np.stack([rng.integers(0, q, 40) for q in sizes], axis=1)
    tables = problem_of(x, sizes)
    theta, W = (lambda t: (t, t[1:]))(random_theta(tables, rng))
    starts, means = np.array([0, 2, 5, 7]), tables.states.mean(axis=0)
    fields = theta[0] - means @ W
    cut = [slice(a, b) for a, b in itertools.pairwise(starts)]
    joined = [(0, 1), (0, 2), (1, 2)]
    model = PairwiseMRF([fields[c] for c in cut], joined, [W[cut[i], cut[j]] for i, j in joined])
    expected = block_likelihood(model.family, x, [[0], [1], [2]])(np.asarray(model.theta))[0]
    assert_allclose(tables.loss(tables.scores(theta)), expected, rtol=1e-12)


@pytest.mark.parametrize("sizes", [None, [2, 3, 2]], ids=["spins", "tables"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_gradient_proximal_map_and_gap(sizes, missing):
    rng = np.random.default_rng(1)
    x = (
        rng.choice([-1.0, 1.0], (30, 3))
        if sizes is None
        else np.stack([rng.integers(0, q, 30) for q in sizes], axis=1).astype(float)
    )
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    problem = problem_of(x, None if sizes is None else np.array(sizes))
    theta, direction = random_theta(problem, rng), random_theta(problem, rng)
    gradient = problem.loss_gradient(problem.slopes(problem.scores(theta)))
    step = 1e-6
    up, down = (problem.loss(problem.scores(theta + s * direction)) for s in (step, -step))
    inner = gradient[0] @ direction[0] + 0.5 * (gradient[1:] * direction[1:]).sum()
    assert_allclose((up - down) / (2 * step), inner, rtol=1e-6)
    # No point near the proximal one has a smaller value of what it minimises.
    target = problem.proximal(theta, 0.7)

    def proximal_value(t):
        square = ((t - theta)[0] ** 2).sum() + 0.5 * ((t - theta)[1:] ** 2).sum()
        return square / 1.4 + problem.penalty(t)

    assert all(proximal_value(target) <= proximal_value(target + 1e-3 * random_theta(problem, rng)) for _ in range(50))
    # The gap is an upper bound at any point, for any other.
    gap = problem.gap(theta, gradient)
    assert all(problem.value(theta) - problem.value(0.3 * random_theta(problem, rng)) <= gap for _ in range(50))


def test_the_certified_minimum_is_that_of_a_general_solver(spins):
    found = sparse_structure(spins, l1=0.15, l2=0.05, tol=1e-10)
    problem, n = found.problem, spins.shape[1]
    edges = np.argwhere(np.triu(problem.allowed))

    def smooth(v):  # positive and negative parts of the couplings: differentiable over v >= 0
        theta = np.zeros(problem.shape)
        theta[0] = v[:n]
        J = v[n : n + len(edges)] - v[n + len(edges) :]
        theta[1:][tuple(edges.T)] = theta[1:][tuple(edges.T[::-1])] = J
        g = problem.loss_gradient(problem.slopes(problem.scores(theta)))
        slope = g[1:][tuple(edges.T)] + problem.l2 * J
        value = problem.loss(problem.scores(theta)) + 0.5 * problem.l2 * (v[:n] @ v[:n] + J @ J)
        penalty = problem.l1 * v[n:].sum()
        return value + penalty, np.concatenate([g[0] + problem.l2 * v[:n], slope + problem.l1, -slope + problem.l1])

    bounds = [(None, None)] * n + [(0, None)] * (2 * len(edges))
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000}
    peer = minimize(smooth, np.zeros(n + 2 * len(edges)), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert problem.value(found.theta) - peer.fun <= found.certificate.upper
    assert found.certificate.upper < 1e-8
    assert abs(problem.value(found.theta) - peer.fun) < 1e-8
    assert found.certificate.verify(found.subject).bound <= found.certificate.upper
    other = np.array(found.theta)
    other[0] += 0.1
    with pytest.raises(CertificateError):
        found.certificate.verify(type(found.subject)(problem, other))
    with pytest.raises(CertificateError, match="strongly convex"):
        certify_sparse(problem_of(spins, l2=0.0), found.theta)


@pytest.mark.parametrize("seed", range(3))
def test_the_graph_of_an_ising_model_is_found(seed):
    truth = spin_glass(grid(4, 5), couplings=0.5, kind="signs", fields=0.2, rng=seed)
    found = sparse_structure(truth.sample(1000, rng=seed))
    assert pairs(found.edges) == pairs(grid(4, 5))
    assert found.status == "converged"
    assert found.n_edges[found.chosen] >= 31  # those of the path, before the weakest are tried
    assert (np.diff(found.penalties) < 0).all()


def test_strong_and_weak_pairs_far_apart_on_the_path_are_both_found():
    edges = [(0, 1), (2, 3), (4, 5)]
    x = Ising(edges, [1.5, 0.15, 0.12]).sample(8000, rng=0)
    assert pairs(sparse_structure(x).edges) == pairs(edges)


def test_the_graph_of_tables_is_found():
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    sizes = [2, 3, 4, 3, 2]
    tables = [1.2 * np.eye(sizes[i], sizes[j]) for i, j in edges]
    x = PairwiseMRF([np.zeros(q) for q in sizes], edges, tables).sample(1000, rng=4)
    assert pairs(sparse_structure(x, sizes).edges) == pairs(edges)


def test_independent_variables_are_not_joined():
    x = np.random.default_rng(0).choice([-1, 1], (500, 30))
    found = sparse_structure(x)
    assert len(found.edges) == 0
    assert "0 of 435 pairs" in str(found)
    assert len(sparse_structure(np.ones((5, 3)), spins=True).edges) == 0  # one value only
    assert len(sparse_structure(x[:, :1]).edges) == 0


def test_the_graph_is_found_where_values_are_missing():
    x = Ising(grid(4, 4), 0.5).sample(1500, rng=0).astype(float)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    assert pairs(sparse_structure(x).edges) == pairs(grid(4, 4))


def test_a_search_ends_by_the_clock_with_what_it_has():
    x = np.random.default_rng(0).choice([-1, 1], (2000, 60))
    x[:, 1:] = np.where(np.random.default_rng(1).random((2000, 59)) < 0.7, x[:, :-1], x[:, 1:])
    began = time.process_time()
    found = sparse_structure(x, time_limit=0.05)
    assert time.process_time() - began < 10.0
    assert found.status == "time_limit"
    assert found.certificate is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l2": 0.0}, "l2 must be positive"),
        ({"l1": -1.0}, "l1 must be"),
        ({"gamma": np.nan}, "gamma must be"),
        ({"time_limit": 0.0}, "time_limit must be"),
        ({"cardinalities": [2, 2]}, "cardinalities must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        sparse_structure(np.array([[0, 1, 2], [1, 0, 0]]), **settings)


def test_bad_data_are_refused():
    with pytest.raises(ValueError, match="shape"):
        sparse_structure([1.0, -1.0])
    with pytest.raises(ValueError, match="spins"):
        sparse_structure([[1, -1], [2, 1]])
    with pytest.raises(ValueError, match="spins"):
        sparse_structure([[0.5, 1.0], [0.0, 1.0]])


@pytest.mark.slow
def test_a_thousand_observations_of_two_hundred_spins():
    truth = Ising(grid(10, 20), 0.4)
    draws = truth.sample(250, rng=0, method="swendsen_wang", chains=4, burn_in=500, thin=20)
    x = (np.asarray(draws) + 1) // 2
    began = time.process_time()
    model = IsingEstimator(random_state=0).fit(x)
    assert time.process_time() - began < 60  # 12 on a quiet core
    assert pairs(model.edges_) == pairs(grid(10, 20))
    assert model.structure_.certificate.upper < 1e-3
    assert model.certificate_.upper < 1e-6
    assert abs(model.score(x) - truth.log_prob(2 * x - 1).mean()) < 2.0
    assert model.sample(10).shape == (10, 200)
