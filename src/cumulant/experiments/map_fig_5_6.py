"""Figures 5.6 and 5.7: the cumulant function of the normal and its conjugate, and how their gradients bend grids."""

import numpy as np

from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.families import Normal
from cumulant.plotting import COLOURS, figure

TITLE = "Contours of A and A* for the normal, and the deformation of grids by their gradients"
SOURCE = "Le Priol (2021), thesis, figures 5.6 and 5.7"


@experiment
def run(quick: bool, rng: int) -> Report:
    """Contours in natural and mean coordinates, and the images of straight grids under ``grad A`` and ``grad A*``."""
    family, size = Normal(), 15 if quick else 41
    first, second = np.meshgrid(np.linspace(-3, 3, size), np.linspace(-2, -0.1, size))
    theta = np.stack([first, second], axis=-1)
    mu = family.to_mean(theta)
    there_and_back = float(np.max(np.abs(family.to_natural(mu) - theta)))
    fenchel = family.log_partition(theta) + family.conjugate(mu) - np.sum(theta * mu, axis=-1)
    claims = (
        Claim(
            "grad A* undoes grad A",
            "inverse maps",
            f"largest deviation {there_and_back:.1e} on a grid of {theta.size // 2} parameters",
            verdict(there_and_back < 1e-10),
        ),
        Claim(
            "A(theta) + A*(mu) = <theta, mu> exactly at corresponding points",
            "conjugate functions",
            f"largest gap {np.max(np.abs(fenchel)):.1e}",
            verdict(np.max(np.abs(fenchel)) < 1e-10),
        ),
    )
    return Report(claims, lambda: _draw(family))


def _draw(family):
    fine = 200
    t0, t1 = np.meshgrid(np.linspace(-3, 3, fine), np.linspace(-2, -0.05, fine))
    m0, m1 = np.meshgrid(np.linspace(-2, 2, fine), np.linspace(0.01, 4, fine))
    fig, (left, right) = figure(1, 2)
    values = family.log_partition(np.stack([t0, t1], axis=-1))
    lines = left.contour(t0, t1, values, levels=[-0.5, 0, 0.5, 1, 2, 4, 8], cmap="viridis")
    left.clabel(lines, fontsize=8)
    inside = m1 > m0**2 + 1e-3
    mu = np.stack([m0, np.where(inside, m1, m0**2 + 1)], axis=-1)
    conjugate = np.where(inside, family.conjugate(mu), np.nan)
    lines = right.contour(m0, m1, conjugate, levels=[-1.1, -0.9, -0.7, -0.5, -0.2, 0.2, 0.8], cmap="viridis")
    right.clabel(lines, fontsize=8)
    right.plot(m0[0], m0[0] ** 2, color=COLOURS[6], linewidth=1)
    left.set(xlabel="$\\theta_0 = m/v$", ylabel="$\\theta_1 = -1/(2v)$", title="$A(\\theta)$")
    right.set(
        xlabel="$\\mu_0 = E\\,x$",
        ylabel="$\\mu_1 = E\\,x^2$",
        title="$A^*(\\mu)$, infinite below the parabola",
        ylim=(0, 4),
    )
    deformed, axes = figure(2, 2)
    t = np.linspace(0, 1, 120)
    for value in np.linspace(-2, 2, 9):  # lines of constant theta_0, then of constant theta_1
        line = np.stack([np.full(120, value), -2 + 1.8 * t], axis=-1)
        _pair(axes[0], line, family.to_mean(line), COLOURS[0])
    for value in np.linspace(-2, -0.2, 9):
        line = np.stack([-2 + 4 * t, np.full(120, value)], axis=-1)
        _pair(axes[0], line, family.to_mean(line), COLOURS[1])
    for value in np.linspace(-1.5, 1.5, 9):
        line = np.stack([np.full(120, value), value**2 + 0.25 + (3.75 - value**2) * t], axis=-1)
        _pair(axes[1], line, family.to_natural(line), COLOURS[0])
    for value in np.linspace(0.5, 4, 9):
        half = min(1.5, np.sqrt(value - 0.25))
        line = np.stack([half * (2 * t - 1), np.full(120, value)], axis=-1)
        _pair(axes[1], line, family.to_natural(line), COLOURS[1])
    axes[0, 0].set(title="a grid in natural coordinates", xlabel="$\\theta_0$", ylabel="$\\theta_1$")
    axes[0, 1].set(title="its image under $\\nabla A$", xlabel="$\\mu_0$", ylabel="$\\mu_1$", xlim=(-3, 3), ylim=(0, 6))
    axes[1, 0].set(title="a grid in mean coordinates", xlabel="$\\mu_0$", ylabel="$\\mu_1$")
    axes[1, 1].set(title="its image under $\\nabla A^*$", xlabel="$\\theta_0$", ylabel="$\\theta_1$")
    return {"map-fig-5-6": fig, "map-fig-5-7": deformed}


def _pair(axes, line, image, colour):
    for ax, points in zip(axes, (line, image), strict=True):
        ax.plot(points[:, 0], points[:, 1], color=colour, linewidth=1)
