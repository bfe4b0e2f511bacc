"""Lattices, slowly: energies of all states, the determinants of Kac and Ward on a torus."""

import itertools

import numpy as np


def energies_of_all_states(model, kind=float):
    """``-sum J_ij x_i x_j`` of every state."""
    pairs = [(i, j, kind(J)) for (i, j), J in zip(model.edges.tolist(), model.couplings.tolist(), strict=True)]
    states = itertools.product((-1, 1), repeat=model.n_variables)
    return [-sum((J * (x[i] * x[j]) for i, j, J in pairs), kind(0)) for x in states]


def torus_by_determinants(rows, columns, couplings):
    """``log Z`` on a torus, bonds by site, right and then down, by four determinants in complex numbers.

    ``Z = 2^n prod cosh J (-P_++ + P_+- + P_-+ + P_--) / 2`` with ``P = det(1 - T)^(1/2)``, whose sign is that of
    ``(-1)^(k / 2)`` for ``k`` real eigenvalues of ``T`` beyond one.
    """
    steps = ((0, 1), (1, 0), (0, -1), (-1, 0))  # right, down, left, up
    n = rows * columns
    J = np.asarray(couplings).reshape(rows, columns, 2)
    roots = []
    for seams in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        T = np.zeros((4 * n, 4 * n), dtype=complex)
        for r, c, d in itertools.product(range(rows), range(columns), range(4)):
            dr, dc = steps[d]
            to = ((r + dr) % rows, (c + dc) % columns)
            bond = J[r, c, d] if d < 2 else J[(*to, d - 2)]
            weight = np.tanh(bond)
            if (dc == 1 and c == columns - 1) or (dc == -1 and c == 0):
                weight = seams[0] * weight
            if (dr == 1 and r == rows - 1) or (dr == -1 and r == 0):
                weight = seams[1] * weight
            for turn in (-1, 0, 1):
                after = 4 * (to[0] * columns + to[1]) + (d + turn) % 4
                T[4 * (r * columns + c) + d, after] = weight * np.exp(0.25j * np.pi * turn)
        eigenvalues = np.linalg.eigvals(T)
        real = eigenvalues[np.abs(eigenvalues.imag) < 1e-6].real
        sign, log = np.linalg.slogdet(np.eye(4 * n) - T)
        roots.append((-1.0) ** (np.sum(real > 1) // 2) * np.exp(0.5 * log) * (1 if sign.real > 0 else np.nan))
    total = 0.5 * (-roots[0] + sum(roots[1:]))
    return n * np.log(2.0) + np.sum(np.logaddexp(J, -J) - np.log(2.0)) + np.log(total)
