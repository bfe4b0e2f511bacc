"""The model of a fast-mixing set that is nearest in Kullback-Leibler divergence, for models that can be enumerated."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.errors import DomainError, NotConvergedError, TooWide
from cumulant.graphical.mixing.fast_mixing import CouplingSet, FastMixing
from cumulant.graphical.mixing.projected_gradient import SpectralProjectedGradient, SpectralState
from cumulant.graphical.pairwise import Ising
from cumulant.optim.driver.run import run
from cumulant.optim.protocol import Problem

_DIVERGENCES = ("kl", "reverse")
_MOST = 16  # spins: 65,536 states, each with its statistics


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
    checks.choice("divergence", divergence, _DIVERGENCES)
    checks.positive("tol", tol)
    if model.evidence:
        raise ValueError("model must be without evidence: project it first, then condition on the evidence")
    if len(np.unique(np.sort(model.edges, axis=1), axis=0)) < len(model.edges):
        raise ValueError("the edges of model must be distinct: the same pair is named twice")
    if model.n_variables > _MOST:
        raise TooWide(
            f"project_kl sums over all states and takes at most {_MOST} spins; got {model.n_variables}; "
            "project_reverse_kl is 'reverse' by sampling, and graphical.fit to draws of the model approximates 'kl'"
        )
    problem = _Enumerated(model, mixing, divergence)
    starts = [np.asarray(model.theta), np.concatenate([model.fields, np.zeros(len(model.edges))])]
    states = [_descend(problem, start, tol, max_steps) for start in starts[: 1 if divergence == "kl" else 2]]
    (theta, value, _, _, residual, _, _), steps = min(states, key=lambda found: found[0].value)
    n = model.n_variables
    return KLProjection(Ising(model.edges, theta[n:], theta[:n]), max(value, 0.0), residual, divergence, steps)


class _Enumerated(Problem):
    """The divergence as a function of ``theta``, by the statistics of every state."""

    def __init__(self, model: Ising, mixing: FastMixing, divergence: str):
        n = model.n_variables
        x = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0
        self.statistics = np.concatenate([x, x[:, model.edges[:, 0]] * x[:, model.edges[:, 1]]], axis=1)
        self.set, self.divergence = CouplingSet(mixing, model.edges, n), divergence
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

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        return self.set.project(theta)


def _descend(problem: _Enumerated, start: np.ndarray, tol: float, max_steps: int) -> tuple[SpectralState, int]:
    """The last state, and how many steps it took."""
    if not np.isfinite(problem.value_and_gradient(problem.project(start)[0])[0]):
        raise DomainError("the divergence is not a finite number: the couplings or fields of model are too large")
    result = run(SpectralProjectedGradient(tol), problem, start, max_steps=max_steps, tol=0.0)
    if result.state.residual > tol:
        raise NotConvergedError(
            f"project_kl took {result.work} steps and a projected gradient step still moves by "
            f"{result.state.residual:.2g}: raise max_steps or tol"
        )
    return result.state, result.work
