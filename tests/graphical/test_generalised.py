"""Generalised belief propagation: the stationary points of the double loop, junction trees, plain numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NotConvergedError
from cumulant.graphical import FactorGraph, Ising, PairwiseMRF, grid
from cumulant.graphical.messages.bethe import region_free_energy
from cumulant.graphical.messages.double_loop import double_loop
from cumulant.graphical.messages.generalised import generalised_belief_propagation
from cumulant.graphical.messages.methods import approximate
from cumulant.graphical.messages.region_graph import Region, RegionGraph, plaquettes
from tests.graphical.smokers import smokers
from tests.graphical.test_mean_field import glass
from tests.reference.generalised import generalised_sweeps


def test_fixed_points_are_those_of_the_double_loop():
    ferromagnet = Ising(grid(3, 4), 0.6, 0.1)
    for model, rows, columns in ((glass(0, grid(3, 3)), 3, 3), (ferromagnet, 3, 4), (glass(1, grid(4, 4)), 4, 4)):
        graph = RegionGraph.of(model, plaquettes(rows, columns))
        found = generalised_belief_propagation(model, graph, tol=1e-12)
        slow = double_loop(model, graph, tol=1e-11, inner_tol=1e-12, inner_sweeps=200, max_loops=3000)
        assert found.converged
        assert slow.converged
        assert len(found.trace) < len(slow.trace)  # sweeps against outer loops, each of many sweeps
        assert_allclose(found.log_partition, slow.log_partition, atol=1e-8)
        assert_allclose(found.marginals, slow.marginals, atol=1e-8)
        assert_allclose(found.beliefs, slow.beliefs, atol=1e-8)
        assert found.certificate is None


def test_a_few_sweeps_in_plain_numbers():
    rng = np.random.default_rng(4)
    sizes, edges = [2, 3, 2, 2, 2, 3], grid(2, 3)
    tables = [rng.normal(size=(sizes[i], sizes[j])) for i, j in edges]
    model = PairwiseMRF([rng.normal(size=k) for k in sizes], edges, tables)
    graph = RegionGraph.of(model, [(0, 1, 3, 4), (1, 2, 4, 5), (0, 1, 2)])
    outer = [tuple(sorted(r.variables)) for r in graph.outer]
    inner = [tuple(sorted(r.variables)) for r in graph.inner]
    homes, scores = {}, [np.zeros([sizes[v] for v in region]) for region in outer]
    for f, (scope, table) in enumerate(model.factors):
        homes[f] = next(r for r, region in enumerate(outer) if set(scope) <= set(region))
        shape = [sizes[v] if v in scope else 1 for v in outer[homes[f]]]
        scores[homes[f]] += table.transpose(np.argsort(scope)).reshape(shape)
    found = generalised_belief_propagation(model, graph, damping=0.3, max_sweeps=3, tol=0.0)
    beliefs = generalised_sweeps(sizes, outer, inner, graph.counting, [np.exp(s) for s in scores], 0.3, 3)
    for f, (scope, _) in enumerate(model.factors):
        region = outer[homes[f]]
        kept = beliefs[homes[f]].sum(axis=tuple(a for a, v in enumerate(region) if v not in scope))
        assert_allclose(
            model.structure.table(f, found.beliefs), kept.transpose(np.argsort(np.argsort(scope))), atol=1e-12
        )
    # at the fixed point the estimate is minus the free energy of the beliefs
    settled = generalised_belief_propagation(model, graph, tol=1e-13)
    last = generalised_sweeps(sizes, outer, inner, graph.counting, [np.exp(s) for s in scores], 0.5, len(settled.trace))
    assert_allclose(settled.log_partition, -region_free_energy(model, graph, last), atol=1e-10)


def test_exact_on_junction_trees_and_as_belief_propagation_on_pairs():
    rng = np.random.default_rng(0)
    ladder = Ising(grid(2, 5), rng.normal(size=13), rng.normal(size=10)).given({3: 1})
    found = generalised_belief_propagation(ladder, RegionGraph.of(ladder, plaquettes(2, 5)), tol=1e-13)
    assert_allclose(found.log_partition, ladder.log_partition(), atol=1e-10)
    assert_allclose(found.marginals, ladder.marginals(), atol=1e-10)
    whole = FactorGraph([2, 3, 2], [((0, 1), rng.normal(size=(2, 3))), ((2, 1), rng.normal(size=(2, 3))), ((), 0.7)])
    found = generalised_belief_propagation(whole, RegionGraph.of(whole, [(0, 1, 2)]))
    assert_allclose(found.log_partition, whole.log_partition(), atol=1e-10)
    # gates and deterministic ORs: impossible states
    network = smokers()
    found = generalised_belief_propagation(network, RegionGraph.bethe(network), damping=0.0)
    assert_allclose(found.log_partition, -5.2313125374, atol=1e-9)
    assert_allclose([p[1] for p in found.marginals[:3]], [0.879932, 0.633258, 0.569945], atol=1e-6)


def test_what_does_not_settle_says_so():
    model = glass(0, grid(4, 4))
    graph = RegionGraph.of(model, plaquettes(4, 4))
    found = generalised_belief_propagation(model, graph, damping=0.0, max_sweeps=100)
    assert not found.converged
    assert "NOT converged" in str(found)
    with pytest.raises(NotConvergedError, match="method='double_loop' with the same regions"):
        approximate(model, "generalised", {"regions": graph, "damping": 0.0, "max_sweeps": 100})
    assert len(approximate(model, "generalised", {"regions": graph})[1]) == 16
    for wrong in ({"damping": 1.0}, {"max_sweeps": 0}, {"tol": np.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            generalised_belief_propagation(model, graph, **wrong)
    with pytest.raises(ValueError, match="regions must be a RegionGraph"):
        generalised_belief_propagation(model, plaquettes(4, 4))
    pair = Ising([(0, 1)], 0.3)
    one, two = Region(frozenset([0]), frozenset()), Region(frozenset([1]), frozenset())
    split = RegionGraph(RegionGraph.of(pair, [(0, 1)]).outer, (one, one, two), (-1, 1, 0))  # counts all once, oddly
    with pytest.raises(ValueError, match="messages need a positive sum of them: use double_loop"):
        generalised_belief_propagation(pair, split)
    impossible = FactorGraph([2], [((0,), [-np.inf, 0.0]), ((0,), [0.0, -np.inf])])
    with pytest.raises(DomainError, match="impossible"):
        generalised_belief_propagation(impossible, RegionGraph.bethe(impossible))
