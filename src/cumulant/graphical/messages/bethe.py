"""The free energies of beliefs: Bethe's, and those of region graphs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

from cumulant.graphical.messages.region_graph import RegionGraph
from cumulant.graphical.messages.region_layout import sum_out


def bethe_free_energy(model: Any, marginals: Sequence[Any], beliefs: Sequence[Any]) -> float:
    """``sum_f sum b_f log(b_f / f) + sum_i (1 - d_i) sum b_i log b_i``, with ``d_i`` the number of factors of ``i``.

    Minus it is ``log Z`` where beliefs are the marginals of a tree, and an estimate of it elsewhere, on either side. It
    is meant for beliefs that agree on what they share, and infinite where they have mass on impossible states.

    Parameters
    ----------
    model : DiscreteModel
    marginals : sequence of arrays
        A distribution for each variable, as ``model.marginals(...)`` gives them.
    beliefs : sequence of arrays
        A table for each factor, as ``model.beliefs(...)`` gives them.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> chain = Ising([(0, 1), (1, 2)], [0.5, -0.3], [0.4, 0.3, -0.5])
    >>> value = bethe_free_energy(chain, chain.marginals(), chain.beliefs())
    >>> bool(np.isclose(-value, chain.log_partition()))
    True
    """
    factors = model.factors
    if len(beliefs) != len(factors) or len(marginals) != model.structure.n_variables:
        raise ValueError(
            f"bethe_free_energy needs {model.structure.n_variables} marginals and {len(factors)} beliefs; got "
            f"{len(marginals)} and {len(beliefs)}"
        )
    degrees = np.bincount(model.structure.scopes, minlength=model.structure.n_variables)
    value = 0.0
    for f, ((scope, table), belief) in enumerate(zip(factors, beliefs, strict=True)):
        value += _surplus(_checked(belief, table.shape, f"the belief of factor {f} over {scope}"), table)
    for i, p in enumerate(marginals):
        p = _checked(p, (int(model.structure.cardinalities[i]),), f"the marginal of variable {i}")
        value += (1.0 - degrees[i]) * float(np.sum(xlogy(p, p)))
    return float(value)


def region_free_energy(model: Any, regions: RegionGraph, beliefs: Sequence[Any]) -> float:
    """``sum_R c_R (U_R - H_R)`` from a table for each outer region, one axis for each of its variables in their order.

    Inner regions take their distributions from the first outer region around them; factors of no variables count once.

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> pair = Ising([(0, 1)], 0.5, [0.2, 0.1])
    >>> graph = RegionGraph.of(pair, [(0, 1)])
    >>> bool(np.isclose(-region_free_energy(pair, graph, [pair.beliefs()[2]]), pair.log_partition()))
    True
    """
    structure, theta, _ = model.restricted()
    if len(beliefs) != len(regions.outer):
        raise ValueError(f"beliefs must be a table for each of {len(regions.outer)} outer regions; got {len(beliefs)}")
    value = -sum(float(structure.table(f, theta)) for f in range(structure.n_factors) if not structure.scope(f))
    tables: list[tuple[np.ndarray, list[int]]] = []
    homes: dict[int, int] = {}
    for r, region in enumerate(regions.outer):
        members = sorted(region.variables)
        shape = tuple(structure.cardinalities[members].tolist())
        tables.append((_checked(beliefs[r], shape, f"the belief of outer region {r}"), members))
        value += float(np.sum(xlogy(tables[r][0], tables[r][0])))
        for f in region.factors:
            homes.setdefault(f, r)
    for f, r in homes.items():
        belief, table = sum_out(*tables[r], structure.scope(f)), structure.table(f, theta)
        value -= float(np.sum(belief[belief > 0] * table[belief > 0]))
    for region, c in zip(regions.inner, regions.counting, strict=True):
        home = next(r for r, outer in enumerate(regions.outer) if region.variables <= outer.variables)
        p = sum_out(*tables[home], tuple(sorted(region.variables)))
        value += c * float(np.sum(xlogy(p, p)))
    return float(value)


def _surplus(belief: np.ndarray, table: np.ndarray) -> float:
    there = belief > 0
    return float(np.sum(belief[there] * (np.log(belief[there]) - table[there])))


def _checked(p: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    p = np.asarray(p, dtype=np.float64)
    if p.shape != shape or not (np.isfinite(p).all() and (p >= 0).all() and abs(p.sum() - 1.0) <= 1e-6):
        raise ValueError(f"{what} must be a distribution of shape {shape}; got shape {p.shape}, sum {p.sum():.6g}")
    return p
