"""The theorems on dual coordinate ascent against the slow algorithm of `tests.reference.dual_ascent`.

On ridge regression the ascent lemma is an equality, so there the constants themselves are pinned; on multiclass
logistic regression the bounds must hold, state by state or on the mean over seeds.
"""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.optim.rates import dual_ascent as rates
from tests.reference.dual_ascent import MulticlassLogistic, Ridge, ascend, expected_ascent, move


def logistic_problem(n=12, dimension=3, n_labels=4, l2=1 / 12, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension)) * rng.uniform(0.3, 1.5, size=(n, 1))  # unequal radii
    return MulticlassLogistic(x, rng.integers(n_labels, size=n), n_labels, l2)


def ridge_problem(loss_smoothness, n=10, dimension=4, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension)) * rng.uniform(0.3, 1.5, size=(n, 1))
    return Ridge(x, rng.normal(size=n), 0.15, loss_smoothness)


@functools.cache  # every rule asks for them at every update
def conditions_of(problem):
    return rates.block_conditions(problem.squared_radii, problem.l2, problem.loss_smoothness)


def random_states(problem, count, seed):
    """Random dual variables, some far from the optimum and some after a number of sweeps of safe steps."""
    rng = np.random.default_rng(seed)
    steps = 1 / conditions_of(problem)
    for _ in range(count):
        alpha = problem.random_state(rng)
        for i in rng.integers(problem.n, size=rng.choice([0, 5, 40])):
            alpha = move(problem, alpha, i, steps[i])
        yield alpha


# The schemes: probabilities and step sizes of each theorem, from the definitions.


def uniform_rule(problem, alpha):
    return np.full(problem.n, 1 / problem.n), np.full(problem.n, 1 / conditions_of(problem).max())


def line_search_rule(problem, alpha):
    return np.full(problem.n, 1 / problem.n), None


def importance_rule(problem, alpha):
    c = conditions_of(problem)
    return c / c.sum(), 1 / c


def gap_rule(problem, alpha):
    g = problem.gaps(alpha)
    return g / g.sum(), np.full(problem.n, 1 / conditions_of(problem).max())


def lipschitz_gap_rule(problem, alpha):
    c = conditions_of(problem)
    q = problem.gaps(alpha) * c
    return q / q.sum(), 1 / c


def adaptive_rule(problem, alpha):
    q = problem.residuals(alpha) * np.sqrt(conditions_of(problem))
    p = q / q.sum()
    theta = rates.adaptive_rate(problem.residuals(alpha), conditions_of(problem))
    return p, np.divide(theta, p, out=np.zeros(problem.n), where=p > 0)  # a block without residual is never drawn


def one_step_bounds(problem, alpha):
    """What each theorem says one update gains."""
    c, g = conditions_of(problem), problem.gaps(alpha)
    s, n, mean = rates.safe_steps(c), problem.n, g.mean()
    return {
        uniform_rule: s.uniform / n * mean,
        importance_rule: s.importance / n * mean,
        gap_rule: s.uniform / n * rates.nonuniformity(g) * mean,
        lipschitz_gap_rule: rates.lipschitz_gap_ascent(g, c),
        adaptive_rule: rates.adaptive_rate(problem.residuals(alpha), c) * mean,
    }


# The reference itself


@pytest.mark.parametrize("problem", [logistic_problem(), ridge_problem(2.0)], ids=["logistic", "ridge"])
def test_the_reference_is_a_dual_pair(problem):
    best, w = problem.optimum()
    assert problem.dual(problem.image(w)) == pytest.approx(best, abs=1e-9)
    for alpha in random_states(problem, 20, seed=0):
        gap = problem.primal(problem.weights(alpha)) - problem.dual(alpha)
        assert problem.gaps(alpha).mean() == pytest.approx(gap, abs=1e-10)
        assert problem.dual(alpha) <= best + 1e-12


