"""How far the features of other labellings can be from those of the labels: the radii that step sizes are made of."""

from typing import Any

import numpy as np
from scipy import sparse

from cumulant import checks
from cumulant.sequences.chain.problem import ChainProblem

__all__ = ["attribute_radii", "feature_radii"]


def feature_radii(problem: ChainProblem) -> np.ndarray:
    """Upper bounds of the squared radii ``R_i = max_y |F(x_i, y_i) - F(x_i, y)|^2``, one for each sequence.

    For features that are not negative, with ``s = sum_t x_t`` and ``T`` the length of the sequence,

        ``|F(x, y_i)|^2 + |s|^2 + T^2 + 2 + (T - 1)^2``

    (without the biases, no ``T^2 + 2``). Where some label does not occur in ``y_i``, the labelling that has it
    everywhere attains this, and the bound is exact. Where all labels occur it is still a bound: for vectors that are
    not negative ``|a - b|^2 <= |a|^2 + |b|^2``, and ``|F(x, y)|`` is largest where ``y`` is constant (Le Priol 2021,
    appendix 3.C).

    Negative values add to the part of the attributes. Let attribute ``a`` have the sum ``g_l`` over the nodes labelled
    ``l`` in ``y_i``, the sum ``p`` of its positive values and ``-m`` of its negative ones. Another labelling has sums
    ``h_l``, and ``sum_l (g_l - h_l)^2 = sum_l g_l^2 + sum_l h_l^2 - 2 sum_l g_l h_l``. In ``h_l``, positive and
    negative values make ``p_l - m_l``, so that ``sum_l h_l^2 <= sum_l (p_l^2 + m_l^2) <= p^2 + m^2``, and

        ``-sum_l g_l h_l = sum_l (m_l - p_l) g_l <= m max(0, max_l g_l) + p max(0, max_l -g_l)``.

    Hence ``|F(x, y_i)|^2 + p^2 + m^2 + 2 m max(0, max_l g_l) + 2 p max(0, max_l -g_l)``, summed over attributes; for
    values that are not negative it is the formula above. With one label there is one labelling, and the radius is 0.

    Examples
    --------
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], offsets=[0, 2, 3], labels=[1, 0, 1])
    >>> feature_radii(ChainProblem(data, n_labels=2))
    array([16., 10.])
    """
    checks.instance("problem", problem, ChainProblem, "a ChainProblem")
    n, k, labels, lengths = problem.n_terms, problem.n_labels, problem.labels, problem.data.lengths
    if k == 1:
        return np.zeros(n)
    sequence = np.repeat(np.arange(n), lengths)
    group = sequence * k + labels  # the nodes of one sequence with one label
    size = np.bincount(group, minlength=n * k).reshape(n, k)
    inner = np.ones(len(labels), dtype=bool)
    inner[problem.data.offsets[1:] - 1] = False
    left = np.flatnonzero(inner)
    steps, times = np.unique(group[left] * k + labels[left + 1], return_counts=True)
    out = np.bincount(steps // k**2, times.astype(float) ** 2, minlength=n) + (lengths - 1.0) ** 2
    if problem.bias:
        out += np.sum(size.astype(float) ** 2, axis=1) + 2.0 + lengths.astype(float) ** 2 + 2.0
    return out + attribute_radii(problem.data.features, group, n, k)


def attribute_radii(features: Any, group: np.ndarray, n: int, k: int) -> np.ndarray:
    """The part of the attributes: products of sparse matrices add up the nodes of a label, and those of a sequence."""
    of_labels, together = _collect(group, n * k) @ features, _collect(np.arange(n * k) // k, n)
    out = together @ _squares(of_labels) + _squares(together @ of_labels)
    signs = np.zeros((2, features.shape[1]), dtype=bool)
    signs[0, features.indices[features.data < 0]] = True
    signs[1, features.indices[features.data > 0]] = True
    mixed = np.flatnonzero(signs.all(axis=0))
    if mixed.size == 0:  # whatever the sign: p or m is 0, and so are the products with it
        return out
    features, of_labels, whole = features[:, mixed], of_labels[:, mixed], _collect(group // k, n)
    positive, negative = whole @ features.maximum(0), whole @ (-features).maximum(0)
    highest = lowest = sparse.csr_matrix(positive.shape)
    for label in range(k):
        sums = of_labels[label::k]
        highest, lowest = highest.maximum(sums), lowest.maximum(-sums)
    # p^2 + m^2 = (p - m)^2 + 2 p m, and the first is already there
    products = positive.multiply(negative + lowest) + negative.multiply(highest)
    return out + 2.0 * np.asarray(products.sum(axis=1)).ravel()


def _collect(target: np.ndarray, size: int) -> Any:
    """The matrix that adds row ``t`` of another into row ``target[t]``."""
    ones = np.ones(len(target))
    return sparse.csr_matrix((ones, (target, np.arange(len(target)))), shape=(size, len(target)))


def _squares(matrix: Any) -> np.ndarray:
    """The sum of squares of each row."""
    squared = (matrix.data**2, matrix.indices, matrix.indptr)  # `power` would sort the columns first
    return sparse.csr_matrix(squared, shape=matrix.shape) @ np.ones(matrix.shape[1])
