"""Documents under fixed frequencies of words: their memberships by Gibbs sampling, their probabilities by particles.

The random numbers of a document are a function of the seed and of its words, so that its answer does not depend on the
documents beside it.
"""

import numpy as np

from cumulant.admixture.collapsed_kernels import _stream, _uniform
from cumulant.kernels import kernel


@kernel(called_by="kernels")
def _document_stream(word, begin, end, seed, run):
    """Where the random numbers of a document begin."""
    x = np.uint64(0)
    for i in range(begin, end):
        x = x * np.uint64(6364136223846793005) + np.uint64(word[i] + 1)
        x ^= x >> np.uint64(29)
    return _stream(seed, 2 * run, x >> np.uint64(32)) ^ _stream(seed, 2 * run + 1, x)


@kernel(called_by="kernels")
def _draw(counts, prior, frequencies, cumulative, u):
    """A component with probability proportional to ``(prior + counts) * frequencies``, and the sum of these."""
    mass = 0.0
    for k in range(prior.size):
        mass += (prior[k] + counts[k]) * frequencies[k]
        cumulative[k] = mass
    level, drawn = u * mass, 0
    while drawn < prior.size - 1 and cumulative[drawn] <= level:
        drawn += 1
    return drawn, mass


@kernel(called_by="python")
def fold_in(starts, word, frequencies, prior, seed, burn_in, n, z, counts, cumulative, mean, square):
    """Gibbs sampling of the components of each document, `frequencies` (words, K) held fixed.

    Adds the mean of ``tau_k | z`` and of its square over `n` sweeps to `mean` and `square` (documents, K). `z` has room
    for the longest document, `counts` and `cumulative` for K numbers.
    """
    size, total_prior = prior.size, 0.0
    for k in range(size):
        total_prior += prior[k]
    for d in range(starts.size - 1):
        begin, length = starts[d], starts[d + 1] - starts[d]
        stream, used = _document_stream(word, begin, starts[d + 1], seed, 0), 0
        for k in range(size):
            counts[k] = 0
        for i in range(length):  # from left to right, each given those before
            z[i], _ = _draw(counts, prior, frequencies[word[begin + i]], cumulative, _uniform(stream, used))
            used += 1
            counts[z[i]] += 1
        for sweep in range(burn_in + n):
            for i in range(length):
                counts[z[i]] -= 1
                z[i], _ = _draw(counts, prior, frequencies[word[begin + i]], cumulative, _uniform(stream, used))
                used += 1
                counts[z[i]] += 1
            if sweep >= burn_in:
                for k in range(size):
                    a, total = prior[k] + counts[k], total_prior + length
                    mean[d, k] += a / total / n
                    square[d, k] += a * (a + 1.0) / (total * (total + 1.0)) / n


@kernel(called_by="python")
def left_to_right(
    starts, word, frequencies, prior, n_moves, seed, run, z, counts, weights, parents, cumulative, copies, counts_copy,
    values,
):  # fmt: skip
    """Estimates of ``log p(w_d)`` for each document by particles that read it from left to right.

    Before a word is read, each particle draws `n_moves` earlier components again. Then its weight is multiplied by
    the probability of the word given the earlier components, and the component of the word is drawn. Particles are
    resampled, systematically, where their effective number is below a half. The product of the mean weights is an
    unbiased estimate of ``p(w_d)``. `z` and `copies` are (particles, longest), `counts` (particles, K).
    """
    particles, size, total_prior = weights.size, prior.size, 0.0
    for k in range(size):
        total_prior += prior[k]
    for d in range(starts.size - 1):
        begin, length = starts[d], starts[d + 1] - starts[d]
        stream, used = _document_stream(word, begin, starts[d + 1], seed, run + 1), 0
        for p in range(particles):
            weights[p] = 1.0 / particles
            for k in range(size):
                counts[p, k] = 0
        value = 0.0
        for i in range(length):
            total = 0.0
            for p in range(particles):
                for _ in range(min(n_moves, i)):
                    j = min(int(_uniform(stream, used) * i), i - 1)
                    counts[p, z[p, j]] -= 1
                    z[p, j], _ = _draw(
                        counts[p], prior, frequencies[word[begin + j]], cumulative, _uniform(stream, used + 1)
                    )
                    counts[p, z[p, j]] += 1
                    used += 2
                z[p, i], mass = _draw(
                    counts[p], prior, frequencies[word[begin + i]], cumulative, _uniform(stream, used)
                )
                counts[p, z[p, i]] += 1
                used += 1
                weights[p] *= mass / (total_prior + i)
                total += weights[p]
            if total == 0.0:  # no component has this word
                value = -np.inf
                break
            value += np.log(total)
            squares = 0.0
            for p in range(particles):
                weights[p] /= total
                squares += weights[p] * weights[p]
            if squares * particles > 2.0:
                offset, reached, parent = _uniform(stream, used), weights[0], 0
                used += 1
                for p in range(particles):
                    while parent < particles - 1 and reached * particles <= p + offset:
                        parent += 1
                        reached += weights[parent]
                    parents[p] = parent
                for p in range(particles):
                    for j in range(i + 1):
                        copies[p, j] = z[parents[p], j]
                    for k in range(size):
                        counts_copy[p, k] = counts[parents[p], k]
                for p in range(particles):
                    weights[p] = 1.0 / particles
                    for j in range(i + 1):
                        z[p, j] = copies[p, j]
                    for k in range(size):
                        counts[p, k] = counts_copy[p, k]
        values[d] = value
