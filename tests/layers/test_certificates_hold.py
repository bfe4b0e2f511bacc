"""Certificates of layers, transport and Fenchel duals against exact answers: honest, lying, degenerate, ill-scaled."""

import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.geometry import duality
from cumulant.geometry.conjugate_pairs import SquaredError
from cumulant.layers import (
    ArgminProblem,
    FixedPointProblem,
    TransportProblem,
    certify_argmin,
    certify_entropic_transport,
    certify_fixed_point,
    certify_transport,
    round_plan,
    step_network,
)

COUNTS = [pytest.param(40, id="few"), pytest.param(1000, id="many", marks=pytest.mark.slow)]
SCALES = [1e-200, 1e-12, 1e-3, 1.0, 1e6, 1e12]


def affine(x, theta):
    return theta["matrix"] @ x + theta["shift"]


def quadratic(x, theta):
    return 0.5 * x @ (theta["matrix"] @ x) - theta["shift"] @ x


def exact_solution(matrix, right):
    """The solution of a system of floats, in sixty digits."""
    with mp.workdps(60):
        return mp.lu_solve(mp.matrix(matrix.tolist()), mp.matrix(right.tolist()))


def distance(x, solution):
    return float(mp.sqrt(mp.fsum((mpf(float(a)) - b) ** 2 for a, b in zip(x, solution, strict=True))))


@pytest.mark.parametrize("count", COUNTS)
def test_fixed_points_of_affine_maps(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        matrix = rng.standard_normal((3, 3))
        matrix *= rng.uniform(0.0, 0.999) / np.linalg.norm(matrix, 2)
        shift = rng.choice(SCALES) * rng.standard_normal(3)
        solution = exact_solution(np.eye(3) - matrix, shift)
        size = max(float(mp.norm(solution)), 1e-300)
        x = np.array([float(each) for each in solution]) + size * 10.0 ** rng.uniform(-18, 0) * rng.standard_normal(3)
        theta, factor = {"matrix": matrix, "shift": shift}, min(np.linalg.norm(matrix, 2) * (1 + 1e-9), 1 - 1e-9)
        for constants in ({"contraction": factor}, {"jacobian_lipschitz": 0.0}):
            subject = Subject(FixedPointProblem(affine, theta, **constants), x)
            certificate = certify_fixed_point(*subject)
            assert distance(x, solution) <= certificate.upper
            certificate.verify(subject)
        with pytest.raises(CertificateError, match="no larger than the contraction factor"):
            certify_fixed_point(FixedPointProblem(affine, theta, contraction=factor / 2 - 1e-6), x)


@pytest.mark.parametrize("count", COUNTS)
def test_minimisers_of_quadratics(count):
    rng = np.random.default_rng(1)
    for _ in range(count):
        q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        spectrum = 10.0 ** rng.uniform(-4, 4, 3)
        matrix = (q * spectrum) @ q.T
        matrix = (matrix + matrix.T) / 2
        shift = rng.choice(SCALES) * rng.standard_normal(3)
        solution = exact_solution(matrix, shift)
        size = max(float(mp.norm(solution)), 1e-300)
        x = np.array([float(each) for each in solution]) + size * 10.0 ** rng.uniform(-18, 0) * rng.standard_normal(3)
        theta, least = {"matrix": matrix, "shift": shift}, float(np.linalg.eigvalsh(matrix)[0])
        for constants in ({"strong_convexity": least * (1 - 1e-3)}, {"hessian_lipschitz": 0.0}):
            subject = Subject(ArgminProblem(quadratic, theta, **constants), x)
            certificate = certify_argmin(*subject)
            assert distance(x, solution) <= certificate.upper
            certificate.verify(subject)
        with pytest.raises(CertificateError, match="below mu"):
            certify_argmin(ArgminProblem(quadratic, theta, strong_convexity=2 * least + 1e-6 * spectrum.max()), x)


def test_constants_that_two_derivatives_contradict_are_refused():
    def quartic(x, theta):
        return jnp.sum(x**4 / 4 + theta * x**2 / 2)

    with pytest.raises(CertificateError, match="change of the Hessian"):
        certify_argmin(ArgminProblem(quartic, 1.0, hessian_lipschitz=0.0), [0.5])
    with pytest.raises(CertificateError, match="change of the Jacobian"):
        certify_fixed_point(FixedPointProblem(lambda x, t: jnp.sin(x) / 2 + t, 1.0, jacobian_lipschitz=1e-3), [0.5])


@pytest.mark.parametrize("count", COUNTS)
def test_networks_on_intervals_far_from_zero(count):
    rng = np.random.default_rng(2)
    for _ in range(count):
        start = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3, 9)
        span, units = 10.0 ** rng.uniform(-1, 2), int(rng.integers(1, 200))
        frequency = rng.choice([0.0, 1.0, 3.0])

        def wave(t, start=start, frequency=frequency):
            return (t - start) + np.sin(frequency * (t - start))

        network = step_network(wave, start, start + span, units, lipschitz=1.0 + frequency)
        network.certificate.verify(network.subject)
        grid = np.linspace(start, start + span, 3001)
        assert np.max(np.abs(network(grid) - wave(grid))) <= network.certificate.upper


