"""Learning models with tables: enumeration, a conic solver, finite differences, and certificates against the truth."""

import dataclasses
import itertools

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.graphical import (
    MCMC,
    BoltzmannMachine,
    CausalFactorGraph,
    ContrastiveDivergence,
    DiscreteFamily,
    FactorGraph,
    Ising,
    PairwiseMRF,
    PersistentChains,
    Potts,
    SamplingPlan,
    Structure,
    grid,
    noisy_or,
)
from cumulant.graphical.learning.conditional_likelihood import (
    block_likelihood,
    composite_likelihood,
    pseudo_likelihood,
)
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.mcmc import replay
from cumulant.graphical.learning.planner import gradient_error_bound
from cumulant.graphical.learning.statistics_ball import spectral_gap_smoothness, statistics_ball
from cumulant.graphical.mixing.fast_mixing import FastMixing, TableSet
from cumulant.graphical.mixing.table_projection import Tables
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.graphical.samplers.gibbs_kernels import table_random_scan
from tests.reference import learning as reference

CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]
SIZES, EDGES = (3, 3, 2, 3), [(0, 1), (1, 2), (3, 2), (3, 0), (0, 2)]
NEAR = FastMixing(0.3, "inf")


def tables(scale, seed):
    rng = np.random.default_rng(seed)
    fields = [scale * rng.normal(size=q) for q in SIZES]
    return PairwiseMRF(fields, EDGES, [scale * rng.normal(size=(SIZES[i], SIZES[j])) for i, j in EDGES])


@pytest.fixture(scope="module")
def data():
    return tables(1.0, 0).sample(300, rng=1)


def enumerated(model):
    """The statistics of every state, by indexing tables."""
    rows = []
    for x in itertools.product(*map(range, model.cardinalities)):
        row = []
        for scope, table in model.factors:
            one = np.zeros(table.shape)
            one[tuple(x[v] for v in scope)] = 1.0
            row.append(one.ravel())
        rows.append(np.concatenate(row))
    return np.array(rows)


def by_conic_solver(model, x, l2, radius, free):
    """The penalised likelihood in ``{largest row sum of R <= radius}``, by enumeration and cvxpy."""
    statistics = enumerated(model)[:, free]
    code = np.ravel_multi_index(x.T, model.cardinalities)
    mean = statistics[code].mean(axis=0)
    theta = cp.Variable(free.size)
    Z, constraints = {}, []
    for f, (scope, table) in enumerate(model.factors):
        if len(scope) == 2:
            start = np.searchsorted(free, model.structure.table_starts[f])
            psi = cp.reshape(theta[start : start + table.size], table.shape, order="C")
            for (i, j), t in ((scope, psi), (scope[::-1], psi.T)):
                Z[i, j] = cp.Variable()
                constraints += [cp.max(t[a]) - cp.min(t[a]) <= 2 * Z[i, j] for a in range(t.shape[0])]
    for i in range(model.n_variables):
        constraints.append(sum(z for (a, _), z in Z.items() if a == i) <= radius)
    f = cp.log_sum_exp(statistics @ theta) - mean @ theta + 0.5 * l2 * cp.sum_squares(theta)
    problem = cp.Problem(cp.Minimize(f), constraints)
    problem.solve(solver=cp.CLARABEL)
    return theta.value, problem.value


