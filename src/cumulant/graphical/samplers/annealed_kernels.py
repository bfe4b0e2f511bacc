"""Annealing by Gibbs sweeps: one importance weight for each chain."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import draw, largest
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel(called_by="python")
def anneal(first, seed, temperatures, fields, field_starts, t, log_weights, states):
    """``log prod_k f_(k+1)(x_k) / f_k(x_k)`` for chains `first`, `first` + 1, ..., one for each of `log_weights`.

    ``f_k(x) = exp(sum_i fields_i(x_i) + temperatures[k] sum_f theta_f(x_f))``, the tables ``theta`` in the
    `TableArrays` `t`; ``x_0`` is drawn from ``f_0`` (whose temperature is 0) and ``x_k`` by a sweep over the variables
    in order that leaves ``f_k`` invariant. `states` has the last state of each chain, which the weight belongs to.
    """
    n, n_factors = t.sizes.size, t.origin.size
    at, score = np.empty(n_factors, np.int64), np.empty(largest(t.sizes))
    for c in range(log_weights.size):
        total, state = 0.0, states[c]
        for k in range(temperatures.size):
            if k > 0:
                energy = 0.0
                for f in range(n_factors):
                    energy += t.tables[at[f]]
                total += (temperatures[k] - temperatures[k - 1]) * energy
                if total == -np.inf or k == temperatures.size - 1:  # after the last weight no move is needed
                    break
            for v in range(n):
                for a in range(t.sizes[v]):
                    s = fields[field_starts[v] + a]
                    if k > 0:
                        for i in range(t.starts[v], t.starts[v + 1]):
                            s += temperatures[k] * t.tables[at[t.factors[i]] + (a - state[v]) * t.strides[i]]
                    score[a] = s
                new = draw(score, t.sizes[v], uniform(seed, first + c, k, v))
                if k > 0:
                    for i in range(t.starts[v], t.starts[v + 1]):
                        at[t.factors[i]] += (new - state[v]) * t.strides[i]
                state[v] = new
            if k == 0:
                for f in range(n_factors):
                    at[f] = t.origin[f]
                    for j in range(t.scope_starts[f], t.scope_starts[f + 1]):
                        at[f] += t.scope_strides[j] * state[t.scopes[j]]
        log_weights[c] = total
