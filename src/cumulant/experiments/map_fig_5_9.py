"""Figure 5.9: the functions of self-concordance, and where the quadratic bound starts."""

import numpy as np

from cumulant.errors import CertificateError
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.families import Bernoulli, Exponential, GammaKnownShape, NormalKnownMean, risk
from cumulant.plotting import COLOURS, figure

TITLE = "omega, omega*, and the crossing of omega*(t/(1-t)) with t^2"
SOURCE = "Le Priol (2021), thesis, figure 5.9 and proposition 5.5.1"


@experiment
def run(quick: bool, rng: int) -> Report:
    """The crossing, and the quadratic bound tried on families with and without the constant it needs."""
    t = np.linspace(1e-3, 0.49, 2_000 if quick else 100_000)
    above = risk.omega_star(t / (1 - t)) > t**2
    crossing = float(t[np.argmax(above)])
    violated, held = {}, {}
    for family in (GammaKnownShape(0.1), NormalKnownMean(), Exponential(), GammaKnownShape(3.0)):
        # mu* = 1, mu = 1 - norm/sqrt(alpha): the side on which the divergence is larger.
        limit = 0.21, risk.QUADRATIC_RADIUS / risk.self_concordance_constant(family)
        worst = [_largest_ratio(family.alpha, radius) for radius in limit]
        violated[family.alpha], held[family.alpha] = worst[0], worst[1]
    try:
        risk.certify_local_quadratic(risk.LocalQuadratic(Bernoulli(), [0.01]), [1e-12])
        refused = False
    except CertificateError:
        refused = True
    family = Bernoulli()
    start, end = family.natural(probability=0.01), family.natural(probability=1e-12)
    norm, kl = risk.fisher_distance(family, start, [1e-12]), float(family.kl(start, end))
    claims = (
        Claim(
            "omega*(t/(1-t)) <= t^2 up to the crossing",
            "0.21",
            f"{risk.QUADRATIC_RADIUS:.6f}",
            verdict(abs(crossing - risk.QUADRATIC_RADIUS) < 1e-3),
        ),
        Claim(
            "KL(mu* || mu) <= |mu* - mu|_F^2 for |mu* - mu|_F < 0.2153/M, M = alpha^(-1/2) the constant of A*",
            "for |mu* - mu|_F < 0.21, all Gaussian, exponential and compactly supported families (M = 1)",
            "largest KL/norm^2 below 0.21: "
            + ", ".join(f"{value:.3f} (alpha = {alpha:g})" for alpha, value in violated.items())
            + "; below 0.2153/M: "
            + listed(held.values(), ".3f"),
            verdict(max(violated.values()) > 1 >= max(held.values()), corrected=True),
        ),
        Claim(
            "Bernoulli and categorical entropies are bounded, not self-concordant, and get no certificate",
            "self-concordant",
            f"Bernoulli, mu* = 0.01, mu = 1e-12: norm {norm:.4f}, KL {kl:.4f} > {norm**2:.4f}; refused: {refused}",
            verdict(refused and kl > norm**2, corrected=True),
        ),
    )
    return Report(claims, _draw)


def _largest_ratio(alpha, radius):
    norm = np.linspace(1e-3, min(radius, 0.999 * np.sqrt(alpha)), 2000)
    u = norm / np.sqrt(alpha)
    return float(np.max(alpha * (u / (1 - u) + np.log1p(-u)) / norm**2))


def _draw():
    fig, (left, right) = figure(1, 2)
    t = np.linspace(0, 0.97, 300)
    left.plot(t, risk.omega_star(t), color=COLOURS[0], label="$\\omega^*(t) = -t - \\log(1 - t)$")
    left.plot(t, risk.omega(t), color=COLOURS[1], label="$\\omega(t) = t - \\log(1 + t)$")
    left.plot(t, t**2 / 2, ":", color=COLOURS[6], label="$t^2/2$")
    left.set(xlabel="$t$", title="self-concordance", ylim=(0, 1.5), xlim=(0, 1))
    t = np.linspace(0, 0.33, 300)
    right.plot(t, risk.omega_star(t / (1 - t)), color=COLOURS[0], label="$\\omega^*(t/(1-t))$")
    right.plot(t, t**2, "--", color=COLOURS[1], label="$t^2$")
    radius = risk.QUADRATIC_RADIUS
    right.plot(radius, radius**2, "o", color=COLOURS[2], markersize=6, label=f"crossing at {radius:.4f}")
    right.set(
        xlabel="$t = M\\,|\\mu^* - \\mu|_F$", title="where the quadratic bound holds", xlim=(0, 0.33), ylim=(0, 0.15)
    )
    return fig
