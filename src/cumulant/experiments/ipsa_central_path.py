"""Figures 2.2 and 2.3 of the thesis: the log barrier, and the central path of Fiacco and McCormick's example."""

import numpy as np

from cumulant import optim
from cumulant.experiments._ipsa import SOURCE as SOURCE
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.optim import interior_point as ip
from cumulant.plotting import COLOURS, figure, legend

TITLE = "The logarithmic barrier and a central path known in closed form"

MUS = np.array([1.0, 0.5, 0.25, 0.1])


def total(x, data):
    """``x_1 + x_2``."""
    return x.sum()


def nothing(x, data):
    """Zero, so that the barrier is seen alone."""
    return 0.0 * x.sum()


PARABOLA = ip.QuadraticConstraints([np.zeros((2, 2)), [[2.0, 0.0], [0.0, 0.0]]], -np.eye(2), np.zeros(2))
# f >= 0 and f <= 2 mu on the path keep the minimiser, zero, within 3 of every point looked at.
PROBLEM = ip.ConstrainedProblem(optim.Objective(total, convex=True), PARABOLA, radius=3.0)


def closed_form(mu):
    """``x_1 = (sqrt(1 + 8 mu) - 1) / 4``, ``x_2 = x_1^2 + mu``, ``z = (mu / x_1, 1)``."""
    first = (np.sqrt(1 + 8 * mu) - 1) / 4
    return np.stack([first, first**2 + mu], axis=-1), np.stack([mu / first, np.ones_like(mu)], axis=-1)


@experiment
def run(quick: bool, rng: int) -> Report:
    """The path by Newton's method against its closed form; nothing here is random, `rng` is not used."""
    path = ip.central_path(PROBLEM, MUS, [1.0, 2.0])
    x, z = closed_form(MUS)
    miss = max(float(np.max(np.abs(path.x - x))), float(np.max(np.abs(path.z - z))))
    value, dual = path.x.sum(axis=1), -((1 - path.z[:, 0]) ** 2) / 4
    off = float(np.max(np.abs(value - dual - 2 * MUS)))
    barrier = ip.log_barrier(ip.ConstrainedProblem(optim.Objective(nothing, convex=True), ip.Bounds(1.0)), 1.0)
    seen = [float(barrier.value([at])) for at in (1.5, 2.0, 0.5)]
    solved = optim.run(ip.InteriorPoint(), PROBLEM, [1.0, 2.0], tol=1e-7, max_steps=60)
    claims = (
        Claim(
            "the minimisers of the barrier function of x_1 + x_2 over x_1 >= 0, x_2 >= x_1^2 lie on a known curve",
            "four minimisers and the path, drawn",
            f"largest distance to the closed form {miss:.0e} for mu = {listed(MUS, 'g')}",
            verdict(miss < 1e-8),
            item="Figure 2.3",
        ),
        Claim(
            "on the central path the duality gap is m mu",
            "eta = m mu",
            f"f - q - 2 mu at most {off:.0e}",
            verdict(off < 1e-8),
            item="Figure 2.3, gap",
        ),
        Claim(
            "the path ends in the solution (0, 0)",
            "(0, 0)",
            f"({solved.x[0]:.1e}, {solved.x[1]:.1e}) after {solved.work} steps, certified to "
            f"{solved.certificate.upper if solved.certificate else np.inf:.0e}",
            verdict(solved.status == "converged" and np.max(np.abs(solved.x)) < 1e-6),
            item="Figure 2.3, solution",
        ),
        Claim(
            "the barrier of x >= 1 is -log(x - 1): 0.693 at 1.5, zero at 2, infinite outside",
            "drawn",
            listed(seen, ".6f"),
            verdict(abs(seen[0] - np.log(2)) < 1e-12 and abs(seen[1]) < 1e-12 and np.isinf(seen[2])),
            item="Figure 2.2",
        ),
    )
    return Report(claims, lambda: _draw(path))


def _draw(path):
    fig, (left, right) = figure(1, 2)
    x = 1 + np.geomspace(1e-12, 3, 400)
    for colour, mu in zip(COLOURS, (1.0, 0.5, 0.25, 0.1), strict=False):
        left.plot(x, -mu * np.log(x - 1), color=colour, label=f"$\\mu = {mu:g}$")
    left.set(xlabel="$x$", title="$-\\mu\\,\\log(x - 1)$", xlim=(0, 4), ylim=(-1.5, 4))
    left.axvspan(0, 1, color=COLOURS[6], alpha=0.15, linewidth=0)
    legend(left)
    curve, _ = closed_form(np.geomspace(1e-4, 2, 200))
    edge = np.linspace(0, 1.2, 100)
    right.fill_between(edge, edge**2, 2.2, color=COLOURS[5], alpha=0.15, linewidth=0, label="feasible")
    right.plot(*curve.T, color=COLOURS[0], label="central path")
    right.plot(*path.x.T, "o", color=COLOURS[1], label="minimisers, $\\mu = 1, 1/2, 1/4, 1/10$")
    right.set(xlabel="$x_1$", ylabel="$x_2$", title="$x_1 + x_2$ over $x_1 \\geq 0$, $x_2 \\geq x_1^2$", ylim=(0, 2.2))
    legend(right, loc="lower right")
    return fig
