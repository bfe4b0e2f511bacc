"""Figure 3.4: how many of the draws should be by gap, and how many uniform."""

import numpy as np

from cumulant.experiments._crf import decades, draw_decades, dual_ascent, many, notes, tasks
from cumulant.experiments.base import Claim, Report, experiment, verdict

TITLE = "Gap sampling with different shares of non-uniform draws"
SOURCE = "Le Priol (2021), thesis, figure 3.4"

SHARES = (0.0, 0.2, 0.5, 0.8, 1.0)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Sub-optimality after each epoch on the sparse task, for several shares of draws by gap."""
    task = tasks(quick)[0]
    epochs, seeds = (6, 2) if quick else (25, 10)
    runs = many({share: dual_ascent("gap", share) for share in SHARES}, task, epochs, range(rng, rng + seeds))
    found = {share: decades(columns["value"], task) for share, columns in runs.items()}
    claims = _claims(found, epochs)

    def draw():
        shown = {f"{share:g}" if share else "0: uniform": values for share, values in found.items()}
        return draw_decades({task.name: shown}, title="share of draws by gap")

    return Report(claims, draw, notes(f"Means over {seeds} seeds."))


def _claims(found, epochs):
    last = {share: values[:, -1] for share, values in found.items()}
    mean = np.array([last[share].mean() for share in SHARES])
    error = np.array([last[share].std(ddof=1) / np.sqrt(len(last[share])) for share in SHARES])
    noise = 2 * np.hypot(error[1:], error[:-1])
    gains = mean[:-1] - mean[1:]
    text = ", ".join(f"{share:g}: {m:.2f} ± {e:.2f}" for share, m, e in zip(SHARES, mean, error, strict=True))
    return (
        Claim(
            "a larger share of draws by gap only improves the performance (no step is worse by more than two standard "
            "errors)",
            "monotone",
            f"log10 of the sub-optimality after {epochs} epochs, by share: {text}",
            verdict(np.all(gains > -noise) and mean[-1] < mean[0]),
            item="Figure 3.4",
        ),
        Claim(
            "beyond 0.8 the improvement is marginal",
            "marginal",
            f"{gains[-1]:+.2f} ± {noise[-1] / 2:.2f} decades from 0.8 to 1, of {mean[0] - mean[-1]:.2f} from 0 to 1",
            verdict(gains[-1] < 0.25 * (mean[0] - mean[-1])),
            item="section 3.6.3",
        ),
    )
