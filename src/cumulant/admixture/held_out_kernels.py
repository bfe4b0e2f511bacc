"""Compiled likelihoods of tokens: given memberships, and with memberships integrated out for new documents."""

import math

import numpy as np

from cumulant.admixture.two_stage_kernels import uniforms
from cumulant.kernels import kernel


@kernel(called_by="python")
def log_likelihoods(document, word, memberships, frequencies):
    """``sum_i log sum_k tau_dk beta_kj`` for each draw of memberships and frequencies."""
    out = np.zeros(memberships.shape[0])
    for s in range(out.size):
        for i in range(word.size):
            total = 0.0
            for k in range(memberships.shape[2]):
                total += memberships[s, document[i], k] * frequencies[s, k, word[i]]
            out[s] += math.log(max(total, 1e-300))
    return out


@kernel(called_by="kernels")
def _draw(weights, counts, nu, word, u):
    """A component with probability proportional to ``(nu + counts) weights[word]``, and the sum of these."""
    total = 0.0
    for k in range(counts.size):
        total += (nu + counts[k]) * weights[word, k]
    left, chosen = u * total, 0
    while chosen < counts.size - 1:
        left -= (nu + counts[chosen]) * weights[word, chosen]
        if left < 0.0:
            break
        chosen += 1
    return chosen, total


@kernel(called_by="python")
def held_out(first, starts, word, weights, nu, n_refreshed, seed, logs):
    """Logarithms of unbiased estimates of ``p(w_d)`` for documents `first`, `first` + 1, ..., one for each column of
    `logs` ``(documents, particles)``, with frequencies `weights` ``(W, K)`` and memberships integrated out.

    Tokens come one after the other: a particle is weighed by ``p(w_n | z_<n)``, draws ``z_n``, and then draws up to
    `n_refreshed` of its components again, in turn, each given the others.
    """
    n_components = weights.shape[1]
    counts = np.empty(n_components, np.int64)
    for d in range(logs.shape[0]):
        begin, length = starts[first + d], starts[first + d + 1] - starts[first + d]
        z = np.empty(length, np.int64)
        for s in range(logs.shape[1]):
            total, turn = 0.0, 0
            for k in range(n_components):
                counts[k] = 0
            for n in range(length):
                u = uniforms(seed, first + d, s, n, 0)[0]
                z[n], sum_ = _draw(weights, counts, nu, word[begin + n], u)
                counts[z[n]] += 1
                total += math.log(sum_ / (n + nu * n_components))
                if n == length - 1:
                    break
                for r in range(min(n + 1, n_refreshed)):
                    at = turn % (n + 1)
                    turn += 1
                    counts[z[at]] -= 1
                    u = uniforms(seed, first + d, s, n, r + 1)[0]
                    z[at] = _draw(weights, counts, nu, word[begin + at], u)[0]
                    counts[z[at]] += 1
            logs[d, s] = total
