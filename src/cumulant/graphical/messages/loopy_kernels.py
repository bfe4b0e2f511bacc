"""Sum-product and max-product on tables of any arity, in logarithms; see `messages.Incidence` for the layout.

A message goes from a table to a node. What a node tells a table, its cavity, is the sum of all messages to it but the
one of this table: sums of finite messages and numbers of infinite ones are kept for each state, so that one can be
taken out of them.
"""

import numpy as np

from cumulant.graphical.messages.incidence_kernels import log_sum
from cumulant.kernels import kernel


@kernel(called_by="kernels")
def _gather(messages, total, never, layout):
    """Sums of the finite messages to each state of each node, and how many say that it is impossible."""
    _, _, node, _, node_starts, _, _, message_starts, _, _ = layout
    total[:] = 0.0
    never[:] = 0
    for k in range(node.size):
        begin = node_starts[node[k]]
        for x in range(message_starts[k + 1] - message_starts[k]):
            value = messages[message_starts[k] + x]
            if value == -np.inf:
                never[begin + x] += 1
            else:
                total[begin + x] += value


@kernel(called_by="kernels")
def _cavities(f, messages, total, never, cavity, layout):
    """What the nodes of a table tell it."""
    _, first, node, _, node_starts, _, _, message_starts, _, _ = layout
    for k in range(first[f], first[f + 1]):
        begin = node_starts[node[k]]
        for x in range(message_starts[k + 1] - message_starts[k]):
            value = messages[message_starts[k] + x]
            others = never[begin + x]
            rest = total[begin + x]
            if value == -np.inf:
                others -= 1
            else:
                rest -= value
            cavity[message_starts[k] + x] = rest if others == 0 else -np.inf


@kernel(called_by="kernels")
def _answer(f, theta, maximise, cavity, fresh, top, layout):
    """The messages of a table to all of its nodes, normalised."""
    table_starts, first, _, _, _, _, _, message_starts, place_starts, places = layout
    size = table_starts[f + 1] - table_starts[f]
    for k in range(first[f], first[f + 1]):
        begin, end = message_starts[k], message_starts[k + 1]
        for x in range(begin, end):
            top[x] = -np.inf
            fresh[x] = 0.0
        for again in range(1 if maximise else 2):
            for e in range(size):
                value = theta[table_starts[f] + e]
                for m in range(first[f], first[f + 1]):
                    if m != k:
                        value += cavity[message_starts[m] + places[place_starts[m] + e]]
                x = begin + places[place_starts[k] + e]
                if again == 0:
                    top[x] = max(top[x], value)
                elif value > -np.inf:
                    fresh[x] += np.exp(value - top[x])
        for x in range(begin, end):
            fresh[x] = top[x] if maximise or top[x] == -np.inf else top[x] + np.log(fresh[x])
        _normalise(fresh, begin, end, maximise)


@kernel(called_by="kernels")
def _normalise(values, begin, end, maximise):
    """Logarithms whose exponentials sum to one, or of which the largest is zero; all -inf stays."""
    shift = -np.inf
    if maximise:
        for x in range(begin, end):
            shift = max(shift, values[x])
    else:
        shift = log_sum(values, begin, end)
    if shift > -np.inf:
        for x in range(begin, end):
            values[x] -= shift


@kernel(called_by="kernels")
def _change(begin, end, state, maximise, tol, messages, fresh, total, never):
    """How far a new message is from the one in place, as a distribution; where that is at most `tol`, at least by how
    much the belief of its table differs from that of its node, whose states begin at `state`.

    Where messages of both extremes meet, all of them may stand still as distributions while the belief moves.
    """
    change, moved = 0.0, 0.0
    for x in range(begin, end):
        change = max(change, abs(np.exp(fresh[x]) - np.exp(messages[x])))
        if fresh[x] != messages[x]:
            moved = max(moved, abs(fresh[x] - messages[x]))
    if change > tol or moved <= tol:  # a belief differs by no more than the logarithms moved
        return change
    shift = state - begin
    top_node, top_table = -np.inf, -np.inf
    for x in range(begin, end):
        node, table = _beliefs(messages[x], fresh[x], total[x + shift], never[x + shift])
        top_node, top_table = max(top_node, node), max(top_table, table)
    if top_node == -np.inf or top_table == -np.inf:
        return change if top_node == top_table else 1.0
    sum_node, sum_table = 0.0, 0.0
    for x in range(begin, end):
        node, table = _beliefs(messages[x], fresh[x], total[x + shift], never[x + shift])
        sum_node, sum_table = sum_node + np.exp(node - top_node), sum_table + np.exp(table - top_table)
    if maximise:
        sum_node, sum_table = 1.0, 1.0
    for x in range(begin, end):
        node, table = _beliefs(messages[x], fresh[x], total[x + shift], never[x + shift])
        change = max(change, abs(np.exp(node - top_node) / sum_node - np.exp(table - top_table) / sum_table))
    return change


