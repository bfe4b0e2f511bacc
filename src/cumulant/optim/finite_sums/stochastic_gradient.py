"""Stochastic gradient descent, with its last iterate (`SGD`) or the mean of all of them (`SGA`) as the answer."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import precision, randomness
from cumulant.certificates import Certificate
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.certify.self_concordance import self_concordant_gap
from cumulant.optim.finite_sums.finite_sum import finite_sum, rows_of, term_constants
from cumulant.optim.finite_sums.finite_sum_kernels import draws
from cumulant.optim.finite_sums.finite_sum_programs import sgd_program
from cumulant.optim.finite_sums.stochastic_gradient_kernels import sgd_updates
from cumulant.optim.gradients import ByRows
from cumulant.optim.protocol import Solver
from cumulant.optim.schedules import InverseSqrt, InverseTime, as_schedule

_FEW = 1000  # coordinates up to which the Hessian is looked at besides the gradient


def positive_or_none(name: str, value: Any, whole: bool = False) -> None:
    """Refuse what is neither None nor a positive number (a whole one, where that is asked for)."""
    kinds = int | np.integer if whole else int | float | np.number
    if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < np.inf):
        raise ValueError(f"{name} must be a positive {'whole ' if whole else ''}number or None; got {value!r}")


def gradient_bound(problem: Any, x: Any, gradient: Any) -> float:
    """What ``f(x) - f*`` is at most, before rounding is allowed for; infinite where nothing is known.

    By strong convexity, or for logistic losses without a penalty by the Newton decrement. Unlike the certificate it
    looks for no reason where there is no bound: it is asked for at every record.
    """
    mu = float(problem.strong_convexity)
    if mu > 0:
        return float(np.vdot(gradient, gradient)) / (2 * mu)
    return self_concordant_gap(problem, x) if problem.self_concordance is not None and np.size(x) <= _FEW else np.inf


class FiniteSumSolver(Solver):
    """What the methods share: what is measured at their answer, and the certificate, which knows nothing of the run."""

    backend: ClassVar[str] = "host"

    def measure(self, problem: Any, state: Any) -> dict[str, float]:
        """The objective, a bound on its distance to the minimum, and how many gradients of terms were computed."""
        x = self.solution(problem, state)
        value, gradient = problem.value_and_gradient(x)
        bound = gradient_bound(problem, x, gradient)
        return {"value": float(value), "bound": bound, "gradients": float(state.gradients)}

    def certify(self, problem: Any, state: Any) -> Certificate:
        """The smallest bound on ``f(x) - f*`` that the problem allows: see `certify_optimality`."""
        return certify_optimality(problem, self.solution(problem, state))


class StochasticGradientState(NamedTuple):
    """The iterate, the sum of all iterates (for `SGA`), and the position in the stream of draws."""

    x: np.ndarray
    total: np.ndarray
    updates: int
    gradients: int
    sweep: int
    seed: int


@dataclass(frozen=True)
class SGD(FiniteSumSolver):
    """Stochastic gradient descent: ``x <- x - tau_k grad f_i(x)``, ``i`` drawn uniformly or in the order of the rows.

    For ``f = (1/n) sum f_i``: `LeastSquares`, `Logistic`, `MarginLoss` and `MultinomialLogistic`, dense or sparse, by
    compiled loops whose cost is that of the non-zero entries of the row; and any `FiniteSum`, through JAX. The penalty
    ``l2`` belongs to every term and is treated exactly. What is known:

    * ``mu``-strongly convex, ``E |grad f_i|^2 <= C^2`` where the iterates go, ``tau_k = 1 / (mu (k + 1))``
      (`InverseTime(1 / mu)`): ``E |x_k - x*|^2 <= C^2 / (mu^2 k)`` (`rates.sgd`);
    * constant steps ``tau <= 1 / (2 L)``, ``L`` the largest smoothness of a term: `rates.sgd_strongly_convex`;
    * the default steps: `rates.sgd_decreasing`.

    Fast at first, slow in the end: for a precise answer see `SAGA` and `DualCoordinateAscent`. Descent with the whole
    gradient is `GradientDescent`.

    Robbins and Monro (1951); Peyré (2021, section 8.3).

    Parameters
    ----------
    step_size : float or schedule, optional
        A number, `Constant`, `InverseTime(tau, k0)`, `InverseSqrt(tau, k0)`, or your own function of the update. By
        default ``1 / (2 L + mu k / 2)`` where ``mu > 0``, else ``1 / (2 L) / (1 + sqrt(k / n))``.
    gradients : optim.gradients.ByRows
        Which terms are averaged in one update: one, drawn at random with replacement, by default. For other oracles see
        `RobbinsMonro`.
    updates : int, optional
        Updates in one step of `run`; by default those of one pass over the data.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0], [1.0]], [1.0, -1.0])         # E x_k^2 = 1 / k exactly
    >>> solver = SGD(optim.InverseTime(1.0), updates=50)
    >>> x = [optim.run(solver, problem, [0.3], max_steps=1, tol=None, rng=seed).x[0] for seed in range(400)]
    >>> round(float(50 * np.mean(np.square(x))), 1)
    1.0
    """

    step_size: Any = None
    gradients: ByRows = field(default_factory=lambda: ByRows("random"))
    updates: int | None = None

    average: ClassVar[bool] = False
    burn_in = 0  # iterates left out of the mean

    def __post_init__(self):
        if self.step_size is not None:
            as_schedule(self.step_size)
        if not isinstance(self.gradients, ByRows):
            raise TypeError(
                f"gradients of {type(self).__name__} must be optim.gradients.ByRows(), and RobbinsMonro takes the "
                f"other oracles; got {type(self.gradients).__name__}"
            )
        positive_or_none("updates", self.updates, whole=True)

    def init(self, problem: Any, x0: Any, rng: Any) -> StochasticGradientState:
        """The point `x0`, and nothing averaged yet."""
        if rows_of(problem) is None:
            finite_sum(problem)
        self.sizes(problem, 0, 1)
        x = np.array(x0, dtype=np.float64)
        return StochasticGradientState(x, np.zeros_like(x), 0, 0, 0, randomness.seed(rng))

    def sizes(self, problem: Any, first: int, count: int) -> np.ndarray:
        """The sizes of `count` updates from update number `first` on."""
        schedule = self.step_size
        if schedule is None:
            schedule = self._default(problem, float(term_constants(problem).max()))
        with precision.float64():
            sizes = np.asarray(as_schedule(schedule)(np.arange(first, first + count, dtype=np.float64)))
        sizes = np.broadcast_to(sizes, (count,)).astype(np.float64)
        if not np.all(np.isfinite(sizes) & (sizes > 0)):
            raise ValueError(f"step_size must give positive numbers; update {first} or one after it has {sizes.min()}")
        return sizes

    def step(self, problem: Any, state: StochasticGradientState) -> StochasticGradientState:
        """As many updates as take one pass over the data, unless `updates` says otherwise."""
        rows, n = rows_of(problem), problem.n_terms
        batch = self.gradients.batch
        count = self.updates or max(n // batch, 1)
        sizes = self.sizes(problem, state.updates, count)
        if self.gradients.order == "random":
            order = draws(state.seed, state.sweep, n, count * batch).reshape(count, batch)
        else:
            order = (state.updates * batch + np.arange(count * batch)).reshape(count, batch) % n
        x, total = state.x, state.total
        # Where the mean begins within this step, the updates before are made apart.
        before = min(max(self.burn_in - state.updates, 0), count)
        for part, average in ((slice(before), False), (slice(before, None), self.average)):
            if rows is not None:
                shape = (x.shape[0], rows.outputs)
                sgd_updates(
                    *rows[:6], rows.scale, rows.l2, x.reshape(shape), total.reshape(shape), average, order[part],
                    sizes[part],
                )  # fmt: skip
            elif len(order[part]):
                x, gathered = sgd_program(finite_sum(problem), x, total, order[part], sizes[part])
                total = gathered if average else total
        made = state.gradients + order.size
        return StochasticGradientState(x, total, state.updates + count, made, state.sweep + 1, state.seed)

    def _default(self, problem, largest):
        mu = float(problem.strong_convexity)
        # 1 / (2 L + mu k / 2)
        return InverseTime(0.5 / largest, 4 * largest / mu) if mu > 0 else InverseSqrt(0.5 / largest, problem.n_terms)


@dataclass(frozen=True)
class SGA(SGD):
    """Stochastic gradient descent whose answer is the mean of its iterates ``x_1`` to ``x_k``.

    Averaging (Polyak and Juditsky 1992) allows steps that decrease more slowly, like ``1 / sqrt(k)``, and makes the
    answer less sensitive to them: see `rates.sga`. The mean costs no more than the iterates do, on sparse rows too.

    Parameters
    ----------
    step_size : float or schedule, optional
        As for `SGD`; by default ``1 / (2 L) / (1 + sqrt(k / n))``.
    gradients, updates
        As for `SGD`.
    burn_in : int
        Iterates left out at the beginning: the mean is that of the tail ``x_{burn_in + 1}, ..., x_k``, which forgets
        the start (Rakhlin, Shamir and Sridharan 2012). `rates.sga` is for the mean of all.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0], [1.0]], [3.0, 1.0], l2=1.0)
    >>> result = optim.run(SGA(), problem, [0.0], max_steps=2000, tol=None, rng=0, every=2000)
    >>> result.x.round(1)
    array([1.])
    """

    burn_in: int = 0

    average: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        if isinstance(self.burn_in, bool) or not isinstance(self.burn_in, int) or self.burn_in < 0:
            raise ValueError(f"burn_in must be a whole number, zero or more; got {self.burn_in!r}")

    def _default(self, problem, largest):
        return InverseSqrt(0.5 / largest, problem.n_terms)

    def solution(self, problem, state):
        """The mean of the iterates from `burn_in` on; the iterate itself before."""
        averaged = state.updates - self.burn_in
        return state.total / averaged if averaged > 0 else state.x
