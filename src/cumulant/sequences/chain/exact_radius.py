"""The squared radii themselves, by enumeration where there is no closed form."""

import itertools

import numpy as np

from cumulant import checks
from cumulant.errors import TooWide
from cumulant.sequences.chain.problem import ChainProblem
from cumulant.sequences.chain.radius import feature_radii

__all__ = ["exact_radii"]


def exact_radii(problem: ChainProblem, max_labellings: int = 100_000) -> np.ndarray:
    """``R_i = max_y |F(x_i, y_i) - F(x_i, y)|^2`` of every sequence, where `feature_radii` has bounds.

    The closed form is exact for features of one sign where some label is absent from ``y_i``. All other labellings are
    enumerated; a sequence with more than `max_labellings` of them is refused (`TooWide`): use `feature_radii`.

    Examples
    --------
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], offsets=[0, 2, 3], labels=[1, 0, 1])
    >>> exact_radii(ChainProblem(data, n_labels=2))
    array([10., 10.])
    """
    checks.whole("max_labellings", max_labellings)
    out, k, features, offsets = feature_radii(problem), problem.n_labels, problem.data.features, problem.data.offsets
    signs = np.zeros((2, problem.n_attributes), dtype=bool)
    signs[0, features.indices[features.data < 0]] = True
    signs[1, features.indices[features.data > 0]] = True
    one_sign = not signs.all(axis=0).any()
    for i, (first, last) in enumerate(itertools.pairwise(offsets)):
        labels = problem.labels[first:last]
        if k == 1 or (one_sign and len(np.unique(labels)) < k):
            continue
        if k ** (last - first) > max_labellings:
            raise TooWide(
                f"sequence {i} has {k}^{last - first} labellings, more than max_labellings={max_labellings}: "
                "feature_radii bounds its radius"
            )
        out[i] = _enumerated(problem, features[first:last].toarray(), labels)
    return out


def _enumerated(problem: ChainProblem, x: np.ndarray, labels: np.ndarray) -> float:
    k, length = problem.n_labels, len(labels)
    if problem.bias:
        ends = np.zeros((length, 2))
        ends[0, 0] = ends[-1, 1] = 1.0
        x = np.column_stack([x, np.ones(length), ends])
    products, own = x @ x.T, np.eye(k)[labels]
    moves = own[:-1].T @ own[1:]
    best = 0.0
    for labelling in itertools.product(range(k), repeat=length):
        other = np.eye(k)[list(labelling)]
        apart = own - other  # of nodes: |sum_t x_t (e_{y_t} - e_{z_t})|^2 = sum_{st} <x_s, x_t> <apart_s, apart_t>
        nodes = np.sum(products * (apart @ apart.T))
        best = max(best, float(nodes + np.sum((moves - other[:-1].T @ other[1:]) ** 2)))
    return best
