"""Compiled random-scan block Gibbs for Ising models without couplings inside blocks, and its weights.

Graphs are adjacency lists, sparse or complete; `couplings` has an entry for each of `neighbours`. Block ``b`` has the
spins ``members[starts[b] : starts[b + 1]]``.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import uniform

_LARGEST = 700.0  # exp of more is not finite, and the probability is already 1 or 0 to the last bit
_FACTORS = 256  # of 1/2 to 2 each that are multiplied before a logarithm is taken


@kernel(called_by="python")
def redraw_block(x, block, starts, members, indptr, neighbours, couplings, fields, seed, first, step):
    """Redraw one block of each row of `x` (int8, -1 and +1) in place, chosen in proportion to its size.

    The block is that of a spin drawn uniformly. Its spins are independent given the rest, so that one after the other
    is all at once. Row ``c`` draws by (seed, ``first + c``, step).
    """
    n = x.shape[1]
    for c in range(x.shape[0]):
        b = block[int(uniform(seed, first + c, step, n) * n)]
        for m in range(starts[b], starts[b + 1]):
            i = members[m]
            h = fields[i]
            for e in range(indptr[i], indptr[i + 1]):
                h += couplings[e] * x[c, neighbours[e]]
            u = uniform(seed, first + c, step, i)
            x[c, i] = 1 if u * (1.0 + fast_exp(min(-2.0 * h, _LARGEST))) < 1.0 else -1


@kernel(called_by="python")
def log_ratios(x, starts, members, indptr, neighbours, old_couplings, old_fields, couplings, fields, ratios, mixtures):
    """For each column of `x` (spins, states), ``log f_b(x) / f_a(x)`` and the logarithm of
    ``sum_B rho_B p_b(x_B | rest) / p_a(x_B | rest)``; side by side, so that one instruction serves several states.

    ``a`` has the old parameters; ``rho_B`` is the share of block ``B`` in the spins.
    """
    n, lanes = x.shape
    old, new, logs, product = np.empty(lanes), np.empty(lanes), np.empty(lanes), np.empty(lanes)
    top, mixture = np.empty(lanes), np.empty(lanes)
    for c in range(lanes):
        ratios[c], top[c], mixture[c] = 0.0, -np.inf, 0.0
    for b in range(starts.size - 1):
        for c in range(lanes):
            logs[c], product[c] = 0.0, 1.0
        for m in range(starts[b], starts[b + 1]):
            i = members[m]
            for c in range(lanes):
                old[c], new[c] = 0.0, 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j, before, after = neighbours[e], old_couplings[e], couplings[e]
                for c in range(lanes):
                    spin = np.float64(x[j, c])
                    old[c] += before * spin
                    new[c] += after * spin
            for c in range(lanes):
                spin = np.float64(x[i, c])
                ratios[c] += spin * (fields[i] - old_fields[i] + 0.5 * (new[c] - old[c]))
                # log p = -log(1 + exp(z)) with z = -2 spin field; log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)).
                z = -2.0 * spin * (old_fields[i] + old[c])
                y = -2.0 * spin * (fields[i] + new[c])
                logs[c] += 0.5 * (z + abs(z) - y - abs(y))
                product[c] *= (1.0 + fast_exp(-abs(z))) / (1.0 + fast_exp(-abs(y)))
            if (m + 1 - starts[b]) % _FACTORS == 0:
                for c in range(lanes):
                    logs[c] += fast_log(product[c])
                    product[c] = 1.0
        share = (starts[b + 1] - starts[b]) / n
        for c in range(lanes):
            value = logs[c] + fast_log(product[c])
            most = max(top[c], value)
            mixture[c] = mixture[c] * fast_exp(top[c] - most) + share * fast_exp(value - most)
            top[c] = most
    for c in range(lanes):
        mixtures[c] = top[c] + fast_log(mixture[c])
