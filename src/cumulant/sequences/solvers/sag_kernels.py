"""The stochastic average gradient on chains, with line search and draws by constants: many updates, one thread."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.optim.finite_sums.sum_tree_kernels import max_tree_update, tree_draw, tree_update
from cumulant.randomness_kernels import uniform, uniform_pair
from cumulant.sequences.chain.chain_gradient_kernels import (
    FAST,
    add_features,
    catch_up,
    longest_span,
    multiply_out,
    scaled_scores,
    shrink,
    subtract_labels,
    workspace,
)
from cumulant.sequences.chain.chain_kernels import collect, expected, log_partition


@kernel(called_by="kernels", fastmath=FAST)
def _search(
    constant, least, indptr, values, local, first, last, has_bias, labels, scores, matrix, log_z, gradient,
    gradient_counts, rows, biases, slopes, trial, trial_matrix, moved, forward, ahead,
):  # fmt: skip
    """Doubles `constant` ``L`` while ``f(w - g / L) > f(w) - |g|^2 / (2 L)``; nothing to do where ``|g|^2 <= least``.

    The scores along the gradient are computed once: a trial costs one forward pass. Returns ``L`` and the number of
    trials.
    """
    n_labels, length = scores.shape[1], last - first
    norm = collect(indptr, values, local, first, last, has_bias, gradient, gradient_counts, rows, biases)
    if norm <= least:
        return constant, 0
    gold = 0.0
    for t in range(first, last):
        slope = slopes[t - first]
        for k in range(n_labels):
            slope[k] = biases[0, k]
            if t == first:
                slope[k] += biases[1, k]
            if t == last - 1:
                slope[k] += biases[2, k]
        for e in range(indptr[t], indptr[t + 1]):
            source, value = rows[local[e]], values[e]
            for k in range(n_labels):
                slope[k] += value * source[k]
        gold += slope[labels[t]]
        if t + 1 < last:
            gold += gradient_counts[labels[t], labels[t + 1]]
    trials = 0
    while trials < 200:
        step = 1.0 / constant
        for t in range(length):
            for k in range(n_labels):
                trial[t, k] = scores[t, k] - step * slopes[t, k]
        for j in range(n_labels):
            for k in range(n_labels):
                trial_matrix[j, k] = matrix[j, k] - step * gradient_counts[j, k]
        trials += 1
        change = log_partition(trial, length, trial_matrix, moved, forward, ahead) - log_z + step * gold
        if change <= -0.5 * step * norm:
            break
        constant *= 2.0
    return constant, trials


@kernel(called_by="python")
def sag_epoch(
    x, total, has_bias, indptr, indices, values, offsets, labels, row_starts, rows, local, nodes, counts, order, places,
    constants, streaks, waits, tree, peaks, status, nonuniform, search, port, fixed, l2, updates, seed, sweep, counters,
):  # fmt: skip
    """`updates` updates of the stochastic average gradient; `x`, `total` and the memory are changed in place.

    Parameters
    ----------
    x, total : array (rows, K)
        The weights, and the sum of the stored gradients.
    nodes, counts : array (N, K), (n, K, K)
        The memory: marginals of nodes and expected transitions when a sequence was last visited; its labels before.
    order, places : array (n,)
        The sequences, those seen first, and the place of each.
    constants, streaks, waits : array (n,)
        The constant ``L_i`` of each sequence, its searches in a row that did not raise it, and the visits at which no
        search is to be made.
    tree, peaks
        A sum tree and a max tree over the constants of sequences seen (of all, where there is no search).
    status : array (2,)
        How many sequences were seen; and the largest constant, or the one for all.
    search : int
        0 never, 1 at each visit, 2 with pauses.
    fixed : float
        The step; 0 where it follows from the constants.
    counters : array
        Oracle calls and trials of the search.
    """
    n_labels, n = x.shape[1], len(offsets) - 1
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = longest_span(offsets)
    widest = longest_span(row_starts)
    scores, forward, ahead, nu, matrix, moved, found = workspace(longest, n_labels)
    slopes, trial = np.empty((longest, n_labels)), np.empty((longest, n_labels))
    trial_matrix, biases, local_rows = (
        np.empty((n_labels, n_labels)),
        np.empty((3, n_labels)),
        np.empty((widest, n_labels)),
    )
    late, passed, scale = np.zeros(x.shape[0]), 0.0, 1.0
    extra = l2 if port else 0.0
    least = 1.5e-8 if port else 1e-8
    decay = 2.0 ** (-1.0 / n)
    seen = int(status[0])
    for u in range(updates):
        coin, place = uniform_pair(seed, 0, sweep, u)
        if port:
            if coin * n < n - seen:
                i = order[seen + min(int(place * (n - seen)), n - seen - 1)]
            elif uniform(seed, 1, sweep, u) < 0.5:
                i = order[min(int(place * seen), seen - 1)]
            else:
                i = tree_draw(tree, place, n)
        elif nonuniform and coin < 0.5 and tree[1] > 0.0:
            i = tree_draw(tree, place, n)
        else:
            i = min(int(place * n), n - 1)
        fresh = places[i] >= seen
        if fresh:
            if nonuniform and search > 0:
                constants[i] = 0.5 * (tree[1] / seen - extra) if seen > 0 else 1.0
            other, where = order[seen], places[i]
            order[seen], order[where] = i, other
            places[i], places[other] = seen, where
            seen += 1

        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        catch_up(x, total, late, passed, attributes, rows[row_starts[i] : row_starts[i + 1]])
        scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        log_z = expected(scores, length, matrix, moved, forward, ahead, nu, found)
        counters[0] += 1.0

        # The stored gradient gives way to the new one.
        memory, memory_counts = nodes[start:stop], counts[i]
        for t in range(length):
            for k in range(n_labels):
                new = nu[t, k]
                slopes[t, k], memory[t, k] = new - memory[t, k], new
        for j in range(n_labels):
            for k in range(n_labels):
                new = found[j, k]
                trial_matrix[j, k], memory_counts[j, k] = new - memory_counts[j, k], new
        add_features(total, 1.0, indptr, indices, values, start, stop, attributes, has_bias, slopes, trial_matrix)

        if search > 0:
            if search == 2 and waits[i] > 0:
                waits[i] -= 1
            else:
                before = constants[i] if nonuniform else status[1]
                tried = 0.5 * before if port and not fresh else before
                subtract_labels(nu, found, labels, start, stop)
                after, trials = _search(
                    tried, least, indptr, values, local, start, stop, has_bias, labels, scores, matrix, log_z, nu,
                    found, local_rows[: row_starts[i + 1] - row_starts[i]], biases, slopes, trial, trial_matrix, moved,
                    forward, ahead,
                )  # fmt: skip
                counters[0] += trials
                counters[1] += trials
                if trials == 0:
                    after = before  # too flat to tell
                elif after <= before:
                    streaks[i] = min(streaks[i] + 1, 30)
                    waits[i] = 2 ** (streaks[i] - 1)
                    if nonuniform and not port:
                        after *= 0.9
                else:
                    streaks[i] = 0
                if nonuniform:
                    constants[i] = after
                else:
                    status[1] = after
            if nonuniform:
                tree_update(tree, i, constants[i] + extra)
                max_tree_update(peaks, i, constants[i])

        if fixed > 0.0:
            gamma = fixed
        elif port:
            status[1] = max(status[1], constants[i])
            mean = tree[1] / seen  # with the penalty
            unseen = (n - seen) / n
            gamma = unseen / (status[1] + l2) + (1.0 - unseen) * 0.5 * (1.0 / (status[1] + l2) + 1.0 / mean)
        elif nonuniform:
            gamma = 0.5 * (1.0 / (peaks[1] + l2) + 1.0 / (tree[1] / (seen if search > 0 else n) + l2))
        else:
            gamma = 1.0 / (status[1] + l2)
        if search > 0 and (port or not nonuniform):
            status[1] *= decay
        passed, scale = shrink(x, total, late, passed, scale, gamma, l2)
        passed += gamma / (seen * scale)
    status[0] = seen
    multiply_out(x, total, late, passed, scale)
