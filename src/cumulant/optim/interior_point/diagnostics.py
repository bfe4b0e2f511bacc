"""What to look at after a run: constraint qualifications, the budget of steps, how central the iterate is."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cumulant import checks
from cumulant.optim.interior_point.linear_algebra import dense_curvature
from cumulant.optim.interior_point.problem import ConstrainedProblem, point, require_constrained
from cumulant.optim.interior_point.stochastic import InteriorPointSAState
from cumulant.optim.problems.base import widen
from cumulant.optim.protocol import Problem
from cumulant.precision import float64, to_numpy


@dataclass(frozen=True)
class Qualification:
    """The answer of `check_licq`: true as a condition where the gradients of the active constraints are independent.

    `strict_complementarity` and `second_order` are None where they cannot be told (no multipliers, no Hessian).

    Nocedal and Wright (2006, definition 12.4).

    >>> bool(Qualification(True, np.array([0]), 1)), bool(Qualification(False, np.array([0, 1]), 1))
    (True, False)
    """

    licq: bool
    active: np.ndarray
    rank: int
    strict_complementarity: bool | None = None
    second_order: bool | None = None

    def __bool__(self):
        return self.licq

    def __str__(self):
        words = {True: "holds", False: "FAILS", None: "not known"}
        return (
            f"{self.active.size} active constraints, their gradients of rank {self.rank}: independence "
            f"{words[self.licq]}; strict complementarity {words[self.strict_complementarity]}; second-order "
            f"sufficiency {words[self.second_order]}"
        )


def check_licq(problem: ConstrainedProblem, x: Any, z: Any = None, tol: float = 1e-6) -> Qualification:
    """Whether the gradients of the active constraints (``c_i > -tol``) are linearly independent at ``x``.

    Then the multipliers are unique. What is known of the stability of noisy directions assumes besides that every
    ``z_i - c_i > 0`` (strict complementarity) and that the Hessian of the Lagrangian is positive definite where the
    active constraints do not move (second-order sufficiency): both are looked at where `z` is given. Linear constraints
    need no qualification for the optimality conditions to be necessary. A report, never an error.

    Nocedal and Wright (2006, definition 12.4 and theorem 12.6).

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))
    >>> print(check_licq(problem, [0.0, 1.0], [1.0, 0.0]))
    1 active constraints, their gradients of rank 1: independence holds; strict complementarity holds; second-order
    sufficiency holds
    """
    require_constrained(problem)
    checks.not_negative("tol", tol)
    wide, x = widen(problem), point(problem, "x", x)
    c, J = np.asarray(wide.constraints_at(x)), np.asarray(wide.constraints.jacobian(x))
    active = np.flatnonzero(c > -tol)
    rows = J[active]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    rank = int(np.linalg.matrix_rank(rows, tol=1e-8)) if active.size else 0
    strict = second = None
    if z is not None:
        z = np.asarray(z, dtype=np.float64)
        strict = bool(np.all(z - c > tol))
        if wide.loss is not None:
            with float64():
                W = to_numpy(dense_curvature(wide.hessian(x), x.size) + wide.constraints.lagrangian_hessian(x, z))
            _, sizes, right = np.linalg.svd(rows) if active.size else (None, np.zeros(0), np.eye(x.size))
            free = right[int(np.sum(sizes > 1e-8)) :]
            second = bool(free.size == 0 or np.linalg.eigvalsh(free @ W @ free.T)[0] > 1e-10)
    return Qualification(rank == active.size, active, rank, strict, second)


class Budget(NamedTuple):
    """Sums along a run: of the realised steps, of their squares, of step times the bias of the barrier, and of the
    steps that were allowed.

    >>> Budget(3.2, 0.7, 0.1, 4.0).steps
    3.2
    """

    steps: float
    squares: float
    bias: float
    allowed: float


def rm_budget(state: InteriorPointSAState) -> Budget:
    """``sum a_k``, ``sum a_k^2`` and ``sum a_k mu_k |J^T (1/c)|`` over the *realised* steps of a run.

    The argument for convergence wants the first to diverge and the other two to converge (Carbonetto 2009, equations
    2.24 and 2.40). Conditions on the schedule do not give the first: steps that are cut for ever may have a finite sum.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds, InteriorPointSA
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> solver = InteriorPointSA(0.5, gradients=optim.gradients.Exact())
    >>> state = optim.run(solver, problem, [1.0, 1.0], max_steps=100, tol=None).state
    >>> budget = rm_budget(state)
    >>> budget.steps <= budget.allowed, round(budget.allowed, 6)
    (True, 50.0)
    """
    return Budget(*(float(each) for each in (state.total, state.squares, state.bias, state.allowed)))


@dataclass(frozen=True)
class Diagnostics:
    """Where a run stands.

    Carbonetto (2009, section 2.3) for the sums that ought to diverge or converge.

    Attributes
    ----------
    gap : float
        The surrogate duality gap ``<s, z>``: the true one only where `residual` is zero.
    mu : float
        The last barrier parameter.
    residual : float or None
        Largest entry of ``grad f + J^T z``, by the exact gradient; None for a stream.
    centrality : float
        The smallest ``s_i z_i`` over their mean: one on the central path.
    cuts, stuck : int
        Steps shorter than allowed, and of length zero.
    steps : int
    budget : Budget
    warnings : tuple of str

    Examples
    --------
    >>> report = Diagnostics(0.1, 0.01, None, 0.9, 3, 0, 50, Budget(3.2, 0.7, 0.1, 4.0), ())
    >>> print(report)
    surrogate gap 0.1, mu 0.01, centrality 0.9, residual not known
    3 of 50 steps cut; realised sum 3.2 of 4
    """

    gap: float
    mu: float
    residual: float | None
    centrality: float
    cuts: int
    stuck: int
    steps: int
    budget: Budget
    warnings: tuple[str, ...]

    def __str__(self):
        lines = [
            f"surrogate gap {self.gap:.3g}, mu {self.mu:.3g}, centrality {self.centrality:.3g}, residual "
            + ("not known" if self.residual is None else f"{self.residual:.3g}"),
            f"{self.cuts} of {self.steps} steps cut; realised sum {self.budget.steps:.3g} of {self.budget.allowed:.3g}",
        ]
        return "\n".join([*lines, *(f"warning: {each}" for each in self.warnings)])


def diagnostics(problem: ConstrainedProblem, state: InteriorPointSAState) -> Diagnostics:
    """How central the iterate of a stochastic run is, how far from stationary, and how many of its steps were cut.

    >>> from cumulant import optim
    >>> from cumulant.optim.interior_point import Bounds, InteriorPointSA
    >>> problem = ConstrainedProblem(optim.Quadratic(np.eye(2), [-1.0, 1.0]), Bounds(0.0))     # solution (0, 1)
    >>> solver = InteriorPointSA(0.5, gradients=optim.gradients.Exact())
    >>> state = optim.run(solver, problem, [1.0, 1.0], max_steps=100, tol=None).state
    >>> found = diagnostics(problem, state)
    >>> found.steps, found.warnings, found.gap < 0.1
    (100, (), True)
    """
    slack, z, x = (np.asarray(each, dtype=np.float64) for each in (state.slack, state.z, state.x))
    products = slack * z
    residual = None
    if problem.loss is not None:
        wide = widen(problem)
        residual = float(np.max(np.abs(wide.gradient(x) + wide.constraints.jacobian_transpose(x, z))))
    steps, cuts, stuck, budget = int(state.step), int(state.cuts), int(state.stuck), rm_budget(state)
    warnings = []
    if stuck:
        warnings.append(f"{stuck} steps could not be taken at all: the direction points out of the set at once")
    if steps and budget.steps < 0.01 * budget.allowed:
        warnings.append("the realised steps add up to less than a hundredth of those allowed: try separate_steps")
    return Diagnostics(
        float(products.sum()),
        float(state.mu),
        residual,
        float(products.min() / products.mean()),
        cuts,
        stuck,
        steps,
        budget,
        tuple(warnings),
    )


def l1_violation(loss: Any, w: Any, weight: Any, zero: float = 0.0) -> float:
    """How far ``w`` is from satisfying the optimality conditions of ``loss(w) + weight |w|_1``, in the largest entry.

    They are ``grad_j = -weight sign(w_j)`` where ``|w_j| > zero`` and ``|grad_j| <= weight`` elsewhere.

    Carbonetto (2009, section 2.5); Osborne, Presnell and Turlach (2000).

    >>> from cumulant import optim
    >>> l1_violation(optim.LeastSquares([[1.0]], [3.0]), [2.0], 1.0)
    0.0
    """
    checks.instance("loss", loss, Problem, "a problem of cumulant.optim")
    w, weight = checks.real_array("w", w, ndim=1), checks.real_array("weight", weight)
    if weight.shape not in ((), w.shape) or np.any(weight < 0):
        raise ValueError(f"weight must be a number, or one for each of {w.size}, not negative; got {weight!s:.60}")
    loss = widen(loss)
    g = np.asarray(loss.gradient(w))
    here = np.abs(g + weight * np.sign(w))
    return float(np.max(np.where(np.abs(w) > zero, here, np.maximum(np.abs(g) - weight, 0.0))))
