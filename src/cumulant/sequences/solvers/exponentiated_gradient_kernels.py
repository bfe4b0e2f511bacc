"""The inner loop of on-line exponentiated gradient ascent on chains.

The dual block of a sequence is the distribution with log-potentials ``theta_i``: one for each label of each node, and
one matrix that serves all its pairs. An update mixes them with the scores of the current weights.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform
from cumulant.sequences.chain.chain_gradient_kernels import add_features, copy_rows, longest_span
from cumulant.sequences.chain.chain_kernels import chain_marginals, chain_scores, collect, expected, inner

_FAST = {"reassoc", "contract", "nsz"}
_MOST_TRIALS = 40


@kernel(called_by="kernels", fastmath=_FAST)
def _mix(first, second, share, length, out):
    for t in range(length):
        for k in range(out.shape[1]):
            out[t, k] = (1.0 - share) * first[t, k] + share * second[t, k]


@kernel(called_by="python")
def lay_out(potentials, pair_potentials, offsets, nodes, pairs, counts, entropies):
    """The marginals, expected transitions and entropies of all blocks; `pairs` is filled if it is long enough."""
    n_labels = potentials.shape[1]
    longest = longest_span(offsets)
    forward, ahead = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    moved, scratch = np.empty((n_labels, n_labels)), np.empty((longest, n_labels, n_labels))
    keep = len(pairs) > 0
    for i in range(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        theta, matrix = potentials[start:stop], pair_potentials[i]
        pair = pairs[start - i : stop - i - 1] if keep else scratch[: length - 1]
        log_z = chain_marginals(theta, length, matrix, moved, forward, ahead, nodes[start:stop], pair)
        found = counts[i]
        found[:] = 0.0
        for t in range(length - 1):
            for j in range(n_labels):
                for k in range(n_labels):
                    found[j, k] += pair[t, j, k]
        score = inner(theta, nodes[start:stop]) + inner(matrix, found)
        entropies[i] = log_z - score


@kernel(called_by="python")
def exponentiated_epoch(
    w, has_bias, indptr, indices, values, offsets, row_starts, local, potentials, pair_potentials, nodes, counts,
    entropies, steps, scale, updates, seed, sweep, counters,
):  # fmt: skip
    """`updates` updates of sequences drawn uniformly; all but the data is changed in place.

    Parameters
    ----------
    w : array (rows, K)
        The weights of the marginals.
    potentials, pair_potentials : array (N, K), (n, K, K)
    nodes, counts, entropies : array (N, K), (n, K, K), (n,)
        The marginals of nodes, the expected transitions and the entropies that belong to them.
    steps : array (n,)
        The step of each sequence to try first: halved until the dual does not fall, raised by a twentieth after.
    scale : float
        ``l2 n``.
    counters : array
        Oracle calls, and trials beyond the first of each update.
    """
    n_labels, n = w.shape[1], len(offsets) - 1
    attributes = w.shape[0] - n_labels - (3 if has_bias else 0)
    matrix = w[w.shape[0] - n_labels :]
    longest, widest = longest_span(offsets), longest_span(row_starts)
    work, squares = np.empty((6, longest, n_labels)), np.empty((4, n_labels, n_labels))
    scores, forward, ahead, nu, trial, change = work[0], work[1], work[2], work[3], work[4], work[5]
    moved, found, trial_matrix, change_counts = squares[0], squares[1], squares[2], squares[3]
    biases, local_rows = np.empty((3, n_labels)), np.empty((widest, n_labels))
    for u in range(updates):
        i = min(int(uniform(seed, 0, sweep, u) * n), n - 1)
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        theta, own = potentials[start:stop], local_rows[: row_starts[i + 1] - row_starts[i]]
        chain_scores(w, attributes, has_bias, indptr, indices, values, start, stop, scores)
        eta = steps[i]
        for _ in range(_MOST_TRIALS):
            _mix(theta, scores, eta, length, trial)
            _mix(pair_potentials[i], matrix, eta, n_labels, trial_matrix)
            log_z = expected(trial, length, trial_matrix, moved, forward, ahead, nu, found)
            counters[0] += 1.0
            entropy = log_z - inner(trial[:length], nu[:length]) - inner(trial_matrix, found)
            for t in range(length):
                for k in range(n_labels):
                    change[t, k] = nu[t, k] - nodes[start + t, k]
            for j in range(n_labels):
                for k in range(n_labels):
                    change_counts[j, k] = found[j, k] - counts[i, j, k]
            norm = collect(indptr, values, local, start, stop, has_bias, change, change_counts, own, biases)
            gain = entropy - entropies[i] + inner(change[:length], scores[:length]) + inner(change_counts, matrix)
            # n times the change of the dual. Next to the optimum it is rounding, which must not stop the ascent.
            if gain - norm / (2.0 * scale) >= -1e-14 * (abs(log_z) + length):
                entropies[i] = entropy
                copy_rows(trial, length, theta)
                copy_rows(nu, length, nodes[start:stop])
                copy_rows(trial_matrix, n_labels, pair_potentials[i])
                copy_rows(found, n_labels, counts[i])
                add_features(
                    w, -1.0 / scale, indptr, indices, values, start, stop, attributes, has_bias, change, change_counts
                )
                eta = min(1.05 * eta, 1.0)
                break
            eta *= 0.5
            counters[1] += 1.0
        steps[i] = eta
