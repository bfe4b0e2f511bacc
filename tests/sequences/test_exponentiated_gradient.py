"""Exponentiated gradient ascent: the update by enumeration, invariants at every epoch, and the known optimum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr

from cumulant import optim
from cumulant.sequences import ChainProblem, SequenceData, SequenceLBFGS
from cumulant.sequences.solvers.exponentiated_gradient import SequenceExponentiatedGradient
from tests.reference.chains import labellings, scores_of_all
from tests.sequences.cases import TINY_OPTIMUM, TINY_WEIGHTS, feature_map, inconsistency, ragged, tiny


def laws(problem, state):
    """The joint law of every sequence, by enumeration from its potentials."""
    out = []
    for i, potentials in enumerate(problem.data.split(state.potentials)):
        scores = scores_of_all(potentials, state.pair_potentials[i])
        powers = np.exp(scores - scores.max())
        out.append(powers / powers.sum())
    return out


def features_of(problem, i):
    """``F(x_i, y)`` of all labellings, and of the right one."""
    every = labellings(int(problem.data.lengths[i]), problem.n_labels)
    gold = problem.data.split(problem.labels)[i]
    return np.array([feature_map(problem, i, y) for y in every]), feature_map(problem, i, gold)


def weights_of(problem, joint):
    """``w(alpha)``, the obvious way."""
    total = np.zeros(problem.shape)
    for i, law in enumerate(joint):
        features, gold = features_of(problem, i)
        total += gold - np.tensordot(law, features, axes=1)
    return total / (problem.l2 * problem.n_terms)


def dual(problem, joint):
    """``D(alpha)``, the obvious way."""
    w = weights_of(problem, joint)
    entropy = np.mean([entr(law).sum() for law in joint])
    return entropy - problem.l2 / 2 * np.sum(w**2)


@pytest.mark.parametrize("step", [0.5, 0.1])
def test_an_update_is_exponentiated_gradient_ascent_on_the_dual(step):
    """``alpha^(1 - eta) beta^eta``, and ``alpha exp(eta n grad D)`` with the gradient by finite differences."""
    data = ragged(np.random.default_rng(0), n=1, labels=2, attributes=3, longest=3)
    longer = SequenceData(np.random.default_rng(1).normal(size=(3, 2)), [0, 3], [0, 1, 1])
    for problem in (ChainProblem(data, 2, l2=2.0), ChainProblem(longer, 2, l2=20.0)):
        solver = SequenceExponentiatedGradient(step_size=step, potential=1.5)
        state = solver.init(problem, None, 0)
        before = laws(problem, state)
        w = weights_of(problem, before)
        assert_allclose(state.x, w, atol=1e-14)
        state = solver.step(problem, state)
        assert state.counters[1] == 0  # the first trial was taken
        after = laws(problem, state)[0]

        features, gold = features_of(problem, 0)
        scores = np.tensordot(features - gold, w, axes=2)
        beta = np.exp(scores) / np.exp(scores).sum()
        mixed = before[0] ** (1 - step) * beta**step
        assert_allclose(after, mixed / mixed.sum(), rtol=1e-12)

        gradient = np.empty(len(beta))
        for y in range(len(beta)):
            ends = []
            for sign in (1, -1):
                law = before[0].copy()
                law[y] += sign * 1e-6
                # w(alpha) as a linear map: the label's features count once, however much mass there is.
                ends.append(_dual_of_mass(problem, law, features, gold))
            gradient[y] = problem.n_terms * (ends[0] - ends[1]) / 2e-6
        ascent = before[0] * np.exp(step * gradient)
        assert_allclose(after, ascent / ascent.sum(), rtol=1e-6)
        assert_allclose(state.x, weights_of(problem, [after]), atol=1e-13)


def _dual_of_mass(problem, law, features, gold):
    w = np.tensordot(law, gold - features, axes=1) / (problem.l2 * problem.n_terms)
    return entr(law).sum() / problem.n_terms - problem.l2 / 2 * np.sum(w**2)


def test_invariants_at_every_epoch():
    """The dual never falls; weights, counts and entropies are those of the potentials; weak duality holds."""
    rng = np.random.default_rng(2)
    for bias in (True, False):
        problem = ChainProblem(ragged(rng, n=9, longest=4), 3, bias=bias)
        optimum = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-13, max_steps=1000).value
        solver = SequenceExponentiatedGradient()
        state, last = solver.init(problem, None, 0), -np.inf
        for _ in range(40):
            state = solver.step(problem, state)
            mu = solver.marginals(problem, state)
            assert inconsistency(problem, mu) < 1e-12
            assert_allclose(mu.nodes, state.nodes, atol=1e-12)
            assert_allclose(problem.residual(mu) / problem.l2, state.x, atol=1e-11)
            assert_allclose(problem.entropies(mu), state.entropies, atol=1e-11)
            found = solver.measure(problem, state)
            assert_allclose(found["dual"], dual(problem, laws(problem, state)), atol=1e-11)
            assert last - 1e-12 <= found["dual"] <= optimum + 1e-11
            assert found["value"] >= optimum - 1e-11
            last = found["dual"]


def test_the_optimum_of_the_tiny_problem():
    result = optim.run(SequenceExponentiatedGradient(), tiny(), np.zeros((7, 2)), tol=1e-11, rng=0, max_steps=3000)
    assert result.status == "converged"
    assert_allclose(result.value, TINY_OPTIMUM, rtol=1e-10)
    assert_allclose(result.x, TINY_WEIGHTS, atol=1e-5)


def test_the_optimum_of_random_problems():
    for seed, settings in ((0, {}), (1, {"l2": 0.02}), (2, {"l2": 3.0, "bias": False})):
        problem = ChainProblem(ragged(np.random.default_rng(seed), n=20), 3, **settings)
        start = np.zeros(problem.shape)
        expected = optim.run(SequenceLBFGS(), problem, start, tol=1e-13, max_steps=1000)
        result = optim.run(SequenceExponentiatedGradient(), problem, start, tol=1e-8, rng=0, max_steps=5000, every=10)
        assert result.status == "converged"
        assert abs(result.value - expected.value) <= 1e-6
        ours, theirs = result.certificate, expected.certificate
        assert -theirs.upper <= result.value - expected.value <= ours.upper
        assert np.linalg.norm(result.x - expected.x) <= ours.details["|w - w*|"] + theirs.details["|w - w*|"]
        assert_allclose(result.certificate.bound, result.trace.bound[-1], atol=1e-10)
        updates, calls = result.trace["updates"][-1], result.trace["oracle_calls"][-1]
        assert updates == 20 * result.work
        assert calls == updates + result.trace["line_search_evaluations"][-1]
        assert calls <= 1.5 * updates


def test_the_same_seed_gives_the_same_answer(tmp_path):
    problem = ChainProblem(ragged(np.random.default_rng(3), n=15), 3)
    start = np.zeros(problem.shape)
    whole = optim.run(SequenceExponentiatedGradient(), problem, start, tol=None, max_steps=8, rng=1)
    optim.run(
        SequenceExponentiatedGradient(), problem, start, tol=None, max_steps=3, rng=1, checkpoint=tmp_path / "run.npz"
    )
    resumed = optim.run(
        SequenceExponentiatedGradient(), problem, start, tol=None, max_steps=8, rng=1, checkpoint=tmp_path / "run.npz"
    )
    assert np.array_equal(whole.x, resumed.x)
    assert not np.array_equal(
        whole.x, optim.run(SequenceExponentiatedGradient(), problem, start, tol=None, max_steps=8, rng=2).x
    )


def test_strange_data():
    rng = np.random.default_rng(4)
    for labels, attributes, longest, scale in ((1, 2, 3, 1.0), (2, 0, 3, 1.0), (3, 2, 1, 1.0), (2, 2, 4, 300.0)):
        data = ragged(rng, n=5, labels=labels, attributes=attributes, longest=longest, scale=scale)
        problem = ChainProblem(data, labels)
        result = optim.run(
            SequenceExponentiatedGradient(), problem, np.zeros(problem.shape), tol=1e-6, max_steps=200, rng=0
        )
        best = optim.run(SequenceLBFGS(), problem, np.zeros(problem.shape), tol=1e-12, max_steps=1000)
        assert np.all(np.isfinite(result.x))
        assert result.value - best.value <= result.certificate.upper + 1e-10


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="at most 1"):
        SequenceExponentiatedGradient(step_size=1.5)
    with pytest.raises(ValueError, match="not negative"):
        SequenceExponentiatedGradient(potential=-1.0)
    with pytest.raises(ValueError, match="l1 must be 0"):
        SequenceExponentiatedGradient().init(tiny(l1=0.1), None, 0)
