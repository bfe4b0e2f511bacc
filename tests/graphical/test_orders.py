"""Orders of elimination against elimination on sets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import Structure, elimination_order
from cumulant.graphical.exact import orders, program
from cumulant.graphical.exact.min_fill import min_fill, min_weight
from cumulant.graphical.exact.orders import ORDERS, cost
from cumulant.graphical.exact.program import Program
from cumulant.kernels import InterpretedFirst
from tests.reference.orders import eliminate, fill, weight


def random_structure(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 90))
    scopes = [rng.permutation(n)[: rng.integers(0, min(4, n) + 1)].tolist() for _ in range(int(rng.integers(1, 2 * n)))]
    return Structure(rng.integers(2, 5, n), scopes), scopes


def test_plans_are_the_same_whether_interpreted_or_compiled(monkeypatch):
    found = []
    for seconds in (np.inf, -1.0):
        for module, name in ((orders, "_greedy_order"), (program, "_build_steps")):
            planner = InterpretedFirst(getattr(module, name).compiled)
            planner._left = seconds
            monkeypatch.setattr(module, name, planner)
        monkeypatch.setattr(orders, "_FEW", 100)
        plans = []
        for seed in range(12):
            structure, _ = random_structure(seed)
            for kind in ("min-fill", "min-weight"):
                order = elimination_order(structure, kind, restarts=1)
                plans.append([order.order, order.entries, *Program.of(structure, order.order).layout])
        found.append(plans)
    for interpreted, compiled in zip(*found, strict=True):
        for one, other in zip(interpreted, compiled, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ORDERS)
def test_every_kind_is_an_order_and_its_cost_is_that_of_its_cliques(kind):
    for seed in range(12):
        structure, scopes = random_structure(seed)
        found = elimination_order(structure, kind)
        n = structure.n_variables
        assert sorted(found.order) == list(range(n))
        sizes = structure.cardinalities
        cliques = [weight(beside, v, sizes) for v, _, beside in eliminate(n, scopes, found.order)]
        assert_allclose(found.entries, sum(cliques), rtol=1e-9)
        assert_allclose(2.0**found.log2_largest, max(cliques), rtol=1e-9)


def test_each_choice_of_min_fill_and_min_weight_is_a_smallest():
    for seed in range(12):
        structure, scopes = random_structure(seed)
        n, sizes = structure.n_variables, structure.cardinalities
        for v, left, beside in eliminate(n, scopes, elimination_order(structure, "min-fill", restarts=0).order):
            assert fill(beside, v) == min(fill(beside, u) for u in left)
        for v, left, beside in eliminate(n, scopes, elimination_order(structure, "min-weight", restarts=0).order):
            assert weight(beside, v, sizes) <= min(weight(beside, u, sizes) for u in left) * (1 + 1e-9)
        first = next(beside for _, _, beside in eliminate(n, scopes, range(n)))
        for v, left, beside in eliminate(n, scopes, [v for v, _ in min_fill([set(each) for each in first])]):
            assert fill(beside, v) == min(fill(beside, u) for u in left)
        logs = np.log2(sizes).tolist()
        order = min_weight([set(each) for each in first], logs)
        for v, left, beside in eliminate(n, scopes, order):
            assert weight(beside, v, sizes) <= min(weight(beside, u, sizes) for u in left) * (1 + 1e-9)
        part = min_weight([set(each) for each in first], logs, limit=4.0)
        assert part == order[: len(part)]


def test_the_cost_stops_at_a_limit():
    structure, _ = random_structure(3)
    order = np.arange(structure.n_variables)
    assert cost(structure, order, 1.0)[0] == np.inf
    assert cost(structure, order)[0] < np.inf


def test_more_restarts_are_never_worse():
    for seed in range(6):
        structure, _ = random_structure(seed)
        few, many = (elimination_order(structure, "min-fill", restarts=k).entries for k in (0, 10))
        assert many <= few
    with pytest.raises(ValueError, match="restarts must not be negative"):
        elimination_order(structure, restarts=-1)
