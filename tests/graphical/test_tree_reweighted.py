"""Tree-reweighted bounds: above log Z at every sweep, exact on trees, published values, trees written out."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp

from cumulant.errors import CertificateError, DomainError
from cumulant.graphical import FactorGraph, Ising, PairwiseMRF, Potts, complete, grid
from cumulant.graphical.messages.methods import approximate
from cumulant.graphical.messages.pairwise_tables import PairwiseTables
from cumulant.graphical.messages.spanning_tree_polytope import (
    orientation_of_forest,
    orientation_of_given,
    roots,
    uniform_orientation,
)
from cumulant.graphical.messages.tree_reweighted import tree_reweighted
from cumulant.graphical.messages.tree_reweighted_kernels import propagate
from tests.graphical.models import distribution, joint, marginal
from tests.graphical.test_mean_field import SQUARE, glass
from tests.reference.tree_reweighted import answer, bound_by_trees, orientation, spanning_trees, spins_of_a_grid, spread


def random_pairwise(seed):
    """Up to six variables of one to three states, doubled and turned factors, impossible states, some evidence."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    sizes = rng.integers(1, 4, n)
    factors = [((v,), rng.normal(size=sizes[v])) for v in range(n) if rng.random() < 0.8] + [((), np.array(0.3))]
    scale = rng.choice([0.3, 1.0, 4.0])
    for i, j in itertools.combinations(range(n), 2):
        for _ in range(int(rng.choice([0, 1, 1, 2]))):
            scope = (i, j) if rng.random() < 0.5 else (j, i)
            table = scale * rng.normal(size=sizes[list(scope)])
            if seed % 4 == 0:
                table = np.where(rng.random(table.shape) < 0.15, -np.inf, table)
            factors.append((scope, table))
    evidence = {int(v): int(rng.integers(sizes[v])) for v in range(n) if rng.random() < 0.1}
    return FactorGraph(sizes.tolist(), factors).given(evidence)


def log_partition(model):
    """By the table of all states."""
    scores = np.zeros(tuple(model.cardinalities.tolist()))
    for scope, table in model.factors:
        scores = scores + spread(table.transpose(np.argsort(scope)), sorted(scope), scores.ndim)
    return float(logsumexp(scores[tuple(model.evidence.get(v, slice(None)) for v in range(scores.ndim))]))


def test_above_log_z_at_every_sweep():
    sweeps = better = 0
    for seed in range(200):
        model = random_pairwise(seed)
        truth = log_partition(model)
        try:
            uniform = tree_reweighted(model, "uniform", max_sweeps=60)
        except DomainError:
            assert truth == -np.inf
            continue
        best = tree_reweighted(model, max_trees=4, max_sweeps=60)
        for found in (uniform, best):
            assert found.trace.min() >= truth
            assert found.bound >= truth
            assert found.certificate.slack < 1e-9
            assert (np.diff(found.steps) <= 0).all()
            if seed % 3 == 0:
                model.verify(found)
            assert all(abs(p.sum() - 1.0) < 1e-12 for p in found.marginals)
        assert best.bound <= uniform.bound + (1e-9 if uniform.converged else 1e-2)
        better += best.bound < uniform.bound - 1e-3
        sweeps += uniform.trace.size + best.trace.size
    assert better > 30
    assert sweeps > 10_000


def test_exact_on_trees():
    rng = np.random.default_rng(1)
    edges = [(0, 1), (1, 2), (1, 3), (5, 6), (4, 5)]  # two trees and a variable by itself
    sizes = [2, 3, 2, 1, 3, 2, 2, 3]
    tables = [rng.normal(size=(sizes[i], sizes[j])) * 2.0 for i, j in edges]
    model = PairwiseMRF([rng.normal(size=k) for k in sizes], edges, tables)
    log_z, p = distribution(joint(sizes, model.factors))
    found = tree_reweighted(model, tol=1e-13)
    assert found.converged
    assert log_z <= found.bound <= log_z + 1e-10
    for v in range(8):
        assert_allclose(found.marginals[v], marginal(p, (v,)), atol=1e-12)
    structure, _, free = model.restricted()
    for f in range(structure.n_factors):
        scope = tuple(free[list(structure.scope(f))].tolist())
        assert_allclose(structure.table(f, found.beliefs), marginal(p, scope), atol=1e-12)
    assert_allclose(found.edge_probabilities, 1.0)


