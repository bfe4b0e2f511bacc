"""How much one variable of a pairwise model can move another: the dependency matrix behind every mixing bound."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from cumulant import checks
from cumulant.errors import DomainError

BOUNDS = ("oscillation", "tanh", "linear")


def dependency_matrix(model: Any, bound: str = "oscillation") -> csr_array:
    """``R_ij``: at most how far, in total variation, ``x_i`` given the rest moves when ``x_j`` changes.

    Of a table ``theta_ij(a, b)``, ``a`` the state of ``i`` and ``b`` that of ``j`` (tables of the same pair added):

    * ``"linear"``: ``max_{a,b,c} |theta(a, b) - theta(a, c)| / 2``, for spins ``|J_ij|`` (Domke 2015, section 3.1). The
      set ``{theta : norm(R) <= c}`` is convex: the one to project onto;
    * ``"tanh"``: the hyperbolic tangent of that, for spins ``tanh |J_ij|``;
    * ``"oscillation"``: ``max_{b,c} tanh(osc_a[theta(a, b) - theta(a, c)] / 4)``, the smallest of the three. It is
      attained, does not change when terms of one variable are moved into a table, and for spins is ``tanh |J_ij|``.

    Fields never enter. The matrix need not be symmetric. Variables given by evidence, which a sampler does not move,
    have rows and columns of zeros.

    Parameters
    ----------
    model : DiscreteModel
        With factors of at most two variables that are not given by evidence, and no impossible states.
    bound : str

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> dependency_matrix(Ising([(0, 1)], -0.5), "linear").toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    checks.choice("bound", bound, BOUNDS)
    rows, columns, values = [], [], []
    for pairs, tables in pair_tables(model):
        for i, j, t in ((0, 1, tables), (1, 0, tables.transpose(0, 2, 1))):
            rows.append(pairs[:, i])
            columns.append(pairs[:, j])
            values.append(_influence(t, bound))
    n = model.n_variables
    if not rows:
        return csr_array((n, n))
    index = (np.concatenate(rows), np.concatenate(columns))
    return coo_array((np.concatenate(values), index), shape=(n, n)).tocsr()


def _influence(tables: np.ndarray, bound: str) -> np.ndarray:
    """Of the second variable on the first, for tables of shape (pairs, states of the first, of the second)."""
    if bound == "oscillation":
        largest = np.zeros(len(tables))
        for b in range(tables.shape[2]):
            change = tables - tables[:, :, b : b + 1]
            doubt = 2.0**-51 * np.abs(change).max(axis=1)  # where terms of one variable are large, differences cancel
            largest = np.maximum(largest, (change.max(axis=1) - change.min(axis=1) + doubt).max(axis=1))
        return np.tanh(largest / 4.0)
    linear = 0.5 * (tables.max(axis=2) - tables.min(axis=2)).max(axis=1)
    return linear if bound == "linear" else np.tanh(linear)


def pair_tables(model: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pairs ``i < j`` that share a table, each once, with their tables of logarithms added up.

    One entry for each shape of table: pairs (k, 2) and tables (k, states of i, states of j). A `DomainError` where a
    factor has more than two free variables or forbids a state: no bound of this kind speaks of those.
    """
    structure, flat, left = model.restricted()
    width = np.diff(structure.scope_starts)
    if (width > 2).any():
        raise DomainError(
            f"a mixing bound needs factors of at most two variables; factor {int(np.argmax(width > 2))} has "
            f"{int(width.max())} that are not given"
        )
    if np.isneginf(flat).any():
        raise DomainError("a mixing bound needs a model without impossible states: a table has an entry -inf")
    factor = np.flatnonzero(width == 2)
    scopes = structure.scopes[structure.scope_starts[factor][:, None] + np.arange(2)]
    sizes = structure.cardinalities[scopes]
    groups: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for shape in np.unique(sizes, axis=0):
        of_shape = (sizes == shape).all(axis=1)
        for turned in (False, True):
            here = of_shape & ((scopes[:, 0] > scopes[:, 1]) == turned)
            if here.any():
                start = structure.table_starts[factor[here]]
                tables = flat[start[:, None] + np.arange(shape.prod())].reshape(-1, *shape)
                pairs = scopes[here]
                if turned:
                    pairs, tables = pairs[:, ::-1], tables.transpose(0, 2, 1)
                groups.setdefault(tables.shape[1:], []).append((pairs, tables))
    out = []
    for parts in groups.values():
        pairs, tables = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        code, place = np.unique(pairs[:, 0] * structure.n_variables + pairs[:, 1], return_inverse=True)
        total = np.zeros((code.size, *tables.shape[1:]))
        np.add.at(total, place, tables)
        out.append((left[np.stack([code // structure.n_variables, code % structure.n_variables], axis=1)], total))
    return out
