"""Statements about methods that their own tests leave open (Peyré 2021, sections 4 to 8; Le Priol 2021, chapter 3)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import j1
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import ElasticNet

from cumulant import optim
from cumulant.geometry import Burg, Hypentropy
from cumulant.optim import rates
from cumulant.optim.finite_sums.finite_sum_kernels import draws
from cumulant.pytrees import pytree
from tests.optim.cases import poisson_fit

TWO = optim.Quadratic(np.diag([1.0, 10.0]), np.zeros(2))


# Gradient descent -----------------------------------------------------------------------------------------------------


def test_a_singular_quadratic_converges_linearly_to_the_projection_of_the_start():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    C = basis @ np.diag([0.0, 0.5, 2.0]) @ basis.T
    problem = optim.Quadratic((C + C.T) / 2, C @ rng.normal(size=3))
    x0 = rng.normal(size=3)
    solution = np.linalg.pinv(C) @ problem.b
    nearest = solution + basis[:, 0] * (basis[:, 0] @ (x0 - solution))
    found = [x0]
    settings = {"max_steps": 30, "tol": None, "every": 1}
    optim.run(optim.GradientDescent(0.8), problem, x0, **settings, callback=lambda s: found.append(np.array(s.x)))
    distance = np.linalg.norm(np.array(found) - nearest, axis=1)
    assert np.all(distance <= rates.gd_quadratic(2.0, 0.5, 0.8, np.arange(31), distance[0]) * (1 + 1e-9) + 1e-15)
    assert distance[-1] < 1e-6 < 1e-2 < np.linalg.norm(nearest - solution)  # and not to that of smallest norm


def test_an_exact_line_search_is_no_better_than_one_over_k_in_the_worst_case():
    """From ``(1/mu, 1)`` on ``diag(mu, 1)`` with ``mu = 1/(4k)``: ``k (f_k - f*) / R^2`` stays near ``1/(8 e)``."""
    for k in (5, 20, 80):
        mu = 1 / (4 * k)
        start = np.array([1 / mu, 1.0])
        solver = optim.GradientDescent(optim.ExactLineSearch())
        value = optim.run(solver, optim.Quadratic(np.diag([mu, 1.0]), np.zeros(2)), start, max_steps=k, tol=None).value
        assert k * value / (start @ start) > 0.9 / (8 * np.e)


def test_the_printed_rates_follow_from_the_sharp_ones():
    k, rng = np.arange(200), np.random.default_rng(1)
    assert np.all(rates.gd_convex(3.0, 2.0, k) <= 3.0 * 2.0 / (2 * (k + 1)))  # theorem 1
    for tau in (0.1, 1.0):
        assert np.all(rates.gd_degenerate_quadratic(tau, k[1:], 2.0) <= 2.0 / (4 * np.e * tau * k[1:]))  # proposition 5
    for mu in 10.0 ** rng.uniform(-4, 0, size=50):
        assert np.all(rates.gd_strongly_convex(1.0, mu, k) <= (1 / (1 + mu)) ** (k / 2) * (1 + 1e-12))  # equation 26


def test_armijo_takes_the_first_of_its_trials_in_an_interval_of_admissible_steps():
    """By hand three reductions, from 1 to 1/8; on convex functions the steps that pass are all those up to one."""
    search, x = optim.Armijo(0.3, 0.5), np.array([1.0, 1.0])
    with jax.enable_x64(True):
        step, reductions = search.search(TWO, jnp.asarray(x), jnp.asarray(5.5), jnp.asarray(x * [1.0, 10.0]), 1.0)
        assert (float(step), int(reductions)) == (0.125, 3)
    rng = np.random.default_rng(2)
    trials = np.linspace(0, 4, 401)[1:]
    for _ in range(20):
        matrix, x = rng.normal(size=(4, 2)), 3 * rng.normal(size=2)
        value = lambda at, matrix=matrix: np.sum(np.sqrt(1 + (matrix @ at) ** 2) - 1)  # noqa: E731
        gradient = matrix.T @ ((matrix @ x) / np.sqrt(1 + (matrix @ x) ** 2))
        passes = [value(x - t * gradient) <= value(x) - 0.3 * t * gradient @ gradient for t in trials]
        assert passes == sorted(passes, reverse=True)  # true, then false
        assert passes[0]


# Momentum, flows ------------------------------------------------------------------------------------------------------


def test_the_flow_of_nesterov_has_no_linear_rate_and_needs_a_friction_of_three():
    """On ``x^2 / 2`` the value falls as ``t^-3`` and no faster; with friction 1 the bound ``2 R^2 / t^2`` fails."""
    problem, times = optim.Quadratic([[1.0]], [0.0]), np.linspace(20, 60, 801)
    values = optim.nesterov_flow(problem, [1.0], times).x[:, 0] ** 2 / 2
    np.testing.assert_allclose(values, 2 * (j1(times) / times) ** 2, atol=1e-9)
    for part in np.split(np.arange(800), 4):  # an oscillation and more in each: the envelope is 4 / (pi t^3)
        assert np.max(times[part] ** 3 * values[part]) == pytest.approx(4 / np.pi, rel=0.02)
    loose = optim.nesterov_flow(problem, [1.0], times, friction=1.0).x[:, 0] ** 2 / 2
    assert np.max(loose * times**2 / 2) > 1
    assert np.max(values * times**2 / 2) < 1


@pytree
@dataclasses.dataclass(frozen=True)
class DualOfHypentropy:
    """``x = grad psi*(z) = beta sinh z``."""

    beta: float

    def point(self, z):
        return self.beta * jnp.sinh(z)


def test_the_flow_through_a_dual_map_has_the_squared_inverse_hessian_for_its_metric():
    """``x = grad psi*(z)``: ``x' = -[hess psi(x)]^-2 grad f(x)``, here ``-(x^2 + beta^2) grad f(x)``: not mirror."""
    problem, beta, h = optim.LeastSquares([[1.0, 2.0]], [2.0], reduction="sum"), 0.5, 1e-4
    x0 = np.array([0.3, -0.4])
    flow = optim.reparametrised_flow(
        problem, DualOfHypentropy(beta), np.arcsinh(x0 / beta), [0.0, 0.1 - h, 0.1, 0.1 + h]
    )
    np.testing.assert_allclose(flow.x[0], x0, rtol=1e-12)
    x, slope = flow.x[2], (flow.x[3] - flow.x[1]) / (2 * h)
    np.testing.assert_allclose(slope, -(x**2 + beta**2) * np.array([1.0, 2.0]) * (x @ [1.0, 2.0] - 2), atol=1e-6)
    mirror = optim.mirror_flow(problem, Hypentropy(beta), x0, [0.1])
    assert np.max(np.abs(mirror.last - x)) > 1e-2


