"""Blocks of variables that exact elimination can handle within a memory, cutting as little as can be."""

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from cumulant.errors import TooWide
from cumulant.graphical.exact.orders import elimination_order
from cumulant.graphical.exact.passes import megabytes
from cumulant.graphical.exact.program import Program
from cumulant.graphical.exact.schedule import plan
from cumulant.graphical.structure import Structure

__all__ = ["choose_blocks", "induced", "order_within"]

_HARD = 100.0  # what it costs to cut a table with impossible states: more than any soft one, and yet finite
_SPECTRAL = 20_000  # variables up to which eigenvectors of the graph are looked at


def choose_blocks(structure: Structure, theta: np.ndarray, max_memory: int) -> list[np.ndarray]:
    """A partition of the variables into blocks, each of which exact elimination handles within `max_memory` bytes.

    The variables are put into several linear orders (their numbers, Cuthill and McKee's, the lowest eigenvectors of the
    graph with edges weighted by their strength). Along each, blocks grow as long as they fit, and end where the cut is
    weakest, for their size, within their last quarter; where as many blocks of about one size cut no more, these are
    taken. The order with the weakest cuts wins.
    """
    if structure.n_variables == 0 or order_within(structure, max_memory) is not None:
        return [np.arange(structure.n_variables)]
    strengths = _strengths(structure, theta)
    best: tuple[float, list[np.ndarray]] | None = None
    for order in _orders(structure, strengths):
        blocks = _grow(structure, strengths, order, max_memory)
        weight = _cut_weight(structure, strengths, blocks)
        if best is None or weight < best[0]:
            best = weight, blocks
    assert best is not None
    return best[1]


def _cut_weight(structure: Structure, strengths: np.ndarray, blocks: list[np.ndarray]) -> float:
    """The strengths of the factors that join several blocks, added up."""
    label = np.zeros(structure.n_variables, dtype=np.int64)
    for b, block in enumerate(blocks):
        label[block] = b
    cut = [len({int(label[v]) for v in structure.scope(f)}) > 1 for f in range(structure.n_factors)]
    return float(strengths[cut].sum())


def induced(structure: Structure, variables: np.ndarray) -> tuple[Structure, np.ndarray, np.ndarray]:
    """The scopes cut down to some variables: a structure, which factor each of its scopes comes from, and whether that
    lies inside altogether.
    """
    number = np.full(structure.n_variables, -1, dtype=np.int64)
    number[variables] = np.arange(variables.size)
    inside = number[structure.scopes] >= 0
    width = np.diff(np.concatenate([[0], np.cumsum(inside)])[structure.scope_starts])
    touched = np.flatnonzero(width > 0)
    starts = np.concatenate([[0], np.cumsum(width[touched])])
    part = Structure.flat(structure.cardinalities[variables], starts, number[structure.scopes[inside]])
    return part, touched, width[touched] == np.diff(structure.scope_starts)[touched]


def order_within(part: Structure, max_memory: int, surely: bool = True) -> np.ndarray | None:
    """An order by which the marginal tables of all factors can be computed within `max_memory` bytes, if one is found.

    Not `surely` is a guess without the schedule: besides the factors with their beliefs, keeping one message in about
    ``sqrt(steps)`` needs, on a chain of cliques, about ``2 sqrt(all messages * largest message)``.
    """
    limit = max_memory // 8
    for kind in ("frontier", "min-fill"):  # the search for the best order would cost more than its use, later
        order = elimination_order(part, kind, restarts=0)
        # a message is at most a clique without one variable
        if 2.0**order.log2_largest > limit * float(part.cardinalities.max(initial=1)):
            continue
        program = Program.of(part, order.order)
        messages = program.lengths[program.n_factors :].astype(float)
        all_of_them, largest = messages.sum(), messages.max(initial=0.0)
        fixed = 2.0 * program.lengths[: program.n_factors].sum() + part.cardinalities.sum()
        if fixed + 2.0 * min(all_of_them, np.sqrt(all_of_them * largest)) <= limit and (
            not surely or plan(program, True, True, limit).entries <= limit
        ):
            return order.order
    return None


def _strengths(structure: Structure, theta: np.ndarray) -> np.ndarray:
    """What is lost, to second order, when the variables of a factor become independent: half the variance, at equal
    probabilities, of the interaction in its table.
    """
    out = np.zeros(structure.n_factors)
    for f in range(structure.n_factors):
        table = structure.table(f, theta)
        if table.ndim < 2:
            continue
        if not np.isfinite(table).all():
            out[f] = _HARD
            continue
        table = table - table.mean()
        alone = sum(np.mean(table.mean(axis=tuple(set(range(table.ndim)) - {k})) ** 2) for k in range(table.ndim))
        out[f] = max(0.5 * float(np.mean(table**2) - alone), 1e-12)
    return out


