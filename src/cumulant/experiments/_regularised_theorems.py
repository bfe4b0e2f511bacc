"""Sections 7 and 8 of the course: the claims of `optimisation_theorems` on regularised and on stochastic problems."""

import numpy as np

from cumulant import optim
from cumulant.experiments.base import claim
from cumulant.geometry.proximal import l1
from cumulant.optim import rates


def ridge(generate):
    worst = 0.0
    for _ in range(20):
        n, p = generate.integers(2, 9, size=2)
        A, y, lam = generate.normal(size=(n, p)), generate.normal(size=n), 10.0 ** generate.uniform(-3, 2)
        primal = np.linalg.solve(A.T @ A + lam * np.eye(p), A.T @ y)
        dual = A.T @ np.linalg.solve(A @ A.T + lam * np.eye(n), y)
        worst = max(worst, float(np.max(np.abs(primal - dual))), float(np.max(np.abs(optim.ridge(A, y, lam).x - dual))))
    return claim(
        item="Proposition 10",
        statement="(A^T A + lam I)^-1 A^T y = A^T (A A^T + lam I)^-1 y",
        published="(38), (39)",
        ours=f"20 random systems of both shapes: largest difference {worst:.0e}, of the solver too",
        holds=worst < 1e-9,
    )


def ridge_factor():
    A, y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([1.0, 2.0, 3.0])
    formula = np.linalg.solve(A.T @ A + np.eye(2), A.T @ y)
    gradients = [A.T @ (A @ formula - y) + c * formula for c in (1.0, 2.0)]
    return claim(
        item="Section 7.2",
        statement="(A^T A + lam I)^-1 A^T y minimises |A x - y|^2 / 2 + lam |x|^2 / 2",
        published="|A x - y|^2 / 2 + lam |x|^2",
        ours=f"gradient there {np.linalg.norm(gradients[0]):.0e} with the half, {np.linalg.norm(gradients[1]):.2f} "
        f"without",
        holds=np.linalg.norm(gradients[0]) < 1e-12 and np.linalg.norm(gradients[1]) > 0.1,
        corrected=True,
    )


def surrogate(generate):
    A, y, x, lam = generate.normal(size=(3, 4)), generate.normal(size=3), generate.normal(size=4), 0.3
    tau = 1 / np.linalg.norm(A, 2) ** 2

    def f(x):
        return np.sum((A @ x - y) ** 2) / 2 + lam * np.sum(np.abs(x))

    def surrogate(x, at):
        return f(x) - np.sum((A @ (x - at)) ** 2) / 2 + np.sum((x - at) ** 2) / (2 * tau)

    others = x + generate.normal(size=(500, 4)) * 10.0 ** generate.uniform(-3, 1, size=(500, 1))
    least = min(surrogate(each, x) - f(each) for each in others)
    touching = surrogate(x, x)
    return claim(
        item="Section 7.4, surrogate",
        statement="f_tau(x, x') >= f(x) for tau <= 1/|A|^2, with f_tau(x, x) = f(x)",
        published="f_tau(x, x) = 0",
        ours=f"f_tau(x, x) - f(x) = {touching - f(x):.0e}, f(x) = {f(x):.3f}; least of 500 differences {least:.1e}",
        holds=abs(touching - f(x)) < 1e-12 and f(x) > 0.1 and least >= -1e-9,
        corrected=True,
    )


