"""Upper bounds of a search: copies of the model cut into blocks or into trees of clusters, by Hölder's inequality."""

import math

import numpy as np

from cumulant.graphical.bounds.context import Context
from cumulant.graphical.bounds.partition import Limits, Partition, partitions, with_fields
from cumulant.graphical.bounds.reweighted import LANES, Bound, Combination, tighten
from cumulant.graphical.bounds.spanning import cover

COPIES = (4, 8, 16)  # of the combination: a few first, more while there is time
_MARGINALS = 6.0e7  # entries of a pass for marginals in a second, on one of the lanes
_EVALUATIONS = 20.0  # of the first combination, that the time should be enough for
_CUT = 0.25  # of the strength of all factors that a cut may cost: beyond, trees of clusters are better


def spanning_trees(context: Context) -> bool:
    """One bound by few spanning trees with equal shares; False where the model turns out impossible."""
    structure = context.tables.structure
    dense = structure.n_factors > 4 * structure.n_variables  # it needs many trees: clusters are better
    return evaluate(context, combination_of(context, [], None if dense else 0.0), None)


def evaluate(context: Context, combination: Combination, point: np.ndarray | None) -> bool:
    """One bound; False where it says that the model is impossible."""
    context.ledger.more()
    value, _, slack = combination.bound(np.zeros(combination.dim) if point is None else point)
    if value == -np.inf:
        context.bracket.settle(-np.inf, "a copy of the model without a possible state", 0.0)
        return False
    context.bracket.offer_upper(value, reason_of(combination), slack)
    return True


def cuts_of(context: Context, n_copies: int) -> list[Partition]:
    """Partitions for the copies; with a time limit, such that it is enough for a number of evaluations."""
    memory = context.memory
    if n_copies not in memory.cuts:
        context.ledger.more()
        limit = context.ledger.time_limit
        entries = math.inf
        if limit is not None:
            entries = max(limit * _MARGINALS * LANES / (COPIES[0] * _EVALUATIONS), 1e4)
        limits = Limits(context.bytes // LANES, entries, context.ledger.alive, memory.known)
        tables, found = context.tables, []
        if context.strength.size:
            found = partitions(tables.structure, tables.theta, limits, n_copies)
        worth = _CUT * float(context.strength.sum())
        memory.cuts[n_copies] = [cut for cut in found if cut.cost <= worth]
    return memory.cuts[n_copies]


def combination_of(context: Context, cuts: list[Partition], bits: float | None) -> Combination:
    """Copies cut into blocks, and trees of clusters of `bits` bits for the factors that all of the cuts cut."""
    tables, known = context.tables, context.memory.others
    key, memory = len(cuts) if bits is None else -1, context.bytes // LANES
    if key not in known:
        context.ledger.more()
        missing = np.ones(tables.structure.n_factors, dtype=bool)
        for cut in cuts:
            missing[cut.kept] = False
        few = bits is not None
        if bits is None:
            bits = min(12.0, math.log2(max(memory, 64)) - 6.0)
        others = cover(tables.structure, context.strength, missing, memory, bits, context.ledger.alive, few)
        if not cuts and not others:  # no factor joins variables
            none = np.zeros(0, np.int64)
            others = [(none, with_fields(tables.structure, none))]
        known[key] = others
    return Combination(tables, cuts, known[key], LANES * memory, context.ledger.alive, context.n_jobs)


def improve(
    context: Context,
    bound: Bound,
    reason: str,
    start: np.ndarray | None = None,
    *,
    sign: int = 1,
    catch_up: bool = False,
    keep: bool = False,
) -> np.ndarray:
    """Optimise a bound, where `sign` is -1 one on minus ``log Z``, until ten evaluations bring less than a hundredth of
    the width: to what is known, or, where it has to `catch_up` with another bound first, to its own. Returns the best
    point, and may `keep` it for other searches.
    """
    bracket, known = context.bracket, []

    def report(best, value, slack):
        if sign > 0:
            bracket.offer_upper(value, reason, slack)
        else:
            bracket.offer_lower(-value, reason, slack)
        if keep:
            context.memory.point = best.point
        known.append(bracket.upper)
        recent = best.trace if catch_up else known
        stalled = len(recent) > 10 and recent[-11] - recent[-1] < 0.01 * bracket.width
        if stalled or (sign < 0 and value == np.inf):
            return False
        context.ledger.more()
        return True

    context.ledger.more()
    return tighten(bound, report, start).point


def reason_of(combination: Combination) -> str:
    """The theorem behind a combination, as a noun phrase."""
    cuts = combination.cuts
    trees = combination.n_copies - len(cuts)
    words = [f"{len(cuts)} cut into {cuts[0].n_blocks} blocks"] if cuts else []
    words += [f"{trees} trees of clusters"] if trees else []
    return f"Hölder's inequality over {combination.n_copies} copies ({', '.join(words)})"
