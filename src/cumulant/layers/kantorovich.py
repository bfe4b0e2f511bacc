"""The Newton-Kantorovich theorem: from a small residual at one point to a root nearby, and how near."""

import math

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, check


def euclidean_norm(vector: np.ndarray) -> float:
    """The 2-norm, without overflow or underflow of the squares."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    return largest * float(np.linalg.norm(vector / largest)) if 0 < largest < np.inf else largest


def kantorovich_radius(step: float, inverse_norm: float, lipschitz: float) -> float:
    """How far the root of ``F`` nearest to ``x`` can be, or infinity where the theorem does not tell.

    With ``eta = |F'(x)^-1 F(x)|``, ``beta = |F'(x)^-1|`` and ``F'`` Lipschitz with constant ``l`` around ``x``: if
    ``h = beta l eta <= 1/2``, ``F`` has exactly one root within ``(1 - sqrt(1 - 2 h)) / (beta l)`` of ``x``
    (Kantorovich 1948; Ortega and Rheinboldt 1970, theorem 12.6.2). For an affine ``F`` (``l = 0``) that is ``eta``.

    >>> kantorovich_radius(0.1, 1.0, 0.0)
    0.1
    >>> round(kantorovich_radius(0.1, 1.0, 2.0), 6), kantorovich_radius(1.0, 1.0, 1.0)
    (0.112702, inf)
    """
    for name, value in (("step", step), ("inverse_norm", inverse_norm), ("lipschitz", lipschitz)):
        if not checks.number(name, value) >= 0:
            raise ValueError(f"{name} must not be negative; got {value}")
    h = inverse_norm * lipschitz * step
    if not np.isfinite(h) or h > 0.5:
        return math.inf
    # 2 eta / (1 + sqrt(1 - 2h)) is the same number without cancellation.
    return 2 * step / (1 + math.sqrt(1 - 2 * h))


def with_rounding(
    step: float, inverse_norm: float, lipschitz: float, rounding: float, what: str
) -> tuple[float, float]:
    """The radius, and what an error of `rounding` in ``F(x)`` adds to it; refused where the theorem does not tell."""
    bound = kantorovich_radius(step, inverse_norm, lipschitz)
    above = bound
    if np.isfinite(bound):
        above = kantorovich_radius(step + inverse_norm * rounding, inverse_norm, lipschitz)
    check(
        np.isfinite(above),
        f"the {what} is small enough for the theorem",
        f"beta l eta = {inverse_norm * lipschitz * step:.3g}, which must be at most 1/2",
    )
    return bound, above - bound


def consistent_lipschitz(change: np.ndarray, distance: float, lipschitz: float, size: float, what: str) -> Assumption:
    """Refuse a Lipschitz constant that the derivatives at two points, `distance` apart, contradict.

    `size` is the norm of the derivative; differences of 1e-9 of it are taken for rounding.
    """
    found = float(np.linalg.norm(change, 2)) if np.all(np.isfinite(change)) else np.inf
    return check(
        found <= lipschitz * distance * (1 + 1e-9) + 1e-9 * (1 + size),
        f"the change of the {what} to the next Newton iterate is within the Lipschitz constant",
        f"a change of {found:.3g} over a distance of {distance:.3g}, l = {lipschitz:g}",
    )
