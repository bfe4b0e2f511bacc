"""Figure 3.10: the running estimate of the duality gap against the gap itself."""

import numpy as np

from cumulant.experiments._crf import dual_ascent, many, notes, tasks
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import COLOURS, figure, legend

TITLE = "The stale estimate of the duality gap over the gap, by the share of draws by gap"
SOURCE = "Le Priol (2021), thesis, figure 3.10"

SHARES = (0.0, 0.2, 0.5, 0.8, 1.0)
FIRST = 10  # before, some sequences may not have been visited: they count with an arbitrary gap of 100


@experiment
def run(quick: bool, rng: int) -> Report:
    """The mean of the gaps that sequences had when last visited, over the true gap, epoch after epoch."""
    claims, ratios = [], {}
    for task in tasks(quick):
        epochs, seeds = (12, 2) if quick else (20, 5 if task.name == "sparse words" else 2)
        runs = many({share: dual_ascent("gap", share) for share in SHARES}, task, epochs, range(rng, rng + seeds))
        ratios[task.name] = {share: columns["estimate"] / columns["bound"] for share, columns in runs.items()}
        claims += [*_claims(task.name, ratios[task.name]), _stopping(task.name, runs[0.8])]
    more = f"Ratios are judged from epoch {FIRST} on, settled after a first run."
    return Report(claims, lambda: _draw(ratios), notes(more))


def _claims(task, ratios):
    late = {share: values[:, FIRST:] for share, values in ratios.items()}
    span = {share: (float(values.min()), float(values.max())) for share, values in late.items()}
    middle = {share: float(np.exp(np.mean(np.log(values)))) for share, values in late.items()}
    text = ", ".join(f"{share:g}: {span[share][0]:.2f} to {span[share][1]:.2f}" for share in SHARES)
    factor = max(max(high, 1 / low) for low, high in span.values())
    return [
        Claim(
            f"{task}: the estimate is always within a factor 2 of the gap",
            "within a factor 2",
            f"estimate over gap from epoch {FIRST} on, by share: {text}; largest factor {factor:.2f}",
            verdict(factor <= 2),
            item="Figure 3.10",
        ),
        Claim(
            f"{task}: uniform draws over-estimate the gap",
            "tend to over-estimate",
            f"geometric mean {middle[0.0]:.2f}",
            verdict(middle[0.0] > 1),
            item="Figure 3.10, uniform",
        ),
        Claim(
            f"{task}: draws by gap under-estimate it",
            "tend to under-estimate",
            f"geometric mean {middle[0.8]:.2f} for 0.8, {middle[1.0]:.2f} for 1",
            verdict(middle[0.8] < 1),
            item="Figure 3.10, by gap",
        ),
    ]


def _stopping(task, columns):
    """Thresholds from 1 to 1e-6; at the first epoch whose estimate is below one, the gap is computed."""
    found = []
    for estimate, bound in zip(columns["estimate"], columns["bound"], strict=True):
        for threshold in 10.0 ** -np.arange(0, 7):
            below = np.flatnonzero(estimate <= threshold)
            if below.size:
                found.append(bound[below[0]] / threshold)
    worst = max(found, default=np.inf)
    return Claim(
        f"{task}: the estimate can stop the run: the gap is then below the threshold, or within a factor 2 of it (80 % "
        "of draws by gap)",
        "a stopping criterion, with one last pass to check",
        f"gap over threshold at {len(found)} stops: at most {worst:.2f}, below 1 in {np.mean(np.less(found, 1)):.0%}",
        verdict(worst <= 2),
        item="section 3.6.3, stopping",
    )


def _draw(ratios):
    fig, axes = figure(1, len(ratios), squeeze=False, sharey=True)
    for ax, (task, found) in zip(axes[0], ratios.items(), strict=True):
        ax.axhspan(0.5, 2, color=COLOURS[6], alpha=0.1, linewidth=0)
        ax.axhline(1, color=COLOURS[6], linewidth=0.8)
        for colour, (share, values) in zip(COLOURS, found.items(), strict=False):
            epochs = np.arange(FIRST // 2, values.shape[1])
            ax.plot(epochs, np.exp(np.log(values[:, FIRST // 2 :]).mean(axis=0)), color=colour, label=f"{share:g}")
        ax.set(xlabel="epochs", title=task, yscale="log")
        ax.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
        ax.set_yticks([], minor=True)
        ax.set_ylim(0.33, 6)
        legend(ax, loc="lower left", title="share of draws by gap", ncols=5)
    axes[0, 0].set_ylabel("estimate / duality gap")
    return fig