def test_smooth_relative_to_burg_means_a_hessian_below_its_own():
    """``sum (A x)_i - b_i log (A x)_i``: ``diag(x) hess f(x) diag(x) <= (sum b) I`` wherever it is looked at."""
    rng = np.random.default_rng(3)
    A, b = rng.exponential(size=(6, 3)), rng.poisson(5.0, size=6) + 1.0
    problem = optim.Objective(poisson_fit, (A, b), convex=True, reference=Burg(), relative_smoothness=float(b.sum()))
    assert optim.relative_constants(problem, Burg())[:2] == (b.sum(), 0.0)
    largest = 0.0
    for x in 10.0 ** rng.uniform(-3, 3, size=(200, 3)):
        hessian = np.column_stack([problem.hessian_apply(x, e) for e in np.eye(3)])
        largest = max(largest, np.linalg.eigvalsh(x[:, None] * hessian * x)[-1] / b.sum())
    assert 0.9 < largest <= 1 + 1e-12


# Proximal gradients ---------------------------------------------------------------------------------------------------


def test_a_step_of_ista_minimises_the_surrogate_it_is_derived_from():
    """``f_tau(x, x') = f(x) - |A(x - x')|^2 / 2 + |x - x'|^2 / (2 tau)``: above ``f``, and equal to it at ``x'``."""
    rng = np.random.default_rng(4)
    A, y, lam = rng.normal(size=(5, 4)), rng.normal(size=5), 0.7
    problem = optim.Composite(optim.LeastSquares(A, y, reduction="sum"), optim.L1(lam))
    tau = 1 / problem.smoothness

    def f(x):
        return np.sum((A @ x - y) ** 2) / 2 + lam * np.sum(np.abs(x))

    def surrogate(x, around):
        return f(x) - np.sum((A @ (x - around)) ** 2) / 2 + np.sum((x - around) ** 2) / (2 * tau)

    for start in rng.normal(size=(2, 4)):
        after = optim.run(optim.ProximalGradient(), problem, start, max_steps=1, tol=None).x
        assert surrogate(start, start) == pytest.approx(f(start), rel=1e-14)
        lowest = surrogate(after, start)
        for x in after + rng.normal(size=(200, 4)) * 10.0 ** rng.uniform(-4, 1, size=(200, 1)):
            assert surrogate(x, start) >= f(x) - 1e-12 * abs(f(x))
            assert surrogate(x, start) >= lowest - 1e-12 * abs(lowest)


