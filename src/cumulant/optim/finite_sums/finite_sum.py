"""Means of many functions: the problem `FiniteSum` for any JAX function, and the losses of rows as compiled loops see
them.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import (
    is_concrete,
    not_negative,
    ordered_constants,
    problem_type,
    static,
    term_number,
)
from cumulant.optim.problems.enclosures import UNIT
from cumulant.optim.problems.least_squares import LeastSquares
from cumulant.optim.problems.margin_losses import LogisticLoss, SmoothedHingeLoss, SquaredHingeLoss
from cumulant.optim.problems.margin_problems import Logistic, MarginLoss
from cumulant.optim.problems.multinomial import MultinomialLogistic
from cumulant.optim.problems.sparse_matrix import SparseMatrix, host_matrix
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


@problem_type
class FiniteSum(Problem):
    """``f(x) = (1/n) sum_i term(x, data_i) + l2 |x|^2 / 2``, for any JAX function `term`.

    What `SGD`, `SGA`, `SAG`, `SAGA` and `SVRG` take besides the losses of rows that the package knows; every solver of
    smooth problems takes it too.

    The finite sums of Peyré (2021, section 8.1).

    Parameters
    ----------
    term : callable
        A module-level function of ``(x, row)`` that returns a scalar; ``row`` is the same pytree as `data`, without
        the leading axis. It is part of the compiled program, as `Objective.function` is.
    data : pytree of arrays
        All with the same leading axis, of length ``n``.
    l2 : float
        Strength of the ridge penalty, kept out of the terms: the solvers treat it exactly.
    term_smoothness : float or array (n,), optional
        Smoothness constants of the terms, without `l2`. Your word is taken for it, and so for the rest.
    mean_smoothness : float, optional
        Of the mean of the terms; at most the mean of `term_smoothness`, which is taken where this is not given.
    curvature : float
        A constant ``mu`` with ``mean of terms - mu |x|^2 / 2`` convex; 0 if unknown.
    convex : bool
        Whether every term is convex.

    Examples
    --------
    >>> from cumulant import optim
    >>> def huber(x, row):
    ...     a, y = row
    ...     return jnp.sqrt(1 + (a @ x - y) ** 2) - 1
    >>> A, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    >>> problem = FiniteSum(huber, (A, y), l2=0.1, term_smoothness=[1.0, 1.0, 2.0], convex=True)
    >>> result = optim.run(optim.SAGA(), problem, [0.0, 0.0], tol=1e-8, rng=0)
    >>> result.status, result.x.round(3)
    ('converged', array([0.978, 1.741]))
    """

    term: Callable[[Any, Any], Any] = static()
    data: Any = ()
    l2: Any = 0.0
    term_smoothness: Any = None
    mean_smoothness: Any = None
    curvature: Any = 0.0
    convex: bool = static(False)

    def __post_init__(self):
        if not callable(self.term):
            raise TypeError(f"term must be a function of (x, row); got {type(self.term).__name__}")
        leaves = jax.tree.leaves(self.data)
        if not leaves or not is_concrete(*leaves, self.l2):
            if not leaves:
                raise ValueError("data must hold at least one array, with one row for each term")
            return
        lengths = {np.shape(leaf)[0] if np.ndim(leaf) else None for leaf in leaves}
        if len(lengths) != 1 or None in lengths or 0 in lengths:
            raise ValueError(
                "the arrays of data must have one leading axis of the same length, at least 1; got shapes "
                + ", ".join(str(np.shape(leaf)) for leaf in leaves)
            )
        for leaf in leaves:
            if np.asarray(leaf).dtype.kind == "f" and not np.all(np.isfinite(np.asarray(leaf))):
                raise ValueError("data must be finite; it holds NaN or infinity")
        not_negative(self.l2, "l2")
        not_negative(self.curvature, "curvature")
        if self.term_smoothness is not None:
            constants = np.asarray(self.term_smoothness, dtype=np.float64)
            if constants.shape not in ((), (self.n_terms,)) or not np.all(np.isfinite(constants) & (constants >= 0)):
                raise ValueError(
                    f"term_smoothness must be a number or {self.n_terms} of them, finite and not negative; got shape "
                    f"{constants.shape}"
                )
            object.__setattr__(self, "term_smoothness", constants)
        if self.mean_smoothness is not None:
            not_negative(self.mean_smoothness, "mean_smoothness")
        ordered_constants(self.smoothness, self.strong_convexity)
        if not isinstance(leaves[0], jax.Array):
            object.__setattr__(self, "data", jax.tree.map(_wide, self.data))

    @property
    def n_terms(self) -> int:
        """The number of terms."""
        return np.shape(jax.tree.leaves(self.data)[0])[0]

    @property
    def smoothness(self) -> float | None:
        """``L`` of ``f``, where it is known."""
        if self.mean_smoothness is not None:
            return float(self.mean_smoothness) + float(self.l2)
        return None if self.term_smoothness is None else float(np.mean(self.term_smoothness)) + float(self.l2)

    @property
    def strong_convexity(self) -> float:
        """``mu = curvature + l2``; the second counts where the terms are convex."""
        known = self.convex or float(self.curvature) > 0
        return float(self.curvature) + float(self.l2) if known else 0.0

    @precise
    def value(self, x):
        """``f(x)``."""
        return jnp.mean(jax.vmap(self.term, in_axes=(None, 0))(x, self.data)) + self.l2 * jnp.vdot(x, x) / 2

    def term_gradient(self, x: Any, i: Any) -> Any:
        """``grad term(x, data_i) + l2 x``, of which `gradient` is the mean over ``i = 0, ..., n - 1``.

        `i` is a number, or a vector of them, with a gradient for each on the first axis.
        """
        term_number(i, self.n_terms)
        return self._term_gradients(x, i)

    @precise
    def _term_gradients(self, x, i):
        def one(i):
            row = jax.tree.map(lambda leaf: jnp.asarray(leaf)[i], self.data)
            return jax.grad(self.term)(x, row) + self.l2 * x

        return jax.vmap(one)(i) if jnp.ndim(i) else one(i)

    def gradient_rounding(self, x) -> float:
        """An allowance for the rounding of the gradient in float64; the terms are yours, so this is not a theorem."""
        scale = 0.0 if self.smoothness is None else self.smoothness
        size = float(np.linalg.norm(self.gradient(x))) + scale * float(np.linalg.norm(x))
        return (self.n_terms + 64) * UNIT * size


def _wide(leaf: Any) -> np.ndarray:
    leaf = np.asarray(leaf)
    return leaf.astype(np.float64) if leaf.dtype.kind == "f" else leaf


# Losses of rows, for compiled loops -----------------------------------------------------------------------------------


class Rows(NamedTuple):
    """``f(x) = (scale/n) sum_i phi(<a_i, x>; target_i) + l2 |x|^2 / 2`` by rows: a CSR matrix, and the loss by number.

    Codes: 0 square, 1 logistic, 2 squared hinge, 3 smoothed hinge of `width`, 4 log-sum-exp over classes.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    targets: np.ndarray
    code: int
    width: float
    outputs: int
    scale: float
    l2: float
    squares: np.ndarray  # |a_i|^2

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.targets)


