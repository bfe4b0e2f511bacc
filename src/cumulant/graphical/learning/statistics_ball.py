"""A ball that holds the statistics of every state, and how much they vary: what concentration and smoothness need."""

import math

import numpy as np

from cumulant.graphical.discrete_family import DiscreteFamily


def statistics_ball(family: DiscreteFamily, free: np.ndarray) -> tuple[np.ndarray, float]:
    """A centre ``c`` and a radius ``R`` with ``|T(x) - c| <= R`` for every ``x``, of the statistics `free`.

    Only differences of statistics enter the covariance, the error of a mean of draws and the bias of a chain, so that
    any centre will do. ``T(x)`` picks one row of the design in each table. For each table the centre is the mean of
    its rows (one indicator in a table of ``k`` entries: ``R^2 = 1 - 1/k``) or the middle of their range (a number from
    0 to 1: ``1/4``; a spin: 1), whichever is better; the squares add up over tables that share no statistic.

    Examples
    --------
    >>> from cumulant.graphical import Ising, PairwiseMRF
    >>> family = Ising([(0, 1)], 0.0).family                          # two spins and their product
    >>> statistics_ball(family, np.arange(3))
    (array([0., 0., 0.]), 1.7320508075688772)
    >>> family = PairwiseMRF([[0, 0], [0, 0]], [(0, 1)], [[[0, 0], [0, 0]]]).family
    >>> round(statistics_ball(family, np.arange(8))[1] ** 2, 12)       # 1/2 + 1/2 + 3/4
    1.75
    """
    centre, squares = _by_table(family, free)
    return centre, math.sqrt(float(squares.sum()))


def spectral_gap_smoothness(family: DiscreteFamily, free: np.ndarray, log_rate: float) -> float:
    """A bound on the largest eigenvalue of the covariance of the statistics `free`, where Gibbs sampling mixes fast.

    Let ``d(v) <= C exp(log_rate v)`` for Gibbs sampling of one of ``N`` sites at a time. Then its spectral gap is at
    least ``1 - exp(log_rate)``, and by Poincare's inequality ``Var f <= sum_i E Var_i f / (N (1 - exp(log_rate)))``,
    ``Var_i`` the variance under an update of site ``i``. For ``f = <w, T>`` the tables that have ``i``, ``c_i`` of
    them, move by at most ``r |w_table|`` each, ``r`` the radius of the ball of a table, so that ``Var_i f <= c_i sum
    r^2 |w_table|^2``. Hence ``max_table r^2 sum_{i in table} c_i / (N (1 - exp(log_rate)))``: for spins of a graph of
    degree ``D``, and a norm ``kappa`` of the dependency matrix, nearly ``2 D / (1 - kappa)``, however many there are.
    Infinite where tables share statistics.

    Examples
    --------
    >>> from cumulant.graphical import FastMixing, Ising, torus
    >>> model, mixing = Ising(torus(30, 30), 0.0), FastMixing(0.5).mixing(torus(30, 30), 900)
    >>> free = np.arange(900, 2700)  # of couplings: R^2 is 1800
    >>> round(spectral_gap_smoothness(model.family, free, mixing.log_rate), 2)
    16.0
    """
    structure, (_, squares) = family.structure, _by_table(family, free)
    if squares.size != structure.scope_starts.size - 1:
        return math.inf
    table = np.repeat(np.arange(squares.size), np.diff(structure.scope_starts))
    tables_of_site = np.bincount(structure.scopes, squares[table] > 0, structure.n_variables)
    moves = np.bincount(table, tables_of_site[structure.scopes], squares.size)
    return float((squares * moves).max(initial=0.0)) / (-structure.n_variables * math.expm1(log_rate)) * (1 + 1e-12)


def _by_table(family: DiscreteFamily, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The centre, and squared radii of the tables; where they share statistics one for all."""
    starts = family.structure.table_starts
    sizes = np.diff(starts)
    table = np.repeat(np.arange(sizes.size), sizes)  # of each entry
    if family.design is None:
        chosen = np.zeros(family.dim, dtype=bool)
        chosen[free] = True
        whole = np.bincount(table[chosen], minlength=sizes.size)
        if not ((whole == 0) | (whole == sizes)).all():
            raise ValueError("free must have all or none of the entries of a table")
        return 1.0 / sizes[table[free]], np.where(whole > 0, 1.0 - 1.0 / sizes, 0.0)
    design = family.design[:, free].tocoo()
    home = np.full(free.size, -1, dtype=np.int64)
    home[design.col] = table[design.row]
    if (home[design.col] != table[design.row]).any():  # statistics are shared: lengths add up, about zero
        lengths = np.sqrt(np.bincount(design.row, design.data**2, table.size))
        longest = np.zeros(sizes.size)
        np.maximum.at(longest, table, lengths)
        return np.zeros(free.size), np.array([longest.sum() ** 2])
    top, bottom = np.zeros(free.size), np.zeros(free.size)  # an entry that is not stored is zero
    np.maximum.at(top, design.col, design.data)
    np.minimum.at(bottom, design.col, design.data)
    full = np.bincount(design.col, minlength=free.size) == sizes[home]
    if full.any():  # zero does not occur: the range is that of what is stored
        top[full], bottom[full] = -math.inf, math.inf
        np.maximum.at(top, design.col, design.data)
        np.minimum.at(bottom, design.col, design.data)
    means = np.bincount(design.col, design.data, free.size) / sizes[home]
    centres = np.stack([means, 0.5 * (top + bottom)])
    squares = np.stack([_largest(design, home, table, sizes.size, centre) for centre in centres])
    best = squares.argmin(axis=0)
    return centres[best[home], np.arange(free.size)], squares.min(axis=0)


def largest_variance_at_zero(family: DiscreteFamily, free: np.ndarray) -> float:
    """The largest variance, where all states are equally likely, of a unit combination of the statistics of one table.

    The gradient of the mean log-likelihood has no Lipschitz constant below it. Zero where statistics are shared between
    tables.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> largest_variance_at_zero(Ising([(0, 1)], 0.0).family, np.arange(3))
    1.0
    """
    sizes = np.diff(family.structure.table_starts)
    table = np.repeat(np.arange(sizes.size), sizes)
    if family.design is None:  # of k indicators, one of which is 1: every combination that adds up to zero has 1/k
        return float((1.0 / sizes[table[free]][sizes[table[free]] > 1]).max(initial=0.0))
    design = family.design[:, free].tocoo()
    home = np.full(free.size, -1, dtype=np.int64)
    home[design.col] = table[design.row]
    if not design.nnz or (home[design.col] != table[design.row]).any():
        return 0.0
    mean, square = (np.bincount(design.col, design.data**power, free.size) / sizes[home] for power in (1, 2))
    return float((square - mean**2).max())


def _largest(design, home, table, n_tables, centre) -> np.ndarray:
    """For each table the largest ``|row - centre|^2`` among its rows."""
    own = np.bincount(home, centre**2, n_tables)[table]
    own += np.bincount(design.row, design.data * (design.data - 2.0 * centre[design.col]), table.size)
    largest = np.zeros(n_tables)
    np.maximum.at(largest, table, own)
    return largest
