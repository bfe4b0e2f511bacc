"""The theorems on stochastic gradients and dual ascent, against means over seeds, plus three standard errors."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim import rates

SEEDS = 60
RNG = np.random.default_rng(11)
A = RNG.normal(size=(10, 2))
Y = RNG.normal(size=10)
SIGNS = np.sign(RNG.normal(size=10))
LEAST = optim.LeastSquares(A, Y)
BEST = np.linalg.lstsq(A, Y, rcond=None)[0]
START = BEST + np.array([1.0, -2.0])


def iterates(solver, problem, x0, steps, seeds=SEEDS):
    """Answers after 0, 1, ... steps, for many seeds: (seeds, steps + 1, *shape)."""
    found = []
    for seed in range(seeds):
        state = solver.init(problem, np.array(x0), seed)
        found.append([solver.solution(problem, state).copy()])
        for _ in range(steps):
            state = solver.step(problem, state)
            found[-1].append(solver.solution(problem, state).copy())
    return np.array(found)


def within(samples, bound):
    """Whether the mean over the first axis is within the bound and three standard errors; the largest ratio."""
    mean, error = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    assert np.all(mean <= bound + 3 * error)
    return float(np.max(mean / bound))


def squares_gap(x):
    """``f(x) - f*`` of least squares, exactly."""
    return np.sum(((x - BEST) @ A.T) ** 2, axis=-1) / (2 * len(A))


def test_theorem_2_is_false_as_printed_at_the_first_step_and_true_as_corrected():
    # On [-1, 1]: f_1' = -1 + 2 max(x, 0), f_2' = 1 - 2 max(-x, 0), so f' = x, mu = 1, C = 1; every path enumerated.
    squared = []
    for k in range(7):
        paths = []
        for signs in itertools.product((0, 1), repeat=k):
            x = 0.0
            for step, sign in enumerate(signs):
                slope = -1 + 2 * max(x, 0.0) if sign == 0 else 1 - 2 * max(-x, 0.0)
                x = float(np.clip(x - slope / (step + 1), -1, 1))
            paths.append(x**2)
        squared.append(np.mean(paths))
    np.testing.assert_allclose(
        squared, [0, 1, 1 / 4, 5 / 36, 0.107638888889, 0.089861111111, 0.078094135802], atol=1e-11
    )
    k = np.arange(1, 7)
    assert np.all(squared[1:] <= rates.sgd(1.0, 1.0, k) + 1e-15)
    refined = rates.sgd(1.0, 1.0, k, refined=True)
    np.testing.assert_allclose(refined[1:], [0.25, 0.194444, 0.159722, 0.135833, 0.118333], atol=1e-6)
    assert np.all(squared[1:] <= refined + 1e-15)
    assert squared[1] > 1 / 2  # the printed bound C^2 / (mu^2 (k + 1)), violated at k = 1 and only there
    assert np.all(np.array(squared[2:]) <= 1 / (k[1:] + 1))
    assert np.all(refined[1:] <= 1 / (k[1:] + 1))
    # From any start with the recursion: the same as the refined bound.
    np.testing.assert_allclose(rates.sgd_recursion(1 / k, 1.0, 1.0, 9.0)[2:], refined[1:], rtol=1e-12)


def test_sgd_on_two_parabolas_is_the_mean_of_random_signs():
    problem = optim.LeastSquares([[1.0], [1.0]], [1.0, -1.0])
    xs = iterates(optim.SGD(optim.InverseTime(1.0), updates=5), problem, [0.3], 4, seeds=400)[:, 1:, 0]
    k = 5.0 * np.arange(1, 5)
    error = (xs**2).std(axis=0) / 20
    assert np.all(np.abs((xs**2).mean(axis=0) - 1 / k) <= 3 * error)
    # On [-1, 1] the mean of |x - y|^2 is at most 2.
    assert within(xs**2, rates.sgd(np.sqrt(2.0), 1.0, k, refined=True)) > 0.4


def test_sgd_with_decreasing_steps():
    L, mu = float(LEAST.term_smoothness.max()), LEAST.strong_convexity
    noise = float(np.mean((A @ BEST - Y) ** 2 * np.sum(A**2, axis=1)))
    xs = iterates(optim.SGD(updates=50), LEAST, START, 8)
    bound = rates.sgd_decreasing(L, mu, 50 * np.arange(9), 5.0, noise)
    assert within(np.sum((xs[:, 1:] - BEST) ** 2, axis=-1), bound[1:]) > 1e-3
    constant = iterates(optim.SGD(1 / (2 * L), updates=50), LEAST, START, 4)
    bound = rates.sgd_strongly_convex(L, mu, 1 / (2 * L), 50 * np.arange(5), 5.0, noise)
    assert within(squares_gap(constant[:, 1:]), bound[1:]) > 1e-3


@pytest.mark.parametrize("schedule", [optim.InverseSqrt(0.5, 4), optim.Constant(0.1)], ids=["sqrt", "constant"])
def test_the_mean_of_the_iterates(schedule):
    problem = optim.Logistic(A, SIGNS)  # |grad f_i| <= |a_i| everywhere, and a minimiser exists
    best = optim.run(optim.LBFGS(), problem, np.zeros(2), tol=1e-12)
    assert best.status == "converged"
    C = float(np.sqrt(np.mean(np.sum(A**2, axis=1))))
    xs = iterates(optim.SGA(schedule, updates=30), problem, best.x + 2.0, 4)[:, 1:]
    values = np.mean(np.logaddexp(0, -SIGNS * (xs @ A.T)), axis=-1) - best.value
    sizes = np.broadcast_to(np.asarray(schedule(np.arange(122.0)), dtype=float), 122)
    bound = rates.sga(sizes, C, 8.0)[30 * np.arange(1, 5) - 1]
    assert within(values, bound) > 1e-2


def test_sag_linearly_and_its_mean_at_one_over_k():
    L, mu, n = float(LEAST.term_smoothness.max()), LEAST.strong_convexity, len(A)
    noise = float(np.mean((A @ BEST - Y) ** 2 * np.sum(A**2, axis=1)))
    C0 = rates.sag_start(L, n, float(squares_gap(START)), 5.0, noise)
    xs = iterates(optim.SAG(1 / (16 * L), "all", updates=1), LEAST, START, 120, seeds=30)
    k = np.arange(1, 121)
    assert within(squares_gap(xs[:, 1:]), rates.sag(L, n, k, C0, mu)) > 0.05
    means = np.cumsum(xs[:, 1:], axis=1) / k[:, None]
    assert within(squares_gap(means), rates.sag(L, n, k, C0)) > 1e-3


def ridge_term(x, row):
    a, y = row
    return (a @ x - y) ** 2 / 2 + 0.25 * jnp.vdot(x, x)


def test_saga_when_every_term_is_strongly_convex():
    sizes = np.sum(A**2, axis=1) + 0.5
    problem = optim.FiniteSum(ridge_term, (A, Y), term_smoothness=sizes, curvature=0.5)
    hessian = A.T @ A / 10 + 0.5 * np.eye(2)
    best = np.linalg.solve(hessian, A.T @ Y / 10)
    start = best + np.array([1.0, -2.0])
    gap = float((start - best) @ hessian @ (start - best) / 2)
    xs = iterates(optim.SAGA(updates=10), problem, start, 6, seeds=30)
    bound = rates.saga(float(sizes.max()), 0.5, 10, 10 * np.arange(7), 5.0, gap)
    assert within(np.sum((xs[:, 1:] - best) ** 2, axis=-1), bound[1:]) > 1e-3


def test_svrg_with_a_random_end_of_its_stages():
    problem = optim.LeastSquares(A, Y, l2=0.5)
    L, mu = float(problem.term_smoothness.max()), problem.strong_convexity
    hessian = A.T @ A / 10 + 0.5 * np.eye(2)
    best = np.linalg.solve(hessian, A.T @ Y / 10)
    tau, inner = 0.1 / L, 400
    assert rates.svrg_contraction(L, mu, tau, inner) < 0.6
    moved = iterates(optim.SVRG(tau, inner, "random"), problem, best + 1.0, 4) - best
    gaps = np.einsum("...i,ij,...j", moved, hessian, moved) / 2
    assert within(gaps[:, 1:], rates.svrg(L, mu, tau, inner, np.arange(1, 5), gaps[0, 0])) > 1e-2


CLASSES = optim.MultinomialLogistic(A, RNG.integers(0, 3, size=10), l2=0.3)


@pytest.mark.parametrize("sampling", ["uniform", "importance", "gap", "gap-importance"])
def test_dual_ascent_with_fixed_steps_and_exact_gaps(sampling):
    best = optim.run(optim.LBFGS(), CLASSES, np.zeros(CLASSES.shape), tol=1e-13).value
    solver = optim.DualCoordinateAscent(sampling, 1.0, "fixed", updates=1, refresh=True)
    missing, chi = [], np.inf
    for seed in range(25):
        state = solver.init(CLASSES, np.zeros(CLASSES.shape), seed)
        missing.append([best - state.lower])
        for _ in range(30):
            chi = min(chi, rates.nonuniformity(solver.gaps(CLASSES, state)[0]))
            state = solver.step(CLASSES, state)
            missing[-1].append(best - state.lower)
    missing, k, c = np.array(missing), np.arange(1, 31), optim.conditions_of(CLASSES)
    bound = {
        "uniform": lambda: rates.sdca_uniform(k, c, missing[0, 0]),
        "importance": lambda: rates.sdca_importance(k, c, missing[0, 0]),
        "gap": lambda: rates.sdca_gap(k, c, missing[0, 0], chi),
        "gap-importance": lambda: rates.sdca_lipschitz_gap(k, c, missing[0, 0], chi),
    }[sampling]()
    assert within(missing[:, 1:], bound) > 0.3
    if sampling.startswith("gap"):
        assert chi > 1


@pytest.mark.slow
def test_gap_sampling_on_the_digits_takes_fewer_passes_and_both_keep_their_rates():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    problem = optim.MultinomialLogistic(X / 16, y, l2=1 / len(y))
    best = optim.run(optim.LBFGS(), problem, np.zeros(problem.shape), tol=1e-12).value
    c, passes = optim.conditions_of(problem), {}
    for sampling in ("uniform", "gap"):
        solver = optim.DualCoordinateAscent(sampling, 0.8)
        needed, missing = [], []
        for seed in range(20):
            result = optim.run(
                solver, problem, np.zeros(problem.shape), tol=None, max_steps=100, rng=seed,
                callback=lambda snapshot: snapshot.bound <= 1e-6,
            )  # fmt: skip
            assert result.trace.bound[-1] <= 1e-6
            needed.append(result.work)
            missing.append(best - result.trace["dual"][:11])
        rate = rates.sdca_uniform if sampling == "uniform" else rates.sdca_gap
        within(np.array(missing)[:, 1:], rate(len(y) * np.arange(1, 11), c, missing[0][0]))
        passes[sampling] = np.array(needed)
    assert passes["gap"].max() < passes["uniform"].min()


def test_bad_constants_are_refused():
    for call, message in (
        (lambda: rates.sgd(1.0, 0.0, 1), "mu must be positive"),
        (lambda: rates.sgd(1.0, 1.0, 1.5), "must be whole"),
        (lambda: rates.sgd_recursion([0.0], 1.0, 1.0, 1.0), "step_sizes must be a vector of positive"),
        (lambda: rates.sga([0.1, 0.2], 1.0, 1.0), "must not increase"),
        (lambda: rates.svrg(1.0, 0.1, 0.6, 10, 1), "tau, the step size"),
        (lambda: rates.sag(1.0, 0, 1, 1.0), "n must be positive"),
        (lambda: rates.saga(1.0, 2.0, 3, 1, 1.0, 1.0), "strong convexity constant"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
