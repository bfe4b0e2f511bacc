"""Recursions, flows and the leapfrog: gradients against stored back-propagation, costs against formulas."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.layers import binomial_steps, checkpoint_cost, leapfrog, leapfrog_back, neural_ode, recurrent


def perceptron(x, theta, k):
    """The residual map ``x + W2^T tanh(W1 x)``, with a drift that depends on the step."""
    return x + 0.1 * theta["W2"].T @ jnp.tanh(theta["W1"] @ x) + 0.01 * jnp.cos(k * 1.0)


def decay(x, theta, t):
    return -theta * x


def swing(x, theta, t):
    return jnp.stack([x[1], -theta[0] * jnp.sin(x[0]) - theta[1] * x[1] + jnp.sin(t)])


def position(s, theta, t):
    return s


def force(r, theta, t):
    return -theta * r


def test_checkpointing_costs_what_the_formulas_say():
    assert [checkpoint_cost(t) for t in (8, 64, 1024)] == [(12, 4), (192, 7), (5120, 11)]

    @functools.cache
    def best(length, slots):  # by trying every split
        if length == 1:
            return 0
        if slots == 1:
            return length * (length - 1) // 2
        return min(m + best(length - m, slots - 1) + best(m, slots) for m in range(1, length))

    for length in range(1, 40):
        for slots in range(1, 8):
            cost = checkpoint_cost(length, "binomial", slots)
            assert cost.extra_steps == best(length, slots) == binomial_steps(length, slots)
            assert cost.stored_states <= slots


def test_checkpointing_changes_no_bit_of_the_gradient():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        theta = {name: jnp.asarray(rng.normal(size=(3, 4))) for name in ("W1", "W2")}
        x0 = jnp.asarray(rng.normal(size=4))

        def gradient(**settings):
            loss = lambda x, t: jnp.sum(recurrent(perceptron, x, t, 37, **settings) ** 2)  # noqa: E731
            return jax.jit(jax.grad(loss, (0, 1)))(x0, theta)

        stored = gradient(checkpoint="binomial", slots=37)  # every state kept, the same arithmetic
        for other in (gradient(), gradient(checkpoint="binomial", slots=4)):
            assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), stored, other))
        for ours, plain in zip(jax.tree.leaves(stored), jax.tree.leaves(gradient(checkpoint=None)), strict=True):
            assert_allclose(ours, plain, rtol=1e-12, atol=1e-13)


def test_checkpointing_saves_memory():
    """The temporary memory of the compiled gradient: 512 states of 4 kB each, or ten of them."""
    x0 = jnp.ones(1000)

    def needed(checkpoint):
        loss = lambda t: jnp.sum(recurrent(lambda x, t, k: jnp.sin(t * x), x0, t, 512, checkpoint=checkpoint))  # noqa: E731
        return jax.jit(jax.grad(loss)).lower(1.0).compile().memory_analysis().temp_size_in_bytes

    assert needed(None) > 512 * 4000
    assert needed("bisection") < 30 * 4000


def test_the_adjoint_of_an_exponential():
    """``x' = -theta x``, ``L = x(T)^2 / 2``: the exact gradient, and the published ones of Euler's method."""

    def slope(**settings):
        return float(jax.jit(jax.grad(lambda t: neural_ode(decay, 1.5, t, 2.0, **settings) ** 2 / 2))(0.7))

    exact = -2.0 * 1.5**2 * np.exp(-2.8)
    assert_allclose(exact, -0.273645281813, atol=1e-11)
    with jax.enable_x64(True):
        assert_allclose(slope(n_steps=10, method="euler"), -0.256261336840, atol=1e-11)
        assert_allclose(slope(n_steps=100, method="euler", gradient="stored"), -0.272093763117, atol=1e-11)
        assert_allclose(slope(n_steps=1000, method="euler"), -0.273491850794, atol=1e-11)
        errors = [abs(slope(n_steps=n, gradient="continuous") - exact) for n in (20, 40)]
        assert 3.5 < np.log2(errors[0] / errors[1]) < 4.5


def flow_gradient(gradient):
    def loss(x0, theta, horizon):
        return jnp.sum(jnp.sin(neural_ode(swing, x0, theta, horizon, 100, gradient=gradient)))

    return jax.jit(jax.grad(loss, (0, 1, 2)))(jnp.array([0.5, -0.2]), jnp.array([1.3, 0.2]), 2.0)


def test_the_discrete_and_the_continuous_gradient_of_a_flow_agree():
    with jax.enable_x64(True):
        for one, other in zip(flow_gradient("checkpointed"), flow_gradient("continuous"), strict=True):
            assert_allclose(one, other, atol=1e-7)


@pytest.mark.slow
def test_diffrax_finds_the_same():
    diffrax = pytest.importorskip("diffrax")

    def peer(x0, theta, horizon):
        term = diffrax.ODETerm(lambda t, x, args: swing(x, args, t))
        control = diffrax.PIDController(rtol=1e-11, atol=1e-11)
        found = diffrax.diffeqsolve(
            term, diffrax.Dopri8(), 0.0, horizon, 0.1, x0, args=theta, stepsize_controller=control
        )
        return jnp.sum(jnp.sin(found.ys[0]))

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(peer, (0, 1, 2)))(jnp.array([0.5, -0.2]), jnp.array([1.3, 0.2]), 2.0)
        for one, other in zip(flow_gradient("checkpointed"), expected, strict=True):
            assert_allclose(one, other, atol=1e-7)


@pytest.mark.slow
def test_the_continuous_adjoint_drifts_where_the_flow_contracts():
    """Steps of length one of ``x' = -x``: backwards the state grows by more than it fell, and the gradient is off."""

    def loss(theta, gradient):
        return neural_ode(decay, 1.0, theta, 24.0, 24, gradient=gradient)

    with jax.enable_x64(True):
        slope = {
            name: float(jax.jit(jax.grad(loss), static_argnums=1)(1.0, name)) for name in ("checkpointed", "continuous")
        }
    step = 1 - 1 + 1 / 2 - 1 / 6 + 1 / 24  # what one step multiplies by, and its derivative
    assert_allclose(slope["checkpointed"], 24 * step**23 * (-1 + 1 - 1 / 2 + 1 / 6), rtol=1e-12)
    assert abs(slope["continuous"] / slope["checkpointed"] - 1) > 0.1