def test_the_formula_by_writing_out_all_trees():
    """At random messages, and along sweeps; a sweep against plain numbers."""
    rng = np.random.default_rng(0)
    edges, sizes = [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)], [2, 3, 2, 2]
    fields = [rng.normal(size=k) for k in sizes]
    tables = [rng.normal(size=(sizes[i], sizes[j])) * 2.0 for i, j in edges]
    trees = spanning_trees(4, edges)
    assert len(trees) == 8
    mixture = list(zip(rng.dirichlet(np.ones(8)), trees, strict=True))
    orient = sum(p * orientation_of_forest(4, np.array(edges), np.array(tree)) for p, tree in mixture)
    assert_allclose(orient.reshape(-1, 2), orientation(4, edges, mixture), atol=1e-14)
    model = PairwiseMRF(fields, edges, tables)
    pairs = PairwiseTables.of(*model.restricted()[:2])
    layout = pairs.layout()
    root, rho = roots(4, np.array(edges), orient), orient.reshape(-1, 2).sum(axis=1)
    assert_allclose(root, 0.25)
    messages = {(e, v): rng.normal(size=sizes[v]) for e, edge in enumerate(edges) for v in edge[::-1]}
    flat = np.concatenate([messages[e, v] for e, (i, j) in enumerate(edges) for v in (j, i)])
    bounds = np.empty(3)
    propagate(flat, flat.copy(), pairs.tables, pairs.fields, orient, root, 0.3, 3, 0.0, bounds, layout)
    for sweep in range(3):
        assert_allclose(bounds[sweep], bound_by_trees(4, edges, tables, fields, messages, mixture), atol=1e-9)
        for v in range(4) if sweep % 2 == 0 else range(3, -1, -1):
            for e, edge in enumerate(edges):
                if v in edge:
                    to = edge[0] + edge[1] - v
                    new = answer(e, v, edges, tables, fields, messages, rho)
                    messages[e, to] = 0.7 * (new - new.max()) + 0.3 * messages[e, to]


def test_published_values():
    # the four-spin example, the 12 x 12 spin glasses and the complete graph of 26: independent codes agree on these
    square = tree_reweighted(SQUARE, [0.75] * 4)
    assert_allclose(square.bound, 3.5260174, atol=2e-7)
    means = [0.093257, 0.057446, -0.332435, -0.218331]
    for found in (square, tree_reweighted(SQUARE, "uniform")):
        assert_allclose(np.diff(found.marginals).ravel(), means, atol=1e-6)
    for seed, exact, bound, error in ((0, 153.838123, 166.70, 0.203), (1, 149.5459, 164.33, 0.180)):
        model = glass(seed, grid(12, 12))
        found = tree_reweighted(model, "uniform")
        log_z, means = spins_of_a_grid(model, 12)
        assert_allclose(log_z, exact, atol=2e-5)
        assert found.converged
        assert_allclose(found.bound, bound, atol=6e-3)
        assert_allclose(np.abs(np.diff(found.marginals).ravel() - means).mean(), error, atol=1e-3)
        assert log_z < tree_reweighted(model, max_trees=5).bound < found.bound - 0.5
    for seed in (0, 1):
        assert_allclose(tree_reweighted(glass(seed, complete(26)), "uniform").bound, 162.5 + np.log(2), atol=1e-3)


def test_edge_probabilities():
    """The derivative by them, the best ones on a cycle, and what is no distribution over trees."""
    rng = np.random.default_rng(2)
    triangle = Ising([(0, 1), (0, 2), (1, 2)], [1.0, -0.4, 0.6], rng.normal(size=3))

    def bound(weights):  # of the three trees, each without one of the edges
        return tree_reweighted(triangle, np.clip(1.0 - weights, 1e-6, 1.0)).bound

    at, step = np.array([0.5, 0.3, 0.2]), np.array([1e-3, 0.0, -1e-3])
    slope = (bound(at + step) - bound(at - step)) / 2e-3
    found = tree_reweighted(triangle, 1.0 - at, tol=1e-12)
    information = []
    for table in np.split(found.beliefs[6:], 3):
        p = table.reshape(2, 2)
        information.append(np.sum(p * np.log(p / np.outer(p.sum(axis=1), p.sum(axis=0)))))
    assert_allclose(slope, information[0] - information[2], atol=1e-5)  # the first edge loses what the last one gains
    lowest = minimize(lambda w: bound(np.array([*w, 1.0 - w.sum()])), [0.3, 0.3], method="Nelder-Mead")
    best = tree_reweighted(triangle, gap=1e-4)
    assert best.gap <= 1e-4
    assert lowest.fun - 1e-6 <= best.bound <= lowest.fun + 2e-4
    with pytest.raises(ValueError, match="not those of forests"):
        tree_reweighted(triangle, [1.0, 1.0, 0.5])
    for wrong in ([0.5, 0.5], [0.0, 1.0, 1.0], [1.5, 0.2, 0.2]):
        with pytest.raises(ValueError, match="edge_probabilities must be"):
            tree_reweighted(triangle, wrong)