def _orders(structure: Structure, strengths: np.ndarray) -> list[np.ndarray]:
    n, width = structure.n_variables, np.diff(structure.scope_starts)
    rows, columns, weights = [], [], []
    for f in np.flatnonzero(width > 1).tolist():
        scope = structure.scope(f)
        for a in range(len(scope)):
            for b in range(a):
                rows += [scope[a], scope[b]]
                columns += [scope[b], scope[a]]
                weights += [strengths[f]] * 2
    graph = csr_array((weights, (rows, columns)), (n, n))
    orders = [np.arange(n), np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)]
    if 8 < n <= _SPECTRAL:
        laplacian = diags_array(np.asarray(graph.sum(axis=1)).ravel()) - graph
        scale = float(abs(laplacian).max())
        try:  # shifted a little below zero, where the matrix is not singular
            _, vectors = eigsh(laplacian.tocsc(), k=3, sigma=-1e-6 * scale, v0=np.cos(np.arange(n)))
        except (ArpackNoConvergence, RuntimeError):
            return orders
        first, second = vectors[:, 1], vectors[:, 2]
        # in a square the two have one eigenvalue, and any mixture of them may come out
        for angle in (0.0, np.pi / 4, np.pi / 2, 3 * np.pi / 4):
            orders.append(np.argsort(np.cos(angle) * first + np.sin(angle) * second, kind="stable"))
    return orders


def _grow(structure: Structure, strengths: np.ndarray, order: np.ndarray, max_memory: int) -> list[np.ndarray]:
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    crossing = np.zeros(order.size + 1)  # weight of the factors that a cut before each place would cross
    for f in range(structure.n_factors):
        at = place[list(structure.scope(f))]
        if at.size > 1:
            crossing[at.min() + 1] += strengths[f]
            crossing[at.max() + 1 :][:1] -= strengths[f]
    crossing = np.cumsum(crossing)
    ends, begin, size = [], 0, 1
    while begin < order.size:
        end = _furthest(structure, order, begin, size, max_memory)
        if end < order.size:
            earliest = begin + max(1, (3 * (end - begin) + 3) // 4)
            sizes = np.arange(earliest - begin, end + 1 - begin)
            end = earliest + int(np.argmin(crossing[earliest : end + 1] / sizes))  # small blocks mean more cuts
        ends.append(end)
        begin, size = end, end - begin
    even = _even_ends(crossing, len(ends))
    if crossing[even].sum() <= 1.05 * crossing[ends].sum() and all(
        order_within(induced(structure, part)[0], max_memory) is not None for part in np.split(order, even[:-1])
    ):
        ends = even  # as few blocks, and narrower ones: the time grows with the width
    return [np.sort(part) for part in np.split(order, ends[:-1])]


def _even_ends(crossing: np.ndarray, count: int) -> list[int]:
    """Ends of blocks of about one size, where cuts are weakest nearby."""
    n = crossing.size - 1
    ends = []
    for k in range(1, count):
        low = max(ends[-1] + 1 if ends else 1, round((k - 0.125) * n / count))
        high = max(low, min(n - 1, round((k + 0.125) * n / count)))
        away = np.abs(np.arange(low, high + 1) - k * n / count)
        ends.append(low + int(np.argmin(crossing[low : high + 1] * (1.0 + 1e-6 * away))))  # of equal ones, the nearest
    return [*ends, n]


def _furthest(structure: Structure, order: np.ndarray, begin: int, size: int, max_memory: int) -> int:
    """The end of about the longest stretch from `begin` that fits: bisection by the guess, then down to what does."""
    low, high, end = begin + 1, order.size + 1, min(begin + size, order.size)
    while high - low > max(1, (low - begin) // 16):
        if order_within(induced(structure, order[begin:end])[0], max_memory, surely=False) is not None:
            low, end = end, min(end + max(1, (end - begin) // 2), (end + high) // 2, order.size)
            if low == order.size:
                break
        else:
            high = end
            end = (low + high) // 2
        if end == low:
            break
    while low > begin and order_within(induced(structure, order[begin:low])[0], max_memory) is None:
        low -= max(1, (low - begin) // 8)
    if low == begin:
        raise TooWide(
            f"the factors of variable {int(order[begin])} alone do not fit: max_memory is {megabytes(max_memory)}: "
            "raise max_memory"
        )
    return low
