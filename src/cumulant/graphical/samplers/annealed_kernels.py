"""Annealing by Gibbs sweeps: one importance weight for each chain."""

import numpy as np

from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform

__all__ = ["anneal"]


@kernel
def anneal(first, seed, temperatures, cardinalities, fields, field_starts, theta, scope_starts, scopes, table_starts,
           of_starts, of_factors, of_strides, log_weights, states):  # fmt: skip
    """``log prod_k f_(k+1)(x_k) / f_k(x_k)`` for chains `first`, `first` + 1, ..., one for each of `log_weights`.

    ``f_k(x) = exp(sum_i fields_i(x_i) + temperatures[k] sum_f theta_f(x_f))``; ``x_0`` is drawn from ``f_0`` (whose
    temperature is 0) and ``x_k`` by a sweep over the variables in order that leaves ``f_k`` invariant. Factors of
    variable ``v`` are ``of_factors[of_starts[v] : of_starts[v + 1]]``, and its stride in their tables `of_strides`.
    `states` has the last state of each chain, which the weight belongs to.
    """
    n, n_factors = cardinalities.size, scope_starts.size - 1
    most = 1
    for v in range(n):
        most = max(most, cardinalities[v])
    at, score = np.empty(n_factors, np.int64), np.empty(most)
    for c in range(log_weights.size):
        total, state = 0.0, states[c]
        for k in range(temperatures.size):
            if k > 0:
                energy = 0.0
                for f in range(n_factors):
                    energy += theta[at[f]]
                total += (temperatures[k] - temperatures[k - 1]) * energy
                if total == -np.inf or k == temperatures.size - 1:  # after the last weight no move is needed
                    break
            for v in range(n):
                top, size = -np.inf, cardinalities[v]
                for a in range(size):
                    s = fields[field_starts[v] + a]
                    if k > 0:
                        for i in range(of_starts[v], of_starts[v + 1]):
                            s += temperatures[k] * theta[at[of_factors[i]] + (a - state[v]) * of_strides[i]]
                    score[a] = s
                    top = max(top, s)
                mass = 0.0
                for a in range(size):
                    score[a] = np.exp(score[a] - top)
                    mass += score[a]
                left, new = uniform(seed, first + c, k, v) * mass, 0
                while new < size - 1 and (left >= score[new] or score[new] == 0.0):
                    left -= score[new]
                    new += 1
                while score[new] == 0.0:  # rounding at the far end: the last state that is possible
                    new -= 1
                if k > 0:
                    for i in range(of_starts[v], of_starts[v + 1]):
                        at[of_factors[i]] += (new - state[v]) * of_strides[i]
                state[v] = new
            if k == 0:
                for f in range(n_factors):
                    place = 0
                    for j in range(scope_starts[f], scope_starts[f + 1]):
                        place = place * cardinalities[scopes[j]] + state[scopes[j]]
                    at[f] = table_starts[f] + place
        log_weights[c] = total
