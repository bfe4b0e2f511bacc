"""Small labelled graphs of many shapes, with factors on one, two and three variables, and laws on them."""

import networkx as nx
import numpy as np

from cumulant.sequences import Factors, GraphData, TreeMarginals

GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3), ordering="sorted")
SHAPES = {  # variables, edges, triples
    "star": (5, [(0, 1), (2, 0), (0, 3), (4, 0)], []),
    "triangle": (3, [(0, 1), (2, 1), (0, 2)], [(2, 0, 1)]),
    "square": (4, [(0, 1), (1, 2), (3, 2), (3, 0)], []),
    "apart": (6, [(0, 1), (3, 4), (3, 5)], [(4, 5, 3)]),
    "single": (1, [], []),
    "twice": (3, [(0, 1), (1, 0), (0, 1)], [(0, 1, 2), (2, 1, 0)]),
    "grid": (9, list(GRID.edges), []),
}


def graphs(rng, shapes=tuple(SHAPES), labels=2, features=3, scale=1.0):
    """Labelled graphs of these shapes; factors of a kind are in no order."""
    sizes = [SHAPES[shape][0] for shape in shapes]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scopes = {1: [], 2: [], 3: []}
    for shape, first in zip(shapes, offsets[:-1], strict=True):
        size, edges, triples = SHAPES[shape]
        scopes[1] += [(first + v,) for v in range(size)]
        scopes[2] += [(first + u, first + v) for u, v in edges]
        scopes[3] += [(first + u, first + v, first + t) for u, v, t in triples]
    factors = {}
    for kind, (arity, own) in zip(("nodes", "edges", "triples"), scopes.items(), strict=True):
        variables = rng.permutation(np.array(own, dtype=np.int64).reshape(-1, arity))
        rows = (
            scale * rng.normal(size=(len(variables), features)) * (rng.uniform(size=(len(variables), features)) < 0.7)
        )
        factors[kind] = Factors(variables, rows)
        features -= 1  # a number of features for each kind
    return GraphData(offsets, factors, rng.integers(0, labels, size=offsets[-1]))


def scopes_of(problem, i):
    """The cliques and separators of graph `i`, in the order of its marginals."""
    layout = problem.inference.layout
    structure = layout.structures[i]
    cliques, separators = [], []
    for c in range(layout.cliques[structure], layout.cliques[structure + 1]):
        clique = layout.variables[layout.scopes[c] : layout.scopes[c + 1]].tolist()
        cliques.append(clique)
        separators.append(clique[: layout.shared[c]])
    return cliques, separators


def marginals(problem, every, laws):
    """The marginals of a law on each graph, by enumeration."""
    tables, below = [], []
    for i, law in enumerate(laws):
        cliques, separators = scopes_of(problem, i)
        tables += [every.marginal(law, i, scope) for scope in cliques]
        below += [every.marginal(law, i, scope) for scope in separators]
    return TreeMarginals(np.concatenate(tables), np.concatenate(below))


def inconsistency(problem, mu):
    """The largest disagreement between the marginals of cliques and of their separators, on both sides."""
    layout, k, worst = problem.inference.layout, problem.n_labels, 0.0
    for i in range(problem.n_terms):
        cliques, separators = scopes_of(problem, i)
        table, below, tables = layout.table_offsets[i], layout.separator_offsets[i], []
        first = layout.cliques[layout.structures[i]]
        for c, (clique, separator) in enumerate(zip(cliques, separators, strict=True)):
            size, states = k ** len(clique), k ** len(separator)
            tables.append(mu.cliques[table : table + size].astype(float).reshape([k] * len(clique)))
            share = mu.separators[below : below + states].reshape([k] * len(separator))
            table, below = table + size, below + states
            worst = max(worst, np.max(np.abs(tables[c].sum(axis=tuple(range(len(separator), len(clique)))) - share)))
            parent = layout.parents[first + c] - first
            if parent >= 0:
                others = tuple(p for p, v in enumerate(cliques[parent]) if v not in separator)
                kept = [v for v in cliques[parent] if v in separator]
                onto = tables[parent].sum(axis=others).transpose([kept.index(v) for v in separator])
                worst = max(worst, np.max(np.abs(onto - share)))
            else:
                worst = max(worst, abs(tables[c].sum() - 1.0))
    return float(worst)
