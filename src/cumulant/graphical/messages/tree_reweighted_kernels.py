"""Tree-reweighted messages, and the bound on ``log Z`` that they prove at any time.

Edge ``e`` joins ``i < j`` and has a table with ``x_j`` running fastest. Its message ``2 e`` goes from ``i`` to ``j``,
and is about ``x_j``; message ``2 e + 1`` goes back. ``orient[h]`` is the probability that the edge is in a tree in
which the end that ``h`` points to is the parent of the other; ``root[i]`` that ``i`` is the root.
"""

import numpy as np

from cumulant.kernels import kernel


@kernel
def sums_of_messages(messages, fields, orient, total, layout):
    """``H_i = theta_i + sum over its edges of rho u``, the logarithms of the pseudo-marginals."""
    ends, node_starts, _, message_starts, _ = layout
    total[:] = fields
    for h in range(message_starts.size - 1):
        share = orient[h] + orient[h ^ 1]
        begin = node_starts[ends[h]]
        for x in range(message_starts[h + 1] - message_starts[h]):
            total[begin + x] += share * messages[message_starts[h] + x]


@kernel(called_by="kernels")
def _answer(h, messages, total, theta, orient, fresh, layout):
    """``F_h = log sum exp(theta / rho + H - u)`` over the states of the end that message ``h`` comes from."""
    ends, node_starts, table_starts, message_starts, _ = layout
    share = orient[h] + orient[h ^ 1]
    own, back = message_starts[h], message_starts[h ^ 1]
    here, there = message_starts[h + 1] - own, message_starts[(h ^ 1) + 1] - back
    source, table = node_starts[ends[h ^ 1]], table_starts[h // 2]
    along, across = (here, 1) if h % 2 == 0 else (1, there)  # steps in the table for the source, for the target
    for x in range(here):
        top = -np.inf
        for y in range(there):
            value = theta[table + y * along + x * across] / share + total[source + y] - messages[back + y]
            top = max(top, value)
        summed = 0.0
        for y in range(there):
            value = theta[table + y * along + x * across] / share + total[source + y] - messages[back + y]
            summed += np.exp(value - top)
        fresh[own + x] = top + np.log(summed)


@kernel(called_by="kernels")
def _bound(messages, fresh, total, orient, root, work, layout):
    """``sum_i root_i log sum exp(H_i + sum_h orient_h (F_h - u_h) / root_i)``, over the messages ``h`` to ``i``, with
    the sizes of its terms added up.
    """
    ends, node_starts, _, message_starts, _ = layout
    value, size = 0.0, 0.0
    for i in range(node_starts.size - 1):
        for x in range(node_starts[i], node_starts[i + 1]):
            work[x] = root[i] * total[x]
    for h in range(message_starts.size - 1):
        begin, widest = node_starts[ends[h]], 0.0
        for x in range(message_starts[h + 1] - message_starts[h]):
            at = message_starts[h] + x
            work[begin + x] += orient[h] * (fresh[at] - messages[at])
            widest = max(widest, abs(fresh[at]) + abs(messages[at]))
        for y in range(node_starts[ends[h ^ 1]], node_starts[ends[h ^ 1] + 1]):
            widest = max(widest, abs(total[y]))
        size += 2.0 * orient[h] * widest
    for i in range(node_starts.size - 1):
        top, widest = -np.inf, 0.0
        for x in range(node_starts[i], node_starts[i + 1]):
            top = max(top, work[x])
            widest = max(widest, abs(total[x]))
        size += root[i] * widest + abs(top)
        if root[i] > 0.0:
            summed = 0.0
            for x in range(node_starts[i], node_starts[i + 1]):
                summed += np.exp((work[x] - top) / root[i])
            top += root[i] * np.log(summed)
        value += top
    return value, size


@kernel(called_by="python")
def propagate(messages, best, theta, fields, orient, root, damping, max_sweeps, tol, bounds, layout):
    """Sweeps over the nodes, forth and back, with the bound before each; `messages` is changed in place, and `best` set
    to those with the lowest bound.

    Ends when no pseudo-marginal of an edge is farther than `tol` from that of its end. ``bounds[s]`` is the bound
    before sweep ``s``. Returns the bounds that were computed, the lowest one with the sizes of its terms, and the last
    disagreement.
    """
    ends, node_starts, _, message_starts, by_source = layout
    total, work, fresh = np.zeros(node_starts[-1]), np.zeros(node_starts[-1]), np.zeros(messages.size)
    lowest, lowest_size, disagreement, n = np.inf, 0.0, np.inf, ends.size
    for sweep in range(max_sweeps):
        sums_of_messages(messages, fields, orient, total, layout)
        for step in range(2 * n + 1):  # all messages for the bound, the bound, and all messages in their turn
            if step == n:
                bounds[sweep], size = _bound(messages, fresh, total, orient, root, work, layout)
                if bounds[sweep] < lowest:
                    lowest, lowest_size = bounds[sweep], size
                    best[:] = messages
                disagreement = _disagreement(messages, fresh, total, layout)
                if disagreement <= tol or sweep == max_sweeps - 1:
                    return sweep + 1, lowest, lowest_size, disagreement
                continue
            h = step
            if step > n:
                h = by_source[step - n - 1] if sweep % 2 == 0 else by_source[2 * n - step]
            _answer(h, messages, total, theta, orient, fresh, layout)
            if step > n:
                share = orient[h] + orient[h ^ 1]
                begin, top = node_starts[ends[h]] - message_starts[h], -np.inf
                for at in range(message_starts[h], message_starts[h + 1]):
                    top = max(top, fresh[at])
                for at in range(message_starts[h], message_starts[h + 1]):
                    new = (1.0 - damping) * (fresh[at] - top) + damping * messages[at]
                    total[begin + at] += share * (new - messages[at])
                    messages[at] = new
    return 0, lowest, lowest_size, disagreement


@kernel(called_by="kernels")
def _disagreement(messages, fresh, total, layout):
    """How far the marginals of edges, ``exp(H - u + F)``, are from those of nodes, ``exp(H)``."""
    ends, node_starts, _, message_starts, _ = layout
    widest = 0.0
    for h in range(message_starts.size - 1):
        begin = node_starts[ends[h]] - message_starts[h]
        top, other = -np.inf, -np.inf
        for at in range(message_starts[h], message_starts[h + 1]):
            top = max(top, total[begin + at])
            other = max(other, total[begin + at] + fresh[at] - messages[at])
        one, two = 0.0, 0.0
        for at in range(message_starts[h], message_starts[h + 1]):
            one += np.exp(total[begin + at] - top)
            two += np.exp(total[begin + at] + fresh[at] - messages[at] - other)
        for at in range(message_starts[h], message_starts[h + 1]):
            p = np.exp(total[begin + at] - top) / one
            q = np.exp(total[begin + at] + fresh[at] - messages[at] - other) / two
            widest = max(widest, abs(p - q))
    return widest


@kernel(called_by="python")
def pair_beliefs(messages, total, theta, orient, beliefs, information, layout):
    """The pseudo-marginal of each edge, ``~ exp(theta / rho + H_i - u + H_j - u)``, and its mutual information."""
    ends, node_starts, table_starts, message_starts, _ = layout
    for e in range(table_starts.size - 1):
        share = orient[2 * e] + orient[2 * e + 1]
        to_j, to_i = message_starts[2 * e], message_starts[2 * e + 1]
        n_j, n_i = message_starts[2 * e + 1] - to_j, message_starts[2 * e + 2] - to_i
        j, i = node_starts[ends[2 * e]], node_starts[ends[2 * e + 1]]
        top = -np.inf
        for a in range(n_i):
            for b in range(n_j):
                at = table_starts[e] + a * n_j + b
                value = theta[at] / share + total[i + a] - messages[to_i + a] + total[j + b] - messages[to_j + b]
                beliefs[at] = value
                top = max(top, value)
        summed = 0.0
        rows, columns = np.zeros(n_i), np.zeros(n_j)
        for a in range(n_i):
            for b in range(n_j):
                at = table_starts[e] + a * n_j + b
                beliefs[at] = np.exp(beliefs[at] - top)
                summed += beliefs[at]
        for a in range(n_i):
            for b in range(n_j):
                at = table_starts[e] + a * n_j + b
                beliefs[at] /= summed
                rows[a] += beliefs[at]
                columns[b] += beliefs[at]
        information[e] = 0.0
        for a in range(n_i):
            for b in range(n_j):
                p = beliefs[table_starts[e] + a * n_j + b]
                if p > 0.0:
                    information[e] += p * (np.log(p) - np.log(rows[a]) - np.log(columns[b]))