def test_sampling_is_as_near_as_certified_and_can_be_done_again(data):
    model, settings = tables(0.0, 0), {"mixing": NEAR, "l2": 0.5}
    best, value = by_conic_solver(model, data, 0.5, 0.3, np.arange(model.theta.size))
    problem = learning_problem(data, model, **settings)
    assert problem.fast_set.size(best) > 0.299  # the set matters
    exact = fit(data, model, method="exact", **settings)
    assert_allclose(exact.value, value, atol=1e-6)
    assert_allclose(exact.model.theta, best, atol=2e-3)
    found = fit(data, model, method=MCMC(eps=0.8), rng=5, **settings)
    assert found.certificate.upper <= 0.8 + found.run.errors.max() * 20
    distance = np.linalg.norm(found.model.theta - best)
    assert distance < 0.1 < found.certificate.upper  # the bound is far from tight
    assert problem.fast_set.size(found.model.theta) <= 0.3 * (1 + 1e-9)
    assert found.model.mixing_time(norm="inf", bound="linear").upper > 0
    assert found.certificate.verify(Subject(problem, found)).bound == found.certificate.bound
    again = replay(found, problem=problem, n_jobs=1)
    assert_array_equal(again.model.theta, found.model.theta)
    for wrong in (
        dataclasses.replace(found, model=exact.model),
        dataclasses.replace(found, path=2.0 * found.path),
        dataclasses.replace(found, path=found.path[1:]),
        dataclasses.replace(found, plan=dataclasses.replace(found.plan, chains=10)),
        exact,
    ):
        with pytest.raises(CertificateError):
            found.certificate.verify(Subject(problem, wrong))
    with pytest.raises(CertificateError, match="another path"):
        replay(dataclasses.replace(found, run=dataclasses.replace(found.run, seed=6)))
    with pytest.raises(ValueError, match="mcmc"):
        replay(exact)


def test_the_objective_is_certified_without_l2(data):
    model, settings = tables(0.0, 0), {"mixing": NEAR, "fields": False}
    problem = learning_problem(data, model, **settings)
    assert problem.free.size == sum(SIZES[i] * SIZES[j] for i, j in EDGES)
    best, least = by_conic_solver(model, data, 0.0, 0.3, problem.free)
    found = fit(data, model, method=MCMC(plan=SamplingPlan(40, 200, 40)), rng=0, **settings)
    gap = problem.value_and_gradient(found.model.theta[problem.free])[0] - least
    assert -1e-7 <= gap <= found.certificate.upper
    assert gap < 0.1 * found.certificate.upper  # far from tight
    assert found.certificate.quantity == "f(theta) - f*"
    found.certificate.verify(Subject(problem, found))
    # each table adds up to zero, and such tables of the set are no farther from zero than is said
    starts, theta = model.structure.table_starts[4:], found.model.theta
    sums = [theta[a:b].sum() for a, b in itertools.pairwise(starts)]
    assert_allclose(sums, 0.0, atol=1e-12)
    for a, b in itertools.pairwise(starts - starts[0]):
        best[a:b] -= best[a:b].mean()
    assert np.linalg.norm(best) <= problem.distance_from_start()
    with pytest.raises(CertificateError, match="fields=False"):
        fit(data, model, mixing=NEAR)


