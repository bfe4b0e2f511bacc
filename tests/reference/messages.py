"""Free energies of independent and of tree-like beliefs, one state at a time; mean field one variable at a time."""

import itertools

import numpy as np


def entropy(p):
    p = np.asarray(p)[np.asarray(p) > 0]
    return -float(np.sum(p * np.log(p)))


def mean_field_value(sizes, factors, q):
    """``E_q log f + sum H(q_i)`` by a loop over all states."""
    value = sum(entropy(p) for p in q)
    for x in itertools.product(*map(range, sizes)):
        weight = np.prod([q[v][x[v]] for v in range(len(sizes))])
        if weight > 0:
            value += weight * sum(float(table[tuple(x[v] for v in scope)]) for scope, table in factors)
    return value


def mean_field_sweep(sizes, factors, q):
    """Each variable in turn to ``softmax E_q[log f | x_i]``."""
    q = [p.copy() for p in q]
    for i in range(len(sizes)):
        scores = np.zeros(sizes[i])
        for x in itertools.product(*map(range, sizes)):
            weight = np.prod([q[v][x[v]] for v in range(len(sizes)) if v != i])
            scores[x[i]] += weight * sum(float(table[tuple(x[v] for v in scope)]) for scope, table in factors)
        q[i] = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return q


def bethe_value(sizes, factors, single, tables):
    """``sum_f (E log f + H(b_f)) + sum_i (1 - d_i) H(b_i)``: minus the Bethe free energy of beliefs."""
    degrees = np.zeros(len(sizes))
    value = 0.0
    for (scope, table), belief in zip(factors, tables, strict=True):
        degrees[list(scope)] += 1
        value += float(np.sum(np.where(belief > 0, belief * np.where(belief > 0, table, 0.0), 0.0))) + entropy(belief)
    return value + sum((1 - d) * entropy(p) for d, p in zip(degrees, single, strict=True))


def message_pass(factors, sizes, messages):
    """All sum-product messages at once, as products of numbers: ``messages[f, v]`` are distributions."""
    out = {}
    for f, (scope, table) in enumerate(factors):
        for v in scope:
            total = np.zeros(sizes[v])
            for x in itertools.product(*(range(sizes[w]) for w in scope)):
                weight = np.exp(table[x])
                for w, state in zip(scope, x, strict=True):
                    if w != v:
                        weight *= np.prod([m[state] for (g, u), m in messages.items() if u == w and g != f])
                total[x[scope.index(v)]] += weight
            out[f, v] = total / total.sum()
    return out


def double_loop_value(factors, sizes, outer_loops, inner_sweeps):
    """The Bethe free energy after some outer loops, in plain numbers: ``f * q_old^((d - 1) / d)`` and multipliers."""
    degrees = [sum(v in scope for scope, _ in factors) for v in range(len(sizes))]
    q = [np.full(k, 1 / k) for k in sizes]
    multipliers = {(f, v): np.ones(sizes[v]) for f, (scope, _) in enumerate(factors) for v in scope}

    def joint_table(f, bent, without=None):
        scope, table = factors[f]
        out = np.exp(table)
        for a, v in enumerate(scope):
            shape = [1] * out.ndim
            shape[a] = -1
            own = bent[v] if v == without else bent[v] * multipliers[f, v]
            out = out * own.reshape(shape)
        return out

    for _ in range(outer_loops):
        bent = [p ** ((d - 1) / d) for p, d in zip(q, degrees, strict=True)]
        for _ in range(inner_sweeps):
            for v in range(len(sizes)):
                around = [f for f, (scope, _) in enumerate(factors) if v in scope]
                marginals = []
                for f in around:
                    axes = tuple(a for a, w in enumerate(factors[f][0]) if w != v)
                    marginals.append(joint_table(f, bent, without=v).sum(axis=axes))
                mean = np.prod(marginals, axis=0) ** (1 / len(around))
                q[v] = mean / mean.sum()
                for f, b in zip(around, marginals, strict=True):
                    multipliers[f, v] = q[v] / b
    tables = [joint_table(f, bent) / joint_table(f, bent).sum() for f in range(len(factors))]
    return -bethe_value(sizes, factors, q, tables)
