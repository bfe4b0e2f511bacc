"""The objective, its dual and the gap against enumeration of all labellings."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.sequences import ChainProblem, SequenceDualAscent
from cumulant.sequences.certify import certify_gap, certify_weights
from tests.sequences.cases import (
    TINY_OPTIMUM,
    TINY_WEIGHTS,
    inconsistency,
    joint_law,
    objective,
    ragged,
    random_marginals,
    tiny,
)


def problems(rng):
    for bias in (True, False):
        yield ChainProblem(ragged(rng), 3, l2=0.3, bias=bias)
    yield ChainProblem(ragged(rng), 3, l2=0.3, l1=0.05)
    yield tiny()


def test_value_and_gradient_against_enumeration():
    rng = np.random.default_rng(0)
    for problem in problems(rng):
        w = rng.normal(size=problem.shape)
        value, gradient = problem.value_and_gradient(w)
        assert_allclose(value, objective(problem, w), rtol=1e-12)
        smooth = ChainProblem(problem.data, problem.n_labels, problem.l2, 0.0, problem.bias)
        for _ in range(5):
            direction = rng.normal(size=problem.shape)
            h = 1e-5
            difference = objective(smooth, w + h * direction) - objective(smooth, w - h * direction)
            assert_allclose(np.vdot(gradient, direction), difference / (2 * h), rtol=1e-7)


def test_numbers_of_the_tiny_problem():
    problem = tiny()
    assert_allclose(problem.value(np.zeros(problem.shape)), 2 * np.log(2), rtol=1e-14)
    assert_allclose(problem.value(TINY_WEIGHTS), TINY_OPTIMUM, rtol=1e-14)
    mu = problem.start(0.1)
    w = problem.weights_of(problem.residual(mu))
    assert_allclose(np.linalg.norm(w), 0.27838821814, rtol=1e-10)
    assert_allclose([problem.value(w), problem.dual(mu)], [1.1575486451398405, 0.33586371825136196], rtol=1e-13)


def entropy(joint):
    return -np.sum(joint * np.log(joint))


def test_the_gap_is_the_mean_divergence_of_the_marginals():
    """``P(w(mu)) - D(mu) = (1/n) sum_i KL(mu_i || nu_i)``; the divergences by enumeration."""
    rng = np.random.default_rng(1)
    for problem in problems(rng):
        mu = random_marginals(problem, np.random.default_rng(7))
        assert inconsistency(problem, mu) < 1e-12
        chain = np.random.default_rng(7).normal(size=problem.shape)
        w = problem.weights_of(problem.residual(mu))
        divergences = []
        for i in range(problem.n_terms):
            p, _ = joint_law(problem, chain, i)
            q, _ = joint_law(problem, w, i)
            divergences.append(np.sum(p * np.log(p / q)))
            assert_allclose(problem.entropies(mu)[i], entropy(p), rtol=1e-10)
        assert_allclose(problem.value(w) - problem.dual(mu), np.mean(divergences), rtol=1e-9)
        assert_allclose(problem.block_gaps(mu), divergences, rtol=1e-9, atol=1e-13)
        nu = problem.conjugate_marginals(w)
        assert_allclose(problem.divergences(mu, nu), divergences, rtol=1e-9, atol=1e-13)
        drawn = [joint_law(problem, chain, i) for i in range(problem.n_terms)]
        choice = [rng.integers(len(p)) for p, _ in drawn]
        labels = np.concatenate([every[own] for (_, every), own in zip(drawn, choice, strict=True)])
        expected = [np.log(p[own]) for (p, _), own in zip(drawn, choice, strict=True)]
        assert_allclose(problem.log_probs(mu, labels), expected, rtol=1e-9)
        certificate = certify_gap(problem, (w, mu))
        assert_allclose(certificate.bound, np.mean(divergences), rtol=1e-9)
        assert certificate.slack < 1e-9


def test_forbidden_labellings():
    """With zeros in the marginals: -inf, and an infinite divergence exactly where mass is lacking."""
    from cumulant.sequences import ChainMarginals

    problem = ChainProblem(ragged(np.random.default_rng(9)), 3)
    full = problem.start(0.5)
    certain = ChainMarginals(np.eye(3)[problem.labels], np.zeros_like(full.pairs))
    left = problem._lefts
    certain.pairs[np.arange(len(left)), problem.labels[left], problem.labels[left + 1]] = 1.0
    assert np.all(np.isinf(problem.divergences(full, certain)))
    assert_allclose(problem.divergences(certain, full), -problem.log_probs(full, problem.labels), rtol=1e-12)
    assert_allclose(problem.log_probs(certain, problem.labels), 0.0, atol=1e-300)
    assert np.all(np.isneginf(problem.log_probs(certain, (problem.labels + 1) % 3)))
    with pytest.raises(ValueError, match="labels must be numbers"):
        problem.log_probs(full, problem.labels + 1)


def test_the_gap_from_the_primal_side_is_the_squared_gradient():
    rng = np.random.default_rng(2)
    problem = ChainProblem(ragged(rng), 3, l2=0.3)
    w = rng.normal(size=problem.shape)
    nodes, pairs = [], []
    for i in range(problem.n_terms):
        joint, labellings = joint_law(problem, w, i)
        own, both = np.zeros((labellings.shape[1], 3)), np.zeros((labellings.shape[1] - 1, 3, 3))
        for p, y in zip(joint, labellings, strict=True):
            own[np.arange(len(y)), y] += p
            both[np.arange(len(y) - 1), y[:-1], y[1:]] += p
        nodes.append(own)
        pairs.append(both)
    from cumulant.sequences import ChainMarginals

    mu = ChainMarginals(np.concatenate(nodes), np.concatenate(pairs))
    assert_allclose(problem.value(w) - problem.dual(mu), certify_weights(problem, w).bound, rtol=1e-9)
    assert_allclose(problem.gradient(w), 0.3 * (w - problem.weights_of(problem.residual(mu))), atol=1e-12)
    squared = np.sum(problem.gradient(w) ** 2)
    assert_allclose(certify_weights(problem, w).bound, squared / (2 * problem.l2), rtol=1e-12)


def test_answers_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(3)
    data = ragged(rng, n=200, longest=9)
    w = rng.normal(size=ChainProblem(data, 3).shape)
    one, three = (ChainProblem(data, 3, n_jobs=jobs) for jobs in (1, 3))
    for a, b in zip(one.value_and_gradient(w), three.value_and_gradient(w), strict=True):
        assert np.array_equal(a, b)
    mu = one.start()
    assert np.array_equal(one.residual(mu), three.residual(mu))
    assert one.dual(mu) == three.dual(mu)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_answers_do_not_depend_on_whether_kernels_are_interpreted(monkeypatch, dtype):
    rng = np.random.default_rng(4)
    data, answers = ragged(rng), []
    for small in (10_000, -1):
        monkeypatch.setattr("cumulant.sequences.chain.problem._SMALL", small)
        problem = ChainProblem(data, 3, l2=0.3)
        mu = problem.start(0.3, dtype)
        answers.append([problem.residual(mu), *problem.attributes_of_sequences])
    for interpreted, compiled in zip(*answers, strict=True):
        np.testing.assert_array_equal(interpreted, compiled)


def test_huge_scores_are_computed_with_logarithms():
    rng = np.random.default_rng(4)
    problem = ChainProblem(ragged(rng, scale=1e4), 3, l2=1.0)
    w = rng.normal(size=problem.shape)
    value, gradient = problem.value_and_gradient(w)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
    assert_allclose(problem.log_partitions(w)[0], _log_partition(problem, w, 0), rtol=1e-12)


def _log_partition(problem, w, i):
    from scipy.special import logsumexp

    from tests.sequences.cases import feature_map

    _, labellings = joint_law(problem, w, i)
    return logsumexp([np.vdot(w, feature_map(problem, i, y)) for y in labellings])


def test_renaming_labels_and_reversing_time_change_nothing():
    rng = np.random.default_rng(5)
    data = ragged(rng, n=20)
    problem = ChainProblem(data, 3)
    w = rng.normal(size=problem.shape)
    order = np.array([2, 0, 1])
    renamed = ChainProblem(type(data)(data.features, data.offsets, order[data.labels]), 3)
    moved = np.empty_like(w)
    moved[:-3, order] = w[:-3]
    moved[-3:][np.ix_(order, order)] = w[-3:]
    assert_allclose(renamed.value(moved), problem.value(w), rtol=1e-13)
    backwards = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in itertools.pairwise(data.offsets)])
    reverse = ChainProblem(type(data)(data.features[backwards], data.offsets, data.labels[backwards]), 3)
    turned = w.copy()
    turned[-5], turned[-4] = w[-4], w[-5]  # first and last
    turned[-3:] = w[-3:].T
    assert_allclose(reverse.value(turned), problem.value(w), rtol=1e-13)


def test_refusals():
    data = ragged(np.random.default_rng(6))
    with pytest.raises(ValueError, match="l2 must be positive"):
        ChainProblem(data, 3, l2=0.0)
    with pytest.raises(ValueError, match="l1 must be finite and not negative"):
        ChainProblem(data, 3, l1=-1.0)
    with pytest.raises(ValueError, match="labels must be numbers from 0 to 1"):
        ChainProblem(data, 2)
    with pytest.raises(ValueError, match="w must be finite"):
        ChainProblem(data, 3).value(np.full(ChainProblem(data, 3).shape, np.nan))
    with pytest.raises(ValueError, match="n_jobs must be a positive"):
        ChainProblem(data, 3, n_jobs=0).value(np.zeros(ChainProblem(data, 3).shape))


def test_no_numbers_in_the_place_of_marginals_bound_the_optimum_wrongly():
    """Inconsistent, unnormalised, with zeros: the dual is that of some law, and below every value of the primal."""
    from cumulant import optim
    from cumulant.sequences import ChainMarginals, SequenceLBFGS

    rng = np.random.default_rng(8)
    for problem in problems(rng):
        if problem.l1:
            continue
        optimum = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-12, max_steps=500).value
        shape = problem.start()
        for _ in range(50):
            nodes = rng.exponential(size=shape.nodes.shape)
            pairs = rng.exponential(size=shape.pairs.shape) * (rng.uniform(size=shape.pairs.shape) < 0.7)
            pairs[..., 0, 0] += 1e-3
            assert problem.dual(ChainMarginals(nodes, pairs)) <= optimum + 1e-12
        # Rounded to single precision, marginals next to the optimum give a bound of the size of that rounding.
        best = optim.run(SequenceDualAscent(), problem, np.zeros(problem.shape), tol=1e-12, max_steps=500, rng=0)
        coarse = ChainMarginals(best.state.mu.nodes, best.state.mu.pairs.astype(np.float32))
        certificate = certify_gap(problem, (best.x, coarse))
        assert -1e-14 <= certificate.upper < 1e-4
        assert best.value - optimum <= certificate.upper