@pytest.mark.parametrize("method", ["exact", "pseudo_likelihood", "composite", "mcmc"])
def test_binary_tables_are_spins_with_another_penalty(method):
    """Of all tables that make a model of couplings J and fields h on a cycle, the shortest has length^2
    ``sum 4 J^2 + sum h^2``: J is spread over four entries, and h over the variable and its two edges as 1 : 1/2 : 1/2.
    """
    truth = Ising(CYCLE, [0.5, -0.3, 0.4, 0.2], [0.3, 0.0, -0.2, 0.0])
    x, l2 = truth.sample(200, rng=0), 0.4
    weights = l2 * np.concatenate([np.ones(4), np.full(4, 4.0)])
    free = learning_problem(x, truth)
    objective = {
        "pseudo_likelihood": pseudo_likelihood(x, truth.edges),
        "composite": composite_likelihood(x, truth.edges),
    }.get(method, free.value_and_gradient)

    def penalised(theta):
        value, gradient = objective(theta)
        return value + 0.5 * weights @ theta**2, gradient + weights * theta

    best = minimize(penalised, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    model = PairwiseMRF([np.zeros(2)] * 4, CYCLE, [np.zeros((2, 2))] * 4)
    settings = {"mixing": FastMixing(0.9, "inf"), "rng": 0} if method == "mcmc" else {}
    found = fit((x + 1) // 2, model, method=MCMC(eps=1.5) if method == "mcmc" else method, l2=l2, **settings)
    table = np.array([[[J, -J], [-J, J]] for J in best[4:]])
    for e, (i, j) in enumerate(CYCLE):
        table[e] += np.array([[-1, -1], [1, 1]]) * best[i] / 4 + np.array([[-1, 1], [-1, 1]]) * best[j] / 4
    expected = np.concatenate([np.outer(best[:4] / 2, [-1, 1]).ravel(), table.ravel()])
    if method == "mcmc":
        assert np.linalg.norm(found.model.theta - expected) < 0.15 < found.certificate.upper
    else:
        assert_allclose(found.model.theta, expected, atol=2e-5)
        assert found.certificate.verify(found.subject).bound < 1e-9


def test_conditional_likelihoods_of_tables_of_any_order():
    rng = np.random.default_rng(3)
    scopes = [(0,), (2, 0, 1), (1, 3), (3, 1), (2, 3)]
    sizes = (2, 3, 2, 3)
    factors = [(s, rng.normal(size=[sizes[v] for v in s])) for s in scopes]
    model, x = FactorGraph(sizes, factors), rng.integers(0, sizes, (7, 4))
    p = np.exp(reference.joint_scores(sizes, factors))
    colours = Potts(CYCLE, rng.normal(size=4), rng.normal(size=(4, 3)))
    q = np.exp(reference.joint_scores([3] * 4, colours.factors))
    for family, theta, law in ((model.family, model.theta, p), (colours.family, colours.theta, q)):
        some = np.minimum(x, np.array(law.shape) - 1)
        for blocks in ([[v] for v in range(4)], [[0, 1], [3, 1], [2, 3]]):
            objective = block_likelihood(family, some, blocks)
            value, gradient = objective(theta)
            assert_allclose(value, reference.conditional_likelihood(law, some, blocks), rtol=1e-12)
            direction = rng.normal(size=theta.size)
            slope = (objective(theta + 1e-5 * direction)[0] - objective(theta - 1e-5 * direction)[0]) / 2e-5
            assert_allclose(gradient @ direction, slope, atol=1e-7)


def test_chains_are_those_of_the_definition():
    rng = np.random.default_rng(4)
    sizes, scopes = (2, 3, 2), [(0, 1), (2, 1, 0), (2,)]
    factors = [(s, rng.normal(size=[sizes[v] for v in s])) for s in scopes]
    model = FactorGraph(sizes, factors)
    p = np.exp(reference.joint_scores(sizes, factors))
    starts = rng.integers(0, sizes, (40, 3))
    x, counts = starts.copy(), np.zeros(model.theta.size, np.int64)
    table_random_scan(x, counts, TableArrays.of(model.structure, model.theta), 15, 9, 100)
    assert_array_equal(x, [reference.random_scan(p, s, 15, 9, 100 + c) for c, s in enumerate(starts)])
    assert_array_equal(counts, model.family.statistics(x).sum(axis=0))


def test_methods_without_guarantees_learn_tables_of_any_order():
    rng = np.random.default_rng(5)
    model = FactorGraph([2, 3, 2], [((0, 1, 2), 0.7 * rng.normal(size=(2, 3, 2))), ((1,), np.zeros(3))])
    x = model.sample(500, rng=6)
    exact = fit(x, model, method="exact", l2=0.02)
    likely = exact.model.log_prob(x).mean()
    settings = {"iterations": 150, "chains": 300, "step_size": 1.0}
    for method in (ContrastiveDivergence(**settings), PersistentChains(**settings), "pseudo_likelihood"):
        found = fit(x, model, method=method, l2=0.02, rng=0)
        assert (found.certificate is None) == (method != "pseudo_likelihood")
        assert abs(found.model.log_prob(x).mean() - likely) < 0.01
        assert likely - np.log(1 / 12) > 0.1  # against no model at all


@pytest.mark.parametrize("make", [Potts, BoltzmannMachine])
def test_one_coupling_an_edge(make):
    zero = Potts(CYCLE, 0.0, n_states=3) if make is Potts else BoltzmannMachine(CYCLE, 0.0)
    rng = np.random.default_rng(7)
    x = rng.integers(0, zero.cardinalities, (200, 4))
    x[:, 1:] = np.where(rng.random((200, 3)) < 0.7, x[:, :1], x[:, 1:])
    for mixing in (FastMixing(0.1, "inf"), FastMixing(0.2, "box")):
        settings = {"mixing": mixing, "l2": 0.5}
        problem = learning_problem(x, zero, **settings)
        exact = fit(x, zero, method="exact", **settings)
        theta, gradient = exact.model.theta, problem.value_and_gradient(exact.model.theta)[1]
        assert_allclose(problem.project(theta - gradient)[0], theta, atol=2e-4)  # optimal where it does not move
        assert problem.fast_set.size(theta) > 0.99 * mixing.radius
        found = fit(x, zero, method=MCMC(eps=0.8), rng=0, **settings)
        found.certificate.verify(found.subject)
        assert np.linalg.norm(found.model.theta - theta) < 0.1 < found.certificate.upper
        kappa = problem.fast_set.mixing().kappa
        certified = found.model.mixing_time(0.01, norm="inf")  # by the oscillation of its tables
        assert certified.details["kappa"] <= kappa * (1 + 1e-9)


def test_the_ball_holds_every_state_and_bounds_covariances_and_errors():
    rng = np.random.default_rng(8)
    shared = DiscreteFamily(Structure([2, 2], [(0,), (1,)]), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    for family, square in (
        (tables(0.0, 0).family, 3 * 2 / 3 + 1 / 2 + 2 * 8 / 9 + 3 * 5 / 6),
        (Potts(CYCLE, 0.0, n_states=3).family, 4 * 2 / 3 + 4 / 4),
        (BoltzmannMachine(CYCLE, 0.0).family, 8 / 4),
        (Ising(CYCLE, 0.0).family, 8),
        (shared, (1.0 + 3.0) ** 2),
    ):
        sizes = family.structure.cardinalities
        states = np.array(list(itertools.product(*map(range, sizes))))
        centre, radius = statistics_ball(family, np.arange(family.dim))
        statistics = family.statistics(family.values(states))
        assert np.linalg.norm(statistics - centre, axis=1).max() <= radius * (1 + 1e-12)
        assert_allclose(radius**2, square)
        p = rng.dirichlet(np.full(len(states), 0.05))  # any law, concentrated on a few states
        deviation = statistics - p @ statistics
        assert np.linalg.eigvalsh(deviation.T @ (p[:, None] * deviation))[-1] <= radius**2
        means = rng.multinomial(50, p, 400) / 50 @ statistics
        errors = np.linalg.norm(means - p @ statistics, axis=1)
        assert (errors > gradient_error_bound(50, 0.1, radius)).mean() <= 0.1


def test_projection_of_tables_that_are_nearly_in_the_set():
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
    rng = np.random.default_rng(0)
    members = TableSet(FastMixing(0.8), Tables(edges, np.full((5, 2), 3), np.zeros(45), 4), np.arange(45))
    inside, _ = members.project(rng.normal(size=45))
    for flat in (1.001 * inside, inside + 1e-3 * rng.normal(size=45), (1 + 1e-9) * inside):
        point, error = members.project(flat)
        assert members.size(point) <= 0.8 * (1 + 1e-9)
        assert error < 1e-5
        step, Z = cp.Variable((15, 3)), cp.Variable((4, 4), nonneg=True)  # small, so that the solver keeps its digits
        psi = flat.reshape(15, 3) + step
        constraints = [cp.sigma_max(Z) <= 0.8]
        for e, (i, j) in enumerate(edges):
            t = psi[3 * e : 3 * e + 3]
            constraints += [cp.max(t[a]) - cp.min(t[a]) <= 2 * Z[i, j] for a in range(3)]
            constraints += [cp.max(t[:, b]) - cp.min(t[:, b]) <= 2 * Z[j, i] for b in range(3)]
        cp.Problem(cp.Minimize(1e4 * cp.sum_squares(step)), constraints).solve(solver=cp.CLARABEL)
        assert np.linalg.norm(psi.value.ravel() - point) <= error + 1e-6


def test_refusals():
    x = np.zeros((3, 3), int)
    three = FactorGraph([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))])
    with pytest.raises(ValueError, match="at most two variables"):
        fit(x, three, mixing=NEAR, l2=1.0)
    pair = ((0, 1), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="add them up"):
        fit(x, FactorGraph([2, 2, 2], [pair, ((1, 0), np.zeros((2, 2)))]), mixing=NEAR, l2=1.0)
    with pytest.raises(ValueError, match="box"):
        fit(x, FactorGraph([2, 2, 2], [pair]), mixing=FastMixing(0.2, "box"), l2=1.0)
    with pytest.raises(ValueError, match="FastMixing"):
        fit(x, three, l2=1.0)
    with pytest.raises(ValueError, match="one axis"):
        fit(np.zeros(3), three, method="exact")
    hidden = CausalFactorGraph([2, 2, 2], [], [noisy_or(2, [0, 1], [0.5, 0.5])])
    with pytest.raises(TypeError, match="hidden"):
        fit(x, hidden, method="exact")


def test_curvature_in_the_set_is_below_what_the_spectral_gap_proves():
    """Enumerated covariances of members, spins and tables, with fields and without; and the bound is not idle."""
    rng, nearest = np.random.default_rng(4), 0.0
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 4), (4, 5)])
    q = [2, 3, 2, 2, 3, 2]
    general = PairwiseMRF([np.zeros(k) for k in q], edges, [np.zeros((q[i], q[j])) for i, j in edges])
    for model in (Ising(edges, 0.0), Potts(edges, 0.0, n_states=3), BoltzmannMachine(edges, 0.0), general):
        states = np.array(list(itertools.product(*map(range, model.cardinalities))))
        states = model.family.values(states)
        T = model.family.statistics(states)
        for within in (FastMixing(0.7), FastMixing(0.3, "inf")):
            for fields in (True, False):
                problem = learning_problem(states[:3], model, mixing=within, fields=fields, l2=0.5)
                mixing = problem.fast_set.mixing()
                proved = spectral_gap_smoothness(model.family, problem.free, mixing.log_rate)
                assert problem.smoothness_in_set <= problem.smoothness
                assert problem.smoothness_in_set <= (proved + 0.5) * (1 + 1e-7)
                for _ in range(5):
                    theta = problem.project(3 * rng.normal(size=problem.free.size))[0]
                    p = model.family.score(states, problem.full(theta))
                    p = np.exp(p - p.max())
                    p /= p.sum()
                    apart = T[:, problem.free] - p @ T[:, problem.free]
                    truth = np.linalg.eigvalsh(apart.T @ (p[:, None] * apart))[-1]
                    assert truth <= proved
                    nearest = max(nearest, truth / proved)
    assert nearest > 0.25


