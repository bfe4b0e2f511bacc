"""Attempts to make a certificate of weights claim something false, against enumeration in 60 digits.

A claim ``P(w) - P* <= b`` is false if some other weights have a value below ``P(w) - b``. Values of both are computed
from all labellings without rounding that matters, so that a failure here is a false certificate and nothing else.
"""

import itertools

import mpmath
import numpy as np
import pytest

from cumulant import optim
from cumulant.errors import CertificateError
from cumulant.sequences import (
    ChainMarginals,
    ChainProblem,
    Factors,
    GraphData,
    SequenceData,
    SequenceDualAscent,
    SequenceLBFGS,
    TreeMarginals,
    TreeProblem,
)
from cumulant.sequences.certify import certify_gap, certify_weights

mp = mpmath.mp.clone()
mp.dps = 60


def chain_terms(problem):
    """For each sequence, for each labelling, the pairs of a feature value and of its place in the flat weights."""
    k, a = problem.n_labels, problem.n_attributes
    last_rows = problem.shape[0] - k
    for i in range(problem.n_terms):
        first, last = problem.data.offsets[i], problem.data.offsets[i + 1]
        x, every = problem.data.features[first:last].toarray(), []
        for y in itertools.product(range(k), repeat=last - first):
            pairs = [(x[t, j], j * k + y[t]) for t in range(last - first) for j in range(a) if x[t, j]]
            pairs += [(1.0, (last_rows + y[t]) * k + y[t + 1]) for t in range(last - first - 1)]
            if problem.bias:
                pairs += [(1.0, a * k + label) for label in y]
                pairs += [(1.0, (a + 1) * k + y[0]), (1.0, (a + 2) * k + y[-1])]
            every.append(pairs)
        truth = int(np.ravel_multi_index(problem.labels[first:last], (k,) * (last - first)))
        yield every, truth


def graph_terms(problem):
    """The same for graphs."""
    k, data = problem.n_labels, problem.data
    for i in range(problem.n_terms):
        first, size, every = int(data.offsets[i]), int(data.sizes[i]), []
        for y in itertools.product(range(k), repeat=size):
            pairs, begin = [], 0
            for factors in data.factors.values():
                width = k**factors.arity
                rows = factors.features.toarray()
                for variables, row in zip(factors.variables.tolist(), rows, strict=True):
                    if first <= variables[0] < first + size:
                        entry = int(np.ravel_multi_index([y[v - first] for v in variables], (k,) * factors.arity))
                        pairs += [(value, begin + j * width + entry) for j, value in enumerate(row) if value]
                begin += factors.n_features * width
            every.append(pairs)
        truth = int(np.ravel_multi_index(problem.labels[first : first + size], (k,) * size))
        yield every, truth


class Exact:
    """``P(w)`` in 60 digits."""

    def __init__(self, problem):
        self.problem = problem
        self.terms = list((chain_terms if isinstance(problem, ChainProblem) else graph_terms)(problem))

    def __call__(self, w):
        w = [mp.mpf(float(value)) for value in np.ravel(w)]
        total = mp.mpf(0)
        for every, truth in self.terms:
            scores = [mp.fsum(mp.mpf(float(value)) * w[place] for value, place in pairs) for pairs in every]
            highest = max(scores)
            total += highest + mp.log(mp.fsum(mp.exp(score - highest) for score in scores)) - scores[truth]
        penalty = mp.mpf(self.problem.l2) / 2 * mp.fsum(value * value for value in w)
        return total / self.problem.n_terms + penalty + mp.mpf(self.problem.l1) * mp.fsum(abs(value) for value in w)


def features(rng, rows, columns):
    """Of one of several kinds: ordinary, badly scaled by column or as a whole, zero, with equal columns, sparse."""
    values = rng.normal(size=(rows, columns))
    kind = rng.integers(0, 7)
    if kind == 0:
        values *= 10.0 ** rng.uniform(-12, 12, size=columns)
    elif kind == 1:
        values *= 10.0 ** rng.uniform(-12, 12)
    elif kind == 2:
        values[:] = 0.0
    elif kind == 3:
        values[:] = values[:, :1] * 10.0 ** rng.uniform(-3, 6)
    elif kind == 4:
        values = np.abs(values) * (rng.uniform(size=values.shape) < 0.4)
    elif kind == 5:
        values = np.where(rng.uniform(size=values.shape) < 0.5, 1e6, -1e6) + rng.normal(size=values.shape)
    return values