_KNOWN: "weakref.WeakKeyDictionary[Any, Rows]" = weakref.WeakKeyDictionary()
_CONVERTED: "weakref.WeakKeyDictionary[Any, FiniteSum]" = weakref.WeakKeyDictionary()


def rows_of(problem: Any) -> Rows | None:
    """The rows of a problem whose loss the compiled loops know; None for another. Kept as long as the problem is."""
    if not isinstance(problem, LeastSquares | Logistic | MarginLoss | MultinomialLogistic):
        return None
    if problem not in _KNOWN:
        code, width = _loss_code(problem)
        if code < 0:
            return None
        _KNOWN[problem] = _made_rows(problem, code, width)
    return _KNOWN[problem]


def _loss_code(problem: Any) -> tuple[int, float]:
    if isinstance(problem, LeastSquares):
        return 0, 1.0
    if isinstance(problem, MultinomialLogistic):
        return 4, 1.0
    loss = problem.loss
    if type(loss) is SmoothedHingeLoss:
        return 3, float(loss.width)
    return {LogisticLoss: 1, SquaredHingeLoss: 2}.get(type(loss), -1), 1.0


def _made_rows(problem: Any, code: int, width: float) -> Rows:
    matrix = host_matrix(problem.A)
    n, p = matrix.shape
    if isinstance(problem.A, SparseMatrix):
        indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    else:
        indptr, indices, data = np.arange(n + 1) * p, np.tile(np.arange(p), n), np.ascontiguousarray(matrix).ravel()
    outputs = problem.shape[1] if code == 4 else 1
    squares = np.add.reduceat(np.append(data**2, 0.0), indptr[:-1]) * (np.diff(indptr) > 0)
    return Rows(
        indptr.astype(np.int64), indices.astype(np.int32), np.asarray(data, np.float64),
        np.asarray(problem.y, np.float64), code, width, outputs, problem.weight * n, float(problem.l2), squares,
    )  # fmt: skip


@dataclass(frozen=True)
class _MarginTerm:
    """``phi(y <a, x>)`` for a loss of the user; equal for equal losses, so that it is compiled once."""

    loss: Any
    scale: float

    def __call__(self, x, row):
        a, y = row
        return self.scale * self.loss.value(y * (a @ x))


def finite_sum(problem: Any) -> FiniteSum:
    """The same problem as a `FiniteSum`: a `MarginLoss` with a loss of your own, on a dense matrix."""
    if isinstance(problem, FiniteSum):
        return problem
    if not isinstance(problem, MarginLoss):
        raise TypeError(
            "stochastic gradient methods take LeastSquares, Logistic, MarginLoss, MultinomialLogistic or FiniteSum; "
            f"got {type(problem).__name__}"
        )
    if isinstance(problem.A, SparseMatrix):
        raise TypeError("a loss of your own needs a dense matrix here: A.toarray()")
    if problem not in _CONVERTED:
        _CONVERTED[problem] = _converted(problem)
    return _CONVERTED[problem]


def _converted(problem: MarginLoss) -> FiniteSum:
    scale = problem.weight * problem.n_terms
    constants = scale * problem.loss.largest_curvature * np.asarray(np.sum(np.asarray(problem.A) ** 2, axis=1))
    return FiniteSum(
        _MarginTerm(problem.loss, scale), (problem.A, problem.y), problem.l2, constants,
        problem.smoothness - float(problem.l2), convex=True,
    )  # fmt: skip


def term_constants(problem: Any) -> np.ndarray:
    """``L_i`` of the ``f_i`` in ``f = (1/n) sum f_i``, the penalty among them, shape (n,)."""
    if rows_of(problem) is not None:
        return problem.weight * problem.n_terms * np.asarray(problem.term_smoothness)
    problem = finite_sum(problem)
    if problem.term_smoothness is None:
        raise ValueError(
            "this step size needs the smoothness of the terms: give term_smoothness to FiniteSum, or a step size"
        )
    return np.broadcast_to(problem.term_smoothness, (problem.n_terms,)) + float(problem.l2)
