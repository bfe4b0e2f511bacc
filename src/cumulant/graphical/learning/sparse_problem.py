"""The pseudo-likelihood of all pairs at once with a penalty for each pair: convex, with few pairs at its minimum."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer, rounding
from cumulant.optim.protocol import Problem, Solver

_UNIT = 2.0**-53
_GROW, _SHRINK = 1.6, 0.8  # of the curvature that a step assumes, where it was too small, and before each step


@dataclass(frozen=True, eq=False)
class SparseProblem(Problem):
    """Minimise ``F = -mean over data of sum_i log p(x_i | rest) + l2/2 |theta|^2 + l1 sum_(i<j) c_ij |W_ij|``.

    A variable has one column of `features` (spins: its value) or one for each state (tables: its indicators), less
    their means. ``theta`` has shape (columns + 1, columns): the fields, which are those where all other variables are
    at their means, and below them the symmetric matrix of the ``W_ij``, each counted once: a coupling of two spins
    with ``c_ij = 1``, or a table with its Frobenius norm and the square root ``c_ij`` of its number of free parameters
    (Höfling and Tibshirani 2009; the penalty on groups is that of Yuan and Lin 2006).

    A missing value (a False in `observed`) has no conditional, and enters those of the others as its mean.

    Attributes
    ----------
    features : array (observations, columns)
    states : array (observations, columns)
        The features before their means were subtracted; zero where a value is missing.
    starts : int array (variables,)
        The first column of each variable.
    spins : bool
    l1, l2 : float
    allowed : bool array (variables, variables)
        Pairs that may have a ``W_ij``; symmetric, False on the diagonal.
    observed : bool array (observations, variables) or None
    """

    features: np.ndarray
    states: np.ndarray
    starts: np.ndarray
    spins: bool
    l1: float
    l2: float
    allowed: np.ndarray
    observed: np.ndarray | None = None

    convex: ClassVar[bool] = True
    differentiable: ClassVar[bool] = False
    constants_are: ClassVar[str] = "by construction"

    @classmethod
    def of(cls, x: np.ndarray, sizes: np.ndarray | None, l2: float, allowed: np.ndarray) -> "SparseProblem":
        """From spins -1 and +1 (`sizes` None), or from states 0, 1, 2, ...; NaN is missing."""
        observed = np.isfinite(x)
        if sizes is None:
            states, starts = np.where(observed, x, 0.0), np.arange(x.shape[1])
        else:
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            columns = np.concatenate([np.arange(q) for q in sizes])
            states = (np.repeat(x, sizes, axis=1) == columns).astype(np.float64)
        there = observed if sizes is None else np.repeat(observed, sizes, axis=1)
        means = states.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        features = np.where(there, states - means, 0.0)
        whole = bool(observed.all())
        return cls(features, states, starts, sizes is None, 0.0, float(l2), allowed, None if whole else observed)

    @property
    def shape(self) -> tuple[int, int]:
        """Of ``theta``."""
        return self.features.shape[1] + 1, self.features.shape[1]

    @property
    def strong_convexity(self) -> float:
        """``l2``."""
        return self.l2

    @cached_property
    def _columns(self) -> np.ndarray:
        """The variable of each column."""
        return np.repeat(np.arange(self.starts.size), np.diff(np.append(self.starts, self.features.shape[1])))

    @cached_property
    def weights(self) -> np.ndarray:
        """``c_ij``, (variables, variables)."""
        free = np.ones(self.starts.size) if self.spins else np.bincount(self._columns) - 1.0
        return np.sqrt(np.maximum(np.outer(free, free), 1.0))

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """Of every observation and column: the logarithm of a conditional probability, up to a constant."""
        return theta[0] + self.features @ theta[1:]

    def loss(self, scores: np.ndarray) -> float:
        """``-mean over data of sum_i log p(x_i | rest)``."""
        if self.spins:
            size = np.abs(scores)
            each = size + np.log1p(np.exp(-2.0 * size)) - self.states * scores
        else:
            top = np.maximum.reduceat(scores, self.starts, axis=1)
            total = np.add.reduceat(np.exp(scores - top[:, self._columns]), self.starts, axis=1)
            each = np.log(total) + top - np.add.reduceat(self.states * scores, self.starts, axis=1)
        if self.observed is not None:
            each = np.where(self.observed, each, 0.0)
        return float(each.sum() / len(scores))

    def slopes(self, scores: np.ndarray) -> np.ndarray:
        """The derivative of `loss` by the scores."""
        if self.spins:
            found = np.tanh(scores)
        else:
            found = np.exp(scores - np.maximum.reduceat(scores, self.starts, axis=1)[:, self._columns])
            found /= np.add.reduceat(found, self.starts, axis=1)[:, self._columns]
        found -= self.states
        if self.observed is not None:
            found *= self.observed if self.spins else self.observed[:, self._columns]
        return found / len(scores)

    def loss_gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Of `loss` by ``theta``, a ``W_ij`` and its transpose as one: from the slopes at its scores."""
        pairs = self.features.T @ slopes
        return np.vstack([slopes.sum(axis=0), pairs + pairs.T])

    def norms(self, pairs: np.ndarray) -> np.ndarray:
        """The norm of each block (variables, variables) of a symmetric matrix; zero where a pair is not allowed."""
        if self.spins:
            return np.abs(pairs) * self.allowed
        squares = np.add.reduceat(np.add.reduceat(pairs * pairs, self.starts, axis=0), self.starts, axis=1)
        once = np.triu(squares, 1)  # a block and its transpose are one number, to the last bit
        return np.sqrt(once + once.T) * self.allowed

    def scaled(self, pairs: np.ndarray, factors: np.ndarray) -> np.ndarray:
        """Each block of a matrix times its factor."""
        return pairs * (factors if self.spins else factors[np.ix_(self._columns, self._columns)])

    def penalty(self, theta: np.ndarray) -> float:
        """``l2/2 |theta|^2 + l1 sum c_ij |W_ij|``."""
        square = float(theta[0] @ theta[0]) + 0.5 * float((theta[1:] ** 2).sum())
        return 0.5 * self.l2 * square + 0.5 * self.l1 * float((self.weights * self.norms(theta[1:])).sum())

    def value(self, theta: np.ndarray) -> float:
        """``F``."""
        return self.loss(self.scores(theta)) + self.penalty(theta)

    def proximal(self, theta: np.ndarray, step: float) -> np.ndarray:
        """The proximal map of the penalty."""
        norms, less = self.norms(theta[1:]), step * self.l1 * self.weights
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where(norms > less, 1.0 - less / norms, 0.0)
        return np.vstack([theta[:1], self.scaled(theta[1:], factors)]) / (1.0 + step * self.l2)

    def gap(self, theta: np.ndarray, gradient: np.ndarray) -> float:
        """See `certify_sparse`: from the gradient of the loss at ``theta``."""
        W, g = theta[1:], gradient[1:]
        beyond = np.maximum(self.norms(g) - self.l1 * self.weights, 0.0)
        fields = float(((gradient[0] + self.l2 * theta[0]) ** 2).sum()) / (2.0 * self.l2)
        own = float((W * g).sum() + self.l1 * (self.weights * self.norms(W)).sum() + 0.5 * self.l2 * (W * W).sum())
        return max(fields + 0.5 * (own + float((beyond**2).sum()) / (2.0 * self.l2)), 0.0)

    def admissible(self, theta: np.ndarray) -> np.ndarray:
        """Without the ``W_ij`` of pairs that are not allowed."""
        return np.vstack([theta[:1], self.scaled(theta[1:], self.allowed.astype(np.float64))])

    def certify(self, theta: np.ndarray) -> Certificate:
        """See `certify_sparse`."""
        return certify_sparse(self, theta)

    def edges(self, theta: np.ndarray) -> np.ndarray:
        """The pairs whose ``W_ij`` is not zero."""
        return np.argwhere(np.triu(self.norms(theta[1:]) > 0))

    def along(self, l1: float, edges: np.ndarray | None = None) -> "SparseProblem":
        """With another penalty, and only these pairs allowed where some are given."""
        allowed = self.allowed
        if edges is not None:
            allowed = np.zeros_like(self.allowed)
            allowed[edges[:, 0], edges[:, 1]] = allowed[edges[:, 1], edges[:, 0]] = True
        return replace(self, l1=float(l1), allowed=allowed)


