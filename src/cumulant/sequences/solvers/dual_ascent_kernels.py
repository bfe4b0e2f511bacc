"""The inner loop of dual coordinate ascent on chains: many updates of one block of sequences, on one thread.

The dual variables are the marginals ``mu`` of every sequence, nodes and pairs; ``w = w(mu)`` is kept in step. An update
draws a sequence, computes its marginals ``nu`` at the current weights, and moves ``mu`` towards ``nu`` as far as the
dual objective rises (Le Priol 2021, algorithm 2).
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_log, soft
from cumulant.optim.finite_sums.sum_tree_kernels import draw, remember
from cumulant.sequences.chain.chain_kernels import chain_marginals, chain_scores, collect, inner, sparse_scores

_FAST = {"reassoc", "contract", "nsz"}


@kernel(called_by="kernels", fastmath=_FAST)
def sums(mu, step, weights):
    """Sums of ``step log mu``, ``mu log mu``, ``mu weights``; `step` comes in as ``nu`` and leaves as ``nu - mu``."""
    cross, own, score = 0.0, 0.0, 0.0
    for e in range(len(mu)):
        value = np.float64(mu[e])
        change = step[e] - value
        logarithm = fast_log(value)
        step[e] = change
        cross += change * logarithm
        own += value * logarithm
        score += value * weights[e]
    return cross, own, score


@kernel(called_by="kernels", fastmath=_FAST)
def _slope_at(mu, step, gamma):
    """``sum step log m`` and ``sum step^2 / m`` at ``m = mu + gamma step``."""
    first, second = 0.0, 0.0
    for e in range(len(mu)):
        change = step[e]
        value = np.float64(mu[e]) + gamma * change
        value = value if value > 1e-300 else 1e-300  # a marginal of zero: its change is zero too
        first += change * fast_log(value)
        second += change * change / value
    return first, second


@kernel(called_by="kernels", fastmath=_FAST)
def _entropy_at(mu, step, gamma):
    """``-sum m log m`` at ``m = mu + gamma step``."""
    total = 0.0
    for e in range(len(mu)):
        value = np.float64(mu[e]) + gamma * step[e]
        value = value if value > 1e-300 else 1e-300
        total -= value * fast_log(value)
    return total


@kernel(called_by="kernels")
def _golden_section(mu, step, other, other_step, sign, gain, curvature, precision, max_evaluations, counters):
    """The highest point of the dual on [0, 1] by golden sections, until the bracket is shorter than `precision`."""
    share = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high, evaluations = 0.0, 1.0, 0
    left, right, at_left, at_right = 1.0 - share, share, np.nan, np.nan
    while high - low > precision and evaluations < max_evaluations:
        gamma = left if np.isnan(at_left) else right
        value = _entropy_at(mu, step, gamma) + sign * _entropy_at(other, other_step, gamma)
        value += gamma * (gain - 0.5 * gamma * curvature)
        evaluations += 1
        if np.isnan(at_left):
            at_left = value
        else:
            at_right = value
        if np.isnan(at_left) or np.isnan(at_right):
            continue
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left, at_left = high - share * (high - low), np.nan
        else:
            low, left, at_left = left, right, at_right
            right, at_right = low + share * (high - low), np.nan
    counters[1] += evaluations
    return 0.5 * (low + high)


@kernel(called_by="kernels")
def _safe_newton(mu, step, other, other_step, sign, gain, curvature, gamma, precision, max_evaluations, counters):
    """The root of the slope by Newton's method between brackets, from `gamma` (Press et al. 1992, section 9.4).

    A step that leaves the bracket, or that is longer than half of the one before the last, is a bisection instead.
    """
    low, high, before, last = 0.0, 1.0, 1.0, 1.0
    for _ in range(max_evaluations):
        first, second = _slope_at(mu, step, gamma)
        first_other, second_other = _slope_at(other, other_step, gamma)
        counters[1] += 1.0
        value = gain - first - sign * first_other - gamma * curvature
        if value > 0.0:
            low = gamma
        else:
            high = gamma
        moved_by = value / (second + sign * second_other + curvature)
        following = gamma + moved_by
        if not (low < following < high and abs(2.0 * moved_by) <= before):
            following = 0.5 * (low + high)
        before, last = last, abs(following - gamma)
        gamma = following
        if last < precision:
            break
    return gamma


@kernel(called_by="kernels")
def step_length(
    mu, step, other, other_step, sign, gain, slope, curvature, gap, subprecision, max_evaluations, straightness,
    method, steps, i, counters,
):  # fmt: skip
    """How far to go: the root of the slope of the dual, which falls from `slope` at 0 to `-curvature` at 1.

    The slope at ``gamma`` is ``gain - sum step log(mu + gamma step) - gamma curvature``; the sum over the marginals
    `other` counts with a `sign`. By bracketed Newton's method, as in `SequenceDualAscent`. With `steps`, which has a
    number for each sequence, as `method` says: Newton's method from there (0) and then remembered there too (1), golden
    sections (2), or that step itself (3).
    """
    if steps is not None:
        if method == 3:
            return steps[i]
        if method == 2:
            return _golden_section(
                mu, step, other, other_step, sign, gain, curvature, subprecision, max_evaluations, counters
            )
        found = _safe_newton(
            mu, step, other, other_step, sign, gain, curvature, steps[i], subprecision, max_evaluations, counters
        )
        if method == 1:
            steps[i] = found
        return found
    low, high, gamma = 0.0, 1.0, slope / (slope + curvature)
    if abs(slope - 2.0 * gap) <= straightness * slope:
        return gamma  # the two divergences in the slope at zero are alike: it is nearly a line, and its chord will do
    for _ in range(max_evaluations):
        first, second = _slope_at(mu, step, gamma)
        first_other, second_other = _slope_at(other, other_step, gamma)
        counters[1] += 1.0
        value = gain - first - sign * first_other - gamma * curvature
        if value > 0.0:
            low = gamma
        else:
            high = gamma
        following = gamma + value / (second + sign * second_other + curvature)
        if not low < following < high:
            following = 0.5 * (low + high)
        moved_by, gamma = abs(following - gamma), following
        if moved_by < subprecision:
            break
    return gamma


@kernel(called_by="kernels", fastmath=_FAST)
def advance(mu, step, gamma):
    """``mu + gamma step``, in place; what rounding makes negative is zero."""
    for e in range(len(mu)):
        value = mu[e] + gamma * step[e]
        mu[e] = value if value > 0.0 else 0.0


@kernel(called_by="kernels", fastmath=_FAST)
def _sum_of_pairs(pair_step, length, transitions):
    labels = transitions.shape[0]
    for j in range(labels):
        for k in range(labels):
            transitions[j, k] = 0.0
    for t in range(length - 1):
        for j in range(labels):
            source, target = pair_step[t, j], transitions[j]
            for k in range(labels):
                target[k] += source[k]


def work_space(labels: int, longest: int, widest: int) -> tuple[np.ndarray, ...]:
    """The arrays from `scores` to `flat_matrix` of `ascend`, for sequences of `longest` tokens, `widest` attributes."""
    nu, nu_pair = np.empty((longest, labels)), np.empty((longest, labels, labels))
    transitions, moved, matrix = np.empty((3, labels, labels))
    return (
        *np.empty((3, longest, labels)), nu, nu.reshape(-1), nu_pair, nu_pair.reshape(-1), moved,
        np.empty((widest, labels)), np.empty((3, labels)), transitions, matrix, matrix.reshape(-1),
    )  # fmt: skip


@kernel(called_by="python")
def ascend(
    weights, threshold, has_bias, indptr, indices, values, offsets, row_starts, rows, local, unary, flat_unary,
    flat_pair, members, gaps, tree, importance, scheme, nonuniformity, scale, sigma, subprecision, max_evaluations,
    straightness, method, steps, first_update, updates, seed, block, sweep, counters, scores, forward, ahead, nu,
    flat_nu, nu_pair, flat_nu_pair, moved, direction, biases, transitions, matrix, flat_matrix, logs,
):  # fmt: skip
    """Updates `first_update` to `updates` of the sequences `members`; returns the first that was not made.

    That is `updates`, unless `logs` is None and a sequence needs it: see `chain_kernels`.

    Parameters
    ----------
    weights : array (rows, K)
        The block's own copy of the weights, before the soft threshold `threshold`, which is None where there is none.
        A step moves it `sigma` times as far as the step is worth, which makes the sum of the steps of all blocks safe
        (Ma et al. 2015: ``sigma`` is the number of blocks).
    indptr, indices, values, offsets
        The tokens, a CSR matrix, and where sequences begin.
    row_starts, rows, local
        The attributes of each sequence, each named once, and for each entry of the CSR matrix its place among them.
    unary, flat_unary, flat_pair : array (N, K), (N K,), ((N - n) K K,)
        The dual variables, those of nodes in two shapes. The pairs of sequence ``i`` begin at ``offsets[i] - i``.
    gaps : array (n,)
        The duality gap of each sequence when it was last visited, before the step.
    tree, importance, scheme, nonuniformity
        How sequences are drawn: scheme 0 uniform, 1 by `importance`, 2 by gap, 3 by both, 4 the largest gap.
    scale : float
        ``lambda n``.
    straightness : float
        See `SequenceDualAscent`.
    method, steps
        The line search: see `step_length`. None for the one by default.
    counters : array
        Oracle calls, evaluations of the line search, and the sum of steps.
    """
    attributes = weights.shape[0] - weights.shape[1] - (3 if has_bias else 0)
    hidden_matrix = weights[weights.shape[0] - weights.shape[1] :]
    labels, n = weights.shape[1], len(members)
    square = labels * labels
    for u in range(first_update, updates):
        m = draw(scheme, nonuniformity, tree, n, seed, block, sweep, u)
        i = members[m]
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        mu, single_mu = unary[start:stop], flat_unary[start * labels : stop * labels]
        flat_mu = flat_pair[(start - i) * square : (stop - i - 1) * square]
        single_step, flat_step = flat_nu[: length * labels], flat_nu_pair[: (length - 1) * square]
        if threshold is None:
            chain_scores(weights, attributes, has_bias, indptr, indices, values, start, stop, scores)
        else:
            sparse_scores(weights, threshold, attributes, has_bias, indptr, indices, values, start, stop, scores)
        for j in range(labels):
            for k in range(labels):
                value = hidden_matrix[j, k]
                matrix[j, k] = value if threshold is None else soft(value, threshold)
        log_z = chain_marginals(scores, length, matrix, moved, forward, ahead, nu, nu_pair, logs)
        if logs is None and np.isnan(log_z):
            return u

        # The gap KL(mu || nu), and the slope at zero KL(mu || nu) + KL(nu || mu): <step, scores> - sum step log mu.
        mean_score, cross, own = inner(mu, scores), 0.0, 0.0
        for t in range(length - 1):
            first, last = t * square, (t + 1) * square
            added = sums(flat_mu[first:last], flat_step[first:last], flat_matrix)
            cross, own, mean_score = cross + added[0], own + added[1], mean_score + added[2]
        sign = 1.0 if length == 1 else -1.0
        a, b = (0, labels) if length == 1 else (labels, (length - 1) * labels)
        for e in range(len(single_mu)):
            change = single_step[e] - single_mu[e]
            single_step[e] = change
            if a <= e < b:
                logarithm = fast_log(single_mu[e])
                cross += sign * change * logarithm
                own += sign * single_mu[e] * logarithm
        gap = max(own - mean_score + log_z, 0.0)
        gaps[i] = gap
        remember(scheme, tree, m, gap, importance[i])

        local_rows = direction[: row_starts[i + 1] - row_starts[i]]
        _sum_of_pairs(nu_pair, length, transitions)
        norm = collect(indptr, values, local, start, stop, has_bias, nu, transitions, local_rows, biases)
        gain = inner(nu[:length], scores) + inner(transitions, matrix)
        slope, curvature = gain - cross, sigma * norm / scale
        counters[0] += 1.0

        if slope <= 0.0:
            continue
        gamma = step_length(
            flat_mu, flat_step, single_mu[a:b], single_step[a:b], sign, gain, slope, curvature, gap, subprecision,
            max_evaluations, straightness, method, steps, i, counters,
        )  # fmt: skip
        advance(flat_mu, flat_step, gamma)
        advance(single_mu, single_step, gamma)
        amount = -sigma * gamma / scale
        for r in range(len(local_rows)):
            target, source = weights[rows[row_starts[i] + r]], local_rows[r]
            for k in range(labels):
                target[k] += amount * source[k]
        if has_bias:
            for b_row in range(3):
                for k in range(labels):
                    weights[attributes + b_row, k] += amount * biases[b_row, k]
        for j in range(labels):
            for k in range(labels):
                hidden_matrix[j, k] += amount * transitions[j, k]
        counters[2] += gamma
    return updates
