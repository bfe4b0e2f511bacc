"""Searches for a possible state: backtracking with propagation, and local repair."""

import numpy as np

from cumulant.graphical.exact.support_kernels import revise_all
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel
def backtrack(
    sizes, first, scope_starts, scopes, table_starts, allowed, link_starts, links, factor,
    possible, counts, trail, removed, queue, queued, waiting, digits, seen,
    score, weights, max_conflicts, max_work,
):  # fmt: skip
    """Give variables values one after the other, propagating each, and take back what ends in a conflict.

    The next variable is that with the fewest states for its weight, which counts the conflicts of its tables
    (Boussemart and others 2004); its value is the one of the largest `score`. Returns 1 where all variables have one
    possible state, 0 where a limit was met, and -1 where every way has been refuted: no configuration is possible.
    """
    n, base, level, conflicts, work = sizes.size, removed, 0, 0, 0
    marks, decisions, owners = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    while True:
        chosen, least = -1, np.inf
        for v in range(n):
            if counts[v] > 1 and counts[v] < least * weights[v]:
                chosen, least = v, counts[v] / weights[v]
        work += n
        if chosen < 0:
            return 1
        best, most = -1, -np.inf
        for state in range(first[chosen], first[chosen + 1]):
            if possible[state] and (best < 0 or score[state] > most):
                best, most = state, score[state]
        marks[level], decisions[level], owners[level] = removed, best, chosen
        level += 1
        for state in range(first[chosen], first[chosen + 1]):
            if possible[state] and state != best:
                possible[state] = False
                trail[removed] = state
                removed += 1
        counts[chosen] = 1
        while True:
            waiting = 0
            for p in range(link_starts[chosen], link_starts[chosen + 1]):
                g = factor[links[p]]
                if not queued[g]:
                    queued[g] = True
                    queue[waiting] = g
                    waiting += 1
            f, removed, visits = revise_all(
                sizes, first, scope_starts, scopes, table_starts, allowed, link_starts, links, factor,
                possible, counts, trail, removed, queue, queued, waiting, digits, seen,
            )  # fmt: skip
            work += visits
            if f >= 0:
                if level == 0:
                    return -1
                conflicts += 1
                for k in range(scope_starts[f], scope_starts[f + 1]):
                    weights[scopes[k]] += 1.0
            ended = work > max_work or conflicts > max_conflicts
            if f < 0 and not ended:
                break
            level = 0 if ended else level - 1
            mark = base if ended else marks[level]
            while removed > mark:
                removed -= 1
                state = trail[removed]
                possible[state] = True
                counts[np.searchsorted(first, state, side="right") - 1] += 1
            if ended:
                return 0
            state, chosen = decisions[level], owners[level]
            possible[state] = False
            counts[chosen] -= 1
            trail[removed] = state
            removed += 1


@kernel
def repair(
    sizes, first, scope_starts, scopes, table_starts, allowed, link_starts, links, factor, states, repairs, noise, seed
):
    """Local repair of `states`, in place: one of the tables that they violate gives one of its variables another value,
    that which violates the fewest others, or now and then a random one. Returns how many repairs were left when no
    table was violated any more, or -1.
    """
    n_factors = scope_starts.size - 1
    strides, at = np.zeros(scopes.size, np.int64), table_starts[:-1].copy()
    for f in range(n_factors):
        stride = 1
        for k in range(scope_starts[f + 1] - 1, scope_starts[f] - 1, -1):
            strides[k] = stride
            at[f] += stride * states[scopes[k]]
            stride *= sizes[scopes[k]]
    violated, place, count = np.zeros(n_factors, np.int64), np.full(n_factors, -1), 0
    for f in range(n_factors):
        if not allowed[at[f]]:
            violated[count], place[f] = f, count
            count += 1
    for step in range(repairs):
        if count == 0:
            return repairs - step
        f = violated[int(uniform(seed, 0, step, 0) * count)]
        greedy, pick = uniform(seed, 0, step, 1) >= noise, uniform(seed, 0, step, 2)
        least, ties, options, new_variable, new_state = n_factors + 1, 0, 0, -1, 0
        for again in range(2):  # the first time to count, the second to choose
            target = int(pick * (ties if greedy or least == 0 else options))
            ties_so_far, options_so_far = 0, 0
            for k in range(scope_starts[f], scope_starts[f + 1]):
                v = scopes[k]
                for a in range(sizes[v]):
                    if a == states[v]:
                        continue
                    breaks = 0
                    for p in range(link_starts[v], link_starts[v + 1]):
                        g = factor[links[p]]
                        if allowed[at[g]] and not allowed[at[g] + (a - states[v]) * strides[links[p]]]:
                            breaks += 1
                    if again == 0:
                        options += 1
                        if breaks < least:
                            least, ties = breaks, 0
                        ties += breaks == least
                    elif greedy or least == 0:
                        if breaks == least:
                            if ties_so_far == target:
                                new_variable, new_state = v, a
                            ties_so_far += 1
                    else:
                        if options_so_far == target:
                            new_variable, new_state = v, a
                        options_so_far += 1
        if options == 0:
            return -1
        for p in range(link_starts[new_variable], link_starts[new_variable + 1]):
            k = links[p]
            g = factor[k]
            was = allowed[at[g]]
            at[g] += (new_state - states[new_variable]) * strides[k]
            if was and not allowed[at[g]]:
                violated[count], place[g] = g, count
                count += 1
            elif not was and allowed[at[g]]:
                count -= 1
                last = violated[count]
                violated[place[g]], place[last] = last, place[g]
                place[g] = -1
        states[new_variable] = new_state
    return 0 if count == 0 else -1
