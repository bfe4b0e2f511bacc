"""Numbers as categories: bins whose edges are kept, so that later tables are cut in the same places."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one column: ``edges`` are the ``n_bins + 1`` ends; the outer bins hold what is beyond them too.

    Examples
    --------
    >>> bins = Bins.learn([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3)
    >>> bins.edges, bins.codes([0.0, 3.0, 9.0])
    (array([1.        , 2.66666667, 4.33333333, 6.        ]), array([0, 1, 2]))
    >>> bins.beyond([0.0, 3.0, 9.0]).round(3)
    np.float64(0.667)
    """

    edges: np.ndarray

    def __post_init__(self):
        edges = checks.real_array("edges", self.edges, ndim=1)
        if edges.size < 3 or np.any(np.diff(edges) <= 0):
            raise ValueError(f"edges must be at least three increasing numbers, for two bins; got {self.edges!r}")
        object.__setattr__(self, "edges", edges)

    @classmethod
    def learn(cls, values: Any, n_bins: int = 5, strategy: str = "quantile", name: str = "values") -> "Bins":
        """Edges from data: equal shares of the values in each bin (``"quantile"``), or equal widths (``"uniform"``).

        Where many values are equal, quantiles coincide: the bins are then fewer, and an error where only one is left.
        """
        values = checks.real_array(name, values, ndim=1)
        n_bins = checks.whole("n_bins", n_bins, 2)
        checks.choice("strategy", strategy, ("quantile", "uniform"))
        if values.size == 0 or values.min() == values.max():
            raise ValueError(f"{name} must have at least two different values to be cut into bins")
        if strategy == "uniform":
            return cls(np.linspace(values.min(), values.max(), n_bins + 1))
        edges = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)))
        if edges.size < 3:  # more than half of the values are equal, at one end
            middle = edges[0] + (edges[-1] - edges[0]) / 2
            edges = np.array([edges[0], middle, edges[-1]])
        return cls(edges)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return self.edges.size - 1

    def codes(self, values: Any) -> np.ndarray:
        """The bin of each value, from 0 on: ``edges[i] <= value < edges[i + 1]``; the last edge is in the last bin."""
        values = checks.real_array("values", values, ndim=1)
        return np.searchsorted(self.edges[1:-1], values, side="right")

    def beyond(self, values: Any) -> Any:
        """The share of values below the first edge or above the last: they are counted in the outer bins."""
        values = checks.real_array("values", values, ndim=1)
        return np.mean((values < self.edges[0]) | (values > self.edges[-1]))

    def labels(self) -> list[str]:
        """What each bin holds, in words."""
        return [f"{low:.4g} to {high:.4g}" for low, high in zip(self.edges[:-1], self.edges[1:], strict=True)]