@kernel(called_by="kernels")
def _beliefs(message, fresh, total, never):
    """The logarithms, up to a constant, of the beliefs of a node and of a table in one state."""
    node = total if never == 0 else -np.inf
    if message == -np.inf:
        never -= 1
    else:
        total -= message
    return node, total + fresh if never == 0 else -np.inf


@kernel(called_by="kernels")
def _apply(f, maximise, damping, tol, messages, fresh, total, never, layout, stale):
    """Put the new messages of a table into place, and into the sums of its nodes; returns the largest change before
    damping. To `stale` of the other tables of a node is added by how much the logarithms of what they hear changed.
    """
    _, first, node, factor, node_starts, link_starts, links, message_starts, _, _ = layout
    change = 0.0
    for k in range(first[f], first[f + 1]):
        begin, end, state = message_starts[k], message_starts[k + 1], node_starts[node[k]]
        change = max(change, _change(begin, end, state, maximise, tol, messages, fresh, total, never))
        if damping > 0.0:
            for x in range(begin, end):
                if fresh[x] > -np.inf and messages[x] > -np.inf:
                    fresh[x] = (1.0 - damping) * fresh[x] + damping * messages[x]
            _normalise(fresh, begin, end, maximise)
        moved = 0.0
        for x in range(begin, end):
            if fresh[x] != messages[x]:
                moved = max(moved, abs(fresh[x] - messages[x]))
            at = state + x - begin
            if messages[x] == -np.inf:
                never[at] -= 1
            else:
                total[at] -= messages[x]
            if fresh[x] == -np.inf:
                never[at] += 1
            else:
                total[at] += fresh[x]
            messages[x] = fresh[x]
        if moved > 0.0:
            for other in range(link_starts[node[k]], link_starts[node[k] + 1]):
                if factor[links[other]] != f:
                    stale[factor[links[other]]] += moved
            if damping > 0.0:  # the rest of the way to the same answer
                stale[f] = max(stale[f], moved * damping / (1.0 - damping))
    return change


@kernel(called_by="kernels")
def _distance(f, maximise, tol, messages, fresh, total, never, layout):
    """How far the new messages of a table are from those in place."""
    _, first, node, _, node_starts, _, _, message_starts, _, _ = layout
    change = 0.0
    for k in range(first[f], first[f + 1]):
        begin, end, state = message_starts[k], message_starts[k + 1], node_starts[node[k]]
        change = max(change, _change(begin, end, state, maximise, tol, messages, fresh, total, never))
    return change


@kernel(called_by="kernels")
def _raise(tree, at, value):
    """Set a leaf of a tournament; each inner place holds the larger of the two below it."""
    at += tree.size // 2
    tree[at] = value
    at //= 2
    while at >= 1:
        tree[at] = max(tree[2 * at], tree[2 * at + 1])
        at //= 2


@kernel(called_by="python")
def propagate(messages, theta, maximise, at_once, damping, max_sweeps, tol, trace, layout):
    """Sweeps over the tables until no message changes by more than `tol`; `messages` is changed in place.

    `at_once` takes all messages of a sweep from those of the last; else tables are updated in order, forth and back.
    Returns the sweeps done and the last change; ``trace[s]`` is the change in sweep ``s``.

    A table that hears what it heard when it was last asked, to a tenth of `tol`, is passed over: in a large model most
    regions settle in a few sweeps and some take hundreds. The last sweep leaves out none.
    """
    first, node_starts = layout[1], layout[4]
    n_tables = first.size - 1
    total, never = np.zeros(node_starts[-1]), np.zeros(node_starts[-1], np.int64)
    fresh, cavity, top = np.zeros(messages.size), np.zeros(messages.size), np.zeros(messages.size)
    stale, asked = np.full(n_tables, np.inf), np.ones(n_tables, np.bool_)
    change, complete = np.inf, True
    for sweep in range(max_sweeps):
        change = 0.0
        left_out = 0
        if sweep % 16 == 0 or complete:  # sums anew, so that no rounding piles up
            _gather(messages, total, never, layout)
        for step in range(2 * n_tables if at_once else n_tables):
            f = step % n_tables
            if not at_once and sweep % 2 == 1:
                f = n_tables - 1 - step
            if step < n_tables:
                asked[f] = complete or stale[f] > 0.1 * tol
                if not asked[f]:
                    left_out += 1
                    continue
                stale[f] = 0.0
                _cavities(f, messages, total, never, cavity, layout)
                _answer(f, theta, maximise, cavity, fresh, top, layout)
            if asked[f] and (step >= n_tables or not at_once):
                # once a sweep is not the last, beliefs need not be compared
                least = tol if change <= tol else np.inf
                change = max(change, _apply(f, maximise, damping, least, messages, fresh, total, never, layout, stale))
        trace[sweep] = change
        if change <= tol and left_out == 0:
            return sweep + 1, change
        complete = change <= tol
    return max_sweeps, change


