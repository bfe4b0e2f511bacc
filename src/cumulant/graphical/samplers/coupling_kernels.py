"""Compiled coupling from the past for ferromagnetic Ising models."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import keep
from cumulant.kernels import kernel
from cumulant.math_kernels import fast_log
from cumulant.randomness_kernels import uniform_pair


@kernel(called_by="python")
def monotone_past(out, sweeps, indptr, neighbours, couplings, fields, most, seed, first):
    """Rows of `out` (draws, sites): each the state at time 0 of all chains begun in the infinite past, -1 and +1.

    The chains from all -1 and all +1 are run from time ``-T`` with the same noise, at first ``T = 1``, then twice as
    far back with the old noise kept; where they meet, every other start meets them, because the update ``x_i = 1``
    where ``h_i(x) > noise`` preserves the order of states. `sweeps` gets ``T``, or 0 where they had not met at `most`.
    """
    n = fields.size
    low, high, noise = np.empty(n, np.int8), np.empty(n, np.int8), np.empty(n + 1)
    for d in range(out.shape[0]):
        back, met = 1, False
        while not met and back <= most:
            for i in range(n):
                low[i], high[i] = -1, 1
            for t in range(back - 1, -1, -1):
                for k in range((n + 1) // 2):
                    u, v = uniform_pair(seed, first + d, t, k)
                    noise[2 * k] = 0.5 * fast_log(u / (1.0 - u))
                    noise[2 * k + 1] = 0.5 * fast_log(v / (1.0 - v))
                for i in range(n):
                    h_low, h_high = fields[i], fields[i]
                    for e in range(indptr[i], indptr[i + 1]):
                        h_low += couplings[e] * low[neighbours[e]]
                        h_high += couplings[e] * high[neighbours[e]]
                    low[i] = 1 if h_low > noise[i] else -1
                    high[i] = 1 if h_high > noise[i] else -1
            met = True
            for i in range(n):
                met &= low[i] == high[i]
            sweeps[d] = back if met else 0
            back *= 2
        keep(out, low, d + 1, 1)
