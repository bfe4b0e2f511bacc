"""Logistic regression with several classes."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from scipy.special import entr

from cumulant import checks
from cumulant.optim.problems.base import problem_type, static
from cumulant.optim.problems.enclosures import TINY, UNIT, Enclosure, enclose
from cumulant.optim.problems.row_sums import RowSums
from cumulant.precision import precise


@problem_type
class MultinomialLogistic(RowSums):
    """``f(W) = (1/n) sum_i [log sum_k exp(<a_i, w_k>) - <a_i, w_{y_i}>] + l2 |W|^2 / 2``, ``W`` of shape ``(p, K)``.

    The Hessian of log-sum-exp is at most 1/2 (Böhning 1992), so ``L = sigma_max(A)^2 / (2 n) + l2``; ``mu = l2``, since
    adding one vector to every ``w_k`` changes nothing but the penalty.

    Parameters
    ----------
    A : array or SciPy sparse matrix (n, p)
    y : array of int (n,)
        Classes 0 to ``n_classes - 1``.
    n_classes : int, optional
        The largest class plus one, unless given.
    l2, reduction
        As for `Logistic`.

    Examples
    --------
    >>> problem = MultinomialLogistic([[1.0], [0.0], [-1.0]], [0, 1, 2], l2=0.1)
    >>> problem.shape, float(problem.value(np.zeros((1, 3))).round(6))          # log 3
    ((1, 3), 1.098612)
    """

    A: Any
    y: Any
    n_classes: int | None = static(None)
    l2: Any = 0.0
    reduction: str = static("mean")

    largest_curvature: ClassVar[float] = 0.5
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        given = self.y
        if not self._checked():
            return
        y = np.asarray(given)
        if y.dtype.kind not in "iu" or y.min() < 0:
            raise ValueError(f"y must hold class numbers, integers from 0 up; got dtype {y.dtype}, smallest {y.min()}")
        classes = int(y.max()) + 1 if self.n_classes is None else self.n_classes
        if checks.whole("n_classes", classes, 2) < max(2, int(y.max()) + 1):
            raise ValueError(f"n_classes must be at least 2 and above every entry of y; got {classes}, y.max {y.max()}")
        object.__setattr__(self, "y", y.astype(np.int32))
        object.__setattr__(self, "n_classes", classes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``W``."""
        assert self.n_classes is not None
        return (self.A.shape[1], self.n_classes)

    def _chosen(self, xp: Any = np) -> Any:
        """One for the class of each row, else zero."""
        return xp.eye(self.shape[1])[xp.asarray(self.y)]

    def _losses(self, scores):
        xp = jnp if isinstance(scores, jax.Array) else np
        top = scores.max(axis=1, keepdims=True)
        return (xp.log(xp.exp(scores - top).sum(axis=1)) + top[:, 0]).sum() - (scores * self._chosen(xp)).sum()

    def _slopes(self, scores):
        xp = jnp if isinstance(scores, jax.Array) else np
        weights = xp.exp(scores - scores.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True) - self._chosen(xp)

    def _bent(self, scores, change):
        chance = jax.nn.softmax(scores, axis=1)
        return chance * (change - jnp.sum(chance * change, axis=1, keepdims=True))

    @precise
    def conjugate(self, theta):
        """``F*(theta) = weight sum q log q``, ``q = theta / weight + one_hot(y)``, a distribution over the classes."""
        chances = theta / self.weight + self._chosen(jnp)
        slack = 64 * jnp.finfo(chances.dtype).eps
        fine = jnp.all(chances >= -slack) & jnp.all(jnp.abs(jnp.sum(chances, axis=1) - 1) <= slack * chances.shape[1])
        chances = jnp.clip(chances, 0.0, 1.0)
        return jnp.where(fine, self.weight * jnp.sum(xlogy(chances, chances)), jnp.inf)

    def enclosed_slopes(self, x: Any) -> Enclosure:
        """``softmax(A W) - one_hot(y)`` with a bound on its error."""
        scores = self.enclosed_scores(x)
        below = scores.value - scores.value.max(axis=1, keepdims=True)
        weights = np.exp(below)
        chance = weights / weights.sum(axis=1, keepdims=True)
        # The logarithm of a probability moves by at most twice the largest error of the scores.
        relative = 2 * scores.error.max(axis=1, keepdims=True) + (weights.shape[1] + 16 + np.abs(below)) * UNIT
        with np.errstate(over="ignore"):
            error = np.minimum(chance * np.expm1(2 * relative) + TINY, 1.0)
        return enclose(chance, error) - self._chosen()

    def enclosed_loss(self, x: Any) -> Enclosure:
        """``weight sum_i [log sum_k exp(<a_i, w_k>) - <a_i, w_{y_i}>]`` with a bound on its error."""
        scores = self.enclosed_scores(x)
        highest = scores.value.max(axis=1, keepdims=True)
        # Relative to the class of the row, so that nothing cancels where that class is nearly certain.
        relative = scores.value - highest
        chosen = np.asarray(self.y)[:, None]
        own = np.take_along_axis(relative, chosen, axis=1)[:, 0]
        rest = np.exp(relative)
        np.put_along_axis(rest, chosen, 0.0, axis=1)
        each = np.where(own == 0, np.log1p(rest.sum(axis=1)), np.log(np.exp(relative).sum(axis=1)) - own)
        rounded = (relative.shape[1] + 32) * UNIT * (np.abs(each) + np.abs(own)) + TINY
        rounded += UNIT * np.sum(rest * np.abs(relative), axis=1)
        return self.enclosed_weight * enclose(each, rounded + 2 * scores.error.max(axis=1)).sum()

    def dual_slopes(self, theta: Any) -> np.ndarray:
        """``theta / weight + one_hot(y)``, not negative: in proportion, a distribution over classes for each row."""
        chances = np.maximum(np.asarray(theta, dtype=np.float64) / self.weight + self._chosen(), 0.0)
        return np.where(chances.sum(axis=1, keepdims=True) > 0, chances, self._chosen())

    def shrunk_slopes(self, slopes: np.ndarray, scale: float) -> np.ndarray:
        """The distributions that belong to `scale` times ``theta``."""
        return scale * slopes + (1 - scale) * self._chosen()

    def enclosed_dual(self, slopes: np.ndarray) -> tuple[Enclosure, Enclosure]:
        """The conjugate of the loss at these distributions, and ``A^T theta``, with bounds on their errors."""
        total = enclose(slopes).sum(axis=1)
        q = enclose(slopes) / Enclosure(total.value[:, None], total.error[:, None])
        entropy = -entr(q.value)
        # h(p) = -p log p moves by at most h(e) + e where p moves by e.
        moved = q.error + entr(np.minimum(q.error, 0.3))
        conjugate = self.enclosed_weight * enclose(entropy, moved + 8 * UNIT * np.abs(entropy)).sum()
        return conjugate, self.pulled_back(q - self._chosen())
