"""Belief propagation: exact on trees, and at fixed points of the Bethe free energy elsewhere."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NotConvergedError
from cumulant.graphical import CausalFactorGraph, FactorGraph, Ising, complete, grid, noisy_or, spin_glass
from cumulant.graphical.messages.incidence import Incidence
from cumulant.graphical.messages.loopy import belief_propagation, max_product
from cumulant.graphical.messages.loopy_kernels import propagate
from tests.graphical.models import distribution, joint, marginal, random_model
from tests.graphical.smokers import smokers
from tests.graphical.test_mean_field import SQUARE, glass
from tests.reference.messages import bethe_value, message_pass

SCHEDULES = ("sequential", "parallel", "residual")


def random_tree(seed):
    """A factor graph without cycles: each new factor shares one variable with what is there."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 8)
    scopes = [(0,)]
    fresh = list(range(1, 8))
    while fresh:
        new = [fresh.pop() for _ in range(min(len(fresh), int(rng.integers(1, 4))))]
        old = int(rng.choice([v for scope in scopes for v in scope]))
        scopes.append(tuple(rng.permutation([old, *new]).tolist()))
    scopes += [(3,), (), (5,)]
    factors = []
    for scope in scopes:
        table = rng.normal(size=tuple(sizes[list(scope)])) * 2.0
        if seed % 2 and len(scope) > 1:
            table = np.where(rng.random(table.shape) < 0.1, -np.inf, table)
        factors.append((scope, table))
    return FactorGraph(sizes.tolist(), factors)


def test_exact_on_trees():
    certified = 0
    for seed in range(24):
        model = random_tree(seed)
        scores = joint(model.cardinalities.tolist(), model.factors)
        log_z, p = distribution(scores)
        if p is None:
            continue
        result = belief_propagation(model, schedule=SCHEDULES[seed % 3], tol=1e-14)
        assert result.converged
        assert_allclose(result.log_partition, log_z, rtol=1e-12, atol=1e-12)
        for v, found in enumerate(result.marginals):
            assert_allclose(found, marginal(p, (v,)), atol=1e-12)
        structure, _, free = model.restricted()
        for f in range(structure.n_factors):
            scope = tuple(free[list(structure.scope(f))].tolist())
            assert_allclose(structure.table(f, result.beliefs), marginal(p, scope), atol=1e-12)
        assert abs(result.log_partition - log_z) <= result.certificate.upper < 1e-9
        model.verify(result)
        best = max_product(model, schedule=SCHEDULES[seed % 3])
        assert_allclose(best.score, scores.max(), atol=1e-12)
        assert best.score <= scores.max() + 1e-12
        model.verify(best)
        certified += 1
    assert certified > 16


def test_ties_on_a_tree_are_broken_consistently():
    agree = np.array([[0.0, -5.0], [-5.0, 0.0]])  # all zeros and all ones are equally good
    best = max_product(FactorGraph([2] * 5, [((i, i + 1), agree) for i in range(4)]))
    assert best.score == 0.0
    assert len(set(best.x.tolist())) == 1
    assert str(best).startswith("score 0  (a best state; ")
    assert "a good state without a certificate" in str(max_product(glass(0, grid(3, 3))))


def test_a_sweep_against_products_of_numbers():
    for seed in (1, 4, 8, 11):
        model = random_model(seed)
        structure, theta, _ = model.restricted()
        layout = Incidence.of(structure)
        sizes = structure.cardinalities.tolist()
        factors = [(structure.scope(f), structure.table(f, theta)) for f in range(structure.n_factors)]
        expected = {(f, v): np.full(sizes[v], 1 / sizes[v]) for f, (scope, _) in enumerate(factors) for v in scope}
        messages = np.concatenate([*(np.log(m) for m in expected.values()), np.zeros(0)])
        for _ in range(3):
            expected = message_pass(factors, sizes, expected)
        propagate(messages, theta, False, True, 0.0, 3, 0.0, np.empty(3), tuple(layout))
        assert_allclose(np.exp(messages), np.concatenate([*expected.values(), np.zeros(0)]), atol=1e-12)


