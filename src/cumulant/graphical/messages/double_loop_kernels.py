"""The convex inner problem of the double loop, by exact coordinate ascent on its dual.

Tables are the outer regions and nodes the inner ones; see `messages.Incidence` for the layout. A link between them
carries a multiplier for each state of the node, and `pull` is what the linearised entropies add.
"""

import numpy as np

from cumulant.kernels import kernel

__all__ = ["free_energy_of_regions", "solve_inner"]


@kernel
def solve_inner(log_q, multipliers, pull, theta, convex, max_sweeps, tol, layout):
    """Make outer regions agree on the inner ones: for each node in turn ``(n + convex) log q = sum log b`` over the
    marginals ``b`` of its ``n`` tables, and multipliers that give each of them ``q``.

    `log_q` and `multipliers` are changed in place. Returns the sweeps done and the last change of a probability,
    which is -1 where every state is impossible.
    """
    table_starts, first, node, factor, node_starts, link_starts, links, message_starts, place_starts, places = layout
    n = node_starts.size - 1
    marginal, top = np.zeros(multipliers.size), np.zeros(multipliers.size)
    change = np.inf
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(n):
            begin, states = node_starts[i], node_starts[i + 1] - node_starts[i]
            degree = link_starts[i + 1] - link_starts[i]
            if degree == 0:
                continue
            for p in range(link_starts[i], link_starts[i + 1]):
                k = links[p]
                f, own = factor[k], message_starts[k]
                marginal[own : own + states] = 0.0
                top[own : own + states] = -np.inf
                for again in range(2):
                    for e in range(table_starts[f + 1] - table_starts[f]):
                        value = theta[table_starts[f] + e]
                        for m in range(first[f], first[f + 1]):
                            if m != k:
                                x = places[place_starts[m] + e]
                                value += multipliers[message_starts[m] + x] + pull[node_starts[node[m]] + x]
                        x = own + places[place_starts[k] + e]
                        if again == 0:
                            top[x] = max(top[x], value)
                        elif value > -np.inf:
                            marginal[x] += np.exp(value - top[x])
                for x in range(states):
                    if top[own + x] > -np.inf:
                        marginal[own + x] = top[own + x] + np.log(marginal[own + x]) + pull[begin + x]
                    else:
                        marginal[own + x] = -np.inf
            highest = -np.inf
            for x in range(states):
                value = 0.0
                for p in range(link_starts[i], link_starts[i + 1]):
                    value += marginal[message_starts[links[p]] + x]
                top[x] = value / (degree + convex[i])  # its use as the maximum is over
                highest = max(highest, top[x])
            if highest == -np.inf:
                return sweep + 1, -1.0  # every state is impossible
            total = 0.0
            for x in range(states):
                total += np.exp(top[x] - highest)
            for x in range(states):
                fresh = top[x] - highest - np.log(total)
                change = max(change, abs(np.exp(fresh) - np.exp(log_q[begin + x])))
                log_q[begin + x] = fresh
                for p in range(link_starts[i], link_starts[i + 1]):
                    at = message_starts[links[p]] + x
                    # 0 / 0: the table forbids the state already, and any multiplier does
                    multipliers[at] = 0.0 if marginal[at] == -np.inf else fresh - marginal[at]
        if change <= tol:
            return sweep + 1, change
    return max_sweeps, change


@kernel
def free_energy_of_regions(log_q, multipliers, pull, theta, counting, beliefs, layout):
    """``sum_R c_R (U_R - H_R)`` with outer regions counted once; `beliefs` are set to their distributions."""
    table_starts, first, node, _, node_starts, _, _, message_starts, place_starts, places = layout
    value = 0.0
    for f in range(table_starts.size - 1):
        top = -np.inf
        for e in range(table_starts[f], table_starts[f + 1]):
            term = theta[e]
            for m in range(first[f], first[f + 1]):
                x = places[place_starts[m] + e - table_starts[f]]
                term += multipliers[message_starts[m] + x] + pull[node_starts[node[m]] + x]
            beliefs[e] = term
            top = max(top, term)
        total = 0.0
        for e in range(table_starts[f], table_starts[f + 1]):
            total += np.exp(beliefs[e] - top)
        for e in range(table_starts[f], table_starts[f + 1]):
            log_p = beliefs[e] - top - np.log(total)
            beliefs[e] = np.exp(log_p)
            if beliefs[e] > 0.0:
                value += beliefs[e] * (log_p - theta[e])
    for i in range(node_starts.size - 1):
        for x in range(node_starts[i], node_starts[i + 1]):
            p = np.exp(log_q[x])
            if p > 0.0:
                value += counting[i] * p * log_q[x]
    return value