def test_the_line_search_of_one_sample_and_two_labels():
    # n = 1, l2 = 1, one constant feature: a step of exact line search lands on the optimum w = (a, -a).
    problem = MulticlassLogistic(np.ones((1, 1)), np.array([0]), 2, 1.0)
    alpha = np.array([[0.95, 0.05]])
    assert problem.gaps(alpha)[0] == pytest.approx(0.4508814167276982, abs=1e-13)
    step = problem.best_step(alpha, 0)
    assert step == pytest.approx(0.676239371588322, abs=1e-9)
    assert_allclose(problem.weights(move(problem, alpha, 0, step)).ravel(), [0.3374158071711997, -0.3374158071711997])


# One update


@pytest.mark.parametrize("l2", [1.0, 1 / 12, 0.01])
def test_the_ascent_lemma(l2):
    problem = logistic_problem(l2=l2)
    c, rng, slacks = conditions_of(problem), np.random.default_rng(3), []
    for alpha in random_states(problem, 400, seed=2):
        i = rng.integers(problem.n)
        step = rng.choice([rng.random(), 1 / c[i], 0.0, 1.0])
        gain = problem.dual(move(problem, alpha, i, step)) - problem.dual(alpha)
        bound = rates.ascent_lower_bound(problem.gaps(alpha)[i], problem.residuals(alpha)[i], step, c[i], problem.n)
        slacks.append(gain - bound)
    assert min(slacks) >= -1e-12


@pytest.mark.parametrize("loss_smoothness", [0.5, 1.0, 2.0])
def test_the_ascent_lemma_is_an_equality_on_ridge_regression(loss_smoothness):
    problem = ridge_problem(loss_smoothness)
    c, rng = conditions_of(problem), np.random.default_rng(4)
    for alpha in random_states(problem, 50, seed=5):
        i, step = rng.integers(problem.n), rng.uniform(-0.5, 1.5)
        gain = problem.dual(move(problem, alpha, i, step)) - problem.dual(alpha)
        bound = rates.ascent_lower_bound(
            problem.gaps(alpha)[i], problem.residuals(alpha)[i], step, c[i], problem.n, loss_smoothness, quadratic=True
        )
        assert bound == pytest.approx(gain, rel=1e-8, abs=1e-11)


def check_one_step(problem, alpha, rule):
    """What one update gains over what its theorem says, at least one."""
    probabilities, step_sizes = rule(problem, alpha)
    gain, bound = expected_ascent(problem, alpha, probabilities, step_sizes), one_step_bounds(problem, alpha)[rule]
    general = rates.expected_ascent_lower_bound(
        probabilities, problem.gaps(alpha), problem.residuals(alpha), step_sizes, conditions_of(problem)
    )
    assert gain >= general >= bound * (1 - 1e-10)
    return gain / bound


@pytest.mark.parametrize("rule", [uniform_rule, importance_rule, gap_rule, lipschitz_gap_rule])
def test_one_step(rule):
    problem = logistic_problem()
    ratios = [check_one_step(problem, alpha, rule) for alpha in random_states(problem, 300, seed=6)]
    assert 1 <= min(ratios) < 2  # it holds, and says something


def test_one_step_of_adaptive_sampling():
    # On losses that are not quadratic the theorem asks for theta <= min p, or some step would be longer than one.
    problem, ratios = logistic_problem(l2=1 / 120), []
    for alpha in random_states(problem, 1000, seed=6):
        if adaptive_rule(problem, alpha)[1].max() <= 1:
            ratios.append(check_one_step(problem, alpha, adaptive_rule))
        if len(ratios) == 300:
            break
    assert len(ratios) == 300
    assert 1 <= min(ratios) < 2


@pytest.mark.parametrize("loss_smoothness", [0.5, 2.0])
def test_one_step_is_an_equality_on_ridge_regression(loss_smoothness):
    # With steps 1/c_i (or theta/p_i) the residual terms cancel, and the theorems say exactly what is gained.
    problem = ridge_problem(loss_smoothness)
    for alpha in random_states(problem, 50, seed=7):
        bounds = one_step_bounds(problem, alpha)
        for rule in (importance_rule, lipschitz_gap_rule, adaptive_rule):
            gain = expected_ascent(problem, alpha, *rule(problem, alpha))
            assert bounds[rule] == pytest.approx(gain, rel=1e-7, abs=1e-11)
        for rule in (uniform_rule, gap_rule):
            assert expected_ascent(problem, alpha, *rule(problem, alpha)) >= bounds[rule] - 1e-12


