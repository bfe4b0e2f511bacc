"""Expectation maximisation: exact ascent and its certificate, fixed points, published recovery, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlog1py, xlogy

from cumulant.errors import CertificateError, TooWide
from cumulant.relational import Network, SmokersModel, fit_em
from tests.reference import relational as reference
from tests.relational.networks import READINGS, STUDY, T3, THETA, random_network


def samples(number, n, theta=STUDY, seed=0, influence="independent"):
    model, rng = SmokersModel(theta, influence), np.random.default_rng(seed)
    return [model.sample(n, rng).without_latents() for _ in range(number)]


def log_posterior(theta, nets, ordered=False, alpha=4.0, beta=4.0):
    """By enumeration, with the prior up to its constant."""
    value = sum(
        np.log(sum(
            reference.joint(theta.tolist(), *reference.observed(net), z, ordered)
            for z in np.ndindex((2,) * net.n_people)
        ))
        for net in nets
    )  # fmt: skip
    return value + (xlogy(alpha - 1, theta) + xlog1py(beta - 1, -theta)).sum()


# Exact E-steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
def test_exact_em_never_falls(influence):
    """Check 13: 20 networks of five people, 25 iterations; the objective is that of the enumeration."""
    nets = samples(20, 5, influence=influence)
    result = fit_em(nets, e_step="exact", influence=influence, max_iter=25, tol=0.0)
    assert len(result.history) == 26
    assert np.diff(result.history).min() > -1e-9
    assert ((result.theta > 0) & (result.theta < 1)).all()
    for k in (0, 7, 25):
        assert_allclose(result.history[k], log_posterior(result.thetas[k], nets, influence == "ordered"), atol=1e-9)
    certificate = result.certificate
    assert certificate.verify(result.subject).upper == certificate.upper
    rise = log_posterior(result.theta, nets, influence == "ordered") - log_posterior(
        result.thetas[0], nets, influence == "ordered"
    )
    assert -certificate.upper <= rise <= -certificate.upper + 2 * certificate.slack + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_exact_em_never_falls_from_extreme_starts(seed):
    """Starts near 0 and 1, dense networks that the model did not make, priors that hardly count."""
    rng = np.random.default_rng(seed)
    nets = [random_network(6, rng, density) for density in (0.2, 0.6, 1.0)]
    start = np.where(rng.random(14) < 0.5, 1e-9, 1 - 1e-9)
    result = fit_em(nets, e_step="exact", start=start, alpha=1.01, beta=1.01, max_iter=60, tol=0.0)
    scale = np.abs(result.history).max()
    assert np.diff(result.history).min() > -1e-12 * scale - 1e-9
    truth = log_posterior(result.thetas[0], nets, alpha=1.01, beta=1.01) - log_posterior(
        result.theta, nets, alpha=1.01, beta=1.01
    )
    assert truth <= result.certificate.upper


def test_the_first_update_of_three_people():
    """Check 9: Beta(4, 4)."""
    result = fit_em(T3, e_step="exact", start=THETA, max_iter=1, tol=0.0)
    assert_allclose(result.thetas[1][[0, 1, 3, 12]], (0.560908, 0.5, 0.536452, 0.525170), rtol=0, atol=6e-7)


def test_a_certificate_of_another_fit_is_refused():
    nets = samples(3, 6)
    result = fit_em(nets, e_step="exact", max_iter=5)
    worse = replace(result, model=SmokersModel(np.full(14, 0.01)))
    with pytest.raises(CertificateError, match="does not hold"):
        result.certificate.verify(worse.subject)
    with pytest.raises(CertificateError, match="does not hold"):
        result.certificate.verify(replace(result, nets=samples(3, 6, seed=9)).subject)


def test_more_than_twenty_people_are_exact_where_one_z_is_possible():
    """They were refused: the certificate asked for 20 people although there was one state."""
    net = samples(1, 40)[0]
    result = fit_em(net, e_step="exact", fixed={"independent": 1.0})
    assert result.status == "stationary"
    assert result.certificate.verify(result.subject).upper < 0
    with pytest.raises(TooWide):
        fit_em(net, e_step="exact")


# Messages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e_step", ["loopy", "double_loop", "exact"])
@pytest.mark.parametrize("influence", READINGS)
def test_fixed_points_are_stationary(e_step, influence):
    """``counts.gradient(theta) + (alpha - 1) / theta - (beta - 1) / (1 - theta) = 0`` at the end."""
    nets = samples(4, 8, influence=influence)
    result = fit_em(nets, e_step=e_step, influence=influence, max_iter=3000, tol=1e-13)
    theta = result.theta
    gradient = result.counts.gradient(theta) + 3 / theta - 3 / (1 - theta)
    scale = (result.counts.trials + 6) / (theta * (1 - theta))
    assert result.status == "stationary"
    assert np.abs(gradient / scale).max() < 1e-5
    assert_allclose(result.model.posterior(nets[0], e_step).log_likelihood,
                    SmokersModel(theta, influence).posterior(nets[0], e_step).log_likelihood)  # fmt: skip


def test_both_messages_learn_the_same():
    nets = samples(4, 20)
    found = [fit_em(nets, e_step=name, max_iter=30, tol=0.0).theta for name in ("loopy", "double_loop")]
    assert_allclose(*found, atol=1e-4)


@pytest.mark.slow
def test_recovery():
    """Check 20: 8 networks of 50 people, 40 iterations; rules 11 and 13 have few data.

    The published 0.08 is that of one run. Single runs miss it (rule 10, with 40 trials, by 0.18); the mean of six does
    not.
    """
    chosen = [*range(11), 12]
    runs = [fit_em(samples(8, 50, seed=seed), max_iter=40, tol=0.0) for seed in range(6)]
    off = np.array([run.theta - np.array(STUDY) for run in runs])[:, chosen]
    assert all(run.e_steps_converged for run in runs)
    assert np.abs(off[0]).max() < 0.08
    assert np.abs(off.mean(axis=0)).max() < 0.08
    assert (np.abs(off) < 0.08).mean() > 0.8


def test_what_did_not_settle_is_not_called_converged():
    """Two sweeps are too few: EM goes on to its last iteration, and says why."""
    nets = samples(3, 30)
    result = fit_em(nets, max_iter=60, tol=1e-3, warm_start=False, e_step_options={"max_sweeps": 2, "damping": 0.0})
    assert not result.settled.any()
    assert result.e_steps_converged is False
    assert result.status == "max_steps"
    assert (result.theta == result.thetas[-1]).all()
    assert "messages of some E-step did NOT settle" in str(result)
    honest = fit_em(nets, max_iter=60, tol=1e-3)
    assert (honest.status, honest.e_steps_converged) == ("stationary", True)


def test_an_objective_of_messages_that_did_not_settle_is_not_the_best():
    from cumulant.relational.learning import _chosen

    assert _chosen(np.array([1.0, 9.0, 2.0]), np.array([True, False, True])) == 2
    assert _chosen(np.array([1.0, 9.0, 2.0]), np.array([False, False, False])) == 2
    assert _chosen(np.array([1.0, 9.0, 2.0]), np.array([True, True, True])) == 1


def test_warm_starts_change_the_work_and_not_the_answer():
    nets = samples(2, 30)
    warm, cold = (fit_em(nets, max_iter=10, tol=0.0, warm_start=flag) for flag in (True, False))
    assert_allclose(warm.theta, cold.theta, atol=1e-7)


def test_restarts_keep_the_best():
    nets = samples(3, 10)
    result = fit_em(nets, n_restarts=3, rng=1, max_iter=20)
    assert result.starts.size == 4
    assert result.objective == result.starts.max()
    assert_allclose(fit_em(nets, n_restarts=3, rng=1, max_iter=20, n_jobs=2).theta, result.theta, atol=0)


# Gibbs sampling -------------------------------------------------------------------------------------------------------


def test_gibbs_em_ends_near_exact_em():
    """With few iterations of it averaged: within three standard deviations over eight seeds, and 0.03 of a bias."""
    nets = samples(6, 10)
    exact = fit_em(nets, e_step="exact", max_iter=150, tol=0.0).theta
    runs = np.array([fit_em(nets, e_step="gibbs", max_iter=150, rng=seed).theta for seed in range(8)])
    assert (np.abs(runs.mean(axis=0) - exact) < 3 * runs.std(axis=0, ddof=1) / np.sqrt(8) + 0.03).all()
    one = fit_em(nets, e_step="gibbs", max_iter=5, rng=3)
    assert (one.objective, one.e_steps_converged, one.certificate, one.status) == (None, None, None, "max_steps")
    assert (one.theta == fit_em(nets, e_step="gibbs", max_iter=5, rng=3, n_jobs=2).theta).all()


# Special cases --------------------------------------------------------------------------------------------------------


def test_everybody_independent_has_a_closed_form():
    """With theta_0 = 1 nothing is hidden that matters: the mode of each Beta posterior after one iteration."""
    nets = samples(3, 20)
    theta = fit_em(nets, fixed={0: 1.0}, max_iter=2, tol=0.0).theta
    attribute = np.concatenate([net.attribute for net in nets])
    assert theta[0] == 1.0
    assert_allclose(theta[7], (3 + attribute.sum()) / (6 + attribute.size))
    kinds = np.concatenate([net.attribute[net.pairs].sum(axis=1) for net in nets])
    ties = np.concatenate([net.ties[tuple(net.pairs.T)] for net in nets])
    for k in range(3):
        assert_allclose(theta[1 + k], (3 + ties[kinds == k].sum()) / (6 + (kinds == k).sum()))
    assert_allclose(theta[[4, 5, 6, 10, 11, 12, 13]], 0.5)  # without data the mode of the prior


def test_nobody_independent_has_a_closed_form():
    nets = samples(3, 20)
    theta = fit_em(nets, fixed={"independent": 0.0}, max_iter=2, tol=0.0).theta
    attribute = np.concatenate([net.attribute for net in nets])
    assert_allclose(theta[10], (3 + attribute.sum()) / (6 + attribute.size))
    pairs, ties = sum(len(net.pairs) for net in nets), sum(net.n_ties for net in nets)
    assert_allclose(theta[6], (3 + ties) / (6 + pairs))


@pytest.mark.parametrize(
    "net",
    [
        Network([1], [[0]]),
        Network.from_edges([0, 0, 0], []),
        Network.from_edges([1, 1, 1, 1], [(x, y) for x in range(4) for y in range(x)]),
    ],
    ids=["one person", "no ties", "everyone friends"],
)
@pytest.mark.parametrize("e_step", ["loopy", "double_loop", "exact", "gibbs"])
def test_networks_at_the_border(net, e_step):
    result = fit_em(net, e_step=e_step, max_iter=5, rng=0)
    assert ((result.theta > 0) & (result.theta < 1)).all()
    assert_allclose(result.counts.trials[0], net.n_people)


def test_the_clock():
    result = fit_em(samples(2, 30), max_iter=1000, tol=0.0, time_limit=1e-9)
    assert result.status == "time_limit"
    assert len(result.thetas) == 2


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alpha": 1.0}, ValueError, "alpha must be finite and more than 1"),
        ({"beta": np.nan}, ValueError, "beta must be finite"),
        ({"start": (0.0, *STUDY[1:])}, ValueError, r"start\[0\], independent, must be strictly between 0 and 1"),
        ({"start": [0.5] * 13}, ValueError, "start must hold 14 probabilities"),
        ({"fixed": {14: 0.5}}, ValueError, "a rule from 0 to 13; got 14"),
        ({"fixed": {"smokes": 0.5}}, ValueError, "a key of fixed must be one of 'independent'"),
        ({"fixed": {1: 0.0}}, ValueError, r"fixed\[1\], tie_neither, must be strictly between 0 and 1"),
        ({"fixed": {0: np.nan}}, ValueError, "fixed must be finite"),
        ({"max_iter": 0}, ValueError, "max_iter must be a whole number"),
        ({"time_limit": 0.0}, ValueError, "time_limit, in seconds, must be positive"),
        ({"e_step": "lbp"}, ValueError, "e_step must be one of 'loopy'"),
        ({"e_step": "gibbs", "n_restarts": 2}, ValueError, "n_restarts needs an objective"),
        ({"influence": "friends"}, ValueError, "influence must be one of"),
        ({"e_step_options": {"sweeps": 3}}, TypeError, "sweeps is not an argument of .*'loopy'"),
    ],
)
def test_arguments_are_checked(options, error, words):
    with pytest.raises(error, match=words):
        fit_em(T3, **options)


@pytest.mark.parametrize(
    ("nets", "error", "words"),
    [
        ([], ValueError, "at least one Network"),
        (3, TypeError, "a Network or a sequence of them; got int"),
        ([T3, np.eye(3)], TypeError, "each of nets must be a Network; got ndarray"),
    ],
)
def test_networks_are_checked(nets, error, words):
    with pytest.raises(error, match=words):
        fit_em(nets)