# Stochastic gradients -------------------------------------------------------------------------------------------------


def test_sgd_on_two_parabolas_is_the_mean_of_signs_exactly():
    """Steps ``1/(k + 1)``: ``x_k`` is the mean of the ``k`` signs drawn, whatever the start; so ``E x_k^2 = 1/k``."""
    signs = np.array([1.0, -1.0])
    problem = optim.LeastSquares([[1.0], [1.0]], signs)
    for seed, start in ((0, 0.3), (5, -7.0)):
        solver = optim.SGD(optim.InverseTime(1.0), updates=1)
        state, drawn = solver.init(problem, np.array([start]), seed), []
        for k in range(1, 60):
            drawn.append(signs[draws(state.seed, state.sweep, 2, 1)[0]])
            state = solver.step(problem, state)
            assert state.x[0] == pytest.approx(np.mean(drawn), abs=1e-12)
            assert k == state.updates
    whole = signs[draws(1, 0, 2, 400_000)]
    assert abs(whole.mean()) < 4 / np.sqrt(400_000)
    # Means of k signs drawn in a row: E x_k^2 = 1/k within one per cent, for every k.
    for k in (1, 2, 5, 20):
        assert k * np.mean(whole[: 400_000 // k * k].reshape(-1, k).mean(axis=1) ** 2) == pytest.approx(1.0, abs=0.03)


def squared(x, row):
    a, y = row
    return (a @ x - y) ** 2 / 2


def test_the_mean_of_the_tail():
    """Iterates 8 to 15 of fifteen, in three steps of five, by the kernels and through JAX; before, the iterate."""
    rng = np.random.default_rng(6)
    A, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    rows, functions = optim.LeastSquares(A, y, l2=0.1), optim.FiniteSum(squared, (A, y), l2=0.1)
    tail = optim.SGA(0.1, burn_in=7)
    for problem in (rows, functions):
        state = tail.init(problem, np.ones(2), 3)
        order = np.concatenate([draws(state.seed, sweep, 5, 5) for sweep in range(3)])
        x, iterates = np.ones(2), []
        for i in order:
            x = x - 0.1 * ((A[i] @ x - y[i]) * A[i] + 0.1 * x)
            iterates.append(x)
        for step in range(3):
            state = tail.step(problem, state)
            known = iterates[: 5 * step + 5]
            expected = known[-1] if step == 0 else np.mean(known[7:], axis=0)
            np.testing.assert_allclose(tail.solution(problem, state), expected, atol=1e-13)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match="burn_in must be a whole number"):
            optim.SGA(burn_in=wrong)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return optim.Logistic(X, 2.0 * y - 1, l2=0.01), X, 2.0 * y - 1


def test_fifty_passes_order_the_methods(cancer):
    """Six seeds each: SAG below 1e-5, the mean below 1e-3, plain steps above 1e-2.8 from the minimum 0.1024165658."""
    problem, X, signs = cancer
    largest = float(problem.term_smoothness.max())
    ends = {}
    for name, solver in (
        ("SGD", optim.SGD(optim.InverseTime(0.05, 100))),
        ("SGA", optim.SGA(optim.InverseSqrt(0.05, 100))),
        ("SAG", optim.SAG(1 / largest)),
    ):
        for seed in range(6):
            state = solver.init(problem, np.zeros(30), seed)
            for _ in range(50):
                state = solver.step(problem, state)
            x = solver.solution(problem, state)
            gap = np.mean(np.logaddexp(0, -signs * (X @ x))) + 0.005 * x @ x - 0.1024165658
            ends.setdefault(name, []).append(np.log10(gap))
    assert max(ends["SAG"]) < -5
    assert max(ends["SGA"]) < -3
    assert min(ends["SGD"]) > -2.8


def test_the_memory_of_sag_is_the_sum_of_what_it_stores(cancer):
    problem, X, signs = cancer
    solver = optim.SAG(updates=100_000)
    state = solver.step(problem, solver.init(problem, np.zeros(30), 0))
    np.testing.assert_allclose(state.total, X.T @ state.table[:, 0], atol=1e-10)
    # At a point that does not move, once every row was seen: g / n is the gradient.
    plain = optim.Logistic(X, signs)
    still = optim.SAG(1e-300, updates=30_000)
    at = np.full(30, 0.1)
    state = still.step(plain, still.init(plain, at, 1))
    assert np.all(state.seen == 1)
    np.testing.assert_array_equal(state.x, at)
    np.testing.assert_allclose(state.total / len(signs), plain.gradient(at), atol=1e-12)


# Dual coordinate ascent -----------------------------------------------------------------------------------------------


def test_one_row_and_two_classes_are_solved_by_one_line_search():
    """``n = 1``, ``l2 = 1``, features ``e_y``: the optimum ``(a, -a)`` with ``a = sig(-2a)`` after a single update."""
    problem = optim.MultinomialLogistic([[1.0]], [0], n_classes=2, l2=1.0)
    solver = optim.DualCoordinateAscent(epsilon=0.1, subprecision=1e-13)
    state = solver.init(problem, np.zeros((1, 2)), 0)
    np.testing.assert_allclose(state.x, [[0.05, -0.05]], atol=1e-15)
    measured = solver.measure(problem, state)
    assert measured["value"] == pytest.approx(0.6468966600735708, abs=1e-13)
    assert measured["dual"] == pytest.approx(0.1960152433458726, abs=1e-13)
    gaps, _ = solver.gaps(problem, state)
    assert gaps[0] == pytest.approx(0.4508814167276982, abs=1e-13)
    before, state = state.slopes.copy(), solver.step(problem, state)
    np.testing.assert_allclose(state.x, [[0.3374158071711997, -0.3374158071711997]], atol=1e-12)
    assert solver.measure(problem, state)["value"] == pytest.approx(0.5254570726100075, abs=1e-13)
    asked = np.array([0.52497919 - 1, 0.47502081])  # the slopes its score asks for
    np.testing.assert_allclose((state.slopes - before)[0] / (asked - before[0]), 0.676239371588322, atol=1e-7)


@dataclasses.dataclass(frozen=True)
class Square:
    """``(s - t)^2 / 2``."""

    smoothness = 1.0

    def value(self, score, target):
        return (score - target) ** 2 / 2

    def conjugate(self, slope, target):
        return slope * target + slope**2 / 2


def test_another_regulariser_than_the_square():
    """The elastic net ``l2 (l1 |w|_1 + |w|^2 / 2)`` against scikit-learn; weak duality; the rate of fixed steps."""
    rng = np.random.default_rng(5)
    A, l2 = rng.normal(size=(12, 6)), 0.1
    y = A @ [1.0, 0.0, -2.0, 0.0, 0.0, 0.5] + 0.1 * rng.normal(size=12)
    problem = optim.DualProblem(A, y, Square(), l2, regulariser=optim.ElasticNet(3.0, 1.0))
    peer = ElasticNet(alpha=4 * l2, l1_ratio=0.75, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(A, y).coef_
    best = np.mean((A @ peer - y) ** 2) / 2 + l2 * (3 * np.abs(peer).sum() + peer @ peer / 2)
    result = optim.run(optim.DualCoordinateAscent(), problem, np.zeros(6), tol=1e-11, rng=0)
    assert result.status == "converged"
    np.testing.assert_allclose(result.x, peer, atol=1e-5)
    assert np.array_equal(result.x == 0, np.abs(peer) < 1e-9)
    assert 0 < np.sum(result.x == 0) < 6
    assert -1e-14 <= result.value - best <= result.certificate.upper
    assert np.all(np.diff(result.trace["dual"]) >= -1e-14)
    assert np.all(result.trace["dual"] <= best + 1e-13)
    assert np.all(result.trace.value >= best - 1e-13)
    # The gaps of the rows add up to the gap.
    solver = optim.DualCoordinateAscent()
    state = solver.step(problem, solver.init(problem, np.zeros(6), 1))
    assert np.mean(solver.gaps(problem, state)[0]) == pytest.approx(solver.measure(problem, state)["bound"], rel=1e-9)
    fixed, missing = optim.DualCoordinateAscent("uniform", step_rule="fixed"), []
    for seed in range(20):
        state = fixed.init(problem, np.zeros(6), seed)
        missing.append([best - state.lower])
        for _ in range(5):
            state = fixed.step(problem, state)
            missing[-1].append(best - state.lower)
    missing = np.array(missing)
    bound = rates.sdca_uniform(12 * np.arange(1, 6), optim.conditions_of(problem), missing[0, 0])
    error = missing[:, 1:].std(axis=0, ddof=1) / np.sqrt(20)
    assert np.all(missing[:, 1:].mean(axis=0) <= bound + 3 * error)
    with pytest.raises(ValueError, match="needs l2 >= 1 here"):
        optim.DualProblem(A, y, Square(), l2, regulariser=optim.ElasticNet(1.0, 0.5))
    with pytest.raises(TypeError, match="has no conjugate_point"):
        optim.DualProblem(A, y, Square(), l2, regulariser=Square())


@pytest.mark.slow
def test_a_golden_section_finds_what_newtons_method_does_with_another_regulariser():
    rng = np.random.default_rng(7)
    problem = optim.DualProblem(
        rng.normal(size=(12, 6)), rng.normal(size=12), Square(), 0.1, regulariser=optim.ElasticNet(3.0, 1.0)
    )
    found = []
    for rule in ("safe-newton", "bounded"):
        solver = optim.DualCoordinateAscent("uniform", step_rule=rule)
        found.append(solver.step(problem, solver.init(problem, np.zeros(6), 1)).x)
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


# Runs against theorems ------------------------------------------------------------------------------------------------


def test_a_verified_run_is_drawn():
    plt = pytest.importorskip("matplotlib.figure")
    trace = optim.run(optim.GradientDescent(), TWO, [1.0, 1.0], max_steps=30, tol=None).trace
    found = optim.compare_with_rate(trace, lambda k: rates.gd_convex(10.0, 2.0, k))
    axes = plt.Figure().subplots()
    found.plot(axes)
    measured, bound = axes.get_lines()
    np.testing.assert_array_equal(measured.get_ydata(), trace.value)
    np.testing.assert_array_equal(bound.get_ydata(), rates.gd_convex(10.0, 2.0, trace.steps))
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["measured", "bound"]
