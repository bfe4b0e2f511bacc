"""The special functions behind the mean maps, against arbitrary-precision arithmetic."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from cumulant.families import bessel
from cumulant.families.factorials import expected_log_factorial
from cumulant.families.inverses import digamma_and_slope, digamma_gap, inverse_digamma, inverse_digamma_gap

X = np.concatenate([np.logspace(-10, 12, 45), [11.999999, 12.0, 1.4616321449683622]])


def in_float64(function, *arrays):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function)(*map(jnp.asarray, arrays)))


def test_digamma_gap_and_its_elasticity():
    value, elasticity = in_float64(digamma_gap, X)
    digamma, slope = in_float64(digamma_and_slope, X)
    with mp.workdps(50):
        for i, x in enumerate(map(float, X)):
            gap = mp.log(x) - mp.digamma(x)
            derivative = 1 / mp.mpf(x) - mp.psi(1, x)
            assert abs(value[i] / gap - 1) < 1e-14
            assert abs(elasticity[i] / (x * derivative / gap) - 1) < 1e-13
            assert abs(digamma[i] - mp.digamma(x)) < 1e-14 * (1 + abs(mp.digamma(x)))
            assert abs(slope[i] / mp.psi(1, x) - 1) < 1e-13


def test_inverses_come_back():
    gap = in_float64(lambda x: digamma_gap(x)[0], X)
    np.testing.assert_allclose(in_float64(inverse_digamma_gap, gap), X, rtol=1e-13)
    x = np.logspace(-6, 6, 61)
    y = np.array([float(mp.digamma(v)) for v in x])
    # The condition number is |digamma(x)| / (x trigamma(x)), at most about log x for large x.
    np.testing.assert_allclose(in_float64(inverse_digamma, y), x, rtol=1e-13)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 17, 101, 102, 103, 300])
def test_bessel_functions_of_every_order_to_full_precision(size):
    kappa = np.array([1e-9, 1e-3, 0.5, 3.0, 10.0, 38.9, 48.9, 49.9, 50.1, 51.5, 150.0, 1e3, 1e5, 1e8])
    order = size / 2 - 1
    logs = in_float64(lambda s: bessel.log_0f1(order, s), kappa**2)
    length = kappa * in_float64(lambda s: bessel.mean_length(size, s), kappa**2)
    complement = in_float64(lambda s: bessel._complement(order, s), kappa**2)
    back = in_float64(lambda r: bessel.inverse_mean_length(size, r), length)
    with mp.workdps(60):
        for i, k in enumerate(map(mp.mpf, kappa.tolist())):
            bottom, next_one = mp.besseli(order, k), mp.besseli(order + 1, k)
            expected = mp.log(bottom) + mp.loggamma(order + 1) + order * mp.log(2 / k)
            assert abs(logs[i] - expected) < 4e-15 * (1 + abs(expected))
            assert abs(length[i] / (next_one / bottom) - 1) < 4e-15
            assert abs(complement[i] / (1 - next_one / bottom) - 1) < 2e-13
            # Near the boundary the inverse is as good as its input, whose error was just bounded.
            assert abs(back[i] / kappa[i] - 1) < 1e-13 + 4e-15 / float(1 - next_one / bottom)


def test_expected_log_factorials_against_sums():
    rates = np.array([1e-6, 0.3, 4.0, 60.0, 3000.0])
    got = in_float64(lambda m: expected_log_factorial(lambda t: m * jnp.expm1(-t), m), rates)
    shifted = in_float64(lambda m: expected_log_factorial(lambda t: m * jnp.expm1(-t), m, -0.75), rates)
    with mp.workdps(30):
        for i, rate in enumerate(rates):
            low, high = int(max(0, rate - 40 * np.sqrt(rate))), int(rate + 40 * np.sqrt(rate) + 40)
            weights = [mp.exp(k * mp.log(mp.mpf(rate)) - rate - mp.loggamma(k + 1)) for k in range(low, high)]
            plain = mp.fsum(w * mp.loggamma(k + 1) for w, k in zip(weights, range(low, high), strict=True))
            moved = mp.fsum(
                w * (mp.loggamma(k + 0.25) - mp.loggamma(0.25)) for w, k in zip(weights, range(low, high), strict=True)
            )
            assert abs(got[i] - plain) < 1e-13 * (1 + rate)
            assert abs(shifted[i] - moved) < 1e-13 * (1 + rate)
