"""A run against its theorem: `compare_with_rate(trace, bound)`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.optim.driver.trace import Trace


@dataclass(frozen=True)
class RateComparison:
    """How a measured quantity compares with its bound, record by record.

    Attributes
    ----------
    worst_ratio : float
        The largest measured / bound. At most one when the bound holds; close to one when it is tight.
    worst_step : int
        The step where it is attained.
    holds : bool
        Whether every record is within its bound, rounding allowed for.
    steps, measured, bound : array
        The records compared.

    Examples
    --------
    >>> trace = Trace(np.array([1, 2]), np.zeros(2), np.array([0.5, 0.25]), np.full(2, np.inf))
    >>> checked = compare_with_rate(trace, lambda k: 1 / k)
    >>> checked.holds, round(checked.worst_ratio, 6), checked.worst_step
    (True, 0.5, 1)
    """

    worst_ratio: float
    worst_step: int
    holds: bool
    steps: np.ndarray
    measured: np.ndarray
    bound: np.ndarray

    def __str__(self):
        verdict = "holds" if self.holds else "is VIOLATED"
        where = f"worst ratio {self.worst_ratio:.6g} at step {self.worst_step}, over {len(self.steps)} records"
        return f"the bound {verdict}: {where}"

    def plot(self, axes: Any) -> None:
        """Draw both curves on matplotlib axes."""
        axes.plot(self.steps, self.measured, label="measured")
        axes.plot(self.steps, self.bound, "--", label="bound")
        axes.set(xlabel="steps", ylabel="measured, and its bound", xscale="symlog", yscale="log")
        axes.legend(frameon=False)


def compare_with_rate(
    trace: Trace,
    bound: Callable[[np.ndarray], Any] | np.ndarray,
    *,
    optimum: float = 0.0,
    column: str = "value",
    rounding: float | None = None,
) -> RateComparison:
    """Check a run against the bound of a theorem.

    Parameters
    ----------
    trace : Trace
        Of a run.
    bound : callable or array
        A function of the array of steps (from `rates`, with its constants filled in), or the bound at each record.
        Records where it is infinite are left out.
    optimum : float
        Subtracted from the column: ``f*`` where the bound is on ``f(x_k) - f*``. Solve for it to machine precision;
        the smallest value of the run itself would make any method look linear at its end.
    column : str
        What the bound is on: ``"value"``, or another column of the trace.
    rounding : float, optional
        What rounding may add; by default a few units in the last place of the values and the optimum.

    Returns
    -------
    RateComparison

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [0.0, 0.0])
    >>> result = optim.run(optim.GradientDescent("1/L"), problem, [1.0, 1.0], max_steps=50, tol=None)
    >>> print(compare_with_rate(result.trace, lambda k: optim.rates.gd_convex(10.0, 2.0, k)))
    the bound holds: worst ratio 0.55 at step 0, over 51 records
    """
    values = np.asarray(trace[column], dtype=np.float64)
    limit = np.asarray(bound(trace.steps) if callable(bound) else bound, dtype=np.float64)
    if limit.shape != values.shape:
        raise ValueError(f"bound must have one entry for each of the {len(values)} records; got shape {limit.shape}")
    used = np.isfinite(limit)
    if not np.any(used):
        raise ValueError("bound is infinite or NaN at every record: there is nothing to compare with")
    steps, measured, limit = trace.steps[used], values[used] - optimum, limit[used]
    if np.any(np.isnan(limit)) or np.any(limit < 0):
        raise ValueError("bound must not be negative or NaN")
    if rounding is None:
        rounding = 16 * 2.0**-53 * float(max(np.max(np.abs(values)), abs(optimum)))
    over = np.maximum(measured - rounding, 0.0)  # what is left after rounding: at the end of a run often nothing
    ratio = np.where(over > 0, np.divide(over, limit, out=np.full_like(over, np.inf), where=limit > 0), 0.0)
    worst = int(np.argmax(ratio))
    return RateComparison(float(ratio[worst]), int(steps[worst]), bool(np.all(ratio <= 1)), steps, measured, limit)
