"""Tables of fitted families: parameters with their standard errors, and families compared by likelihood."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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


def comparison(fits: Mapping[str, Any], extra: Mapping[str, int] | None = None) -> Table:
    """Families fitted to the same data, best first, by Akaike's criterion ``2 k - 2 log likelihood``.

    `extra` counts, by name, parameters that were chosen from the data before the fit (the shape of a Weibull, say).
    """
    scores = {
        name: 2 * (fit.family.dim + (extra or {}).get(name, 0)) - 2 * float(fit.log_likelihood)
        for name, fit in fits.items()
    }
    order = sorted(fits, key=scores.__getitem__)
    rows: Sequence[Sequence[str]] = [
        (name, parameters(fits[name]), f"{fits[name].log_likelihood:.1f}", f"{scores[name] - scores[order[0]]:.1f}")
        for name in order
    ]
    return Table(("family", "estimate ± s.e.", "log likelihood", "AIC − best"), rows)