def soft_threshold_step(generate):
    A, y, at, lam = generate.normal(size=(3, 2)), generate.normal(size=3), generate.normal(size=2), 0.3
    tau = 1 / np.linalg.norm(A, 2) ** 2
    step = np.asarray(l1(at - tau * A.T @ (A @ at - y), lam * tau))
    grid = step + np.stack(np.meshgrid(*[np.linspace(-0.05, 0.05, 201)] * 2), axis=-1).reshape(-1, 2)
    residual = grid @ A.T - y
    moved = (grid - at) @ A.T
    values = (np.sum(residual**2, 1) - np.sum(moved**2, 1) + np.sum((grid - at) ** 2, 1) / tau) / 2
    values += lam * np.sum(np.abs(grid), 1)
    best = grid[int(np.argmin(values))]
    return claim(
        item="Proposition 12",
        statement="the minimiser of the surrogate is the soft threshold of a gradient step: (41)",
        published="x_{k+1} = S_{lam tau}(x_k - tau A^T (A x_k - y))",
        ours=f"the lowest of 40,401 points around it is {float(np.max(np.abs(best - step))):.1e} away (grid of 5e-4)",
        holds=np.max(np.abs(best - step)) < 3e-4,
    )


def running_mean():
    x = np.arange(1.0, 11.0) ** 2
    printed = ours = 0.0
    for k in range(1, 10):
        ours += (x[k - 1] - ours) / k
        printed = x[k - 1] / k + (k - 1) / k * printed  # what the course calls x_{k+1}
    return claim(
        item="Section 8.4",
        statement="the running mean of k + 1 iterates is x_{k+1} = x_k + (y_{k+1} - x_k) / (k + 1)",
        published="x_{k+1} = y_k / k + (k - 1) x_k / k",
        ours=f"nine steps on 1, 4, 9, ...: printed {printed:.4f} for x_10, the mean of the first nine; the mean of "
        f"ten is {x.mean():.4f}",
        holds=abs(printed - x[:9].mean()) < 1e-12 and abs(ours - x[:9].mean()) < 1e-12 and abs(printed - x.mean()) > 1,
        corrected=True,
    )


def start_of_the_bound(generate):
    """Strong convexity gives ``mu |x_0 - x*| <= |grad f(x_0)| <= C``: the other term of the maximum."""
    least = np.inf
    for _ in range(200):
        n, p = generate.integers(1, 6), generate.integers(1, 4)
        f = optim.LeastSquares(
            generate.normal(size=(n, p)), generate.normal(size=n), l2=10.0 ** generate.uniform(-2, 1)
        )
        x0 = generate.normal(size=p) * 10.0 ** generate.uniform(-2, 2)
        terms = np.asarray(f.A) * (np.asarray(f.A) @ x0 - np.asarray(f.y))[:, None] + float(f.l2) * x0
        best = np.linalg.solve(np.asarray(f.A).T @ np.asarray(f.A) / n + float(f.l2) * np.eye(p),
                               np.asarray(f.A).T @ np.asarray(f.y) / n)  # fmt: skip
        second, mu = float(np.mean(np.sum(terms**2, axis=1))), float(f.strong_convexity)
        least = min(least, second / mu**2 / float(np.sum((x0 - best) ** 2)))
    return claim(
        item="(50) at k = 0",
        statement="|x_0 - x*|^2 <= R: the distance in R is not squared, and need not be, for C^2 / mu^2 is never below "
        "|x_0 - x*|^2",
        published="R = max(|x_0 - x*|, C^2 / mu^2)",
        ours=f"200 finite sums: E |grad f_i(x_0)|^2 / (mu^2 |x_0 - x*|^2) is at least {least:.3f}",
        holds=least >= 1 - 1e-9,
        loose=True,
    )


def recursion(generate):
    """Paths of all draws for f_i = |x - t_i|^2 / 2, mu = 1; C^2 is the largest second moment of a visited point."""
    worst = -np.inf
    for _ in range(20):
        targets = generate.normal(size=4)
        targets -= targets.mean()
        paths = np.array([generate.normal() * 3])
        for tau in generate.uniform(0.01, 1.5, size=5):
            moment, square = np.mean(paths**2), np.max(np.mean((paths[:, None] - targets) ** 2, axis=1))
            paths = ((1 - tau) * paths[:, None] + tau * targets).ravel()
            worst = max(worst, float(np.mean(paths**2) - (1 - 2 * tau) * moment - tau**2 * square))
    return claim(
        item="(52)",
        statement="E |x_{k+1} - x*|^2 <= (1 - 2 mu tau_k) E |x_k - x*|^2 + tau_k^2 C^2",
        published="the same",
        ours="20 finite sums with random steps, all paths enumerated: the left side exceeds the right one by "
        f"{worst:.1e} at most",
        holds=worst <= 1e-12,
    )


