"""Inner loops of stochastic gradient methods on chains: many updates of the weights, one sequence each, on one thread.

The gradient of the loss of a sequence is ``E F(x_i, y) - F(x_i, y_i)``: sums over its tokens of their attributes times
the marginals minus the labels. So the marginals of its nodes ``(T, K)`` and its expected transitions ``(K, K)`` are all
that has to be remembered of it.

Shrinking by the penalty and moving along the sum of all stored gradients concern every weight at every update. Both are
put off: the weights are ``scale * x``, and a row of ``x`` catches up with ``total`` when it is next needed, as
``total[a]`` does not change in between. An update then touches the rows of its own sequence only.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp
from cumulant.optim.sum_tree_kernels import max_tree_update, tree_draw, tree_update
from cumulant.randomness_kernels import uniform, uniform_pair
from cumulant.sequences.chain_kernels import chain_marginals, chain_scores, collect

__all__ = ["add_features", "expected", "log_partition", "refresh", "sag_epoch", "saga_epoch", "sgd_epoch"]

_FAST = {"reassoc", "contract", "nsz"}
_TINY = 1e-250  # products below 1e-308 were lost; beside this much they do not matter
_SMALL = 1e-50  # a scale this small is multiplied out


@kernel
def _log_partition_wide(scores, length, transitions, forward):
    labels = scores.shape[1]
    forward[0] = scores[0]
    for t in range(1, length):
        for k in range(labels):
            terms = forward[t - 1] + transitions[:, k]
            highest = np.max(terms)
            forward[t, k] = scores[t, k] + highest + np.log(np.sum(np.exp(terms - highest)))
    highest = np.max(forward[length - 1])
    return highest + np.log(np.sum(np.exp(forward[length - 1] - highest)))


@kernel(fastmath=_FAST)
def log_partition(scores, length, transitions, moved, forward):
    """The log-partition function of a chain, by the forward pass alone. Work space `moved` (K, K), `forward` (T, K)."""
    labels = scores.shape[1]
    top = transitions[0, 0]
    for j in range(labels):
        for k in range(labels):
            top = max(top, transitions[j, k])
    for j in range(labels):
        for k in range(labels):
            moved[j, k] = fast_exp(transitions[j, k] - top)
    log_z = top * (length - 1)
    for t in range(length):
        row, out = scores[t], forward[t]
        highest = row[0]
        for k in range(1, labels):
            highest = max(highest, row[k])
        if t == 0:
            out[:] = 1.0
        else:
            out[:] = 0.0
            for j in range(labels):
                share, moved_row = forward[t - 1, j], moved[j]
                for k in range(labels):
                    out[k] += share * moved_row[k]
        sum_ = 0.0
        for k in range(labels):
            out[k] *= fast_exp(row[k] - highest)
            sum_ += out[k]
        if sum_ < _TINY:
            return _log_partition_wide(scores, length, transitions, forward)
        log_z += highest + np.log(sum_)
        for k in range(labels):
            out[k] /= sum_
    return log_z


@kernel(fastmath=_FAST)
def expected(scores, length, transitions, moved, forward, ahead, nodes, pair, counts):
    """Marginals of the nodes and expected transitions `counts` (K, K); returns the log-partition function."""
    labels = scores.shape[1]
    log_z = chain_marginals(scores, length, transitions, moved, forward, ahead, nodes, pair)
    counts[:] = 0.0
    for t in range(length - 1):
        for j in range(labels):
            source, target = pair[t, j], counts[j]
            for k in range(labels):
                target[k] += source[k]
    return log_z


@kernel(fastmath=_FAST)
def add_features(target, amount, indptr, indices, values, first, last, attributes, has_bias, nodes, counts):
    """Adds `amount` times the features of one sequence, its nodes weighted by `nodes` and its pairs by `counts`."""
    labels = target.shape[1]
    for t in range(first, last):
        source = nodes[t - first]
        for e in range(indptr[t], indptr[t + 1]):
            row, value = target[indices[e]], amount * values[e]
            for k in range(labels):
                row[k] += value * source[k]
        if has_bias:
            for k in range(labels):
                target[attributes, k] += amount * source[k]
    if has_bias:
        for k in range(labels):
            target[attributes + 1, k] += amount * nodes[0, k]
            target[attributes + 2, k] += amount * nodes[last - first - 1, k]
    matrix = target[target.shape[0] - labels :]
    for j in range(labels):
        for k in range(labels):
            matrix[j, k] += amount * counts[j, k]


@kernel(fastmath=_FAST)
def _catch_up(x, total, late, passed, first_dense, rows):
    """Take the steps along `total` that the rows `rows`, and all from `first_dense` on, have put off."""
    labels = x.shape[1]
    for r in range(len(rows) + x.shape[0] - first_dense):
        a = rows[r] if r < len(rows) else first_dense + r - len(rows)
        owed = passed - late[a]
        if owed != 0.0:
            target, source = x[a], total[a]
            for k in range(labels):
                target[k] -= owed * source[k]
            late[a] = passed


@kernel(fastmath=_FAST)
def _multiply_out(x, total, late, passed, scale):
    """All rows catch up, and the scale goes into them."""
    labels = x.shape[1]
    for a in range(x.shape[0]):
        owed = passed - late[a]
        for k in range(labels):
            x[a, k] = scale * (x[a, k] - owed * total[a, k])
        late[a] = 0.0


@kernel(fastmath=_FAST)
def _scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, first, last, scores, matrix):
    labels = x.shape[1]
    chain_scores(x, attributes, has_bias, indptr, indices, values, first, last, scores)
    first_transition = x.shape[0] - labels
    for t in range(last - first):
        for k in range(labels):
            scores[t, k] *= scale
    for j in range(labels):
        for k in range(labels):
            matrix[j, k] = scale * x[first_transition + j, k]


@kernel(fastmath=_FAST)
def _subtract_labels(nodes, counts, labels, first, last):
    for t in range(first, last):
        nodes[t - first, labels[t]] -= 1.0
        if t + 1 < last:
            counts[labels[t], labels[t + 1]] -= 1.0


@kernel(fastmath=_FAST)
def _search(
    constant, least, indptr, values, local, first, last, has_bias, labels, scores, matrix, log_z, gradient,
    gradient_counts, rows, biases, slopes, trial, trial_matrix, moved, forward,
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
        change = log_partition(trial, length, trial_matrix, moved, forward) - log_z + step * gold
        if change <= -0.5 * step * norm:
            break
        constant *= 2.0
    return constant, trials


@kernel
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
    longest = np.max(np.diff(offsets))
    widest = np.max(np.diff(row_starts))
    work, squares = np.empty((6, longest, n_labels)), np.empty((4, n_labels, n_labels))
    scores, forward, ahead, nu, slopes, trial = work[0], work[1], work[2], work[3], work[4], work[5]
    matrix, moved, found, trial_matrix = squares[0], squares[1], squares[2], squares[3]
    pair, biases = np.empty((longest, n_labels, n_labels)), np.empty((3, n_labels))
    local_rows = np.empty((widest, n_labels))
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
        _catch_up(x, total, late, passed, attributes, rows[row_starts[i] : row_starts[i + 1]])
        _scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        log_z = expected(scores, length, matrix, moved, forward, ahead, nu, pair, found)
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
                _subtract_labels(nu, found, labels, start, stop)
                after, trials = _search(
                    tried, least, indptr, values, local, start, stop, has_bias, labels, scores, matrix, log_z, nu,
                    found, local_rows[: row_starts[i + 1] - row_starts[i]], biases, slopes, trial, trial_matrix, moved,
                    forward,
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
        if scale * (1.0 - gamma * l2) < _SMALL:
            _multiply_out(x, total, late, passed, scale * (1.0 - gamma * l2))
            scale, passed = 1.0, 0.0
        else:
            scale *= 1.0 - gamma * l2
        passed += gamma / (seen * scale)
    status[0] = seen
    _multiply_out(x, total, late, passed, scale)


@kernel
def saga_epoch(
    x, total, has_bias, indptr, indices, values, offsets, row_starts, rows, nodes, counts, remember, gamma, l2, updates,
    seed, sweep, counters,
):  # fmt: skip
    """`updates` updates ``w - gamma (g_i - stored_i + total / n + l2 w)``; `remember`: ``g_i`` is stored (SAGA)."""
    n_labels, n = x.shape[1], len(offsets) - 1
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = np.max(np.diff(offsets))
    work, squares = np.empty((4, longest, n_labels)), np.empty((3, n_labels, n_labels))
    scores, forward, ahead, nu = work[0], work[1], work[2], work[3]
    matrix, moved, found = squares[0], squares[1], squares[2]
    pair = np.empty((longest, n_labels, n_labels))
    late, passed, scale = np.zeros(x.shape[0]), 0.0, 1.0
    for u in range(updates):
        i = min(int(uniform(seed, 0, sweep, u) * n), n - 1)
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        own = rows[row_starts[i] : row_starts[i + 1]]
        _catch_up(x, total, late, passed, attributes, own)
        _scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, length, matrix, moved, forward, ahead, nu, pair, found)
        counters[0] += 1.0
        memory, memory_counts = nodes[start:stop], counts[i]
        for t in range(length):
            for k in range(n_labels):
                new = nu[t, k]
                nu[t, k] -= memory[t, k]
                if remember:
                    memory[t, k] = new
        for j in range(n_labels):
            for k in range(n_labels):
                new = found[j, k]
                found[j, k] -= memory_counts[j, k]
                if remember:
                    memory_counts[j, k] = new
        if scale * (1.0 - gamma * l2) < _SMALL:
            _multiply_out(x, total, late, passed, scale * (1.0 - gamma * l2))
            scale, passed = 1.0, 0.0
        else:
            scale *= 1.0 - gamma * l2
        passed += gamma / (n * scale)
        _catch_up(x, total, late, passed, attributes, own)  # this step, before the sum changes
        add_features(x, -gamma / scale, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
        if remember:
            add_features(total, 1.0, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
    _multiply_out(x, total, late, passed, scale)


@kernel
def refresh(x, has_bias, indptr, indices, values, offsets, labels, nodes, counts, total):
    """The gradients of all sequences at `x`: into the memory, and their sum into `total`."""
    n_labels = x.shape[1]
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = np.max(np.diff(offsets))
    work, squares = np.empty((4, longest, n_labels)), np.empty((3, n_labels, n_labels))
    scores, forward, ahead, nu = work[0], work[1], work[2], work[3]
    matrix, moved, found = squares[0], squares[1], squares[2]
    pair = np.empty((longest, n_labels, n_labels))
    total[:] = 0.0
    for i in range(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        _scaled_scores(x, 1.0, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, stop - start, matrix, moved, forward, ahead, nu, pair, found)
        nodes[start:stop], counts[i] = nu[: stop - start], found
        _subtract_labels(nu, found, labels, start, stop)
        add_features(total, 1.0, indptr, indices, values, start, stop, attributes, has_bias, nu, found)


@kernel
def sgd_epoch(
    x, running, mean, has_bias, indptr, indices, values, offsets, labels, first_step, decrease, l2, updates, seed,
    sweep, counters,
):  # fmt: skip
    """`updates` updates ``w - gamma_t (g_i + l2 w)``, ``gamma_t = first_step / (1 + decrease t)``.

    `running` is the sum of the iterates weighted by 1, 2, 3, ...; `mean` says whether it is kept. With ``w = scale x``
    that sum is ``S x - late``, where ``S`` adds up the weighted scales and ``late`` what changes of ``x`` missed.
    """
    n_labels, n = x.shape[1], len(offsets) - 1
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = np.max(np.diff(offsets))
    work, squares = np.empty((4, longest, n_labels)), np.empty((3, n_labels, n_labels))
    scores, forward, ahead, nu = work[0], work[1], work[2], work[3]
    matrix, moved, found = squares[0], squares[1], squares[2]
    pair = np.empty((longest, n_labels, n_labels))
    late = np.zeros_like(x) if mean else np.zeros((1, n_labels))
    scale, sum_ = 1.0, 0.0
    for u in range(updates):
        time = sweep * np.float64(n) + u
        i = min(int(uniform(seed, 0, sweep, u) * n), n - 1)
        start, stop = offsets[i], offsets[i + 1]
        _scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, stop - start, matrix, moved, forward, ahead, nu, pair, found)
        counters[0] += 1.0
        _subtract_labels(nu, found, labels, start, stop)
        gamma = first_step / (1.0 + decrease * time)
        scale *= 1.0 - gamma * l2
        if scale < 1e-4:  # far from where the two parts of the running sum would cancel
            if mean:
                running += sum_ * x - late
                late[:] = 0.0
            x *= scale
            scale, sum_ = 1.0, 0.0
        amount = -gamma / scale
        add_features(x, amount, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
        if mean:
            if sum_ > 0.0:
                add_features(late, amount * sum_, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
            sum_ += (time + 1.0) * scale
    if mean:
        running += sum_ * x - late
    x *= scale
