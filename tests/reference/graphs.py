"""Labelled graphs by enumeration, slow and obvious: what junction trees must agree with."""

import itertools

import numpy as np
from scipy.special import logsumexp


def labellings(n_variables, labels):
    """All labellings, a row each, in lexicographic order."""
    return np.array(list(itertools.product(range(labels), repeat=n_variables)))


def feature_map(data, i, y, labels):
    """``F(x_i, y)``: for each kind of factor a matrix (features, labellings of a factor), one after the other."""
    first, out = data.offsets[i], []
    for factors in data.factors.values():
        block = np.zeros((factors.n_features, *[labels] * factors.arity))
        for scope, row in zip(factors.variables, factors.features.toarray(), strict=True):
            if data.offsets[i] <= scope[0] < data.offsets[i + 1]:
                block[(slice(None), *(y[v - first] for v in scope))] += row
        out.append(block.ravel())
    return np.concatenate(out)


class Enumeration:
    """All labellings of every graph, with their features."""

    def __init__(self, data, labels):
        self.data, self.labels, self.n = data, labels, len(data)
        self.all = [labellings(size, labels) for size in data.sizes]
        self.features = [np.array([feature_map(data, i, y, labels) for y in every]) for i, every in enumerate(self.all)]

    def truth(self, i):
        """The number of the labelling that is the truth."""
        own = self.data.labels[self.data.offsets[i] : self.data.offsets[i + 1]]
        return int(np.flatnonzero(np.all(self.all[i] == own, axis=1))[0])

    def scores(self, w, i):
        return self.features[i] @ w

    def log_partition(self, w, i):
        return float(np.asarray(logsumexp(self.scores(w, i))))

    def law(self, w, i):
        """The probability of every labelling."""
        return np.exp(self.scores(w, i) - self.log_partition(w, i))

    def best(self, w, i):
        return self.all[i][np.argmax(self.scores(w, i))]

    def marginal(self, law, i, scope):
        """The marginal of some variables, flat, the last varying fastest."""
        entries = [_entry(y, scope, self.labels) for y in self.all[i]]
        return np.bincount(entries, law, minlength=self.labels ** len(scope))

    def objective(self, w, l2, l1=0.0):
        """``P(w)`` and the gradient of its smooth part."""
        value, gradient = l2 / 2 * w @ w + l1 * np.abs(w).sum(), l2 * w
        for i in range(self.n):
            value += (self.log_partition(w, i) - self.scores(w, i)[self.truth(i)]) / self.n
            gradient = gradient + (self.law(w, i) @ self.features[i] - self.features[i][self.truth(i)]) / self.n
        return float(value), gradient


def markov_joint(every, cliques, clique_marginals, separators, separator_marginals, labels):
    """``prod_C mu_C(y_C) / prod_S mu_S(y_S)`` for every labelling ``y``."""
    out = []
    for y in every:
        over = under = 1.0
        for scope, table in zip(cliques, clique_marginals, strict=True):
            over *= table[_entry(y, scope, labels)]
        for scope, table in zip(separators, separator_marginals, strict=True):
            under *= table[_entry(y, scope, labels)]
        out.append(over / under if over > 0 else 0.0)
    return np.array(out)


def _entry(y, scope, labels):
    entry = 0
    for v in scope:
        entry = entry * labels + y[v]
    return entry
