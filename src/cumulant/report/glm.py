"""Regression shown on the tumours: which measurements matter as the penalty falls, and what a certificate is worth."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant import plotting
from cumulant.glm import GLM
from cumulant.plotting import glm as pictures
from cumulant.report.fits import with_error
from cumulant.report.section import Section, Table

_TOLERANCE = 1e-6
_SHOWN = (0, 6, 12, 18, 24)  # the fits of the table


class Study(NamedTuple):
    """Logistic regressions of malignancy along a path of l1 penalties, and one run that was watched."""

    names: list[str]
    penalties: np.ndarray
    fits: list[GLM]
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    watched: GLM
    reference: GLM


def study(n_fits: int = 25) -> Study:
    """Fit the path to two thirds of the tumours, and once by dual ascent and by Newton's method with `l2` alone."""
    from sklearn.datasets import load_breast_cancer

    table: Any = load_breast_cancer()
    malignant = table.target == 0
    order = np.random.default_rng(0).permutation(malignant.size)
    train, test = order[: 2 * order.size // 3], order[2 * order.size // 3 :]
    centre, scale = table.data[train].mean(axis=0), table.data[train].std(axis=0)
    X, y = (table.data - centre) / scale, malignant
    # From the smallest penalty at which every weight is zero: the largest gradient there.
    highest = np.abs(X[train].T @ (y[train] - y[train].mean())).max() / train.size
    penalties = np.geomspace(highest, 3e-3 * highest, n_fits)
    fits = [GLM("bernoulli", l1=l1, l2=0.0, tol=_TOLERANCE).fit(X[train], y[train]) for l1 in penalties]
    watched = GLM("bernoulli", l2=0.01, tol=1e-9, solver="sdca", random_state=0).fit(X[train], y[train])
    reference = GLM("bernoulli", l2=0.01, tol=1e-12).fit(X[train], y[train])
    names = [str(name) for name in table.feature_names]
    return Study(names, penalties, fits, (X[train], y[train]), (X[test], y[test]), watched, reference)


def measurements(output: Path) -> Section:
    """Which measurements tell malignant tumours from benign ones? (Wisconsin breast cancer.)"""
    found = study()
    X, y = found.test
    fig, (left, right) = plotting.figure(1, 2, width=10.6, height=3.9)
    pictures.coefficient_path(
        found.penalties, [fit.coef_[0] for fit in found.fits], names=found.names, named=6, ax=left
    )
    history = found.watched.history_
    lowest = found.reference.objective_
    pictures.gap_and_truth(
        [row["passes"] for row in history],
        [row["bound"] for row in history],
        [row["objective"] - lowest for row in history],
        ax=right,
    )
    rows = []
    for i in (i for i in _SHOWN if i < len(found.fits)):
        fit = found.fits[i]
        wrong = fit.predict(X) != y
        rows.append(
            (
                f"{found.penalties[i]:.2g}",
                np.count_nonzero(fit.coef_),
                with_error(100 * float(wrong.mean()), 100 * float(wrong.std() / np.sqrt(wrong.size))),
                f"{fit.objective_:.6f}",
                "none" if fit.certificate_ is None else f"{fit.certificate_.upper:.1e}",
            )
        )
    certificate = found.fits[_SHOWN[2]].certificate_ if len(found.fits) > _SHOWN[2] else found.fits[-1].certificate_
    worst = max(fit.certificate_.upper / fit.objective_ for fit in found.fits if fit.certificate_ is not None)
    return Section(
        "Tumours again: which measurements matter?",
        [
            f"Logistic regression of malignancy on {len(found.names)} measurements, with a penalty on the absolute "
            f"weights, fitted to {len(found.train[1])} tumours at {len(found.fits)} penalties and tried on "
            f"{y.size} others. Every fit is certified: its objective is above the smallest possible one by no more "
            f"than {worst:.0e} of it.",
            "A certificate needs no knowledge of the optimum. Here the optimum is known, from Newton's method with a "
            "squared penalty, to fifteen digits: on the right, what dual ascent said that it had left to gain, and "
            "what it had.",
        ],
        [Table(("l1", "measurements used", "errors on the others, %", "objective P(w)", "P(w) − P* at most"), rows)],
        [] if certificate is None else [certificate],
        [
            (
                plotting.save(fig, output / "measurements.png"),
                "Left: the weight of each measurement, in units of its standard deviation, as the penalty falls; the "
                "first six to enter have names. Right: the certified gap and the true one as dual ascent passes over "
                "the tumours.",
            )
        ],
    )
