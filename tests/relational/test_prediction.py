"""Leave-one-out predictions: published digits, enumeration, both networks by hand, and what is flagged."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from cumulant.relational import Network, SmokersModel, fit_em, loo_scores, predict_attribute, predict_tie
from tests.reference import relational as reference
from tests.relational.networks import READINGS, STUDY, T3, THETA, extreme_theta, random_network

# Published numbers ----------------------------------------------------------------------------------------------------


def test_three_people():
    """Check 8."""
    found = loo_scores(SmokersModel(THETA), T3, method="exact")
    assert_allclose(found.attributes, (0.701375, 0.543214, 0.453958), rtol=0, atol=5e-7)
    assert found.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert_allclose(found.ties, (0.631267, 0.198373, 0.193535), rtol=0, atol=5e-7)
    assert found.observed_attributes.tolist() == [True, True, False]
    assert found.observed_ties.tolist() == [True, True, False]


@pytest.mark.parametrize("method", ["exact", "loopy", "double_loop"])
def test_everybody_independent(method):
    """Check 15: odds 3/7 * .7/.2 * .2/.1 = 3, by messages too; and the formula on a large network."""
    model = SmokersModel((1.0, *THETA[1:]))
    assert_allclose(predict_attribute(model, T3, 0, method=method), 0.75, atol=1e-9)
    net = random_network(30, np.random.default_rng(0), 0.3)
    theta, s = model.theta, net.attribute.astype(int)
    for x in (0, 7):
        odds = np.log(theta[7] / (1 - theta[7]))
        for y in range(30):
            if y != x:
                with_it, without = theta[1 + 1 + s[y]], theta[1 + s[y]]
                odds += np.log(with_it / without if net.ties[x, y] else (1 - with_it) / (1 - without))
        assert_allclose(predict_attribute(model, net, x, method=method), expit(odds), atol=1e-8)


@pytest.mark.parametrize("method", ["exact", "loopy", "double_loop"])
def test_nobody_independent(method):
    """Check 15: theta_10 and theta_6, whatever is observed."""
    model = SmokersModel((0.0, *THETA[1:]))
    for net in (T3, random_network(7, np.random.default_rng(0), 0.5)):
        found = loo_scores(model, net, method=method)
        assert_allclose(found.attributes, THETA[10], atol=1e-9)
        assert_allclose(found.ties, THETA[6], atol=1e-9)


# Independent references -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("seed", range(3))
def test_exact_predictions_in_exact_arithmetic(influence, seed):
    """Extreme probabilities too: the odds are a ratio of two sums of fractions."""
    rng = np.random.default_rng(seed)
    theta, net = extreme_theta(rng, 0.4), random_network(4, rng, 0.6)
    found = loo_scores(SmokersModel(theta, influence), net, method="exact")

    def chance(with_it, without):
        values = [
            reference.log_likelihood(theta, *reference.observed(n), influence == "ordered") for n in (with_it, without)
        ]
        return expit(values[0] - values[1])

    for x, p in enumerate(found.attributes):
        assert_allclose(p, chance(net.with_attribute(x, True), net.with_attribute(x, False)), rtol=1e-9, atol=1e-12)
    for (x, y), p in zip(found.pairs, found.ties, strict=True):
        assert_allclose(p, chance(net.with_tie(x, y, True), net.with_tie(x, y, False)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize(("method", "tolerance"), [("loopy", 1e-7), ("double_loop", 1e-5)])
def test_messages_are_those_of_both_networks(influence, method, tolerance):
    """The changed network inside of the kernel is the one that Python makes, with its own cold start."""
    model = SmokersModel(STUDY, influence)
    net = model.sample(15, 3)
    found = loo_scores(model, net, method=method)
    assert found.converged

    def value(changed):
        return model.posterior(changed, method, pairs=False).log_likelihood

    for x, p in enumerate(found.attributes):
        expected = expit(value(net.with_attribute(x, True)) - value(net.with_attribute(x, False)))
        assert_allclose(p, expected, atol=tolerance)
    for (x, y), p in zip(found.pairs[::4], found.ties[::4], strict=True):
        expected = expit(value(net.with_tie(x, y, True)) - value(net.with_tie(x, y, False)))
        assert_allclose(p, expected, atol=tolerance)


def test_messages_are_near_the_exact_answer():
    model = SmokersModel(STUDY)
    net = model.sample(12, 1)
    exact, found = (loo_scores(model, net, method=name) for name in ("exact", "loopy"))
    assert np.abs(exact.attributes - found.attributes).max() < 0.1
    assert np.abs(exact.ties - found.ties).max() < 0.1


def test_what_is_observed_of_the_query_does_not_count():
    """Predictions of the network with and without the observation agree."""
    model = SmokersModel(STUDY)
    net = model.sample(14, 6)
    for method, off in (("exact", 1e-12), ("loopy", 1e-7), ("double_loop", 1e-5)):
        for x in (0, 5):
            pair = [predict_attribute(model, net.with_attribute(x, v), x, method=method) for v in (True, False)]
            assert abs(pair[0] - pair[1]) < off
        pair = [predict_tie(model, net.with_tie(2, 9, v), 2, 9, method=method) for v in (True, False)]
        assert abs(pair[0] - pair[1]) < off


def test_the_order_of_a_pair_does_not_count():
    model, net = SmokersModel(STUDY, "ordered"), SmokersModel(STUDY).sample(10, 2)
    found = loo_scores(model, net, people=[], pairs=[(2, 7), (7, 2)]).ties
    assert_allclose(found[0], found[1], atol=1e-9)
    assert_allclose(predict_tie(model, net, 7, 2), found[0])


def test_threads_do_not_change_the_answer():
    model, net = SmokersModel(STUDY), SmokersModel(STUDY).sample(20, 2)
    one, two = (loo_scores(model, net, n_jobs=jobs) for jobs in (1, 2))
    assert (one.attributes == two.attributes).all()
    assert (one.ties == two.ties).all()


# Messages that do not settle ------------------------------------------------------------------------------------------


def test_predictions_of_messages_that_did_not_settle_are_flagged():
    model = SmokersModel(STUDY)
    net = model.sample(30, 0)
    found = loo_scores(model, net, max_sweeps=3)
    assert not found.converged
    assert not found.attributes_converged.any()
    assert not found.ties_converged.any()
    for call in (lambda **o: predict_attribute(model, net, 0, **o), lambda **o: predict_tie(model, net, 0, 1, **o)):
        with pytest.warns(ConvergenceWarning, match="did not settle: the probability is not to be relied on"):
            call(max_sweeps=3)
        with pytest.warns(ConvergenceWarning):
            call(method="double_loop", max_sweeps=2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call()


def test_damping_does_not_make_predictions_converge():
    model = SmokersModel(STUDY)
    assert not loo_scores(model, model.sample(20, 0), damping=1 - 1e-12).attributes_converged.any()


@pytest.mark.parametrize("influence", READINGS)
def test_extreme_probabilities_give_numbers(influence):
    """Probabilities, flagged where messages did not settle; on networks of one person they are exact."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        theta = extreme_theta(rng, 0.7)
        net = random_network(5, rng, rng.choice([0.4, 1.0]))
        found = loo_scores(SmokersModel(theta, influence), net)
        for values in (found.attributes, found.ties):
            assert ((values >= 0) & (values <= 1)).all()
        alone = predict_attribute(SmokersModel(theta), Network([1], [[0]]), 0)
        assert_allclose(alone, theta[0] * theta[7] + (1 - theta[0]) * theta[10], rtol=1e-9)


