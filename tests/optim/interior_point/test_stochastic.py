"""Interior-point stochastic approximation: hand-computed steps, invariants under any noise, rates, streams."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import Lasso

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import DomainError
from cumulant.optim.gradients import ByRows, Noisy, Sampled
from cumulant.optim.interior_point import (
    AbsoluteBounds,
    Bounds,
    ConstantSigma,
    ConstrainedProblem,
    Harmonic,
    InteriorPointSA,
    Intersection,
    MehrotraSigma,
    PowerSigma,
    QuadraticConstraints,
    SimplexConstraints,
    certify_constrained,
    diagnostics,
    ipsa_init,
    ipsa_step,
    l1_regularize,
    on_simplex,
    rm_budget,
)
from cumulant.optim.interior_point.moves import ROUTES, centre, direction
from cumulant.precision import float64
from cumulant.pytrees import pytree
from tests.optim.interior_point import reference
from tests.optim.interior_point.cases import CORNER


@pytest.mark.parametrize(
    ("formulation", "ahat", "x", "z"),
    [
        ("split", 0.5, (1.8528571, 0.1471429), (0.005, 1.7107143)),
        ("split", 1 / 51, (1.0588235, 0.9411765), (0.9313725, 1.0490196)),
        ("bound", 0.5, (0.7236364, 1.0904545), (0.005, 1.4522727)),
    ],
)
def test_a_step_by_hand(formulation, ahat, x, z):
    """One feature 2, response 3, weight 1/2, sigma = 1/2."""
    problem = l1_regularize(optim.LeastSquares([[2.0]], [3.0]), 0.5, formulation)
    solver = InteriorPointSA(float(ahat), ConstantSigma(0.5))
    with float64():
        state = jax.jit(lambda x: solver.step(problem, solver.init(problem, x, jax.random.PRNGKey(0))))(problem.start())
        state = jax.tree.map(np.asarray, state)
    np.testing.assert_allclose(state.x, x, atol=1e-7)
    np.testing.assert_allclose(state.z, z, atol=1e-7)
    assert state.mu == 0.5
    assert state.cuts == (ahat == 0.5)
    if formulation == "split":
        assert state.slack @ state.z == pytest.approx(0.2609837 if ahat == 0.5 else 1.9734717, abs=1e-7)


def test_separate_steps_by_hand():
    """The same datum, ``dx = (3, -3)`` and ``dz = (-7/2, 5/2)``: each goes 0.995 of its way, or the step allowed."""
    problem = l1_regularize(optim.LeastSquares([[2.0]], [3.0]), 0.5, "split")
    for ahat, primal, dual in ((0.5, 0.995 / 3, 0.995 / 3.5), (0.3, 0.3, 0.995 / 3.5), (0.1, 0.1, 0.1)):
        solver = InteriorPointSA(ahat, ConstantSigma(0.5), separate_steps=True)
        with float64():
            state = solver.step(problem, solver.init(problem, problem.start(), jax.random.PRNGKey(0)))
            state = jax.tree.map(np.asarray, state)
        np.testing.assert_allclose((state.primal_step, state.dual_step), (primal, dual), rtol=1e-12)
        np.testing.assert_allclose(state.x, [1 + 3 * primal, 1 - 3 * primal], atol=1e-12)
        np.testing.assert_allclose(state.z, [1 - 3.5 * dual, 1 + 2.5 * dual], atol=1e-12)


def test_the_routes_of_the_compiled_step_agree():
    rng = np.random.default_rng(1)
    problem = l1_regularize(None, 0.5, "bound")
    with float64():

        @jax.jit
        def steps(x, z, g):
            g, slack = problem.objective.lift_gradient(g), -problem.constraints.value(x)
            curvatures = [np.array([1.0, 3.0]), np.array([[2.0, 0.3], [0.3, 1.0]])]
            lifted = [problem.objective.lift_curvature(jnp.asarray(each), 2) for each in curvatures]
            found = [
                [direction(problem.constraints, x, z, slack, g, 0.1, W, route) for route in ROUTES] for W in lifted
            ]
            return jnp.array([[jnp.concatenate(each) for each in row] for row in found])

        found = np.asarray(steps(np.array([0.1, -0.4, 0.7, 0.5]), rng.uniform(size=4), rng.normal(size=2)))
    np.testing.assert_allclose(found - found[:, :1], 0, atol=1e-10)
    assert np.abs(found[0] - found[1]).max() > 0.01  # and the curvature matters


def test_mehrotras_rule_by_hand():
    rules = (MehrotraSigma(2.0), MehrotraSigma(3.0), MehrotraSigma(2.0, PowerSigma(1.0)))

    @jax.jit
    def go(x, z, g):
        towards = direction(Bounds(0.0), x, z, x, g, 0.0, jnp.asarray(1.0))
        mus = [
            centre(rule, Bounds(0.0), x, z, x, g, jnp.asarray(1.0), k, "auto")
            for rule, k in zip(rules, (0, 0, 99), strict=True)
        ]
        return towards.dx, towards.dz, jnp.stack(mus)

    with float64():
        dx, dz, mus = (np.asarray(each) for each in go(*np.array([[1.0, 2.0], [1.0, 0.5], [1.0, -1.0]])))
        # dx = (-3/2, 0) and dz = (1/2, -1): all of the way to x = (0, 1), z = (4/3, 1/3), a sixth of the gap
        to_the_boundary = np.asarray(go(*np.array([[1.0, 1.0], [1.0, 1.0], [3.0, 0.0]]))[2])
    np.testing.assert_allclose(to_the_boundary[:2], [1 / 36, 1 / 216], atol=1e-12)
    np.testing.assert_allclose(dx, [-0.5, 0.8], atol=1e-12)
    np.testing.assert_allclose(dz, [-0.5, -0.7], atol=1e-12)
    # The gap is 2 with two constraints, so that mu = sigma; the last is at its ceiling.
    np.testing.assert_allclose(mus, [0.0426971, 0.0088226, 0.01], atol=1e-7)


@pytest.fixture(scope="module")
def stream():
    """A scan of a thousand steps over a small data set, for both formulations: every state, in float64."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 3))
    y = A @ [1.0, 0.0, -2.0] + 0.3 * rng.normal(size=40)
    solver, states = InteriorPointSA(Harmonic(5), PowerSigma(0.9)), {}
    with float64():
        for formulation in ("split", "bound"):
            problem = l1_regularize(optim.LeastSquares(A, y), 0.2, formulation)

            @jax.jit
            def go(state, problem=problem):
                def one(state, row):
                    w = problem.objective.coefficients(state.x)
                    a = jnp.asarray(A)[row]
                    state = ipsa_step(solver, problem, state, -a * (jnp.asarray(y)[row] - a @ w))
                    return state, (state.x, state.z, state.slack, state.primal_step)

                return jax.lax.scan(one, state, jnp.arange(1000) % 40)

            last, found = go(ipsa_init(solver, problem, problem.start()))
            states[formulation] = [np.asarray(each) for each in found]
            states[formulation, "budget"] = rm_budget(last)
    return A, y, states


