"""Spectral projected gradient: a solver for smooth problems over a set that has a projection."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError
from cumulant.optim.protocol import CertifiedProblem, Solver

_SHRINK, _DECREASE, _MEMORY = 0.5, 1e-4, 8


def proximal_bound(problem: Any, theta: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """``theta - g / mu``, its projection ``z``, and ``<g, theta - z> - mu/2 |theta - z|^2 + mu e^2 / 2``.

    By strong convexity no point of the set has a value lower than that of ``theta`` by more than this (Polyak 1963):
    ``f(z) >= f(theta) + <g, z - theta> + mu/2 |z - theta|^2``, whose minimum over the set is at the projection ``z``.
    ``e^2 / 2`` is how far the half squared distance of the computed projection can be above the smallest.
    """
    mu = float(problem.strong_convexity)
    target = theta - gradient / mu
    z, error = problem.project(target)
    move = theta - z
    return target, z, max(float(gradient @ move - 0.5 * mu * (move @ move)), 0.0) + 0.5 * mu * error**2


class SpectralState(NamedTuple):
    """The iterate with its value, gradient, bound and residual, the values of the last few, and the next length."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    bound: float
    residual: float
    recent: np.ndarray
    length: float


@dataclass(frozen=True)
class SpectralProjectedGradient(Solver):
    """Projected gradient steps of the length ``|s|^2 / <s, y>`` of Barzilai and Borwein, accepted against the worst of
    the last few values (Birgin, Martínez and Raydan 2000).

    For a problem with ``project(theta) -> (point, error)``. With strong convexity every record has the bound of
    `proximal_bound`; without, the run ends where a projected gradient step of length 1 moves by no more than `still`.
    """

    still: float = 1e-10

    backend: ClassVar[str] = "host"

    def init(self, problem: Any, x0: np.ndarray, rng: Any) -> SpectralState:
        """At the projection of `x0`."""
        theta, _ = problem.project(x0)
        value, gradient = problem.value_and_gradient(theta)
        return self._state(problem, theta, value, gradient, np.full(_MEMORY, value), 1.0)

    def step(self, problem: Any, state: SpectralState) -> SpectralState:
        """One step."""
        theta, gradient, recent = state.x, state.gradient, state.recent
        direction = problem.project(theta - state.length * gradient)[0] - theta
        slope, share = float(gradient @ direction), 1.0
        while True:
            new = theta + share * direction
            new_value, new_gradient = problem.value_and_gradient(new)
            if new_value <= max(recent.max(), state.value) + _DECREASE * share * slope or share < 1e-12:
                break
            share *= _SHRINK
        moved, turned = new - theta, new_gradient - gradient
        curved = float(moved @ turned)
        length = float(np.clip(moved @ moved / curved, 1e-3, 1e3)) if curved > 0 else 1e3
        return self._state(problem, new, new_value, new_gradient, np.append(recent[1:], state.value), length)

    def measure(self, problem: Any, state: SpectralState) -> dict[str, float]:
        """The value, its bound, and how far a projected gradient step moves."""
        stuck = float(state.residual <= self.still)
        return {"value": state.value, "bound": state.bound, "residual": state.residual, "stuck": stuck}

    def certify(self, problem: Any, state: SpectralState) -> Certificate:
        """What the problem certifies, if anything."""
        if isinstance(problem, CertifiedProblem):
            return problem.certify(state.x)
        raise CertificateError(
            "no certificate: the objective is not strongly convex", "the objective is strongly convex"
        )

    def _state(self, problem, theta, value, gradient, recent, length) -> SpectralState:
        if problem.strong_convexity > 0:
            _, z, bound = proximal_bound(problem, theta, gradient)
            residual = float(problem.strong_convexity) * float(np.linalg.norm(theta - z))
        else:
            z, bound = problem.project(theta - gradient)[0], np.inf
            residual = float(np.linalg.norm(theta - z))
        return SpectralState(theta, value, gradient, bound, residual, recent, length)