def test_fixed_points_are_those_of_the_bethe_free_energy():
    rng = np.random.default_rng(0)
    for _ in range(6):
        scopes = [tuple(rng.permutation(6)[: rng.integers(1, 4)].tolist()) for _ in range(9)]
        factors = [(scope, 0.5 * rng.normal(size=(2,) * len(scope))) for scope in scopes]
        model = FactorGraph([2] * 6, factors)
        found = [belief_propagation(model, schedule=s, damping=0.3, tol=1e-13) for s in SCHEDULES]
        tables = [model.structure.table(f, found[0].beliefs) for f in range(9)]
        assert_allclose(found[0].log_partition, bethe_value([2] * 6, factors, found[0].marginals, tables), atol=1e-9)
        for other in found[1:]:
            assert_allclose(np.array(other.marginals), np.array(found[0].marginals), atol=1e-9)
            assert_allclose(other.log_partition, found[0].log_partition, atol=1e-9)
        for (scope, _), table in zip(factors, tables, strict=True):  # beliefs agree on what they share
            for a, v in enumerate(scope):
                kept = table.sum(axis=tuple(set(range(table.ndim)) - {a}))
                assert_allclose(kept, found[0].marginals[v], atol=1e-9)


def test_reference_values():
    # the four-spin example, the 12 x 12 spin glass and the smokers: independent codes agree on these digits
    square = belief_propagation(SQUARE)
    assert_allclose(square.log_partition, 3.4019748, atol=1e-7)
    assert_allclose(np.diff(square.marginals).ravel(), [0.101246, 0.064218, -0.375318, -0.249077], atol=1e-6)
    assert square.certificate is None
    model = glass(0, grid(12, 12))
    bethe = belief_propagation(model, damping=0.5)
    assert_allclose(bethe.log_partition, 153.537, atol=1e-3)
    assert_allclose(np.abs(np.diff(bethe.marginals - model.marginals())).mean(), 0.024, atol=1e-3)
    network = smokers()
    found = belief_propagation(network)
    assert network.n_variables == 13
    assert len(network.factors) == 19
    assert_allclose(found.log_partition, -5.2313125374, atol=1e-9)
    assert_allclose([p[1] for p in found.marginals[:3]], [0.879932, 0.633258, 0.569945], atol=1e-6)
    assert_allclose(network.log_partition(), -5.196211060, atol=1e-9)
    exact = np.array(network.marginals())[:, 1]
    assert_allclose(exact[3:7], [0.349266, 0.542558, 0.309297, 0.133634], atol=1e-6)
    assert_allclose(exact[:3], [0.855132, 0.613108, 0.579929], atol=1e-6)


@pytest.mark.parametrize(
    ("smokes", "friends", "exact", "bethe"),
    [
        ((1, 0), [(0, 1)], (-3.346425146, 0.838398, 0.554672), (-3.315125118, 0.818116, 0.550878)),
        ((1, 1), [(0, 1)], (-2.960365130, 0.715830, 0.715830), (-3.036978302, 0.750592, 0.750592)),
        ((1, 0), [], (-1.911083692, 0.642509, 0.601947), None),
        ((0, 0), [], (-0.724596569, 0.563444, 0.563444), None),
    ],
)
def test_two_smokers(smokes, friends, exact, bethe):
    """The Bethe value is above the truth, below it, and without friends, on a tree, equal to it."""
    network = smokers(smokes, friends)
    found = belief_propagation(network, damping=0.3, tol=1e-12)
    assert found.converged
    assert_allclose([found.log_partition, *(p[1] for p in found.marginals[:2])], bethe or exact, atol=1e-6)
    assert_allclose([network.log_partition(), *(p[1] for p in network.marginals()[:2])], exact, atol=1e-6)