@pytest.mark.parametrize("formulation", ["split", "bound"])
def test_a_compiled_scan_equals_the_loop_in_numpy(stream, formulation):
    A, y, states = stream
    x, z = getattr(reference, formulation)(A, y, 0.2, 5, lambda k: k**-0.9, 1000)
    np.testing.assert_allclose(states[formulation][0][-1], x, atol=1e-10)
    np.testing.assert_allclose(states[formulation][1][-1], z, atol=1e-10)


@pytest.mark.parametrize("formulation", ["split", "bound"])
def test_the_gap_obeys_its_identity_at_every_step(stream, formulation):
    """gap_next = (1 - a (1 - sigma)) gap - a^2 <J dx, dz>, with -a J dx the change of the slacks."""
    _, _, z, slack, a = None, None, *stream[2][formulation][1:]
    gap = np.sum(slack * z, axis=1)
    assert slack.min() > 0
    assert z.min() > 0
    sigma = np.arange(2, 1001) ** -0.9
    cross = np.sum(np.diff(slack, axis=0) * np.diff(z, axis=0), axis=1)
    predicted = (1 - a[1:] * (1 - sigma)) * gap[:-1] + cross
    np.testing.assert_allclose(gap[1:], predicted, rtol=1e-11, atol=1e-13)


CURVED = QuadraticConstraints(
    [[[2.0, 0.0], [0.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]]], [[0.0, -1.0], [0.0, 0.0]], [0.0, -4.0]
)
CURVED = ConstrainedProblem(CORNER.loss, Intersection((Bounds([0.0, -np.inf]), CURVED)))


