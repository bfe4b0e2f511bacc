"""Flows: published points, conserved quantities, and the identity of re-parameterised and mirror flows."""

import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.errors import CumulantError, DomainError, NotConvergedError
from cumulant.geometry import Burg, Euclidean, Hypentropy, LogDet, Power, Shannon
from cumulant.optim import flows

LINE = optim.LeastSquares([[1.0, 2.0]], [2.0], reduction="sum")
PLANE = optim.LeastSquares([[1.0, -2.0, 0.5]], [1.0], reduction="sum")


@pytest.mark.parametrize(
    ("b", "expected"),
    [(2.0, (0.34750843, 0.53672047)), (3.0, (0.36479995, 0.62651656)), (4.0, (0.37854203, 0.71778831))],
)
def test_the_flow_of_a_power_is_a_mirror_flow_b_squared_times_faster(b, expected):
    x0 = np.array([0.3, 0.4])
    power = flows.PowerMap(b)
    through = flows.reparametrised_flow(LINE, power, power.start(x0), [0.0, 0.05])
    np.testing.assert_allclose(through.last, expected, atol=5e-9)
    entropy, factor = flows.equivalent_entropy(power)
    assert factor == b**2
    mirror = flows.mirror_flow(LINE, entropy, x0, [0.0, 0.05 * factor])
    np.testing.assert_allclose(mirror.last, through.last, atol=1e-8)
    np.testing.assert_allclose(through.x[0], x0, rtol=1e-13)


def test_the_flow_of_the_exponential_is_that_of_burg():
    x0 = np.array([0.3, 0.4])
    through = flows.reparametrised_flow(LINE, flows.Exponential(), flows.Exponential().start(x0), [0.3])
    np.testing.assert_allclose(through.last, (0.32315564, 0.49448606), atol=5e-9)
    assert flows.equivalent_entropy(flows.Exponential()) == (Burg(), 1.0)
    np.testing.assert_allclose(flows.mirror_flow(LINE, Burg(), x0, [0.3]).last, through.last, atol=1e-8)


def test_the_hadamard_flow_is_that_of_the_hypentropy():
    z0 = np.array([[0.5, 0.4, 0.6], [0.1, 0.3, -0.2]])
    through = flows.reparametrised_flow(PLANE, flows.Hadamard(), z0, [0.0, 0.35, 0.7])
    np.testing.assert_allclose(through.last, (0.3100319, -0.02223469, -0.00911854), atol=5e-9)
    conserved = through.z[:, 0] ** 2 - through.z[:, 1] ** 2
    np.testing.assert_allclose(conserved, np.broadcast_to(conserved[0], conserved.shape), atol=1e-8)
    entropy, factor = flows.equivalent_entropy(flows.Hadamard(), z0)
    np.testing.assert_allclose(entropy.beta, np.abs(z0[0] ** 2 - z0[1] ** 2) / 2)
    np.testing.assert_allclose(
        flows.mirror_flow(PLANE, entropy, z0[0] * z0[1], [0.7 * factor]).last, through.last, atol=1e-8
    )


def test_the_signed_flow_reaches_the_hypentropy_projection():
    z0 = np.full((2, 3), 1e-3)
    through = flows.reparametrised_flow(PLANE, flows.Signed(), z0, [40.0])
    np.testing.assert_allclose(through.last, (7.06850718e-4, -0.499639937, 2.65490781e-5), atol=1e-8)
    np.testing.assert_allclose(through.z[-1][0] * through.z[-1][1], 1e-6, atol=1e-8)
    entropy, factor = flows.equivalent_entropy(flows.Signed(), z0)
    assert factor == 4.0
    np.testing.assert_allclose(entropy.beta, 2e-6)
    np.testing.assert_allclose(optim.implicit_bias(PLANE.A, PLANE.y, np.zeros(3), entropy).x, through.last, atol=1e-8)


def quarter(X, target):
    return jnp.sum((X - target) ** 2) / 2