def test_messages_of_an_or_against_loops_over_states():
    rng = np.random.default_rng(5)
    for m in (1, 3, 10):
        prior = [((i,), np.log(rng.dirichlet([1.0, 1.0]))) for i in range(m + 1)]  # what comes in, the aggregate last
        model = CausalFactorGraph([2] * (m + 1), prior, [noisy_or(m, range(m), [1.0] * m)])
        found = belief_propagation(model, tol=1e-14)
        states = np.array(list(np.ndindex(*[2] * m)))
        top = states.any(axis=1).astype(int)
        weights = np.exp(sum(prior[i][1][states[:, i]] for i in range(m)) + prior[m][1][top])
        assert_allclose(found.log_partition, np.log(weights.sum()), atol=1e-12)
        for i in range(m):
            assert_allclose(found.marginals[i][1], weights[states[:, i] == 1].sum() / weights.sum(), atol=1e-12)
        assert_allclose(found.marginals[m][1], weights[top == 1].sum() / weights.sum(), atol=1e-12)


def test_many_causes_in_linear_time():
    # an OR of 2000 causes, each on with probability 1e-9: 1 - (1 - 1e-9)^2000 without cancellation
    prior = [((i,), np.log([1 - 1e-9, 1e-9])) for i in range(2000)]
    model = CausalFactorGraph([2] * 2001, prior, [noisy_or(2000, range(2000), [1.0] * 2000)])
    found = belief_propagation(model)
    assert len(found.trace) <= 6  # the sequential schedule runs along the chain
    assert_allclose(found.marginals[2000][1], 1.999998001e-6, rtol=1e-9)
    # with cycles: two effects of the same five causes, as chains and as full tables
    rng = np.random.default_rng(1)
    strengths = rng.random((2, 5))
    prior = [((i,), np.log([1 - p, p])) for i, p in enumerate(rng.random(5))]
    chains = CausalFactorGraph([2] * 7, prior, [noisy_or(5 + e, range(5), strengths[e]) for e in range(2)])
    tables = []
    for e in range(2):
        off = np.ones((2,) * 5)
        for x in np.ndindex(*off.shape):
            off[x] = np.prod((1 - strengths[e]) ** np.array(x))
        tables.append(((0, 1, 2, 3, 4, 5 + e), np.stack([off, 1 - off], axis=-1)))
    with np.errstate(divide="ignore"):
        full = FactorGraph([2] * 7, [*prior, *((scope, np.log(t)) for scope, t in tables)])
    seen = {5: 1, 6: 1}
    one, two = belief_propagation(chains.given(seen), tol=1e-12), belief_propagation(full.given(seen), tol=1e-12)
    assert_allclose(one.log_partition, two.log_partition, atol=1e-9)
    assert_allclose(np.array(one.marginals), np.array(two.marginals), atol=1e-9)


