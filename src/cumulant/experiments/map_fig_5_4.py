"""Figure 5.4: the divergence of gamma-type families and its symmetrised upper bound."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families.special import phi
from cumulant.plotting import COLOURS, figure

TITLE = "phi(z) = z - 1 - log z and its symmetrised bound"
SOURCE = "Le Priol (2021), thesis, figure 5.4"


@experiment
def run(quick: bool, rng: int) -> Report:
    """``phi(z)`` and ``phi(z) + phi(1/z) = (z - 1)^2/z`` on four decades."""
    z = np.geomspace(1e-2, 1e2, 401 if quick else 4001)
    value, both = phi(z), (z - 1) ** 2 / z
    identity = float(np.max(np.abs(value + phi(1 / z) - both)))
    near = float(((1e-4) ** 2 / (1 + 1e-4)) / phi(1 + 1e-4))
    claims = (
        Claim(
            "phi(z) + phi(1/z) = (z - 1)^2/z bounds phi(z) from above",
            "upper bound for all z > 0",
            f"largest deviation from the identity {identity:.1e}; phi(z) never above it on {z.size} points",
            verdict(identity < 1e-12 and np.all(value <= both + 1e-15)),
        ),
        Claim(
            "near z = 1 the bound is twice the divergence",
            "loose by a factor 2",
            f"factor {near:.4f} at z = 1.0001",
            verdict(abs(near - 2) < 1e-3),
        ),
    )
    return Report(claims, _draw)


def _draw():
    z = np.geomspace(1e-3, 6, 800)
    fig, ax = figure(width=5.6, height=3.8)
    ax.plot(z, phi(z), color=COLOURS[0], label="$\\phi(z) = z - 1 - \\log z$")
    ax.plot(z, (z - 1) ** 2 / z, "--", color=COLOURS[1], label="$\\phi(z) + \\phi(1/z) = (z - 1)^2/z$")
    ax.axvline(1, color=COLOURS[6], linewidth=0.8)
    ax.set(xlabel="$z = \\mu^*/\\mu_n$", ylabel="divergence over $\\alpha$", ylim=(0, 5), xlim=(0, 6))
    ax.set_title("divergence of gamma-type families")
    return fig