def test_the_leapfrog_goes_back_to_where_it_came_from():
    r, s = leapfrog(position, force, 1.0, 0.0, 1.0, 0.1, 10_000)
    r, s = leapfrog_back(position, force, r, s, 1.0, 0.1, 10_000)
    assert_allclose([r, s], [1.0, 0.0], atol=1e-13)


def test_the_leapfrog_takes_its_forces_half_a_step_later():
    """``r' = t`` and ``s' = t``: sums of ``tau^2 k`` and of ``tau^2 (k + 1/2)``, and back."""

    def time(_, theta, t):
        return theta * t

    r, s = leapfrog(time, time, 0.0, 0.0, 1.0, 0.1, 20)
    assert_allclose([r, s], [0.01 * 20 * 19 / 2, 0.01 * 20**2 / 2], rtol=1e-12)
    assert_allclose(leapfrog_back(time, time, r, s, 1.0, 0.1, 20), (0.0, 0.0), atol=1e-12)


def test_the_orders_of_the_leapfrog():
    plain, staggered = [], []
    for n in (10, 20, 40):
        tau = 1.0 / n
        plain.append(abs(leapfrog(position, force, 1.0, 0.0, 1.0, tau, n)[0] - np.cos(1)))
        staggered.append(abs(leapfrog(position, force, np.cos(tau / 2), 0.0, 1.0, tau, n)[0] - np.cos(1 - tau / 2)))
    assert_allclose(plain, [0.0418, 0.0210, 0.0105], atol=6e-5)
    assert_allclose(staggered, [3.2e-4, 8.4e-5, 2.1e-5], rtol=0.03)


def test_the_reversible_gradient():
    def through(step):
        def loss(r, s, theta, tau):
            r, s = step(r, s, theta, tau)
            return jnp.sum(jnp.sin(r) * s)

        return jax.jit(jax.grad(loss, (0, 1, 2, 3)))

    def stored(r, s, theta, tau):
        for _ in range(30):
            r = r + tau * s
            s = s - tau * theta * r
        return r, s

    with jax.enable_x64(True):
        at = (jnp.array([1.0, 0.5]), jnp.array([0.2, -0.3]), 1.7, 0.1)
        found = through(lambda *a: leapfrog(position, force, *a, 30))(*at)
        for one, other in zip(found, through(stored)(*at), strict=True):
            assert_allclose(one, other, rtol=1e-11)
    sizes = [
        jax.jit(jax.grad(lambda r: jnp.sum(leapfrog(position, force, r, r, 1.0, 0.1, n)[0])))  # noqa: B023
        .lower(jnp.ones(1000)).compile().memory_analysis().temp_size_in_bytes
        for n in (10, 1000)
    ]  # fmt: skip
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: recurrent(perceptron, 1.0, 1.0, 3, checkpoint="sqrt"), "must be 'bisection' or 'binomial'"),
        (lambda: recurrent(decay, 1.0, 1.0, 0), "n_steps must be a whole number"),
        (lambda: checkpoint_cost(8, "binomial", 0), "slots must be a whole number"),
        (lambda: checkpoint_cost(8, "bisection", 3), "slots is for"),
        (lambda: neural_ode(decay, 1.0, 1.0, 1.0, 10, method="heun"), "method must be one of"),
        (lambda: neural_ode(decay, 1.0, 1.0, 1.0, 10, gradient="adjoint"), "gradient must be one of"),
        (lambda: leapfrog(position, force, 1.0, 0.0, 1.0, 0.1, 2.5), "n_steps must be a whole number"),
        (lambda: recurrent(lambda x, t, k: jnp.ones(3), 1.0, 1.0, 2), "shape of x"),
        (lambda: neural_ode(lambda x, t, _: x**2, 1.0, 1.0, 20.0, 20), "the flow became non-finite"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
