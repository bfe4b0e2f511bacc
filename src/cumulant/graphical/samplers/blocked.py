"""Blocked Gibbs sampling: whole forests of variables are drawn at once, exactly, given the others."""

import networkx as nx
import numpy as np

from cumulant.graphical.samplers.blocked_kernels import DOWN, OWN, UP, forest_chain, forests
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.graphical.samplers.gibbs import Run, TableArrays, one_by_one
from cumulant.graphical.structure import Structure


def acyclic_blocks(structure: Structure) -> list[np.ndarray]:
    """The variables in blocks that cover them all, each without a cycle: parents before children, roots first.

    Each variable joins the first block in which it closes no cycle. Two variables of a block share a factor only where
    one is the parent of the other, so that a block given the rest is a forest whatever the size of the factors.

    >>> from cumulant.graphical import Ising, grid
    >>> [len(block) for block in acyclic_blocks(Ising(grid(4, 4), 1.0).structure)]
    [12, 4]
    """
    return _search(structure)[0]


def _search(structure: Structure) -> tuple[list[np.ndarray], np.ndarray]:
    """The blocks and the parent of each variable in its block, -1 at roots."""
    n = structure.n_variables
    graph = Neighbours.of(n, structure.edges)
    block = forests(graph.indptr, graph.neighbours)
    inside = structure.edges[block[structure.edges[:, 0]] == block[structure.edges[:, 1]]]
    trees = nx.Graph()
    trees.add_nodes_from(range(n))
    trees.add_edges_from((i, j) for i, j in inside.tolist())
    parents, blocks = np.full(n, -1, np.int64), [[] for _ in range(int(block.max(initial=-1)) + 1)]
    for component in nx.connected_components(trees):
        root = min(component)
        blocks[block[root]].append(root)
        for above, below in nx.bfs_edges(trees, root):
            parents[below] = above
            blocks[block[root]].append(below)
    return [np.array(each, dtype=np.int64) for each in blocks], parents


def blocked_gibbs(structure: Structure, tables: np.ndarray) -> Run:
    """Sweeps that draw one forest after the other; the states are 0, 1, 2, ... in int64."""
    arrays = TableArrays.of(structure, tables)
    blocks, parents = _search(structure)
    block = np.empty(structure.n_variables, np.int64)
    for b, members in enumerate(blocks):
        block[members] = b
    kinds, parent_strides = np.full(arrays.factors.size, OWN), np.zeros(arrays.factors.size, np.int64)
    owner = np.repeat(np.arange(structure.n_variables), np.diff(arrays.starts))
    for a, (v, f) in enumerate(zip(owner.tolist(), arrays.factors.tolist(), strict=True)):
        for at in range(structure.scope_starts[f], structure.scope_starts[f + 1]):
            u = structure.scopes[at]
            if u != v and block[u] == block[v]:
                kinds[a] = UP if parents[v] == u else DOWN
                parent_strides[a] = arrays.scope_strides[at] if kinds[a] == UP else 0
    ends = np.cumsum([0, *map(len, blocks)])
    order = np.concatenate([*blocks, np.zeros(0, np.int64)])
    return one_by_one(forest_chain, order, ends, parents, kinds, parent_strides, arrays)
