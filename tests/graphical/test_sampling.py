"""Samplers of discrete models: one sweep of each has the transition matrix that enumeration gives, and that matrix
leaves the model as it is.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from cumulant.errors import DomainError, NotConvergedError
from cumulant.graphical import FactorGraph, Ising, Potts, grid, torus
from cumulant.graphical.exact.lattices import torus_log_partition
from cumulant.graphical.samplers.blocked import acyclic_blocks
from cumulant.graphical.samplers.colouring import Neighbours, colouring
from cumulant.graphical.samplers.coupling import ferromagnetic_signs
from cumulant.graphical.samplers.gibbs import random_scan
from tests.graphical.models import distribution, joint
from tests.reference import gibbs as reference

RNG = np.random.default_rng(11)
CYCLE = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
SPINS = Ising(CYCLE, np.array([0.5, -0.7, 0.4, 0.6, 0.3]), np.array([0.3, 0.0, -0.2, 0.0]))
COLOURS = Potts(CYCLE[:4], np.array([0.5, 0.7, 0.0, 0.6]), RNG.normal(size=(4, 2)) * 0.5)
PLAIN = Potts(CYCLE[:4], 0.6, n_states=3)
TABLES = FactorGraph(
    [2, 3, 2, 2, 2],
    [
        ((0, 1, 2), RNG.normal(size=(2, 3, 2))),
        ((3, 1), RNG.normal(size=(2, 3))),
        ((1, 3), RNG.normal(size=(3, 2))),
        ((2, 3), RNG.normal(size=(2, 2))),
        ((4,), [0.0, 0.5]),
        ((), 1.0),
    ],
)


def probabilities(model):
    return distribution(joint(model.cardinalities.tolist(), model.factors, model._evidence))[1]


def sweep_matrix(model, method):
    """The transition matrix of one sweep over all states of the model, by enumeration."""
    p, n = probabilities(model), model.n_variables
    if method == "systematic":
        return reference.systematic(p, [(v,) for v in range(n)])
    if method == "random":
        return reference.random_scan(p, range(n))
    if method == "chromatic":
        colours = colouring(n, model.structure.edges)
        return reference.systematic(p, [np.flatnonzero(colours == c).tolist() for c in range(colours.max() + 1)])
    if method == "blocked":
        return reference.systematic(p, [block.tolist() for block in acyclic_blocks(model.structure)])
    if isinstance(model, Ising):
        return reference.ising_clusters(n, model.edges, model.couplings, model.fields, method == "wolff")
    fields = model.fields.reshape(n, -1)
    return reference.potts_clusters(n, fields.shape[1], model.edges, model.couplings, fields, method == "wolff")


def assert_drawn_from(found, p, shape):
    """Pearson's test of states (draws, variables) against their probabilities, at one in ten thousand."""
    counts = np.bincount(np.ravel_multi_index(tuple(found.T), shape), minlength=p.size)
    expected = p * len(found)
    assert counts[p < 1e-12].sum() == 0
    rare = expected < 5
    pooled = np.append(expected[~rare], expected[rare].sum()), np.append(counts[~rare], counts[rare].sum())
    there = pooled[0] > 1e-9
    statistic = ((pooled[1] - pooled[0])[there] ** 2 / pooled[0][there]).sum()
    assert statistic < chi2.ppf(1 - 1e-4, max(there.sum() - 1, 1))


SWEEPS = [
    *((SPINS, method) for method in ("systematic", "random", "chromatic", "blocked", "swendsen_wang", "wolff")),
    (COLOURS, "swendsen_wang"),
    (PLAIN, "wolff"),
    *((TABLES, method) for method in ("systematic", "random", "chromatic", "blocked")),
]


@pytest.mark.parametrize(
    ("model", "method"), SWEEPS, ids=lambda each: each if isinstance(each, str) else type(each).__name__
)
def test_a_sweep_has_the_transition_matrix_of_its_definition_and_leaves_the_model_as_it_is(model, method):
    matrix, p = sweep_matrix(model, method), probabilities(model).ravel()
    assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(p @ matrix, p, atol=1e-12)
    if method in ("random", "swendsen_wang", "wolff"):
        assert_allclose(p[:, None] * matrix, (p[:, None] * matrix).T, atol=1e-12)  # reversible
    shape = tuple(model.cardinalities.tolist())
    for start in (3, 14):
        x = model.family.values(np.array(np.unravel_index(start, shape)))
        draws = model.sample(1, rng=start, method=method, chains=4000, burn_in=0, start=x)
        assert_drawn_from(model.family.states(draws.flat), matrix[start], shape)


