"""Split R-hat and effective sample size: against closed forms, and against ArviZ where it is installed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.sampling import Draws, effective_sample_size, split_r_hat


def autoregression(rho, *more, chains=4, draws=2000, seed=0):
    noise = np.random.default_rng(seed).normal(size=(chains, draws, *more))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0] / np.sqrt(1 - rho**2)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.8])
def test_the_effective_size_of_an_autoregression_is_its_closed_form(rho):
    x = autoregression(rho, 50)
    assert_allclose(effective_sample_size(x).mean(), 8000 * (1 - rho) / (1 + rho), rtol=0.05)
    assert split_r_hat(x).max() < 1.03


def test_chains_that_disagree_are_seen():
    x = np.random.default_rng(1).normal(size=(4, 500))
    assert split_r_hat(x + np.arange(4)[:, None]) > 1.3
    assert split_r_hat(x + np.linspace(0, 3, 500)) > 1.1  # a trend that all chains have
    wide = x * np.array([1, 1, 1, 5])[:, None]
    assert split_r_hat(wide) < 1.01 < split_r_hat(wide, rank=True)
    assert split_r_hat(np.ones((2, 8))) == 1.0
    assert split_r_hat(np.repeat([[0.0], [1.0]], 8, axis=1)) == np.inf
    assert effective_sample_size(np.ones((2, 8))) == 16
    with pytest.raises(ValueError, match="at least 4"):
        split_r_hat(np.ones((2, 3)))
    with pytest.raises(ValueError, match="finite"):
        effective_sample_size(np.full((2, 8), np.nan))


@pytest.mark.filterwarnings("ignore")
def test_arviz_has_the_same_numbers_and_takes_the_draws():
    arviz = pytest.importorskip("arviz")
    x = np.stack([autoregression(0.9, draws=301), np.random.default_rng(3).standard_cauchy((4, 301))], axis=-1)
    for k in range(2):
        one = x[:, :, k]
        assert_allclose(split_r_hat(one), arviz.rhat(one, method="split"), rtol=1e-10)
        assert_allclose(split_r_hat(one, rank=True), arviz.rhat(one, method="rank"), rtol=1e-10)
        assert_allclose(effective_sample_size(one), arviz.ess(one, method="mean"), rtol=1e-10)
        assert_allclose(effective_sample_size(one, rank=True), arviz.ess(one, method="bulk"), rtol=1e-10)
    assert_allclose(effective_sample_size(x), [effective_sample_size(x[:, :, k]) for k in range(2)], rtol=1e-12)
    tree = Draws(x, "test").to_arviz("spin")
    assert_allclose(np.asarray(tree["posterior"]["spin"]), x)


def test_draws_put_chains_one_after_the_other():
    draws = Draws(np.arange(24.0).reshape(2, 4, 3), "test")
    assert np.asarray(draws).shape == (8, 3)
    assert len(draws) == 8
    assert_allclose(draws.mean(lambda x: x.sum(axis=1)), 34.5)
    with pytest.raises(ValueError, match="one row"):
        draws.of(lambda x: x.sum())


def test_draws_of_no_variable_are_still_as_many():
    assert Draws(np.zeros((2, 3, 0)), "none").flat.shape == (6, 0)


def test_weighted_draws_estimate_with_their_weights():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5000, 1))
    tilted = Draws(x, "test", log_weights=x[:, :, 0] - 800.0, variables={"a": ()})  # of a normal with mean 1
    assert abs(tilted.mean("a") - 1.0) < 4.5 * tilted.standard_error("a")
    assert abs(tilted.mean(lambda z: (z[:, 0] - 1) ** 2) - 1.0) < 4.5 * tilted.standard_error(
        lambda z: (z[:, 0] - 1) ** 2
    )
    assert_allclose(tilted.effective_sample_size(), 10_000 / np.e, rtol=0.1)
    assert_allclose(tilted.weights.sum(), 1.0)
    for refused in (tilted.r_hat, tilted.to_arviz):
        with pytest.raises(ValueError, match="weight"):
            refused()
    with pytest.raises(ValueError, match="one number for each draw"):
        Draws(x, "test", log_weights=np.zeros(3))


def test_draws_know_their_variables_by_name():
    values = np.arange(2 * 3 * 5.0).reshape(2, 3, 5)
    draws = Draws(values, "test", variables={"centre": (), "slopes": (2, 2)})
    assert_allclose(draws["centre"], values[:, :, 0])
    assert_allclose(draws["slopes"], values[:, :, 1:].reshape(2, 3, 2, 2))
    assert_allclose(draws.mean("slopes"), values[:, :, 1:].mean(axis=(0, 1)).reshape(2, 2))
    with pytest.raises(KeyError, match=r"no variable 'tau'; there are \['centre', 'slopes'\]"):
        draws["tau"]
    with pytest.raises(ValueError, match="name 2 coordinates"):
        Draws(values, "test", variables={"a": (2,)})


@pytest.mark.filterwarnings("ignore")
def test_named_variables_reach_arviz():
    pytest.importorskip("arviz")
    values = np.random.default_rng(0).normal(size=(2, 50, 3))
    tree = Draws(values, "test", variables={"a": (), "b": (2,)}).to_arviz()
    assert_allclose(np.asarray(tree["posterior"]["b"]), values[:, :, 1:])
