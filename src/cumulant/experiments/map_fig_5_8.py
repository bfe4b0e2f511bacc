"""Figure 5.8: paths of estimates as samples arrive, and the paths of their means."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families import Normal, risk
from cumulant.plotting import COLOURS, figure, legend
from cumulant.randomness import generator

TITLE = "Paths of the posterior mode of a normal for n = 1, ..., 20, with their primal and dual means"
SOURCE = "Le Priol (2021), thesis, figure 5.8"

TRUTH, PRIOR, N0 = np.array([0.0, 1.0]), np.array([1.0, 2.0]), 4.0


@experiment
def run(quick: bool, rng: int) -> Report:
    """Exact expected paths, a few random ones, and the exact totals along them."""
    generate, family = generator(rng), Normal()
    n = np.arange(0, 21)
    exact = risk.risk_map_normal1d(n, N0, PRIOR, TRUTH)
    dual = (N0 * PRIOR + n[:, None] * TRUTH) / (N0 + n)[:, None]  # E mu_n
    primal = family.to_mean(exact.expected_natural)  # of E theta_n
    x = generate.standard_normal((6, 20))
    sums = np.stack([np.cumsum(x, axis=1), np.cumsum(x**2, axis=1)], axis=-1)
    paths = (N0 * PRIOR + np.concatenate([np.zeros((6, 1, 2)), sums], axis=1)) / (N0 + n)[:, None]
    # The MLE: E theta_n = n/(n - 3) theta*, against a simulation.
    trials = 20_000 if quick else 200_000
    means, squares = generate.standard_normal(trials) / np.sqrt(20), generate.chisquare(19, trials) / 20
    simulated = np.stack([means / squares, -0.5 / squares], axis=-1)
    expected = 20 / 17 * family.to_natural(TRUTH)
    off = np.max(np.abs(simulated.mean(axis=0) - expected) / (simulated.std(axis=0) / np.sqrt(trials)))
    towards = np.linalg.norm(primal - TRUTH, axis=1)
    claims = (
        Claim(
            "the mean natural parameter of the MLE is n/(n-3) times the truth, on the ray through it; none for n <= 3",
            "a path on a ray, undefined for n <= 3",
            f"n = 20: ({expected[0]:.4f}, {expected[1]:.4f}); simulation off by {off:.2f} standard errors",
            verdict(off < 4),
        ),
        Claim(
            "E mu_n runs along the segment from prior to truth, E theta_n along another curve between the same ends",
            "two different paths",
            f"at n = 5: E mu_n = ({dual[5, 0]:.3f}, {dual[5, 1]:.3f}), the member of E theta_n = "
            f"({primal[5, 0]:.3f}, {primal[5, 1]:.3f})",
            verdict(np.linalg.norm(dual[5] - primal[5]) > 0.05 and towards[20] < towards[1]),
        ),
        Claim(
            "the risk falls along the path",
            "no numbers given",
            "exact totals "
            + ", ".join(f"{exact.total[k]:.5f} (n = {k})" for k in (1, 3, 5, 10, 20))
            + "; of which bias "
            + ", ".join(f"{exact.bias[k]:.5f}" for k in (1, 3, 5, 10, 20)),
            verdict(np.all(np.diff(exact.total) < 0)),
        ),
    )
    return Report(claims, lambda: _draw(family, paths, dual, primal))


def _draw(family, paths, dual, primal):
    fig, (left, right) = figure(1, 2)
    fine = 240
    m0, m1 = np.meshgrid(np.linspace(-1, 1.6, fine), np.linspace(0.02, 2.8, fine))
    variance = m1 - m0**2
    safe = np.where(variance > 0.02, variance, 1.0)
    kl = np.where(variance > 0.02, 0.5 * ((1 + m0**2) / safe - 1 + np.log(safe)), np.nan)
    levels = [0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]
    left.contour(m0, m1, kl, levels=levels, colors=COLOURS[6], linewidths=0.6, alpha=0.7)
    left.plot(m0[0], m0[0] ** 2, color="black", linewidth=1)
    t0, t1 = np.meshgrid(np.linspace(-1, 2, fine), np.linspace(-2, -0.12, fine))
    v = -0.5 / t1
    kl = 0.5 * ((1 + (t0 * v) ** 2) / v - 1 + np.log(v))
    right.contour(t0, t1, kl, levels=levels, colors=COLOURS[6], linewidths=0.6, alpha=0.7)
    for path in paths:
        left.plot(path[:, 0], path[:, 1], color=COLOURS[5], linewidth=0.8, alpha=0.8)
        natural = family.to_natural(path)
        right.plot(natural[:, 0], natural[:, 1], color=COLOURS[5], linewidth=0.8, alpha=0.8)
    mle = np.array([k / (k - 3) for k in range(5, 21)])[:, None] * family.to_natural(TRUTH)
    curves = ((dual, 0, "$E\\,\\mu_n$, posterior mode"), (primal, 1, "$E\\,\\theta_n$, posterior mode"),
              (family.to_mean(mle), 3, "$E\\,\\theta_n$, MLE, $n \\geq 5$"))  # fmt: skip
    for curve, colour, label in curves:
        left.plot(curve[:, 0], curve[:, 1], "o-", markersize=2.5, color=COLOURS[colour], label=label)
        natural = family.to_natural(curve)
        right.plot(natural[:, 0], natural[:, 1], "o-", markersize=2.5, color=COLOURS[colour], label=label)
    for ax, place in ((left, lambda mu: mu), (right, family.to_natural)):
        ax.plot(*place(TRUTH), "*", color=COLOURS[2], markersize=11, markeredgecolor="white", label="truth")
        ax.plot(*place(PRIOR), "s", color="black", markersize=6, label="prior")
    left.set(xlabel="$E\\,x$", ylabel="$E\\,x^2$", title="mean coordinates", xlim=(-1, 1.6), ylim=(0, 2.8))
    right.set(xlabel="$m/v$", ylabel="$-1/(2v)$", title="natural coordinates", xlim=(-1, 2), ylim=(-1.5, -0.12))
    legend(left, loc="upper left", fontsize=8)
    return fig
