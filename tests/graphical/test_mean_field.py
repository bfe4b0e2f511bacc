"""Mean field, naive and structured, against enumeration and published numbers."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical import FactorGraph, Ising, complete, grid, spin_glass
from cumulant.graphical.messages.mean_field import mean_field
from cumulant.graphical.messages.mean_field_newton import NewtonProblem
from cumulant.graphical.messages.structured_blocks import choose_blocks, induced, within
from cumulant.graphical.messages.structured_mean_field import structured_mean_field
from tests.graphical.models import distribution, joint, random_model
from tests.reference.messages import entropy, mean_field_sweep, mean_field_value

SQUARE = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])


def glass(seed, edges):
    """Fields uniform in [-1, 1], couplings +-1/2; edges in the order of their first node, right before down."""
    rng = np.random.default_rng(seed)
    edges = np.array(sorted(map(tuple, np.asarray(edges).tolist())))
    n = int(edges.max()) + 1
    fields = rng.uniform(-1, 1, n)
    return Ising(edges, rng.choice([-0.5, 0.5], len(edges)), fields)


def test_bounds_never_exceed_the_truth_and_never_fall():
    finite = 0
    for seed in range(120):
        model = random_model(seed)
        truth = distribution(joint(model.cardinalities.tolist(), model.factors))[0]
        for result in (mean_field(model, n_starts=3), structured_mean_field(model, blocks=_halves(model))):
            assert result.bound <= truth
            if result.bound > -np.inf:
                finite += 1
                assert (result.trace[1:] >= result.trace[:-1] - 1e-10 * (1 + np.abs(result.trace[1:]))).all()
                model.verify(result)
                assert all(abs(p.sum() - 1) < 1e-12 for p in result.marginals)
        if seed % 3:  # no impossible states: the bound is finite, and the blocks do at least as well
            assert result.bound >= mean_field(model).bound - 1e-6
    assert finite > 200


def _halves(model):
    return [range(0, model.n_variables, 2), range(1, model.n_variables, 2)]


def test_naive_updates_and_values_against_loops_over_states():
    for seed in (1, 4, 7, 10):
        model = random_model(seed)
        sizes, factors = model.cardinalities.tolist(), model.factors
        one = mean_field(model, n_starts=1, max_sweeps=1)
        fields = [np.zeros(k) for k in sizes]
        for scope, table in factors:
            if len(scope) == 1:
                fields[scope[0]] += table
        start = [np.exp(f - f.max()) / np.exp(f - f.max()).sum() for f in fields]
        for found, expected in zip(one.marginals, mean_field_sweep(sizes, factors, start), strict=True):
            assert_allclose(found, expected, atol=1e-12)
        assert_allclose(one.bound, mean_field_value(sizes, factors, one.marginals), atol=1e-10)


def test_published_four_spins():
    # Carbonetto 2009, section 4.3: fields (0.09, 0.03, -0.68, -0.48), to more digits by enumeration
    result = mean_field(SQUARE, n_starts=5, tol=1e-14)
    means = result.marginals[:, 1] - result.marginals[:, 0]
    assert_allclose(np.arctanh(means), [0.0878236363, 0.0336738824, -0.6787275811, -0.4785152035], atol=1e-8)
    assert_allclose(result.bound, 3.3675311122 - 0.3622046, atol=1e-6)


def test_two_spins_without_field():
    weak, strong = Ising([(0, 1)], 0.8, [0.0, 0.0]), Ising([(0, 1)], 1.5, [0.0, 0.0])
    assert_allclose(mean_field(weak).bound, 2 * np.log(2), atol=1e-10)
    means = np.diff(mean_field(strong).marginals, axis=1).ravel()
    assert_allclose(means, np.tanh(1.5 * means), atol=1e-8)
    assert abs(means[0]) > 0.8


def test_blocks_against_coordinate_ascent_by_enumeration():
    rng = np.random.default_rng(0)
    factors = [((i,), rng.normal(size=2)) for i in range(6)]
    factors += [
        (scope, 0.3 * rng.normal(size=(2,) * len(scope))) for scope in [(0, 1), (1, 2, 4), (0, 3, 5), (4, 3), (2, 5)]
    ]
    model = FactorGraph([2] * 6, factors)
    blocks = [(0, 1, 2), (3, 4, 5)]
    scores = joint([2] * 6, factors).reshape(8, 8)
    q = [np.full(8, 1 / 8), np.full(8, 1 / 8)]
    for _ in range(100):
        for b in range(2):
            expected = scores @ q[1] if b == 0 else q[0] @ scores
            q[b] = np.exp(expected - expected.max()) / np.exp(expected - expected.max()).sum()
    value = q[0] @ scores @ q[1] + entropy(q[0]) + entropy(q[1])
    result = structured_mean_field(model, blocks=blocks, tol=1e-13)
    assert_allclose(result.bound, value, atol=1e-9)
    both = np.multiply.outer(q[0], q[1]).reshape((2,) * 6)
    for v in range(6):
        assert_allclose(result.marginals[v], both.sum(axis=tuple(set(range(6)) - {v})), atol=1e-6)
    at = model.structure
    for f, (scope, _) in enumerate(factors):
        expected = both.sum(axis=tuple(set(range(6)) - set(scope))).transpose(np.argsort(np.argsort(scope)))
        assert_allclose(at.table(f, result.beliefs), expected, atol=1e-6)


def test_chosen_blocks_fit_and_the_wider_the_better():
    model = glass(0, grid(8, 8))
    structure, theta, _ = model.restricted()
    truth, bounds = model.log_partition(), [mean_field(model).bound]
    for max_memory in (2**12, 2**15):
        blocks = choose_blocks(structure, theta, max_memory)
        assert sorted(np.concatenate(blocks).tolist()) == list(range(64))
        assert all(within(induced(structure, block)[0], max_memory) for block in blocks)
        bounds.append(structured_mean_field(model, max_memory=max_memory).bound)
    assert all(a < b for a, b in itertools.pairwise(bounds))
    assert truth - bounds[-1] < 1.0 < truth - bounds[0]
    assert len(choose_blocks(structure, theta, 2**26)) == 1
    assert_allclose(structured_mean_field(model, max_memory=2**26).bound, truth, atol=1e-8)
    # the numbers of the variables may say nothing of the grid
    shuffle = np.random.default_rng(0).permutation(64)
    shuffled = Ising(shuffle[model.edges], model.couplings, model.fields[np.argsort(shuffle)])
    assert truth - structured_mean_field(shuffled, max_memory=2**15).bound < 2.0


def test_evidence_and_refusals():
    model = glass(1, grid(4, 4)).given({5: 1, 6: -1})
    exact = model.log_partition()
    result = structured_mean_field(model, blocks=[range(8), range(8, 16)])
    assert mean_field(model).bound < result.bound <= exact
    assert_allclose(result.marginals[[5, 6], 1], [1.0, 0.0])
    with pytest.raises(ValueError, match="partition"):
        structured_mean_field(model, blocks=[range(8), range(7, 16)])
    with pytest.raises(ValueError, match="n_starts must be"):
        mean_field(model, n_starts=0)
    with pytest.raises(TooWide):
        structured_mean_field(glass(0, complete(12)), blocks=[range(12)], max_memory=2**10)
    other = glass(2, grid(4, 4)).given({5: 1, 6: -1})
    with pytest.raises(CertificateError):  # the q of one model says less of another
        other.verify(result)


def test_the_door_of_the_model():
    model = spin_glass(grid(4, 4), couplings=0.4, fields=0.5, rng=3)
    for method in ("mean_field", "structured_mean_field"):
        options = {"blocks": [range(8), range(8, 16)]} if method.startswith("structured") else {}
        bound = model.log_partition(method=method, **options)
        assert bound < model.log_partition()
        q = model.marginals(method=method, **options)
        assert_allclose(q.sum(axis=1), 1.0)
        # the entropy of q closes the bound: E_q <theta, T> + H(q)
        energy = float(model.mean(method=method, **options) @ model.theta)
        assert_allclose(energy + model.entropy(method=method, **options), bound, atol=1e-9)


@pytest.mark.slow
def test_wide_strips_of_a_large_grid():
    for seed in (0, 1):
        model = glass(seed, grid(24, 24))
        result = structured_mean_field(model, max_memory=2**24)
        assert 0 <= model.log_partition(max_memory=2**29) - result.bound < 4.0


@pytest.mark.parametrize("max_memory", [16, 2**24])
def test_structured_bound_of_a_model_whose_variables_are_all_given(max_memory):
    """Nothing is left but a sum of constants, and rounding of that sum is in the slack."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tables = [((i, j), 20 * rng.normal(size=(2, 2))) for i, j in itertools.combinations(range(6), 2)]
        model = FactorGraph([2] * 6, tables).given(dict.fromkeys(range(6), 1))
        found = structured_mean_field(model, max_memory=max_memory)
        assert_allclose(found.bound, sum(table[1, 1] for _, table in tables), rtol=1e-12)
        model.verify(found)


