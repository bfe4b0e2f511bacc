"""Exact answers about one linear chain: marginals, best labellings, samples, entropy and divergence.

A chain of ``T`` nodes with ``K`` labels gives the labelling ``y`` the probability ``exp(s(y)) / Z``, where
``s(y) = sum_t unary[t, y_t] + sum_t pair[y_t, y_{t+1}]``. Pair scores are one matrix for all pairs of neighbours, or
one matrix for each. A score of minus infinity forbids a label or a step. `oracle_jax` answers the same for batches, on
a GPU and with derivatives.

A chain is as well given by its marginals, ``nodes[t, k] = P(y_t = k)`` and
``pairs[t, j, k] = P(y_t = j, y_{t+1} = k)``:
``P(y) = prod_t pairs[t, y_t, y_{t+1}] / prod_{0 < t < T-1} nodes[t, y_t]`` (Le Priol 2021, section 3.3.2).
"""

from typing import Any

import numpy as np
from scipy.special import xlogy

from cumulant import checks, randomness
from cumulant.errors import DomainError
from cumulant.sequences.chain.chain_kernels import chain_distribution, chain_marginals
from cumulant.sequences.chain.labelling_kernels import best_labels, best_lists, sample_many

__all__ = [
    "checked_scores",
    "draw",
    "joint_log_prob",
    "k_best",
    "sample",
    "sum_product",
    "tree_entropy",
    "tree_kl",
    "viterbi",
]

_CONSISTENT = 1e-6  # how far the marginals of pairs may be from those of nodes


def sum_product(unary: Any, pair: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """The marginals of all nodes and pairs of neighbours, and the log-partition function.

    By a forward and a backward pass, ``O(T K^2)``. Probabilities below about 1e-308 are returned as 0.

    Parameters
    ----------
    unary : array (T, K)
        Scores of the labels of each node.
    pair : array (K, K) or (T - 1, K, K)
        Scores of neighbouring labels, the same for all pairs or of each.

    Returns
    -------
    nodes : array (T, K)
    pairs : array (T - 1, K, K)
    log_z : float

    Raises
    ------
    DomainError
        Where every labelling is forbidden.

    Examples
    --------
    >>> nodes, pairs, log_z = sum_product([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]])
    >>> nodes.round(4)
    array([[0.4019, 0.5981],
           [0.2291, 0.7709],
           [0.1401, 0.8599]])
    >>> round(log_z, 6)
    3.318088
    """
    unary, pair = checked_scores(unary, pair)
    if pair.ndim == 3 or np.isneginf(unary).any() or np.isneginf(pair).any():
        return _log_space(unary, np.broadcast_to(pair, (len(unary) - 1, *pair.shape[-2:])))
    length, labels = unary.shape
    nodes, pairs = np.empty((length, labels)), np.empty((length - 1, labels, labels))
    work = np.empty((labels, labels)), np.empty((length, labels)), np.empty((length, labels))
    log_z = chain_marginals(unary, length, pair, *work, nodes, pairs)
    return nodes, pairs, float(log_z)


def viterbi(unary: Any, pair: Any) -> tuple[np.ndarray, float]:
    """The labelling of highest score, and its score. Of equal ones, the label of lower number wins at each step back.

    Takes scores as `sum_product` does, and raises `DomainError` where every labelling is forbidden.

    >>> labels, score = viterbi([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]])
    >>> labels, round(score, 12)
    (array([1, 1, 1]), 2.6)
    """
    unary, pair = checked_scores(unary, pair)
    if pair.ndim == 3:
        labellings, scores = best_lists(unary, pair, 1, 1)
        if len(scores) == 0:
            raise DomainError(_FORBIDDEN)
        return labellings[0], float(scores[0])
    length, labels = unary.shape
    best = np.empty(length, dtype=np.int64)
    # Zeros: the kernel follows the origin of a label that cannot be reached before we can refuse.
    score = best_labels(unary, length, pair, np.empty((2, labels)), np.zeros((length, labels), dtype=np.int64), best)
    if np.isneginf(score):
        raise DomainError(_FORBIDDEN)
    return best, float(score)


def k_best(unary: Any, pair: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The `k` labellings of highest score, best first, and their scores.

    All are different. There are fewer than `k` where fewer are possible. Exact, by list Viterbi (Seshadri and
    Sundberg 1994): ``O(T K^2 k)`` time, ``O(T K k)`` memory.

    Takes scores as `sum_product` does, and raises `DomainError` where every labelling is forbidden.

    >>> labellings, scores = k_best([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]], 3)
    >>> labellings
    array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]])
    >>> scores
    array([2.6, 1.8, 1.1])
    """
    unary, pair = checked_scores(unary, pair)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be a positive whole number; got {k!r}")
    length, labels = unary.shape
    size = min(int(k), labels**length)
    transitions = pair if pair.ndim == 3 else pair[None]
    labellings, scores = best_lists(unary, transitions, int(pair.ndim == 3), size)
    if len(scores) == 0:
        raise DomainError(_FORBIDDEN)
    return labellings, scores


def sample(unary: Any, pair: Any, n: int, rng: Any = None) -> np.ndarray:
    """`n` independent labellings drawn from the chain, as an array ``(n, T)``.

    By inversion, node after node, through the exact marginals. `rng` is an int, a `numpy.random.Generator` or None.

    Takes scores as `sum_product` does, and raises `DomainError` where every labelling is forbidden.

    >>> labels = sample([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]], 100_000, rng=0)
    >>> labels.mean(axis=0).round(2)      # P(y_t = 1) is 0.5981, 0.7709, 0.8599
    array([0.6 , 0.77, 0.86])
    """
    return draw(*sum_product(unary, pair)[:2], n, rng)


def draw(nodes: np.ndarray, pairs: np.ndarray, n: int, rng: Any = None) -> np.ndarray:
    """`n` independent labellings of the chain with these marginals, as an array ``(n, T)``."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise ValueError(f"n must be a whole number, not negative; got {n!r}")
    out = np.empty((int(n), len(nodes)), dtype=np.int64)
    sample_many(nodes, pairs, randomness.generator(rng).random(out.shape), out)
    return out


