"""The model of a fast-mixing set that is nearest in Kullback-Leibler divergence, for models that can be enumerated."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError, DomainError, NotConvergedError, TooWide
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising
from cumulant.optim.driver.run import run
from cumulant.optim.protocol import Problem, Solver

__all__ = ["KLProjection", "project_kl"]

_DIVERGENCES = ("kl", "reverse")
_MOST = 16  # spins: 65,536 states, each with its statistics
_SHRINK, _DECREASE, _MEMORY = 0.5, 1e-4, 8


@dataclass(frozen=True)
class KLProjection:
    """The answer of `project_kl`.

    Attributes
    ----------
    model : Ising
        In the set, whatever `residual` is.
    value : float
        The divergence between the model that was given and this one, in nats.
    residual : float
        How far one projected gradient step of length 1 moves: zero at a stationary point, and only there.
    divergence : str
    steps : int
        Taken from the start that ended lowest.
    """

    model: Ising
    value: float
    residual: float
    divergence: str
    steps: int


def project_kl(
    model: Any, mixing: FastMixing, divergence: str = "kl", *, tol: float = 1e-7, max_steps: int = 2000
) -> KLProjection:
    """Minimise a divergence from `model` over couplings in a fast-mixing set, and over all fields.

    With ``psi`` the parameters given, ``mu`` the mean statistics and ``Sigma`` their covariance:

    * ``"kl"``: ``KL(p_psi || p_theta) = A(theta) - A(psi) - <theta - psi, mu(psi)>``, gradient ``mu(theta) - mu(psi)``.
      It is convex: a stationary point is a minimum. This is maximum likelihood in the set, with `model` as the data.
    * ``"reverse"``: ``KL(p_theta || p_psi) = A(psi) - A(theta) - <psi - theta, mu(theta)>``, gradient
      ``Sigma(theta) (theta - psi)``. It is not convex: what is found is the lower of the stationary points reached from
      the Euclidean projection and from independent spins, and may not be a minimum over the whole set.

    Spectral projected gradient (Birgin, Martínez and Raydan 2000), every expectation a sum over all states; there is no
    certificate, as neither divergence is strongly convex: `residual` says how stationary the answer is.

    Parameters
    ----------
    model : Ising
        Of at most 16 spins, without evidence, each pair joined once.
    mixing : FastMixing
        The set.
    divergence : str
        ``"kl"`` or ``"reverse"``.
    tol : float
        The `residual` to be reached.
    max_steps : int
        From each start; `NotConvergedError` where they do not suffice.

    Examples
    --------
    >>> given = Ising([(0, 1)], 0.8, [0.5, 0.0])
    >>> for divergence in ("kl", "reverse"):
    ...     nearest = project_kl(given, FastMixing(0.4, "box"), divergence)
    ...     print(nearest.model.couplings.round(4), nearest.model.fields.round(4), round(nearest.value, 4))
    [0.4] [0.4402 0.1585] 0.0425
    [0.4] [0.495  0.1633] 0.0482

    References
    ----------
    Domke and Liu (2013), "Projecting Ising model parameters for fast mixing".
    """
    if not isinstance(model, Ising):
        raise TypeError(f"model must be an Ising model; got {type(model).__name__}")
    if not isinstance(mixing, FastMixing):
        raise TypeError(f"mixing must be a FastMixing set; got {type(mixing).__name__}")
    if divergence not in _DIVERGENCES:
        raise ValueError(f"divergence must be 'kl' or 'reverse'; got {divergence!r}")
    if model.evidence:
        raise ValueError("model must be without evidence: project it first, then condition on the evidence")
    if len(np.unique(np.sort(model.edges, axis=1), axis=0)) < len(model.edges):
        raise ValueError("the edges of model must be distinct: the same pair is named twice")
    if model.n_variables > _MOST:
        raise TooWide(
            f"project_kl sums over all states and takes at most {_MOST} spins; got {model.n_variables}; "
            "graphical.project is the Euclidean projection, and graphical.fit to draws of the model approximates 'kl'"
        )
    problem = _Enumerated(model, mixing, divergence)
    starts = [np.asarray(model.theta), np.concatenate([model.fields, np.zeros(len(model.edges))])]
    states = [_descend(problem, start, tol, max_steps) for start in starts[: 1 if divergence == "kl" else 2]]
    theta, value, _, residual, _, _, steps = min(states, key=lambda state: state.value)
    n = model.n_variables
    return KLProjection(Ising(model.edges, theta[n:], theta[:n]), max(value, 0.0), residual, divergence, steps)


class _Enumerated(Problem):
    """The divergence as a function of ``theta``, by the statistics of every state."""

    def __init__(self, model: Ising, mixing: FastMixing, divergence: str):
        n = model.n_variables
        x = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0
        self.statistics = np.concatenate([x, x[:, model.edges[:, 0]] * x[:, model.edges[:, 1]]], axis=1)
        self.n, self.edges, self.mixing, self.divergence = n, model.edges, mixing, divergence
        self.given = np.asarray(model.theta)
        self.log_z, self.p = self._distribution(self.given)
        self.mean = self.p @ self.statistics

    def _distribution(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        score = self.statistics @ theta
        top = score.max()
        weight = np.exp(score - top)
        return float(top + np.log(weight.sum())), weight / weight.sum()

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        log_z, p = self._distribution(theta)
        if self.divergence == "kl":
            return log_z - self.log_z - float((theta - self.given) @ self.mean), p @ self.statistics - self.mean
        mean = p @ self.statistics
        tilt = (self.statistics - mean) @ (theta - self.given)
        return self.log_z - log_z + float((theta - self.given) @ mean), (p * tilt) @ self.statistics

    def project(self, theta: np.ndarray) -> np.ndarray:
        couplings, _ = self.mixing.project(self.edges, theta[self.n :], self.n)
        return np.concatenate([theta[: self.n], couplings])


class SpectralState(NamedTuple):
    """The iterate with its value, gradient and residual, the values of the last few, and the length of a step."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    residual: float
    recent: np.ndarray
    length: float
    count: int


