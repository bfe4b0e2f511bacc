"""Figure 5.2: many estimates of a normal from three samples, in mean and in natural coordinates."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families import ConjugatePrior, Normal, risk
from cumulant.families.risk.monte_carlo import simulated_estimates
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator

TITLE = "Estimates of a normal from three samples, in mean and natural coordinates"
SOURCE = "Le Priol (2021), thesis, figure 5.2"

N, N0 = 3, 1.0
TRUTH, PRIOR = np.array([0.0, 1.0]), np.array([1.0, 2.0])  # mean parameters (E x, E x^2)


@experiment
def run(quick: bool, rng: int) -> Report:
    """The cloud of posterior modes and MLEs, the mean of the mean parameters, and the mean of the natural ones."""
    generate, family = generator(rng), Normal()
    trials = 5_000 if quick else 100_000
    theta_star = family.to_natural(TRUTH)
    natural = simulated_estimates(family, theta_star, N, ConjugatePrior(PRIOR, N0), trials, generate)
    means = family.to_mean(natural)
    mle = family.to_mean(simulated_estimates(family, theta_star, N, None, 400, generate))
    expected_mean = (N0 * PRIOR + N * TRUTH) / (N0 + N)
    exact = risk.risk_map_normal1d(N, N0, PRIOR, TRUTH)
    mean_error = np.abs(means.mean(axis=0) - expected_mean) / (means.std(axis=0) / np.sqrt(trials))
    natural_error = np.abs(natural.mean(axis=0) - exact.expected_natural) / (natural.std(axis=0) / np.sqrt(trials))
    # Where theta~ sits in mean coordinates, against the segment.
    centre = family.to_mean(exact.expected_natural)
    off = _distance_to_segment(centre, PRIOR, TRUTH)
    claims = (
        Claim(
            "the mean of the mean parameters lies on the segment between prior and truth, at n0/(n0+n) of the way",
            "on the segment",
            f"({expected_mean[0]:g}, {expected_mean[1]:g}); simulation off by {mean_error.max():.2f} standard errors",
            verdict(mean_error.max() < 4),
        ),
        Claim(
            "the mean of the natural parameters names another member, which is not on the segment",
            "theta~ drawn apart from it",
            f"theta~ = ({exact.expected_natural[0]:.4f}, {exact.expected_natural[1]:.4f}), exactly; in mean "
            f"coordinates ({centre[0]:.4f}, {centre[1]:.4f}), {off:.3f} off the segment; simulation off by "
            f"{natural_error.max():.2f} standard errors",
            verdict(off > 0.01 and natural_error.max() < 4),
        ),
    )
    return Report(claims, lambda: _draw(family, natural, means, mle, expected_mean, exact))


def _distance_to_segment(point, start, end):
    along = np.clip((point - start) @ (end - start) / ((end - start) @ (end - start)), 0, 1)
    return float(np.linalg.norm(point - start - along * (end - start)))


def _draw(family, natural, means, mle, expected_mean, exact):
    fig, (left, right) = figure(1, 2, width=11.6)
    shown = slice(0, 1500)
    centre = family.to_mean(exact.expected_natural)
    m = np.linspace(-3, 3.2, 200)
    left.plot(m, m**2, color=COLOURS[6], linewidth=1, label="boundary: variance 0")
    left.plot(mle[:, 0], mle[:, 1], ".", color=COLOURS[4], markersize=3, alpha=0.6, label="MLE")
    left.plot(means[shown, 0], means[shown, 1], ".", color=COLOURS[5], markersize=2, alpha=0.5, label="posterior mode")
    left.plot(*np.stack([PRIOR, TRUTH], axis=1), "-", color="black", linewidth=1)
    places = [(PRIOR, "s", 1, "prior $\\mu_0$"), (TRUTH, "*", 2, "truth $\\mu^*$"),
              (expected_mean, "D", 3, "$E\\,\\mu_n$"), (centre, "^", 0, "mean of $E\\,\\theta_n$")]  # fmt: skip
    for place, marker, colour, label in places:
        left.plot(*place, marker, color=COLOURS[colour], markersize=8, markeredgecolor="white", label=label)
        where = family.to_natural(place)
        right.plot(*where, marker, color=COLOURS[colour], markersize=8, markeredgecolor="white", zorder=5)
    path = family.to_natural(PRIOR + np.linspace(0, 1, 50)[:, None] * (TRUTH - PRIOR))
    right.plot(path[:, 0], path[:, 1], "-", color="black", linewidth=1, label="segment, prior to truth")
    right.plot(natural[shown, 0], natural[shown, 1], ".", color=COLOURS[5], markersize=2, alpha=0.5)
    left.set(xlabel="$E\\,x$", ylabel="$E\\,x^2$", title="mean coordinates, $n = 3$", xlim=(-2, 2.6), ylim=(-0.2, 4.4))
    right.set(xlabel="$m/v$", ylabel="$-1/(2v)$", title="natural coordinates", xlim=(-1.2, 3.2), ylim=(-2.1, 0))
    fig.legend(loc="outside right center", fontsize=9, frameon=False)
    return fig