def tree_entropy(nodes: Any, pairs: Any) -> float:
    """The entropy of the chain with these marginals, in nats: that of the pairs minus that of the inner nodes.

    It is the largest entropy of all distributions with these marginals (Le Priol 2021, equation 3.19); ``0 log 0 = 0``.

    Raises `DomainError` where the marginals are not those of a chain: negative, or not summing to one another.

    >>> nodes, pairs, _ = sum_product([[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.4, -0.6], [0.2, 0.9]])
    >>> round(tree_entropy(nodes, pairs), 6)
    1.519578
    """
    nodes, pairs = _marginals(nodes, pairs)
    out, expected = np.empty(1), np.zeros(pairs.shape[1:])
    chain_distribution(nodes, pairs, np.array([0, len(nodes)]), 0, 1, np.empty_like(nodes), expected, out)
    return max(0.0, float(out[0]))


def tree_kl(mu: tuple[Any, Any], nu: tuple[Any, Any]) -> float:
    """``KL(mu || nu)`` between the chains with marginals ``mu = (nodes, pairs)`` and ``nu``, in nats.

    By the chain rule ``KL = KL(mu_0 || nu_0) + sum_t KL(mu(y_{t+1} | y_t) || nu(y_{t+1} | y_t))``, which equals the
    divergences of the pairs minus those of the inner nodes (Le Priol 2021, equation 3.20); none of its terms is
    negative, so that small divergences keep their digits. Infinite where `mu` has mass that `nu` lacks.

    Raises `DomainError` where either is not the marginals of a chain, and `ValueError` where their shapes differ.

    >>> pair = [[0.4, -0.6], [0.2, 0.9]]
    >>> mu, nu = sum_product([[0.5, -0.2], [0.1, 0.3]], pair)[:2], sum_product([[0.0, 0.0], [0.1, 0.3]], pair)[:2]
    >>> round(tree_kl(mu, nu), 6), tree_kl(mu, mu)
    (0.06023, 0.0)
    """
    for name, pair in (("mu", mu), ("nu", nu)):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(f"{name} must be a pair (nodes, pairs) of marginals; got {pair!r:.60}")
    mu_nodes, mu_pairs = _marginals(*mu, of="mu: ")
    nu_nodes, nu_pairs = _marginals(*nu, of="nu: ")
    if mu_nodes.shape != nu_nodes.shape:
        raise ValueError(f"mu and nu must have as many nodes and labels; got {mu_nodes.shape} and {nu_nodes.shape}")
    if len(mu_nodes) == 1:
        return _divergence(mu_nodes, nu_nodes)
    # Sums of the pairs rather than the nodes: rounding cannot then make a label impossible whose pairs are possible.
    return _divergence(mu_pairs[0].sum(axis=1), nu_pairs[0].sum(axis=1)) + _divergence(mu_pairs, nu_pairs)


