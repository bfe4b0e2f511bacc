"""Sections 1 to 3, 7 and 8 of the course: its pictures of losses, minimisers, convexity, axes, balls and paths."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.optim import SGD, InverseTime, LeastSquares, Logistic, Quadratic, is_separable, level_axes, pca
from cumulant.plotting import COLOURS, figure, legend
from cumulant.randomness import generator

TITLE = "Losses, minimisers, convexity, principal axes, balls of l^q and the paths of stochastic gradients"
SOURCE = (
    "Peyré (2021), course notes on optimization for machine learning, sections 1 to 3, 7 and 8, figures 1 to 8, 11 "
    "and 14 to 16"
)
_NOTES = (
    "The figures of these sections are drawings without numbers; the claims are what their text says, each put to a "
    "test whose threshold was settled before the first run."
)

CLOUD = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]])


@experiment
def run(quick: bool, rng: int) -> Report:
    """Put the statements of the figures to the test, and draw them."""
    generate = generator(rng)
    paths = _paths(generate, 20, 200 if quick else 1000)
    claims = (
        _coercive(generate),
        _separable(generate),
        _one_minimiser(),
        _partial_derivatives(),
        _axes(),
        _steepest(),
        _balls(generate),
        _concentration(generate, 100 if quick else 1000),
    )
    return Report(claims, lambda: _draw(paths), _NOTES)


def _coercive(generate) -> Claim:
    """Figure 3: least squares is coercive exactly where the columns are independent."""
    right = 0
    for _ in range(50):
        n, p = generate.integers(1, 7, size=2)
        A = generate.normal(size=(n, p))
        if generate.uniform() < 0.3 and p > 1:
            A[:, -1] = A[:, 0]  # a column twice
        independent = np.linalg.matrix_rank(A) == p
        right += (LeastSquares(A, np.zeros(n)).strong_convexity > 0) == independent
    return Claim(
        "least squares has one minimiser exactly where no vector but zero is in the kernel of A, as for generic "
        "features from n = p on",
        'ker A = {0} "only holds if" the features span a smaller space (sic: fails)',
        f"strong convexity found where the rank is full and nowhere else, {right} of 50 random matrices",
        verdict(right == 50, corrected=True),
        item="Figure 3",
    )


def _separable(generate) -> Claim:
    """Example 1: what holds for least squares does not for classification."""
    A = generate.normal(size=(30, 3))
    signs = np.sign(A @ generate.normal(size=3))
    problem = Logistic(A, signs)
    direction = np.linalg.lstsq(A, signs, rcond=None)[0]
    for _ in range(200):  # a perceptron, which ends at a separating direction
        wrong = signs * (A @ direction) <= 0
        if not wrong.any():
            break
        direction = direction + signs[wrong] @ A[wrong]
    values = [float(problem.value(scale * direction)) for scale in (1.0, 10.0, 100.0)]
    falls = values[0] > values[1] > values[2] and values[2] < 1e-3
    return Claim(
        "a classification loss has no minimiser where the classes can be separated, independent columns or not",
        "coercive if ker A = {0}",
        f"30 x 3 of full rank, separable: {is_separable(A, signs)}; the loss along a separating direction "
        + listed(values, ".1e"),
        verdict(is_separable(A, signs) and falls and np.linalg.matrix_rank(A) == 3, corrected=True),
        item="Example 1",
    )


def _one_minimiser() -> Claim:
    """Figures 2, 4 and 5: functions of one variable on a grid."""
    x = np.linspace(-3, 3, 6001)
    capped, fourth = np.minimum(1.0, x**2), x**4
    single = np.sum(capped == capped.min()) == 1
    bounded = capped.max() <= 1.0
    chord = 0.5 * (fourth[:, None] + fourth[None, ::100]) - (0.5 * (x[:, None] + x[None, ::100])) ** 4
    apart = np.abs(x[:, None] - x[None, ::100]) > 1e-9
    strict = np.all(chord[apart] > 0)
    return Claim(
        "one minimiser does not make a function coercive (min(1, x^2)), nor strict convexity a positive second "
        "derivative (x^4 at 0)",
        "drawn",
        f"min(1, x^2): one minimiser {single}, bounded {bounded}; x^4: chords strictly above {strict}, f''(0) = 0",
        verdict(single and bounded and strict),
        item="Figures 2, 4 and 5",
    )


def _partial_derivatives() -> Claim:
    def f(x, y):
        return 2 * x * y * (x + y) / (x**2 + y**2)

    t = 1e-6
    along = f(t / np.sqrt(2), t / np.sqrt(2)) / t
    axes = (f(t, 0.0) / t, f(0.0, t) / t)
    return Claim(
        "partial derivatives may exist where there is no derivative: 2xy(x + y)/(x^2 + y^2) at 0",
        "not differentiable",
        f"slopes along the axes {axes[0]:g} and {axes[1]:g}, between them {along:.8f} = sqrt 2",
        verdict(axes == (0.0, 0.0) and abs(along - np.sqrt(2)) < 1e-8),
        item="Section 3.1",
    )


def _axes() -> Claim:
    """Figure 7: the ellipse of a cloud and that of the quadratic it makes."""
    cloud, level = pca(CLOUD), level_axes(CLOUD)
    product = cloud.half_widths * level.half_widths
    same = np.max(np.abs(np.abs(np.sum(cloud.axes * level.axes, axis=1)) - 1))
    return Claim(
        "the level sets of least squares have the axes of the cloud of its features, with inverse widths",
        "same axes, inverse widths",
        f"four points: variances {cloud.variances[0]:.4f} and {cloud.variances[1]:.4f}, widths times widths "
        f"{product[0]:.6f} and {product[1]:.6f}",
        verdict(same < 1e-9 and np.max(np.abs(product - 1)) < 1e-9),
        item="Figure 7",
    )


def _steepest() -> Claim:
    """Remark 3 and figure 8."""
    problem = Quadratic(np.diag([1.0, 10.0]), [0.0, 0.0])
    g = np.asarray(problem.gradient([1.0, 1.0]))
    angles = np.linspace(0, 2 * np.pi, 400_001)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    distances = []
    for r in (0.1, 0.01, 0.001):
        x, y = 1 + r * circle
        best = circle[:, np.argmin(x**2 + 10 * y**2)]
        distances.append(float(np.linalg.norm(best + g / np.linalg.norm(g))))
    return Claim(
        "the best direction of length r tends to minus the gradient, at first order in r",
        "-grad f / |grad f| as r goes to 0",
        "distances for r = 0.1, 0.01, 0.001: " + listed(distances, ".2e"),
        verdict(8 < distances[0] / distances[1] < 13 and 8 < distances[1] / distances[2] < 13),
        item="Remark 3; Figure 8",
    )


def _balls(generate) -> Claim:
    """Figure 11: sum |x_k|^q <= 1 in the plane."""
    convex = {}
    for q in (0.5, 0.8, 1.0, 1.5, 2.0):
        x = generate.normal(size=(4000, 2))
        x = x / np.sum(np.abs(x) ** q, axis=1, keepdims=True) ** (1 / q)
        middle = (x[:2000] + x[2000:]) / 2
        convex[q] = bool(np.all(np.sum(np.abs(middle) ** q, axis=1) <= 1 + 1e-12))
    good = [q for q, holds in convex.items() if holds]
    return Claim(
        "the balls of l^q are convex from q = 1 on, and shrink to the axes below",
        "non-convex for q < 1",
        f"middles of 2000 pairs of points of the sphere stay inside for q = {listed(good, 'g')} and "
        "leave for " + ", ".join(f"{q:g}" for q in convex if q not in good),
        verdict(good == [1.0, 1.5, 2.0]),
        item="Figure 11",
    )


def _paths(generate, count: int, steps: int) -> np.ndarray:
    """Figure 16 with the companion's settings: f_i = (x -+ 1)^2 / 2, steps 1 / (10 + k), starts in [-1/2, 1/2]."""
    problem = LeastSquares([[1.0], [1.0]], [1.0, -1.0])
    solver = SGD(InverseTime(0.1, 10.0), updates=1)
    found = np.empty((count, steps + 1))
    for path in range(count):
        state = solver.init(problem, generate.uniform(-0.5, 0.5, size=1), int(generate.integers(2**31)))
        found[path, 0] = state.x[0]
        for k in range(steps):
            state = solver.step(problem, state)
            found[path, k + 1] = state.x[0]
    return found