@dataclass(frozen=True)
class SpectralProjectedGradient(Solver):
    """Projected gradient steps of the length ``|s|^2 / <s, y>`` of Barzilai and Borwein, accepted against the worst of
    the last few values (Birgin, Martínez and Raydan 2000). For any problem with `value_and_gradient` and `project`.

    The run ends where a projected gradient step of length 1 moves by no more than `tol`.
    """

    tol: float

    backend: ClassVar[str] = "host"

    def init(self, problem: Any, x0: np.ndarray, rng: Any) -> SpectralState:
        """At the projection of `x0`."""
        theta = problem.project(x0)
        value, gradient = problem.value_and_gradient(theta)
        return self._state(problem, theta, value, gradient, np.full(_MEMORY, value), 1.0, 0)

    def step(self, problem: Any, state: SpectralState) -> SpectralState:
        """One step."""
        theta, value, gradient, _, recent, length, count = state
        direction = problem.project(theta - length * gradient) - theta
        slope, share = float(gradient @ direction), 1.0
        while True:
            new = theta + share * direction
            new_value, new_gradient = problem.value_and_gradient(new)
            if new_value <= max(recent.max(), value) + _DECREASE * share * slope or share < 1e-12:
                break
            share *= _SHRINK
        moved, turned = new - theta, new_gradient - gradient
        curved = float(moved @ turned)
        length = float(np.clip(moved @ moved / curved, 1e-3, 1e3)) if curved > 0 else 1e3
        return self._state(problem, new, new_value, new_gradient, np.append(recent[1:], value), length, count + 1)

    def measure(self, problem: Any, state: SpectralState) -> dict[str, float]:
        """The value, and how far a projected gradient step of length 1 moves."""
        return {"value": state.value, "residual": state.residual, "stuck": float(state.residual <= self.tol)}

    def certify(self, problem: Any, state: SpectralState) -> Certificate:
        """Nothing is certified."""
        raise CertificateError(
            "no certificate: the divergence is not strongly convex", "the objective is strongly convex"
        )

    def _state(self, problem, theta, value, gradient, recent, length, count) -> SpectralState:
        residual = float(np.linalg.norm(problem.project(theta - gradient) - theta))
        return SpectralState(theta, value, gradient, residual, recent, length, count)


def _descend(problem: _Enumerated, start: np.ndarray, tol: float, max_steps: int) -> SpectralState:
    if not np.isfinite(problem.value_and_gradient(problem.project(start))[0]):
        raise DomainError("the divergence is not a finite number: the couplings or fields of model are too large")
    state = run(SpectralProjectedGradient(tol), problem, start, max_steps=max_steps, tol=0.0).state
    if state.residual > tol:
        raise NotConvergedError(
            f"project_kl took {state.count} steps and a projected gradient step still moves by {state.residual:.2g}: "
            "raise max_steps or tol"
        )
    return state
