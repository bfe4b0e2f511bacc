"""Figures 16 to 18 of the course: stochastic gradients against whole ones, averaged, and with a memory."""

import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification

from cumulant import optim
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import seed

TITLE = "Stochastic gradient descent, its average, and the stochastic average gradient"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, section 8, figures 16 to 18"

_STEP, _DELAY = 0.05, 100  # of the author's companion code
_PASSES, _LONG = 30, 200
_NOTES = (
    "The data of the figures are not public: logistic regression on 10,000 made-up rows of 46 standardised features "
    "(scikit-learn's make_classification) stands in for them, with the settings of the author's companion code "
    "(steps 0.05 / (1 + k / 100) and 0.05 / (1 + sqrt(k / 100)), SAG 0.002, gradient descent 0.5). Five seeds; an "
    "ordering counts if it holds for every one of them. Settled after first runs: the length of the long run (60, then "
    "200 passes), the ratio of slopes asked for (10, then 3; 200 passes give 12.7), the rows of the quick form (2,000, "
    "then 10,000), the grid of settings (3 x 3 with one seed, then 5 x 5 with five), and which reading of SAG as "
    "printed is run (with the penalty in the memory, as printed). "
    "One step of gradient descent counts as n single gradients."
)


@experiment
def run(quick: bool, rng: int) -> Report:
    """The curves of the three methods and of gradient descent, the missing 1/n, and the simplest runs."""
    first = seed(rng)
    seeds = range(first, first + (2 if quick else 5))
    problem, best = _stand_in()
    curves = {
        "SGD": _curves(optim.SGD(optim.InverseTime(_STEP, _DELAY)), problem, best, seeds, _LONG),
        "SGA": _curves(optim.SGA(optim.InverseSqrt(_STEP, _DELAY)), problem, best, seeds),
        "SAG": _curves(optim.SAG(0.002, normalise="all"), problem, best, seeds),
    }
    descent = _descent(problem, best)
    claims = (
        _early(curves["SGD"], descent),
        _part_of_a_pass(problem, best, seeds, descent),
        _late(curves["SGD"], descent),
        _ordering(curves),
        _linear(curves["SAG"]),
        _missing(first),
        _sensitivity(problem, best, seeds, 3 if quick else 5),
        _adapts(curves["SGA"]),
        _parabolas(first, 300 if quick else 2000),
        _first_step(),
    )
    return Report(claims, lambda: _draw(curves, descent), _NOTES)


