"""Figure 5.3: bias and variance of the posterior mode of a normal."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families import ConjugatePrior, Normal, risk
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator

TITLE = "Bias and variance of the posterior mode of a normal mean and variance"
SOURCE = "Le Priol (2021), thesis, figure 5.3"

TRUTH, PRIOR, N0 = (0.0, 1.0), (1.0, 2.0), 1.0


@experiment
def run(quick: bool, rng: int) -> Report:
    """The exact split for ``n`` up to 1000, where the figure has a simulation of it."""
    sizes = np.unique(np.concatenate([[0], np.geomspace(1, 1000, 13 if quick else 40).round()])).astype(int)
    exact = risk.risk_map_normal1d(sizes, N0, PRIOR, TRUTH)
    family = Normal()
    theta = family.to_natural(np.array(TRUTH))
    trials = 4_000 if quick else 100_000
    simulated = risk.bias_variance(family, theta, 5, ConjugatePrior(PRIOR, N0), trials=trials, rng=generator(rng))
    five = risk.risk_map_normal1d(5, N0, PRIOR, TRUTH)
    identity = float(np.max(np.abs(exact.bias + exact.variance - exact.total) / exact.total))
    tail = risk.risk_map_normal1d([500, 1000], N0, PRIOR, TRUTH)
    parts = (("bias", tail.bias), ("variance", tail.variance))
    slope = {name: float(np.log2(part[0] / part[1])) for name, part in parts}
    off = abs(simulated.total - five.total) / simulated.total_standard_error
    crossing = int(sizes[np.argmax(exact.variance > exact.bias)])
    claims = (
        Claim(
            "total = bias + variance, with the centre at the mean natural parameter",
            "theorem 5.5.2",
            f"largest relative deviation {identity:.1e} over n = 0, ..., 1000",
            verdict(identity < 1e-10),
        ),
        Claim(
            "the bias falls as 1/n^2 and the variance as 1/n",
            "bias O(1/n^2)",
            f"slopes from n = 500 to 1000: bias {slope['bias']:.3f}, variance {slope['variance']:.3f}; "
            f"the variance leads from n = {crossing} on",
            verdict(abs(slope["bias"] - 2) < 0.05 and abs(slope["variance"] - 1) < 0.05),
        ),
        Claim(
            "the total tends to the asymptote d/(2n) = 1/n",
            "1/n",
            f"n times the total at n = 1000: {1000 * tail.total[1]:.4f}",
            verdict(abs(1000 * tail.total[1] - 1) < 0.02),
        ),
        Claim(
            "simulation agrees with the exact integral",
            "simulation only",
            f"n = 5: exact {five.total:.5f}, simulated {simulated.total:.5f}, off by {off:.2f} standard errors",
            verdict(off < 4),
        ),
    )
    return Report(claims, lambda: _draw(sizes, exact))


def _draw(sizes, exact):
    fig, ax = figure(width=6.2, height=4.2)
    n = sizes[1:]
    ax.plot(n, exact.total[1:], color=COLOURS[0], label="total")
    ax.plot(n, exact.bias[1:], color=COLOURS[1], label="bias")
    ax.plot(n, exact.variance[1:], color=COLOURS[2], label="variance")
    ax.plot(n, risk.asymptote(2, n), ":", color=COLOURS[6], label="$1/n$")
    ax.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="expected KL(truth || estimate)", ylim=(1e-6, 2))
    ax.set_title("truth $N(0, 1)$, prior $N(1, 1)$ worth one sample")
    return fig