FAR = ConstrainedProblem(
    CORNER.loss, Bounds([1.0, 100.0])
)  # near 1 and 100, unlike near 0, steps round to the boundary


@pytest.mark.parametrize(
    ("problem", "x0", "runs"),
    [(FAR, (2.0, 101.0), 1000), pytest.param(CURVED, (0.5, 1.0), 100, marks=pytest.mark.slow)],
    ids=["bounds", "between a parabola and a disc"],
)
def test_no_noise_however_large_leads_outside(problem, x0, runs):
    """Gradients off by 10^-3 to 10^12: every iterate is strictly feasible, and every multiplier positive."""

    def worst(seed, scale):
        solver = InteriorPointSA(Harmonic(1), gradients=Noisy(scale))

        def one(_, carry):
            state, low, nearest = carry
            state = solver.step(problem, state)
            room = -problem.constraints.value(state.x).max()
            return state, jnp.minimum(low, jnp.minimum(room, state.z.min())), jnp.minimum(nearest, room)

        state = solver.init(problem, jnp.array(x0), jax.random.PRNGKey(seed))
        return jax.lax.fori_loop(0, 60, one, (state, jnp.inf, jnp.inf))[1:]

    with float64():
        scales = 10.0 ** np.random.default_rng(0).uniform(-3, 12, size=runs)
        low, nearest = map(np.asarray, jax.jit(jax.vmap(worst))(jnp.arange(runs), scales))
    assert low.min() > 0
    if problem is FAR:
        assert np.mean(nearest < 1e-12) > 0.02  # some came as close as rounding lets them


@pytree
@dataclasses.dataclass(frozen=True)
class Falling:
    """``sigma_k = first k^-power``: constant or falling in one program."""

    first: Any
    power: Any

    def __call__(self, k):
        return self.first * (k + 1.0) ** -self.power


def test_convergence_and_the_rate_of_the_gap_under_unit_noise():
    """1200 runs: the gap falls as 1/k with sigma = k^-0.9 and as k^(-1/2) with sigma = 1/2; x_2, far from its bound, is
    the mean of k noises, of variance 1/k; z_1 tends to its multiplier 1, x_1 to 0.
    """
    marks, runs = np.array([0, 100, 1000, 5000]), 1200

    def run(first, power, key):
        solver = InteriorPointSA(Harmonic(0), Falling(first, power), Noisy(1.0))

        def part(state, ends):
            state = jax.lax.fori_loop(*ends, lambda _, s: solver.step(CORNER, s), state)
            return state, jnp.concatenate([state.x, state.z, jnp.vdot(state.slack, state.z)[None]])

        start = solver.init(CORNER, jnp.ones(2), key)
        return jax.lax.scan(part, start, (marks[:-1], marks[1:]))[1]

    with float64():
        first, power = np.repeat([1.0, 0.5], runs), np.repeat([0.9, 0.0], runs)
        keys = jax.random.split(jax.random.key(0), 2 * runs)
        falling, constant = np.split(np.asarray(jax.jit(jax.vmap(run))(first, power, keys)), 2)
    marks = marks[1:]
    slope = [np.polyfit(np.log(marks), np.log(each[:, :, 4].mean(axis=0)), 1)[0] for each in (falling, constant)]
    assert slope[0] == pytest.approx(-1.0, abs=0.01)
    assert slope[1] == pytest.approx(-0.5, abs=0.01)
    for each in (falling, constant):
        scaled = marks * (each[:, :, 1] - 1) ** 2
        error = scaled.std(axis=0) / np.sqrt(runs)
        assert np.all(error < 0.05)
        bias = marks * (each[:, :, 1] - 1).mean(axis=0) ** 2  # of the barrier, mu / x_2
        assert np.all(np.abs(scaled.mean(axis=0) - bias - 1) <= 4 * error)
    gap = falling[:, :, 4].mean(axis=0)
    assert np.all(falling[:, :, 0].mean(axis=0) < gap)  # x_1 z_1 is a part of the gap
    assert falling[:, 2, 2].mean() == pytest.approx(1.0, abs=0.004)  # z_1


