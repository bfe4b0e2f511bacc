"""Projections onto fast-mixing sets against closed forms, CVXPY and their own duality gaps."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.graphical import Ising, PairwiseMRF, complete, grid, random_regular
from cumulant.graphical.mixing.certificates import dependency_norm
from cumulant.graphical.mixing.dependency import dependency_matrix
from cumulant.graphical.mixing.projections import project, project_box, project_couplings, project_tables
from cumulant.graphical.mixing.table_projection_kernels import shrink_rows
from tests.reference.mixing import widest_row_prox


def norm_of(edges, couplings, n, norm):
    Z = np.zeros((n, n))
    Z[edges[:, 0], edges[:, 1]] = Z[edges[:, 1], edges[:, 0]] = np.abs(couplings)
    return np.linalg.norm(Z, {"spectral": 2, "one": 1, "inf": np.inf}[norm])


def by_cvxpy(edges, couplings, n, radius, norm):
    z = cp.Variable(len(edges), nonneg=True)
    Z = 0
    for e, (i, j) in enumerate(edges):
        E = np.zeros((n, n))
        E[i, j] = E[j, i] = 1
        Z = Z + z[e] * E
    constraint = cp.lambda_max(Z) <= radius if norm == "spectral" else cp.sum(Z, axis=1) <= radius
    problem = cp.Problem(cp.Minimize(cp.sum_squares(z - np.abs(couplings)) / 2), [constraint])
    problem.solve(solver="CLARABEL")
    return problem.value, np.sign(couplings) * z.value


@pytest.mark.parametrize(
    ("edges", "couplings", "expected"),
    [
        (complete(3), [1.0, 1.0, 1.0], [0.5, 0.5, 0.5]),
        ([(0, 1), (0, 2)], [3.0, -1.0], [3 / np.sqrt(10), -1 / np.sqrt(10)]),
        ([(0, 1), (1, 2), (0, 2)], [2.0, 2.0, 0.05], [np.sqrt(0.5), np.sqrt(0.5), 0.0]),
        ([(0, 1), (2, 3)], [3.0, 0.5], [1.0, 0.5]),
    ],
)
def test_closed_forms(edges, couplings, expected):
    found = project_couplings(edges, couplings, 1.0)
    assert_allclose(found, expected, atol=1e-6)
    assert expected[-1] != 0 or found[-1] == 0  # the weak edge hits zero exactly


@pytest.mark.parametrize("norm", ["spectral", "one"])
@pytest.mark.parametrize(("edges", "n", "radius"), [(grid(4, 4), 16, 1.0), (complete(8), 8, 2.0)])
def test_against_cvxpy(edges, n, radius, norm):
    couplings = np.random.default_rng(n).standard_normal(len(edges))
    nearest = project(Ising(edges, couplings, np.ones(n)), radius, norm=norm)
    value, point = by_cvxpy(edges, couplings, n, radius, norm)
    assert_allclose(nearest.value, value, rtol=1e-6)
    assert_allclose(nearest.model.couplings, point, atol=1e-5)
    assert_allclose(nearest.model.fields, 1.0)
    assert nearest.relative_gap <= 1e-8
    assert norm_of(edges, nearest.model.couplings, n, norm) <= radius * (1 + 1e-12)
    nearest.certificate.verify(nearest.subject)
    with pytest.raises(CertificateError, match="at most"):
        nearest.certificate.verify(Subject(Ising(edges, 1.1 * couplings, np.ones(n)), nearest))


def test_without_non_negativity_the_answer_would_be_wrong():
    edges, n = grid(4, 4), 16
    couplings = np.random.default_rng(0).standard_normal(24)
    z = cp.Variable(len(edges))
    Z = sum(
        z[e] * (np.outer(np.eye(n)[i], np.eye(n)[j]) + np.outer(np.eye(n)[j], np.eye(n)[i]))
        for e, (i, j) in enumerate(edges)
    )
    free = cp.Problem(cp.Minimize(cp.sum_squares(z - np.abs(couplings))), [cp.sigma_max(Z) <= 1.0])
    free.solve(solver="CLARABEL")
    assert z.value.min() < -1e-3
    assert norm_of(edges, z.value, n, "spectral") > 1.01


@pytest.mark.parametrize("norm", ["spectral", "inf"])
def test_laws_of_projections(norm):
    rng = np.random.default_rng(3)
    edges, n, radius = random_regular(40, 3, rng=1), 40, 0.8
    a, b = rng.standard_normal((2, len(edges)))
    p, q = (project_couplings(edges, x, radius, norm=norm, tol=1e-12) for x in (a, b))
    assert np.linalg.norm(p - q) <= np.linalg.norm(a - b)
    assert_allclose(project_couplings(edges, p, radius, norm=norm), p, atol=1e-9)
    assert (np.sign(p) * np.sign(a) >= 0).all()
    assert (np.abs(p) <= np.abs(a)).all()
    inside = 0.01 * a
    assert (project_couplings(edges, inside, radius, norm=norm) == inside).all()
    assert norm_of(edges, p, n, norm) <= radius * (1 + 1e-12)
    # No feasible point, such as the one scaled down, is nearer than the certified lower bound.
    nearest = project(Ising(edges, a, np.zeros(n)), radius, norm=norm)
    scaled = a * radius / norm_of(edges, a, n, norm)
    assert nearest.certificate.details["lower bound"] <= nearest.value <= 0.5 * ((scaled - a) ** 2).sum()


@pytest.mark.parametrize("norm", ["spectral", "one"])
def test_hundreds_of_nodes_by_conjugate_gradients(norm):
    edges = random_regular(400, 6, rng=0)
    couplings = np.random.default_rng(1).standard_normal(len(edges))
    nearest = project(Ising(edges, couplings), 0.9, norm=norm)
    assert nearest.relative_gap <= 1e-8
    assert norm_of(edges, nearest.model.couplings, 400, norm) <= 0.9 * (1 + 1e-12)
    close = project(Ising(edges, couplings), 0.999 * norm_of(edges, couplings, 400, norm), norm=norm)
    assert 0 < close.value < 0.01 * nearest.value
    assert close.relative_gap <= 1e-6


def test_the_proximal_map_of_the_widest_row():
    rng = np.random.default_rng(0)
    for _ in range(8):
        table = rng.normal(size=rng.integers(1, 6, 2))
        table[rng.random(table.shape) < 0.2] = 0.5  # ties
        weight = rng.choice([0.01, 0.5, 2.0, 50.0])
        out = np.empty_like(table)
        width = shrink_rows(table, weight, out)
        assert_allclose(table - out, widest_row_prox(table, weight), atol=1e-10)
        assert_allclose(out.sum(axis=1), 0, atol=1e-12)
        assert np.abs(out).sum() <= 2 * weight + 1e-12
        assert np.ptp(table - out, axis=1).max() <= width + 1e-12


FIVE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


def five_tables():
    return np.random.default_rng(0).normal(size=(5, 3, 3))


@pytest.mark.parametrize(("norm", "expected"), [("spectral", 8.4368451), ("inf", None), ("one", None)])
def test_tables_against_cvxpy(norm, expected):
    tables = five_tables()
    given = PairwiseMRF([np.zeros(3)] * 4, FIVE, tables)
    assert norm != "spectral" or abs(dependency_norm(dependency_matrix(given, "linear")) - 2.4713585) < 1e-7
    nearest = project(given, 0.8, norm=norm)
    assert dependency_norm(dependency_matrix(nearest.model, "linear"), norm) <= 0.8 * (1 + 1e-9)
    assert nearest.relative_gap <= 1e-8
    nearest.certificate.verify(nearest.subject)
    if expected is None:
        psi, Z = [cp.Variable((3, 3)) for _ in tables], cp.Variable((4, 4), nonneg=True)
        limits = [cp.sum(Z, axis=1 if norm == "inf" else 0) <= 0.8]
        for (i, j), p in zip(FIVE, psi, strict=True):
            limits += [cp.max(p, axis=1) - cp.min(p, axis=1) <= 2 * Z[i, j]]
            limits += [cp.max(p, axis=0) - cp.min(p, axis=0) <= 2 * Z[j, i]]
        distance = sum(cp.sum_squares(p - t) for p, t in zip(psi, tables, strict=True))
        expected = cp.Problem(cp.Minimize(distance), limits).solve(solver="CLARABEL")
    assert_allclose(2 * nearest.value, expected, rtol=1e-7)


def test_tables_of_spins_give_the_couplings():
    couplings = np.array([1.0, -0.7, 0.4, 0.9, -0.2])
    tables = couplings[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = np.array(project_tables(FIVE, tables, 0.8))
    expected = project_couplings(FIVE, couplings, 0.8)
    assert_allclose(found, expected[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]]), atol=2e-5)


def test_fields_and_shapes_of_a_general_model():
    rng = np.random.default_rng(5)
    model = PairwiseMRF([np.ones(2), np.arange(3.0)], [(1, 0)], [rng.normal(size=(3, 2))])
    nearest = project(model, 0.3)
    assert_allclose(nearest.model.factors[1][1], np.arange(3.0))
    assert nearest.model.cardinalities.tolist() == [2, 3]
    inside = project(model, 100.0)
    assert inside.value == 0.0
    assert_allclose(inside.model.log_partition(), model.log_partition())


def test_refusals():
    model = Ising([(0, 1)], 2.0)
    with pytest.raises(ValueError, match="radius must be positive"):
        project(model, -1.0)
    with pytest.raises(ValueError, match="norm must be one of"):
        project(model, norm="degree")
    with pytest.raises(ValueError, match="without evidence"):
        project(model.given({0: 1}))
    with pytest.raises(TypeError, match="Ising or a PairwiseMRF"):
        project("model")
    with pytest.raises(ValueError, match="finite"):
        project_couplings([(0, 1)], [np.nan])
    assert_allclose(project_box(Ising([(0, 1), (1, 0)], [0.5, 0.2]), 0.3).couplings, [0.3])


def test_sums_of_rows_with_couplings_a_thousand_times_the_radius():
    """Multipliers are then far from zero, and those of nodes without an active edge must not creep towards them."""
    rng = np.random.default_rng(16)
    edges = complete(6)
    couplings = 1e3 * rng.normal(size=len(edges)) * 10.0 ** rng.uniform(-2, 0, len(edges))
    nearest = project(Ising(edges, couplings), 0.9, norm="one")
    expected, _ = by_cvxpy(edges, couplings / 1e3, 6, 0.9 / 1e3, "one")
    assert norm_of(nearest.model.edges, nearest.model.couplings, 6, "one") <= 0.9
    assert_allclose(nearest.value, 1e6 * expected, rtol=1e-6)
    assert nearest.certificate.bound <= 1e-8 * nearest.value
    nearest.certificate.verify(nearest.subject)


@pytest.mark.parametrize("norm", ["spectral", "one", "inf"])
def test_a_model_of_tables_without_edges_is_its_own_projection(norm):
    model = PairwiseMRF([np.array([0.0, 1.0]), np.array([0.5, 0.0, 2.0])], [], [])
    nearest = project(model, 0.9, norm=norm)
    assert nearest.value == 0.0
    assert nearest.certificate.verify(nearest.subject).upper == 0.0
    assert_allclose(nearest.model.log_partition(), model.log_partition(), rtol=1e-14)
