"""Projections onto fast-mixing sets: times and certified gaps, against a conic solver where that can do the size.

Ising: a random graph of 1,000 nodes and 3,000 edges with standard normal couplings, spectral norm at most 0.9; promised
is a relative duality gap of 1e-8 in 5 s. The peer is L-BFGS-B on the dual in all multipliers with an eigenvalue
decomposition in each step (Domke and Liu 2013), given 60 nodes and 180 edges, and stopped at its own tolerance.
Tables: 4 nodes, 5 edges, 3 states, radius 0.8; promised is 1 s. The peer is CVXPY with Clarabel on both. Each side must
find the same objective to 1e-5.
"""

import time

import networkx as nx
import numpy as np
from scipy.optimize import minimize

from benchmarks.timing import Row, race, seconds
from cumulant.graphical import Ising, PairwiseMRF, project

FIVE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


def run() -> list[Row]:
    big = random_ising(1000, 3000)
    times, answer = [], project(big, 0.9)
    for _ in range(5):
        start = time.perf_counter()
        answer = project(big, 0.9)
        times.append(time.perf_counter() - start)
    took, low, high = np.median(times), min(times), max(times)
    fine = took < 5 and answer.relative_gap <= 1e-8
    print(
        f"spectral, 1000 nodes, 3000 edges: {took:.3f} s [{low:.3f}, {high:.3f}], relative gap "
        f"{answer.relative_gap:.1e}; bar 5 s and 1e-8: {'reached' if fine else 'MISSED'}"
    )
    tables = five_tables()
    took = min(seconds(lambda: project(tables, 0.8)) for _ in range(5))
    answer = project(tables, 0.8)
    print(
        f"tables, 5 edges of 3 x 3: {took:.3f} s, relative gap {answer.relative_gap:.1e}, sum of squares "
        f"{2 * answer.value:.7f}; bar 1 s: {'reached' if took < 1 else 'MISSED'}"
    )
    small = random_ising(60, 180)
    rows = [versus("spectral, 60 nodes, 180 edges", small, 0.9, "L-BFGS-B with eigh", by_eigenvalues)]
    try:
        import cvxpy  # noqa: F401
    except ImportError:
        print("projections: CVXPY left out; it is not installed: pip install cvxpy")
        return rows
    rows.append(versus("spectral, 60 nodes, 180 edges", small, 0.9, "CVXPY, Clarabel", by_cvxpy))
    rows.append(versus("tables, 5 edges of 3 x 3", tables, 0.8, "CVXPY, Clarabel", tables_by_cvxpy))
    return rows


def random_ising(n: int, m: int) -> Ising:
    edges = np.array(nx.gnm_random_graph(n, m, seed=0).edges)
    return Ising(edges, np.random.default_rng(0).standard_normal(m), np.zeros(n))


def five_tables() -> PairwiseMRF:
    return PairwiseMRF([np.zeros(3)] * 4, FIVE, np.random.default_rng(0).normal(size=(5, 3, 3)))


def versus(name: str, model, radius: float, peer: str, solve) -> Row:
    mine, theirs = project(model, radius).value, solve(model, radius)
    if not abs(mine - theirs) <= 1e-5 * mine:
        raise AssertionError(f"{name}: ours {mine:.9g}, {peer} {theirs:.9g}")
    return race(name, peer, lambda: project(model, radius), lambda: solve(model, radius), repeats=3)


def by_eigenvalues(model: Ising, radius: float) -> float:
    """The dual of Domke and Liu: one multiplier for each entry, free off the edges and at most zero on them."""
    n, a = model.n_variables, np.abs(model.couplings)
    A, mask = np.zeros((n, n)), np.zeros((n, n), bool)
    for (i, j), value in zip(model.edges, a, strict=True):
        A[i, j] = A[j, i] = value
        mask[i, j] = mask[j, i] = True
    rows, columns = np.triu_indices(n)
    double = np.where(rows == columns, 1.0, 2.0)

    def clip(upper):
        Lam = np.zeros((n, n))
        Lam[rows, columns] = Lam[columns, rows] = upper
        values, vectors = np.linalg.eigh(A - Lam)
        return Lam, (vectors * np.clip(values, -radius, radius)) @ vectors.T

    def negative_dual(upper):
        Lam, Z = clip(upper)
        return -(0.5 * ((Z - A) ** 2).sum() + (Lam * Z).sum()), -double * Z[rows, columns]

    bounds = [(None, 0.0) if mask[i, j] else (None, None) for i, j in zip(rows, columns, strict=True)]
    found = minimize(
        negative_dual, np.zeros(rows.size), jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 5000, "maxfun": 10000, "gtol": 1e-8, "ftol": 1e-13},
    )  # fmt: skip
    Z = np.maximum(np.where(mask, clip(found.x)[1], 0.0), 0.0)
    Z *= min(1.0, radius / np.linalg.norm(Z, 2))
    return 0.25 * float(((Z - A) ** 2).sum())


def by_cvxpy(model: Ising, radius: float) -> float:
    import cvxpy as cp
    from scipy.sparse import coo_array

    n, m = model.n_variables, len(model.edges)
    i, j = model.edges.T
    places = np.concatenate([i * n + j, j * n + i])
    spread = coo_array((np.ones(2 * m), (places, np.tile(np.arange(m), 2))), shape=(n * n, m)).tocsr()
    z = cp.Variable(m, nonneg=True)
    Z = cp.reshape(spread @ z, (n, n), order="C")
    distance = cp.sum_squares(z - np.abs(model.couplings)) / 2
    problem = cp.Problem(cp.Minimize(distance), [radius * np.eye(n) - (Z + Z.T) / 2 >> 0])
    return float(problem.solve(solver="CLARABEL"))


def tables_by_cvxpy(model: PairwiseMRF, radius: float) -> float:
    import cvxpy as cp

    tables = [table for scope, table in model.factors if len(scope) == 2]
    psi, Z = [cp.Variable((3, 3)) for _ in tables], cp.Variable((4, 4), nonneg=True)
    limits = [cp.sigma_max(Z) <= radius]
    for (i, j), p in zip(FIVE, psi, strict=True):
        limits += [cp.max(p, axis=1) - cp.min(p, axis=1) <= 2 * Z[i, j]]
        limits += [cp.max(p, axis=0) - cp.min(p, axis=0) <= 2 * Z[j, i]]
    distance = sum(cp.sum_squares(p - t) for p, t in zip(psi, tables, strict=True))
    return float(cp.Problem(cp.Minimize(distance / 2), limits).solve(solver="CLARABEL"))
