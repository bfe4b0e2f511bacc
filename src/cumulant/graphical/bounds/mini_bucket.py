"""Weighted mini-buckets: bounds on ``log Z`` from both sides in bounded memory, for factors of any size."""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, Interval, by_construction, issuer, recipe_of
from cumulant.errors import CertificateError, TooWide
from cumulant.graphical.bounds.covering_tree import Covering, covering
from cumulant.graphical.bounds.ledger import check_limits
from cumulant.graphical.bounds.reweighted import Tables, tighten
from cumulant.graphical.exact.elimination import Elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.exact.passes import megabytes
from cumulant.graphical.messages.answers import Answer
from cumulant.graphical.messages.incidence import require_model
from cumulant.graphical.messages.simple_bounds import check_simple_bounds
from cumulant.graphical.structure import Structure
from cumulant.sampling.chains import require_counts

_MEMORY = 2**24  # bytes


@dataclass(frozen=True, eq=False)
class MiniBucket(Answer):
    """A bound on ``log Z`` by mini-buckets.

    Its `trace` is the best bound after each evaluation. There is no `certificate` where nothing is known: a bound from
    below of minus infinity.

    Attributes
    ----------
    bound : float
        Rounding included: taken off a bound from below, added to one from above.
    sense : str
        ``"upper"`` or ``"lower"``.
    exact : bool
        Whether no bucket had to be split: the bound is then ``log Z`` up to rounding.
    n_splits : int
        How many buckets were split.
    order : array
        The variables (those without evidence), first eliminated first.
    limit : tuple of int and float
        The most variables of a mini-bucket, and the most bits of its table.
    point : array
        Shifts and weights: what the certificate is recomputed from.
    """

    bound: float
    sense: str
    exact: bool
    n_splits: int
    order: np.ndarray
    limit: tuple[int, float]
    point: np.ndarray

    @property
    def interval(self) -> Interval:
        """What is known of ``log Z``: one end is the bound, the other infinite."""
        ends = (-np.inf, self.bound) if self.sense == "upper" else (self.bound, np.inf)
        return Interval(*ends)

    def __str__(self):
        return (
            f"log Z {'<=' if self.sense == 'upper' else '>='} {self.bound:.6g}  ({self.n_splits} buckets split, "
            f"{len(self.trace)} evaluations)"
        )


def mini_bucket_bound(
    model: Any,
    *,
    i_bound: int | None = None,
    max_memory: int = _MEMORY,
    order: Any = None,
    sense: str = "upper",
    max_steps: int = 200,
    time_limit: float | None = None,
) -> MiniBucket:
    """A bound on ``log Z`` by weighted mini-bucket elimination.

    A bucket too wide for the limit is split into mini-buckets, each with a copy of the variable; copy ``r`` is summed
    out by ``w_r log sum_v exp(f_r / w_r)``. The bound is above ``log Z`` for weights that are positive and add up to
    one (Hölder's inequality), and below it where one of them is positive and the others negative. Shifts of tables
    between the mini-buckets of a bucket and the weights are optimised by L-BFGS: the derivatives are the differences of
    the copies' marginals, zero where moments match, and the conditional entropies of the copies. From above the bound
    is jointly convex in both. Every point on the way is a valid bound; nothing has to converge.

    Liu and Ihler 2011, "Bounding the partition function using Hölder's inequality", equations 3 to 8 and section 5;
    Dechter and Rish 2003 for mini-buckets.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    i_bound : int, optional
        The most variables in a mini-bucket, the one summed out included; a factor with more has one of its own. None:
        tables as large as `max_memory` allows. Where it is above the width of the order the answer is exact.
    max_memory : int
        Bytes for tables, 16 MiB by default; what the factors one by one need is always taken, and the optimiser keeps
        25 numbers on top for each that it moves. `TooWide` where `i_bound` needs more.
    order : str or sequence of int, optional
        A kind of elimination order, or the variables without evidence in order; by default a cheap one.
    sense : str
        ``"upper"`` or ``"lower"``.
    max_steps : int
        Evaluations of the bound at most; 0 and 1 are the bound at equal weights, or small negative ones, and no shifts.
    time_limit : float, optional
        Seconds, looked at after each evaluation.

    Returns
    -------
    MiniBucket
        From below the bound is minus infinity where impossible states stand in a mini-bucket of negative weight.

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(8, 8), couplings=0.5, fields=0.5, rng=0)
    >>> above = mini_bucket_bound(model, i_bound=5, max_steps=40)
    >>> below = mini_bucket_bound(model, i_bound=5, max_steps=40, sense="lower")
    >>> below.bound <= model.log_partition() <= above.bound
    True
    >>> exact = mini_bucket_bound(model, i_bound=9, order="frontier")       # the width of this order
    >>> exact.exact and abs(exact.bound - model.log_partition()) < 1e-9
    True
    """
    require_counts(i_bound=(1 if i_bound is None else i_bound, 1), max_steps=(max_steps, 0))
    check_limits(time_limit, max_memory)
    checks.choice("sense", sense, ("upper", "lower"))
    require_model(model)
    begin = time.monotonic()
    structure, theta, _ = model.restricted()
    tables = Tables.of(structure, theta)
    found = fast_order(structure) if order is None else Elimination.of(structure, theta, order=order).order
    sign = 1 if sense == "upper" else -1
    made, limit = fitting(tables, found.order, sign, int(max_memory), i_bound)

    def report(best, value, _slack):
        out_of_time = time_limit is not None and time.monotonic() - begin >= time_limit
        return len(best.trace) < max_steps and not out_of_time and math.isfinite(value)

    search = tighten(made, report, max_steps=max_steps)
    bound = search.value + search.slack
    bound = sign * (float(np.nextafter(bound, np.inf)) if bound > -np.inf else bound)
    certificate = None
    if sense == "upper" or bound > -np.inf:
        certificate = _certificate(structure, theta, made, search.value, search.slack)
    trace = sign * np.array(search.trace)
    return MiniBucket(
        model, trace, certificate, bound, sense, made.exact, len(made.splits), found.order, limit, search.point
    )