def test_the_door_and_refusals():
    model = glass(1, grid(4, 4)).given({0: 1})
    found = belief_propagation(model)
    assert model.log_partition(method="loopy") == found.log_partition
    assert_allclose(model.marginals(method="loopy"), found.marginals)
    again = belief_propagation(model, start=found)
    assert len(again.trace) == 1 < len(found.trace)
    assert_allclose(again.log_partition, found.log_partition, atol=1e-9)
    with pytest.raises(ValueError, match="start must be"):
        belief_propagation(SQUARE, start=found)
    with pytest.raises(NotConvergedError, match="did not converge in 60 sweeps"):
        glass(0, complete(26)).marginals(method="loopy", max_sweeps=60)
    contradiction = FactorGraph(
        [2, 2], [((0, 1), [[-np.inf, 0.0], [0.0, -np.inf]]), ((0, 1), [[0.0, -np.inf], [-np.inf, 0.0]])]
    )
    assert belief_propagation(contradiction).converged  # cycles hide it: an estimate, and no certificate
    with pytest.raises(DomainError, match="impossible"):
        belief_propagation(contradiction.given({0: 0}))
    for wrong in ({"schedule": "random"}, {"damping": 1.0}, {"tol": np.nan}, {"max_sweeps": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            belief_propagation(model, **wrong)
    with pytest.raises(ValueError, match="hidden"):
        max_product(CausalFactorGraph([2] * 3, [], [noisy_or(2, [0, 1], [0.5, 0.5])]))
    huge = Ising([(0, 1), (1, 2)], [2000.0, -3000.0], [1.0, 0.0, 0.0])
    assert_allclose(belief_propagation(huge).log_partition, huge.log_partition(), rtol=1e-12)


@pytest.mark.parametrize(("schedule", "damping"), [("sequential", 0.0), ("parallel", 0.0), ("sequential", 0.4)])
def test_tables_that_hear_nothing_new_are_passed_over(schedule, damping):
    """The answer is a fixed point of complete sweeps, and a slow corner does not cost sweeps over all of the model."""
    rng = np.random.default_rng(0)
    edges = grid(60, 60)
    corner = (edges % 60 < 4).all(axis=1) & (edges // 60 < 4).all(axis=1)
    couplings = np.where(corner, 0.62, 0.05 * rng.normal(size=len(edges)))
    model = Ising(edges, couplings, np.where((np.arange(3600) % 60 < 4) & (np.arange(3600) < 240), 0.002, 0.5))
    how = {"schedule": schedule, "damping": damping}
    found = belief_propagation(model, **how)
    again = belief_propagation(model, start=found, **how)
    assert found.converged
    assert again.trace.size <= 2  # the first sweep is complete
    assert_allclose(again.log_partition, found.log_partition, rtol=1e-13)
    assert_allclose(again.marginals, found.marginals, atol=1e-9)
    assert found.trace.size > 30

    def seconds(sweeps):
        belief_propagation(model, max_sweeps=1, **how)
        start = time.process_time()
        belief_propagation(model, max_sweeps=sweeps, tol=1e-10, **how)
        return time.process_time() - start

    few = min(seconds(3) for _ in range(3))
    many = min(seconds(found.trace.size) for _ in range(3))
    assert many < 0.5 * few * found.trace.size / 3


def test_the_time_of_a_spin_does_not_grow_with_the_lattice():
    """It took twice as long at 600 x 600 as at 300 x 300 before settled tables were passed over."""
    seconds, sweeps = {}, {}
    for side in (40, 120):
        model, times = spin_glass(grid(side, side), couplings=0.45, fields=0.1, rng=0), []
        for _ in range(2 if side == 120 else 6):
            start = time.process_time()
            found = belief_propagation(model)
            times.append(time.process_time() - start)
        assert found.converged
        seconds[side], sweeps[side] = min(times) / side**2, found.trace.size
    assert sweeps[120] > 1.5 * sweeps[40]  # though a larger lattice takes more of them
    assert seconds[120] < 1.5 * seconds[40]


@pytest.mark.parametrize("schedule", ["sequential", "residual"])
def test_where_messages_settled_tables_agree_with_their_variables(schedule):
    settled, rng = 0, np.random.default_rng(0)
    for k in range(60):
        couplings = 10 ** rng.uniform(1, 3) * rng.choice([-1, 1], 6) * rng.uniform(0.5, 1, 6)
        model = Ising(complete(4), couplings, np.abs(couplings).max() * rng.normal(size=4))
        damping = (0.0, 0.5, 0.99)[k % 3]
        found = belief_propagation(model, schedule=schedule, damping=damping, tol=1e-8, max_sweeps=3000)
        if not found.converged:
            continue
        settled += 1
        pairs = np.stack(np.split(found.beliefs, model.structure.table_starts[1:-1])[-6:]).reshape(6, 2, 2)
        for (i, j), table in zip(model.edges, pairs, strict=True):
            assert_allclose(table.sum(axis=1), found.marginals[i], atol=1e-7)
            assert_allclose(table.sum(axis=0), found.marginals[j], atol=1e-7)
    assert settled > 30