@kernel(called_by="python")
def propagate_residual(messages, theta, maximise, damping, max_sweeps, tol, trace, layout):
    """The same, always with the table whose messages would change most; as many updates as tables are a sweep."""
    _, first, node, factor, node_starts, link_starts, links, _, _, _ = layout
    n_tables = first.size - 1
    total, never = np.zeros(node_starts[-1]), np.zeros(node_starts[-1], np.int64)
    fresh, cavity, top = np.zeros(messages.size), np.zeros(messages.size), np.zeros(messages.size)
    stale = np.zeros(n_tables)
    half = 1
    while half < n_tables:
        half *= 2
    tree = np.full(2 * half, -1.0)
    chosen = -1  # every table
    for sweep in range(max_sweeps):
        for step in range(n_tables):
            if step == 0 and sweep % 16 == 0:  # sums and distances anew, so that no rounding piles up
                _gather(messages, total, never, layout)
                chosen = -1
            for k in range(0 if chosen < 0 else first[chosen], n_tables if chosen < 0 else first[chosen + 1]):
                begin = 0 if chosen < 0 else link_starts[node[k]]
                end = 1 if chosen < 0 else link_starts[node[k] + 1]
                for p in range(begin, end):
                    f = k if chosen < 0 else factor[links[p]]
                    _cavities(f, messages, total, never, cavity, layout)
                    _answer(f, theta, maximise, cavity, fresh, top, layout)
                    _raise(tree, f, _distance(f, maximise, tol, messages, fresh, total, never, layout))
            if tree[1] <= tol:
                break
            at = 1
            while at < half:
                at = 2 * at if tree[2 * at] >= tree[2 * at + 1] else 2 * at + 1
            chosen = at - half
            _apply(chosen, maximise, damping, np.inf, messages, fresh, total, never, layout, stale)
        trace[sweep] = max(tree[1], 0.0)
        if tree[1] <= tol:
            return sweep + 1, max(tree[1], 0.0)
    return max_sweeps, max(tree[1], 0.0)


@kernel(called_by="python")
def summarise(messages, theta, nodes, tables, layout):
    """Log beliefs of nodes and tables (not normalised), and the Bethe estimate of ``log Z`` with the sum of the
    absolute values of its terms:

    ``sum_f log sum f prod cavities + sum_i log sum prod messages - sum_links log sum message * cavity``.
    """
    table_starts, first, node, _, node_starts, _, _, message_starts, place_starts, places = layout
    never = np.zeros(node_starts[-1], np.int64)
    cavity = np.zeros(messages.size)
    _gather(messages, nodes, never, layout)
    value, size = 0.0, 0.0
    for f in range(table_starts.size - 1):
        _cavities(f, messages, nodes, never, cavity, layout)
        for e in range(table_starts[f + 1] - table_starts[f]):
            term = theta[table_starts[f] + e]
            for m in range(first[f], first[f + 1]):
                term += cavity[message_starts[m] + places[place_starts[m] + e]]
            tables[table_starts[f] + e] = term
        term = log_sum(tables, table_starts[f], table_starts[f + 1])
        value, size = value + term, size + abs(term)
    for k in range(node.size):  # sum of message * cavity: the sum of the belief of the node
        begin, end = node_starts[node[k]], node_starts[node[k] + 1]
        for x in range(begin, end):
            if never[x] > 0:
                nodes[x] = -np.inf
        term = log_sum(nodes, begin, end)
        value, size = value - term, size + abs(term)
    for i in range(node_starts.size - 1):
        term = log_sum(nodes, node_starts[i], node_starts[i + 1])
        value, size = value + term, size + abs(term)
    return value, size