def test_the_polytope_by_counting():
    edges = complete(4)
    trees = spanning_trees(4, list(map(tuple, edges.tolist())))
    mixture = [(1 / 16, tree) for tree in trees]
    expected = orientation(4, list(map(tuple, edges.tolist())), mixture)
    assert len(trees) == 16
    assert_allclose(uniform_orientation(4, edges).reshape(-1, 2), expected, atol=1e-10)
    rng = np.random.default_rng(0)
    subsets = [s for k in (2, 3, 4) for s in itertools.combinations(range(4), k)]
    inside = 0
    for _ in range(60):
        rho = rng.random(6) * 0.9
        worst = max(
            sum(r for r, (i, j) in zip(rho, edges, strict=True) if {i, j} <= set(s)) - len(s) + 1 for s in subsets
        )
        if worst <= 0:
            orient = orientation_of_given(4, edges, rho)
            assert_allclose(orient.reshape(-1, 2).sum(axis=1), rho, atol=2e-8)
            assert (orient >= 0).all()
            assert (np.bincount(edges.ravel(), orient) <= 1.0).all()
            inside += 1
        else:
            with pytest.raises(ValueError, match="not those of forests"):
                orientation_of_given(4, edges, rho)
    assert 10 < inside < 50


def test_large_components_use_edges_evenly(monkeypatch):
    monkeypatch.setattr("cumulant.graphical.messages.spanning_tree_polytope.DENSE", 10)
    model = glass(0, grid(4, 4))
    found = tree_reweighted(model, "uniform")
    assert log_partition(model) <= found.bound
    model.verify(found)
    assert found.edge_probabilities.min() > 0.3
    assert_allclose(found.edge_probabilities.sum(), 15.0)


def test_the_door_evidence_and_refusals():
    model = Potts(grid(3, 3), 0.8, np.random.default_rng(0).normal(size=(9, 3))).given({4: 2})
    found = tree_reweighted(model, max_trees=3)
    assert log_partition(model) <= found.bound <= log_partition(model) + 0.5
    assert_allclose(found.marginals[4], [0.0, 0.0, 1.0])
    assert 4 not in found.edges
    assert str(found).startswith("log Z <= ")
    value, marginals, beliefs = approximate(model, "tree_reweighted", {"max_trees": 3})
    assert value == found.bound
    assert len(marginals) == 8
    assert_allclose(beliefs, found.beliefs)
    with pytest.raises(CertificateError, match="does not hold"):  # a proof about one model, for another
        Potts(grid(3, 3), 1.6, np.ones((9, 3))).given({4: 2}).verify(found)
    looped = dataclasses.replace(found.proof, trees=(np.arange(len(found.edges)), *found.proof.trees[1:]))
    with pytest.raises(CertificateError, match="cycle"):
        model.verify(dataclasses.replace(found, proof=looped))
    with pytest.raises(ValueError, match="one or two variables"):
        tree_reweighted(FactorGraph([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))]))
    with pytest.raises(DomainError, match="impossible"):
        tree_reweighted(FactorGraph([2], [((0,), [-np.inf, 0.0]), ((0,), [0.0, -np.inf])]))
    for wrong in ({"max_trees": -1}, {"gap": np.nan}, {"max_sweeps": 0}, {"tol": -1.0}, {"damping": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            tree_reweighted(SQUARE, **wrong)
    with pytest.raises(ValueError, match="edge_probabilities must be"):
        tree_reweighted(SQUARE, "best")
    huge = Ising([(0, 1), (1, 2), (0, 2)], [2000.0, -3000.0, 1.0], [1.0, 0.0, 0.0])
    assert 0.0 <= tree_reweighted(huge).bound - log_partition(huge) < 2.0
    nothing = FactorGraph([2, 1], [((0,), [0.5, 0.0])]).given({0: 0})
    assert_allclose(tree_reweighted(nothing).bound, 0.5, atol=1e-12)
