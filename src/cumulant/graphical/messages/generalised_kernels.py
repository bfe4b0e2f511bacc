"""Messages between outer and inner regions, in logarithms, and their free energy; see `messages.Incidence`.

The log table of each outer region, with all of its multipliers in it, is kept, so that a marginal is one pass over it.
"""

import numpy as np

from cumulant.graphical.messages.incidence_kernels import log_sum
from cumulant.kernels import kernel


@kernel(called_by="kernels")
def _build(f, multipliers, theta, tables, layout):
    """The log table of an outer region: its factors and the multipliers of its inner regions."""
    table_starts, first, _, _, _, _, _, message_starts, place_starts, places = layout
    for e in range(table_starts[f + 1] - table_starts[f]):
        value = theta[table_starts[f] + e]
        for m in range(first[f], first[f + 1]):
            value += multipliers[message_starts[m] + places[place_starts[m] + e]]
        tables[table_starts[f] + e] = value


@kernel(called_by="kernels")
def _marginal(k, multipliers, tables, marginal, work, layout):
    """What its outer region says of an inner one without the multiplier of their link: ``log sum exp`` over the table.

    A multiplier of minus infinity was set because some region forbids the state: it stays forbidden.
    """
    table_starts, _, _, factor, _, _, _, message_starts, place_starts, places = layout
    begin, end, f = message_starts[k], message_starts[k + 1], factor[k]
    for x in range(begin, end):
        marginal[x] = -np.inf
        work[x] = 0.0
    size = table_starts[f + 1] - table_starts[f]
    for e in range(size):
        x = begin + places[place_starts[k] + e]
        marginal[x] = max(marginal[x], tables[table_starts[f] + e])
    for e in range(size):
        x = begin + places[place_starts[k] + e]
        if marginal[x] > -np.inf:
            work[x] += np.exp(tables[table_starts[f] + e] - marginal[x])
    for x in range(begin, end):
        if marginal[x] > -np.inf:
            marginal[x] += np.log(work[x]) - multipliers[x]


@kernel(called_by="kernels")
def _disagreement(own, begin, states, marginal, multipliers, work, q):
    """How far the belief of an outer region as it was, its multiplier still in it, is from the new ``q``."""
    for x in range(own, own + states):
        work[x] = marginal[x] + multipliers[x] if marginal[x] > -np.inf else -np.inf
    total, distance = log_sum(work, own, own + states), 0.0
    for x in range(states):
        distance = max(distance, abs(np.exp(work[own + x] - total) - q[begin + x]))
    return distance


@kernel(called_by="python")
def pass_messages(log_q, multipliers, theta, counting, damping, moves, max_sweeps, tol, trace, layout):
    """Sweeps over the inner regions, forth and back: ``(n + c) log q = sum log b`` over the marginals ``b`` that the
    ``n`` outer regions have without their multipliers, which then become ``log q - log b``.

    `log_q` and `multipliers` are changed in place; ``trace[s]`` is the largest distance in sweep ``s`` between a
    marginal of an outer region, as it was found, and the new ``q``, or where `moves` between the last ``q`` and the new
    one, and then all sweeps go forth. Returns the sweeps done, -1 where every state is impossible.
    """
    table_starts, _, _, factor, node_starts, link_starts, links, message_starts, place_starts, places = layout
    n = node_starts.size - 1
    marginal, work = np.zeros(multipliers.size), np.zeros(multipliers.size)
    tables, q = np.zeros(theta.size), np.exp(log_q)
    for sweep in range(max_sweeps):
        change = 0.0
        for f in range(table_starts.size - 1):  # anew each time: rounding does not pile up
            _build(f, multipliers, theta, tables, layout)
        for step in range(n):
            i = step if moves or sweep % 2 == 0 else n - 1 - step
            begin, states = node_starts[i], node_starts[i + 1] - node_starts[i]
            degree = link_starts[i + 1] - link_starts[i]
            if degree == 0:
                continue
            for p in range(link_starts[i], link_starts[i + 1]):
                _marginal(links[p], multipliers, tables, marginal, work, layout)
            for x in range(begin, begin + states):
                log_q[x] = 0.0
                for p in range(link_starts[i], link_starts[i + 1]):
                    log_q[x] += marginal[message_starts[links[p]] + x - begin]
                log_q[x] /= degree + counting[i]
            total = log_sum(log_q, begin, begin + states)
            if total == -np.inf:
                return -1
            for x in range(states):
                log_q[begin + x] -= total
                last, q[begin + x] = q[begin + x], np.exp(log_q[begin + x])
                if moves:
                    change = max(change, abs(q[begin + x] - last))
            for p in range(link_starts[i], link_starts[i + 1]):
                k = links[p]
                own = message_starts[k]
                if not moves:
                    change = max(change, _disagreement(own, begin, states, marginal, multipliers, work, q))
                for x in range(states):
                    if marginal[own + x] == -np.inf:  # 0 / 0: the table forbids the state, and any multiplier does
                        work[own + x] = 0.0
                        continue
                    old, new = multipliers[own + x], log_q[begin + x] - marginal[own + x]
                    if damping > 0.0 and new > -np.inf:
                        new = (1.0 - damping) * new + damping * old
                    work[own + x] = new - old
                    multipliers[own + x] = new
                f = factor[k]
                for e in range(table_starts[f + 1] - table_starts[f]):
                    tables[table_starts[f] + e] += work[own + places[place_starts[k] + e]]
        trace[sweep] = change
        if change <= tol:
            return sweep + 1
    return max_sweeps


@kernel(called_by="python")
def free_energy_of_regions(log_q, multipliers, tilted, theta, counting, beliefs, layout):
    """``sum_R c_R (U_R - H_R)`` with outer regions counted once and energies by `theta`; `beliefs` are set to their
    distributions, which `tilted` and the multipliers give.
    """
    table_starts, node_starts = layout[0], layout[4]
    value = 0.0
    for f in range(table_starts.size - 1):
        _build(f, multipliers, tilted, beliefs, layout)
        total = log_sum(beliefs, table_starts[f], table_starts[f + 1])
        if total == -np.inf:
            return np.inf  # every state is impossible
        for e in range(table_starts[f], table_starts[f + 1]):
            log_p = beliefs[e] - total
            beliefs[e] = np.exp(log_p)
            if beliefs[e] > 0.0:
                value += beliefs[e] * (log_p - theta[e])
    for i in range(node_starts.size - 1):
        for x in range(node_starts[i], node_starts[i + 1]):
            p = np.exp(log_q[x])
            if p > 0.0:
                value += counting[i] * p * log_q[x]
    return value
