"""Tail probabilities against plain series in many digits, at parameters where double precision is hard pressed.

Each is compared relative to the probability. Rounding allows a few units of the logarithm, and what rounding of the
argument itself changes.
"""

import jax
import numpy as np
import pytest

from cumulant import families as fam
from cumulant.families import tails
from tests.reference import tails as reference

EPS = np.finfo(float).eps
GAMMA = [
    (1e-10, 1e-5), (1e-10, 30.0), (1e-3, 1e-300), (0.3, 0.5), (0.3, 0.99), (0.3, 1.01), (1.0, 1.0), (1.001, 1.0),
    (2.5, 700.0), (2.5, 1e-10), (50.0, 10.0), (50.0, 200.0), (1e4, 1e4), (1e4, 9e3), (1e4, 1.2e4), (1e8, 1e8 + 2e4),
    (1e8, 1e8 - 3e5),
]  # fmt: skip
BETA = [
    (0.5, 0.5, 0.1), (1e-10, 2.0, 1e-5), (1e-10, 1e-10, 0.3), (1e-10, 1e-12, 0.7), (1e-2, 1e-3, 0.75), (0.5, 30.0, 0.1),
    (2.0, 3.0, 1e-200), (2.0, 3.0, 1 - 1e-10), (1.5, 1e-3, 0.9), (1e3, 1e3, 0.5), (1e3, 1e3, 0.6), (1e4, 3.0, 0.999),
    (1e4, 0.3, 0.9999), (20.0, 1e4, 0.01), (1e6, 2e6, 0.334),
]  # fmt: skip
INVERSE_GAUSSIAN = [
    (1.0, 1.0, 1.0), (1.0, 1e-6, 0.5), (1.0, 1e-6, 1e-9), (1.0, 1e-6, 1e7), (1.0, 1e6, 1.001), (1.0, 1e6, 0.99),
    (2.0, 3.0, 50.0),
]  # fmt: skip
VON_MISES = [(0.5, 0.0), (0.5, 1.0), (-3.0, 1.0), (-1.0, 30.0), (1.0, 30.0), (-0.01, 1e4), (-0.1, 1e4)]


def evaluated(function, cases):
    with jax.enable_x64(True):
        return zip(*map(np.asarray, jax.jit(function)(*map(np.array, zip(*cases, strict=True)))), strict=True)


@pytest.mark.parametrize(
    ("function", "exact", "cases", "sensitivity"),
    [
        (lambda a, x: tails.gamma_log_tails(x, a), reference.log_gamma_tails, GAMMA, lambda a, x: np.sqrt(a)),
        (
            lambda a, b, x: tails.beta_log_tails(x, 1 - x, a, b),
            reference.log_beta_tails,
            BETA,
            lambda a, b, x: np.sqrt(a + b),
        ),
        (
            lambda m, s, x: tails.inverse_gaussian_log_tails(x, m, s),
            reference.log_inverse_gaussian_tails,
            INVERSE_GAUSSIAN,
            lambda m, s, x: np.sqrt(s / x),
        ),
        (tails.von_mises_log_tails, reference.log_von_mises_tails, VON_MISES, lambda x, k: np.sqrt(k)),
    ],
    ids=["gamma", "beta", "inverse Gaussian", "von Mises"],
)
def test_both_tails_are_accurate_relative_to_themselves(function, exact, cases, sensitivity):
    for case, found in zip(cases, evaluated(function, cases), strict=True):
        expected = exact(*case)
        for got, log_p in zip(found, expected, strict=True):
            # The smaller tail moves by a standard deviation, times how far out it is, when x moves by itself. Its
            # error relative to itself is that of the logarithm of the larger.
            small = abs(min(expected))
            rounding = EPS * (20 + 4 * small + 4 * sensitivity(*case) * (1 + np.sqrt(2 * small)))
            assert abs(got - log_p) <= rounding * min(1.0, 2 * abs(log_p)), (case, log_p)


def test_normal_tails_are_accurate_relative_to_themselves():
    import mpmath as mp

    points = [(z,) for z in (0.0, 1.0, -1.0, -4.99, -5.01, -8.0, -37.0, 6.0)]
    for (z,), found in zip(points, evaluated(tails.normal_log_tails, points), strict=True):
        with mp.workdps(400):
            expected = [float(mp.log(mp.erfc(sign * mp.mpf(z) / mp.sqrt(2)) / 2)) for sign in (-1, 1)]
        np.testing.assert_allclose(found, expected, rtol=4 * EPS * (2 + abs(min(expected))))


def test_quantiles_reach_into_both_tails():
    """Where scipy's ``betaincinv`` gives zero, and where its ``gammaincinv`` has no digit left."""
    cases = [
        (fam.Beta(), fam.Beta().natural(a=2.0, b=30.0)),
        (fam.Gamma(), fam.Gamma().natural(shape=0.9, rate=3.0)),
        (fam.InverseGaussian(), fam.InverseGaussian().natural(mean=1.0, shape=1e-4)),
    ]
    p = np.array([1e-250, 1e-30, 0.2, 0.5])
    for family, theta in cases:
        np.testing.assert_allclose(family.cdf(family.quantile(p, theta), theta), p, rtol=1e-11)
        if not isinstance(family, fam.Beta):  # floats end at 1 - 1e-16
            np.testing.assert_allclose(family.survival(family.upper_quantile(p, theta), theta), p, rtol=1e-11)
    far = fam.Gamma().natural(shape=1e8, rate=1.0)
    x = fam.Gamma().quantile(p, far)
    np.testing.assert_allclose(fam.Gamma().log_cdf(x, far), np.log(p), rtol=1e-10)
