"""Markov logic: pseudo-likelihood against the joint distribution by enumeration, its gauge, its certificate."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant.errors import CertificateError
from cumulant.relational.markov_logic import FEATURES, MarkovLogic
from cumulant.relational.network import Network
from cumulant.relational.temporal import TemporalProcess

ALL = tuple(FEATURES)


@pytest.fixture(scope="module")
def nets():
    return [TemporalProcess(20).run(rng=seed)[0] for seed in range(3)]


def _counts(s, f):
    """The features of one network, counted."""
    n, found = s.size, dict.fromkeys(ALL, 0)
    found["attribute"] = int(s.sum())
    for x, y in itertools.combinations(range(n), 2):
        kind = int(s[x]) + int(s[y])
        found[("tie_neither", "tie_one", "tie_both")[kind]] += int(f[x, y])
        if kind:
            found[("pair_one", "pair_both")[kind - 1]] += 1
    for x, y, z in itertools.combinations(range(n), 3):
        found["triangle"] += int(f[x, y] and f[y, z] and f[x, z])
    return np.array([found[name] for name in ALL], float)


def test_conditionals_are_those_of_the_joint_distribution():
    """Each logit is the change of w . N(s, f) when one atom is switched on."""
    rng = np.random.default_rng(0)
    model = MarkovLogic(ALL)
    w = rng.normal(size=len(ALL))
    model.weights_ = dict(zip(ALL, w, strict=True))
    f = np.triu(rng.random((6, 6)) < 0.5, 1)
    net = Network(rng.integers(0, 2, 6), f | f.T)

    def log_odds(on, off):
        return w @ (_counts(on.attribute, on.ties) - _counts(off.attribute, off.ties))

    for x in range(6):
        expected = log_odds(net.with_attribute(x, True), net.with_attribute(x, False))
        assert_allclose(model.predict_attribute(net)[x], 1 / (1 + np.exp(-expected)))
    for x, y in itertools.combinations(range(6), 2):
        expected = log_odds(net.with_tie(x, y, True), net.with_tie(x, y, False))
        assert_allclose(model.predict_tie(net)[x, y], 1 / (1 + np.exp(-expected)))
        assert_allclose(model.predict_tie(net, [(y, x)]), 1 / (1 + np.exp(-expected)))


def test_gradient_by_finite_differences(nets):
    """Check 24, first half."""
    model = MarkovLogic(ALL)
    w = np.random.default_rng(1).normal(0, 0.3, len(ALL))
    step = 1e-5 * np.eye(len(ALL))
    numeric = [
        (model.log_pseudo_likelihood(nets, w + e) - model.log_pseudo_likelihood(nets, w - e)) / 2e-5 for e in step
    ]
    assert_allclose(model.gradient(nets, w), numeric, rtol=1e-6, atol=1e-5)


def test_equal_pair_weights_predict_the_base_rate(nets):
    """Check 24, second half: ties then say nothing of habits."""
    net = nets[0]
    model = MarkovLogic(("attribute", "tie_neither", "tie_one", "tie_both"))
    model.weights_ = {"attribute": -0.7, "tie_neither": 0.3, "tie_one": 0.3, "tie_both": 0.3}
    assert_allclose(model.predict_attribute(net), 1 / (1 + np.exp(0.7)))
    alone = MarkovLogic(("attribute",), l2=1e-9).fit(nets)
    rate = np.concatenate([each.attribute for each in nets]).mean()
    assert_allclose(alone.predict_attribute(net), rate, atol=1e-5)


def test_the_gauge(nets):
    """3.10, corrected: along (-(n - 1), 1, 2) no conditional changes in networks of n people."""
    model = MarkovLogic(ALL)
    w = np.random.default_rng(2).normal(size=len(ALL))
    shift = np.zeros(len(ALL))
    shift[[ALL.index("attribute"), ALL.index("pair_one"), ALL.index("pair_both")]] = -19, 1, 2
    rows = model.rows(nets)
    assert_allclose(rows.X @ shift, 0.0, atol=1e-12)
    assert_allclose(model.log_pseudo_likelihood(nets, w), model.log_pseudo_likelihood(nets, w + 3 * shift), rtol=1e-12)
    full = np.linalg.matrix_rank(MarkovLogic().rows(nets).X)
    assert full == len(MarkovLogic()._features())  # the default weights are all determined


def test_the_fit_is_the_minimum_and_is_certified(nets):
    model = MarkovLogic(l2=0.01).fit(nets)
    n = model.n_atoms_
    assert n == 3 * (20 + 190)
    best = minimize(
        lambda w: -model.log_pseudo_likelihood(nets, w) / n + 0.005 * w @ w,
        np.zeros(4),
        jac=lambda w: -model.gradient(nets, w) / n + 0.01 * w,
        tol=1e-12,
    )
    fitted = np.array(list(model.weights_.values()))
    assert_allclose(fitted, best.x, atol=1e-4)
    value = -model.log_pseudo_likelihood_ / n + 0.005 * fitted @ fitted
    assert_allclose(value, best.fun, atol=1e-9)
    assert model.status_ == "converged"
    assert model.certificate_.upper < 1e-9
    assert model.verify(nets).upper < 1e-9
    with pytest.raises((CertificateError, ValueError)):
        model.verify(nets[:2])


def test_habits_of_friends_are_learned(nets):
    model = MarkovLogic().fit(nets)
    weights = model.weights_
    assert weights["tie_both"] > weights["tie_one"]
    assert weights["tie_neither"] > weights["tie_one"]
    more = MarkovLogic((*model._features(), "triangle")).fit(nets)
    assert more.weights_["triangle"] > 0
    assert more.log_pseudo_likelihood_ > model.log_pseudo_likelihood_


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda nets: MarkovLogic("triangle").fit(nets), "features must be a list of different names"),
        (lambda nets: MarkovLogic(["triangles"]).fit(nets), "each of features must be one of 'attribute'"),
        (lambda nets: MarkovLogic(l2=0.0).fit(nets), "l2 must be positive"),
        (lambda nets: MarkovLogic().fit([]), "at least one Network"),
        (lambda nets: MarkovLogic().fit([Network([1], [[0]])]), "every attribute and every tie is 1"),
        (lambda nets: MarkovLogic().fit(nets).predict_tie(nets[0], [(1, 1)]), "pairs must be of two different people"),
        (lambda nets: MarkovLogic().fit(nets).predict_tie(nets[0], [(-1, 1)]), "pairs must be people from 0 to 19"),
        (lambda nets: MarkovLogic().fit(nets).predict_tie(nets[0], [(0.5, 1)]), "pairs must be whole numbers"),
        (lambda nets: MarkovLogic().gradient(nets, [1.0]), "weights must have one entry for each of attribute"),
    ],
)
def test_refusals(nets, call, words):
    with pytest.raises(ValueError, match=words):
        call(nets)
