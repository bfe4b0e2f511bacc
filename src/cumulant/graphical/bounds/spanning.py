"""Subgraphs that cover a graph: small clusters of variables, joined by a tree.

With clusters of one variable these are spanning trees. On dense graphs, which have no good cuts, clusters keep far more
of the factors at once.
"""

import itertools
from collections.abc import Callable

import numpy as np

from cumulant.graphical.bounds.partition import at_once, with_fields
from cumulant.graphical.structure import Structure


def cover(
    structure: Structure,
    strength: np.ndarray,
    missing: np.ndarray,
    max_memory: int,
    bits: float = 12.0,
    alive: Callable[[], None] = lambda: None,
    few: bool = False,
) -> list[tuple[np.ndarray, Structure]]:
    """Subgraphs that fit into `max_memory` and together keep every factor marked in `missing`.

    Each is a maximum spanning tree of clusters, where a factor counts by its strength, and by far more while it is
    missing (before any other where there are to be `few` of them). Returned are the factors of each, and its structure
    with a table for each variable. `alive` is called between pieces of work, and may raise to end them.
    """
    out, missing = [], missing.copy()
    times = np.where(missing, 0.0, 1.0)
    while missing.any():
        weight = (strength + 1e-9) / (1.0 + 100.0 * times)
        if few:
            weight = np.where(missing, 1e9 + weight, weight)
        while True:
            alive()
            kept = np.flatnonzero(spanning_subgraph(structure, weight, bits))
            part = with_fields(structure, kept)
            if bits <= 0.0 or at_once(part, max_memory):
                break
            bits -= 1.0
        if not missing[kept].any():  # the heaviest missing factor comes first in a tree of its own making
            bits, weight = 0.0, np.where(missing, 1e9 + weight, weight)
            kept = np.flatnonzero(spanning_subgraph(structure, weight, bits))
            part = with_fields(structure, kept)
        times[kept] += 1.0
        missing[kept] = False
        out.append((kept, part))
    return out


def spanning_subgraph(structure: Structure, weight: np.ndarray, bits: float) -> np.ndarray:
    """Which factors to keep so that those kept make a tree of clusters, each of at most `bits` bits of states.

    Clusters grow by the variable that is tied most strongly to them. All factors inside them are kept, and of the
    others, the heaviest first (Kruskal 1956), those that join clusters not yet joined.
    """
    n = structure.n_variables
    cluster = _clusters(structure, weight, bits) if bits > 0 else np.arange(n)
    own, ends = cluster[structure.scopes].tolist(), structure.scope_starts.tolist()
    touched = [sorted(set(own[a:b])) for a, b in itertools.pairwise(ends)]
    parent = list(range(n))

    def root(c):
        while parent[c] != c:
            parent[c] = parent[parent[c]]
            c = parent[c]
        return c

    kept = np.zeros(structure.n_factors, dtype=bool)
    for f in np.argsort(-weight, kind="stable").tolist():
        roots = [root(c) for c in touched[f]]
        if len(set(roots)) == len(roots):
            kept[f] = True
            for r in roots[1:]:
                parent[r] = roots[0]
    for f, those in enumerate(touched):
        if len(those) <= 1:
            kept[f] = True
    return kept


def _clusters(structure: Structure, weight: np.ndarray, bits: float) -> np.ndarray:
    n, sizes = structure.n_variables, np.log2(structure.cardinalities)
    tie: list[dict[int, float]] = [{} for _ in range(n)]
    for f in range(structure.n_factors):
        scope = structure.scope(f)
        for i in scope:
            for j in scope:
                if i != j:
                    tie[i][j] = tie[i].get(j, 0.0) + float(weight[f])
    total = np.array([sum(each.values()) for each in tie])
    cluster, count = np.full(n, -1, dtype=np.int64), 0
    for start in np.argsort(-total, kind="stable").tolist():
        if cluster[start] >= 0:
            continue
        pull, room, v = {}, bits, start
        while v is not None:
            cluster[v] = count
            room -= sizes[v]
            pull.pop(v, None)
            for u, t in tie[v].items():
                if cluster[u] < 0:
                    pull[u] = pull.get(u, 0.0) + t
            able = [(t, -u) for u, t in pull.items() if sizes[u] <= room]
            v = -max(able)[1] if able else None
        count += 1
    return cluster
