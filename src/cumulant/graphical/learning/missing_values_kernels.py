"""Compiled conditional likelihoods of the values that are known, summed over those that are missing."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp


@kernel
def marginal_conditionals(states, weights, t, limit, gradient):
    """``-sum_d weight_d sum_i log p(x_i | the other known values)`` over known ``x_i``, by the tables of `t`, and the
    weight of the conditionals that were left out because they have more than `limit` joint states; the derivative by
    the tables is added to `gradient`. A missing state is -1.
    """
    n = t.sizes.size
    members, mark = np.empty(n, np.int64), np.full(n, -1)
    touched, factor_mark = np.empty(t.origin.size, np.int64), np.full(t.origin.size, -1)
    scores, x = np.empty(limit), np.empty(n, np.int64)
    value, left_out, stamp = 0.0, 0.0, 0
    for d in range(states.shape[0]):
        x[:] = states[d]
        for i in range(n):
            if states[d, i] < 0:
                continue
            # The variable, and the missing ones that can be reached from it through missing ones.
            stamp += 1
            members[0], mark[i], count, joint, k, used = i, stamp, 1, t.sizes[i], 0, 0
            while k < count and joint <= limit:
                for a in range(t.starts[members[k]], t.starts[members[k] + 1]):
                    f = t.factors[a]
                    if factor_mark[f] == stamp:
                        continue
                    factor_mark[f] = stamp
                    touched[used] = f
                    used += 1
                    for s in range(t.scope_starts[f], t.scope_starts[f + 1]):
                        u = t.scopes[s]
                        if states[d, u] < 0 and mark[u] != stamp and joint <= limit:
                            mark[u] = stamp
                            members[count] = u
                            count += 1
                            joint *= t.sizes[u]
                k += 1
            if joint > limit:
                left_out += weights[d]
                continue
            each, own = joint // t.sizes[i], states[d, i]
            top = -np.inf
            for s in range(joint):
                _set_states(x, members, count, t.sizes, s)
                score = 0.0
                for e in range(used):
                    score += t.tables[_entry(t, touched[e], x)]
                scores[s] = score
                top = max(top, score)
            total, mine = 0.0, 0.0
            for s in range(joint):
                scores[s] = fast_exp(scores[s] - top)
                total += scores[s]
                if s // each == own:
                    mine += scores[s]
            value += weights[d] * (np.log(total) - np.log(mine))
            for s in range(joint):
                share = scores[s] / total - (scores[s] / mine if s // each == own else 0.0)
                _set_states(x, members, count, t.sizes, s)
                for e in range(used):
                    gradient[_entry(t, touched[e], x)] += weights[d] * share
            x[i] = own
    return value, left_out


@kernel(called_by="kernels")
def _set_states(x, members, count, sizes, number):
    """The joint state of this number, the first member slowest."""
    for k in range(count - 1, -1, -1):
        v = members[k]
        x[v] = number % sizes[v]
        number //= sizes[v]


@kernel(called_by="kernels")
def _entry(t, f, x):
    at = t.origin[f]
    for k in range(t.scope_starts[f], t.scope_starts[f + 1]):
        at += t.scope_strides[k] * x[t.scopes[k]]
    return at
