"""Special functions without cancellation, against 60-digit values and exact identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma, polygamma

from cumulant.errors import DomainError
from cumulant.families.inverses import plain_digamma_gap
from cumulant.families.special import excess_numpy, log1p_excess, log_minus_digamma, phi

EULER = 0.57721566490153286060651209


def test_log_minus_digamma_at_the_points_where_it_is_known():
    # digamma(1) = -gamma, digamma(1/2) = -gamma - 2 log 2, digamma(n) = -gamma + harmonic(n - 1).
    x = np.array([1.0, 0.5, 5.0])
    exact = np.log(x) + EULER - np.array([0.0, -2 * np.log(2), 1 + 1 / 2 + 1 / 3 + 1 / 4])
    np.testing.assert_allclose(log_minus_digamma(x), exact, rtol=1e-14)


def test_log_minus_digamma_keeps_all_digits_where_the_difference_is_tiny():
    x = np.array([1e4, 1e8, 1e15, 1e60])
    np.testing.assert_allclose(log_minus_digamma(x), 0.5 / x + 1 / 12 / x**2 - 1 / 120 / x**4, rtol=4e-16)


def test_log_minus_digamma_near_zero_is_one_over_x():
    x = np.array([1e-300, 1e-12])
    np.testing.assert_allclose(log_minus_digamma(x) * x, 1 + x * (np.log(x) + EULER), rtol=1e-15)
    assert log_minus_digamma(0.0) == np.inf


@given(st.floats(1e-3, 50))
def test_log_minus_digamma_agrees_with_scipy_where_nothing_cancels(x):
    assert np.isclose(log_minus_digamma(np.asarray(x)), np.log(x) - digamma(x), rtol=1e-12)


@given(st.floats(1e-150, 1e-4))
def test_log1p_excess_follows_its_series_near_zero(x):
    series = x * x * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x / 6))))
    assert np.isclose(excess_numpy(np.asarray(x)), series, rtol=1e-15, atol=0)
    mirrored = x * x * (1 / 2 + x * (1 / 3 + x * (1 / 4 + x * (1 / 5 + x / 6))))
    assert np.isclose(excess_numpy(np.asarray(-x)), mirrored, rtol=1e-15, atol=0)


def test_log1p_excess_joins_the_plain_formula_at_both_seams():
    for seam in (-0.5, 1.0):
        below, above = np.nextafter(seam, -2), np.nextafter(seam, 2)
        assert np.isclose(excess_numpy(np.asarray(below)), excess_numpy(np.asarray(above)), rtol=1e-15)
        assert np.isclose(excess_numpy(np.asarray(seam)), seam - np.log1p(seam), rtol=1e-15)


@given(st.floats(1e-6, 1e6))
def test_phi_and_its_mirror_image_add_up(z):
    # phi(z) + phi(1/z) = (z - 1)^2 / z
    both = float(excess_numpy(np.asarray(z - 1)) + excess_numpy(np.asarray((1 - z) / z)))
    assert np.isclose(both, (z - 1) ** 2 / z, rtol=1e-14, atol=0)


def test_the_ends_of_the_domain_are_infinite_not_nan():
    assert phi(0.0) == np.inf
    assert phi(np.inf) == np.inf
    assert log1p_excess(-1.0) == np.inf
    assert log_minus_digamma(np.inf) == 0


def test_both_libraries_compute_the_same():
    x = np.geomspace(1e-8, 1e8, 33)
    np.testing.assert_allclose(log1p_excess(x), excess_numpy(x), rtol=1e-15)


def test_derivatives_do_not_cancel_either():
    with jax.enable_x64(True):
        x = jnp.asarray([0.3, 2.0, 1e6])
        slope = jax.jit(jax.vmap(jax.grad(plain_digamma_gap)))(x)
        # trigamma(x) = 1/x + 1/(2x^2) + 1/(6x^3) - ... for large x
        assert np.isclose(slope[2], -0.5e-12 - 1e-18 / 6, rtol=1e-14)
        small = np.asarray(x[:2])
        np.testing.assert_allclose(slope[:2], 1 / small - polygamma(1, small), rtol=1e-12)
        assert np.isclose(jax.jit(jax.grad(phi))(1.0 + 1e-9), 1e-9, rtol=1e-6)
        assert np.isclose(jax.jit(jax.grad(jax.grad(phi)))(2.0), 0.25, rtol=1e-15)


def test_the_callers_precision_is_kept():
    assert phi(jnp.asarray(1.25, dtype=jnp.float32)).dtype == jnp.float32
    assert isinstance(phi(1.25), np.floating)
    assert phi(jnp.asarray([1, 2])).dtype == jnp.float32


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_arguments_outside_the_domain_are_refused(value):
    with pytest.raises(DomainError, match="at least 0 and not NaN"):
        phi(value)


def test_phi_remembers_small_arguments():
    z = np.array([1e-300, 1e-80, 1e-10, 1e-3, 0.5, 2.0, 1e10, 1e300])
    np.testing.assert_allclose(phi(z), z - 1 - np.log(z), rtol=1e-15)
    assert phi(np.inf) == np.inf
