"""Figure 2.5 (right) of the thesis: on-line Lasso, and how much each method depends on the scales of the features."""

import numpy as np

from cumulant.experiments._ipsa import BASELINES, INTERIOR, compare, draw_errors, sets
from cumulant.experiments._ipsa import SOURCE as SOURCE
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict

TITLE = "On-line Lasso: the error of each method against the variance of the features"

NU = np.array([0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
SHOWN = (INTERIOR[0], *BASELINES)


@experiment
def run(quick: bool, rng: int) -> Report:
    """One pass with steps ``1 / (50 + k)`` over 20 data sets (10 when `quick`) for each scale ``nu``."""
    errors = {name: [] for name in SHOWN}
    for nu in NU:
        A, y = sets(range(rng, rng + (10 if quick else 20)), nu)
        for name, values in compare(A, y, 1.25, 50.0, SHOWN)[0].items():
            errors[name].append(values[0])
    errors = {name: np.array(values) for name, values in errors.items()}
    inner, rest = errors[INTERIOR[0]], np.array([errors[name] for name in BASELINES])
    claims = (
        Claim(
            "the interior-point method is the closest to the exact solution at every variance",
            "always best",
            f"nu = {listed(NU, 'g')}: {listed(inner)} against {listed(rest.min(axis=0))} of the best other",
            verdict(np.all(inner < rest.min(axis=0))),
            item="Figure 2.5, right",
        ),
        Claim(
            "its error hardly depends on the variance, while the others diverge as it grows",
            "insensitive",
            f"largest over smallest: {inner.max() / inner.min():.1f}; of the others "
            + ", ".join(f"{name} {row.max() / row.min():.0e}" for name, row in zip(BASELINES, rest, strict=True)),
            verdict(inner.max() <= 2.5 * inner.min() and np.all(rest.max(axis=1) > 100 * rest.min(axis=1))),
            item="Figure 2.5, right, others",
        ),
    )
    return Report(claims, lambda: draw_errors(NU / 1.5, errors, "mean variance of the features", (0.1, 1e4)))
