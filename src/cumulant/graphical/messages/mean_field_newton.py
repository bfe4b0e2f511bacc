"""Naive mean field by Newton's method in the natural parameters of the approximation."""

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from cumulant.errors import DomainError, TooWide
from cumulant.graphical.messages.incidence import Incidence, normalise
from cumulant.graphical.messages.mean_field_kernels import free_energy
from cumulant.graphical.structure import Structure
from cumulant.threads import one_blas_thread

_MOST = 4096  # parameters: a matrix of 128 MiB
_ARMIJO, _HALVINGS = 1e-4, 40
_LONGEST = 2.0  # of a change in one step: a field that jumps to where tanh is flat does not come back


@dataclass(frozen=True)
class NewtonProblem:
    """``F(q) = E_q <theta, T> + H(q)`` in ``tau``, where ``q_i(x) ~ exp tau_i(x)``, with gradient and Hessian.

    With ``s_i(x) = sum_f E_q [theta_f | x_i = x]``, ``C_i`` the covariance of the indicators of ``x_i``, and ``r_i =
    s_i - tau_i``:

    ``dF / dtau_i = C_i r_i``, and ``d^2 F / dtau_i dtau_j = C_i S_ij C_j`` for ``i != j``, where ``S_ij(x, y) =
    sum_f E_q [theta_f | x_i = x, x_j = y]``; on the diagonal stands ``-C_i`` and the change of ``C_i`` times ``r_i``.
    In the field ``t`` of a spin ``C`` is ``1 - tanh(t)^2`` (Carbonetto 2009, sections 4.1 and 4.3).
    """

    structure: Structure
    layout: Incidence
    theta: np.ndarray

    @classmethod
    def of(cls, structure: Structure, theta: np.ndarray) -> "NewtonProblem":
        """Of a model without impossible states and not too large for dense matrices."""
        layout = Incidence.of(structure)
        if not np.isfinite(theta).all():
            raise DomainError("Newton's method is for models without impossible states: use method='coordinate'")
        if layout.node_starts[-1] > _MOST:
            raise TooWide(
                f"Newton's method solves systems of {int(layout.node_starts[-1])} rows, and at most {_MOST} are "
                "allowed: use method='coordinate'"
            )
        return cls(structure, layout, theta)

    def maximise(self, tau: np.ndarray, max_steps: int, tol: float) -> tuple[np.ndarray, np.ndarray, float]:
        """A local maximum from ``tau``, the values of ``F`` on the way, and the largest entry of the last gradient."""
        tau = self._centred(tau)
        value, trace, size = self.value(tau), [], np.inf
        with one_blas_thread():
            while len(trace) < max_steps:
                gradient, hessian = self.derivatives(tau)
                size = float(np.abs(gradient).max(initial=0.0))
                if size <= tol:
                    break
                direction = self._centred(_solve(-hessian, gradient))
                direction *= min(1.0, _LONGEST / np.abs(direction).max())
                slope, step = float(gradient @ direction), 1.0
                hidden = 8.0 * np.finfo(float).eps * abs(value)  # what rounding hides of an increase near the maximum
                found = self.value(tau + direction)
                while found < value + _ARMIJO * step * slope - hidden and step > 0.5**_HALVINGS:
                    step *= 0.5
                    found = self.value(tau + step * direction)
                if found < value + _ARMIJO * step * slope - hidden:
                    break
                tau, value = tau + step * direction, found
                trace.append(value)
        return tau, np.array(trace if trace else [value]), size

    def value(self, tau: np.ndarray) -> float:
        """``F``."""
        return free_energy(normalise(tau, self.layout.node_starts), self.theta, tuple(self.layout))[0]

    def derivatives(self, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient and the dense Hessian."""
        starts = self.layout.node_starts
        q = normalise(tau, starts)
        score, pairs = np.zeros(q.size), np.zeros((q.size, q.size))
        covariance = np.zeros_like(pairs)
        parts = [slice(a, b) for a, b in itertools.pairwise(starts.tolist())]
        for part in parts:
            covariance[part, part] = np.diag(q[part]) - np.outer(q[part], q[part])
        for f in range(self.structure.n_factors):
            scope, table = self.structure.scope(f), self.structure.table(f, self.theta)
            axes = range(len(scope))
            for a in axes:
                score[parts[scope[a]]] += _expected(table, [q[parts[v]] for v in scope], (a,))
            for a, b in itertools.combinations(axes, 2):
                found = _expected(table, [q[parts[v]] for v in scope], (a, b))
                pairs[parts[scope[a]], parts[scope[b]]] += found
                pairs[parts[scope[b]], parts[scope[a]]] += found.T
        rest = score - tau
        gradient = covariance @ rest
        hessian = covariance @ pairs @ covariance - covariance
        for part in parts:
            moved = q[part] * (rest[part] - q[part] @ rest[part])
            hessian[part, part] += np.diag(moved) - np.outer(moved, q[part]) - np.outer(q[part], moved)
        return gradient, hessian

    def _centred(self, tau: np.ndarray) -> np.ndarray:
        """With mean zero over the states of each variable, along which nothing depends on it."""
        starts = self.layout.node_starts
        sizes = np.diff(starts)
        return tau - np.repeat(np.add.reduceat(tau, starts[:-1]) / sizes, sizes) if tau.size else tau


def _expected(table: np.ndarray, q: list[np.ndarray], kept: tuple[int, ...]) -> np.ndarray:
    """``E_q [table | the variables on the axes kept]``."""
    for axis in reversed(range(table.ndim)):
        if axis not in kept:
            table = np.tensordot(table, q[axis], axes=(axis, 0))
    return table


def _solve(B: np.ndarray, g: np.ndarray) -> np.ndarray:
    """``(B + shift I)^-1 g`` with the first shift of the list that makes the matrix positive definite: the smallest
    one is no zero, as ``B`` is singular along shifts of all parameters of a variable.
    """
    largest = max(float(np.abs(np.diagonal(B)).max()), 1e-300)
    shift = 1e-12 * largest
    while True:
        try:
            return cho_solve(cho_factor(B + shift * np.eye(g.size), check_finite=False), g)
        except LinAlgError:
            shift = max(2.0 * shift, 1e-3 * largest)