def test_a_large_model_is_planned_with_the_constant_of_its_set():
    """It does not grow with the model, where ``R^2`` does; and the certificate says where it comes from."""
    found = {}
    for side in (6, 12):
        edges = grid(side, side)
        model = Ising(edges, 0.0)
        problem = learning_problem(np.zeros(len(edges)), model, mixing=FastMixing(0.4, "inf"), l2=1.0, fields=False)
        found[side] = problem.smoothness_in_set
        assert problem.smoothness_in_set < 0.9 * problem.smoothness
    assert_allclose(found[6], found[12], rtol=0.01)
    run = fit(np.zeros(len(edges)), model, method=MCMC(plan=SamplingPlan(2, 10, 10)), mixing=FastMixing(0.4, "inf"),
              l2=1.0, fields=False, rng=0)  # fmt: skip
    assert run.certificate.details["L"] == found[12]
    assert any("spectral gap" in a.detail for a in run.certificate.assumptions)
    run.certificate.verify(run.subject)
    # a run whose steps were 1 / (R^2 + l2), as those of earlier versions, has the certificate of those steps
    method = MCMC(plan=SamplingPlan(2, 10, 10), smoothness=problem.smoothness)
    slow = fit(np.zeros(len(edges)), model, method=method, mixing=FastMixing(0.4, "inf"), l2=1.0, fields=False, rng=0)
    old = dataclasses.replace(slow, run=dataclasses.replace(slow.run, smoothness=None))
    assert replay(old).certificate == slow.certificate == slow.certificate.verify(old.subject)
    assert slow.certificate.details["L"] == problem.smoothness
