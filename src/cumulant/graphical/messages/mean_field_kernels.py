"""Coordinate ascent of naive mean field, on tables of any arity; see `messages.Incidence` for the layout."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="python")
def ascend(q, logs, theta, max_sweeps, tol, trace, layout):
    """Update each node in turn to its best distribution given the others, until none moves by more than `tol`.

    `q` is changed in place, and `logs` to its coordinates: ``q_i`` is proportional to their exponentials. ``trace[s]``
    is the bound after sweep ``s``. Returns the sweeps done and the last change.

    The expectation of a table that forbids some states is minus infinity times the mass on them: a node first makes
    this mass as small as it can, and among the states that do, takes the usual update.
    """
    table_starts, first, node, factor, node_starts, link_starts, links, _, place_starts, places = layout
    n = node_starts.size - 1
    largest = 0
    for i in range(n):
        largest = max(largest, node_starts[i + 1] - node_starts[i])
    score, mass = np.zeros(largest), np.zeros(largest)
    change = np.inf
    for sweep in range(max_sweeps):
        change = 0.0
        for i in range(n):
            states = node_starts[i + 1] - node_starts[i]
            score[:states] = 0.0
            mass[:states] = 0.0
            for p in range(link_starts[i], link_starts[i + 1]):
                k = links[p]
                f = factor[k]
                for e in range(table_starts[f + 1] - table_starts[f]):
                    weight = 1.0
                    for m in range(first[f], first[f + 1]):
                        if m != k:
                            weight *= q[node_starts[node[m]] + places[place_starts[m] + e]]
                    if weight > 0.0:
                        value = theta[table_starts[f] + e]
                        x = places[place_starts[k] + e]
                        if value == -np.inf:
                            mass[x] += weight
                        else:
                            score[x] += weight * value
            least = mass[0]
            for x in range(1, states):
                least = min(least, mass[x])
            limit = least * (1.0 + 1e-9)
            top = -np.inf
            for x in range(states):
                if mass[x] <= limit:
                    top = max(top, score[x])
            total = 0.0
            for x in range(states):
                logs[node_starts[i] + x] = score[x] if mass[x] <= limit else -np.inf
                score[x] = np.exp(score[x] - top) if mass[x] <= limit else 0.0
                total += score[x]
            for x in range(states):
                fresh = score[x] / total
                change = max(change, abs(fresh - q[node_starts[i] + x]))
                q[node_starts[i] + x] = fresh
        trace[sweep] = free_energy(q, theta, layout)[0]
        if change <= tol:
            return sweep + 1, change
    return max_sweeps, change


@kernel
def free_energy(q, theta, layout):
    """``sum_f E_q theta_f + sum_i H(q_i)``, and the sum of the absolute values of its terms."""
    table_starts, first, node, _, node_starts, _, _, _, place_starts, places = layout
    value, size = 0.0, 0.0
    for f in range(table_starts.size - 1):
        for e in range(table_starts[f + 1] - table_starts[f]):
            weight = 1.0
            for m in range(first[f], first[f + 1]):
                weight *= q[node_starts[node[m]] + places[place_starts[m] + e]]
            if weight > 0.0:
                value += weight * theta[table_starts[f] + e]
                size += abs(weight * theta[table_starts[f] + e])
            elif theta[table_starts[f] + e] == -np.inf:  # a product that underflows is not zero
                possible = True
                for m in range(first[f], first[f + 1]):
                    possible = possible and q[node_starts[node[m]] + places[place_starts[m] + e]] > 0.0
                if possible:
                    return -np.inf, np.inf
    for p in q:
        if p > 0.0:
            value -= p * np.log(p)
            size += abs(p * np.log(p))
    return value, size