def test_uniform_and_gap_steps_are_equalities_when_the_radii_are_equal():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(10, 4))
    problem = Ridge(x / np.linalg.norm(x, axis=1, keepdims=True), rng.normal(size=10), 0.15, 2.0)
    for alpha in random_states(problem, 50, seed=9):
        bounds = one_step_bounds(problem, alpha)
        for rule in (uniform_rule, gap_rule):
            gain = expected_ascent(problem, alpha, *rule(problem, alpha))
            assert bounds[rule] == pytest.approx(gain, rel=1e-7, abs=1e-11)


def test_the_best_residual_probabilities():
    rng = np.random.default_rng(10)
    for _ in range(100):
        d, c = rng.exponential(size=6), 1 + rng.exponential(size=6)
        best = rates.adaptive_rate(d, c)
        p = d * np.sqrt(c) / (d @ np.sqrt(c))
        assert rates.adaptive_rate(d, c, p) == pytest.approx(best)
        assert rates.adaptive_rate(d, c, rng.dirichlet(np.ones(6))) <= best
        assert rates.adaptive_rate(d, c, d**2 * np.sqrt(c) / (d**2 @ np.sqrt(c))) <= best  # the squared norm is worse
        d[0] = 0.0  # a block without residual need not be drawn
        p = d * np.sqrt(c) / (d @ np.sqrt(c))
        assert rates.adaptive_rate(d, c, p) == pytest.approx(rates.adaptive_rate(d, c))


# Whole runs, in expectation over seeds


SEEDS, UPDATES = 60, 150


@functools.cache
def runs(rule, problem_name):
    """Sub-optimalities (seeds, updates + 1), states, and the problem; every run starts at the same point."""
    problem = logistic_problem() if problem_name == "logistic" else ridge_problem(2.0)
    start = problem.random_state(np.random.default_rng(11))
    best = problem.optimum()[0]
    found = [ascend(problem, start, rule, UPDATES, np.random.default_rng([12, seed])) for seed in range(SEEDS)]
    return best - np.array([values for values, _ in found]), np.array([states for _, states in found]), problem


def assert_below_in_expectation(h, bound):
    error = h.std(axis=0, ddof=1) / np.sqrt(len(h))
    assert np.all(h.mean(axis=0) <= bound + 3 * error + 1e-13)


def smallest_nonuniformity(problem, states):
    return min(rates.nonuniformity(problem.gaps(alpha)) for run in states for alpha in run[:-1])


K = np.arange(UPDATES + 1)


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_runs_of_uniform_sampling(name):
    h, _, problem = runs(uniform_rule, name)
    assert_below_in_expectation(h, rates.sdca_uniform(K, conditions_of(problem), h[0, 0]))


def test_line_search_runs_are_below_fixed_steps():
    fixed, _, problem = runs(uniform_rule, "logistic")
    searched, _, _ = runs(line_search_rule, "logistic")
    assert np.all(np.diff(searched, axis=1) <= 1e-13)  # the dual never goes down
    assert_below_in_expectation(searched, rates.sdca_uniform(K, conditions_of(problem), fixed[0, 0]))
    assert np.all(searched.mean(axis=0)[1:] < fixed.mean(axis=0)[1:])


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_runs_of_importance_sampling(name):
    h, _, problem = runs(importance_rule, name)
    assert_below_in_expectation(h, rates.sdca_importance(K, conditions_of(problem), h[0, 0]))


