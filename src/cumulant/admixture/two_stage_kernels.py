"""Compiled blocks of an admixture: frequencies and memberships given components, components given both.

Dirichlet draws stay logarithms: with parameters of 0.1 or below, the draws themselves underflow to zero.
"""

import math

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp
from cumulant.randomness_kernels import philox

_MASK, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
_TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53
_SMALL = 1e-280  # a sum of products of exponentials below this has lost digits: logarithms are used instead


@kernel(called_by="kernels")
def uniforms(seed, chain, sweep, site, attempt):
    """Two uniforms in (0, 1) as `uniform_pair` draws them, and as many more as there are attempts."""
    s = np.uint64(seed)
    w0, w1, w2, w3 = philox(
        np.uint64(site) & _MASK,
        np.uint64(sweep) & _MASK,
        np.uint64(chain) & _MASK,
        np.uint64(attempt) & _MASK,
        s & _MASK,
        s >> _SHIFT,
    )
    first = (w0 << np.uint64(20)) ^ (w1 >> np.uint64(12))
    second = (w2 << np.uint64(20)) ^ (w3 >> np.uint64(12))
    return (2.0 * np.float64(first) + 1.0) * _TO_UNIT, (2.0 * np.float64(second) + 1.0) * _TO_UNIT


@kernel(called_by="kernels")
def log_gamma_variate(shape, seed, chain, sweep, site):
    """The logarithm of a Gamma(shape, 1) variate: ``log Gamma(shape + 1) + log(U) / shape``, the first by rejection
    from a cubed normal (Marsaglia and Tsang 2000).
    """
    d = shape + 2.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        u, v = uniforms(seed, chain, sweep, site, attempt)
        x = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
        t = 1.0 + c * x
        if t > 0.0:
            accept, boost = uniforms(seed, chain, sweep, site, attempt + 1)
            log_cube = 3.0 * math.log(t)
            if math.log(accept) < 0.5 * x * x + d * (1.0 - t * t * t + log_cube):
                return math.log(d) + log_cube + math.log(boost) / shape
        attempt += 2


@kernel(called_by="kernels")
def normalise_logs(logs, first, last):
    """Logarithms of numbers that sum to one, in place."""
    top = logs[first]
    for j in range(first + 1, last):
        top = max(top, logs[j])
    total = 0.0
    for j in range(first, last):
        total += math.exp(logs[j] - top)
    shift = top + math.log(total)
    for j in range(first, last):
        logs[j] -= shift


@kernel(called_by="kernels")
def draw_parameters(words, documents, starts, totals, eta, phi, gamma, nu, seed, chain, sweep, frequencies, members):
    """Logarithms of ``beta_kl ~ Dirichlet(eta + phi m + gamma (c - m))`` and ``tau_d ~ Dirichlet(nu + n_d)``."""
    n_components, n_words = words.shape
    for k in range(n_components):
        for j in range(n_words):
            shape = eta[k, j] + phi * words[k, j] + gamma * (totals[j] - words[k, j])
            frequencies[k, j] = log_gamma_variate(shape, seed, chain, sweep, k * n_words + j)
        for at in range(starts.size - 1):
            normalise_logs(frequencies[k], starts[at], starts[at + 1])
    base = n_components * n_words
    for d in range(documents.shape[0]):
        for k in range(n_components):
            site = base + d * n_components + k
            members[d, k] = log_gamma_variate(nu + documents[d, k], seed, chain, sweep, site)
        normalise_logs(members[d], 0, n_components)


@kernel(called_by="kernels")
def relative_weights(logs, power, out):
    """``exp(power (logs - largest))``, in place of `out`: the largest is one."""
    top = power * logs[0]
    for k in range(1, logs.size):
        top = max(top, power * logs[k])
    for k in range(logs.size):
        out[k] = fast_exp(power * logs[k] - top)


@kernel(called_by="kernels")
def assign_tokens(document, word, frequencies, members, power, seed, chain, sweep, of_word, of_document, score, z):
    """Draw the component of each token, ``P(k)`` proportional to ``tau_dk beta_kj^power``."""
    n_components, n_words = frequencies.shape
    for j in range(n_words):
        relative_weights(frequencies[:, j], power, of_word[j])
    for d in range(members.shape[0]):
        relative_weights(members[d], 1.0, of_document[d])
    base = n_components * (n_words + members.shape[0])
    for i in range(word.size):
        j, d = word[i], document[i]
        total = 0.0
        for k in range(n_components):
            total += of_word[j, k] * of_document[d, k]
            score[k] = total
        if total < _SMALL:
            top = -np.inf
            for k in range(n_components):
                top = max(top, power * frequencies[k, j] + members[d, k])
            total = 0.0
            for k in range(n_components):
                total += math.exp(power * frequencies[k, j] + members[d, k] - top)
                score[k] = total
        u = uniforms(seed, chain, sweep, base + i, 0)[0] * total
        chosen = 0
        while chosen < n_components - 1 and u > score[chosen]:
            chosen += 1
        z[i] = chosen


