"""Blocks of variables that exact elimination can handle within a memory, cutting as little as can be."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from cumulant.errors import TooWide
from cumulant.graphical.exact.orders import fast_order
from cumulant.graphical.exact.passes import megabytes
from cumulant.graphical.exact.program import Program
from cumulant.graphical.exact.schedule import plan
from cumulant.graphical.structure import Structure

_HARD = 100.0  # what it costs to cut a table with impossible states: more than any soft one, and yet finite
_SPECTRAL = 20_000  # variables up to which eigenvectors of the graph are looked at
_FACTORISED = 1e9  # variables times the square of the width, the work to factorise its matrix, up to which they are


def choose_blocks(structure: Structure, theta: np.ndarray, max_memory: int) -> list[np.ndarray]:
    """A partition of the variables into blocks, each of which exact elimination handles within `max_memory` bytes.

    The variables are put into several linear orders (Cuthill and McKee's, their numbers, the lowest eigenvectors of the
    graph with edges weighted by their strength). Along each, blocks grow as long as they fit, and end where the cut is
    weakest, for their size, within their last quarter; where as many blocks of about one size cut no more, these are
    taken. The order with the weakest cuts wins.
    """
    return list(block_choices(structure, theta, max_memory))[-1]


def block_choices(
    structure: Structure, theta: np.ndarray, max_memory: int, alive: Callable[[], None] = lambda: None
) -> Iterator[list[np.ndarray]]:
    """The same, one partition after the other, each with weaker cuts than the last; at least one.

    `alive` is called between pieces of work, and may raise to end them.
    """
    if structure.n_variables == 0 or within(structure, max_memory):
        yield [np.arange(structure.n_variables)]
        return
    strengths, least = _strengths(structure, theta), np.inf
    for order in _orders(structure, strengths, alive):
        blocks = _grow(structure, strengths, order, max_memory, alive)
        labels = np.empty(structure.n_variables, np.int64)
        labels[np.concatenate(blocks)] = np.repeat(np.arange(len(blocks)), [block.size for block in blocks])
        weight = float(strengths[~inside(structure, labels)].sum())
        if weight < least:
            least = weight
            yield blocks


def spans(structure: Structure, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest level in each factor; 0 for one without variables."""
    low, high = np.zeros((2, structure.n_factors), np.int64)
    some = np.flatnonzero(np.diff(structure.scope_starts) > 0)
    if some.size:
        values = level[structure.scopes]
        low[some] = np.minimum.reduceat(values, structure.scope_starts[:-1][some])
        high[some] = np.maximum.reduceat(values, structure.scope_starts[:-1][some])
    return low, high


def inside(structure: Structure, labels: np.ndarray) -> np.ndarray:
    """Which factors have all their variables in one block."""
    low, high = spans(structure, labels)
    return low == high


