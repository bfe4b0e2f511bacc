"""Resampling: unbiased counts, their variances against exact values, degenerate and extreme weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.sampling import resample, weighted_sample_size
from cumulant.sampling.resampling import RESAMPLING

WEIGHTS = np.array([0.05, 0.4, 0.0, 0.25, 0.3])


@pytest.mark.parametrize("method", RESAMPLING)
@pytest.mark.parametrize("n", [5, 12])
def test_every_particle_is_chosen_in_proportion_to_its_weight(method, n):
    runs = 20_000
    rng = np.random.default_rng(0)
    counts = np.array([
        np.bincount(resample(np.log(WEIGHTS, where=WEIGHTS > 0, out=np.full(5, -np.inf)), n, method=method, rng=rng),
                    minlength=5)
        for _ in range(runs)
    ])  # fmt: skip
    assert (counts.sum(axis=1) == n).all()
    assert (counts[:, 2] == 0).all()
    error = counts.std(axis=0) / np.sqrt(runs)
    assert np.all(np.abs(counts.mean(axis=0) - n * WEIGHTS) <= 4.5 * error + 1e-12)
    binomial = n * WEIGHTS * (1 - WEIGHTS)
    variance, spread = counts.var(axis=0), counts.var(axis=0) * np.sqrt(2 / runs) * 4.5
    if method == "multinomial":
        assert_allclose(variance, binomial, rtol=0.06)
    else:
        assert np.all(variance <= binomial + spread + 1e-12)
    if method == "systematic":
        assert np.all((counts >= np.floor(n * WEIGHTS)) & (counts <= np.ceil(n * WEIGHTS)))
    if method == "residual":
        assert np.all(counts >= np.floor(n * WEIGHTS))


@pytest.mark.parametrize("method", RESAMPLING)
def test_extreme_weights(method):
    assert (resample([0.0, -1e5], 7, method=method, rng=0) == 0).all()
    assert (resample([-1e300, 5e3], 7, method=method, rng=0) == 1).all()
    assert (resample([3.0], method=method, rng=0) == 0).all()
    assert resample([0.0, 1.0], 0, method=method, rng=0).size == 0
    assert_allclose(
        resample([0.0, 0.0, 1e-9], 10, method=method, rng=3), resample([0.0, 0.0, 1e-9], 10, method=method, rng=3)
    )
    many = resample(np.random.default_rng(0).normal(size=1000), method=method, rng=1)
    assert (np.diff(many) >= 0).all()
    assert many.size == 1000


@pytest.mark.parametrize(
    ("log_weights", "options", "message"),
    [
        ([-np.inf, -np.inf], {}, "finite largest entry"),
        ([np.nan, 0.0], {}, "finite largest entry"),
        ([np.inf, 0.0], {}, "finite largest entry"),
        ([], {}, "finite largest entry"),
        ([[0.0, 1.0]], {}, "vector"),
        ([0.0], {"n": -1}, "n must be"),
        ([0.0], {"method": "lottery"}, "method must be one of"),
    ],
)
def test_what_cannot_be_resampled_is_refused(log_weights, options, message):
    with pytest.raises(ValueError, match=message):
        resample(log_weights, **options)


def test_the_effective_size_of_weights():
    assert_allclose(weighted_sample_size(np.zeros(9)), 9.0)
    assert_allclose(weighted_sample_size([700.0, -700.0, 0.0]), 1.0)
    assert_allclose(weighted_sample_size(np.log([0.5, 0.5, 1e-300]) - 600.0), 2.0)
