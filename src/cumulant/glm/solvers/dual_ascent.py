"""Stochastic dual coordinate ascent for generalised linear models, with every sampling of `optim.block_sampling`."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from cumulant.certificates import Certificate, Subject
from cumulant.glm.objective.certify import certify_glm_gap
from cumulant.glm.objective.design import DenseDesign, dot, unsigned
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.losses import NamedLoss
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.solvers.dual_ascent_kernels import ascend
from cumulant.optim.finite_sums.block_sampling import SAMPLINGS, BlockSampler
from cumulant.optim.protocol import Solver

_SMOOTHNESS = {0: 0.25, 1: 1.0, 2: 1.0, 3: 1.0}  # of the loss; for Poisson and gamma a scale, since there is none


class AscentState(NamedTuple):
    """The best weights so far and their objective; the dual slopes and the intercept; what the sampler keeps."""

    x: np.ndarray
    value: float
    intercept: float
    slopes: np.ndarray
    v: np.ndarray  # -X^T (p s) / l2
    tree: np.ndarray
    norms: np.ndarray
    importance: np.ndarray
    seed: int
    epochs: int
    lower: float
    indptr: np.ndarray  # the features by rows, less `centre`
    indices: np.ndarray
    data: np.ndarray
    centre: np.ndarray


@dataclass(frozen=True)
class GLMDualAscent(Solver):
    """Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013) for ``l2 > 0`` and any ``l1``.

    The dual variable of a row is the slope of its loss. An update maximises the dual over one of them, exactly: with
    ``c = p_i |x_i|^2 / l2`` the new slope is ``phi'(t)`` at the root ``t`` of ``t + c (phi'(t) - s_i) = eta_i``, an
    equation that has one root for every convex loss. A step is an epoch: as many updates as there are rows. Between
    epochs the intercept is fitted to the weights, dense features being centred for that; the gap is that of balanced
    slopes.

    Parameters
    ----------
    sampling : str
        ``"uniform"``, ``"importance"``, ``"gap"``, ``"gap-importance"``, ``"max"`` or ``"residual"``:
        the samplers of `cumulant.optim.finite_sums.block_sampling`.
    nonuniformity : float
        The share of draws that are not uniform.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.glm import GLMProblem, design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> result = optim.run(GLMDualAscent(), problem, [0.0], tol=1e-8, rng=0)
    >>> result.status, result.x.round(4)
    ('converged', array([1.0667]))
    """

    sampling: str = "uniform"
    nonuniformity: float = 0.8

    backend: ClassVar[str] = "host"

    def init(self, problem: GLMProblem, x0: Any, rng: Any) -> AscentState:
        """Slopes of zero: every mean is its observation, and the weights are zero."""
        loss = problem.loss
        if not isinstance(loss, NamedLoss):
            raise ValueError("solver='sdca' is for the bernoulli, binomial, poisson, normal and gamma families")
        if not problem.l2 > 0:
            raise ValueError(f"solver='sdca' needs l2 > 0; got {problem.l2}")
        columns = problem.design.shape[1] - problem.design.intercept
        rows, centre = problem.design.by_rows, np.zeros(columns)
        if problem.design.intercept and isinstance(problem.design, DenseDesign):
            # Features less their means leave the intercept little to do with the weights: the two converge together.
            centre = problem.weights @ problem.design.X
            rows = sp.csr_matrix(problem.design.X - centre)
        norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        conditions = 1.0 + problem.weights * norms * (_SMOOTHNESS[loss.code] * loss.scale) / problem.l2
        sampler = BlockSampler(self.sampling, conditions, self.nonuniformity).init(problem.n_terms, rng)
        x = np.zeros(problem.shape)
        if problem.design.intercept:
            x[-1] = fitted_intercept(problem, problem.offset, float(loss.start(problem.weights)[0]))
        slopes = np.zeros(problem.n_terms)
        intercept = float(x[-1]) if problem.design.intercept else 0.0
        return AscentState(
            x, problem.value(x), intercept, slopes, np.zeros(columns), sampler.tree, norms, conditions, sampler.seed,
            0, problem.lower_bound(slopes), *unsigned(rows), centre,
        )  # fmt: skip

    def step(self, problem: GLMProblem, state: AscentState) -> AscentState:
        """One epoch, the best intercept, and the gap."""
        loss = problem.loss
        assert isinstance(loss, NamedLoss)
        threshold, has_intercept = problem.l1 / problem.l2, problem.design.intercept
        intercept = state.intercept + float(soft_threshold(state.v, threshold) @ state.centre)
        ascend(
            loss.code, loss.scale, state.indptr, state.indices, state.data, loss.y, problem.offset, problem.weights,
            intercept, state.slopes, state.v, problem.l1, problem.l2, state.norms, state.tree, state.importance,
            SAMPLINGS.index(self.sampling), self.nonuniformity, problem.n_terms, state.seed, state.epochs,
        )  # fmt: skip
        w = soft_threshold(state.v, threshold)
        x, intercept = np.append(w, 0.0) if has_intercept else w, 0.0
        if has_intercept:
            x[-1] = intercept = fitted_intercept(problem, problem.scores(x), state.intercept)
        lower, value = max(state.lower, problem.lower_bound(state.slopes)), problem.value(x)
        state = state._replace(epochs=state.epochs + 1, lower=lower)
        if value <= state.value:
            return state._replace(x=x, value=value, intercept=intercept)
        # An intercept that is fitted to worse weights leads further away where the loss is exponential: keep the best,
        # as that of the centred features.
        return state._replace(
            intercept=float(state.x[-1] + (state.x[:-1] - w) @ state.centre) if has_intercept else 0.0
        )

    def measure(self, problem: GLMProblem, state: AscentState) -> dict[str, float]:
        """The objective and the duality gap."""
        return {
            "value": state.value,
            "bound": state.value - state.lower,
            "passes": float(state.epochs),
            "stuck": 0.0,
        }

    def certify(self, problem: GLMProblem, state: AscentState) -> Certificate:
        """By duality."""
        return certify_glm_gap(*self.subject(problem, state))

    def subject(self, problem: GLMProblem, state: AscentState) -> Subject:
        """The weights, with the slopes of the ascent, or those at the weights where their bound is better."""
        own = problem.loss.terms(problem.scores(state.x))[1]
        return Subject(problem, PrimalDual(state.x, max((state.slopes, own), key=problem.lower_bound)))


def soft_threshold(v: np.ndarray, threshold: float) -> np.ndarray:
    """``sign(v) (|v| - threshold)_+``."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


def fitted_intercept(problem: GLMProblem, scores: np.ndarray, start: float) -> float:
    """The intercept that minimises the loss of given scores (which have none yet), by safeguarded Newton steps."""
    b = start
    losses, slope, curvature = problem.loss.terms(scores + b)
    value = dot(problem.weights, losses)
    for _ in range(50):
        gradient, bend = dot(problem.weights, slope), dot(problem.weights, curvature)
        step, length = -gradient / max(bend, 1e-12), 1.0
        while length > 1e-8:
            losses, slope, curvature = problem.loss.terms(scores + b + length * step)
            trial = dot(problem.weights, losses)
            if trial < value:
                break
            length *= 0.5
        else:
            return b
        b, value = b + length * step, trial
        if abs(step) <= 1e-12 * (1.0 + abs(b)):
            break
    return b
