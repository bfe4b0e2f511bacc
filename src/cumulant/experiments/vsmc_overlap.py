"""Figure 3.8: the overlap distribution of a spin glass of 20 x 20 at three temperatures."""

import numpy as np

from cumulant import particles
from cumulant.experiments._vsmc import Trials, right_and_down, spins, tempered, trials
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.graphical import Ising
from cumulant.plotting import COLOURS, figure, legend

TITLE = "Overlaps of a spin glass of 20 x 20: what annealing and three families keep of the symmetric P(q)"
SOURCE = "Carbonetto (2009), thesis, section 3.4.3, figure 3.8"

BETAS = (1, 4, 10)


@experiment
def run(quick: bool, rng: int) -> Report:
    """``P(q)`` of each method and trial. The exact one is symmetric: ``P(q > 0) = 1/2``."""
    side, n, steps, count = (6, 100, 60, 3) if quick else (20, 1000, 250, 20)
    signs = np.random.default_rng(2024).choice([-1.0, 1.0], 2 * side * side)
    cold = BETAS[-1]
    found: dict[str, dict[int, Trials]] = {"annealed": {}, "two couplings": {}, "each bond": {}, "one coupling": {}}
    for beta in BETAS:
        model = Ising(right_and_down(side), beta * signs)
        found["annealed"][beta] = trials(tempered(model, steps), count, rng, n)
        found["two couplings"][beta] = trials(model, count, rng, n, n_steps=steps, family="sign")
        found["each bond"][beta] = trials(model, count, rng, n, n_steps=steps, family="edge")
        if beta == cold:
            found["one coupling"][beta] = trials(model, count, rng, n, n_steps=steps)
    overlaps = {name: {beta: _overlaps(some) for beta, some in each.items()} for name, each in found.items()}
    away = {name: _asymmetry(each[cold]) for name, each in overlaps.items()}
    estimates = {
        name: [np.median(each[b].smc if name == "annealed" else each[b].bound) for b in each]
        for name, each in found.items()
    }
    words = ", ".join(f"{name} {np.median(value):.2f} (up to {value.max():.2f})" for name, value in away.items())
    claims = (
        Claim(
            "annealing degenerates to a point as the temperature falls (T = 1/10: |P(q > 0) - 1/2| above 0.25 in half "
            "of the trials, where 1/2 is one mode alone)",
            "degenerates to a point",
            words,
            verdict(np.median(away["annealed"]) > 0.25),
            item="Figure 3.8",
        ),
        Claim(
            "two couplings keep the symmetric distribution (T = 1/10: less than half of annealing's asymmetry)",
            "symmetric, with some variance",
            words,
            verdict(np.median(away["two couplings"]) < 0.5 * np.median(away["annealed"])),
            item="Figure 3.8",
        ),
        Claim(
            "one coupling for each bond is no better than annealing (T = 1/10)",
            "no better",
            words,
            verdict(np.median(away["each bond"]) >= np.median(away["annealed"])),
            item="Figure 3.8",
        ),
        Claim(
            "a single coupling behaves like annealing (T = 1/10: asymmetries within a factor of two)",
            "would behave like AIS",
            words,
            verdict(0.5 < (np.median(away["one coupling"]) + 0.01) / (np.median(away["annealed"]) + 0.01) < 2),
            item="Figure 3.8",
        ),
        Claim(
            "the free energy by annealing is the best (the largest median: all are too small on average)",
            "AIS best",
            "T = 1, 1/4, 1/10: "
            + "; ".join(f"{name} {', '.join(f'{v:.1f}' for v in estimates[name])}" for name in list(found)[:3]),
            verdict(
                all(
                    estimates["annealed"][i] > estimates[name][i]
                    for i in (1, 2)
                    for name in ("two couplings", "each bond")
                )
            ),
            item="Figure 3.7",
        ),
    )
    means = "; ".join(
        f"{name} " + ", ".join(f"{np.median([each.mean_abs for each in some]):.2f}" for some in by.values())
        for name, by in overlaps.items()
    )
    notes = (
        f"{n} particles, {steps} steps, {count} trials at T = 1, 1/4 and 1/10; the source names neither its three "
        f"temperatures nor its instance. Median E|q|: {means}."
    )
    return Report(claims, lambda: _draw(overlaps), notes)


def _overlaps(some: Trials) -> list[particles.OverlapDistribution]:
    return [
        particles.overlap_distribution(spins(some.result, i), each.population.weights)
        for i, each in enumerate(some.result.outcomes)
    ]


def _asymmetry(some) -> np.ndarray:
    return np.array([abs(each.positive - 0.5) for each in some])


def _draw(overlaps):
    fig, axes = figure(1, len(BETAS), width=12.0, sharex=True)
    for ax, beta in zip(axes, BETAS, strict=True):
        for colour, (name, by) in zip(COLOURS, overlaps.items(), strict=False):
            for i, each in enumerate(by.get(beta, [])[:3]):
                label = {"label": name} if i == 0 else {}
                ax.plot(each.centres, each.density, color=colour, alpha=0.7, linewidth=1.0, **label)
        ax.set(xlabel="overlap q", title="T = 1" if beta == 1 else f"T = 1/{beta}", ylim=(0, None))
    axes[0].set_ylabel("P(q)")
    legend(axes[-1], loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