def joint_log_prob(nodes: Any, pairs: Any, labels: Any) -> Any:
    """``log P(y)`` of the chain with these marginals; minus infinity where it is 0.

    `labels` is one labelling ``(T,)``, or several ``(n, T)``, for which an array is returned.

    Raises `DomainError` where the marginals are not those of a chain.

    >>> nodes, pairs, log_z = sum_product([[0.5, -0.2], [0.1, 0.3]], [[0.4, -0.6], [0.2, 0.9]])
    >>> round(joint_log_prob(nodes, pairs, [0, 1]), 9) == round((0.5 - 0.6 + 0.3) - log_z, 9)
    True
    """
    nodes, pairs = _marginals(nodes, pairs)
    length, k = nodes.shape
    labels = np.asarray(labels)
    if labels.ndim not in (1, 2) or labels.shape[-1] != length or labels.dtype.kind not in "iu":
        raise ValueError(
            f"labels must be whole numbers, {length} for each labelling; got {labels.dtype} of shape {labels.shape}"
        )
    if labels.size and (labels.min() < 0 or labels.max() >= k):
        raise ValueError(f"labels must be from 0 to {k - 1}; they run from {labels.min()} to {labels.max()}")
    rows = np.atleast_2d(labels)
    with np.errstate(divide="ignore"):
        if length == 1:
            out = np.log(nodes[0, rows[:, 0]])
        else:
            edge, left, right = np.arange(length - 1), rows[:, :-1], rows[:, 1:]
            joint, inner = np.log(pairs[edge, left, right]), pairs.sum(axis=2)[edge[1:], left[:, 1:]]
            # A pair of positive probability has a positive sum; where it is 0 so is the answer, whatever the sum.
            out = joint.sum(axis=1) - np.log(np.where(inner > 0, inner, 1.0)).sum(axis=1)
    return float(out[0]) if labels.ndim == 1 else out


# Checks of arguments --------------------------------------------------------------------------------------------------

_FORBIDDEN = "unary and pair forbid every labelling: each has a score of minus infinity somewhere"


