"""Inner loops of SAGA, SVRG and SGD on chains: many updates of the weights, one sequence each, on one thread."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform
from cumulant.sequences.chain.chain_gradient_kernels import (
    add_features,
    catch_up,
    copy_rows,
    longest_span,
    multiply_out,
    scaled_scores,
    shrink,
    subtract_labels,
    workspace,
)
from cumulant.sequences.chain.chain_kernels import expected


@kernel(called_by="python")
def saga_epoch(
    x, total, has_bias, indptr, indices, values, offsets, row_starts, rows, nodes, counts, remember, gamma, l2, updates,
    seed, sweep, counters,
):  # fmt: skip
    """`updates` updates ``w - gamma (g_i - stored_i + total / n + l2 w)``; `remember`: ``g_i`` is stored (SAGA)."""
    n_labels, n = x.shape[1], len(offsets) - 1
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = longest_span(offsets)
    scores, forward, ahead, nu, matrix, moved, found = workspace(longest, n_labels)
    late, passed, scale = np.zeros(x.shape[0]), 0.0, 1.0
    for u in range(updates):
        i = min(int(uniform(seed, 0, sweep, u) * n), n - 1)
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        own = rows[row_starts[i] : row_starts[i + 1]]
        catch_up(x, total, late, passed, attributes, own)
        scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, length, matrix, moved, forward, ahead, nu, found)
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
        passed, scale = shrink(x, total, late, passed, scale, gamma, l2)
        passed += gamma / (n * scale)
        catch_up(x, total, late, passed, attributes, own)  # this step, before the sum changes
        add_features(x, -gamma / scale, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
        if remember:
            add_features(total, 1.0, indptr, indices, values, start, stop, attributes, has_bias, nu, found)
    multiply_out(x, total, late, passed, scale)


@kernel(called_by="python")
def refresh(x, has_bias, indptr, indices, values, offsets, labels, nodes, counts, total):
    """The gradients of all sequences at `x`: into the memory, and their sum into `total`."""
    n_labels = x.shape[1]
    attributes = x.shape[0] - n_labels - (3 if has_bias else 0)
    longest = longest_span(offsets)
    scores, forward, ahead, nu, matrix, moved, found = workspace(longest, n_labels)
    total[:] = 0.0
    for i in range(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        scaled_scores(x, 1.0, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, stop - start, matrix, moved, forward, ahead, nu, found)
        copy_rows(nu, stop - start, nodes[start:stop])
        copy_rows(found, n_labels, counts[i])
        subtract_labels(nu, found, labels, start, stop)
        add_features(total, 1.0, indptr, indices, values, start, stop, attributes, has_bias, nu, found)


@kernel(called_by="python")
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
    longest = longest_span(offsets)
    scores, forward, ahead, nu, matrix, moved, found = workspace(longest, n_labels)
    late = np.zeros_like(x) if mean else np.zeros((1, n_labels))
    scale, sum_ = 1.0, 0.0
    for u in range(updates):
        time = sweep * np.float64(n) + u
        i = min(int(uniform(seed, 0, sweep, u) * n), n - 1)
        start, stop = offsets[i], offsets[i + 1]
        scaled_scores(x, scale, attributes, has_bias, indptr, indices, values, start, stop, scores, matrix)
        expected(scores, stop - start, matrix, moved, forward, ahead, nu, found)
        counters[0] += 1.0
        subtract_labels(nu, found, labels, start, stop)
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
