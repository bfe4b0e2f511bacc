"""Models of NumPyro as targets, where NumPyro is installed."""

import sys

import numpy as np
import pytest

from cumulant import variational as vi


def test_a_missing_package_is_named(monkeypatch):
    for name in ("numpyro", "numpyro.infer.util"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match="pip install numpyro"):
        vi.from_numpyro(lambda: None)


def test_a_model_is_fitted_and_its_draws_are_in_its_own_spaces():
    """Against the posterior of a normal sample: the mean is that of the data to two standard errors."""
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    y = np.random.default_rng(0).normal(3.0, 2.0, size=200)

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 10))
        sigma = numpyro.sample("sigma", dist.HalfNormal(5))
        numpyro.sample("y", dist.Normal(mu, sigma), obs=y)

    draws = vi.fit(vi.from_numpyro(model, y), rng=0).sample(4000, rng=0)
    assert abs(draws.mean("mu") - y.mean()) < 2 * y.std() / np.sqrt(len(y))
    assert np.all(draws["sigma"] > 0)
    assert abs(draws.mean("sigma") - y.std()) < 0.1
