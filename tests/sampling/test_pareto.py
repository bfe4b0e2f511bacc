"""The shape of the tail of weights: known for Pareto weights, at the edges of the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.sampling import pareto_shape


@pytest.mark.parametrize("shape", [0.1, 0.3, 0.5, 0.7, 1.0])
def test_the_shape_of_exact_tails(shape):
    """Weights ``exp(k E)``, ``E`` exponential, have a tail of shape ``k``; 40 samples, five standard errors and the
    pull of the prior towards 1/2 by ten of about 190 observations.
    """
    found = [pareto_shape(shape * np.random.default_rng(s).exponential(size=4000)).shape for s in range(40)]
    pull = 10 / 200 * abs(0.5 - shape)
    assert abs(np.mean(found) - shape) <= 5 * np.std(found) / np.sqrt(40) + pull


def test_smoothing_changes_the_largest_weights_only():
    logs = np.random.default_rng(0).normal(size=1000)
    found = pareto_shape(logs)
    changed = np.flatnonzero(~np.isclose(found.log_weights, logs - logs.max()))
    assert set(changed) <= set(np.argsort(logs)[-int(3 * np.sqrt(1000)) :])
    assert np.all(np.diff(found.log_weights[np.argsort(logs)]) >= -1e-12)


def test_edges():
    assert pareto_shape(np.zeros(100)).shape == -np.inf
    assert pareto_shape(np.zeros(10)).shape == np.inf
    assert pareto_shape(np.r_[np.zeros(99), np.inf]).shape == np.inf
    assert_allclose(pareto_shape(np.r_[np.full(50, -np.inf), np.linspace(0, 1, 950)]).log_weights[:50], -np.inf)
    with pytest.raises(ValueError, match="vector of numbers"):
        pareto_shape([0.0, np.nan])