def test_the_budget_adds_up_steps_their_squares_and_the_bias_of_the_barrier(stream):
    """``|J^T (1/c)|`` is ``|1/x|`` for ``c = -x`` where a step starts from, and ``mu = sigma gap / m`` there."""
    x, z, slack, a = stream[2]["split"]
    before = np.concatenate([np.ones((1, 6)), x[:-1]])
    gap = np.concatenate([[6.0], np.sum(slack * z, axis=1)[:-1]])
    mu = np.arange(1.0, 1001) ** -0.9 * gap / 6
    bias = a * mu * np.linalg.norm(1 / before, axis=1)
    expected = (a.sum(), np.sum(a**2), bias.sum(), np.sum(1 / (5 + np.arange(1.0, 1001))))
    np.testing.assert_allclose(stream[2]["split", "budget"], expected, rtol=1e-9)


SETTINGS = {
    "Mehrotra, separate steps, diagonal": {
        "centring": MehrotraSigma(),
        "separate_steps": True,
        "curvature": np.array([2.0, 0.5, 1.0]),
    },
    "bb": {"curvature": "bb"},
    "bfgs": {"curvature": "bfgs"},
}


def lasso_value(A, y):
    w = Lasso(alpha=0.2, fit_intercept=False, tol=1e-12).fit(A, y).coef_
    return np.mean((A @ w - y) ** 2) / 2 + 0.2 * np.abs(w).sum()


def test_the_certificate_of_a_stream_on_its_data_holds(stream):
    A, y, states = stream
    problem, x = l1_regularize(optim.LeastSquares(A, y), 0.2), states["split"][0][-1]
    certificate = certify_constrained(problem, x)
    assert 0 < problem.value(x) - lasso_value(A, y) <= certificate.upper < 0.2
    assert certificate.verify(Subject(problem, x)).bound <= certificate.upper


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_comes_near_the_solution_with_a_certificate_that_holds(settings, stream):
    A, y, _ = stream
    problem = l1_regularize(optim.LeastSquares(A, y), 0.2, "bound")
    solver = InteriorPointSA(Harmonic(5), **settings)
    result = optim.run(solver, problem, problem.start(), max_steps=800, tol=None, rng=1)
    best = lasso_value(A, y)
    assert -1e-12 <= result.value - best <= result.certificate.upper
    assert result.value - best < 0.05
    assert result.certificate.verify(result.subject).bound <= result.certificate.upper
    report = diagnostics(problem, result.state)
    assert report.steps == 800
    assert 0 < report.centrality <= 1
    assert report.residual > 0
    assert "steps cut" in str(report)
    if (
        np.ndim(result.state.curvature) == 2
    ):  # on the same draw at both points, differences tell the Hessian of the loss
        np.testing.assert_allclose(np.diag(result.state.curvature), np.diag(A.T @ A) / 40, rtol=0.3)
    budget = rm_budget(result.state)
    assert 0 < budget.steps <= budget.allowed * (1 + 1e-12)
    np.testing.assert_allclose(budget.allowed, np.sum(1 / (5 + np.arange(1.0, 801))), rtol=1e-12)


def noisy(w, data, step, key):
    return w - data + jax.random.normal(key, w.shape, w.dtype)


def test_gradients_of_rows_are_unbiased_and_those_of_logistic_regression_are_right():
    rng = np.random.default_rng(2)
    A, y, w = rng.normal(size=(7, 3)), np.sign(rng.normal(size=7)), rng.normal(size=3)
    problems = [optim.LeastSquares(A, y, l2=0.3, reduction="sum"), optim.Logistic(A, y, l2=0.3)]
    with float64():
        for problem in problems:

            @jax.jit
            def draw(w, problem=problem):
                rows = jax.vmap(lambda k: ByRows()(problem, w, k, None))(jnp.arange(7))
                return rows, ByRows("stream", 7)(problem, w, 3, None)  # a batch of all rows is no noise at all

            rows, whole = (np.asarray(each) for each in draw(jnp.asarray(w)))
            np.testing.assert_allclose(rows.mean(axis=0), problem.gradient(w), atol=1e-12)
            np.testing.assert_allclose(whole, problem.gradient(w), atol=1e-12)
        single = optim.Logistic([[1.0, 2.0]], [1.0])
        gradient = np.asarray(jax.jit(lambda w: ByRows()(single, w, 0, None))(np.array([0.3, 0.1])))
    np.testing.assert_allclose(gradient, [-0.37754067, -0.75508134], atol=1e-8)
    np.testing.assert_allclose(gradient, -np.array([1.0, 2.0]) * (1 - expit(0.5)), atol=1e-12)
    assert float(single.value([0.3, 0.1])) == pytest.approx(0.47407698, abs=1e-8)
    assert np.isfinite(single.value([-400.0, -200.0]))


