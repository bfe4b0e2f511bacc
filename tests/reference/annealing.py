"""Annealed particles in NumPy: a torus by whole arrays, and moves of single spins by plain loops."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import random_words
from cumulant.kernels import kernel
from cumulant.sampling import resample


def anneal_torus(rows, columns, coupling, n, steps, rng, threshold=0.5):
    """``log Z`` of a uniform torus by tempering: all particles at once, chequerboard moves, Rao-Blackwellised weights.

    The two colours are kept apart, (n, rows, columns / 2) in bytes. A sum of four spins is even, between -4 and 4, so
    that probabilities and log-cosh come from tables of five numbers: nothing is exponentiated for each spin.
    """
    rng = np.random.default_rng(rng)
    colours = [rng.integers(0, 2, (n, rows, columns // 2), dtype=np.int8) * 2 - 1 for _ in range(2)]
    even = np.arange(rows) % 2 == 0

    def sums(colour):
        """Half the sum of the neighbours of each site of a colour, and 2: 0, 1, 2, 3, 4."""
        other = colours[1 - colour]
        total = other + np.roll(other, 1, axis=1)
        total += np.roll(other, -1, axis=1)
        ahead = even if colour else ~even  # these rows have their second neighbour in the column after
        total[:, ahead] += np.roll(other[:, ahead], -1, axis=2)
        total[:, ~ahead] += np.roll(other[:, ~ahead], 1, axis=2)
        return (total >> 1) + 2

    fields = 2.0 * np.arange(-2, 3)
    logs, log_z, resampled = np.full(n, -np.log(n)), rows * columns * np.log(2.0), 0
    betas = coupling * np.linspace(0.0, 1.0, steps + 1)
    for k in range(1, steps + 1):
        near = sums(1)
        gain = np.logaddexp(betas[k] * fields, -betas[k] * fields)
        gain -= np.logaddexp(betas[k - 1] * fields, -betas[k - 1] * fields)
        logs += gain.astype(np.float32)[near].sum(axis=(1, 2))
        top = logs.max()
        total = top + np.log(np.exp(logs - top).sum())
        log_z, logs = log_z + total, logs - total
        if k == steps:
            break
        if 1.0 / np.exp(2.0 * logs).sum() < threshold * n:
            chosen = resample(logs, method="stratified", rng=rng)
            colours, near, logs = [each[chosen] for each in colours], near[chosen], np.full(n, -np.log(n))
            resampled += 1
        up = (1.0 / (1.0 + np.exp(-2.0 * betas[k] * fields))).astype(np.float32)
        colours[1] = (rng.random(near.shape, dtype=np.float32) < up[near]).astype(np.int8) * 2 - 1
        near = sums(0)
        colours[0] = (rng.random(near.shape, dtype=np.float32) < up[near]).astype(np.int8) * 2 - 1
    return log_z, resampled


@kernel
def words_of(seed, chain, sweep, block, stream):
    return random_words(seed, chain, sweep, block, stream)


def draw_spins(x, sites, edges, old, new, fields, seed, first, sweep):
    """What the kernel of this name does: new spins and the log-weights, one particle and one site at a time."""
    x, logs = x.copy(), np.zeros(x.shape[1])
    for c in range(x.shape[1]):
        for p, i in enumerate(sites):
            h, before = fields[i], fields[i]
            for (a, b), mine, its in zip(edges, new, old, strict=True):
                if i in (a, b):
                    other = x[b if i == a else a, c]
                    h, before = h + mine * other, before + its * other
            high, low = map(int, words_of(seed, first + c, sweep, p // 2, 1)[2 * (p % 2) : 2 * (p % 2) + 2])
            u = (((high << 20) ^ (low >> 12)) + 0.5) / 2**52
            logs[c] += np.logaddexp(h, -h) - np.logaddexp(before, -before)
            x[i, c] = 1 if h > np.log(u / (1 - u)) / 2 else -1
    return x, logs


def stream(seed, block, sweep, word):
    """The random words of one word of a block: xoshiro256++ from its place."""
    halves = [[int(v) for v in words_of(seed, block, sweep, word, 2 + half)] for half in range(2)]
    state = [v for h in halves for v in ((h[0] << 32) | h[1], (h[2] << 32) | h[3])]
    ones = 2**64 - 1
    while True:
        a, b, c, d = state
        total = (a + d) & ones
        yield (((total << 23) | (total >> 41)) + a) & ones
        shifted = (b << 17) & ones
        c, d = c ^ a, d ^ b
        state = [a ^ d, b ^ c, c ^ shifted, ((d << 45) | (d >> 19)) & ones]


def draw_words(bits, sites, edges, signs, digits, gains, seed, block, sweep):
    """What the kernel of this name does, for `bits` (sites, particles) of 0 and 1: a decision for each particle."""
    bits, lanes = bits.copy(), bits.shape[1]
    streams, logs = [stream(seed, block, sweep, w) for w in range(lanes // 64)], np.zeros(lanes)
    for i in sites:
        m = np.zeros(lanes, int)
        for (a, b), sign in zip(edges, signs, strict=True):
            if i in (a, b):
                m += sign * (2 * bits[b if i == a else a] - 1)
        logs += np.asarray(gains)[abs(m)]
        agree = np.full(lanes, -1)
        for k in range(48, -1, -4):
            for j in range(3, -1, -1):
                random = np.concatenate([[(word >> b) & 1 for b in range(64)] for word in map(next, streams)])
                digit = (np.asarray(digits)[abs(m)] >> np.uint64(k + j)).astype(int) & 1
                agree = np.where((agree < 0) & (digit != random), digit, agree)
            if (agree >= 0).all():
                break
        up = np.where(m >= 0, 1, 0)
        bits[i] = np.where(agree == 1, up, 1 - up)
    return bits, logs
