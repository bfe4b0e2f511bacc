"""Divergences of large batches take a quick formula where it is accurate: they agree with those of small batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families import Beta, Dirichlet, Gamma, InverseGamma


@pytest.mark.parametrize("family", [Gamma(), InverseGamma(), Beta(), Dirichlet(3)], ids=str)
@pytest.mark.parametrize("near", [0.005, 0.5])  # the share of pairs that are close to each other
def test_a_large_batch_has_the_divergences_of_its_parts(family, near):
    rng, n = np.random.default_rng(0), 3000
    sign = np.array([1.0, -1.0]) if isinstance(family, Gamma) else 1.0
    theta = sign * np.exp(rng.normal(size=(n, family.dim)) * 2)
    other = sign * np.exp(rng.normal(size=(n, family.dim)) * 2)
    close = rng.random(n) < near
    close[:2] = False
    other[close] = theta[close] * (1 + 10.0 ** rng.uniform(-5, -2, size=(close.sum(), 1)))
    theta[0], other[1] = theta[0] * 1e9, other[1] * 1e-9
    whole = family.kl(theta, other)
    parts = np.concatenate([family.kl(theta[k : k + 500], other[k : k + 500]) for k in range(0, n, 500)])
    # Rounding an argument that is 1e-5 from the other changes the divergence by 1e-11 of itself.
    assert_allclose(whole, parts, rtol=1e-9)
    assert whole[close].max() < 1.0


def test_derivatives_in_a_large_batch_are_those_of_a_small_one():
    rng, family = np.random.default_rng(1), Gamma()
    theta, other = np.array([1.0, -1.0]) * np.exp(rng.normal(size=(2, 1200, 2)))
    theta[0], other[0] = theta[0] * 1e160, other[0] * 1e-160  # the quick formula overflows here
    with jax.enable_x64(True):
        slope = jax.grad(lambda a, b: jnp.sum(family.kl(a, b)[1:]))
        whole, part = slope(jnp.asarray(theta), jnp.asarray(other)), slope(jnp.asarray(theta[:300]), other[:300])
        assert_allclose(whole[:300], part, rtol=1e-10)
        assert np.all(np.isfinite(whole))
