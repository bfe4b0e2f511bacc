"""Step sizes of stochastic approximation, and whether they satisfy the conditions of Robbins and Monro."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from cumulant.optim.schedules import Constant, InverseCount, InverseSqrt, InverseTime
from cumulant.pytrees import pytree


@pytree
@dataclasses.dataclass(frozen=True)
class Harmonic:
    """``a_k = a0 / (k0 + k)^power`` for the steps ``k = 1, 2, ...``; called with ``k - 1``, as every schedule is.

    Robbins and Monro (1951); Carbonetto (2009) takes ``k0 = 50``.

    >>> Harmonic(k0=50)(0), Harmonic(k0=1, power=0.5)(2)
    (0.0196..., 0.5)
    """

    k0: Any = 50.0
    a0: Any = 1.0
    power: Any = 1.0

    def __post_init__(self):
        for name, least in (("k0", 0.0), ("a0", None), ("power", None)):
            value = getattr(self, name)
            if isinstance(value, bool | str):
                raise ValueError(f"{name} of Harmonic must be a number; got {value!r}")
            if isinstance(value, int | float) and not (value > 0 or value == least):
                raise ValueError(
                    f"{name} of Harmonic must be {'not negative' if least == 0 else 'positive'}; got {value}"
                )

    def __call__(self, k):
        """The size of step ``k``, counted from zero."""
        return self.a0 / (self.k0 + (k + 1.0)) ** self.power


@dataclasses.dataclass(frozen=True)
class RobbinsMonroReport:
    """Whether ``a_k -> 0``, ``sum a_k = inf`` and ``sum a_k^2 < inf``; true as a condition where all three hold.

    `power` is the ``r`` of ``a_k ~ k^-r``; `how` says whether it is known or was read off values up to ``k = 10^8``.

    Robbins and Monro (1951).

    >>> report = check_robbins_monro(Harmonic(1, power=0.5))
    >>> report.sum_diverges, report.squares_converge, report.power
    (True, False, 0.5)
    """

    vanishes: bool
    sum_diverges: bool
    squares_converge: bool
    power: float
    how: str

    def __bool__(self):
        return self.vanishes and self.sum_diverges and self.squares_converge


def check_robbins_monro(schedule: Callable[[Any], Any]) -> RobbinsMonroReport:
    """Whether a schedule of step sizes satisfies the conditions of Robbins and Monro (1951): ``a_k -> 0``, ``sum a_k =
    inf``, ``sum a_k^2 < inf``.

    For the schedules of this package the answer is known. For any other function of ``k`` it is read off the slope of
    ``log a_k`` between ``10^4`` and ``10^8``, and `how` says so: that is no proof. The conditions speak of the steps
    an interior-point run *may* take; cut steps are shorter, and only `rm_budget` of the run tells their sum.

    >>> bool(check_robbins_monro(Harmonic(50))), bool(check_robbins_monro(Harmonic(1, power=0.5)))
    (True, False)
    """
    known = {Constant: 0.0, InverseTime: 1.0, InverseSqrt: 0.5, InverseCount: 1.0}
    if isinstance(schedule, Harmonic):
        power, how = float(schedule.power), "known"
    elif type(schedule) in known:
        power, how = known[type(schedule)], "known"
    else:
        k = np.array([1e4, 1e6, 1e8])
        sizes = np.array([float(np.asarray(schedule(each))) for each in k])
        if not np.all(np.isfinite(sizes) & (sizes > 0)):
            raise ValueError(f"step sizes must be positive and finite; got {sizes} at k = 1e4, 1e6, 1e8")
        slopes = -np.diff(np.log(sizes)) / np.diff(np.log(k))
        power = float(slopes[-1])
        how = f"read off between 1e4 and 1e8 (slopes {slopes[0]:.3f}, {slopes[1]:.3f})"
    # What was read off is uncertain in the third digit: 1/(1 + k) has slope 0.99999 at these k.
    margin = 0.0 if how == "known" else 1e-3
    return RobbinsMonroReport(power > margin, power <= 1 + margin, power > 0.5 + margin, power, how)
