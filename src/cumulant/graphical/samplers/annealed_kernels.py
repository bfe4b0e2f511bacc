"""Annealing by Gibbs sweeps: one importance weight for each chain, or one temperature for many particles."""

import numpy as np

from cumulant.graphical.samplers.gibbs_kernels import draw, largest
from cumulant.kernels import kernel
from cumulant.randomness_kernels import uniform


@kernel(called_by="kernels")
def _place(state, t, at):
    """Where each table has the state; the sum of what it says there."""
    energy = 0.0
    for f in range(t.origin.size):
        at[f] = t.origin[f]
        for j in range(t.scope_starts[f], t.scope_starts[f + 1]):
            at[f] += t.scope_strides[j] * state[t.scopes[j]]
        energy += t.tables[at[f]]
    return energy


@kernel(called_by="kernels")
def _sweep(state, at, score, temperature, fields, field_starts, t, seed, chain, sweep):
    """New states of all variables in order, at a temperature; of independent ones at 0, where `at` is not used."""
    for v in range(t.sizes.size):
        for a in range(t.sizes[v]):
            s = fields[field_starts[v] + a]
            if temperature > 0.0:
                for i in range(t.starts[v], t.starts[v + 1]):
                    s += temperature * t.tables[at[t.factors[i]] + (a - state[v]) * t.strides[i]]
            score[a] = s
        new = draw(score, t.sizes[v], uniform(seed, chain, sweep, v))
        if temperature > 0.0:
            for i in range(t.starts[v], t.starts[v + 1]):
                at[t.factors[i]] += (new - state[v]) * t.strides[i]
        state[v] = new


@kernel(called_by="python")
def anneal(first, seed, temperatures, fields, field_starts, t, log_weights, states):
    """``log prod_k f_(k+1)(x_k) / f_k(x_k)`` for chains `first`, `first` + 1, ..., one for each of `log_weights`.

    ``f_k(x) = exp(sum_i fields_i(x_i) + temperatures[k] sum_f theta_f(x_f))``, the tables ``theta`` in the
    `TableArrays` `t`; ``x_0`` is drawn from ``f_0`` (whose temperature is 0) and ``x_k`` by a sweep over the variables
    in order that leaves ``f_k`` invariant. `states` has the last state of each chain, which the weight belongs to.
    """
    at, score = np.empty(t.origin.size, np.int64), np.empty(largest(t.sizes))
    for c in range(log_weights.size):
        total, state = 0.0, states[c]
        for k in range(temperatures.size):
            if k > 0:
                total += (temperatures[k] - temperatures[k - 1]) * _place(state, t, at)
                if total == -np.inf or k == temperatures.size - 1:  # after the last weight no move is needed
                    break
            _sweep(state, at, score, temperatures[k], fields, field_starts, t, seed, first + c, k)
        log_weights[c] = total


@kernel(called_by="python")
def tempered_sweeps(first, seed, begin, sweeps, temperature, fields, field_starts, t, states):
    """Sweeps numbered from `begin` of particles at one temperature."""
    at, score = np.empty(t.origin.size, np.int64), np.empty(largest(t.sizes))
    for c in range(states.shape[0]):
        if temperature > 0.0:
            _place(states[c], t, at)
        for k in range(sweeps):
            _sweep(states[c], at, score, temperature, fields, field_starts, t, seed, first + c, begin + k)


@kernel(called_by="python")
def add_tables(t, states, out):
    """Add ``sum_f theta_f(x_f)`` of each state to `out`."""
    at = np.empty(t.origin.size, np.int64)
    for c in range(states.shape[0]):
        out[c] += _place(states[c], t, at)