@issuer
def certify_sparse(problem: SparseProblem, theta: np.ndarray) -> Certificate:
    """``F(theta) - min F`` by the duality gap at the slopes of the loss.

    For a convex loss ``f`` with the gradient ``g`` and the penalty ``r``, ``F(theta) - min F <= <g, theta> + r(theta) +
    r*(-g)`` (Fenchel; Rockafellar 1970, section 31). It is a sum over fields, ``(g + l2 h)^2 / (2 l2)``, and pairs,
    ``<g, W> + l1 c |W| + l2/2 |W|^2 + max(|g| - l1 c, 0)^2 / (2 l2)``: no term is negative, and all are zero at the
    minimum alone. The slack bounds the rounding of ``g``, and of the sums.
    """
    theta, l2 = np.asarray(theta, dtype=np.float64), problem.l2
    convex = check(l2 > 0, "the penalty is strongly convex", f"l2 = {l2:g}")
    inside = np.array_equal(theta, problem.admissible(theta)) and np.array_equal(theta[1:], theta[1:].T)
    feasible = check(inside, "theta is symmetric, and zero where no pair is allowed")
    slopes = problem.slopes(problem.scores(theta))
    gradient = problem.loss_gradient(slopes)
    n, sizes = len(slopes), np.abs(problem.features)
    moved = 2.0 * (theta.shape[0] + 8) * _UNIT * (np.abs(theta[0]) + sizes @ np.abs(theta[1:]))
    if not problem.spins:  # a probability moves with the scores of all states of its variable
        moved = 2.0 * np.maximum.reduceat(moved, problem.starts, axis=1)[:, problem._columns]
    error = (moved + 16.0 * _UNIT) / n + 2.0 * (n + 8) * _UNIT * np.abs(slopes)
    doubt = sizes.T @ error
    doubt = np.vstack([error.sum(axis=0), doubt + doubt.T])
    reach = np.abs(theta) + (np.abs(gradient) + doubt) / l2
    slack = float((doubt * (2.0 * reach + doubt / l2)).sum())
    slack += rounding(
        reach * np.abs(gradient), problem.l1 * problem.weights.max() * np.abs(theta), l2 * theta**2, terms=64.0
    )
    return Certificate(
        "F(theta) - min F",
        problem.gap(theta, gradient),
        "Fenchel duality gap of the penalised pseudo-likelihood (Rockafellar 1970)",
        (convex, feasible, by_construction("the loss is convex: a multinomial regression for each variable")),
        slack=slack,
        details={"value": problem.value(theta), "l1": problem.l1, "pairs": float(len(problem.edges(theta)))},
    )