@pytest.mark.parametrize("name", ["logistic", "ridge"])
@pytest.mark.parametrize(
    ("rule", "bound"), [(gap_rule, rates.sdca_gap), (lipschitz_gap_rule, rates.sdca_lipschitz_gap)], ids=["gap", "both"]
)
def test_runs_of_gap_sampling_with_exact_gaps(rule, bound, name):
    h, states, problem = runs(rule, name)
    chi_squared = smallest_nonuniformity(problem, states)
    assert chi_squared > 1.01
    assert_below_in_expectation(h, bound(K, conditions_of(problem), h[0, 0], chi_squared))


def test_runs_of_adaptive_sampling_on_ridge_regression():
    h, states, problem = runs(adaptive_rule, "ridge")
    c = conditions_of(problem)
    gaps = np.array([[problem.gaps(alpha).mean() for alpha in run[:-1]] for run in states])
    thetas = np.array([[rates.adaptive_rate(problem.residuals(alpha), c) for alpha in run[:-1]] for run in states])
    theta = np.min((thetas * gaps).mean(axis=0) / gaps.mean(axis=0))
    assert_below_in_expectation(h, rates.sdca_adaptive(K, theta, h[0, 0]))
    assert thetas.min() <= theta
    # What is gained in an update is theta * mean gap in expectation, no more and no less: 4 standard errors.
    surplus = (h[:, :-1] - h[:, 1:] - thetas * gaps).sum(axis=1)
    assert abs(surplus.mean()) <= 4 * surplus.std(ddof=1) / np.sqrt(SEEDS)


def test_the_uniform_rate_is_attained_in_the_limit_of_strong_regularisation():
    # Orthogonal samples of one length: a step 1/c solves its block for good, so what is missing from the dual is the
    # share of blocks not yet visited, (1 - 1/n)^k in expectation; the theorem says (1 - 1/(c n))^k.
    n, l2 = 8, 1000.0
    problem = Ridge(np.eye(n), np.ones(n), l2, 1.0)
    missing = problem.optimum()[0] - ascend(problem, np.zeros(n), uniform_rule, n, np.random.default_rng(0))[0]
    unvisited = missing / missing[0] * n
    assert_allclose(unvisited, unvisited.round(), atol=1e-8)
    assert unvisited[-1] < n / 2
    exact, bound = (1 - 1 / n) ** K, rates.sdca_uniform(K, conditions_of(problem))
    assert np.all(exact <= bound)
    assert np.all(bound <= 1.005 * exact)


# From sub-optimality to gap and distance


@pytest.mark.parametrize("problem", [logistic_problem(), logistic_problem(l2=1.0), ridge_problem(2.0)])
def test_gaps_from_sub_optimality(problem):
    best, optimum = problem.optimum()
    c = conditions_of(problem)
    L = rates.primal_smoothness(problem.squared_radii, problem.l2, problem.loss_smoothness)
    rng = np.random.default_rng(13)
    for alpha in random_states(problem, 200, seed=14):
        missing = best - problem.dual(alpha)
        w = problem.weights(alpha)
        gap = problem.primal(w) - problem.dual(alpha)
        assert gap <= rates.gap_from_dual(missing, c) + 1e-10
        assert rates.gap_from_dual(missing, c) <= problem.n / rates.safe_steps(c).uniform * missing * (1 + 1e-12)
        assert np.linalg.norm(w - optimum) <= rates.weights_distance(gap, problem.l2) + 1e-7
        # Any weights, not only images of dual variables.
        w = optimum + rng.normal(size=optimum.shape) * 10.0 ** rng.uniform(-4, 1)
        gap = problem.primal(w) - problem.dual(problem.image(w))
        assert gap <= rates.gap_from_primal(problem.primal(w) - best, L, problem.l2) + 1e-10
        assert np.linalg.norm(w - optimum) <= rates.weights_distance(gap, problem.l2) + 1e-7


def test_the_primal_gap_bound_is_attained():
    # Rank-one data: along x the primal is a parabola of curvature L exactly.
    problem = Ridge(np.ones((5, 1)), np.arange(5.0), 0.3, 2.0)
    best, _ = problem.optimum()
    w = np.array([4.0])
    gap = problem.primal(w) - problem.dual(problem.image(w))
    L = rates.primal_smoothness(problem.squared_radii, problem.l2, problem.loss_smoothness)
    assert rates.gap_from_primal(problem.primal(w) - best, L, problem.l2) == pytest.approx(gap, rel=1e-10)


