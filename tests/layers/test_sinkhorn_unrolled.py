"""The unrolled iteration: its derivatives by hand, their limit, and where the plain domain ends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.layers import sinkhorn, sinkhorn_unrolled
from cumulant.precision import float64

COST = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]])
A, B, EPSILON = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4]), 0.5
WEIGHTS = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.3]])


def loss(cost, a, b, epsilon, mode, steps):
    return jnp.sum(jnp.asarray(WEIGHTS) * sinkhorn_unrolled(cost, a, b, epsilon, steps, mode=mode).plan)


def by_hand(steps):
    """The gradients of ``<W, P>`` in `a` and `b`: half steps back, from ``[d_x h]^T`` and ``[d_theta h]^T``."""
    K, v, kept = np.exp(-COST / EPSILON), np.ones(2), []
    for _ in range(steps):
        u = A / (K @ v)
        kept.append((u, v))
        v = B / (K.T @ u)
    z_u, z_v = (WEIGHTS * K) @ v, (WEIGHTS * K).T @ u
    of_a, of_b = np.zeros(3), np.zeros(2)
    for u, before in reversed(kept):
        of_b += z_v / (K.T @ u)
        z_u = z_u - K @ (z_v * B / (K.T @ u) ** 2)
        of_a += z_u / (K @ before)
        z_v = -K.T @ (z_u * A / (K @ before) ** 2)
        z_u = np.zeros(3)
    return of_a, of_b


@pytest.mark.parametrize("mode", ["log", "plain"])
def test_the_gradient_is_that_of_the_half_steps_written_out(mode):
    with float64():
        found = jax.grad(loss, argnums=(1, 2))(*map(jnp.asarray, (COST, A, B)), EPSILON, mode, 3)
        found = [np.asarray(each) for each in found]
    for mine, theirs in zip(found, by_hand(3), strict=True):
        assert_allclose(mine, theirs, rtol=1e-10)


def test_both_domains_and_the_limit_agree_in_value_and_derivative():
    log, plain = (sinkhorn_unrolled(COST, A, B, EPSILON, 150, mode=mode) for mode in ("log", "plain"))
    limit = sinkhorn(COST, A, B, EPSILON, tol=1e-13)
    for name in ("value", "plan", "f", "g"):
        assert_allclose(getattr(log, name), getattr(plain, name), atol=1e-12)
        assert_allclose(getattr(log, name), getattr(limit, name), atol=1e-10)
    assert log.violation < 1e-12
    assert_allclose(log.plan.sum(axis=0), B, rtol=1e-13)
    with float64():
        given = (*map(jnp.asarray, (COST, A, B)), EPSILON)

        def through_the_limit(cost, a, b, epsilon):
            return jnp.sum(jnp.asarray(WEIGHTS) * sinkhorn(cost, a, b, epsilon, tol=1e-13).plan)

        exact = [np.asarray(each) for each in jax.grad(through_the_limit, argnums=(0, 1, 2))(*given)]
        errors = []
        for steps in (5, 10, 80):
            found = [np.asarray(each) for each in jax.grad(loss, argnums=(0, 1, 2))(*given, "plain", steps)]
            # Of the histograms only what keeps the two masses equal: a constant (c, -c) is free.
            gauge = np.mean(found[1] - exact[1])
            parts = (found[0] - exact[0], found[1] - exact[1] - gauge, found[2] - exact[2] + gauge)
            errors.append(max(float(np.max(np.abs(part))) for part in parts))
    assert errors[2] < 1e-9 < errors[1] < errors[0]


def test_where_the_plain_domain_underflows_it_says_so_and_logarithms_go_on():
    with pytest.raises(DomainError, match="use mode='log'"):
        sinkhorn_unrolled(COST + 1.0, A, B, 1e-3, 10, mode="plain")
    assert np.isfinite(sinkhorn_unrolled(COST + 1.0, A, B, 1e-3, 10).value)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"mode": "both"}, ValueError, "mode must be"),
        ({"n_steps": 0}, ValueError, "n_steps"),
        ({"a": np.array([[0.2, 0.5, 0.3]])}, ValueError, "one problem"),
        ({"b": np.array([0.6, 0.6])}, DomainError, "the same sum"),
        ({"epsilon": -1.0}, DomainError, "epsilon must be positive"),
    ],
)
def test_bad_input_is_refused(change, error, words):
    settings = {"cost": COST, "a": A, "b": B, "epsilon": EPSILON} | change
    with pytest.raises(error, match=words):
        sinkhorn_unrolled(**settings)
