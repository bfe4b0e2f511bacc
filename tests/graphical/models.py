"""Random discrete models, and their joint tables written out by loops over all states."""

import itertools
import math

import numpy as np

from cumulant.graphical import FactorGraph


def random_model(seed: int) -> FactorGraph:
    """Cardinalities 1 to 4, arity 0 to 4, some impossible states, doubled factors, variables in no factor."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    sizes = rng.integers(1, 5, n)
    while np.prod(sizes) > 2000:
        sizes[rng.integers(n)] = 1
    factors = []
    for _ in range(int(rng.integers(0, 9))):
        scope = rng.permutation(n)[: rng.integers(0, min(4, n) + 1)]
        table = rng.normal(size=tuple(sizes[scope])) * rng.choice([0.5, 3.0])
        if seed % 3 == 0:
            table = np.where(rng.random(table.shape) < 0.15, -np.inf, table)
        factors.append((tuple(scope.tolist()), table))
        if rng.random() < 0.2:
            factors.append(factors[-1])
    return FactorGraph(sizes.tolist(), factors)


def joint(sizes, factors, evidence=None):
    """``sum of log tables`` at every state, by a loop; -inf where it disagrees with the evidence."""
    scores = np.zeros(tuple(sizes))
    for x in itertools.product(*map(range, sizes)):
        scores[x] = math.fsum(float(table[tuple(x[v] for v in scope)]) for scope, table in factors)
        if any(x[v] != state for v, state in (evidence or {}).items()):
            scores[x] = -np.inf
    return scores


def distribution(scores):
    """``log Z`` and the probabilities."""
    top = scores.max()
    if top == -np.inf:
        return -np.inf, None
    p = np.exp(scores - top)
    return float(top + np.log(p.sum())), p / p.sum()


def marginal(p, scope):
    """The table of some variables, in their order."""
    kept = p.sum(axis=tuple(v for v in range(p.ndim) if v not in scope))
    return kept.transpose(np.argsort(np.argsort(scope)))