# Constants


def test_step_constants_are_ordered():
    rng = np.random.default_rng(15)
    for _ in range(200):
        R = rng.exponential(size=rng.integers(1, 30)) * 10.0 ** rng.uniform(-3, 3)
        steps = rates.safe_steps(rates.block_conditions(R, l2=10.0 ** rng.uniform(-3, 1)))
        assert steps.uniform <= steps.lipschitz_gap * (1 + 1e-14)
        assert steps.lipschitz_gap <= steps.importance * (1 + 1e-14)
        assert steps.uniform > 0
        assert steps.importance <= 1
    assert rates.safe_steps(np.full(7, 3.0)) == pytest.approx((1 / 3,) * 3)


def test_the_rates_of_known_problems():
    c = rates.block_conditions([28.0, 10.0, 10.0], l2=1 / 3)
    assert 3 / rates.safe_steps(c).uniform == pytest.approx(3 + 28 * 3)
    assert 3 / rates.safe_steps(c).importance == pytest.approx(3 + 16 * 3)
    c = rates.block_conditions(np.full(400, 1060.0), l2=1 / 400)  # at l2 = 1/n the step is 1 / (1 + max R)
    assert rates.safe_steps(c).uniform == pytest.approx(1 / 1061)


def test_nonuniformity_of_known_gaps():
    for n, expected in [(2, 1.1111), (10, 1.272727), (100, 1.326733)]:
        assert rates.nonuniformity(np.arange(1, n + 1)) == pytest.approx(expected, abs=5e-5 if n == 2 else 5e-7)
        assert rates.nonuniformity(np.arange(1, n + 1)) == pytest.approx(2 / 3 * (2 * n + 1) / (n + 1), rel=1e-13)
    assert rates.nonuniformity(np.full(9, 0.3)) == pytest.approx(1.0)
    assert rates.nonuniformity(np.eye(9)[4]) == pytest.approx(9.0)
    assert rates.nonuniformity([2.0, 0.0, 2.0, 2.0, 0.0, 0.0]) == pytest.approx(2.0)
    assert rates.nonuniformity([3.0, 1.0, 0.5, 0.5]) == pytest.approx(1.68)
    rng = np.random.default_rng(16)
    for _ in range(200):
        n = rng.integers(1, 40)
        gaps = rng.exponential(size=n) ** rng.choice([1, 4]) * 10.0 ** rng.uniform(-300, 300)
        assert 1 - 1e-14 <= rates.nonuniformity(gaps) <= n * (1 + 1e-14)


def test_lipschitz_gap_is_sharper_one_step_than_its_rate():
    rng = np.random.default_rng(17)
    for _ in range(100):
        g, c = rng.exponential(size=8) ** 3, 1 + rng.exponential(size=8)
        rate = rates.safe_steps(c).lipschitz_gap * np.sqrt(rates.nonuniformity(g)) / 8
        assert rates.lipschitz_gap_ascent(g, c) >= rate * g.mean() * (1 - 1e-14)
        assert 1 - rates.sdca_lipschitz_gap(1, c, chi_squared=rates.nonuniformity(g)) == pytest.approx(rate)
        assert rates.lipschitz_gap_ascent(c, c) == pytest.approx(1 / 8)  # g as c: Cauchy-Schwarz is an equality
    assert rates.lipschitz_gap_ascent(np.zeros(8), np.ones(8)) == 0.0


