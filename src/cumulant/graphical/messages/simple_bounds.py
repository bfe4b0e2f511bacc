"""Bounds on ``log Z`` that anyone can check: the score of one state, and the largest entry of every table.

They are far apart, and share no arithmetic with the bounds of other files: what these claim is compared with them.
"""

import math

import numpy as np

from cumulant.certificates import Assumption, check, rounding
from cumulant.graphical.exact.elimination import largest_entries
from cumulant.graphical.messages.simple_bounds_kernels import best_states
from cumulant.graphical.structure import Structure

_SWEEPS = 3


def simple_bounds(structure: Structure, theta: np.ndarray) -> tuple[float, float]:
    """``score(x) <= log Z <= sum_f max theta_f + sum_i log |X_i|``, rounding included.

    The state ``x`` is found by coordinate ascent; -inf is no bound.

    >>> structure = Structure([2, 2], [(0, 1)])
    >>> low, high = simple_bounds(structure, np.array([3.0, 0.0, 0.0, 1.0]))
    >>> round(low, 6), round(high, 6)
    (3.0, 4.386294)
    """
    tables = np.array(theta)
    entries = structure.entries(improve_state(structure, tables, np.zeros(structure.n_variables, np.int64)))
    score = math.fsum(tables[entries].tolist())
    log_states = math.fsum(np.log(structure.cardinalities).tolist())
    tops = np.maximum.reduceat(tables, structure.table_starts[:-1]) if structure.n_factors else np.zeros(0)
    upper = math.fsum([log_states, *tops.tolist()])
    slack = rounding(largest_entries(structure, tables)[0], log_states, terms=4.0)
    return score - slack, upper + slack


def improve_state(structure: Structure, theta: np.ndarray, state: np.ndarray) -> np.ndarray:
    """Coordinate ascent on the score from a state: fewer impossible entries first, then the larger score."""
    out, n = state.copy(), structure.n_variables
    factor = np.repeat(np.arange(structure.n_factors), np.diff(structure.scope_starts))
    link_starts = np.concatenate([[0], np.cumsum(np.bincount(structure.scopes, minlength=n))]).astype(np.int64)
    best_states(
        structure.cardinalities, structure.table_starts, structure.scope_starts, structure.scopes, factor, link_starts,
        np.argsort(structure.scopes, kind="stable"), theta, out, _SWEEPS,
    )  # fmt: skip
    return out


def check_simple_bounds(structure: Structure, theta: np.ndarray, lower: float, upper: float) -> Assumption:
    """Refuse a claim ``log Z in [lower, upper]`` where it and the simple bounds have nothing in common."""
    least, most = simple_bounds(structure, theta)
    return check(
        upper >= least and lower <= most,
        "the score of one state and the largest entries of all tables agree with the bound",
        f"{least:.6g} <= log Z <= {most:.6g}",
    )
