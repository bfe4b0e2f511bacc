"""The double loop and region graphs: monotone, exact where regions make a junction tree, published values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.graphical import FactorGraph, Ising, complete, grid
from cumulant.graphical.messages.bethe import bethe_free_energy, region_free_energy
from cumulant.graphical.messages.double_loop import double_loop
from cumulant.graphical.messages.generalised import generalised_belief_propagation
from cumulant.graphical.messages.loopy import belief_propagation
from cumulant.graphical.messages.region_graph import RegionGraph, plaquettes
from tests.graphical.smokers import smokers
from tests.graphical.test_mean_field import SQUARE, glass
from tests.reference.messages import bethe_value, double_loop_value


def test_published_descent_on_the_smokers():
    found = double_loop(smokers(), max_loops=200, tol=1e-10)
    assert_allclose(found.trace[:4], [5.776833, 5.428433, 5.321747, 5.280720], atol=1e-6)
    assert found.converged
    assert_allclose(found.log_partition, -5.2313125374, atol=1e-8)
    assert_allclose([p[1] for p in found.marginals[:3]], [0.879932, 0.633258, 0.569945], atol=1e-5)
    # with inner loops that run to consistency the free energy cannot rise
    found = double_loop(smokers(), max_loops=80, tol=0.0, inner_sweeps=1000, inner_tol=1e-14)
    assert (np.diff(found.trace) <= 1e-12).all()


def test_agrees_with_belief_propagation_and_never_rises():
    for model in (SQUARE, glass(1, grid(4, 4)).given({3: -1})):
        found, messages = double_loop(model, tol=1e-10), belief_propagation(model)
        assert_allclose(found.log_partition, messages.log_partition, atol=1e-7)
        assert_allclose(found.marginals, messages.marginals, atol=1e-5)
        assert (np.diff(found.trace) <= 1e-10).all()
        assert found.certificate is None
    # where messages do not settle it does, at beliefs that agree with one another
    model = glass(0, complete(26))
    assert not belief_propagation(model, damping=0.5, max_sweeps=200).converged
    found = double_loop(model)
    assert found.converged
    assert (np.diff(found.trace) <= 1e-9).all()
    tables = [model.structure.table(f, found.beliefs) for f in range(model.structure.n_factors)]
    factors = model.factors
    assert_allclose(found.log_partition, bethe_value([2] * 26, factors, found.marginals, tables), atol=1e-6)
    for (scope, _), table in zip(factors, tables, strict=True):
        if len(scope) == 2:
            assert_allclose(table.sum(axis=1), found.marginals[scope[0]], atol=1e-7)
            assert_allclose(table.sum(axis=0), found.marginals[scope[1]], atol=1e-7)


def test_against_plain_numbers():
    rng = np.random.default_rng(3)
    for scopes in ([(0, 1), (1, 2), (2, 0), (0,)], [(0, 1, 2), (2, 3), (3, 0), (1, 3)]):
        n = 1 + max(max(scope) for scope in scopes)
        sizes = [2, 3, 2, 2][:n]
        factors = [(scope, rng.normal(size=[sizes[v] for v in scope])) for scope in scopes]
        found = double_loop(FactorGraph(sizes, factors), max_loops=4, inner_sweeps=3, inner_tol=0.0, tol=0.0)
        expected = [double_loop_value(factors, sizes, loops, 3) for loops in range(1, 5)]
        assert_allclose(found.trace, expected, atol=1e-10)


def test_counting_numbers():
    network = smokers()
    degrees = np.bincount(network.structure.scopes, minlength=13)
    graph = RegionGraph.bethe(network)
    assert graph.counting == tuple(1 - degrees)
    model = Ising(grid(4, 5), 0.3)
    graph = RegionGraph.of(model, plaquettes(4, 5))
    numbers = dict(zip((tuple(sorted(r.variables)) for r in graph.inner), graph.counting, strict=True))
    assert len(graph.outer) == 12
    assert {len(r) for r in numbers} == {1, 2}
    # edges inside lie in two squares, corners inside in four squares and four edges: 1 - 4 + 4
    assert all(c == (-1 if len(r) == 2 else 1) for r, c in numbers.items())
    with pytest.raises(ValueError, match="each factor must lie in a cluster"):
        RegionGraph.of(model, plaquettes(4, 5)[:-1])
    with pytest.raises(ValueError, match="clusters must hold variables"):
        RegionGraph.of(model, [(0, 99)])


def test_exact_on_junction_trees():
    rng = np.random.default_rng(0)
    ladder = Ising(grid(2, 5), rng.normal(size=13), rng.normal(size=10))
    found = double_loop(ladder, RegionGraph.of(ladder, plaquettes(2, 5)), tol=1e-11, max_loops=3000)
    assert found.converged
    assert_allclose(found.log_partition, ladder.log_partition(), atol=1e-7)
    assert_allclose(found.marginals, ladder.marginals(), atol=1e-5)
    whole = FactorGraph([2, 3, 2], [((0, 1), rng.normal(size=(2, 3))), ((2, 1), rng.normal(size=(2, 3))), ((), 0.7)])
    found = double_loop(whole, RegionGraph.of(whole, [(0, 1, 2)]))
    assert_allclose(found.log_partition, whole.log_partition(), atol=1e-10)
    assert_allclose(found.beliefs, np.concatenate([b.ravel() for b in whole.beliefs()]), atol=1e-10)


def test_a_variable_without_factors_has_equal_probabilities():
    model = FactorGraph([2, 3, 2], [((0, 2), [[0.0, 1.0], [2.0, 0.0]])])
    for found in (double_loop(model), generalised_belief_propagation(model, RegionGraph.bethe(model))):
        assert_allclose(found.log_partition, model.log_partition(), rtol=1e-12)
        assert_allclose(found.marginals[1], 1 / 3)


def test_squares_of_a_grid():
    model = glass(0, grid(4, 4))
    graph = RegionGraph.of(model, plaquettes(4, 4))
    found = double_loop(model, graph, tol=1e-9)
    exact = model.log_partition()
    assert (np.diff(found.trace) <= 1e-10).all()
    assert abs(found.log_partition - exact) < 0.1 * abs(belief_propagation(model).log_partition - exact)
    # the value is sum c_R (U_R - H_R), and the free energy of exact marginals is close to the truth
    exact_tables = [marginal_of(model, sorted(region.variables)) for region in graph.outer]
    assert_allclose(-region_free_energy(model, graph, exact_tables), exact, atol=0.05)
    single, pairs = model.marginals(method="loopy"), model.beliefs(method="loopy")
    bethe = belief_propagation(model)
    assert_allclose(-bethe_free_energy(model, single, pairs), bethe.log_partition, atol=1e-8)
    with pytest.raises(ValueError, match="must be a distribution"):
        bethe_free_energy(model, single, [2.0 * table for table in pairs])


def marginal_of(model, variables):
    """The exact table of four spins, by clamping them."""
    logs = np.zeros((2,) * len(variables))
    for x in np.ndindex(*logs.shape):
        logs[x] = model.given({v: 2 * s - 1 for v, s in zip(variables, x, strict=True)}).log_partition()
    return np.exp(logs - model.log_partition())


def test_refusals():
    with pytest.raises(DomainError, match="impossible"):
        double_loop(FactorGraph([2], [((0,), [-np.inf, 0.0]), ((0,), [0.0, -np.inf])]))
    with pytest.raises(ValueError, match="max_loops"):
        double_loop(SQUARE, max_loops=0)
    with pytest.raises(ValueError, match="inner_tol"):
        double_loop(SQUARE, inner_tol=-1.0)
