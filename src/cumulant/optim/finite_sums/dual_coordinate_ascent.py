"""Stochastic dual coordinate ascent for any smooth loss with an l2 penalty."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, Subject, issuer
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.finite_sums.block_sampling import SAMPLINGS, BlockSampler
from cumulant.optim.finite_sums.dual_coordinate_kernels import all_gaps, ascend, coins
from cumulant.optim.finite_sums.dual_coordinate_program import ascend_program, gaps_program, start_program
from cumulant.optim.finite_sums.dual_problem import certify_duality, dual_of, dual_value, primal_point
from cumulant.optim.finite_sums.finite_sum import rows_of
from cumulant.optim.finite_sums.finite_sum_kernels import all_slopes
from cumulant.optim.finite_sums.stochastic_gradient import positive_or_none
from cumulant.optim.problems.sparse_matrix import SparseMatrix, host_matrix, row_squares
from cumulant.optim.protocol import Solver
from cumulant.optim.rates import block_conditions

_STEPS = ("safe-newton", "bounded", "fixed")
_EVALUATIONS = 100


def conditions_of(problem: Any) -> np.ndarray:
    """``c_i = 1 + smoothness R_i weight / l2``, the condition numbers of the rows of a problem, shape (n,).

    What the rates of dual coordinate ascent depend on (`rates.sdca_uniform` and those after it). For classes the norm
    of the blocks is the l1 norm: ``R_i = 2 |a_i|^2``, and the log-loss has smoothness one.

    >>> from cumulant import optim
    >>> conditions_of(optim.LeastSquares([[1.0], [2.0]], [0.0, 1.0], l2=0.5))
    array([2., 5.])
    """
    rows = rows_of(problem)
    scale = problem.weight * problem.n_terms
    if rows is None:
        problem = dual_of(problem)
        return block_conditions(row_squares(problem.A), float(problem.l2) / scale, float(problem.loss.smoothness))
    smoothness = {0: 1.0, 1: 0.25, 2: 1.0, 3: 1.0 / rows.width, 4: 2.0}[rows.code]
    return block_conditions(smoothness * rows.squares, float(problem.l2) / scale)


class DualCoordinateState(NamedTuple):
    """The weights, the slopes they are made of, and what the sampler keeps."""

    x: np.ndarray
    slopes: np.ndarray
    tree: np.ndarray
    conditions: np.ndarray
    lower: float  # the dual
    updates: int
    gradients: int
    sweep: int
    seed: int


@dataclass(frozen=True)
class DualCoordinateAscent(Solver):
    """Stochastic dual coordinate ascent (Shalev-Shwartz and Zhang 2013), with adaptive sampling of rows.

    For ``P(w) = weight sum_i phi_i(<a_i, w>) + l2 |w|^2 / 2`` with ``l2 > 0``: `LeastSquares`, `Logistic`,
    `MarginLoss`, `MultinomialLogistic`, dense or sparse, by compiled loops; and any smooth loss of your own, as a
    `DualProblem` (with ``l2 r(w)`` for another strongly convex ``r`` if you like) or a `MarginLoss`, through JAX (on a
    dense copy of the matrix).

    An update draws a row ``i``, looks at the slope ``phi_i'(<a_i, w>)`` its score asks for, and moves its dual variable
    ``u_i`` towards it by a share ``gamma`` in [0, 1]; ``w`` moves along. The gap of the row, which comes with the
    slope, is kept: by it rows are drawn. The certificate is the duality gap, from the data: no assumption on the run.

    A step is a pass: ``n`` updates. The start `x0` gives a shape and nothing else: the weights are those of the slopes.

    Parameters
    ----------
    sampling : str
        ``"gap"`` (default), ``"uniform"``, ``"importance"``, ``"gap-importance"``, ``"max"`` or ``"residual"``: see
        `block_sampling`. Gaps are those of the last visit: where every row changes the gaps of all others (few dense
        columns, a small penalty) they mislead, and ``"importance"`` or ``"uniform"`` is faster.
    nonuniformity : float
        The share of draws made by `sampling`; the others are uniform. Near one, blocks whose gap has grown since their
        last visit are seldom seen again.
    step_rule : str
        ``"safe-newton"``: the dual is maximised along the way, by bracketed Newton's method. ``"bounded"``: by golden
        section. ``"fixed"``: the share ``1 / c_i``, for which the rates are proven: `rates.sdca_uniform`,
        `rates.sdca_importance`, `rates.sdca_gap`, `rates.sdca_lipschitz_gap`.
    subprecision : float
        Line searches stop when they move by less.
    epsilon : float
        Where the slopes start: this share of those at ``w = 0``. Small: at one, small penalties make weights that
        overflow; at zero, log-losses have an infinite derivative.
    updates : int, optional
        Updates in one step; ``n`` by default.
    refresh : bool
        Whether each step begins by computing the gaps of all rows, at the price of a pass. With ``updates=1`` gaps are
        exact, as `rates.sdca_gap` wants them.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.MultinomialLogistic([[1.0], [0.0], [-1.0], [-0.9]], [0, 1, 2, 1], l2=0.1)
    >>> result = optim.run(DualCoordinateAscent(), problem, np.zeros((1, 3)), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 0.842466)
    """

    sampling: str = "gap"
    nonuniformity: float = 0.5
    step_rule: str = "safe-newton"
    subprecision: float = 1e-3
    epsilon: float = 1e-2
    updates: int | None = None
    refresh: bool = False

    backend: ClassVar[str] = "host"

    def __post_init__(self):
        checks.choice("sampling", self.sampling, SAMPLINGS)
        checks.choice("step_rule", self.step_rule, _STEPS)
        if not 0 <= self.nonuniformity <= 1:
            raise ValueError(f"nonuniformity, a share, must be in [0, 1]; got {self.nonuniformity}")
        if not 0 < self.epsilon <= 1:
            raise ValueError(f"epsilon must be in (0, 1]; got {self.epsilon}")
        if not 0 < self.subprecision < 1:
            raise ValueError(f"subprecision must be in (0, 1); got {self.subprecision}")
        positive_or_none("updates", self.updates, whole=True)

    @property
    def _scheme(self) -> int:
        return SAMPLINGS.index(self.sampling)

    def _sampler(self, conditions: np.ndarray) -> BlockSampler:
        return BlockSampler(self.sampling, conditions, self.nonuniformity)

    def init(self, problem: Any, x0: Any, rng: Any) -> DualCoordinateState:
        """Slopes a little way into their domain, and the weights that belong to them."""
        rows = rows_of(problem)
        own = dual_of(problem) if rows is None else problem
        if not float(problem.l2) > 0:
            raise ValueError(f"dual coordinate ascent needs l2 > 0; got {float(problem.l2)}")
        conditions = conditions_of(problem)
        sampler = self._sampler(conditions).init(problem.n_terms, rng)
        if rows is None:
            slopes = self.epsilon * start_program(own)
        else:
            slopes, zero = np.zeros((rows.n, rows.outputs)), np.zeros((problem.A.shape[1], rows.outputs))
            all_slopes(*rows[:6], zero, slopes, zero.copy())
            slopes *= self.epsilon
        state = DualCoordinateState(
            np.zeros(problem.shape), slopes, sampler.tree, conditions, -np.inf, 0, 0, 0, sampler.seed
        )
        return self._settled(problem, state)

    def theta(self, problem: Any, state: DualCoordinateState) -> np.ndarray:
        """``weight u``, as `problem.conjugate` and `certify_duality` take it."""
        slopes = state.slopes
        if rows_of(problem) is not None and len(problem.shape) == 1:
            slopes = slopes[:, 0]
        return problem.weight * slopes

    def _settled(self, problem, state):
        """The weights from the slopes, afresh: rounding errors of many updates do not add up."""
        theta = self.theta(problem, state)
        return state._replace(x=primal_point(problem, theta), lower=dual_value(problem, theta))

    def step(self, problem: Any, state: DualCoordinateState) -> DualCoordinateState:
        """One round of updates, and the weights computed anew."""
        rows, n = rows_of(problem), problem.n_terms
        count, kind = self.updates or n, _STEPS.index(self.step_rule)
        gradients = state.gradients + count
        if self.refresh:
            state, gradients = state._replace(tree=self._fresh_tree(problem, state)), gradients + n
        if rows is None:
            own = dual_of(problem)
            dense = own.A.to_scipy().toarray() if isinstance(own.A, SparseMatrix) else host_matrix(own.A)
            x, slopes, tree = ascend_program(
                own, dense, state.x, state.slopes, state.tree, state.conditions, self.nonuniformity,
                coins(state.seed, state.sweep, count), self._scheme, kind=kind,
            )  # fmt: skip
            state = state._replace(x=x, slopes=slopes, tree=tree)
        else:
            ascend(
                *rows[:6], problem.weight / float(problem.l2), rows.squares,
                state.x.reshape(-1, rows.outputs), state.slopes, state.tree, state.conditions, self._scheme,
                self.nonuniformity, kind, self.subprecision, _EVALUATIONS, count, state.seed, state.sweep,
            )  # fmt: skip
        state = state._replace(updates=state.updates + count, gradients=gradients, sweep=state.sweep + 1)
        return self._settled(problem, state)

    def gaps(self, problem: Any, state: DualCoordinateState) -> tuple[np.ndarray, np.ndarray]:
        """The gap of every row, whose mean is the duality gap (for ``reduction="mean"``), and the norms of the
        residuals.
        """
        rows = rows_of(problem)
        if rows is None:
            return gaps_program(dual_of(problem), state.x, state.slopes)
        gaps, residuals = np.empty(rows.n), np.empty(rows.n)
        all_gaps(*rows[:6], state.x.reshape(-1, rows.outputs), state.slopes, gaps, residuals)
        return gaps, residuals

    def _fresh_tree(self, problem, state):
        gaps, residuals = self.gaps(problem, state)
        return self._sampler(state.conditions).tree(residuals if self.sampling == "residual" else gaps)

    def measure(self, problem: Any, state: DualCoordinateState) -> dict[str, float]:
        """The objective, the duality gap, the dual, and how many slopes of rows were computed."""
        value = float(problem.value(state.x))
        return {
            "value": value,
            "bound": max(value - state.lower, 0.0),
            "dual": state.lower,
            "gradients": float(state.gradients),
        }

    def certify(self, problem: Any, state: DualCoordinateState) -> Certificate:
        """The duality gap, or the bound from the gradient where it says more."""
        return certify_dual_ascent(*self.subject(problem, state))

    def subject(self, problem: Any, state: DualCoordinateState) -> Subject:
        """The problem, and the weights with their slopes."""
        return Subject(problem, (state.x, self.theta(problem, state)))


@issuer
def certify_dual_ascent(problem: Any, answer: Any) -> Certificate:
    """The duality gap at ``answer = (x, theta)``, or the bound from the gradient at ``x`` where it says more."""
    found = [certify_duality(problem, answer), certify_optimality(problem, answer[0])]
    return replace(min(found, key=lambda certificate: certificate.upper), recipe="")
