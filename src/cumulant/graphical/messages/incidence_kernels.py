"""Tables and the variables in them as flat arrays; sums of exponentials."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="python")
def places_of_scopes(cardinalities, first, scopes, table_starts, place_starts, places):
    """The state of each variable of a scope at each entry of the table, the last variable running fastest."""
    for f in range(first.size - 1):
        size = table_starts[f + 1] - table_starts[f]
        stride = 1
        for k in range(first[f + 1] - 1, first[f] - 1, -1):
            states = cardinalities[scopes[k]]
            begin = place_starts[k]
            for e in range(size):
                places[begin + e] = (e // stride) % states
            stride *= states


@kernel(called_by="kernels")
def log_sum(values, begin, end):
    """``log sum exp`` over a piece of an array; -inf where all of it is."""
    top = -np.inf
    for x in range(begin, end):
        top = max(top, values[x])
    if top == -np.inf:
        return top
    total = 0.0
    for x in range(begin, end):
        total += np.exp(values[x] - top)
    return top + np.log(total)
