"""Tables and the variables in them as flat arrays: which state of a variable each entry of a table belongs to."""

from cumulant.kernels import kernel

__all__ = ["places_of_scopes"]


@kernel
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
