"""Conditional likelihoods of models with any tables: of each variable given the rest, or of each joined pair."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.learning.conditional_likelihood_kernels import conditional_likelihood
from cumulant.graphical.learning.pseudo_likelihood import Objective
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.threads import in_parts

__all__ = ["block_likelihood"]


def block_likelihood(family: DiscreteFamily, x: np.ndarray, blocks: Iterable[Sequence[int]]) -> Objective:
    """``theta -> -mean over data of sum_b log p(x_b | rest)`` and its gradient, for blocks ``b`` of variables.

    Blocks of one variable make the pseudo-likelihood (Besag 1975), pairs a composite likelihood (Lindsay 1988). Convex:
    a multinomial logistic regression for each block, with shared tables, which may be of any order. Observations that
    occur more than once are taken once, with their number as a weight.

    Examples
    --------
    >>> from cumulant.graphical import Potts
    >>> objective = block_likelihood(Potts([(0, 1)], 0.0, n_states=3).family, np.array([[0, 0], [1, 2]]), [[0], [1]])
    >>> value, gradient = objective(np.zeros(7))
    >>> round(float(value / np.log(3)), 12)                           # every state of two variables is as likely
    2.0
    """
    structure = family.structure
    states, counts = np.unique(family.states(x), axis=0, return_counts=True)
    states, weights = np.ascontiguousarray(states), counts / counts.sum()
    arrays = TableArrays.of(structure, np.zeros(int(structure.table_starts[-1])))
    plan = Blocks.of(arrays, [tuple(map(int, block)) for block in blocks])

    def value_and_gradient(theta):
        filled = arrays._replace(tables=np.ascontiguousarray(family.log_tables(theta)))

        def work(first, last):
            gradient = np.zeros(filled.tables.size)
            return conditional_likelihood(states[first:last], weights[first:last], filled, plan, gradient), gradient

        parts = in_parts(work, len(states), None)
        gradient = np.sum([part[1] for part in parts], axis=0)
        return float(sum(part[0] for part in parts)), family.mean_of(gradient)

    return value_and_gradient


class Blocks(NamedTuple):
    """Blocks of variables as flat arrays.

    Those of block ``b`` are ``members[starts[b] : starts[b + 1]]``, and its ``sizes[b]`` joint states are numbered
    ``sum strides * x``. Its factors are ``factors[factor_starts[b] : factor_starts[b + 1]]``, and
    ``offsets[offset_starts[a] + s]`` is how far the joint state ``s`` is from 0 in the table of the ``a``-th of them.
    """

    starts: np.ndarray
    members: np.ndarray
    strides: np.ndarray
    sizes: np.ndarray
    factor_starts: np.ndarray
    factors: np.ndarray
    offset_starts: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, arrays: TableArrays, blocks: list[tuple[int, ...]]) -> "Blocks":
        """From lists of variables."""
        starts, members, strides, sizes = [0], [], [], []
        factor_starts, factors, offset_starts, offsets = [0], [], [], []
        for block in blocks:
            shape = arrays.sizes[list(block)]
            joint = np.array(list(product(*map(range, shape))), dtype=np.int64).reshape(-1, len(block))
            stride_of: dict[int, np.ndarray] = {}
            for k, v in enumerate(block):
                here = slice(arrays.starts[v], arrays.starts[v + 1])
                for f, stride in zip(arrays.factors[here].tolist(), arrays.strides[here].tolist(), strict=True):
                    stride_of.setdefault(f, np.zeros(len(block), np.int64))[k] = stride
            for f, each in stride_of.items():
                factors.append(f)
                offset_starts.append(len(offsets))
                offsets += (joint @ each).tolist()
            members += block
            strides += [*np.cumprod(shape[:0:-1])[::-1], 1]
            sizes.append(len(joint))
            starts.append(len(members))
            factor_starts.append(len(factors))
        parts = (starts, members, strides, sizes, factor_starts, factors, offset_starts, offsets)
        return cls(*(np.array(part, np.int64) for part in parts))
