"""Figure 2.6 of the thesis: on-line Lasso, and how much each method depends on the strength of the penalty."""

import numpy as np

from cumulant.experiments._ipsa import BASELINES, INTERIOR, compare, draw_errors, sets
from cumulant.experiments._ipsa import SOURCE as SOURCE
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict

TITLE = "On-line Lasso: the error of each method against the strength of the penalty"

WEIGHTS = np.array([0.01, 0.1, 0.5, 1.25, 2.5, 5.0, 10.0])
SHOWN = (INTERIOR[0], *BASELINES)


@experiment
def run(quick: bool, rng: int) -> Report:
    """One pass with steps ``1 / (50 + k)`` over 20 data sets (10 when `quick`) for each ``lam / N``."""
    A, y = sets(range(rng, rng + (10 if quick else 20)))
    errors, _, gap = compare(A, y, WEIGHTS, 50.0, SHOWN)
    inner, rest = errors[INTERIOR[0]], np.array([errors[name] for name in BASELINES])
    claims = (
        Claim(
            "the interior-point method is the closest to the exact solution at every strength of the penalty",
            "always best",
            f"lam/N = {listed(WEIGHTS, 'g')}: {listed(inner)} against {listed(rest.min(axis=0))} of "
            f"the best other (largest relative duality gap of the exact solutions {gap:.0e})",
            verdict(np.all(inner < rest.min(axis=0)) and gap < 1e-9),
            item="Figure 2.6",
        ),
        Claim(
            "it does not get worse for small or large penalties",
            "no degradation",
            f"largest over smallest: {inner.max() / inner.min():.2f}",
            verdict(inner.max() <= 1.25 * inner.min()),
            item="Figure 2.6, no degradation",
        ),
    )
    return Report(claims, lambda: draw_errors(WEIGHTS, errors, "$\\lambda / N$", (0.15, 10)))
