"""Compiled likelihoods of tokens given memberships and frequencies."""

import math

import numpy as np

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
            out[s] += math.log(max(total, 1e-300))  # shares may have underflowed: such draws only need to lose
    return out
