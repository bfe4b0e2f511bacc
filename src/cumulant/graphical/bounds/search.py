"""One search for an interval around ``log Z``: bounds from both sides, cheap ones first, while there is room."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.graphical.bounds.conditioning import conditioned, cutset
from cumulant.graphical.bounds.context import Bracket, Context
from cumulant.graphical.bounds.ledger import Expired, Stopped
from cumulant.graphical.bounds.lower import ROUNDS, LowerBounds, anneal
from cumulant.graphical.bounds.mini_bucket import fitting
from cumulant.graphical.bounds.partition import Partition
from cumulant.graphical.bounds.upper import (
    COPIES,
    combination_of,
    cuts_of,
    evaluate,
    improve,
    reason_of,
    spanning_trees,
)
from cumulant.graphical.exact.elimination import slack_of_elimination
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.exact.sparse import sparse_log_partition

_SPEED = 1.2e8  # entries of an elimination in a second, to decide whether an exact answer can be had in time
_WITHOUT_CLOCK = 2.0**34  # entries that an exact answer may take where there is no time limit
_LARGE = 300  # variables from which cheap bounds come before the question whether an exact answer fits
_PART = 0.5  # of the time that an exact answer may take then: other bounds have had some of it
_MANY = 50_000  # variables from which blocks are not looked for: trees only
_ROWS = 3.0e5  # possible entries for a second of time that elimination may keep where dense tables do not fit
_ROWS_WITHOUT_CLOCK = 2.0e7
_MINI = 2.0**20  # bytes of mini-buckets for a second of time, which lets them be evaluated some tens of times
_FITTING = 4e-4  # seconds to find them, for each table


@dataclass(frozen=True)
class Settings:
    """Whether to look for an exact answer, and whether bounds may hold with probability ``1 - delta`` only."""

    exact: bool = True
    sampling: bool = False
    delta: float = 1e-6


def search(context: Context, settings: Settings) -> tuple[Bracket, np.ndarray | None]:
    """All stages, as far as there is room: the bounds, and the distributions of single variables from below."""
    below = LowerBounds(context)
    context.simple()
    if not context.bracket.exact:
        try:
            _stages(context, settings, below)
        except Stopped:
            pass
        except Expired:
            context.ledger.forget()
    return context.bracket, below.q


def _stages(context: Context, settings: Settings, below: LowerBounds) -> None:
    """An exact answer at once where that is quick to see; else a possible state where some are not, a bound from above,
    one from below, an exact answer where there may be one, and then better bounds.
    """
    large = context.structure.n_variables > _LARGE
    plan = None
    if settings.exact and not large:
        plan = _plan(context, lambda: None)
        if plan is not None and not plan[0]:
            _exact(context, plan)
            return
    if context.hard:
        if not below.possible():
            return
        below.around(1)
    if not spanning_trees(context):
        return
    below.naive()
    if settings.exact and large:
        context.ledger.more()
        plan = _plan(context, context.ledger.alive, _PART)
    if settings.exact and context.hard and (plan is None or plan[0]) and _sparse(context):
        return
    if plan is not None:
        _exact(context, plan)
        return
    if context.hard:
        below.around()
    _better(context, settings, below)
    if context.bracket.lower == -np.inf:
        below.possible(last=True)


def _plan(context: Context, alive: Callable[[], None], part: float = 1.0) -> Any:
    """Variables to be given values and an order for the others, or None where that needs more than this part of the
    time.
    """
    limit = context.ledger.time_limit
    entries = _WITHOUT_CLOCK if limit is None else _SPEED * limit * part
    return cutset(context.structure, context.max_memory, entries, alive)


def _exact(context: Context, plan: Any) -> None:
    """Elimination, or a sum of eliminations."""
    given, order = plan
    how = f"elimination given {len(given)} variables, summed over their states" if given else "elimination"
    begin = context.ledger.more if given else context.ledger.begin
    value, slack = -np.inf, 0.0
    for value, slack in conditioned(
        context.structure, context.theta, given, order, context.max_memory, begin, context.n_jobs
    ):
        context.bracket.offer_lower(value, f"a part of the sum over states ({how})", slack)
    context.bracket.settle(value, how, slack)


def _sparse(context: Context) -> bool:
    """Elimination on possible entries only; False where there are too many for the time."""
    context.ledger.more()
    limit = context.ledger.time_limit
    rows = _ROWS_WITHOUT_CLOCK if limit is None else _ROWS * limit
    order, alive = fast_order(context.structure, context.ledger.alive).order, context.ledger.alive
    value = sparse_log_partition(context.structure, context.theta, order, rows, context.bytes, alive)
    if value is not None:
        slack = 2.0 * slack_of_elimination(context.structure, context.theta)
        context.bracket.settle(value, "elimination on the possible entries of the tables", slack)
    return value is not None


def _better(context: Context, settings: Settings, below: LowerBounds) -> None:
    """Better bounds from above and below in turn, until they no longer move."""
    structure = context.tables.structure
    # mini-buckets come last where there are cuts to make and factors of two variables only, since blocks do better
    # then, and on very large models, where one evaluation takes seconds
    many = structure.n_variables > _MANY
    wide, early = np.diff(structure.scope_starts).max(initial=0) > 2, False
    cuts: list[Partition] = []
    rounds, combination, point = 0, None, context.memory.point
    if settings.sampling:
        anneal(context, rounds, settings.delta)
        rounds += 1
    for n_copies in COPIES:
        known, cuts = len(cuts), [] if many else cuts_of(context, n_copies)
        if known and len(cuts) <= known:
            break
        first = combination is None
        early = early or (first and (wide or not (cuts or many)))
        earlier, combination = combination, combination_of(context, cuts, None)
        if earlier is not None:
            assert point is not None
            point = combination.from_shares(earlier, point)
        elif point is not None and point.size != combination.dim:
            point = None
        if first:  # something from both sides, before either is brought to its end
            below.over_blocks(cuts[:1], 1)
            if cuts and not evaluate(context, combination, point):
                return
        if early and first:
            _mini_buckets(context)
        below.over_blocks(cuts[:1] if first else cuts)
        if settings.sampling and rounds < ROUNDS and not first:
            anneal(context, rounds, settings.delta)
            rounds += 1
        point = improve(context, combination, reason_of(combination), point, catch_up=early and first, keep=first)
        if not cuts:
            break
        if first:
            below.over_blocks(cuts)
    if not early:
        _mini_buckets(context)
    while settings.sampling and rounds < ROUNDS:
        anneal(context, rounds, settings.delta)
        rounds += 1


def _mini_buckets(context: Context) -> None:
    """Mini-buckets, from above and then from below, each until ten evaluations bring less than a hundredth of the
    width; none where to find them, which cannot be interrupted, would take too much of the time.
    """
    limit, tables = context.ledger.time_limit, context.tables
    if limit is not None:
        count = tables.structure.n_factors + tables.structure.n_variables
        if _FITTING * count > max(0.1 * limit, 0.4):
            return
    memory = context.bytes_in_time(_MINI)
    context.ledger.more()
    order = fast_order(tables.structure, context.ledger.alive).order
    for sign in (1, -1):
        context.ledger.more()
        made, _ = fitting(tables, order, sign, memory)
        reason = f"Hölder's inequality in mini-buckets ({len(made.splits)} buckets split)"
        improve(context, made, reason, sign=sign, catch_up=True)
