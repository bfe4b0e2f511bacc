"""Damped curvature: worked examples, the determinant, and what it learns under noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant.optim.interior_point import damped_bb, damped_bfgs
from cumulant.precision import float64

B, DX, DY = [[2.0, 0.3], [0.3, 1.0]], [1.0, 0.5], [-0.2, 0.3]


def test_bfgs_of_the_worked_example():
    new = damped_bfgs(B, DX, DY, 0.8)
    assert float(new.t) == pytest.approx(0.19615385, abs=1e-8)
    np.testing.assert_allclose(new.B, [[1.58571124, 0.20665445], [0.20665445, 0.99053726]], atol=1e-8)
    assert np.linalg.det(new.B) / np.linalg.det(B) == pytest.approx(0.8, abs=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(new.B), [0.92582, 1.65043], atol=5e-6)
    damped = float(new.t) * np.array(DY) + (1 - float(new.t)) * (np.array(B) @ DX)
    np.testing.assert_allclose(damped, [1.68903846, 0.70192308], atol=1e-8)
    np.testing.assert_allclose(new.B @ DX, damped, atol=1e-12)
    for gamma, t in ((0.75, 0.24519231), (0.9, 0.09807692), (0.2, 0.78461538)):
        assert float(damped_bfgs(B, DX, DY, gamma).t) == pytest.approx(t, abs=1e-8)
    capped = damped_bfgs(B, DX, DY, 0.8, 0.1)
    np.testing.assert_allclose(capped.B, [[1.7886632, 0.2526736], [0.2526736, 0.9946528]], atol=1e-7)
    assert np.linalg.det(capped.B) / np.linalg.det(B) == pytest.approx(0.89803922, abs=1e-8)
    assert capped.Binv is None


def test_bfgs_stays_positive_definite_and_keeps_its_inverse_through_a_thousand_noisy_updates():
    rng = np.random.default_rng(0)
    dxs = rng.normal(size=(1000, 4)) * 10.0 ** rng.uniform(-3, 1, size=(1000, 1))
    H = np.diag([0.5, 1.0, 3.0, 9.0])
    dys = dxs @ H + 0.5 * np.linalg.norm(dxs @ H, axis=1, keepdims=True) * rng.normal(size=dxs.shape)

    def update(carry, pair):
        old, inverse, k = carry
        new = damped_bfgs(old, *pair, 0.75, (1 + k) ** -0.6, inverse)
        ratio = jnp.linalg.det(new.B) / jnp.linalg.det(old)
        return (new.B, new.Binv, k + 1), (jnp.linalg.eigvalsh(new.B)[0], ratio)

    with float64():
        start = (jnp.eye(4), jnp.eye(4), 0.0)
        (matrix, inverse, _), (least, ratio) = jax.lax.scan(update, start, (jnp.asarray(dxs), jnp.asarray(dys)))
        matrix, inverse, least, ratio = (np.asarray(each) for each in (matrix, inverse, least, ratio))
    assert least.min() > 0
    assert ratio.min() >= 0.75 - 1e-9
    np.testing.assert_allclose(matrix @ inverse, np.eye(4), atol=1e-8)


def test_bfgs_learns_the_curvature_from_noisy_pairs_in_the_mean():
    """160 sequences of pairs with noise of half their size: mean eigenvalues over the last 500 of 1000 updates."""
    rng, H = np.random.default_rng(1), np.array([0.5, 1.0, 3.0, 9.0])
    dxs = rng.normal(size=(160, 1000, 4)) * 10.0 ** rng.uniform(-3, 1, size=(160, 1000, 1))
    noise = rng.normal(size=dxs.shape)
    dys = dxs * H + 0.5 * np.linalg.norm(dxs * H, axis=2, keepdims=True) * noise

    def update(carry, pair):
        old, k = carry
        new = damped_bfgs(old, *pair, 0.75, (1 + k) ** -0.6).B
        return (new, k + 1), jnp.linalg.eigvalsh(new)

    with float64():
        go = jax.jit(jax.vmap(lambda dx, dy: jax.lax.scan(update, (jnp.eye(4), 0.0), (dx, dy))[1]))
        found = np.asarray(go(dxs, dys))[:, 500:].mean(axis=1)
    error = found.std(axis=0) / np.sqrt(160) / H
    assert np.all(error < 0.02)
    np.testing.assert_allclose(found.mean(axis=0) / H, 1.0, atol=0.05)


def test_bb_averages_rayleigh_quotients_and_skips_bad_ones():
    assert float(damped_bb(1.0, [1.0, 0.0], [5.0, 2.0], 0.1)) == pytest.approx(1.4)
    assert float(damped_bb(1.0, [1.0, 0.0], [-100.0, 0.0], 0.1)) == 1.0
    assert float(damped_bb(1.0, [0.0, 0.0], [1.0, 0.0], 0.1)) == 1.0
    assert float(damped_bb(1.0, [1.0, 0.0], [-0.9985, 0.0], 0.5)) == 1.0  # below a thousandth of what it was
    assert float(damped_bb(1.0, [1.0, 0.0], [-0.9975, 0.0], 0.5)) == pytest.approx(0.00125)
    rng = np.random.default_rng(1)
    dx = rng.normal(size=(3000, 3))
    dy = dx * [1.0, 4.0, 10.0] + rng.normal(size=dx.shape)

    def update(carry, pair):
        beta, k = carry
        return (damped_bb(beta, *pair, (1 + k) ** -0.6), k + 1), None

    with float64():
        (beta, _), _ = jax.lax.scan(update, (jnp.asarray(1.0), 0.0), (jnp.asarray(dx), jnp.asarray(dy)))
        assert float(beta) == pytest.approx(5.0, abs=0.5)  # the mean quotient is a third of the trace


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="beta must be positive"):
        damped_bb(-1.0, [1.0], [1.0], 0.1)
    with pytest.raises(ValueError, match="gamma must be"):
        damped_bfgs(B, DX, DY, 1.0)
