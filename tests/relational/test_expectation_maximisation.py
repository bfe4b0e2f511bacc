"""EM as a solver of `optim.run`: what it measures, where it ends, and that a run can be stopped and resumed."""

import numpy as np
import pytest

from cumulant import optim
from cumulant.errors import CertificateError
from cumulant.relational import SmokersModel, fit_em
from cumulant.relational.expectation_maximisation import ExpectationMaximisation, NetworkPosterior
from cumulant.relational.learning import default_start
from cumulant.relational.parameters import Settings

SETTINGS = Settings(np.full(14, 4.0), np.full(14, 4.0), {}, "independent")


@pytest.fixture(scope="module")
def nets():
    truth = SmokersModel([0.5, 0.1, 0.02, 0.3, 0.1, 0.15, 0.1, 0.4, 0.5, 0.5, 0.3, 0.05, 0.9, 0.5])
    return [truth.sample(7, seed).without_latents() for seed in range(4)]


def test_the_value_is_minus_the_log_posterior(nets):
    problem = NetworkPosterior(nets, SETTINGS, "exact", {"pairs": False})
    theta = np.linspace(0.2, 0.7, 14)
    model = SmokersModel(theta)
    prior = 3.0 * (np.log(theta) + np.log1p(-theta)).sum()
    assert problem.value(theta) == pytest.approx(-sum(map(model.log_likelihood, nets)) - prior, rel=1e-12)


@pytest.mark.parametrize("e_step", ["exact", "loopy"])
def test_a_fixed_point_is_where_the_derivative_of_the_objective_is_zero(nets, e_step):
    problem = NetworkPosterior(nets, SETTINGS, e_step, {"pairs": False})
    start = default_start(nets)
    found = optim.run(ExpectationMaximisation(), problem, start, max_steps=3000, tol=None, residual_tol=1e-13)
    assert found.status == "stationary"
    x, h = found.x, 1e-5
    slopes = [(problem.value(x + h * e) - problem.value(x - h * e)) / (2 * h) for e in np.eye(14)]
    before = [(problem.value(start + h * e) - problem.value(start - h * e)) / (2 * h) for e in np.eye(14)]
    assert np.abs(slopes).max() < 1e-4 * np.abs(before).max()
    with pytest.raises(CertificateError, match="not known"):
        ExpectationMaximisation().certify(problem, found.state)


@pytest.mark.parametrize("e_step", ["exact", "loopy", "double_loop", "gibbs"])
def test_a_run_that_was_stopped_goes_on_where_it_was(nets, e_step, tmp_path):
    options = {"e_step": e_step, "tol": 0.0, "rng": 3, "n_sweeps": 5}
    if e_step == "gibbs":
        options["max_iter"] = 6
        whole = fit_em(nets, **options)
        fit_em(nets, **options, checkpoint=tmp_path / "run", time_limit=1e-3)
    else:
        whole = fit_em(nets, **options, max_iter=6)
        fit_em(nets, **options, max_iter=2, checkpoint=tmp_path / "run")
    resumed = fit_em(nets, **options | {"max_iter": 6}, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.thetas, whole.thetas)
    np.testing.assert_array_equal(resumed.counts.trials, whole.counts.trials)


def test_markov_chains_give_the_same_answer_at_any_number_of_threads(nets):
    one, two = (fit_em(nets, e_step="gibbs", max_iter=4, rng=1, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.thetas, two.thetas)
    assert (one.objective, one.history.size, one.e_steps_converged, len(one.thetas)) == (None, 0, None, 5)


def test_the_clock_ends_a_run_after_one_step_at_least(nets):
    found = fit_em(nets, tol=0.0, max_iter=10_000, time_limit=1e-3)
    assert found.status == "time_limit"
    assert len(found.thetas) >= 2
    assert "by the clock" in str(found)


def test_what_is_kept_of_a_run(nets):
    found = fit_em(nets, max_iter=3, tol=0.0)
    assert found.thetas.shape == (4, 14)
    assert found.history.shape == (4,)
    assert found.objective == found.history.max()
    with pytest.raises(ValueError, match="n_restarts"):
        fit_em(nets, n_restarts=2, checkpoint="run")