def test_the_flow_of_a_square_of_matrices_obeys_its_equation_and_is_not_that_of_log_det():
    target = np.array([[2.0, 0.5], [0.5, 1.0]])
    problem = optim.Objective(quarter, target)
    Z0 = np.array([[0.3, 0.1], [-0.2, 0.5]])
    h = 1e-4
    flow = flows.reparametrised_flow(problem, flows.PositiveSemidefinite(), Z0, [0.2 - h, 0.2, 0.2 + h])
    X = flow.x[1]
    slope = (flow.x[2] - flow.x[0]) / (2 * h)
    S = 2 * (X - target)  # G + G^T
    np.testing.assert_allclose(slope, -(X @ S + S @ X), atol=1e-6)  # with the minus sign
    mirror = flows.mirror_flow(problem, LogDet(), Z0 @ Z0.T, [0.2])
    assert np.max(np.abs(mirror.last - X)) > 0.05
    with pytest.raises(CumulantError, match="not a mirror flow in general"):
        flows.equivalent_entropy(flows.PositiveSemidefinite())


def bowl(x, data):
    return jnp.sum(x * jnp.log(x) - x) + 0.5 * jnp.sum(x) ** 2


def test_the_newton_flow_shrinks_the_gradient_at_unit_rate():
    # With psi = f the mirror flow is Newton's: grad f(x(t)) = exp(-t) grad f(x_0). For f = |x|^2 / 2, x(t) = exp(-t)
    # x_0.
    problem = optim.Quadratic(np.eye(2), [0.0, 0.0])
    flow = flows.mirror_flow(problem, Euclidean(), [1.0, -2.0], [0.0, 0.5, 1.0])
    np.testing.assert_allclose(flow.x, np.exp(-flow.times)[:, None] * [1.0, -2.0], atol=1e-9)
    # And for Shannon's entropy as the objective, whose gradient is log x.
    shannon = optim.Objective(entropy_of, ())
    flow = flows.mirror_flow(shannon, Shannon(), [3.0, 0.2], [0.0, 1.0, 4.0])
    np.testing.assert_allclose(np.log(flow.x), np.exp(-flow.times)[:, None] * np.log([3.0, 0.2]), atol=1e-9)


def entropy_of(x, data):
    return jnp.sum(x * jnp.log(x) - x)


def test_mirror_descent_with_small_steps_follows_the_flow():
    x0, time = np.array([0.3, 0.4]), 0.4
    flow = flows.mirror_flow(LINE, Shannon(), x0, [time]).last
    errors = []
    for steps in (100, 200, 400):
        run = optim.run(optim.MirrorDescent(Shannon(), time / steps), LINE, x0, max_steps=steps, tol=None)
        errors.append(np.max(np.abs(run.x - flow)))
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2.0, atol=0.05)  # first order


def test_stiff_methods_agree():
    x0 = [1e-4, 1e-4]
    found = [flows.mirror_flow(LINE, Power(0.5), x0, [0.5, 3.0], method=m).last for m in ("LSODA", "BDF", "Radau")]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flows.mirror_flow(LINE, Shannon(), [0.0, 1.0], [1.0]), DomainError, "off its boundary"),
        (lambda: flows.mirror_flow(LINE, Shannon(), [1.0, 1.0], [1.0, 0.5]), ValueError, "increasing times"),
        (lambda: flows.mirror_flow(LINE, Shannon(), [1.0, 1.0], []), ValueError, "increasing times"),
        (
            lambda: flows.reparametrised_flow(LINE, flows.Signed(), [1.0, 1.0, 1.0], [1.0]),
            ValueError,
            "u and v on its first axis",
        ),
        (
            lambda: flows.reparametrised_flow(LINE, flows.PowerMap(2.0), [-1.0, 1.0], [1.0]),
            DomainError,
            "z0 must be positive",
        ),
        (lambda: flows.PowerMap(0.0), ValueError, "b, the exponent, must be positive"),
        (lambda: flows.PowerMap(2.0).start([0.0, 1.0]), DomainError, "x0 must be positive"),
        (lambda: flows.equivalent_entropy(flows.Signed()), ValueError, "z0 is needed"),
        (lambda: flows.equivalent_entropy(flows.Hadamard(), np.ones((2, 3))), DomainError, "must not vanish"),
        (lambda: flows.equivalent_entropy("power"), TypeError, "must be one of the maps"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_flow_that_blows_up_says_so():
    downhill = optim.Quadratic(-np.eye(1), [0.0])
    with pytest.raises(NotConvergedError, match="could not be integrated"), np.errstate(all="ignore"):
        flows.mirror_flow(downhill, Hypentropy(1e-3), [1.0], [0.0, 1e6])