def test_iterations_to_are_the_first_that_suffice():
    rng = np.random.default_rng(18)
    for _ in range(100):
        rate, h0, epsilon = 10.0 ** rng.uniform(-6, -0.1), 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-12, -3)
        k = int(rates.iterations_to(epsilon, rate, h0))
        assert rates.sdca_adaptive(k, rate, h0) <= epsilon * (1 + 1e-8)
        assert rates.sdca_adaptive(k - 1, rate, h0) > epsilon * (1 - 1e-8)
        assert k <= np.ceil(np.log(h0 / epsilon) / rate)
    assert rates.iterations_to(2.0, 0.1, 1.0) == 0
    assert rates.iterations_to(0.5, 1.0, 1.0) == 1
    assert rates.iterations_to(1e-3, 0.1, 0.0) == 0


# Stochastic gradient descent


class SampledLeastSquares:
    """``f_i(w) = (a_i . w - b_i)^2 / 2``, one of n drawn uniformly."""

    def __init__(self, n=40, dimension=3, seed=19):
        rng = np.random.default_rng(seed)
        self.a = rng.normal(size=(n, dimension))
        self.b = self.a @ rng.normal(size=dimension) + 0.5 * rng.normal(size=n)
        self.hessian = self.a.T @ self.a / n
        self.optimum = np.linalg.lstsq(self.a, self.b, rcond=None)[0]
        self.residual = self.b - self.a @ self.optimum
        self.L = np.max(np.sum(self.a**2, axis=1))
        self.mu = np.linalg.eigvalsh(self.hessian)[0]
        self.noise = np.mean(self.residual**2 * np.sum(self.a**2, axis=1))

    def excess(self, error):
        return 0.5 * np.einsum("...i,ij,...j->...", error, self.hessian, error)

    def run(self, start, gamma, k, n_runs, rng):
        """``w_k - w*`` for every run and update: shape (runs, k + 1, dimension)."""
        error = np.tile(start - self.optimum, (n_runs, 1))
        errors = [error]
        for _ in range(k):
            i = rng.integers(len(self.a), size=n_runs)
            slope = np.sum(self.a[i] * error, axis=1) - self.residual[i]
            error = error - gamma * slope[:, None] * self.a[i]
            errors.append(error)
        return np.stack(errors, axis=1)

    def exact(self, start, gamma, k):
        """``E F(w_k) - F*`` without sampling, by the linear recursion of the first two moments of ``w_k - w*``."""
        n, dimension = self.a.shape
        shrink = np.eye(dimension) - gamma * self.a[:, :, None] * self.a[:, None, :]  # (n, d, d)
        kick = gamma * self.residual[:, None] * self.a  # e+ = shrink e + kick
        mean = start - self.optimum
        second = np.outer(mean, mean)
        excesses = [0.5 * np.trace(self.hessian @ second)]
        for _ in range(k):
            cross = np.einsum("nij,j,nk->ik", shrink, mean, kick) / n
            second = np.einsum("nij,jk,nlk->il", shrink, second, shrink) / n + cross + cross.T + kick.T @ kick / n
            mean = (shrink @ mean + kick).mean(axis=0)
            excesses.append(0.5 * np.trace(self.hessian @ second))
        return np.array(excesses)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_stochastic_gradient_descent(share):
    problem, k = SampledLeastSquares(), np.arange(401)
    start = problem.optimum + 2.0
    gamma = share / (2 * problem.L)
    bound = rates.sgd_strongly_convex(problem.L, problem.mu, gamma, k, 4.0 * 3, problem.noise)
    exact = problem.exact(start, gamma, 400)
    assert np.all(exact <= bound)
    found = problem.excess(problem.run(start, gamma, 400, 200, np.random.default_rng(20)))
    error = found.std(axis=0, ddof=1) / np.sqrt(200)
    assert np.all(found.mean(axis=0) <= bound + 3 * error)
    at = k[::50]
    assert np.all(np.abs(found.mean(axis=0) - exact)[at] <= 4 * error[at] + 1e-12)


