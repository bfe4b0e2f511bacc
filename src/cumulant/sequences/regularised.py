"""What the penalised likelihoods of chains and of graphs share: penalties, labels, and weights from a residual."""

from functools import cached_property
from typing import Any

import numpy as np

from cumulant.optim.protocol import Problem

__all__ = ["Regularised"]


class Regularised(Problem):
    """``P(w) = l2/2 |w|^2 + l1 |w|_1 + (1/n) sum_i [log Z_i(w) - w . F(x_i, y_i)]``.

    What differs, and is left to the heirs, is how ``log Z_i`` and expectations of ``F`` are computed: `shape`, `gold`
    and `value_and_gradient`.
    """

    data: Any
    n_labels: int
    l2: Any
    l1: float
    n_terms: int
    gold: Any  # (1/n) sum_i F(x_i, y_i)

    convex = True
    constants_are = "checked"

    def __post_init__(self):
        if self.data.labels is None:
            raise ValueError("data must have labels to learn from")
        labels = np.asarray(self.data.labels)
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= self.n_labels:
            raise ValueError(f"labels must be numbers from 0 to {self.n_labels - 1}")
        object.__setattr__(self, "n_terms", len(self.data))
        l2 = 1.0 / self.n_terms if self.l2 is None else float(self.l2)
        if not (np.isfinite(l2) and l2 > 0):
            raise ValueError(f"l2 must be positive and finite; got {l2}")
        object.__setattr__(self, "l2", l2)
        if not (np.isfinite(self.l1) and self.l1 >= 0):
            raise ValueError(f"l1 must be finite and not negative; got {self.l1}")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        raise NotImplementedError

    @property
    def strong_convexity(self) -> float:
        """``l2``."""
        return self.l2

    @property
    def scale(self) -> float:
        """``l2 n``."""
        return self.l2 * self.n_terms

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels as int64."""
        return np.ascontiguousarray(self.data.labels, dtype=np.int64)

    def value_and_gradient(self, w: Any) -> tuple[float, np.ndarray]:
        """``P(w)`` and the gradient of its smooth part: ``l2 w + (1/n) sum_i grad phi_i(w)``, shaped like `w`."""
        raise NotImplementedError

    def gradient(self, w: Any) -> np.ndarray:
        """The gradient of the smooth part of ``P``."""
        return self.value_and_gradient(w)[1]

    def weights_of(self, residual: np.ndarray) -> np.ndarray:
        """``w = soft(v, l1) / l2``."""
        if self.l1 == 0:
            return residual / self.l2
        return np.sign(residual) * np.maximum(np.abs(residual) - self.l1, 0.0) / self.l2

    def _weights(self, w: Any) -> np.ndarray:
        w = np.ascontiguousarray(w, dtype=np.float64).reshape(self.shape)
        if not np.all(np.isfinite(w)):
            raise ValueError("w must be finite; it holds NaN or infinity")
        return w

    def _penalty(self, w: np.ndarray) -> float:
        return 0.5 * self.l2 * np.vdot(w, w) + (self.l1 * np.abs(w).sum() if self.l1 else 0.0)

    def _value(self, w: np.ndarray, log_z: np.ndarray) -> float:
        return float(self._penalty(w) + np.mean(log_z) - np.vdot(w, self.gold))

    def _rounding(self, w: np.ndarray, log_z: np.ndarray, terms: Any) -> float:
        """What rounding may do to ``P(w)`` and to the dual: a unit for each of the `terms` of a sum, of all of it."""
        scores = np.mean(np.abs(log_z)) + np.sum(np.abs(w * self.gold))
        entropy = len(self.labels) / self.n_terms * np.log(self.n_labels)
        return float(2.0**-52 * (16 + terms) * (scores + self._penalty(w) + entropy))
