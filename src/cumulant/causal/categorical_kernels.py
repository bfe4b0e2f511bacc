"""Averaged stochastic gradient steps on logits, one observation at a time.

An observation changes the logits of the cause and of one row: ``O(K)`` for each step, whatever the size of the table.
Averages need no visit to the other rows either: with ``d_u`` the change at step ``u``,

    theta_0 + ... + theta_{t-1} = t theta_t - sum_{u < t} (u + 1) d_u,

so that the weighted changes ("moments") are kept beside the logits and the average is formed where it is asked for.
"""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp, fast_log
from cumulant.randomness_kernels import uniform

_FAST = {"reassoc", "contract", "nsz", "nnan"}
_FAR, _SMALL = 200.0, 1e-100  # logits this far above the base, totals this small: the base is moved


@kernel(called_by="python")
def draw_cells(ends, first, seed, cells):
    """Cells of the tables, ``cells[i, t]`` from the cumulative sums ``ends[i]`` of problem ``first + i``."""
    for i in range(cells.shape[0]):
        total = ends[i, ends.shape[1] - 1]
        for t in range(cells.shape[1]):
            u = uniform(seed, first + i, t, 0) * total
            low, high = 0, ends.shape[1] - 1
            while low < high:
                middle = (low + high) >> 1
                if ends[i, middle] > u:
                    high = middle
                else:
                    low = middle + 1
            cells[i, t] = low


@kernel(called_by="kernels", fastmath=_FAST)
def weigh_row(row, logits, weights, bases, totals):
    """``weights = exp(logits - base)`` with the largest logit as the base, and their total."""
    top = logits[row, 0]
    for i in range(logits.shape[1]):
        if logits[row, i] > top:
            top = logits[row, i]
    total = 0.0
    for i in range(logits.shape[1]):
        weights[row, i] = fast_exp(logits[row, i] - top)
        total += weights[row, i]
    bases[row], totals[row] = top, total


@kernel(called_by="kernels", fastmath=_FAST)
def gradient_step(row, observed, step, t, logits, moments, weights, bases, totals):
    """``s += step (e_observed - softmax(s))`` on a row, and the moments of its average.

    The weights of the row are those of its logits, and are again afterwards: one pass. The base stays while nothing
    can overflow or vanish.
    """
    base, later, scale = bases[row], t + 1.0, step / totals[row]
    total = 0.0
    for i in range(logits.shape[1]):
        change = scale * weights[row, i]
        value = logits[row, i] - change
        logits[row, i] = value
        moments[row, i] -= later * change
        weight = fast_exp(value - base)
        weights[row, i] = weight
        total += weight
    logits[row, observed] += step
    moments[row, observed] += later * step
    if logits[row, observed] - base < _FAR and total > _SMALL:
        weight = fast_exp(logits[row, observed] - base)
        totals[row] = total + (weight - weights[row, observed])
        weights[row, observed] = weight
    else:
        weigh_row(row, logits, weights, bases, totals)


@kernel(called_by="kernels", fastmath=_FAST)
def cross_entropy(problem, target, row, weight, targets, t, logits, moments, work):
    """``weight logsumexp(s) - sum targets s`` of a row at the average ``s`` of its first `t` logits."""
    share = 1.0 / max(t, 1)
    top, linear = -np.inf, 0.0
    for i in range(logits.shape[1]):
        value = logits[row, i] - share * moments[row, i]
        work[i] = value
        linear += targets[problem, target, i] * value
        if value > top:
            top = value
    total = 0.0
    for i in range(logits.shape[1]):
        total += fast_exp(work[i] - top)
    return weight * (top + fast_log(total)) - linear


@kernel(called_by="kernels", fastmath=_FAST)
def begin_rows(problem, first, starts, logits, moments, weights, bases, totals):
    """The rows from `first` on are those at the beginning of a problem."""
    for row in range(starts.shape[1]):
        for i in range(logits.shape[1]):
            logits[first + row, i] = starts[problem, row, i]
            moments[first + row, i] = 0.0
        weigh_row(first + row, logits, weights, bases, totals)


@kernel(called_by="python", fastmath=_FAST)
def adapt_mechanisms(
    starts, row_starts, targets, row_targets, entropies, cells, flip, steps, times, one, many, work, out
):
    """Models of two mechanisms: problem i, step size j: ``out[j, i, k]`` is the divergence at ``times[k]``.

    `starts` (n, 1, K_x) and `row_starts` (n, K_x, K_y) are the logits at the beginning, `targets` and `row_targets` the
    probabilities ``p*(x)`` and ``p*(x, y)``, `entropies` are ``sum p* log p*``. `cells` number the observations, in
    tables with the effect fastest; with `flip` the effect of the tables is the cause of this model. `one` and `many`
    are work space of the two mechanisms: logits, moments, weights, bases, totals, with the rows of each step size. All
    step sizes go forward together, as the processor can overlap what does not depend on each other.
    """
    logits, moments, weights, bases, totals = one
    row_logits, row_moments, row_weights, row_bases, row_totals = many
    causes, size = row_starts.shape[1], row_starts.shape[2]
    fastest = causes if flip else size
    for i in range(cells.shape[0]):
        for j in range(steps.shape[0]):
            begin_rows(i, j, starts, logits, moments, weights, bases, totals)
            begin_rows(i, j * causes, row_starts, row_logits, row_moments, row_weights, row_bases, row_totals)
        t = 0
        for k in range(times.size):
            while t < times[k]:
                x, y = cells[i, t] // fastest, cells[i, t] % fastest
                if flip:
                    x, y = y, x
                for j in range(steps.shape[0]):
                    row, step = j * causes + x, steps[j, i]
                    gradient_step(j, x, step, t, logits, moments, weights, bases, totals)
                    gradient_step(row, y, step, t, row_logits, row_moments, row_weights, row_bases, row_totals)
                t += 1
            for j in range(steps.shape[0]):
                found = cross_entropy(i, 0, j, 1.0, targets, t, logits, moments, work)
                for x in range(causes):
                    weight = targets[i, 0, x]
                    found += cross_entropy(i, x, j * causes + x, weight, row_targets, t, row_logits, row_moments, work)
                out[j, i, k] = found + entropies[i]


@kernel(called_by="python", fastmath=_FAST)
def adapt_table(starts, targets, entropies, cells, steps, times, state, work, out):
    """The model of one mechanism, a table in one row, one step size after the other: as `adapt_mechanisms`."""
    logits, moments, weights, bases, totals = state
    for i in range(cells.shape[0]):
        for j in range(steps.shape[0]):
            begin_rows(i, 0, starts, logits, moments, weights, bases, totals)
            t = 0
            for k in range(times.size):
                while t < times[k]:
                    gradient_step(0, cells[i, t], steps[j, i], t, logits, moments, weights, bases, totals)
                    t += 1
                out[j, i, k] = cross_entropy(i, 0, 0, 1.0, targets, t, logits, moments, work) + entropies[i]
