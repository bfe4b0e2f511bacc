"""Linear chains by enumeration, slow and obvious: what the oracles must agree with."""

import itertools

import numpy as np
from scipy.special import logsumexp


def per_edge(unary, pair):
    """The pair scores as one matrix for each pair of neighbours."""
    return np.broadcast_to(pair, (len(unary) - 1, unary.shape[1], unary.shape[1]))


def labellings(length, labels):
    """All ``labels ** length`` labellings, a row each, in lexicographic order."""
    return np.array(list(itertools.product(range(labels), repeat=length)))


def scores_of_all(unary, pair):
    """The score of every labelling, in the order of `labellings`."""
    pair = per_edge(unary, pair)
    return np.array(
        [
            sum(unary[t, y[t]] for t in range(len(unary))) + sum(pair[t, y[t], y[t + 1]] for t in range(len(unary) - 1))
            for y in labellings(*unary.shape)
        ]
    )


def joint(unary, pair):
    """The probability of every labelling, and the log-partition function."""
    scores = scores_of_all(unary, pair)
    log_z = float(np.asarray(logsumexp(scores)))
    return np.exp(scores - log_z), log_z


def marginals_of(probabilities, length, labels):
    """The marginals of nodes and pairs of neighbours of any law on labellings."""
    nodes, pairs = np.zeros((length, labels)), np.zeros((length - 1, labels, labels))
    for p, y in zip(probabilities, labellings(length, labels), strict=True):
        for t in range(length):
            nodes[t, y[t]] += p
        for t in range(length - 1):
            pairs[t, y[t], y[t + 1]] += p
    return nodes, pairs


def markov_joint(nodes, pairs):
    """The chain with these marginals: product of the pairs over product of the inner nodes, for every labelling."""
    length, labels = nodes.shape
    out = []
    for y in labellings(length, labels):
        if length == 1:
            out.append(nodes[0, y[0]])
            continue
        over = np.prod([pairs[t, y[t], y[t + 1]] for t in range(length - 1)])
        under = np.prod([nodes[t, y[t]] for t in range(1, length - 1)])
        out.append(over / under if over > 0 else 0.0)
    return np.array(out)


def entropy(p):
    """``-sum p log p`` with ``0 log 0 = 0``."""
    return -sum(x * np.log(x) for x in p if x > 0)


def kl(p, q):
    """``sum p log(p / q)``: infinite where `q` lacks mass that `p` has."""
    if np.any((p > 0) & (q == 0)):
        return np.inf
    return sum(x * np.log(x / y) for x, y in zip(p, q, strict=True) if x > 0)


def features(x, y, labels, bias=True):
    """``F(x, y)``: attributes, then the three biases, then transitions, by labels."""
    length, attributes = x.shape
    emission, biases, moves = np.zeros((attributes, labels)), np.zeros((3, labels)), np.zeros((labels, labels))
    for t in range(length):
        emission[:, y[t]] += x[t]
        biases[0, y[t]] += 1
        biases[1, y[t]] += t == 0
        biases[2, y[t]] += t == length - 1
        if t:
            moves[y[t - 1], y[t]] += 1
    return np.concatenate([emission, biases, moves] if bias else [emission, moves])


def radius(x, y, labels, bias=True):
    """``max_z |F(x, y) - F(x, z)|^2`` over all labellings ``z``."""
    own = features(x, y, labels, bias)
    return max(np.sum((own - features(x, z, labels, bias)) ** 2) for z in labellings(len(x), labels))
