"""Small labelled sequences with known answers, and random ragged ones."""

import numpy as np

from cumulant.sequences import ChainProblem, SequenceData

# Two labels, two attributes, three sequences of lengths 3, 2 and 1; its optimum is known by enumeration.
TINY = SequenceData(
    np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), [0, 3, 5, 6], [0, 1, 0, 1, 0, 1]
)
TINY_OPTIMUM = 0.8220152424341014
TINY_WEIGHTS = np.array(
    [
        [0.4212398383, -0.4212398383],
        [-0.4740102071, 0.4740102071],
        [0.0153195807, -0.0153195807],
        [-0.2160223209, 0.2160223209],
        [0.0834665430, -0.0834665430],
        [-0.2994554003, 0.2313084380],
        [0.5307973019, -0.4626503396],
    ]
)


def tiny(**settings) -> ChainProblem:
    return ChainProblem(TINY, 2, **settings)


def ragged(rng, n=8, labels=3, attributes=4, longest=6, scale=1.0) -> SequenceData:
    lengths = rng.integers(1, longest + 1, size=n)
    tokens = int(lengths.sum())
    features = scale * rng.normal(size=(tokens, attributes)) * (rng.uniform(size=(tokens, attributes)) < 0.6)
    return SequenceData(features, np.concatenate([[0], np.cumsum(lengths)]), rng.integers(0, labels, size=tokens))


def random_marginals(problem, rng):
    """Consistent marginals: those of random weights."""
    from cumulant.sequences.chain.problem import ChainMarginals

    w = rng.normal(size=problem.shape)
    nodes, pairs = [], []
    for i in range(problem.n_terms):
        joint, labellings = joint_law(problem, w, i)
        k, length = problem.n_labels, labellings.shape[1]
        own = np.zeros((length, k))
        both = np.zeros((length - 1, k, k))
        for p, y in zip(joint, labellings, strict=True):
            own[np.arange(length), y] += p
            both[np.arange(length - 1), y[:-1], y[1:]] += p
        nodes.append(own)
        pairs.append(both)
    return ChainMarginals(np.concatenate(nodes), np.concatenate(pairs))


def feature_map(problem, i, y):
    """``F(x_i, y)``, the obvious way."""
    out = np.zeros(problem.shape)
    first, last = problem.data.offsets[i], problem.data.offsets[i + 1]
    x, a = problem.data.features[first:last].toarray(), problem.n_attributes
    for t in range(last - first):
        out[:a, y[t]] += x[t]
        if problem.bias:
            out[a, y[t]] += 1
            out[a + 1, y[t]] += t == 0
            out[a + 2, y[t]] += t == last - first - 1
        if t:
            out[len(out) - problem.n_labels + y[t - 1], y[t]] += 1
    return out


def joint_law(problem, w, i):
    """Probabilities of all labellings of a sequence, by enumeration."""
    length = int(problem.data.lengths[i])
    labellings = np.stack(np.meshgrid(*[np.arange(problem.n_labels)] * length, indexing="ij"), axis=-1)
    labellings = labellings.reshape(-1, length)
    scores = np.array([np.vdot(w, feature_map(problem, i, y)) for y in labellings])
    weights = np.exp(scores - scores.max())
    return weights / weights.sum(), labellings


def objective(problem, w):
    """``P(w)`` by enumeration."""
    total = 0.0
    for i in range(problem.n_terms):
        first, last = problem.data.offsets[i], problem.data.offsets[i + 1]
        joint, labellings = joint_law(problem, w, i)
        truth = np.flatnonzero(np.all(labellings == problem.labels[first:last], axis=1))[0]
        total -= np.log(joint[truth])
    return 0.5 * problem.l2 * np.sum(w**2) + problem.l1 * np.sum(np.abs(w)) + total / problem.n_terms


def inconsistency(problem, mu):
    """The largest disagreement of the marginals of pairs with those of their nodes, or of a node's sum with one."""
    worst = float(np.max(np.abs(mu.nodes.sum(axis=1) - 1.0)))
    inner = np.ones(len(problem.labels), dtype=bool)
    inner[problem.data.offsets[1:] - 1] = False
    left = np.flatnonzero(inner)
    if left.size:
        worst = max(worst, float(np.max(np.abs(mu.pairs.sum(axis=2, dtype=np.float64) - mu.nodes[left]))))
        worst = max(worst, float(np.max(np.abs(mu.pairs.sum(axis=1, dtype=np.float64) - mu.nodes[left + 1]))))
    return worst


def assert_verifies(crf, loaded, X, y):
    """A fitted estimator issues its certificate again from the data; so do its copies, without dual variables."""
    import copy
    import pickle
    from dataclasses import replace

    import pytest

    from cumulant.errors import CertificateError

    fresh = crf.verify(X, y)
    assert fresh.upper <= crf.certificate_.upper + crf.certificate_.slack
    assert fresh.recipe == crf.certificate_.recipe
    for other in (loaded, pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert other.verify(X, y).recipe == crf.weights_certificate_.recipe
    false = copy.deepcopy(crf)
    false.weights_certificate_ = replace(crf.weights_certificate_, bound=0.5 * crf.weights_certificate_.bound)
    with pytest.raises(CertificateError, match="does not hold"):
        false.verify(X, y)
    moved = copy.deepcopy(crf)
    moved.weights_ = 1.1 * crf.weights_
    with pytest.raises(CertificateError, match="does not hold"):
        moved.verify(X, y)