def checked_scores(unary: Any, pair: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores as arrays of float64; refuses what is none."""
    unary, pair = _real("unary", unary), _real("pair", pair)
    if unary.ndim != 2 or 0 in unary.shape:
        raise ValueError(f"unary must be scores of shape (nodes, labels), at least one of each; got {unary.shape}")
    length, labels = unary.shape
    if pair.shape not in ((labels, labels), (length - 1, labels, labels)):
        raise ValueError(
            f"pair must have shape {(labels, labels)}, or {(length - 1, labels, labels)} for scores of each pair of "
            f"neighbours, beside unary of shape {unary.shape}; got {pair.shape}"
        )
    for name, scores in (("unary", unary), ("pair", pair)):
        bad = np.argwhere(~(scores < np.inf))
        if bad.size:
            where = tuple(int(i) for i in bad[0])
            raise ValueError(f"{name} must be numbers or minus infinity; got {scores[where]} at index {where}")
    largest = [float(np.max(np.abs(s), where=np.isfinite(s), initial=0.0)) for s in (unary, pair)]
    if not np.isfinite(length * sum(largest)):
        raise ValueError(f"unary and pair must add up to a finite score; they reach {largest[0]:g} and {largest[1]:g}")
    return unary, pair


def _real(name: str, values: Any) -> np.ndarray:
    array = checks.array(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers; got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _marginals(nodes: Any, pairs: Any, of: str = "") -> tuple[np.ndarray, np.ndarray]:
    nodes, pairs = _real(f"{of}nodes", nodes), _real(f"{of}pairs", pairs)
    if nodes.ndim != 2 or 0 in nodes.shape:
        raise ValueError(f"{of}nodes must have shape (nodes, labels), at least one of each; got {nodes.shape}")
    length, labels = nodes.shape
    if pairs.shape != (length - 1, labels, labels):
        raise ValueError(f"{of}pairs must have shape {(length - 1, labels, labels)}; got {pairs.shape}")
    if not (np.all(nodes >= 0) and np.all(pairs >= 0)):
        raise DomainError(f"{of}marginals must be probabilities; some are negative or NaN")
    wrong = float(np.max(np.abs(nodes.sum(axis=1) - 1.0)))
    if length > 1:
        wrong = max(
            wrong,
            float(np.max(np.abs(pairs.sum(axis=2) - nodes[:-1]))),
            float(np.max(np.abs(pairs.sum(axis=1) - nodes[1:]))),
        )
    if not wrong <= _CONSISTENT:
        raise DomainError(
            f"{of}marginals must agree: every node sums to 1 and every pair to the nodes it joins, within "
            f"{_CONSISTENT:g}; they differ by {wrong:.3g}"
        )
    return nodes, pairs


# Logarithms -----------------------------------------------------------------------------------------------------------


def _log_sum(values: np.ndarray, axis: int) -> np.ndarray:
    """``log sum exp``, minus infinity where all are."""
    highest = np.max(values, axis=axis, keepdims=True)
    highest = np.where(np.isneginf(highest), 0.0, highest)
    with np.errstate(divide="ignore"):
        return np.log(np.sum(np.exp(values - highest), axis=axis)) + np.squeeze(highest, axis)


def _log_space(unary: np.ndarray, pair: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The two passes on logarithms, each message normalised: what large scores have in common does not cost digits."""
    length, labels = unary.shape
    past, future = np.empty((length, labels)), np.zeros((length, labels))
    log_z = 0.0
    for t in range(length):
        message = unary[t] if t == 0 else unary[t] + _log_sum(past[t - 1][:, None] + pair[t - 1], 0)
        scale = _log_sum(message, 0)
        if np.isneginf(scale):
            raise DomainError(_FORBIDDEN)
        past[t] = message - scale
        log_z += float(scale)
    for t in range(length - 2, -1, -1):
        message = _log_sum(pair[t] + (unary[t + 1] + future[t + 1]), 1)
        future[t] = message - np.max(message)
    nodes = _probabilities(past + future, (1,))
    pairs = past[:-1, :, None] + pair + (unary[1:] + future[1:])[:, None, :]
    return nodes, _probabilities(pairs, (1, 2)), log_z


def _probabilities(logs: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    weights = np.exp(logs - np.max(logs, axis=axes, keepdims=True))
    return weights / np.sum(weights, axis=axes, keepdims=True)


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    """The divergence of `p` from `q` along the last axis, given the others, in the mean over `p`.

    With ``r = q sum(p) / sum(q)``, the sum of ``p log(p / r) - p + r``, of which no term is negative. Close to
    ``p = r`` it is ``p (d - log(1 + d))`` with ``d = r / p - 1``, summed as a series: the logarithms would cancel.
    """
    if np.any((p > 0) & (q == 0)):
        return float(np.inf)
    p_sum, q_sum = p.sum(axis=-1, keepdims=True), q.sum(axis=-1, keepdims=True)
    share = q / np.where(q_sum > 0, q_sum, 1.0)
    r = np.where(p_sum == q_sum, q, p_sum * share)  # so that the divergence from itself is 0, not 1e-33
    close = np.abs(r - p) < 0.01 * p
    d = np.divide(r - p, p, out=np.zeros_like(p), where=close)
    series = p * d**2 * (1 / 2 - d * (1 / 3 - d * (1 / 4 - d * (1 / 5 - d * (1 / 6 - d * (1 / 7 - d / 8))))))
    far = xlogy(p, p / np.where(p_sum > 0, p_sum, 1.0)) - xlogy(p, share) - p + r
    return float(np.where(close, series, far).sum())
