"""Figure 2.7 of the thesis: regularisation paths of the on-line Lasso after one pass and after ten."""

import numpy as np

from cumulant.experiments._ipsa import SOURCE as SOURCE
from cumulant.experiments._ipsa import error, exact, learn, sets
from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.plotting import COLOURS, figure

TITLE = "On-line Lasso: regularisation paths after one, ten and a hundred passes"

TRUTH = np.array([0.0, 0, 2, -4, 0, 0, -1, 3])
WEIGHTS = np.array([0.5, 1.25, 3.0])
FALLING, CONSTANT = "interior point, sigma = k^-0.9", "interior point"


@experiment
def run(quick: bool, rng: int) -> Report:
    """Passes over 20 data sets with eight features; ten data sets and at most ten passes when `quick`."""
    A, y = sets(range(1000 + rng, 1000 + rng + (10 if quick else 20)), w=TRUTH)
    passes = (1, 10) if quick else (1, 10, 100)
    solutions, gap = exact(A, y, WEIGHTS)
    found = learn(FALLING, A, y, WEIGHTS, 50.0, passes=passes)
    errors = error(found, solutions)
    constant = error(learn(CONSTANT, A, y, WEIGHTS, 50.0, passes=(10,)), solutions)[:, 0]
    zero = np.abs(solutions[1]) < 1e-6
    some = [s for s in range(len(A)) if zero[s].any()]
    leftover = [float(np.mean([np.abs(found[1, s, i, zero[s]]).mean() for s in some])) for i in range(len(passes))]
    factors = errors[:, :-1] / errors[:, 1:]
    claims = (
        Claim(
            "one pass shrinks the coefficients that the Lasso discards, and does not discard them",
            "shrinks but does not discard",
            f"lam/N = 1.25, mean size of those that are zero in the exact solution: {leftover[0]:.3f} after one pass",
            verdict(0.05 < leftover[0] < 0.5),
            item="Figure 2.7, one pass",
        ),
        Claim(
            "ten passes come close to the selection of the exact Lasso",
            "close to exact",
            f"the same after {' and '.join(map(str, passes[1:]))} passes: {listed(leftover[1:])}",
            verdict(leftover[1] < leftover[0] / 2),
            item="Figure 2.7, ten passes",
        ),
        Claim(
            "the error falls with every tenfold number of passes, by more than half at lam/N = 1.25",
            "shown as paths",
            "; ".join(f"lam/N = {w:g}: {listed(row, '.4f')}" for w, row in zip(WEIGHTS, errors, strict=True))
            + f" after {', '.join(map(str, passes))} passes (exact solutions to a relative gap of {gap:.0e})",
            verdict(np.all(factors > 1) and np.all(factors[1] > 2) and gap < 1e-9),
            item="Figure 2.7",
        ),
        Claim(
            "for many passes the centring parameter must tend to zero",
            "required by the argument for convergence",
            f"after ten passes sigma = 1/2 has {listed(constant, '.4f')}, k^-0.9 has {listed(errors[:, 1], '.4f')}",
            verdict(np.all(constant > errors[:, 1])),
            item="Section 2.5.7, centring",
        ),
    )
    return Report(claims, lambda: _draw(A[:1], y[:1]))


def _draw(A, y):
    top = float(np.max(np.abs(A[0].T @ y[0]))) / len(y[0])
    weights = np.geomspace(1e-2 * top, top, 40)
    solutions, _ = exact(A, y, weights)
    found = learn(FALLING, A, y, weights, 50.0, passes=(1, 10))
    fig, axes = figure(1, 3, sharey=True)
    panels = (("exact", solutions[:, 0]), ("1 pass", found[:, 0, 0]), ("10 passes", found[:, 0, 1]))
    for ax, (name, paths) in zip(axes, panels, strict=True):
        for j, truth in enumerate(TRUTH):
            colour = COLOURS[6] if truth == 0 else COLOURS[int(np.flatnonzero(np.flatnonzero(TRUTH) == j)[0])]
            ax.plot(weights, paths[:, j], color=colour, linestyle="--" if truth == 0 else "-")
        ax.set(xscale="log", xlabel="$\\lambda / N$", title=name)
    axes[0].set_ylabel("coefficient (dashed: zero in the truth)")
    return fig