@pytest.mark.slow
def test_a_function_of_ones_own_as_oracle_and_the_simplex():
    problem = on_simplex(optim.Quadratic(np.eye(3), [0.9, 0.1, -0.5]))
    solver = InteriorPointSA(Harmonic(5), gradients=Sampled(noisy, np.array([0.9, 0.1, -0.5])))

    @jax.jit
    def go(x):
        state = solver.init(problem, x, jax.random.PRNGKey(0))
        return jax.lax.fori_loop(0, 3000, lambda _, s: solver.step(problem, s), state).x

    with float64():
        x = np.asarray(go(problem.start()))
    nearest = np.array([0.9, 0.1, 0.0])  # of the simplex to (0.9, 0.1, -0.5)
    np.testing.assert_allclose(problem.coefficients(x), nearest, atol=0.1)
    distance = problem.value(x) - problem.loss.value(nearest)
    assert 0 <= distance <= certify_constrained(problem, x).upper


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"centring": 0.5}, "centring must be"),
        ({"gradients": None}, "gradients must be"),
        ({"curvature": "newton"}, "curvature must be one of"),
        ({"curvature": -1.0}, "curvature must be positive"),
        ({"route": "qr"}, "route must be one of"),
        ({"schedule": 0.0}, "schedule must be"),
        ({"damping": 1.0}, "damping must be"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        InteriorPointSA(**settings)


def test_bad_starts_and_problems_are_refused():
    with pytest.raises(DomainError, match="constraint 1 is 0, must be"):
        optim.run(InteriorPointSA(gradients=Noisy()), CORNER, [1.0, 0.0])
    with pytest.raises(DomainError, match="z0 must be positive"):
        optim.run(InteriorPointSA(gradients=Noisy(), z0=0.0), CORNER, [1.0, 1.0])
    with pytest.raises(TypeError, match="takes a ConstrainedProblem"):
        optim.run(InteriorPointSA(), optim.Quadratic(np.eye(2), [1.0, 1.0]), [1.0, 1.0])
    with pytest.raises(TypeError, match="ByRows needs a loss of the rows"):
        optim.run(InteriorPointSA(), CORNER, [1.0, 1.0])
    with pytest.raises(ValueError, match="formulation must be"):
        l1_regularize(None, 1.0, "squared")
    with pytest.raises(ValueError, match="weight must be finite"):
        l1_regularize(None, -1.0)


@pytest.mark.parametrize(
    ("constraints", "x0", "gradient", "solution"),
    [
        (Bounds(0.0), [1.0, 1.0], [1.0, 2.0], [0.0, 0.0]),
        (Bounds([0.0, 0.0], [2.0, np.inf]), [1.0, 1.0], [-1.0, 2.0], [2.0, 0.0]),
        (AbsoluteBounds(), [0.1, 1.0], [0.1, 1.0], [0.0, 0.0]),
        (SimplexConstraints(), [0.3, 0.3], [1.0, -2.0], [0.0, 1.0]),
    ],
    ids=["bounds", "box", "absolute", "simplex"],
)
def test_in_float32_nothing_underflows(constraints, x0, gradient, solution):
    """Linear objectives with full steps and no centring: every step goes 0.995 of the way to a corner."""
    problem = ConstrainedProblem(None, constraints)
    solver = InteriorPointSA(1.0, ConstantSigma(0.0))
    state = ipsa_init(solver, problem, jnp.array(x0))
    assert state.x.dtype == jnp.float32
    g = jnp.array(gradient)

    def step(state, _):
        state = ipsa_step(solver, problem, state, g)
        return state, (state.x, state.z, state.slack, problem.constraints.value(state.x))

    _, (x, z, slack, c) = jax.jit(lambda state: jax.lax.scan(step, state, length=100))(state)
    assert np.all(np.asarray(c) < 0)
    for each in (slack, z):
        assert np.all(np.min(each, axis=1) >= 0.99e-6 * np.max(each, axis=1))
    # On the central path f(x) - f* = m mu, and mu is held at 1e-5.
    excess = float(np.dot(np.asarray(x[-1], np.float64) - solution, gradient))
    assert 0 < excess <= 1.1 * slack.shape[1] * 1e-5