def prices(structure: Structure, level: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """The strength of the factors that a cut before each level cuts."""
    low, high = spans(structure, level)
    price = np.zeros(int(level.max()) + 2)
    np.add.at(price, low + 1, strength)
    np.subtract.at(price, high + 1, strength)
    return np.maximum(np.cumsum(price), 0.0)


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


def within(part: Structure, max_memory: int, surely: bool = True) -> bool:
    """Whether `fast_order` gives the marginal tables of all factors within `max_memory` bytes.

    Not `surely` is a guess without the schedule: besides the factors with their beliefs, keeping one message in about
    ``sqrt(steps)`` needs, on a chain of cliques, about ``2 sqrt(all messages * largest message)``.
    """
    key = ("within", max_memory, surely)
    if key not in part.plans:
        part.plans[key] = _within(part, max(max_memory, 0) // 8, surely)
    return part.plans[key]


def _within(part: Structure, limit: int, surely: bool) -> bool:
    order = fast_order(part)  # the search for the best order would cost more than its use, later
    # a message is at most a clique without one variable
    if order.log2_largest > np.log2(limit * float(part.cardinalities.max(initial=1)) + 1.0):
        return False
    program = Program.of(part, order.order)
    messages = program.lengths[program.n_factors :].astype(float)
    all_of_them, largest = messages.sum(), messages.max(initial=0.0)
    fixed = 2.0 * program.lengths[: program.n_factors].sum() + part.cardinalities.sum()
    return bool(fixed + 2.0 * all_of_them <= limit) or bool(
        fixed + 2.0 * np.sqrt(all_of_them * largest) <= limit
        and (not surely or plan(program, True, True, limit).entries <= limit)
    )


def _block_within(structure: Structure, part: np.ndarray, max_memory: int, surely: bool = True) -> bool:
    """The same for the block of some variables."""
    return within(induced(structure, np.sort(part))[0], max_memory, surely)


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


def _orders(structure: Structure, strengths: np.ndarray, alive: Callable[[], None]) -> Iterator[np.ndarray]:
    n, edges = structure.n_variables, _weighted_edges(structure, strengths)
    graph = csr_array(edges, (n, n))
    graph = graph + graph.T
    narrow = np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)
    yield narrow
    yield np.arange(n)
    place = np.empty(n, np.int64)
    place[narrow] = np.arange(n)
    across = np.sort(place[np.array(edges[1], dtype=np.int64)], axis=0)
    width = np.cumsum(np.bincount(across[0], minlength=n) - np.bincount(across[1], minlength=n)).max(initial=0)
    if not edges[0] or not 8 < n <= _SPECTRAL or n * float(width) ** 2 > _FACTORISED:
        return
    alive()
    laplacian = diags_array(np.asarray(graph.sum(axis=1)).ravel()) - graph
    scale = float(abs(laplacian).max())
    try:  # shifted a little below zero, where the matrix is not singular
        _, vectors = eigsh(laplacian.tocsc(), k=3, sigma=-1e-6 * scale, v0=np.cos(np.arange(n)))
    except (ArpackNoConvergence, RuntimeError):
        return
    first, second = vectors[:, 1], vectors[:, 2]
    # in a square the two have one eigenvalue, and any mixture of them may come out
    for angle in (0.0, np.pi / 4, np.pi / 2, 3 * np.pi / 4):
        yield np.argsort(np.cos(angle) * first + np.sin(angle) * second, kind="stable")


def _weighted_edges(structure: Structure, strengths: np.ndarray) -> tuple[list[float], tuple[list[int], list[int]]]:
    """Pairs of variables in a factor with its strength."""
    rows, columns, weights = [], [], []
    for f in np.flatnonzero(np.diff(structure.scope_starts) > 1).tolist():
        for a, b in itertools.combinations(structure.scope(f), 2):
            rows.append(a)
            columns.append(b)
            weights.append(float(strengths[f]))
    return weights, (rows, columns)


def _grow(
    structure: Structure, strengths: np.ndarray, order: np.ndarray, max_memory: int, alive: Callable[[], None]
) -> list[np.ndarray]:
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    crossing = prices(structure, place, strengths)
    ends, begin, size = [], 0, 1
    while begin < order.size:
        end = _furthest(structure, order, begin, size, max_memory, alive)
        if end < order.size:
            earliest = begin + max(1, (3 * (end - begin) + 3) // 4)
            sizes = np.arange(earliest - begin, end + 1 - begin)
            best = earliest + int(np.argmin(crossing[earliest : end + 1] / sizes))  # small blocks mean more cuts
            # a part of what fits may have no order that is found: orders are heuristics
            if _block_within(structure, order[begin:best], max_memory):
                end = best
        ends.append(end)
        begin, size = end, end - begin
    even = _even_ends(crossing, len(ends))
    if crossing[even].sum() <= 1.05 * crossing[ends].sum() and all(
        _block_within(structure, part, max_memory) for part in np.split(order, even[:-1])
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


def _furthest(
    structure: Structure, order: np.ndarray, begin: int, size: int, max_memory: int, alive: Callable[[], None]
) -> int:
    """The end of about the longest stretch from `begin` that fits: bisection by the guess, then down to what does."""
    low, high, end = begin + 1, order.size + 1, min(begin + size, order.size)
    while high - low > max(1, (low - begin) // 16):
        alive()
        if _block_within(structure, order[begin:end], max_memory, surely=False):
            low, end = end, min(end + max(1, (end - begin) // 2), (end + high) // 2, order.size)
            if low == order.size:
                break
        else:
            high = end
            end = (low + high) // 2
        if end == low:
            break
    while low > begin and not _block_within(structure, order[begin:low], max_memory):
        alive()
        low -= max(1, (low - begin) // 8)
    if low == begin:
        raise TooWide(
            f"the factors of variable {int(order[begin])} alone do not fit: max_memory is {megabytes(max_memory)}: "
            "raise max_memory"
        )
    return low