def random_problem(rng):
    labels, n = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    l2 = 10.0 ** rng.uniform(-6, 3)
    l1 = float(rng.choice([0.0, 10.0 ** rng.uniform(-8, 0)]))
    sizes = rng.integers(1, 4, size=n)
    offsets, tokens = np.concatenate([[0], np.cumsum(sizes)]), int(sizes.sum())
    truth = rng.integers(0, labels, size=tokens)
    own = features(rng, tokens, int(rng.integers(1, 3)))
    if rng.uniform() < 0.6:
        return ChainProblem(SequenceData(own, offsets, truth), labels, l2, l1, bool(rng.integers(0, 2)), n_jobs=1)
    edges = [(v, v + 1) for a, b in itertools.pairwise(offsets) for v in range(a, b - 1)]
    edges += [(a, a + 2) for a, b in itertools.pairwise(offsets) if b - a == 3]
    factors = {"nodes": Factors(np.arange(tokens)[:, None], own)}
    if edges:
        factors["edges"] = Factors(np.array(edges), features(rng, len(edges), 1))
    return TreeProblem(GraphData(offsets, factors, truth), labels, l2, l1, n_jobs=1)


def perturbed(rng, mu):
    """Marginals as they are, rounded to single precision, or numbers that are no marginals at all."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return mu
    arrays = [a.astype(np.float32).astype(float) if kind == 1 else rng.exponential(size=a.shape) for a in mu]
    return ChainMarginals(*arrays) if isinstance(mu, ChainMarginals) else TreeMarginals(*arrays)


def attempts(seed):
    """How many certificates of one random problem were compared, and how many were refused."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    exact, zero = Exact(problem), np.zeros(problem.shape)
    ascent = optim.run(SequenceDualAscent(), problem, zero, tol=1e-13, max_steps=int(rng.integers(1, 40)), rng=seed)
    found = [zero, ascent.x]
    if not problem.l1:
        found.append(optim.run(SequenceLBFGS(), problem, zero, tol=1e-14, max_steps=60).x)
        found.append(optim.run(SequenceLBFGS(), problem, ascent.x, tol=1e-14, max_steps=60).x)
    values = [exact(w) for w in found]
    lowest = min(values)
    near = found[values.index(lowest)]
    tried = [*found, near * (1 + 1e-9 * rng.normal(size=near.shape)), near + 10.0 ** rng.uniform(-9, 9) * rng.normal()]
    compared = refused = 0
    for w, issue in itertools.product(tried, ("weights", "gap")):
        try:
            if issue == "weights":
                certificate = certify_weights(problem, w)
            else:
                certificate = certify_gap(problem, (w, perturbed(rng, ascent.state.mu)))
        except CertificateError:
            refused += 1
            continue
        compared += 1
        gap = exact(w) - lowest
        assert gap <= mp.mpf(certificate.upper), (seed, issue, gap, certificate)
    return compared, refused


def test_no_certificate_is_false():
    counts = np.array([attempts(seed) for seed in range(60)]).sum(axis=0)
    assert counts[0] > 500  # most are issued


@pytest.mark.slow
def test_no_certificate_of_many_is_false():
    counts = np.array([attempts(seed) for seed in range(1000, 3000)]).sum(axis=0)
    print(f"{counts[0]} certificates compared with enumeration, {counts[1]} refused")
    assert counts[0] > 15_000


def test_certificates_are_not_empty_on_ordinary_data():
    """Slack that covers everything would be of no use: here it is far below what is claimed."""
    rng = np.random.default_rng(0)
    data = SequenceData(rng.normal(size=(60, 3)), np.arange(0, 61, 5), rng.integers(0, 3, size=60))
    problem = ChainProblem(data, 3)
    result = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-9, max_steps=500, rng=0)
    assert result.status == "converged"
    assert result.certificate.slack < 1e-10
    assert certify_weights(problem, result.x).slack < 1e-10
