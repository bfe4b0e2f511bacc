"""Draws of the probabilities: against weighted draws of the prior, moves that must keep their distribution, and use."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln

from cumulant.particles.bridges import Population
from cumulant.particles.temperatures import Temperatures
from cumulant.relational import Network, SmokersModel, SocialInfluence, fit_em, frequency_prior, sample_parameters
from cumulant.relational.annealing import NetworkBridge
from cumulant.relational.parameters import Settings
from cumulant.relational.prediction import loo_scores
from tests.reference import relational as reference
from tests.relational.networks import READINGS, STUDY, T3, random_network

PAIR = Network.from_edges([1, 0], [(0, 1)])


def joint(theta, nets, states, ordered):
    """``p(networks, z | theta)`` for rows of probabilities, by the definition."""
    return np.prod([reference.joint(theta.T, *reference.observed(net), z, ordered)
                    for net, z in zip(nets, states, strict=True)], axis=0)  # fmt: skip


@pytest.mark.parametrize("influence", READINGS)
def test_evidence_and_mean_against_weighted_draws_of_the_prior(influence):
    """Two networks together; within five standard errors of both sides."""
    nets, rng = [T3, PAIR], np.random.default_rng(0)
    theta = rng.beta(4, 4, (50_000, 14))
    weights = np.prod([
        sum(joint(theta, [net], [z], influence == "ordered") for z in np.ndindex((2,) * net.n_people)) for net in nets
    ], axis=0)  # fmt: skip
    found = sample_parameters(nets, 2000, 10, influence=influence, rng=1)
    error = np.hypot(found.log_partition_error, weights.std() / weights.mean() / np.sqrt(len(theta)))
    assert abs(found.log_partition() - np.log(weights.mean())) < 5 * error < 0.1
    assert found.certificate.lower <= np.log(weights.mean())
    mean = weights @ theta / weights.sum()
    assert (np.abs(found.draws.mean("theta") - mean) < 5 * theta.std(axis=0) / np.sqrt(found.ess)).all()
    assert np.abs(mean - 0.5).max() > 0.03  # there is something to be found


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("t", [0.3, 1.0])
def test_moves_keep_their_distribution(influence, t):
    """Exact draws of ``p(theta, z) p(T3 | theta, z)^t`` are still that after three moves: means, squares, products."""
    rng, size = np.random.default_rng(5), 20_000
    prior = np.linspace(2.0, 6.0, 14), np.linspace(5.0, 3.0, 14)
    theta = rng.beta(*prior, (size, 14))
    states = rng.random((size, 3)) < theta[:, :1]
    weights = np.zeros(size)
    for z in np.ndindex(2, 2, 2):
        mine = (states == z).all(axis=1)
        own = theta[mine, 0, None] * z + (1 - theta[mine, 0, None]) * (1 - np.array(z))
        weights[mine] = (joint(theta[mine], [T3], [z], influence == "ordered") / own.prod(axis=1)) ** t
    chosen = rng.choice(size, size, p=weights / weights.sum())
    bridge = NetworkBridge((T3,), Settings(*prior, {}, influence), Temperatures.of(10, None), sweeps=3)
    before = theta[chosen], np.zeros(size), (states[chosen].astype(np.int64),)
    after, energies, (z,) = bridge.move(Population(before, np.zeros(size), 0.0, 1, 7, t))
    assert (after != before[0]).mean(axis=0).min() > 0.5  # of all probabilities

    def moments(theta, z):
        s = z.sum(axis=1)
        return np.column_stack([theta, theta**2, theta * s[:, None], z, theta[:, 8] * theta[:, 12]])

    one, two = moments(before[0], states[chosen]), moments(after, z)
    error = np.sqrt((one.var(axis=0) / (weights.sum() ** 2 / (weights**2).sum())) + two.var(axis=0) / size)
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 4.5 * error).all()
    for i in (0, 1, 2):  # and the energies are those of the particles
        own = after[i, 0] ** z[i].sum() * (1 - after[i, 0]) ** (3 - z[i].sum())
        assert_allclose(energies[i], np.log(joint(after[i : i + 1], [T3], [z[i]], influence == "ordered")[0] / own))


@pytest.mark.parametrize("independent", [0.0, 1.0])
def test_where_nothing_is_hidden_the_posterior_is_known(independent):
    """Beta distributions, and the evidence a product of Beta functions, at thirty people."""
    net = SmokersModel(STUDY).sample(30, 0)
    found = sample_parameters(net, 500, fixed={"independent": independent}, rng=0)
    counts = SmokersModel((independent, *STUDY[1:])).posterior(net).counts
    rules = [1, 2, 3, 7] if independent else [6, 10]
    a, b = 4.0 + counts.successes[rules], 4.0 + (counts.trials - counts.successes)[rules]
    evidence = (betaln(a, b) - betaln(4.0, 4.0)).sum()
    assert abs(found.log_partition() - evidence) < 5 * found.log_partition_error < 2.0
    spread = np.sqrt(a * b / (a + b + 1)) / (a + b)
    assert (np.abs(found.draws.mean("theta")[rules] - a / (a + b)) < 6 * spread / np.sqrt(found.ess)).all()
    squares = found.expect(lambda theta: (theta[:, rules] - a / (a + b)) ** 2)
    assert_allclose(np.sqrt(squares), spread, rtol=0.25)


def test_seeds_decide_and_threads_do_not():
    one, two, other = (sample_parameters(T3, 50, 5, rng=seed, n_jobs=jobs) for seed, jobs in ((1, 1), (1, 2), (2, 1)))
    assert (one.draws.values == two.draws.values).all()
    assert one.log_partition() == two.log_partition() != other.log_partition()


def test_what_is_fixed_stays():
    found = sample_parameters([T3], 50, 5, fixed={"independent": 1.0, 8: 0.3}, rng=0)
    assert (found.draws["theta"][..., [0, 8]] == (1.0, 0.3)).all()
    assert np.ptp(found.draws["theta"][..., 9]) > 0.1


def test_a_path_that_was_chosen_has_no_certificate_without_a_pilot():
    assert sample_parameters(T3, 50, rng=0).certificate is None
    found = sample_parameters(T3, 50, rng=0, pilot=True)
    assert found.certificate.verify(found.subject).lower == found.certificate.lower


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 0.5}, "alpha must be finite and at least 1; got 0.5"),
        ({"beta": [4.0] * 13}, r"beta must be a number or 14 of them; got shape \(13,\)"),
        ({"fixed": {"smokes": 0.5}}, "a key of fixed must be one of"),
        ({"influence": "x"}, "influence must be one of"),
        ({"sweeps": 0}, "sweeps must be a whole number"),
    ],
)
def test_arguments_are_checked(options, words):
    with pytest.raises(ValueError, match=words):
        sample_parameters(T3, 10, **options)


# Priors ---------------------------------------------------------------------------------------------------------------


def test_priors_with_their_modes_at_frequencies():
    net = Network.from_edges([1, 0, 0, 0], [(0, 1), (1, 2)])
    alpha, beta = frequency_prior([net, net], 8.0)
    assert_allclose(alpha + beta, 10.0)
    mode = (alpha - 1) / 8
    assert_allclose(mode[1:7], 5 / 14)
    assert_allclose(mode[[7, 10, 11, 12, 13]], 3 / 10)
    assert_allclose(mode[[0, 8, 9]], 0.5)
    with pytest.raises(ValueError, match="trials must be a positive number or 14 of them"):
        frequency_prior(net, 0.0)


def test_each_rule_has_its_own_prior():
    """With everybody independent the mode has a closed form; rules without data are at that of their prior."""
    net = random_network(12, np.random.default_rng(0))
    alpha, beta = np.linspace(2.0, 5.0, 14), np.linspace(6.0, 3.0, 14)
    theta = fit_em(net, alpha=alpha, beta=beta, fixed={0: 1.0}, max_iter=2, tol=0.0).theta
    assert_allclose(theta[7], (alpha[7] - 1 + net.attribute.sum()) / (alpha[7] + beta[7] - 2 + 12))
    assert_allclose(theta[10:], ((alpha - 1) / (alpha + beta - 2))[10:])


# The estimator --------------------------------------------------------------------------------------------------------


def test_an_estimator_that_averages(tmp_path):
    net = SmokersModel(STUDY).sample(12, 3).without_latents()
    model = SocialInfluence(prior="frequencies", n_draws=4, random_state=0).fit(net)
    assert model.draws_.shape == (4, 14)
    models = [SmokersModel(theta) for theta in model.draws_]
    scores = [loo_scores(each, net) for each in models]
    assert_allclose(model.predict_attribute(net), np.mean([each.attributes for each in scores], axis=0))
    assert_allclose(model.predict_tie(net)[tuple(net.pairs.T)], np.mean([each.ties for each in scores], axis=0))
    assert_allclose(
        list(model.influence_[0].values()), np.mean([each.posterior(net).independence for each in models], axis=0)
    )
    expected = np.log(np.where(net.attribute, model.predict_attribute(net), 1 - model.predict_attribute(net))).mean()
    assert_allclose(model.score(net), expected)
    assert set(model.sways_of(net)) == {tuple(each) for each in np.argwhere(net.ties).tolist()}
    again = SocialInfluence.load(model.save(tmp_path / "model"))
    assert_allclose(again.predict_attribute(net), model.predict_attribute(net))
    assert again.evidence_ == model.evidence_ < 0
    assert SocialInfluence(n_draws=0).fit(net).draws_ is None
    with pytest.raises(ValueError, match="prior must be one of 'same', 'frequencies'"):
        SocialInfluence(prior="flat").fit(net)