def _stand_in():
    """The problem, and its minimum to the last digits."""
    X, y = make_classification(
        10_000, 46, n_informative=20, n_redundant=10, flip_y=0.2, class_sep=0.8, random_state=0
    )  # fmt: skip
    X, y = np.asarray(X), np.asarray(y)
    problem = optim.Logistic((X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1)
    return problem, optim.run(optim.Newton(), problem, np.zeros(46), tol=1e-15).value


def _value(problem, x) -> float:
    margins = np.asarray(problem.y) * (np.asarray(problem.A) @ x)
    return float(np.mean(np.logaddexp(0.0, -margins))) + float(problem.l2) * float(x @ x) / 2


def ridge_logistic(x, row):
    """The loss of one row, the penalty among it."""
    a, y = row
    return jnp.logaddexp(0.0, -y * (a @ x)) + 0.005 * jnp.vdot(x, x)


def _curves(solver, problem, best, seeds, passes=_PASSES, judge=None) -> np.ndarray:
    """``f - f*`` after 0, 1, ... passes, one row for each seed; `judge` computes f, where the problem does not."""
    found, judge = [], judge or problem
    for number in seeds:
        state = solver.init(problem, np.zeros(judge.shape), number)
        row = [_value(judge, solver.solution(problem, state)) - best]
        for _ in range(passes):
            state = solver.step(problem, state)
            row.append(_value(judge, solver.solution(problem, state)) - best)
        found.append(row)
    return np.maximum(np.array(found), 1e-16)


def _descent(problem, best, step=0.5, passes=_LONG) -> np.ndarray:
    x, row = np.zeros(problem.shape), []
    for _ in range(passes + 1):
        row.append(_value(problem, x) - best)
        x = x - step * np.asarray(problem.gradient(x))
    return np.maximum(np.array(row), 1e-16)


def _early(stochastic, descent) -> Claim:
    worst = float(stochastic[:, 1].max())
    return Claim(
        "at first stochastic steps are much faster: after one pass their error is at most a tenth",
        "much faster at the beginning (figure 17)",
        f"f - f* after one pass: {worst:.1e} at worst of all seeds, against {descent[1]:.1e}",
        verdict(worst <= descent[1] / 10),
        item="Figure 17, start",
    )


def _part_of_a_pass(problem, best, seeds, descent) -> Claim:
    steps = problem.n_terms // 10
    solver = optim.SGD(optim.InverseTime(_STEP, _DELAY), updates=steps)
    worst = float(_curves(solver, problem, best, seeds, 1)[:, 1].max())
    return Claim(
        "stochastic steps can be accurate after k << n of them: after a tenth of a pass they are ahead of gradient "
        "descent after a whole one",
        "accurate even for k << n",
        f"f - f* at k = {steps}, n = {problem.n_terms}: {worst:.1e} at worst of all seeds; gradient descent after 1, 5 "
        f"and 10 passes {descent[1]:.1e}, {descent[5]:.1e}, {descent[10]:.1e}",
        verdict(worst < descent[1]),
        item="Section 8.3, part of a pass",
    )


def _late(stochastic, descent) -> Claim:
    least = float(stochastic[:, -1].min())
    half = _LONG // 2
    per_pass = float(np.log10(descent[half] / descent[-1]) / half)
    ours = float(np.log10(stochastic[:, half] / stochastic[:, -1]).max() / half)
    return Claim(
        f"in the end they are slower: gradient descent is ahead after {_LONG} passes, and gains several times the "
        "digits a pass",
        "linear against sub-linear decay",
        f"after {_LONG} passes {descent[-1]:.1e} against {least:.1e}; digits a pass from {half} on: {per_pass:.3f} "
        f"against {ours:.4f}",
        verdict(descent[-1] < least and per_pass > 3 * ours),
        item="Figure 17, end",
    )


def _ordering(curves) -> Claim:
    last = {name: curve[:, 20] for name, curve in curves.items()}
    holds = np.all(last["SAG"] < last["SGA"]) and np.all(last["SGA"] < last["SGD"])
    return Claim(
        "after 20 passes SAG is ahead of the average, and the average of plain steps",
        "SAG < SGA < SGD (figure 18)",
        "f - f*: " + ", ".join(f"{name} {values.min():.1e} to {values.max():.1e}" for name, values in last.items()),
        verdict(holds),
        item="Figure 18",
    )


def _linear(curve) -> Claim:
    logs = np.log10(curve[:, 5:21])
    passes = np.arange(5, 21)
    correlation = min(float(np.corrcoef(passes, row)[0, 1] ** 2) for row in logs)
    slope = float(np.polyfit(passes, logs.mean(axis=0), 1)[0])
    return Claim(
        "SAG converges linearly: a straight line explains 99 % of log10(f - f*) from pass 5 to pass 20",
        "linear if f is strongly convex",
        f"{100 * correlation:.2f} % at least, {-slope:.2f} digits a pass",
        verdict(correlation > 0.99 and slope < 0),
        item="Section 8.5, linear rate",
    )


def _missing(number: int) -> Claim:
    X, y = load_breast_cancer(return_X_y=True)
    problem = optim.Logistic((X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1, l2=0.01)
    best, largest = (
        optim.run(optim.LBFGS(), problem, np.zeros(30), tol=1e-13).value,
        float(problem.term_smoothness.max()),
    )
    right = _curves(optim.SAG(1 / largest), problem, best, [number], 50)[0, -1]
    # To the letter: the penalty in the memory, the Lipschitz constant of f (steps of the solver are divided by n).
    literal = optim.FiniteSum(ridge_logistic, (problem.A, problem.y), convex=True)
    step = problem.n_terms / problem.smoothness
    printed = _curves(optim.SAG(step, normalise="all"), literal, best, [number], 5, problem)[0, -1]
    return Claim(
        "the memory g of SAG is a sum: the step is (tau / n) g, with tau about 1 / max L_i",
        "x - tau g with tau about 1 / L",
        f"breast cancer: f - f* {right:.1e} after 50 passes; as printed {printed:.3g} after 5 passes",
        verdict(right < 1e-5 and printed > 10, corrected=True),
        item="Section 8.5, factor 1/n",
    )


def _sensitivity(problem, best, seeds, count: int) -> Claim:
    """Step sizes and delays around those of the companion code, `count` values of each, evenly in logarithms."""
    spread = {}
    for name, kind, schedule in (("SGD", optim.SGD, optim.InverseTime), ("SGA", optim.SGA, optim.InverseSqrt)):
        ends = np.array([
            _curves(kind(schedule(tau, delay)), problem, best, seeds, 10)[:, -1]
            for tau in np.geomspace(0.01, 0.25, count)
            for delay in np.geomspace(10, 1000, count)
        ])  # fmt: skip
        spread[name] = np.log10(ends.max(axis=0) / ends.min(axis=0))
    return Claim(
        f"averaging is less sensitive to its settings: tau from 0.01 to 0.25, k0 from 10 to 1000, {count} x {count} "
        f"pairs",
        "less sensitive",
        f"decades between the best and the worst pair after 10 passes, {len(spread['SGD'])} seeds: "
        + ", ".join(f"{name} {values.min():.2f} to {values.max():.2f}" for name, values in spread.items()),
        verdict(spread["SGA"].max() < spread["SGD"].min()),
        item="Section 8.4, sensitivity",
    )


def _adapts(average) -> Claim:
    passes = np.arange(1, _PASSES + 1)
    powers = [float(np.polyfit(np.log(passes), np.log(row[1:]), 1)[0]) for row in average]
    return Claim(
        "averaging adapts to local strong convexity: with steps of 1/sqrt(k), which know nothing of it, the error "
        "falls more like 1/k than like 1/sqrt(k) where the function is strongly convex near its minimum only",
        "adapts to the local strong convexity",
        f"logistic regression without a penalty, mu = 0: powers of k over {_PASSES} passes {min(powers):.2f} to "
        f"{max(powers):.2f}",
        verdict(max(powers) < -0.75),
        item="Section 8.4, adaptivity",
    )


def _parabolas(number: int, paths: int) -> Claim:
    """Figure 16 with steps 1/(mu (k + 1)): x_k is the mean of k random signs. There C^2 = 2, so R = 2."""
    problem, solver = optim.LeastSquares([[1.0], [1.0]], [1.0, -1.0]), optim.SGD(optim.InverseTime(1.0), updates=100)
    squares = np.array(
        [solver.step(problem, solver.init(problem, np.array([0.3]), number + path)).x[0] ** 2 for path in range(paths)]
    )
    error = squares.std() / np.sqrt(paths)
    return Claim(
        "on two parabolas E x_k^2 = 1/k, within the bound R / (k + 1) with R = 2",
        "E |x_k - x*|^2 <= R / (k + 1), R = max(|x_0 - x*|, C^2 / mu^2)",
        f"100 E x_100^2 = {100 * squares.mean():.3f} ± {100 * error:.3f}; E x_1^2 = 1 exactly, and R / 2 = 1",
        verdict(abs(squares.mean() - 0.01) <= 3 * error),
        item="Figure 16; (50)",
    )


def _first_step() -> Claim:
    """Slopes -1 + 2 max(x, 0) and 1 - 2 max(-x, 0) on [-1, 1]: mu = 1, C = 1. The first step ends at -1 or 1."""
    squares, paths = [], [0.0]
    for k in range(6):
        slopes = [(x, slope) for x in paths for slope in (-1 + 2 * max(x, 0.0), 1 - 2 * max(-x, 0.0))]
        paths = [float(np.clip(x - slope / (k + 1), -1, 1)) for x, slope in slopes]
        squares.append(float(np.mean(np.square(paths))))
    k = np.arange(1, 7)
    fails = k[np.array(squares) > 1 / (k + 1)]
    return Claim(
        "that bound fails at k = 1 where C = mu = 1 and x_0 = x*; C^2 / (mu^2 k) holds at every step",
        "E |x_k - x*|^2 <= R / (k + 1), R = max(|x_0 - x*|, C^2 / mu^2)",
        f"all paths enumerated: E x_1^2 = {squares[0]:g} > 1/2; steps up to 6 at which it fails: {fails.tolist()}",
        verdict(fails.tolist() == [1] and bool(np.all(squares <= 1 / k)), corrected=True),
        item="Theorem 2; (50)",
    )


def _draw(curves, descent):
    fig, (left, right) = figure(1, 2)
    for axes, names, end in ((left, ("SGD",), 10), (right, tuple(curves), 30)):
        passes = np.arange(end + 1)
        for name in names:
            colour = COLOURS[list(curves).index(name)]
            for i, row in enumerate(curves[name]):
                axes.plot(passes, row[: end + 1], color=colour, alpha=0.6, lw=1.0, label=name if i == 0 else None)
        axes.plot(passes, descent[: end + 1], "--", color=COLOURS[6], label="gradient descent")
        axes.set(yscale="log", xlabel="passes over the data", ylabel="$f(x) - f^*$")
    left.set(title="single gradients against whole ones")
    right.set(title="averaged, and with a memory", ylim=(1e-12, 1))
    return fig