def test_newton_ends_where_coordinate_ascent_ends_in_fewer_steps():
    for seed in range(0, 60, 3):
        model = random_model(seed)
        if not all(np.isfinite(table).all() for _, table in model.factors):
            continue
        by_steps = mean_field(model, method="newton", n_starts=6)
        assert_allclose(by_steps.bound, mean_field(model, n_starts=6).bound, atol=1e-7)
        assert (np.diff(by_steps.trace) >= -1e-12 * np.abs(by_steps.bound)).all()
        assert by_steps.bound <= model.log_partition(method="enumeration")
        model.verify(by_steps)
    lattice = glass(0, grid(12, 12))
    slow, quick = mean_field(lattice, n_starts=1), mean_field(lattice, method="newton", n_starts=1)
    assert quick.converged
    assert quick.trace.size < 25 < slow.trace.size  # quadratic in the end: half a step each time would take 35 and more
    for method in ("coordinate", "newton"):  # a run elsewhere found 145.177
        assert 145.172 < mean_field(lattice, method=method, n_starts=20).bound < 153.838123


def test_derivatives_of_newton_are_those_of_the_bound():
    for seed in (1, 4, 7):
        model = random_model(seed)
        structure, theta, _ = model.restricted()
        problem = NewtonProblem.of(structure, np.array(theta))
        tau = np.random.default_rng(seed).normal(size=int(problem.layout.node_starts[-1]))
        gradient, hessian = problem.derivatives(tau)
        steps = 1e-5 * np.eye(tau.size)
        slopes = [(problem.value(tau + e) - problem.value(tau - e)) / 2e-5 for e in steps]
        curves = [(problem.derivatives(tau + e)[0] - problem.derivatives(tau - e)[0]) / 2e-5 for e in steps]
        assert_allclose(gradient, slopes, atol=1e-8)
        assert_allclose(hessian, curves, atol=1e-8)


