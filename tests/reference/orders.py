"""Elimination of a graph on sets, as plainly as can be."""

import itertools

import numpy as np


def eliminate(n, scopes, order):
    """For each variable of the order: what is left, the graph then, and its clique."""
    beside = [set() for _ in range(n)]
    for scope in scopes:
        for a, b in itertools.permutations(scope, 2):
            beside[a].add(b)
    left = set(range(n))
    for v in order:
        yield v, set(left), [set(each) for each in beside]
        for a, b in itertools.permutations(beside[v], 2):
            beside[a].add(b)
        for u in beside[v]:
            beside[u].discard(v)
        left.discard(v)


def fill(beside, v):
    return sum(b not in beside[a] for a, b in itertools.combinations(beside[v], 2))


def weight(beside, v, sizes):
    return float(np.prod([sizes[u] for u in beside[v]], initial=sizes[v]))
