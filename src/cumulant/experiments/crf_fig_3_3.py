"""Figure 3.3: five ways to draw the next sequence in dual coordinate ascent."""

import numpy as np

from cumulant.experiments._crf import decades, draw_decades, dual_ascent, many, notes, tasks
from cumulant.experiments.base import Claim, Report, experiment, verdict

TITLE = "Five sampling schemes of dual coordinate ascent on handwritten words"
SOURCE = "Le Priol (2021), thesis, figure 3.3"

SCHEMES = {
    "gap": "gap",
    "gap-importance": "gap × importance",
    "uniform": "uniform",
    "importance": "importance",
    "max": "largest gap",
}


@experiment
def run(quick: bool, rng: int) -> Report:
    """Sub-optimality after each epoch, the mean over seeds of its logarithm; 80 % of draws by the scheme."""
    claims, curves = [], {}
    for task in tasks(quick):
        epochs, seeds = (6, 2) if quick else (20, 5)
        runs = many({name: dual_ascent(name) for name in SCHEMES}, task, epochs, range(rng, rng + seeds))
        found = {name: decades(columns["value"], task) for name, columns in runs.items()}
        curves[task.name] = {SCHEMES[name]: values for name, values in found.items()}
        claims += _claims(task.name, found, runs)
    more = "Means over 5 seeds, and ties within two standard errors: settled after a first run."
    return Report(claims, lambda: draw_decades(curves), notes(more))


def _claims(name, found, runs):
    last = {scheme: values[:, -1] for scheme, values in found.items()}
    epochs = found["gap"].shape[1] - 1
    text = ", ".join(f"{s} {v.mean():.2f} [{v.min():.2f}, {v.max():.2f}]" for s, v in last.items())
    stalled = runs["max"]["estimate"][:, -1] / runs["max"]["bound"][:, -1]
    late = float((found["max"][:, epochs // 2] - found["max"][:, -1]).mean())
    behind, _ = _behind(last["max"], last["gap"])
    order = (
        ("weighting gaps by importance is worse than gaps alone", "gap-importance", "gap"),
        ("uniform draws are worse than draws by gap", "uniform", "gap"),
        ("draws by importance are worse than uniform ones", "importance", "uniform"),
    )
    return [
        Claim(
            f"{name}: drawing by gap is best",
            "best",
            f"log10 of the sub-optimality after {epochs} epochs: {text}",
            verdict(last["gap"].mean() <= min(values.mean() for values in last.values()) + 1e-9),
            item="Figure 3.3",
        ),
        *(
            Claim(f"{name}: {words}", "worse", *_compared(*_behind(last[worse], last[better])), item="section 3.6.3")
            for words, worse, better in order
        ),
        Claim(
            f"{name}: visiting the largest stale gap falls behind draws by gap, and its own estimate hides it; it does "
            "not stop altogether",
            "does not converge",
            f"{behind:+.2f} decades behind; its estimate is {stalled.mean():.3f} of the true gap; still {late:.2f} "
            "decades in the second half of the run",
            "corrected" if behind > 0 and stalled.mean() < 0.5 and late > 0.05 else verdict(late <= 0.05),
            item="section 3.6.3, largest gap",
        ),
    ]


def _behind(worse, better):
    """The difference of the means, and its standard error."""
    error = np.sqrt(worse.var(ddof=1) / worse.size + better.var(ddof=1) / better.size)
    return float(worse.mean() - better.mean()), float(error)


def _compared(difference, error):
    """In words, and the verdict: worse by two standard errors."""
    text = f"{difference:+.2f} ± {error:.2f} decades"
    return (text, "reproduced") if difference > 2 * error else (f"{text}: a tie", "not reproduced")
