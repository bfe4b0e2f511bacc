"""Learning from the joint table of a small model: conditional likelihoods and Gibbs updates from their definitions.

`p` is the joint table, with an axis for each variable.
"""

import itertools

import numpy as np

from cumulant import randomness_kernels
from tests.compiled import from_python

uniform_pair = from_python(randomness_kernels.uniform_pair)


def joint_scores(cardinalities, factors):
    """The sum of the log tables at every state."""
    total = np.zeros(tuple(cardinalities))
    for x in itertools.product(*map(range, cardinalities)):
        total[x] = sum(table[tuple(x[v] for v in scope)] for scope, table in factors)
    return total


def conditional_likelihood(p, data, blocks):
    """``-mean over data of sum_b log p(x_b | rest)``."""
    total = 0.0
    for x in data:
        for block in blocks:
            given = tuple(slice(None) if v in block else x[v] for v in range(p.ndim))
            total -= np.log(p[tuple(x)] / p[given].sum())
    return total / len(data)


def random_scan(p, x, steps, seed, chain):
    """The state after `steps` updates of one variable each, drawn by (seed, chain, step)."""
    x = list(x)
    for t in range(steps):
        where, u = uniform_pair(seed, chain, t, 0)
        v = int(where * p.ndim)
        law = p[tuple(slice(None) if w == v else x[w] for w in range(p.ndim))]
        x[v] = int(np.searchsorted(np.cumsum(law / law.sum())[:-1], u, side="right"))
    return x
