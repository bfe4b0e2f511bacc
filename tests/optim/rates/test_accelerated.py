"""The theorems on momentum, against the methods: many quadratics at once, and functions that are not quadratic."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import eval_chebyu

from cumulant import optim
from cumulant.optim import rates
from cumulant.optim.certify.optimality import Knowledge
from cumulant.optim.solvers.accelerated_gradient import AcceleratedState
from cumulant.optim.solvers.heavy_ball import HeavyBallState
from tests.optim.rates.test_gradient_descent import gaps, pseudo_huber, quadratics

K = 60


def iterate(solver, states, problems):
    """Iterates after each step, for a stack of problems, with `solver.step`."""

    def one(problem, state):
        def step(s, _):
            new = solver.step(problem, s)
            new = jax.tree.map(lambda after, before: jnp.asarray(after, jnp.asarray(before).dtype), new, s)
            return new, new.x

        _, xs = jax.lax.scan(step, state, length=K)
        return jnp.concatenate([state.x[None], xs])

    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(one))(problems, jax.tree.map(jnp.asarray, states)))


def known(count):
    return Knowledge(np.zeros(count), np.ones(count, bool))


def accelerated(x0, steps, momenta):
    count = len(x0)
    zeros = np.zeros(count, np.int64)
    return AcceleratedState(x0, x0, np.zeros(count), zeros, zeros, steps, momenta, known(count))


@pytest.fixture(scope="module")
def stack():
    rng = np.random.default_rng(0)
    problems, spectra, best = quadratics(rng, 300)
    return problems, spectra, best, best + rng.normal(size=(300, 4))


def test_nesterov_on_quadratics(stack):
    problems, _, best, x0 = stack
    s = np.random.default_rng(1).uniform(0.1, 1.0, size=300)
    xs = iterate(optim.AcceleratedGradient(1.0), accelerated(x0, s, np.zeros(300)), problems)
    gap, squared = gaps(problems, best, xs), np.sum((x0 - best) ** 2, axis=1)
    bound = np.array([rates.nesterov(s[i], squared[i], np.arange(K + 1)) for i in range(300)])
    assert np.all(gap <= bound)
    assert np.max(gap[:, 1:] / bound[:, 1:]) > 0.1  # the bound is not far off, so this tests something


def test_nesterov_with_constant_momentum_on_quadratics(stack):
    problems, spectra, best, x0 = stack
    mu = spectra.min(axis=1)
    root = np.sqrt(mu)
    states = accelerated(x0, np.ones(300), (1 - root) / (1 + root))
    xs = iterate(optim.AcceleratedGradient(1.0, momentum=0.5), states, problems)
    gap, squared = gaps(problems, best, xs), np.sum((x0 - best) ** 2, axis=1)
    for i in range(300):
        bound = rates.nesterov_strongly_convex(1.0, mu[i], np.arange(K + 1), gap[i, 0], squared[i])
        assert np.all(gap[i] <= bound * (1 + 1e-9) + 1e-28)


def test_both_on_functions_that_are_not_quadratic():
    rng = np.random.default_rng(1)
    matrices, mu = rng.normal(size=(60, 6, 4)), 10.0 ** rng.uniform(-3, 0, size=60)
    L = np.linalg.norm(matrices, 2, axis=(1, 2)) ** 2 + mu
    structure = jax.tree.structure(optim.Objective(pseudo_huber, (1.0, 1.0), smoothness=1.0))
    problems = jax.tree.unflatten(structure, [matrices, mu, L, mu, np.zeros(60)])
    x0 = 5 * rng.normal(size=(60, 4))

    def values(xs):
        rows = np.einsum("nij,nkj->nki", matrices, xs)
        return np.sum(np.sqrt(1 + rows**2) - 1, axis=-1) + mu[:, None] * np.sum(xs**2, axis=-1) / 2

    squared = np.sum(x0**2, axis=1)
    found = values(iterate(optim.AcceleratedGradient(1.0), accelerated(x0, 1 / L, np.zeros(60)), problems))
    root = np.sqrt(mu / L)
    states = accelerated(x0, 1 / L, (1 - root) / (1 + root))
    constant = values(iterate(optim.AcceleratedGradient(1.0, momentum=0.5), states, problems))
    for i in range(60):
        assert np.all(found[i] <= rates.nesterov(1 / L[i], squared[i], np.arange(K + 1)) * (1 + 1e-12))
        bound = rates.nesterov_strongly_convex(L[i], mu[i], np.arange(K + 1), constant[i, 0], squared[i])
        assert np.all(constant[i] <= bound * (1 + 1e-12))


def test_nesterov_is_linear_in_the_end_on_a_quadratic_though_slower_than_gradient_descent():
    problem = optim.Quadratic([[2.0]], [0.0])  # f = x^2
    nesterov = optim.run(optim.AcceleratedGradient(0.25), problem, [1.0], max_steps=200, tol=None, every=1).trace.value
    descent = optim.run(optim.GradientDescent(0.25), problem, [1.0], max_steps=200, tol=None, every=1).trace.value
    predicted = rates.nesterov_quadratic_factor(0.25, 2.0)
    assert predicted == 0.5
    envelope = np.array([nesterov[k : k + 12].max() for k in (60, 160)])  # over an oscillation
    assert (envelope[1] / envelope[0]) ** (1 / 100) == pytest.approx(0.495, abs=0.02)
    assert descent[100] ** (1 / 100) == pytest.approx(0.25, rel=1e-6)


def test_the_flow_keeps_its_bound():
    problem = optim.Quadratic(np.diag([1.0, 0.01]), np.zeros(2))
    times = np.linspace(0.1, 60, 200)
    for friction in (3.0, 5.0):
        flow = optim.nesterov_flow(problem, [1.0, 2.0], times, friction=friction)
        values = np.sum(flow.x**2 * [1.0, 0.01], axis=1) / 2
        bound = rates.nesterov_flow(5.0, times, friction)
        assert np.all(values <= bound)
    with pytest.raises(ValueError, match="friction must be at least 3"):
        rates.nesterov_flow(1.0, 1.0, 2.0)


def test_heavy_ball_holds_on_quadratics_and_is_attained_at_the_largest_eigenvalue(stack):
    problems, spectra, best, x0 = stack
    mu = spectra.min(axis=1)
    step, momentum = 4 / (1 + np.sqrt(mu)) ** 2, ((1 - np.sqrt(mu)) / (1 + np.sqrt(mu))) ** 2
    states = HeavyBallState(x0, x0, step, momentum, known(300))
    distance = np.linalg.norm(iterate(optim.HeavyBall(), states, problems) - best[:, None], axis=-1)
    for i in range(300):
        bound = rates.heavy_ball(1.0, mu[i], np.arange(K + 1), distance[i, 0])
        assert np.all(distance[i] <= bound * (1 + 1e-9) + 1e-14)
    # The extreme case, and the formula behind it.
    problem = optim.Quadratic(np.diag([1.0, 100.0]), np.zeros(2))
    rho = rates.heavy_ball_contraction(100.0, 1.0)
    assert rho == pytest.approx(9 / 11, rel=1e-14)
    for k in (1, 7, 20):
        x = optim.run(optim.HeavyBall(), problem, [0.0, 1.0], max_steps=k, tol=None).x
        assert abs(x[1]) == pytest.approx(rates.heavy_ball(100.0, 1.0, k), rel=1e-9)
        formula = rho**k * (eval_chebyu(k, -1.0) - rho * eval_chebyu(k - 1, -1.0))
        assert x[1] == pytest.approx(formula, rel=1e-9)


def test_conjugate_gradients_keep_their_bound():
    rng = np.random.default_rng(5)
    for _ in range(5):
        basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
        spectrum = 10.0 ** rng.uniform(-2, 0, size=30)
        C = (basis * spectrum) @ basis.T
        problem = optim.Quadratic((C + C.T) / 2, np.zeros(30))
        run = optim.run(optim.ConjugateGradient(), problem, rng.normal(size=30), max_steps=25, tol=None)
        bound = rates.conjugate_gradient(spectrum.max(), spectrum.min(), run.trace.steps, run.trace.value[0])
        assert optim.compare_with_rate(run.trace, bound, rounding=1e-14).holds
    loose = 4 * rates.heavy_ball_contraction(4.0, 1.0) ** (2 * np.arange(5))
    assert np.all(rates.conjugate_gradient(4.0, 1.0, np.arange(5)) <= loose)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates.nesterov(0.0, 1.0, 1), "s, the step size, must be positive"),
        (lambda: rates.nesterov(1.0, -1.0, 1), "R2 must be finite and not negative"),
        (lambda: rates.nesterov_strongly_convex(1.0, 2.0, 1, 1.0, 1.0), "mu, the strong convexity constant"),
        (lambda: rates.nesterov_quadratic_factor(2.0, 1.0), "s must be at most 1/mu"),
        (lambda: rates.heavy_ball(1.0, 0.5, -1), "k, the number of steps"),
        (lambda: rates.ista(0.0, 1.0, 1), "tau, the step size, must be positive"),
        (lambda: rates.penalised_residual(-1.0, 1.0), "lam must be finite and not negative"),
        (lambda: rates.ridge_distance(1.0, 0.0, 1.0), "smallest, a non-zero singular value"),
    ],
)
def test_constants_no_function_has_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
