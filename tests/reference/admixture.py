"""Latent Dirichlet allocation by enumeration, and collapsed Gibbs sampling as it is written down."""

import itertools

import numpy as np
from scipy.special import gammaln


def log_dirichlet_normaliser(a):
    return gammaln(a).sum() - gammaln(a.sum())


def counts(z, document, word, n_documents, n_words, k):
    """Tokens of each component in each document, of each word in each component."""
    n, m = np.zeros((n_documents, k)), np.zeros((k, n_words))
    for component, d, j in zip(z, document, word, strict=True):
        n[d, component] += 1
        m[component, j] += 1
    return n, m


def log_joint(z, corpus, k, nu, eta):
    """``log p(z, w)``; `nu` (components,) and `eta` (words,)."""
    n, m = counts(z, corpus.document, corpus.word, corpus.n_documents, corpus.n_words, k)
    value = sum(log_dirichlet_normaliser(nu + row) - log_dirichlet_normaliser(nu) for row in n)
    for first, last in itertools.pairwise(corpus.locus_starts):
        for row in m:
            value += log_dirichlet_normaliser(eta[first:last] + row[first:last])
            value -= log_dirichlet_normaliser(eta[first:last])
    return value


def enumerate_posterior(corpus, k, nu, eta):
    """All states, in lexicographic order, their probabilities ``p(z | w)``, and ``log p(w)``."""
    states = np.array(list(itertools.product(range(k), repeat=corpus.n_tokens)))
    logs = np.array([log_joint(z, corpus, k, nu, eta) for z in states])
    top = logs.max()
    evidence = top + np.log(np.exp(logs - top).sum())
    return states, np.exp(logs - evidence), evidence


def token_conditional(z, i, corpus, k, nu, eta):
    """``P(z_i = . | the others, w)`` from counts without token ``i``, the denominator of its own locus."""
    others = np.arange(corpus.n_tokens) != i
    arrays = (array[others] for array in (np.asarray(z), corpus.document, corpus.word))
    n, m = counts(*arrays, corpus.n_documents, corpus.n_words, k)
    d, j = corpus.document[i], corpus.word[i]
    locus = np.searchsorted(corpus.locus_starts, j, side="right") - 1
    inside = slice(*corpus.locus_starts[locus : locus + 2])
    p = (nu + n[d]) * (eta[j] + m[:, j]) / (eta[inside].sum() + m[:, inside].sum(axis=1))
    return p / p.sum()


def transition(corpus, k, nu, eta, order):
    """The matrix of one sweep over the tokens in this order: rows and columns are states as enumerated."""
    states = np.array(list(itertools.product(range(k), repeat=corpus.n_tokens)))
    place = k ** np.arange(corpus.n_tokens)[::-1]
    whole = np.eye(len(states))
    for i in order:
        step = np.zeros_like(whole)
        for row, z in enumerate(states):
            p = token_conditional(z, i, corpus, k, nu, eta)
            for component in range(k):
                step[row, row + (component - z[i]) * place[i]] = p[component]
        whole = whole @ step
    return whole