def test_offsets_are_part_of_the_error():
    network = step_network(lambda t: t - 1e8, 1e8, 1e8 + 1, 1000, lipschitz=1.0)
    grid = np.linspace(1e8, 1e8 + 1, 100_001)
    assert np.max(np.abs(network(grid) - (grid - 1e8))) <= network.certificate.upper < 5.1e-4
    with pytest.raises(CertificateError, match="contradict the Lipschitz constant"):
        step_network(lambda t: 3.0 * t, 0.0, 1.0, 10, lipschitz=1.0)
    with pytest.raises(CertificateError, match="float64 resolves the grid"):
        step_network(lambda t: t - 1e16, 1e16, 1e16 + 64, 100, lipschitz=1.0)


@pytest.mark.parametrize("count", COUNTS)
def test_transport_from_any_potentials(count):
    rng = np.random.default_rng(3)
    rows, columns = np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))
    for _ in range(count):
        scale = rng.choice([1e-9, 1.0, 1e9])
        cost, a, b = rng.uniform(-1, 1, (3, 4)), rng.dirichlet(np.ones(3)) + 1e-6, rng.dirichlet(np.ones(4)) + 1e-6
        b *= a.sum() / b.sum()
        exact = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([a, b])).fun
        f, g = scale * rng.standard_normal(3), scale * rng.standard_normal(4)
        problem = TransportProblem(scale * cost, a, b, scale * 10.0 ** rng.uniform(-3, 1))
        certificate = certify_transport(problem, (f, g))
        certificate.verify(Subject(problem, (f, g)))
        assert certificate.lower <= scale * (exact + 1e-7)
        assert certificate.upper >= scale * (exact - 1e-7)
        # Any feasible plan is above the lower end of the regularised value.
        plan = np.outer(a, b) / a.sum()
        value = np.sum(problem.cost * plan) + problem.epsilon * np.sum(plan * (np.log(plan) - 1))
        assert certify_entropic_transport(problem, (f, g)).lower <= value + 1e-12 * scale


@pytest.mark.parametrize("mass", [1e-310, 1e-200, 1e200])
def test_transport_of_tiny_and_huge_masses(mass):
    """A plan whose missing part underflows moves nothing, and costs nothing."""
    cost, a, b = np.array([[0.0, 3.0], [1.0, 0.0]]), mass * np.array([0.9, 0.1]), mass * np.array([0.1, 0.9])
    problem = TransportProblem(cost, a, b, 0.1)
    for f, g in (([0.0, 0.0], [0.0, 0.0]), ([5.0, 0.0], [0.0, -5.0])):
        assert 2.4 * mass in certify_transport(problem, (f, g)).bound
    assert_allclose(round_plan(cost * mass, a, b).sum(axis=1), a, rtol=1e-12)
    forced = TransportProblem(cost[:1], [a.sum()], a, 0.1)  # one row: the plan is a
    value = np.sum(cost[0] * a) + 0.1 * np.sum(a * (np.log(a) - 1))
    found = certify_entropic_transport(forced, ([1.0], [0.0, 2.0]))
    assert found.lower <= value + 1e-12 * mass
    assert found.upper >= value - 1e-12 * mass


@pytest.mark.parametrize("count", COUNTS)
def test_gaps_of_ridge_regression(count):
    rng = np.random.default_rng(4)
    for _ in range(count):
        A, b = rng.standard_normal((3, 2)) * 10.0 ** rng.uniform(-5, 5, 2), rng.standard_normal(3)
        A[rng.integers(3)] = 0.0
        weight = 10.0 ** rng.uniform(-5, 5)
        with mp.workdps(60):
            system = mp.matrix(A.T.tolist()) * mp.matrix(A.tolist()) + weight * mp.eye(2)
            best = mp.lu_solve(system, mp.matrix(A.T.tolist()) * mp.matrix(b.tolist()))
            residual = mp.matrix(A.tolist()) * best - mp.matrix(b.tolist())
            least = (mpf(weight) * mp.norm(best) ** 2 + mp.norm(residual) ** 2) / 2
            x = np.array([float(each) for each in best]) * (1 + 10.0 ** rng.uniform(-18, 0) * rng.standard_normal(2))
            point = mp.matrix(x.tolist())
            there = mp.matrix(A.tolist()) * point - mp.matrix(b.tolist())
            gap = float((mpf(weight) * mp.norm(point) ** 2 + mp.norm(there) ** 2) / 2 - least)
        problem = duality.fenchel_dual(SquaredError(0.0, weight), SquaredError(b), A)
        y = A @ x - b
        certificate = problem.certify(x, y)
        assert gap <= certificate.upper
        certificate.verify(Subject(problem, (x, y)))


def test_a_residual_that_cancels_is_counted():
    """``A x`` is 0 or 1 by the order of the sum: the value of the gap depends on it by a half."""
    problem = duality.fenchel_dual(SquaredError(0.0, 1e-9), SquaredError(np.zeros(1)), np.array([[1e16, 1.0, -1e16]]))
    certificate = problem.certify(np.ones(3), np.zeros(1))
    assert certificate.upper >= 0.5
    assert_allclose(certificate.details["dual"], 0.0)
