"""The compiled sums of the gamma family against plain logarithms, and what they leave to the ordinary path."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, NoEstimateError
from cumulant.families import Gamma
from cumulant.families.gamma_kernels import sums_of_excess_and_log


@pytest.mark.parametrize("n", [1, 7, 512, 513, 5000])
def test_sums_against_exact_summation(n):
    x = np.exp(np.random.default_rng(n).normal(scale=30.0, size=n))
    excess, logs, fine = sums_of_excess_and_log(x, 0, n, 0.25)
    assert fine
    assert_allclose(excess, math.fsum(x * 0.25 - 1), rtol=1e-13)
    assert_allclose(logs, math.fsum(np.log(x * 0.25)), rtol=1e-12, atol=1e-12 * n)


@pytest.mark.parametrize("n", [512, 1024, 4099])
def test_sums_of_moderate_numbers_against_exact_summation(n):
    """Whole blocks of them are multiplied four at a time; one number out of range sends its block the other way."""
    x = np.exp(np.random.default_rng(n).uniform(-170.0, 170.0, size=n))
    for extreme in (x[0], 1e-290, 1e290):
        x[n // 2] = extreme
        excess, logs, fine = sums_of_excess_and_log(x, 0, n, 0.25)
        assert fine
        assert_allclose(excess, math.fsum(x * 0.25 - 1), rtol=1e-13)
        assert_allclose(logs, math.fsum(np.log(x * 0.25)), rtol=1e-12, atol=1e-12 * n)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, -np.inf, -0.0, 5e-324])
def test_what_is_not_a_positive_normal_number_is_noticed(bad):
    x = np.ones(1000)
    x[700] = bad
    assert not sums_of_excess_and_log(x, 0, 1000, 1.0)[2]
    assert sums_of_excess_and_log(x, 0, 700, 1.0)[2]


@pytest.mark.parametrize("shape", [0.01, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_statistics_equal_those_of_the_ordinary_path(shape, scale):
    """Sorted, so that the first thousand are a bad guess of the mean: the sums are then taken again."""
    x = np.sort(np.maximum(np.random.default_rng(0).gamma(shape, size=3000) / shape, 1e-80)) * scale
    family = Gamma()
    fast, ordinary = family._central_of_numpy(x), family.collect(x, weights=np.ones(3000)).central
    assert fast is not None
    assert_allclose(fast, ordinary, rtol=1e-9)


def test_errors_are_those_of_the_ordinary_path():
    x = np.ones(2000)
    with pytest.raises(NoEstimateError, match="all 2000 observations are equal"):
        Gamma().mle(x)
    x[5] = -2.0
    with pytest.raises(DomainError, match=r"x > 0; got -2.0 at index \(5,\)"):
        Gamma().mle(x)