class PathState(NamedTuple):
    """An iterate and the point that the next gradient is taken at, each with its scores."""

    x: np.ndarray
    scores: np.ndarray
    value: float
    ahead: np.ndarray
    ahead_scores: np.ndarray
    count: int
    curvature: float


@dataclass(frozen=True)
class AcceleratedPairs(Solver):
    """Accelerated proximal gradient steps for a `SparseProblem`, with backtracking and restarts.

    As in Beck and Teboulle (2009); the momentum is dropped where the value would increase (O'Donoghue and Candès 2015).
    Scores are linear in ``theta``, so that an extrapolated point needs no product with the data of its own: a step
    costs two.

    Parameters
    ----------
    curvature : float
        What the first step assumes; it is adapted.
    """

    curvature: float = 1.0

    backend: ClassVar[str] = "host"
    every: ClassVar[int] = 5  # a gap costs half as much as a step

    def init(self, problem: SparseProblem, x0: np.ndarray, rng: Any) -> PathState:
        """At ``x0``, less what is not allowed, without momentum."""
        x0 = problem.admissible(x0)
        scores = problem.scores(x0)
        value = problem.loss(scores) + problem.penalty(x0)
        return PathState(x0, scores, value, x0, scores, 0, float(self.curvature))

    def step(self, problem: SparseProblem, state: PathState) -> PathState:
        """One step, of a length that the curvature allows."""
        at, at_scores = state.ahead, state.ahead_scores
        here, g = problem.loss(at_scores), problem.loss_gradient(problem.slopes(at_scores))
        curvature = _SHRINK * state.curvature
        while True:
            new = problem.proximal(at - g / curvature, 1.0 / curvature)
            scores, move = problem.scores(new), new - at
            loss, square = problem.loss(scores), _inner(move, move)
            if loss <= here + _inner(g, move) + 0.5 * curvature * square + 1e-13 * abs(here) or curvature > 1e12:
                break
            curvature *= _GROW
        value = loss + problem.penalty(new)
        if value > state.value + 1e-13 * abs(state.value) and state.count > 0:
            return state._replace(ahead=state.x, ahead_scores=state.scores, count=0, curvature=curvature)
        beta = state.count / (state.count + 3.0)
        return PathState(
            new, scores, value, new + beta * (new - state.x), scores + beta * (scores - state.scores),
            state.count + 1, curvature,
        )  # fmt: skip

    def measure(self, problem: SparseProblem, state: PathState) -> dict[str, float]:
        """The value and the duality gap."""
        gradient = problem.loss_gradient(problem.slopes(state.scores))
        return {"value": state.value, "bound": problem.gap(state.x, gradient)}

    def certify(self, problem: SparseProblem, state: PathState) -> Certificate:
        """The duality gap, from the data."""
        return certify_sparse(problem, state.x)


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    """Over fields and pairs, each pair once."""
    return float(a[0] @ b[0]) + 0.5 * float((a[1:] * b[1:]).sum())