def value_rate(seeds):
    """Two parabolas (x -+ 1)^2 / 2, steps 1/(k + 1): L = mu = 1, and C^2 <= 2 on [-1, 1], where the iterates are."""
    problem, marks = optim.LeastSquares([[1.0], [1.0]], [1.0, -1.0]), np.array([10, 100, 1000])
    found = np.empty((marks.size, seeds))
    for row, k in zip(found, marks.tolist(), strict=True):
        solver = optim.SGD(optim.InverseTime(1.0), updates=k)
        row[:] = [solver.step(problem, solver.init(problem, np.array([0.3]), seed)).x[0] for seed in range(seeds)]
    values, bound = found**2 / 2, rates.sgd(np.sqrt(2.0), 1.0, marks) / 2
    error, share = values.std(axis=1, ddof=1) / np.sqrt(seeds), float(np.max(values.mean(axis=1) / bound))
    powers = [
        float(np.polyfit(np.log(marks), np.log(each.mean(axis=1)), 1)[0]) for each in (values, np.abs(found))
    ]  # fmt: skip
    return claim(
        item="Theorem 2, values",
        statement="1/sqrt(k) is the rate of the distance; E f(x_k) - f* <= L C^2 / (2 mu^2 k) for smooth f",
        published="1/sqrt(k)",
        ours=f"two parabolas, {seeds} seeds, k = 10, 100, 1000: powers of k {powers[0]:.2f} for E f(x_k) - f* and "
        f"{powers[1]:.2f} for E |x_k - x*|; largest ratio to the bound {share:.3f}",
        holds=abs(powers[0] + 1) < 0.1
        and abs(powers[1] + 0.5) < 0.05
        and np.all(values.mean(axis=1) + 3 * error <= bound),
        loose=True,
        spread=f"standard error {float(np.max(error / values.mean(axis=1))):.1%} of the mean over seeds at most",
    )


def sag(seeds):
    """Without strong convexity: least squares in more unknowns than rows, so that mu = 0; the value at the mean."""
    A = np.random.default_rng(5).normal(size=(10, 20))
    y = np.random.default_rng(6).normal(size=10)
    problem = optim.LeastSquares(A, y)
    L, n = float(np.max(problem.term_smoothness)), 10
    target = np.linalg.lstsq(A, y, rcond=None)[0]
    start = rates.sag_start(L, n, float(problem.value(np.zeros(20))), float(target @ target), 0.0)
    solver, passes = optim.SAG(1 / (16 * L), normalise="all", updates=n), 1000
    gaps = np.zeros((seeds, passes))
    for number in range(seeds):
        state, total = solver.init(problem, np.zeros(20), number), np.zeros(20)
        for k in range(passes):
            state = solver.step(problem, state)
            total += solver.solution(problem, state)
            gaps[number, k] = float(problem.value(total / (k + 1)))
    steps = n * np.arange(1, passes + 1)
    bound = rates.sag(L, n, steps, start)
    mean, error = gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(seeds)
    power = float(np.polyfit(np.log(steps[500:]), np.log(mean[500:]), 1)[0])
    found = claim(
        item="Section 8.5",
        statement="SAG is O(1/k) without strong convexity: E f(mean of the iterates) - f* <= 32 n C_0 / k",
        published="O(1/k)",
        ours=f"least squares 10 x 20, {seeds} seeds, {passes} passes: largest ratio to the bound "
        f"{float(np.max(mean / bound)):.1e}; power of k over the second half {power:.2f}",
        holds=np.all(mean + 3 * error <= bound) and power <= -1,
        spread=f"standard error {float(np.max(error / mean)):.1%} of the mean over seeds at most",
    )
    return found, (steps, mean, bound)
