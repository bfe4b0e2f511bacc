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
    """For each row of `x`, ``log f_b(x) / f_a(x)`` and ``log sum_B rho_B p_b(x_B | rest) / p_a(x_B | rest)``.

    ``a`` has the old parameters; ``rho_B`` is the share of block ``B`` in the spins.
    """
    n = x.shape[1]
    for c in range(x.shape[0]):
        total, top, mixture = 0.0, -np.inf, 0.0
        for b in range(starts.size - 1):
            logs, product = 0.0, 1.0
            for m in range(starts[b], starts[b + 1]):
                i = members[m]
                s = np.float64(x[c, i])
                old, new = 0.0, 0.0
                for e in range(indptr[i], indptr[i + 1]):
                    old += old_couplings[e] * x[c, neighbours[e]]
                    new += couplings[e] * x[c, neighbours[e]]
                total += s * (fields[i] - old_fields[i] + 0.5 * (new - old))
                # log p = -log(1 + exp(z)) with z = -2 s t; log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|)).
                old = -2.0 * s * (old_fields[i] + old)
                new = -2.0 * s * (fields[i] + new)
                logs += max(old, 0.0) - max(new, 0.0)
                product *= (1.0 + fast_exp(-abs(old))) / (1.0 + fast_exp(-abs(new)))
                if (m + 1 - starts[b]) % _FACTORS == 0:
                    logs += fast_log(product)
                    product = 1.0
            logs += fast_log(product)
            share = (starts[b + 1] - starts[b]) / n
            if logs > top:
                mixture = mixture * fast_exp(top - logs) + share if mixture > 0.0 else share
                top = logs
            else:
                mixture += share * fast_exp(logs - top)
        ratios[c] = total
        mixtures[c] = top + fast_log(mixture)
