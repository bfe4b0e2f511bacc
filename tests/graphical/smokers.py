"""The posterior of who decides alone, in a network of three: a factor graph with gates and deterministic ORs.

Persons 0 and 1 smoke, 2 does not; 0 is a friend of both others (Carbonetto 2009, thesis chapter 5).
"""

import itertools

import numpy as np

from cumulant.graphical import FactorGraph

THETA = (0.6, 0.1, 0.2, 0.7, 0.15, 0.4, 0.05, 0.3, 0.5, 0.25, 0.2, 0.1, 0.8, 0.45)
SMOKES, FRIENDS = (1, 1, 0), ((0, 1), (0, 2))


def smokers(smokes=SMOKES, friends=FRIENDS) -> FactorGraph:
    """13 variables: z of each person, then "a smoker / a non-smoker advised", then who advised whom; 19 factors.

    Of other habits and friendships there are other numbers of gates.
    """
    n = len(smokes)
    factors = [((x,), np.array([1 - THETA[0], THETA[0]])) for x in range(n)]
    for x, y in itertools.combinations(range(n), 2):
        table = np.zeros((2, 2))
        for z in itertools.product((0, 1), repeat=2):
            if z == (1, 1):
                p = THETA[1 + smokes[x] + smokes[y]]
            elif z == (0, 0):
                p = THETA[6]
            else:
                p = THETA[4 + smokes[x if z[0] else y]]
            table[z] = p if (x, y) in friends else 1 - p
        factors.append(((x, y), table))
    for x in range(n):
        p = np.full((2, 2, 2), THETA[7])
        p[0] = np.reshape(THETA[10:14], (2, 2))
        factors.append(((x, n + x, 2 * n + x), p if smokes[x] else 1 - p))
    gates = [(x, y) for a, b in friends for x, y in ((a, b), (b, a))]
    causes = {}
    for g, (x, y) in enumerate(gates):
        p = THETA[8] if smokes[y] else THETA[9]
        factors.append(((3 * n + g, y), np.array([[1.0, 1 - p], [0.0, p]])))
        causes.setdefault((n if smokes[y] else 2 * n) + x, []).append(3 * n + g)
    for aggregate in range(n, 3 * n):
        inputs = causes.get(aggregate, [])
        table = np.zeros((2,) * (1 + len(inputs)))
        for x in itertools.product((0, 1), repeat=len(inputs)):
            table[(int(any(x)), *x)] = 1.0
        factors.append(((aggregate, *inputs), table))
    return FactorGraph.from_tables([2] * (3 * n + len(gates)), factors)