def _concentration(generate, count: int) -> Claim:
    """The exact second moment: v <- (1 - tau)^2 v + tau^2, from 1/12."""
    found = _paths(generate, count, 100)
    moment, expected = 1 / 12, [1 / 12]
    for k in range(100):
        tau = 1 / (10 + k)
        moment = (1 - tau) ** 2 * moment + tau**2
        expected.append(moment)
    measured = np.mean(found**2, axis=0)
    error = np.std(found**2, axis=0, ddof=1) / np.sqrt(count)
    off = float(np.max(np.abs(measured - expected)[[10, 30, 100]] / error[[10, 30, 100]]))
    return Claim(
        "the distribution of the iterates concentrates on the minimum",
        "density concentrates at 0 (figure 16)",
        f"{count} paths: E x_k^2 at k = 10, 30, 100 is {', '.join(f'{measured[k]:.4f}' for k in (10, 30, 100))}, "
        f"exactly {', '.join(f'{expected[k]:.4f}' for k in (10, 30, 100))} ({off:.1f} standard errors)",
        verdict(off < 4 and expected[100] < expected[30] < expected[10]),
        item="Figure 16",
    )


def _draw(paths):
    fig, axes = figure(2, 3, width=10.5, height=6.4)
    (losses, minima, ellipses), (balls, level, runs) = axes
    m = np.linspace(-2.5, 2.5, 400)
    losses.plot(m, (m < 0) * 1.0, label="0-1")
    losses.plot(m, np.log1p(np.exp(-m)), label="logistic")
    losses.plot(m, np.maximum(1 - m, 0), label="hinge")
    losses.plot(m, (1 - m) ** 2, label="square")
    losses.set(ylim=(-0.1, 4), xlabel="margin $y \\langle a, x \\rangle$", title="losses (figure 1)")
    legend(losses)
    x = np.linspace(-2.2, 2.2, 400)
    minima.plot(x, np.exp(-x), label="$e^{-x}$: none")
    minima.plot(x, np.maximum(np.abs(x) - 1, 0), label="$\\max(|x| - 1, 0)$: many")
    minima.plot(x, x**4, label="$x^4$: one")
    minima.plot(x, np.minimum(1, x**2), label="$\\min(1, x^2)$: one, not convex")
    minima.set(ylim=(-0.1, 4.5), xlabel="$x$", title="minimisers (figures 2 to 6)")
    legend(minima, fontsize=7)
    _ellipses(ellipses)
    t = np.linspace(0, 2 * np.pi, 401)
    for colour, q in zip(COLOURS, (0.5, 0.8, 1.0, 1.5, 2.0), strict=False):
        size = (np.abs(np.cos(t)) ** q + np.abs(np.sin(t)) ** q) ** (1 / q)
        balls.plot(np.cos(t) / size, np.sin(t) / size, color=colour, label=f"$q = {q:g}$")
    balls.set(aspect="equal", xlim=(-1.1, 2.1), title="balls of $\\ell^q$ (figure 11)")
    legend(balls, fontsize=7, loc="center right")
    first, second = np.meshgrid(np.linspace(-2, 2, 100), np.linspace(-1.5, 1.5, 100))
    level.contour(
        first, second, (first**2 + 4 * second**2) / 2, levels=[0.5, 1, 2, 4], colors=COLOURS[6], linewidths=0.8
    )
    for angle in (0.4, 1.4, 2.6, 4.2):
        at = np.array([np.sqrt(4) * np.cos(angle), np.sin(angle)])
        step = 0.25 * at * [1.0, 4.0]
        level.annotate("", at - step, at, arrowprops={"arrowstyle": "->", "color": COLOURS[1]})
    level.set(aspect="equal", title="$-\\nabla f$ and level sets (figure 8)")
    for path in paths:
        runs.plot(np.arange(path.size), path, color=COLOURS[0], alpha=0.35, linewidth=0.7)
    spread = np.sqrt(np.mean(paths**2, axis=0))
    runs.plot(spread, color=COLOURS[1], label="root mean square")
    runs.plot(-spread, color=COLOURS[1])
    runs.set(xscale="symlog", xlabel="steps", ylabel="$x_k$", title="stochastic paths (figures 14 to 16)")
    legend(runs)
    return fig


def _ellipses(ax) -> None:
    """Figure 7."""
    centred = CLOUD - CLOUD.mean(axis=0)
    circle = np.stack([np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))])
    ax.plot(*centred.T, "o", color=COLOURS[6], label="centred features")
    for found, colour, name in ((pca(CLOUD), COLOURS[0], "of the cloud"), (level_axes(CLOUD), COLOURS[1], "level set")):
        ax.plot(*(found.axes.T @ (found.half_widths[:, None] * circle)), color=colour, label=name)
    ax.set(aspect="equal", ylim=(-4, 7), title="principal axes (figure 7)")
    legend(ax, fontsize=7, loc="upper left")
