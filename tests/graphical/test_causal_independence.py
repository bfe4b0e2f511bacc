"""Causal factors against their dense tables, which are written out by a loop over all noise."""

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import CausalFactorGraph, CausalIndependence, FactorGraph, noisy_or

OPERATIONS = {
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "max": max,
    "sum": lambda a, b: a + b,
}


def random_case(operation, seed):
    rng = np.random.default_rng(seed)
    states = 2 if operation in ("or", "and", "xor") else 4
    sizes = [*rng.integers(2, 4, 4).tolist(), states]
    noise = [rng.dirichlet(np.ones(states), size=size) for size in sizes[:4]]
    leak = rng.dirichlet(np.ones(states)) if seed % 2 else None
    factors = [((i,), rng.normal(size=sizes[i])) for i in range(4)] + [((0, 4), rng.normal(size=(sizes[0], states)))]
    return sizes, factors, CausalIndependence(operation, 4, [2, 0, 3, 1], [noise[i] for i in (2, 0, 3, 1)], leak)


def dense(sizes, causal):
    """``p(effect | causes)`` as one table, by a loop over causes and noise."""
    states = sizes[causal.effect]
    table = np.zeros([*(sizes[c] for c in causal.causes), states])
    n = len(causal.causes)
    leak = [1.0] if causal.leak is None else causal.leak
    for x in itertools.product(*(range(sizes[c]) for c in causal.causes)):
        for z in itertools.product(range(states), repeat=n):
            p = np.prod([causal.noise[k][x[k], z[k]] for k in range(n)])
            for extra, share in enumerate(leak):
                parts = z if causal.leak is None else (*z, extra)
                result = min(functools.reduce(OPERATIONS[causal.operation], parts), states - 1)
                table[(*x, result)] += p * share
    return table


@pytest.mark.parametrize("operation", OPERATIONS)
def test_chains_are_the_dense_table(operation):
    for seed in range(4):
        sizes, factors, causal = random_case(operation, seed)
        model = CausalFactorGraph(sizes, factors, [causal])
        table = dense(sizes, causal)
        assert_allclose(table.sum(axis=-1), 1.0)
        full = FactorGraph(sizes, [*factors, ((*causal.causes, causal.effect), np.log(table))])
        assert model.n_variables == 5
        assert_allclose(model.log_partition(), full.log_partition(), rtol=1e-12)
        for one, other in zip(model.marginals(), full.marginals(), strict=True):
            assert_allclose(one, other, atol=1e-12)
        given = {4: 1, 0: 0}
        for one, other in zip(model.given(given).marginals(), full.given(given).marginals(), strict=True):
            assert_allclose(one, other, atol=1e-12)
        assert_allclose(model.entropy(), full.entropy(), atol=1e-11)
        assert_allclose(model.given(given).entropy(), full.given(given).entropy(), atol=1e-11)
        flat = FactorGraph(sizes, [])
        assert_allclose([model.kl(flat), flat.kl(model)], [full.kl(flat), flat.kl(full)], atol=1e-11)
        x = full.sample(20, rng=seed)
        assert_allclose(model.log_prob(x), full.log_prob(x), atol=1e-11)
        assert_allclose(model.map()[1], full.map()[1], atol=1e-11)
        assert np.array_equal(model.map()[0], full.map()[0])


def test_xor_of_many_fair_causes_and_one_biased():
    n = 300
    factors = [((i,), np.log([0.7, 0.3])) for i in range(n)]
    model = CausalFactorGraph([2] * (n + 1), factors, [CausalIndependence("xor", n, range(n))])
    assert_allclose(model.marginals()[n][1], (1 - 0.4**n) / 2)
    few = CausalFactorGraph([2] * 6, factors[:5], [CausalIndependence("xor", 5, range(5))])
    assert_allclose(few.marginals()[5][1], (1 - 0.4**5) / 2)


def test_chains_of_draws_are_of_the_visible_variables():
    noise = [[[0.9, 0.1], [0.2, 0.8]]] * 3
    model = CausalFactorGraph([2] * 4, [((0,), [0.0, 0.7])], [CausalIndependence("xor", 3, range(3), noise)])
    draws = model.sample(500, rng=0, method="random", chains=4, burn_in=50)
    assert draws.values.shape == (4, 500, 4)
    error = draws.mean() - np.array(model.marginals())[:, 1]
    assert (np.abs(error) < 4.5 * draws.standard_error()).all()


def test_draws_files_and_refusals(tmp_path):
    model = CausalFactorGraph([2, 2, 2], [((0,), [0.0, 0.5])], [noisy_or(2, [0, 1], [0.8, 0.3], leak=0.05)])
    draws = model.sample(20_000, rng=0)
    assert draws.shape == (20_000, 3)
    p = model.marginals()[2][1]
    assert abs(draws[:, 2].mean() - p) < 4.5 * np.sqrt(p * (1 - p) / 20_000)
    again = CausalFactorGraph.load(model.given({2: 1}).save(tmp_path / "model"))
    assert again == model.given({2: 1})
    assert_allclose(again.marginals(), model.given({2: 1}).marginals())
    with pytest.raises(ValueError, match="effect and causes"):
        noisy_or(2, [0, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="one probability for each"):
        noisy_or(2, [0, 1], [0.1, 1.2])
    with pytest.raises(ValueError, match="must have 2 states"):
        CausalFactorGraph([2, 3], [], [CausalIndependence("or", 1, [0])])
    with pytest.raises(ValueError, match="variables from 0 to 1"):
        CausalFactorGraph([2, 2], [], [CausalIndependence("or", 1, [5])])
    with pytest.raises(ValueError, match="summing to one"):
        CausalFactorGraph([2, 2], [], [CausalIndependence("or", 1, [0], [[[0.5, 0.1], [0, 1]]])])
