"""Compiled colouring of graphs given by their neighbours."""

import numpy as np

from cumulant.kernels import kernel


@kernel(called_by="python")
def two_colours(indptr, neighbours):
    """Colours 0 and 1 by search in breadth, each component from its first vertex; colour -1 first where there is an odd
    cycle.
    """
    n = indptr.size - 1
    colour, queue = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for root in range(n):
        if colour[root] >= 0:
            continue
        colour[root] = 0
        queue[0], head, tail = root, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for e in range(indptr[i], indptr[i + 1]):
                j = neighbours[e]
                if colour[j] < 0:
                    colour[j] = 1 - colour[i]
                    queue[tail] = j
                    tail += 1
                elif colour[j] == colour[i]:
                    colour[0] = -1
                    return colour
    return colour


@kernel(called_by="python")
def greedy(order, indptr, neighbours):
    """Each vertex, in `order`, gets the smallest colour that no neighbour has."""
    n = indptr.size - 1
    colour, taken = np.full(n, -1, np.int64), np.full(n + 1, -1, np.int64)
    for i in order:
        for e in range(indptr[i], indptr[i + 1]):
            if colour[neighbours[e]] >= 0:
                taken[colour[neighbours[e]]] = i
        k = 0
        while taken[k] == i:
            k += 1
        colour[i] = k
    return colour
