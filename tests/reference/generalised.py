"""Generalised belief propagation in plain numbers: products of tables, no logarithms."""

import itertools

import numpy as np


def generalised_sweeps(sizes, outer, inner, counting, tables, damping, sweeps):
    """Beliefs of the outer regions after some sweeps over the inner ones, forth and back.

    `outer` and `inner` are sorted tuples of variables; `tables` one (positive) table for each outer region.
    """
    above = [[r for r, region in enumerate(outer) if set(own) < set(region)] for own in inner]
    multipliers = {(r, i): np.ones([sizes[v] for v in own]) for i, own in enumerate(inner) for r in above[i]}

    def belief(r):
        out = tables[r].copy()
        for i, own in enumerate(inner):
            if r in above[i]:
                for x in itertools.product(*(range(sizes[v]) for v in outer[r])):
                    out[x] *= multipliers[r, i][tuple(x[outer[r].index(v)] for v in own)]
        return out / out.sum()

    for sweep in range(sweeps):
        for i in range(len(inner)) if sweep % 2 == 0 else range(len(inner) - 1, -1, -1):
            without = {}
            for r in above[i]:
                axes = tuple(a for a, v in enumerate(outer[r]) if v not in inner[i])
                without[r] = belief(r).sum(axis=axes) / multipliers[r, i]
            q = np.prod(list(without.values()), axis=0) ** (1 / (len(above[i]) + counting[i]))
            q /= q.sum()
            for r in above[i]:
                multipliers[r, i] = (q / without[r]) ** (1 - damping) * multipliers[r, i] ** damping
    return [belief(r) for r in range(len(outer))]
