"""Convex sets of Ising couplings in which Gibbs sampling mixes fast, for learning inside them."""

import math
from dataclasses import dataclass

import numpy as np

from cumulant.graphical.mixing.certificates import Mixing, NotFastMixing
from cumulant.graphical.mixing.row_sum_projection import nearest_row_sums
from cumulant.graphical.mixing.spectral_projection import nearest_weights

__all__ = ["FastMixing"]

_NORMS = ("spectral", "one", "inf", "box")


@dataclass(frozen=True)
class FastMixing:
    """The couplings with ``norm(|J|) <= radius``, or with ``|J_ij| <= radius`` for ``norm="box"``.

    Every member mixes as ``d(v) <= N exp(-v (1 - kappa) / N)`` with ``kappa = radius``, for the box
    ``kappa = degree * tanh(radius)``. Fields are free.

    Examples
    --------
    >>> from cumulant.graphical import grid
    >>> round(FastMixing(0.2, "box").mixing(grid(4, 4), 16).rate, 6)
    0.98693
    """

    radius: float = 0.9
    norm: str = "spectral"

    def __post_init__(self):
        if self.norm not in _NORMS:
            raise ValueError(f"norm must be one of {', '.join(map(repr, _NORMS))}; got {self.norm!r}")
        if isinstance(self.radius, bool) or not (math.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"radius must be positive and finite; got {self.radius}")

    def mixing(self, edges: np.ndarray, n: int) -> Mixing:
        """What holds for every member; `NotFastMixing` where nothing does."""
        kappa = self.radius
        if self.norm == "box":
            kappa = int(np.bincount(edges.ravel(), minlength=1).max()) * math.tanh(self.radius)
        if not kappa < 1.0:
            raise NotFastMixing(f"this set is not fast-mixing: it allows kappa = {kappa:.6g}, not below 1", kappa)
        return Mixing(float(max(n, 1)), -(1.0 - kappa) / max(n, 1), kappa, self.norm)

    def reach(self, edges: np.ndarray, n: int) -> float:
        """No member is farther from zero: ``radius sqrt(edges)`` for the box, else ``radius sqrt(n / 2)``, as the
        squares of all couplings add up to half a squared Frobenius norm.
        """
        return self.radius * math.sqrt(len(edges) if self.norm == "box" else min(len(edges), n / 2.0))

    def project(self, edges: np.ndarray, couplings: np.ndarray, n: int) -> tuple[np.ndarray, float]:
        """The nearest member, and how far from the true projection it can be."""
        if self.norm == "box":
            return np.clip(couplings, -self.radius, self.radius), 0.0
        solve = nearest_weights if self.norm == "spectral" else nearest_row_sums
        nearest = solve(edges, np.abs(couplings), n, self.radius, tol=1e-11)
        return np.copysign(nearest.point, couplings) * (nearest.point > 0), math.sqrt(2.0 * nearest.gap)
