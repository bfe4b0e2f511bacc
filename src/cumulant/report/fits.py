"""Tables of fitted families: parameters with their standard errors, and families compared by likelihood."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant.families import Comparison
from cumulant.report.section import Table


def with_error(value: float, error: float) -> str:
    """A number and its standard error, which is given to two digits and sets those of the number.

    >>> with_error(3.14159, 0.0271)
    '3.142 ± 0.027'
    >>> with_error(1234.5, 38.0)
    '1234 ± 38'
    """
    if not (np.isfinite(value) and np.isfinite(error) and error > 0):
        return f"{value:.4g} ± {error:.2g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    if digits > 7:
        return f"{value:.6g} ± {error:.2g}"
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def parameters(fit: Any) -> str:
    """The usual parameters of an `Estimate` in one line; arrays are told by their shape."""
    words = []
    for name, value in fit.usual.items():
        if np.ndim(value) == 0:
            words.append(f"{name} {with_error(float(value), float(fit.usual_standard_errors[name]))}")
        else:
            words.append(f"{name} of shape {np.shape(value)}")
    return ", ".join(words)


def comparison(fits: Comparison, caption: str = "") -> Table:
    """The table of `families.compare`, with the estimates."""
    rows: Sequence[Sequence[str]] = [
        (
            each.name,
            parameters(each.estimate),
            f"{each.estimate.log_likelihood:.1f}",
            f"{each.aic - fits[0].aic:.1f}",
            "" if each.goodness is None else f"{each.goodness.distance:.2f}",
        )
        for each in fits
    ]
    return Table(("family", "estimate ± s.e.", "log likelihood", "AIC − best", "A² distance"), rows, caption)
