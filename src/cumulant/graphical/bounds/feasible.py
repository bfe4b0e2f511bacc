"""A state that is possible, for models that forbid most: backtracking with propagation, and local repair."""

from collections.abc import Callable

import numpy as np

from cumulant.graphical.bounds.feasible_kernels import backtrack, repair
from cumulant.graphical.exact.support import HardTables
from cumulant.graphical.structure import Structure
from cumulant.randomness import generator

_NOISE = 0.4  # how often a repair that violates others is a random one
_CONFLICTS, _VISITS, _REPAIRS = 50, 2_000_000, 20_000  # of the first round; each has twice those of the last
_LONGEST = 16  # times as long as the first, and no longer: a round cannot be interrupted
_SPREAD = 1.0  # nats by which preferences of values are perturbed from the second round on


def possible_state(
    structure: Structure,
    theta: np.ndarray,
    seed: int,
    more: Callable[[], None] = lambda: None,
    rounds: range = range(10),
    prefer: np.ndarray | None = None,
) -> tuple[np.ndarray | None, bool]:
    """A state in which no factor has the value minus infinity, and whether it is settled that there is one or none.

    Rounds of two searches in turn, each longer than the last: backtracking with propagation, which starts again with
    other preferences but remembers where conflicts were (Sabin and Freuder 1994; Boussemart and others 2004), and, from
    random states, local repair (WalkSAT; Selman, Kautz and Cohen 1994, here for tables of any kind). Backtracking that
    comes to its end without a state is a proof that there is none. `more` is called before each search, and may raise
    to end them.

    Parameters
    ----------
    rounds : range
        Which rounds to do: a later call may go on where another ended.
    prefer : array, optional
        For each state of each variable, one after the other, how much backtracking is to prefer it.

    >>> structure = Structure([2, 2], [(0, 1)])
    >>> possible_state(structure, np.array([-np.inf, 0.0, -np.inf, -np.inf]), 0)
    (array([0, 1]), True)
    >>> possible_state(structure, np.full(4, -np.inf), 0)
    (None, True)
    """
    hard = HardTables.of(structure, theta)
    prefer = np.zeros(int(structure.cardinalities.sum())) if prefer is None else prefer
    if hard is None:
        return np.zeros(structure.n_variables, np.int64), True
    if hard.contradiction:
        return None, True
    space = hard.workspace()
    if not space.propagate(hard):
        return None, True
    weights = np.ones(structure.n_variables)
    for r in rounds:
        draw, longer = generator((seed + r) % 2**63), min(2**r, _LONGEST)
        more()
        score = prefer + (_SPREAD * draw.standard_normal(prefer.size) if r else 0.0)
        found = backtrack(
            *hard.layout, space.possible, space.counts, space.trail, space.removed, space.queue, space.queued, 0,
            space.digits, space.seen, score, weights, _CONFLICTS * longer, _VISITS * longer,
        )  # fmt: skip
        if found < 0:
            return None, True
        if found > 0:
            return np.flatnonzero(space.possible) - hard.first[:-1], True
        more()
        states = np.empty(structure.n_variables, np.int64)
        for v, (a, b) in enumerate(zip(hard.first[:-1].tolist(), hard.first[1:].tolist(), strict=True)):
            states[v] = draw.choice(np.flatnonzero(space.possible[a:b]))
        if repair(*hard.layout, states, _REPAIRS * longer, _NOISE, (seed + r) % 2**63) >= 0:
            return states, True
    return None, False
