"""Elimination against loops over all states, on hundreds of random models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, TooWide
from cumulant.graphical import FactorGraph, Ising, elimination_order, grid, spin_glass
from cumulant.graphical.exact import passes as engine
from cumulant.graphical.exact.lattices import transfer_matrix
from cumulant.graphical.exact.orders import ORDERS
from tests.graphical.models import distribution, joint, marginal, random_model


def agree(model, **options):
    log_z, p = distribution(joint(model.cardinalities.tolist(), model.factors, model.evidence))
    assert_allclose(model.log_partition(**options), log_z, rtol=1e-12, atol=1e-12)
    if p is None:
        with pytest.raises(DomainError, match="there is no distribution"):
            model.marginals(**options)
        return
    for v, found in enumerate(model.marginals(**options)):
        assert_allclose(found, marginal(p, (v,)), atol=1e-12)
    for (scope, _), found in zip(model.factors, model.beliefs(**options), strict=True):
        assert_allclose(found, marginal(p, scope), atol=1e-12)
    assert_allclose(model.entropy(**options), -np.sum(p[p > 0] * np.log(p[p > 0])), atol=1e-10)


@pytest.mark.parametrize("block", range(10))
def test_log_z_marginals_beliefs_and_entropy_of_random_models(block):
    for seed in range(40 * block, 40 * block + 40):
        agree(random_model(seed))


@pytest.mark.parametrize("order", ["natural", "min-fill", "min-weight", "frontier", "nested-dissection"])
def test_every_order_gives_the_same_answers(order):
    for seed in range(400, 415):
        agree(random_model(seed), order=order)


def test_enumeration_is_the_loop_over_states():
    for seed in range(420, 440):
        agree(random_model(seed), method="enumeration")


def test_evidence_on_random_models():
    rng = np.random.default_rng(0)
    for seed in range(500, 580):
        model = random_model(seed)
        some = rng.permutation(model.n_variables)[: rng.integers(1, model.n_variables + 1)]
        agree(model.given({int(v): int(rng.integers(model.cardinalities[v])) for v in some}))


def test_the_best_state_and_marginal_map():
    rng = np.random.default_rng(1)
    for seed in range(600, 700):
        model = random_model(seed)
        scores = joint(model.cardinalities.tolist(), model.factors)
        if scores.max() == -np.inf:
            with pytest.raises(DomainError):
                model.map()
            continue
        x, score = model.map()
        assert_allclose([score, scores[tuple(x)]], scores.max(), rtol=1e-12, atol=1e-12)
        wanted = sorted(rng.permutation(model.n_variables)[: rng.integers(0, model.n_variables + 1)].tolist())
        summed = tuple(v for v in range(model.n_variables) if v not in wanted)
        with np.errstate(divide="ignore"):
            partial = np.log(np.exp(scores - scores.max()).sum(axis=summed)) + scores.max()
        x, score = model.marginal_map(wanted)
        assert_allclose([score, partial[tuple(x)]], partial.max(), rtol=1e-11, atol=1e-11)


def test_draws_have_the_right_law():
    model = FactorGraph([2, 3, 2], [((0, 1), [[0.0, 1.0, -np.inf], [0.5, -1.0, 0.3]]), ((1, 2), np.eye(3)[:, :2])])
    _, p = distribution(joint([2, 3, 2], model.factors))
    n = 40_000
    draws = model.sample(n, rng=0)
    counts = np.zeros(p.shape)
    np.add.at(counts, tuple(draws.T), 1)
    assert counts[p == 0].sum() == 0
    error = (counts / n - p)[p > 0] / np.sqrt(p * (1 - p) / n)[p > 0]
    assert np.abs(error).max() < 4.5
    assert np.array_equal(draws[:5], model.sample(n, rng=0)[:5])


def test_draws_agree_with_the_evidence():
    model = spin_glass(grid(3, 3), fields=0.3, rng=0).given({4: -1, 0: 1})
    draws = model.sample(500, rng=1)
    assert set(draws[:, 4]) == {-1}
    assert set(draws[:, 0]) == {1}
    error = (draws == 1).mean(axis=0) - model.marginals()[:, 1]
    assert np.abs(error).max() < 4.5 * 0.5 / np.sqrt(500)


@pytest.mark.parametrize("scale", [30.0, 400.0, 3000.0])
def test_tables_whose_products_leave_the_range_of_numbers(scale):
    rng = np.random.default_rng(int(scale))
    for _ in range(5):
        edges = grid(3, 4)
        model = Ising(edges, scale * rng.normal(size=len(edges)), scale * rng.normal(size=12)).to_factor_graph()
        agree(model)


def test_compensating_factors_do_not_vanish():
    # each spin is pulled down by 600 and up again by 600: linear numbers alone would lose all of one side
    n = 6
    factors = [((i,), [600.0, -600.0]) for i in range(n)] + [
        ((i, (i + 1) % n), [[-600.0, 0], [0, 600.0]]) for i in range(n)
    ]
    agree(FactorGraph([2] * n, factors))


@pytest.mark.parametrize(("rows", "columns", "coupling"), [(6, 9, 0.4), (10, 10, 1.0), (11, 8, 4.0)])
def test_grids_against_the_transfer_matrix(rows, columns, coupling):
    model = spin_glass(grid(rows, columns), couplings=coupling, fields=0.5, rng=rows)
    assert_allclose(model.log_partition(), transfer_matrix(model, rows, columns), rtol=1e-12)


def numerical_gradient(model, step=1e-5):
    """Of the transfer matrix, at some parameters."""
    out = {}
    for k in (0, 7, len(model.fields) + 3, len(model.fields) + 11):
        ends = []
        for sign in (1, -1):
            theta = model.theta.copy()
            theta[k] += sign * step
            n = len(model.fields)
            ends.append(transfer_matrix(Ising(model.edges, theta[n:], theta[:n]), 5, 6))
        out[k] = (ends[0] - ends[1]) / (2 * step)
    return out


def test_the_mean_is_the_gradient():
    model = spin_glass(grid(5, 6), couplings=0.7, fields=0.5, rng=3)
    mean = model.mean()
    for k, slope in numerical_gradient(model).items():
        assert_allclose(mean[k], slope, atol=1e-8)


def test_large_tables_on_threads_with_checkpoints(monkeypatch):
    model = spin_glass(grid(9, 10), couplings=0.8, fields=0.4, rng=5)
    log_z, marginals, mean = model.log_partition(), model.marginals(), model.mean()
    whole = 8 * sum(2**10 for _ in range(90))
    monkeypatch.setattr(engine, "_AT_ONCE", 0)
    monkeypatch.setattr(engine, "_THREADS", 2**7)
    for memory in (2**31, whole // 2, whole // 3):
        again = Ising(model.edges, model.couplings, model.fields)
        assert_allclose(again.log_partition(max_memory=memory), log_z, rtol=1e-14)
        assert_allclose(again.marginals(max_memory=memory), marginals, atol=1e-13)
    one = model.marginals(max_memory=whole // 3, n_jobs=1)
    assert np.array_equal(one, model.marginals(max_memory=whole // 3, n_jobs=2))
    assert_allclose(model.mean(order="frontier"), mean, atol=1e-12)
    cold = Ising(model.edges, 60 * model.couplings, 60 * model.fields)  # logarithms
    assert_allclose(cold.log_partition(), transfer_matrix(cold, 9, 10), rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 500.0])
def test_random_models_on_threads_with_checkpoints(monkeypatch, scale):
    monkeypatch.setattr(engine, "_AT_ONCE", 0)
    monkeypatch.setattr(engine, "_THREADS", 4)
    for seed in range(800, 850):
        model = random_model(seed)
        model = FactorGraph(model.cardinalities, [(scope, scale * table) for scope, table in model.factors])
        agree(model)


def test_random_models_in_logarithms():
    for seed in range(900, 950):
        model = random_model(seed)
        agree(FactorGraph(model.cardinalities, [(scope, 500.0 * table) for scope, table in model.factors]))


def test_checkpoints_need_little_more_than_the_partition_function():
    model = spin_glass(grid(20, 20), rng=0)
    cost, everything = model.cost(max_memory=2**28), model.cost(max_memory=2**40)
    assert cost.log2_largest == 21
    assert cost.memory <= 64 * 2**20
    assert cost.memory_marginals <= 2**28 < 2 * 2**28 < everything.memory_marginals <= 2**30


def test_too_wide_is_refused_before_any_work():
    model = spin_glass(grid(40, 40), rng=0)
    with pytest.raises(TooWide, match=r"MiB|GiB"):
        model.log_partition()
    with pytest.raises(TooWide, match=r"max_memory is 0\.977 MiB"):
        spin_glass(grid(20, 20), rng=0).log_partition(max_memory=1_024_000)
    with pytest.raises(TooWide, match="raise max_memory"):
        spin_glass(grid(20, 20), rng=0).marginals(max_memory=2**25)


def test_orders_of_grids():
    for n in (8, 16):
        structure = Ising(grid(n, n), 1.0).structure
        best = elimination_order(structure)
        assert sorted(best.order) == list(range(n * n))
        assert elimination_order(structure, "frontier").log2_largest == n + 1
        for kind in ORDERS:
            other = elimination_order(structure, kind)
            assert sorted(other.order) == list(range(n * n))
            assert best.entries <= other.entries * 1.02  # small models do not try them all
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(256)[grid(16, 16)]
    assert elimination_order(Ising(shuffled, 1.0).structure).log2_largest == 17  # the numbers say nothing here


def test_chains_trees_and_stars_of_thousands_of_variables():
    n = 6000
    rng = np.random.default_rng(0)
    couplings = rng.normal(size=n - 1)
    exact = n * np.log(2) + np.log(np.cosh(couplings)).sum()
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    star = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)], axis=1)
    for edges in (chain, star):
        model = Ising(edges, couplings)
        assert_allclose(model.log_partition(), exact, rtol=1e-12)
        assert_allclose(model.mean()[n:], np.tanh(couplings), atol=1e-9)


def test_a_star_whose_messages_all_point_one_way():
    n = 3000
    edges = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)], axis=1)
    model = Ising(edges, 1.0, np.concatenate([[-0.5], np.full(n - 1, 0.4)]))
    side = [np.log(2 * np.cosh(0.4 + s)) for s in (-1, 1)]  # the sum over a leaf, for each state of the hub
    scores = np.array([0.5 + (n - 1) * side[0], -0.5 + (n - 1) * side[1]])
    assert_allclose(model.log_partition(), np.logaddexp(*scores), rtol=1e-12)
    assert_allclose(model.marginals()[0], np.exp(scores - np.logaddexp(*scores)), atol=1e-12)
