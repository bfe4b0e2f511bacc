"""Transition matrices of samplers, by enumeration of all states, from their definitions.

States are numbered as the entries of the joint table `p` (an axis for each variable), the last variable fastest.
"""

import itertools

import numpy as np


def states_of(p):
    return list(itertools.product(*map(range, p.shape)))


def block_update(p, block):
    """The variables of `block` are drawn from their joint distribution given the others."""
    states = states_of(p)
    kernel = np.zeros((len(states), len(states)))
    for a, x in enumerate(states):
        for b, y in enumerate(states):
            if all(x[v] == y[v] for v in range(p.ndim) if v not in block):
                kernel[a, b] = p[y]
    return kernel / kernel.sum(axis=1, keepdims=True)


def systematic(p, order):
    kernel = np.eye(p.size)
    for block in order:
        kernel = kernel @ block_update(p, block)
    return kernel


def random_scan(p, sites):
    """A sweep: as many updates as there are sites, each of one drawn uniformly."""
    one = sum(block_update(p, (v,)) for v in sites) / len(sites)
    return np.linalg.matrix_power(one, len(sites))


def components(n, bonds):
    label = list(range(n))
    for i, j in bonds:
        old, new = label[i], label[j]
        label = [new if each == old else each for each in label]
    return label


def bond_patterns(candidates):
    """Every choice among ``(i, j, probability)`` with its probability."""
    for chosen in itertools.product((False, True), repeat=len(candidates)):
        weight = 1.0
        for on, (_, _, p) in zip(chosen, candidates, strict=True):
            weight *= p if on else 1.0 - p
        yield [(i, j) for on, (i, j, _) in zip(chosen, candidates, strict=True) if on], weight


def ising_clusters(n, edges, couplings, fields, single):
    """Swendsen-Wang, or with `single` Wolff; spin ``n`` is a ghost, always +1. States 0 and 1 are -1 and +1."""
    states = list(itertools.product((0, 1), repeat=n))
    number = {x: a for a, x in enumerate(states)}
    kernel = np.zeros((len(states), len(states)))
    for x in states:
        spin = [2 * s - 1 for s in x] + [1]
        pairs = [*zip(edges[:, 0], edges[:, 1], couplings, strict=True), *((i, n, h) for i, h in enumerate(fields))]
        candidates = [(i, j, 1 - np.exp(-2 * abs(J))) for i, j, J in pairs if J * spin[i] * spin[j] > 0]
        for bonds, weight in bond_patterns(candidates):
            label = components(n + 1, bonds)
            if single:
                for start in range(n):
                    turned = set() if label[start] == label[n] else {label[start]}
                    y = tuple(1 - x[i] if label[i] in turned else x[i] for i in range(n))
                    kernel[number[x], number[y]] += weight / n
            else:
                free = sorted(set(label[:n]) - {label[n]})
                for flips in itertools.product((0, 1), repeat=len(free)):
                    turned = {c for c, f in zip(free, flips, strict=True) if f}
                    y = tuple(1 - x[i] if label[i] in turned else x[i] for i in range(n))
                    kernel[number[x], number[y]] += weight / 2 ** len(free)
    return kernel


def potts_clusters(n, q, edges, couplings, fields, single):
    states = list(itertools.product(range(q), repeat=n))
    number = {x: a for a, x in enumerate(states)}
    kernel = np.zeros((len(states), len(states)))
    for x in states:
        candidates = [
            (i, j, 1 - np.exp(-J)) for i, j, J in zip(edges[:, 0], edges[:, 1], couplings, strict=True) if x[i] == x[j]
        ]
        for bonds, weight in bond_patterns(candidates):
            label = components(n, bonds)
            if single:
                for start in range(n):
                    for colour in set(range(q)) - {x[start]}:
                        y = tuple(colour if label[i] == label[start] else x[i] for i in range(n))
                        kernel[number[x], number[y]] += weight / n / (q - 1)
            else:
                clusters = sorted(set(label))
                sums = [np.exp(sum(fields[i] for i in range(n) if label[i] == c)) for c in clusters]
                for colours in itertools.product(range(q), repeat=len(clusters)):
                    chance = np.prod([s[k] / s.sum() for s, k in zip(sums, colours, strict=True)])
                    y = tuple(colours[clusters.index(label[i])] for i in range(n))
                    kernel[number[x], number[y]] += weight * chance
    return kernel


def spins_of_subgraph(n, edges, edge_weights, site_weights, present):
    """The law of the spins that a subgraph is turned into; states 0 and 1 are -1 and +1, the last variable fastest."""
    odd = [sum(bool(on) and i in e for on, e in zip(present, edges.tolist(), strict=True)) % 2 for i in range(n)]
    sure = [tuple(e) for on, e in zip(present, edges.tolist(), strict=True) if on]
    sure += [(i, n) for i in range(n) if odd[i]]
    absent = [(*e, p) for on, e, p in zip(present, edges.tolist(), edge_weights, strict=True) if not on]
    absent += [(i, n, site_weights[i]) for i in range(n) if not odd[i]]
    law = np.zeros((2,) * n)
    for bonds, weight in bond_patterns(absent):
        label = components(n + 1, sure + bonds)
        free = sorted(set(label[:n]) - {label[n]})
        for signs in itertools.product((0, 1), repeat=len(free)):
            value = {label[n]: 1, **dict(zip(free, signs, strict=True))}
            law[tuple(value[label[i]] for i in range(n))] += weight / 2 ** len(free)
    return law.ravel()