def test_the_residual_ball_of_sgd_shrinks_with_the_step():
    problem = SampledLeastSquares()
    gammas = np.array([1.0, 0.5, 0.25, 0.125]) / (2 * problem.L)
    last = np.array([problem.exact(problem.optimum, gamma, 4000)[-1] for gamma in gammas])
    assert np.all(np.diff(last) < 0)
    ratios = last / gammas
    assert ratios[-2] == pytest.approx(ratios[-1], rel=0.1)  # linear for small steps
    bounds = [rates.sgd_strongly_convex(problem.L, problem.mu, g, np.inf, 0.0, problem.noise) for g in gammas]
    assert_allclose(bounds, gammas * problem.L / problem.mu * problem.noise)
    assert np.all(last <= bounds)


def test_the_sgd_bound_is_within_a_factor_three_on_a_mean():
    # (w - x)^2 / 2 with x = +-1: E (w - w*)^2 obeys v+ = (1 - gamma)^2 v + gamma^2, and its bound b+ = (1 - gamma) b +
    # 2 gamma^2.
    gamma, v, b = 0.5, 4.0, 4.0
    for k in range(50):
        assert v <= b + 1e-15
        assert rates.sgd_strongly_convex(1.0, 1.0, gamma, k, 4.0, 1.0) == pytest.approx(b / 2, rel=1e-12)
        v, b = (1 - gamma) ** 2 * v + gamma**2, (1 - gamma) * b + 2 * gamma**2
    assert b / v == pytest.approx(3.0)


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rates.block_conditions([], 1.0), "non-empty vector"),
        (lambda: rates.block_conditions([-1.0], 1.0), "squared_radii must be finite and not negative"),
        (lambda: rates.block_conditions([1.0, np.nan], 1.0), "squared_radii must be finite"),
        (lambda: rates.block_conditions([1.0], 0.0), "l2 must be positive"),
        (lambda: rates.block_conditions([1.0], 1.0, np.inf), "loss_smoothness must be positive"),
        (lambda: rates.safe_steps([0.5, 2.0]), "at least 1; got 0.5"),
        (lambda: rates.sdca_uniform(-1, [2.0]), "must not be negative"),
        (lambda: rates.sdca_uniform(1, [2.0], np.nan), "h0 must be finite"),
        (lambda: rates.sdca_gap(1, [2.0, 2.0], 1.0, 2.5), "between 1 and n = 2"),
        (lambda: rates.sdca_lipschitz_gap(1, [2.0, 2.0], 1.0, 0.5), "between 1 and n = 2"),
        (lambda: rates.sdca_adaptive(1, 0.0), r"in \(0, 1\]"),
        (lambda: rates.iterations_to(0.0, 0.5), "epsilon must be positive"),
        (lambda: rates.iterations_to(0.1, 1.5), r"in \(0, 1\]"),
        (lambda: rates.nonuniformity([0.0, 0.0]), "not all be zero"),
        (lambda: rates.adaptive_rate([0.0], [1.0]), "not all be zero"),
        (lambda: rates.adaptive_rate([1.0, 1.0], [1.0, 1.0], [1.0, 0.0]), "positive where the residual is"),
        (lambda: rates.ascent_lower_bound(1.0, 1.0, 1.2, 2.0, 3), r"step must be in \[0, 1\]; got 1.2"),
        (lambda: rates.ascent_lower_bound(1.0, 1.0, np.nan, 2.0, 3, quadratic=True), "step must be finite"),
        (lambda: rates.ascent_lower_bound(1.0, 1.0, 0.5, 0.5, 3), "at least 1"),
        (lambda: rates.expected_ascent_lower_bound([0.5], [1.0], [1.0], [0.5], [2.0]), "sum to one"),
        (lambda: rates.gap_from_primal(1.0, -1.0, 1.0), "smoothness"),
        (lambda: rates.gap_from_dual(-1.0, [2.0]), "suboptimality must be finite and not negative"),
        (lambda: rates.weights_distance(-1.0, 1.0), "gap must be finite and not negative"),
        (lambda: rates.sgd_strongly_convex(1.0, 0.5, 0.6, 1, 1.0, 1.0), r"\(0, 1/\(2L\)\]"),
        (lambda: rates.sgd_strongly_convex(1.0, 0.0, 0.5, 1, 1.0, 1.0), "mu must be positive"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