def fitting(
    tables: Tables, order: np.ndarray, sign: int, max_memory: int, i_bound: int | None = None
) -> tuple[Covering, tuple[int, float]]:
    """The mini-buckets of `order`: of `i_bound` variables, or as wide as `max_memory` bytes allow; and their limit."""
    n = max(tables.structure.n_variables, 1)
    if i_bound is not None:
        limit = (int(i_bound), math.inf)
        made = _covering(tables, order, sign, limit)
        if made.memory > max_memory:
            raise TooWide(
                f"mini-buckets of {i_bound} variables need {megabytes(made.memory)}, max_memory is "
                f"{megabytes(max_memory)}: lower i_bound, leave it out, or raise max_memory"
            )
        return made, limit
    logs = np.log2(tables.structure.cardinalities)
    most = int(min(math.ceil(logs.sum()), math.log2(max(max_memory, 8)) - 3.0, 40))
    low, high = 0, most + 1  # bits
    best = _covering(tables, order, sign, (n, 0.0))
    while high - low > 1:  # not quite monotone in the limit: what is kept has been seen to fit
        middle = (low + high) // 2
        made = _covering(tables, order, sign, (n, float(middle)))
        if made.memory <= max_memory:
            low, best = middle, made
            if made.exact:
                break
        else:
            high = middle
    return best, (n, float(low))


def _covering(tables: Tables, order: np.ndarray, sign: int, limit: tuple[int, float]) -> Covering:
    logs = np.log2(tables.structure.cardinalities).tolist()
    variables, bits = limit

    def fits(scope):
        return len(scope) <= variables and (bits == math.inf or sum(logs[u] for u in scope) <= bits + 1e-9)

    return covering(tables, order, fits, sign)


@issuer
def certify(model: Any, result: MiniBucket) -> Certificate:
    """The bound at ``result.point`` from the tables of the model; of minus ``log Z`` for one from below."""
    structure, theta, _ = model.restricted()
    if len(result.order) != structure.n_variables:
        raise CertificateError(
            f"the bound is about {len(result.order)} variables, the model has {structure.n_variables} free ones"
        )
    made = _covering(Tables.of(structure, theta), result.order, 1 if result.sense == "upper" else -1, result.limit)
    if made.dim != result.point.size:
        raise CertificateError("the mini-buckets of this model are not those of the bound")
    value, _, slack = made.bound(result.point)
    return _certificate(structure, theta, made, value, slack)


def _certificate(structure: Structure, theta: np.ndarray, made: Covering, value: float, slack: float) -> Certificate:
    upper = made.sign > 0
    ends = (-np.inf, value + slack) if upper else (-value - slack, np.inf)
    weights = "are positive and add up to one" if upper else "add up to one, and one of them is positive"
    return Certificate(
        "log Z" if upper else "-log Z",
        value,
        "elimination" if made.exact else "Hölder's inequality in weighted mini-buckets (Liu and Ihler 2011)",
        (
            by_construction(f"the weights of each bucket {weights}"),
            by_construction("the shifts of each bucket add up to zero"),
            check_simple_bounds(structure, theta, *ends),
        ),
        slack=slack,
        recipe=recipe_of(certify),
        details={"splits": len(made.splits)},
    )