def test_random_scan_has_its_transition_matrix():
    graph, spins = Neighbours.of(4, SPINS.edges), np.tile(np.array([1, -1, 1, -1], np.int8), (20000, 1))
    random_scan(spins, graph, SPINS.couplings, SPINS.fields, 3, seed=5)
    one = sum(reference.block_update(probabilities(SPINS), (v,)) for v in range(4)) / 4
    assert_drawn_from((spins + 1) // 2, np.linalg.matrix_power(one, 3)[0b1010], (2, 2, 2, 2))
    again = np.tile(np.array([1, -1, 1, -1], np.int8), (20000, 1))
    for step in range(3):
        random_scan(again, graph, SPINS.couplings, SPINS.fields, 1, seed=5, first_step=step, n_jobs=1 + step % 2)
    assert (again == spins).all()


@pytest.mark.parametrize("method", ["systematic", "random", "blocked", "swendsen_wang", "wolff"])
def test_the_draws_do_not_depend_on_threads_or_on_the_number_of_chains(method):
    # Twenty chains run in vector lanes of sixteen where there are lanes, three one by one.
    many = SPINS.sample(5, rng=1, method=method, chains=20, burn_in=3, thin=2, n_jobs=2).values
    assert (SPINS.sample(5, rng=1, method=method, chains=20, burn_in=3, thin=2, n_jobs=1).values == many).all()
    assert (SPINS.sample(5, rng=1, method=method, chains=3, burn_in=3, thin=2, n_jobs=1).values == many[:3]).all()
    longer = SPINS.sample(13, rng=1, method=method, chains=3, burn_in=0).values
    assert (longer[:, 4::2] == many[:3]).all()
    assert (SPINS.sample(5, rng=2, method=method, chains=20, burn_in=3, thin=2).values != many).any()


@pytest.mark.parametrize("method", ["systematic", "blocked", "wolff", "perfect"])
def test_evidence_is_kept_and_conditioned_on(method):
    model = Ising(CYCLE, np.abs(SPINS.couplings), SPINS.fields).given({2: -1})
    options = {} if method == "perfect" else {"chains": 2000, "burn_in": 60}
    found = np.asarray(model.sample(4000 if method == "perfect" else 1, rng=0, method=method, **options))
    assert (found[:, 2] == -1).all()
    assert_drawn_from((found + 1) // 2, probabilities(model).ravel(), (2, 2, 2, 2))


def test_perfect_draws_are_from_the_model():
    square = Ising(CYCLE[:4], -0.6, [0.3, -0.2, 0.0, 0.5])  # an antiferromagnet without frustration
    found = square.sample(20000, rng=3, method="perfect", n_jobs=2)
    assert_drawn_from((found + 1) // 2, probabilities(square).ravel(), (2, 2, 2, 2))
    assert (square.sample(100, rng=3, method="perfect", n_jobs=1) == found[:100]).all()
    signs = ferromagnetic_signs(4, CYCLE[:4], np.array([1.0, -1.0, 1.0, -1.0]))
    assert (signs[CYCLE[:4, 0]] * signs[CYCLE[:4, 1]] * [1, -1, 1, -1] > 0).all()
    with pytest.raises(DomainError, match="frustration"):
        Ising([(0, 1), (1, 2), (2, 0)], -1.0).sample(1, method="perfect")
    with pytest.raises(NotConvergedError, match="max_sweeps"):
        Ising(CYCLE, 3.0).sample(1, rng=0, method="perfect", max_sweeps=2)


def test_multi_spin_has_the_conditional_probabilities_and_the_energy_of_the_torus():
    coupling, edges = 0.4, torus(4, 128)
    model = Ising(edges, coupling)
    start = np.where(np.random.default_rng(0).random(512) < 0.6, 1, -1)
    draws = model.sample(1, rng=1, method="multi_spin", chains=400, burn_in=0, start=start)
    assert draws.settings["bias"] < 2**-24
    table = start.reshape(4, 128)
    total = sum(np.roll(table, shift, axis) for axis in (0, 1) for shift in (1, -1))
    rows, columns = np.indices((4, 128))
    first = (rows + columns) % 2 == 0  # the colour that is updated first sees the start
    up = draws.flat.reshape(400, 4, 128) == 1
    for k in (-4, -2, 0, 2, 4):
        some = up[:, first & (total == k)]
        p = 1 / (1 + np.exp(-2 * coupling * k))
        assert abs(some.mean() - p) < 4.5 * np.sqrt(p * (1 - p) / some.size)
    assert np.unique(draws.flat, axis=0).shape[0] == 400

    def energy(x):
        return (x[:, edges[:, 0]] * x[:, edges[:, 1]]).mean(axis=1, dtype=float)

    longer = model.sample(500, rng=2, method="multi_spin", chains=4, burn_in=200, thin=2)
    step = 1e-5
    exact = (torus_log_partition(4, 128, coupling + step) - torus_log_partition(4, 128, coupling - step)) / (
        2048 * step
    )
    assert abs(longer.mean(energy) - exact) < 4 * longer.standard_error(energy)
    for wrong in (Ising(edges, coupling, 0.1 * np.ones(512)), Ising(grid(4, 128), coupling), Ising(edges, 2.0)):
        with pytest.raises(DomainError):
            wrong.sample(1, method="multi_spin")


@pytest.mark.slow
def test_the_large_torus_has_onsagers_energy():
    """``<x_i x_j> = coth(2K) / 2 (1 + (2 / pi) (2 tanh(2K)^2 - 1) K1(k))`` for an infinite lattice (Onsager 1944)."""
    from scipy.special import ellipk

    edges = torus(256, 256)
    for K in (0.3, 0.42):
        k = 2 * np.sinh(2 * K) / np.cosh(2 * K) ** 2
        exact = (1 + 2 / np.pi * (2 * np.tanh(2 * K) ** 2 - 1) * ellipk(k**2)) / np.tanh(2 * K) / 2
        model = Ising(edges, K)
        draws = model.sample(200, rng=1, method="multi_spin", chains=4, burn_in=5000, thin=50)

        def energy(x):
            return (x[:, edges[:, 0]] * x[:, edges[:, 1]]).mean(axis=1, dtype=float)

        assert abs(draws.mean(energy) - exact) < 4 * draws.standard_error(energy)


def test_colourings_and_blocks_are_what_they_say():
    rng = np.random.default_rng(2)
    for n, m in ((1, 0), (6, 9), (12, 30)):
        pairs = rng.integers(0, n, (m, 2))
        edges = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        for strategy in ("auto", "dsatur", "greedy"):
            colours = colouring(n, edges, strategy)
            assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
            assert colours.max() <= np.bincount(edges.ravel(), minlength=n).max()
        model = Ising(edges, 1.0, np.zeros(n))
        blocks = acyclic_blocks(model.structure)
        assert sorted(np.concatenate(blocks).tolist()) == list(range(n))
        for block in blocks:
            inside = edges[np.isin(edges, block).all(axis=1)]
            label = reference.components(n, inside.tolist())
            trees = len({label[v] for v in block})
            assert len(inside) == len(block) - trees  # a forest
    assert colouring(16, grid(4, 4)).max() == 1
    with pytest.raises(ValueError, match="strategy"):
        colouring(3, [(0, 1)], "best")


def test_what_cannot_be_sampled_is_refused():
    for options in ({"chains": 0}, {"burn_in": -1}, {"thin": 0}, {"start": [1, 1]}, {"method": "gibbs"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            SPINS.sample(1, **{"method": "systematic", **options})
    with pytest.raises(DomainError, match="impossible"):
        FactorGraph([2], [((0,), [0.0, -np.inf])]).sample(1, method="systematic")
    with pytest.raises(DomainError, match="Ising"):
        TABLES.sample(1, method="wolff")
    with pytest.raises(DomainError, match="negative"):
        Potts([(0, 1)], -1.0, n_states=3).sample(1, method="swendsen_wang")
    with pytest.raises(DomainError, match="fields"):
        COLOURS.sample(1, method="wolff")
    nothing = Ising([(0, 1)], 1.0).given({0: 1, 1: -1}).sample(2, method="systematic", chains=3)
    assert nothing.values.tolist() == [[[1, -1]] * 2] * 3
