"""Runs that end by their residual, without constants or a certificate; and step sizes found without knowing L."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import optim
from cumulant.optim import rates

RNG = np.random.default_rng(5)
A, Y = RNG.normal(size=(30, 8)), RNG.normal(size=30)
L = float(np.linalg.eigvalsh(A.T @ A)[-1])
LASSO = optim.Composite(optim.LeastSquares(A, Y, reduction="sum"), optim.L1(4.0))
BEST = optim.run(optim.AcceleratedProximalGradient(restart=True), LASSO, np.zeros(8), tol=1e-13, max_steps=10**5)


def rosenbrock(x, data):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def rosenbrock_gradient(x):
    return np.array([-2 * (1 - x[0]) - 400 * x[0] * (x[1] - x[0] ** 2), 200 * (x[1] - x[0] ** 2)])


def squares(x, data):
    matrix, y, scale = data
    return scale * jnp.sum((matrix @ x - y) ** 2) / 2


def unknown(scale=1.0):
    """The same objective, of which nothing is known."""
    return optim.Composite(optim.Objective(squares, (A, Y, scale)), optim.L1(4.0 * scale))


@pytest.mark.parametrize("solver", [optim.LBFGS(iterations=5), optim.Newton(), optim.GradientDescent()], ids=str)
def test_a_function_of_which_nothing_is_known_ends_as_stationary(solver):
    problem = optim.Objective(rosenbrock)
    result = optim.run(solver, problem, [-1.2, 1.0], residual_tol=1e-4, max_steps=10**5)
    assert result.status == "stationary"
    assert result.certificate is None
    assert "residual_tol" in result.message
    assert np.linalg.norm(rosenbrock_gradient(result.x)) <= 1e-4 * (1 + 1e-9)
    residuals = result.trace["residual"]
    assert np.all(residuals[:-1] > 1e-4)
    assert residuals[-1] <= 1e-4


def test_the_residual_and_the_certificate_together():
    problem = optim.Quadratic([[1.0, 0.0], [0.0, 10.0]], [1.0, 10.0])
    loose = optim.run(optim.GradientDescent(), problem, [0.0, 0.0], residual_tol=0.5, tol=1e-12)
    assert loose.status == "stationary"
    assert loose.certificate is not None
    assert loose.relative_bound > 1e-12
    without = optim.run(optim.GradientDescent(), problem, [0.0, 0.0], residual_tol=0.5, tol=None)
    assert (without.status, without.work) == ("stationary", loose.work)
    both = optim.run(optim.GradientDescent(), problem, [0.0, 0.0], residual_tol=1e-9, tol=1e-3)
    assert both.status == "converged"
    at_once = optim.run(optim.GradientDescent(), problem, [1.0, 1.0], residual_tol=1e-9, tol=None)
    assert (at_once.status, at_once.work) == ("stationary", 0)


def test_the_pure_form_ends_by_its_residual_too():
    x, info = optim.solve(optim.Newton(), optim.Objective(rosenbrock), [-1.2, 1.0], residual_tol=1e-2, tol=0.0)
    assert bool(info.converged)
    assert 0 < info.residual <= 1e-2
    assert np.linalg.norm(rosenbrock_gradient(x)) <= 1e-2


def test_a_residual_that_is_not_measured_is_refused():
    problem = optim.LeastSquares(A, Y)
    with pytest.raises(ValueError, match="residual_tol: SGD measures no residual"):
        optim.run(optim.SGD(optim.InverseTime(0.05, 100)), problem, np.zeros(8), residual_tol=1e-3)
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match="residual_tol must be finite and not negative"):
            optim.run(optim.Newton(), optim.Objective(rosenbrock), [0.0, 0.0], residual_tol=wrong)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_backtracking_finds_the_lasso_without_knowing_anything(scale):
    for solver in (optim.ProximalGradient(), optim.AcceleratedProximalGradient(restart=True)):
        result = optim.run(solver, unknown(scale), np.zeros(8), tol=None, residual_tol=1e-8 * scale, max_steps=20_000)
        assert result.status == "stationary"
        assert_allclose(result.x, BEST.x, atol=1e-8)
        assert result.trace["step_size"].min() >= rates.backtracking_step(scale * L, 0.5, np.inf) * (1 - 1e-9)


def test_the_rates_hold_with_the_accepted_steps():
    """``R^2 / (2 sum tau)`` for plain steps, whose values never increase; ``2 R^2 / (tau (k + 1)^2)`` accelerated."""
    R2 = float(BEST.x @ BEST.x)
    plain = optim.run(optim.ProximalGradient(), unknown(), np.zeros(8), tol=None, max_steps=60, every=1).trace
    gaps, taus = plain.value - BEST.value, plain["step_size"]
    assert np.all(np.diff(plain.value) <= 1e-12)
    assert np.all(gaps[1:] <= R2 / (2 * np.cumsum(taus[1:])) + 1e-10)
    fast = optim.run(optim.AcceleratedProximalGradient(), unknown(), np.zeros(8), tol=None, max_steps=60, every=1).trace
    gaps, taus, k = fast.value - BEST.value, fast["step_size"], fast.steps
    assert np.all(np.diff(taus) <= 0)
    assert np.all(gaps[1:] <= 2 * R2 / (taus[1:] * (k[1:] + 1) ** 2) + 1e-10)
    worst = optim.rates.fista(rates.backtracking_step(L, 0.5, np.inf), R2, k)
    assert np.all(gaps <= worst + 1e-10)


def barrier(x, data):
    return jnp.sum(x - jnp.log(x))


def test_a_trial_outside_the_domain_is_a_smaller_step():
    result = optim.run(optim.GradientDescent(), optim.Objective(barrier), [1e-3, 5.0], residual_tol=1e-9, tol=None)
    assert result.status == "stationary"
    assert_allclose(result.x, 1.0, atol=1e-8)


def test_backtracking_in_single_precision():
    start = jnp.zeros(8, jnp.float32)
    data = (jnp.asarray(A, jnp.float32), jnp.asarray(Y, jnp.float32), jnp.float32(1.0))
    problem = optim.Composite(optim.Objective(squares, data), optim.L1(4.0))
    result = optim.run(optim.AcceleratedProximalGradient(restart=True), problem, start, tol=None, residual_tol=2e-3)
    assert result.status == "stationary"
    assert result.x.dtype == jnp.float32
    assert_allclose(result.x, BEST.x, atol=1e-3)


@pytest.mark.parametrize("settings", [{"beta": 1.0}, {"beta": "half"}, {"initial": 0.0}, {"initial": np.nan}], ids=str)
def test_settings_of_backtracking(settings):
    with pytest.raises((ValueError, TypeError), match=f"{next(iter(settings))} of Backtracking must be"):
        optim.Backtracking(**settings)


def test_a_step_of_one_over_an_unknown_smoothness_is_refused():
    for solver in (optim.ProximalGradient("1/L"), optim.GradientDescent("1/L"), optim.AcceleratedGradient("1/L")):
        with pytest.raises(ValueError, match=r"needs the smoothness constant of the problem.*Backtracking\(\)"):
            optim.run(solver, optim.Objective(rosenbrock), [0.0, 0.0])


# What is wrong with a function is said in a sentence ------------------------------------------------------------------


def with_numpy(x, data):
    return np.sum(np.asarray(x) ** 2)


def with_if(x, data):
    return jnp.sum(x) if x[0] > 0 else -jnp.sum(x)


def vector_valued(x, data):
    return x**2


def nothing(x, data):
    return None


def not_finite(x, data):
    return jnp.sum(x) * jnp.nan


def one_argument(x):
    return jnp.sum(x**2)


def counting(x, data):
    return jnp.sum(x**2)


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (with_numpy, TypeError, "function must be a JAX function: write it with jax.numpy"),
        (with_if, TypeError, "function must be a JAX function"),
        (vector_valued, ValueError, r"function must return a number; it returns an array of shape \(2,\)"),
        (nothing, TypeError, "function must return a number; it returns NoneType"),
        (not_finite, ValueError, "the objective or its gradient is not finite at x0"),
    ],
)
@pytest.mark.parametrize("solver", [optim.GradientDescent(0.1), optim.LBFGS()], ids=str)
def test_functions_that_are_not_objectives(function, kind, words, solver):
    with pytest.raises(kind, match=words):
        optim.run(solver, optim.Objective(function), [1.0, 2.0])


def test_the_number_of_arguments_and_the_start():
    with pytest.raises(TypeError, match=r"function must be a function of \(x, data\); it takes \(x\)"):
        optim.Objective(one_argument)
    with pytest.raises(TypeError, match="function must be a function of"):
        optim.Objective(3.0)
    for start in ([3, 4], jnp.array([3, 4]), {"a": np.array([3]), "b": 4}):
        problem = optim.Objective(lambda x, data: sum(jnp.sum((1.0 * leaf) ** 2) for leaf in jax_leaves(x)))
        result = optim.run(optim.Newton(), problem, start, residual_tol=1e-3)
        assert result.status == "stationary"
    assert_allclose(optim.Objective(counting).gradient([3, 4]), [6.0, 8.0])
    with pytest.raises(ValueError, match="x0 must be finite"):
        optim.run(optim.Newton(), optim.Objective(counting), [np.nan, 0.0])
    with pytest.raises(TypeError, match="x0 must be an array of real numbers"):
        optim.run(optim.Newton(), optim.Objective(counting), ["a", "b"])


def jax_leaves(tree):
    return list(tree.values()) if isinstance(tree, dict) else [tree]
