"""Figure 5.5: the risk of the posterior mode of a normal variance over all priors."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families import risk
from cumulant.plotting import COLOURS, figure, legend

TITLE = "Landscape of the risk over prior strength and prior mean, normal variance"
SOURCE = "Le Priol (2021), thesis, figure 5.5"

SIZES = (1, 5, 10)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Exact risks on a grid of priors (the figure averages 10000 simulations a cell), with the best prior mean."""
    axis = np.geomspace(1e-2, 1e2, 25 if quick else 121)
    landscape = risk.risk_landscape(SIZES, axis, axis)
    on_rule = risk.risk_map_gamma(landscape.n[:, None], landscape.n0, landscape.rule, 0.5)
    excess = on_rule / landscape.best_risk - 1
    ratio = landscape.best / landscape.rule
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    unit = int(np.argmin(np.abs(landscape.n0 - 1)))
    claims = (
        Claim(
            "a valley of low risk runs along mu0/mu* = 1 + 1/n0, roughly: the minimiser depends on n as well, "
            "and tends to 1 + 4/n0 for many samples",
            "the valley coincides with mu0/mu* = 1 + 1/n0",
            "best mu0/mu* at n0 = 1: "
            + ", ".join(f"{value:.3f} (n = {n})" for n, value in zip(SIZES, landscape.best[:, unit], strict=True))
            + f" against 2; best over rule from {ratio.min():.2f} to {ratio.max():.2f}; the risk on the line is at "
            f"most {excess.max():.0%} above the least (n = {SIZES[worst[0]]}, n0 = {landscape.n0[worst[1]]:.2g})",
            verdict(0.05 < excess.max() < 0.6, corrected=True),
        ),
    )
    return Report(claims, lambda: _draw(landscape))


def _draw(landscape):
    fig, axes = figure(1, 3, sharey=True)
    logs = np.log10(landscape.risk)
    levels = np.linspace(-4, 2, 25)
    shades = None
    for k, ax in enumerate(axes):
        ax.grid(False)
        shades = ax.contourf(landscape.n0, landscape.ratio, logs[k].T, levels=levels, cmap="viridis", extend="both")
        ax.plot(landscape.n0, landscape.rule, "--", color="white", label="rule $1 + 1/n_0$")
        ax.plot(landscape.n0, landscape.best[k], color=COLOURS[1], label="exact minimiser")
        ax.set(xscale="log", yscale="log", xlabel="prior strength $n_0$", title=f"$n = {landscape.n[k]:g}$")
        ax.set(xlim=(1e-2, 1e2), ylim=(1e-2, 1e2))
        legend(ax, loc="upper right", labelcolor="white")
    axes[0].set_ylabel("prior mean over truth, $\\mu_0/\\mu^*$")
    bar = fig.colorbar(shades, ax=list(axes), ticks=range(-4, 3), pad=0.01)
    bar.set_label("$\\log_{10}$ of the risk")
    return fig