@kernel(called_by="kernels")
def exchange_components(document, word, frequencies, members, power, seed, chain, sweep, z):
    """Propose, as often as there are other components, to exchange two components of a document: of all its tokens,
    and of its memberships.

    With a symmetric prior of memberships nothing but the frequencies speaks against it: accepted with probability
    ``min(1, prod beta_new^power / prod beta_old^power)``.
    """
    n_components, n_words = frequencies.shape
    base, first = n_components * (n_words + members.shape[0]) + word.size, 0
    while first < word.size:
        d, last = document[first], first
        while last < word.size and document[last] == d:
            last += 1
        for r in range(n_components - 1):
            u, v = uniforms(seed, chain, sweep, base + d, r)
            pair = int(u * (n_components * (n_components - 1)))
            a, b = pair // (n_components - 1), pair % (n_components - 1)
            if b >= a:
                b += 1
            gain = 0.0
            for i in range(first, last):
                if z[i] == a:
                    gain += frequencies[b, word[i]] - frequencies[a, word[i]]
                elif z[i] == b:
                    gain += frequencies[a, word[i]] - frequencies[b, word[i]]
            if math.log(v) < power * gain:
                members[d, a], members[d, b] = members[d, b], members[d, a]
                for i in range(first, last):
                    if z[i] == a:
                        z[i] = b
                    elif z[i] == b:
                        z[i] = a
        first = last


@kernel(called_by="kernels")
def count(z, document, word, words, documents):
    """Counts of the components `z` of the tokens, in place."""
    for k in range(words.shape[0]):
        for j in range(words.shape[1]):
            words[k, j] = 0
    for d in range(documents.shape[0]):
        for k in range(documents.shape[1]):
            documents[d, k] = 0
    for i in range(z.size):
        words[z[i], word[i]] += 1
        documents[document[i], z[i]] += 1


@kernel(called_by="python")
def count_tokens(z, document, word, words, documents):
    """`count` for each row of `z`."""
    for s in range(z.shape[0]):
        count(z[s], document, word, words[s], documents[s])


@kernel(called_by="python")
def draw_population(words, documents, starts, totals, eta, phi, gamma, nu, seed, first, step, frequencies, members):
    """`draw_parameters` for each of the particles `first`, `first` + 1, ..."""
    for s in range(words.shape[0]):
        draw_parameters(
            words[s], documents[s], starts, totals, eta, phi, gamma, nu, seed, first + s, step,
            frequencies[s], members[s],
        )  # fmt: skip


@kernel(called_by="python")
def assign_population(document, word, frequencies, members, power, seed, first, step, words, documents):
    """Components of all tokens of each of the particles `first`, `first` + 1, ..., as counts."""
    n_components, n_words = frequencies.shape[1:]
    of_word = np.empty((n_words, n_components))
    of_document = np.empty((members.shape[1], n_components))
    score, z = np.empty(n_components), np.empty(word.size, np.int32)
    for s in range(frequencies.shape[0]):
        assign_tokens(
            document, word, frequencies[s], members[s], power, seed, first + s, step, of_word, of_document, score, z
        )
        count(z, document, word, words[s], documents[s])


@kernel(called_by="python")
def two_stage_chain(document, word, starts, totals, eta, nu, z, out, begin, burn_in, thin, exchange, seed, chain):
    """``burn_in + thin * len(out)`` sweeps of one chain at the posterior, `z` in place; a row of `out` has the
    memberships and then the frequencies of a draw. With `exchange`, each ends with `exchange_components`.
    """
    n_components, n_words = eta.shape
    n_documents = (out.shape[1] - n_components * n_words) // n_components
    frequencies, members = np.empty((n_components, n_words)), np.empty((n_documents, n_components))
    words, documents = np.empty((n_components, n_words), np.int32), np.empty((n_documents, n_components), np.int32)
    of_word, of_document = np.empty((n_words, n_components)), np.empty((n_documents, n_components))
    score = np.empty(n_components)
    count(z, document, word, words, documents)
    for sweep in range(burn_in + thin * out.shape[0]):
        at = begin + sweep
        draw_parameters(words, documents, starts, totals, eta, 1.0, 0.0, nu, seed, chain, at, frequencies, members)
        assign_tokens(document, word, frequencies, members, 1.0, seed, chain, at, of_word, of_document, score, z)
        if exchange:
            exchange_components(document, word, frequencies, members, 1.0, seed, chain, at, z)
        count(z, document, word, words, documents)
        kept = sweep + 1 - burn_in
        if kept > 0 and kept % thin == 0:
            row = out[kept // thin - 1]
            for d in range(n_documents):
                for k in range(n_components):
                    row[d * n_components + k] = fast_exp(members[d, k])
            for k in range(n_components):
                for j in range(n_words):
                    row[n_documents * n_components + k * n_words + j] = fast_exp(frequencies[k, j])


@kernel(called_by="python")
def sweep_population(
    document, word, starts, totals, eta, phi, gamma, nu, words, documents, frequencies, members, n_sweeps, exchange,
    seed, first, step,
):  # fmt: skip
    """Sweeps of both blocks for each of the particles `first`, `first` + 1, ..., their counts in place; with
    `exchange`, each ends with `exchange_components`.

    `frequencies` and `members` receive the logarithms that the last sweep drew.
    """
    n_components, n_words = eta.shape
    of_word, of_document = np.empty((n_words, n_components)), np.empty((documents.shape[1], n_components))
    score, z = np.empty(n_components), np.empty(word.size, np.int32)
    for s in range(words.shape[0]):
        beta, tau = frequencies[s], members[s]
        for sweep in range(n_sweeps):
            at = step + sweep
            draw_parameters(
                words[s], documents[s], starts, totals, eta, phi, gamma, nu, seed, first + s, at, beta, tau
            )  # fmt: skip
            assign_tokens(
                document, word, beta, tau, phi - gamma, seed, first + s, at, of_word, of_document, score, z
            )  # fmt: skip
            if exchange:
                exchange_components(document, word, beta, tau, phi - gamma, seed, first + s, at, z)
            count(z, document, word, words[s], documents[s])
