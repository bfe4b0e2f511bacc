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