# Input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["loopy", "double_loop", "exact"])
def test_nothing_asked_is_nothing_answered(method):
    found = loo_scores(SmokersModel(THETA), T3, people=[], pairs=[], method=method)
    assert (found.attributes.size, found.ties.size, found.converged) == (0, 0, True)
    assert loo_scores(SmokersModel(THETA), Network([1], [[0]]), method=method).ties.size == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"people": [3]}, ValueError, "people must be people from 0 to 2; got 3 to 3"),
        ({"people": [-1]}, ValueError, "people must be people from 0 to 2; got -1"),
        ({"people": [0.5]}, ValueError, "people must be whole numbers"),
        ({"people": [[0]]}, ValueError, "people must be whole numbers of shape"),
        ({"pairs": [(1, 1)]}, ValueError, "pairs must be of two different people"),
        ({"pairs": [(0, 3)]}, ValueError, "pairs must be people from 0 to 2"),
        ({"pairs": [0, 1]}, ValueError, r"pairs must be whole numbers of shape \(pairs, 2\)"),
        ({"method": "gibbs"}, ValueError, "method must be one of 'loopy', 'double_loop', 'exact'"),
        ({"damping": 1.0}, ValueError, "damping must be at least 0 and below 1"),
        ({"max_sweeps": 0}, ValueError, "max_sweeps must be a whole number"),
        ({"tol": np.nan}, ValueError, "tol must be finite"),
    ],
)
def test_questions_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        loo_scores(SmokersModel(THETA), T3, **options)


def test_a_fit_predicts_better_than_the_base_rate():
    """People of the model whose rules are known: the log-loss of learned rules is below that of the frequency."""
    model, rng = SmokersModel((0.9, *STUDY[1:])), np.random.default_rng(0)
    nets = [model.sample(30, rng) for _ in range(6)]
    fitted = fit_em(nets[:3], max_iter=30).model
    losses, base = [], []
    for net in nets[3:]:
        p, rate = loo_scores(fitted, net, pairs=[]).attributes, nets[0].attribute.mean()
        losses += np.where(net.attribute, -np.log(p), -np.log1p(-p)).tolist()
        base += np.where(net.attribute, -np.log(rate), -np.log1p(-rate)).tolist()
    assert np.mean(losses) < 0.6 * np.mean(base)
