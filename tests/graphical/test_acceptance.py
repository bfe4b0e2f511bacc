"""Published and independently computed numbers for discrete models, and identities that tie the parts together."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import (
    FastMixing,
    Ising,
    MaximumLikelihood,
    PairwiseMRF,
    SamplingPlan,
    belief_propagation,
    bound_strongly_convex,
    complete,
    dependency_matrix,
    dependency_norm,
    fit,
    grid,
    learning_problem,
    lipschitz,
    mean_field,
    project_couplings,
    torus,
    torus_log_partition,
    total_error_bound,
)
from tests.graphical.smokers import smokers
from tests.graphical.test_mean_field import SQUARE, glass


def test_a_triangle_and_a_four_by_four_grid():
    """Domke 2015, section 6: the numbers behind the grid experiment."""
    t = math.tanh(0.3)
    triangle = Ising(complete(3), 0.3)
    assert_allclose(triangle.mean()[3:], (t + t**2) / (1 + t**3), rtol=1e-12)
    assert_allclose(triangle.mean()[3:], 0.3671003, atol=5e-8)
    free, coupled = Ising(grid(4, 4), 0.0), Ising(grid(4, 4), 0.2)
    assert_allclose([free.log_partition(), coupled.log_partition()], [11.0903549, 11.5815769], atol=5e-8)
    assert_allclose(coupled.mean()[16:].mean(), 0.2093548, atol=5e-8)
    # the pair statistics alone, as there are no fields to learn
    for model, largest in ((free, 1.0), (coupled, 1.1589352)):
        assert_allclose(np.linalg.eigvalsh(model.covariance()[16:, 16:])[-1], largest, atol=5e-8)
    assert_allclose(total_error_bound(46, 1533, 0.1, math.sqrt(24)), 0.3362870, atol=5e-8)


def test_the_covariance_is_the_hessian():
    rng = np.random.default_rng(0)
    models = (
        Ising(grid(2, 3), rng.normal(size=7), rng.normal(size=6)).given({4: 1}),
        PairwiseMRF(rng.normal(size=(3, 3)), [(0, 1), (2, 1)], rng.normal(size=(2, 3, 3))),
    )
    for model in models:
        hessian = np.zeros((model.family.dim, model.family.dim))
        for k in range(model.family.dim):
            ends = []
            for sign in (1, -1):
                theta = model.theta.copy()
                theta[k] += sign * 1e-5
                ends.append(_at(model, theta).mean())
            hessian[k] = (ends[0] - ends[1]) / 2e-5
        assert_allclose(model.covariance(), hessian, atol=1e-8)


def _at(model, theta):
    """The same kind of model at another parameter."""
    if isinstance(model, Ising):
        n = model.n_variables
        return Ising(model.edges, theta[n:], theta[:n]).given(model.evidence)
    return type(model).from_flat(model.structure, theta)


def test_how_far_uniform_couplings_of_a_grid_may_go():
    edges = grid(4, 4)
    for norm, limit in (("spectral", 1 / (1 + math.sqrt(5))), ("inf", 0.25), ("one", 0.25)):
        inside, outside = np.full(24, limit * (1 - 1e-7)), np.full(24, limit * 1.01)
        assert (project_couplings(edges, inside, 1.0, norm=norm) == inside).all()
        assert (project_couplings(edges, outside, 1.0, norm=norm) != outside).any()
        R = dependency_matrix(Ising(edges, limit), "linear")
        assert_allclose(dependency_norm(R, norm), 1.0, rtol=1e-7)


def test_influence_of_twenty_thousand_tables():
    """True total variation <= tanh(oscillation / 4) <= half the largest difference, and the first is attained."""
    rng = np.random.default_rng(23)
    m, q = 20_000, 3
    tables = rng.normal(size=(m, q, q)) * rng.choice([0.2, 1.0, 4.0], size=(m, 1, 1))
    edges = np.arange(2 * m).reshape(m, 2)
    model = PairwiseMRF(np.zeros((2 * m, q)), edges, tables)
    found = {
        bound: np.asarray(dependency_matrix(model, bound).tocsr()[edges[:, 0], edges[:, 1]]).ravel()
        for bound in ("oscillation", "linear")
    }
    p = np.exp(tables - tables.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)  # of the first variable, for each state of the second
    truth = np.zeros(m)
    for b, c in itertools.combinations(range(q), 2):
        truth = np.maximum(truth, 0.5 * np.abs(p[:, :, b] - p[:, :, c]).sum(axis=1))
    assert (truth <= found["oscillation"] * (1 + 1e-12)).all()
    assert (found["oscillation"] <= found["linear"] * (1 + 1e-12)).all()
    assert (truth / found["oscillation"]).max() > 0.999


def test_projected_gradient_with_exact_gradients_contracts():
    """Projected gradient steps of the library stay within its bound for exact gradients, and need nearly all of it."""
    rng = np.random.default_rng(5)
    x = rng.choice([-1, 1], size=(5, 9))
    l2, edges, members = 40.0, grid(3, 3), FastMixing(0.011, "box")  # the covariance adds little to the curvature
    problem = learning_problem(x, edges, mixing=members, l2=l2, fields=False)
    best = fit(x, edges, method=MaximumLikelihood(tol=1e-13), mixing=members, l2=l2, fields=False).model.couplings
    assert 0 < (np.abs(best) == 0.011).sum() < len(edges)  # some of the constraints are active
    R, L = len(edges) ** 0.5, lipschitz(len(edges) ** 0.5, l2)
    theta, start = np.zeros(len(edges)), float(np.linalg.norm(best))
    for k in range(1, 7):  # to the accuracy of the optimum
        theta = problem.project(theta - problem.value_and_gradient(theta)[1] / L)[0]
        known = {"R": R, "L": L, "l2": l2, "distance": start, "delta": 0.1, "mixing": None}
        bound = bound_strongly_convex(SamplingPlan(6, 10**60, 1), done=k, **known)
        assert 0.4 * bound < np.linalg.norm(theta - best) <= bound
    assert bound < 2e-4 * start


def test_four_spins_of_a_square():
    """Carbonetto 2009, section 4.3."""
    assert_allclose(SQUARE.log_partition(), 3.3675311122, atol=5e-11)
    means = SQUARE.mean()
    assert_allclose(means[:4], [0.108342, 0.068719, -0.401623, -0.266534], atol=5e-7)
    assert_allclose(means[4:], [-0.382914, 0.256428, 0.336831, 0.429665], atol=5e-7)
    q = mean_field(SQUARE, tol=1e-14).marginals
    fields = 0.5 * np.log(q[:, 1] / q[:, 0])
    assert_allclose(np.logaddexp(fields, -fields).sum(), 3.1019345609, atol=5e-10)
    product = Ising([], [], fields)
    assert_allclose(product.kl(Ising(SQUARE.edges, SQUARE.couplings, SQUARE.fields)), 0.3622046, atol=5e-8)
    for J in (0.3, 1.7):
        assert_allclose(Ising([(0, 1)], J).log_partition(), math.log(4 * math.cosh(J)), rtol=1e-13)


def test_the_twelve_by_twelve_spin_glass():
    for seed, log_z, first in (
        (0, 153.838123, [-0.026187, -0.052066, -0.829193, -0.859022]),
        (1, 149.5459, None),
    ):
        model = glass(seed, grid(12, 12))
        assert_allclose(model.log_partition(), log_z, atol=5e-5 if first is None else 5e-7)
        if first is not None:
            assert_allclose(np.diff(model.marginals())[:4, 0], first, atol=5e-7)


def ring(rows, columns):
    """Edges of a torus by site: right, then down."""
    site = np.arange(rows * columns).reshape(rows, columns)
    right, down = np.roll(site, -1, axis=1), np.roll(site, -1, axis=0)
    return np.stack([np.stack([site, right], -1), np.stack([site, down], -1)], axis=2).reshape(-1, 2)


def pattern(m):
    e = np.arange(m)
    return np.where((e**2 + 3 * e) % 7 < 4, 1.0, -1.0)


def test_ferromagnets_on_tori():
    for K, expected in ((0.1, 11.252588451586), (0.3, 12.785523325714), (0.5, 17.105367118732), (1, 32.698721401879)):
        assert_allclose(torus_log_partition(4, 4, K), expected, atol=1e-11)
        assert_allclose(Ising(torus(4, 4), K).log_partition(), expected, atol=1e-11)
    for K, expected in ((0.25, 109.311389134), (0.5, 148.407657697), (1, 288.743300033), (2, 576.693163397)):
        assert_allclose(torus_log_partition(12, 12, K), expected, atol=5e-9)
    slope = (torus_log_partition(12, 12, 1 + 1e-5) - torus_log_partition(12, 12, 1 - 1e-5)) / 2e-5
    assert_allclose(slope, 287.591069, atol=1e-5)
    for T, expected in ((1.0, 800.832460661), (0.7, 1143.554671019), (0.4, 2000.693148005), (0.1, 8000.693147181)):
        assert_allclose(torus_log_partition(20, 20, 1 / T), expected, atol=5e-9)
    nine = Ising(torus(3, 3), 0.4)
    assert_allclose(nine.log_partition(), nine.log_partition(method="enumeration"), rtol=1e-14)


def test_divergences_and_curvature_on_the_four_by_four_torus():
    edges = ring(4, 4)
    one, two = Ising(edges, 0.3), Ising(edges, 0.5)
    pairs = one.mean()[16:]
    variance = one.covariance()[16:, 16:]
    assert_allclose(pairs.sum(), 13.504865178, atol=5e-9)
    assert_allclose(variance.sum(), 78.398693969, atol=5e-8)
    assert_allclose(one.kl(two), 1.6188707574, atol=5e-10)
    assert_allclose(variance.sum() * (0.3 - 0.5), -15.679738794, atol=5e-8)
    target = Ising(edges, 0.8 * pattern(32))
    assert (pattern(32) < 0).sum() == 18
    assert_allclose(target.log_partition(), 20.741371940280, atol=1e-11)
    assert_allclose(one.kl(target), 13.357794685759, atol=1e-10)
    gradient = variance @ (0.3 - 0.8 * pattern(32))
    assert_allclose(gradient[:3], [0.38783038, 1.36208050, 0.48009037], atol=5e-9)
    assert_allclose([np.linalg.norm(gradient), gradient.sum()], [6.372964064, 31.359477588], atol=5e-9)


def test_spin_glasses_on_the_eight_by_eight_torus_count_their_ground_states():
    edges, J = ring(8, 8), pattern(128)
    for beta, expected in ((1, 105.230815412), (2, 202.674297388), (4, 398.664412335), (10, 986.664409020)):
        assert_allclose(Ising(edges, beta * J).log_partition(), expected, atol=5e-9)
    assert_allclose(math.exp(Ising(edges, 10.0 * J).log_partition() - 980), 784, rtol=1e-8)
    # far below the range of numbers: energies are multiples of 4, the next level does not show
    assert_allclose(Ising(edges, 300.0 * J).log_partition(), 300 * 98 + math.log(784), rtol=1e-14)
    turned = J.copy()
    turned[(edges == 19).any(axis=1)] *= -1
    assert_allclose(Ising(edges, turned).log_partition(), Ising(edges, J).log_partition(), rtol=1e-13)


@pytest.mark.slow
def test_spin_glasses_on_the_twelve_by_twelve_torus():
    edges = ring(12, 12)
    random = np.random.default_rng(2024).choice([-1.0, 1.0], 288)
    for J, beta, expected in ((pattern(288), 10, 1780.465796916), (random, 1, 217.236845309)):
        assert_allclose(Ising(edges, beta * J).log_partition(max_memory=2**32), expected, atol=5e-9)


def test_who_decides_alone():
    """Carbonetto 2009, chapter 5, a network of three and networks of two: exact, and by Bethe."""
    model = smokers()
    assert_allclose(model.log_partition(), -5.196211060, atol=5e-10)
    single = np.array(model.marginals())[:, 1]
    assert_allclose(single[:3], [0.855132, 0.613108, 0.579929], atol=5e-7)
    assert_allclose(single[[3, 4, 5, 6]], [0.349266, 0.542558, 0.309297, 0.133634], atol=5e-7)
    joint = [
        math.exp(model.given(dict(enumerate(z))).log_partition() - model.log_partition())
        for z in itertools.product((0, 1), repeat=3)
    ]
    expected = [0.00087837, 0.00270772, 0.02496431, 0.11631807, 0.19763410, 0.18567203, 0.19659392, 0.27523149]
    assert_allclose(joint, expected, atol=5e-9)
    # what one habit, or one friendship, is worth given all the rest
    for x, p in enumerate((0.701375, 0.543214, 0.453958)):
        habits = np.array([(1, 1, 0), (1, 1, 0)])
        habits[:, x] = 0, 1
        off, on = (smokers(tuple(row)).log_partition() for row in habits.tolist())
        assert_allclose(1 / (1 + math.exp(off - on)), p, atol=5e-7)
    for pair, p in (((0, 1), 0.631267), ((0, 2), 0.198373), ((1, 2), 0.193535)):
        rest = [f for f in ((0, 1), (0, 2)) if f != pair]
        off, on = smokers(friends=rest).log_partition(), smokers(friends=[*rest, pair]).log_partition()
        assert_allclose(1 / (1 + math.exp(off - on)), p, atol=5e-7)
    for habits, friends, exact, alone, bethe in (
        ((1, 0), [(0, 1)], -3.346425146, (0.838398, 0.554672), -3.315125118),
        ((1, 1), [(0, 1)], -2.960365130, (0.715830, 0.715830), -3.036978302),
        ((1, 0), [], -1.911083692, (0.642509, 0.601947), -1.911083692),
        ((0, 0), [], -0.724596569, (0.563444, 0.563444), -0.724596569),
    ):
        two = smokers(habits, friends)
        assert_allclose(two.log_partition(), exact, atol=5e-10)
        assert_allclose([p[1] for p in two.marginals()[:2]], alone, atol=5e-7)
        assert_allclose(belief_propagation(two, tol=1e-13).log_partition, bethe, atol=5e-9)