@pytest.mark.parametrize("method", ["coordinate", "newton"])
def test_coordinates_are_the_fields_of_the_approximation(method):
    """Carbonetto 2009, section 4.3, and two spins so cold that their probabilities are one."""
    found = mean_field(SQUARE, method=method, tol=1e-13)
    fields = np.array([t[1] for t in found.coordinates])
    assert_allclose(fields, [0.0878236363, 0.0336738824, -0.6787275811, -0.4785152035], atol=1e-9)
    assert_allclose(found.log_normaliser, 3.1019345609, atol=1e-9)
    for q, t in zip(found.q, found.coordinates, strict=True):
        assert_allclose(q, np.exp(t) / np.exp(t).sum(), atol=1e-12)
    cold = mean_field(Ising([(0, 1)], 60.0, [40.0, 1.0]), n_starts=1)
    assert_allclose([t[1] for t in cold.coordinates], [100.0, 61.0], rtol=1e-12)
    with pytest.raises(ValueError, match="blocks"):
        _ = structured_mean_field(SQUARE, blocks=[(0, 1), (2, 3)]).log_normaliser


def test_newton_refuses_what_it_cannot_do():
    with pytest.raises(DomainError, match="impossible"):
        mean_field(FactorGraph([2, 2], [((0, 1), [[0.0, -np.inf], [0.0, 0.0]])]), method="newton")
    with pytest.raises(TooWide, match="coordinate"):
        mean_field(Ising(grid(50, 50), 0.1), method="newton")
    with pytest.raises(ValueError, match="method"):
        mean_field(SQUARE, method="gradient")


def test_fields_of_sites_are_half_the_log_odds():
    rng = np.random.default_rng(0)
    model = Ising(complete(5), rng.normal(size=10), rng.normal(size=5))
    x = rng.choice([-1, 1], (7, 5))
    found = model.site_fields(x)
    for i in range(5):
        up, down = x.copy(), x.copy()
        up[:, i], down[:, i] = 1, -1
        assert_allclose(found[:, i], 0.5 * (model.log_prob(up) - model.log_prob(down)), atol=1e-12)
    assert_allclose(model.site_fields(x[0]), found[0])


def test_uniform_fields_of_spin_glasses():
    fields = spin_glass(grid(40, 40), fields=2.0, field_kind="uniform", rng=0).fields
    assert np.abs(fields).max() <= 2.0
    assert abs(fields.mean()) < 5 * 2 / 3**0.5 / 40
    assert abs(fields.var() - 4 / 3) < 5 * (16 / 5 - 16 / 9) ** 0.5 / 40
    with pytest.raises(ValueError, match="field_kind"):
        spin_glass(grid(2, 2), field_kind="signs")
