"""The objective of a penalised generalised linear model, its dual, and the duality gap.

The primal function of weights ``w`` and intercept ``b`` is

    P(w, b) = sum_i p_i phi_i(x_i . w + b + o_i) + l1 |w|_1 + l2/2 |w|^2,      sum_i p_i = 1,

and the dual function of slopes ``s``, one for each row, in the domain of the conjugates,

    D(s) = sum_i p_i (s_i o_i - phi_i*(s_i)) - R*(-X^T (p s)),    subject to sum_i p_i s_i = 0 with an intercept,

``R*(v) = |(|v| - l1)_+|^2 / (2 l2)``, or for ``l2 = 0`` zero where ``|v| <= l1`` everywhere and infinity elsewhere.
``P >= D`` for all arguments (Fenchel), so that any slopes that satisfy the constraints bound the minimum from below.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cumulant.glm.objective.design import Design, dot
from cumulant.glm.objective.losses import Loss, NamedLoss, SoftmaxLoss
from cumulant.optim.protocol import Problem


@dataclass(frozen=True, eq=False)
class GLMProblem(Problem):
    """The objective on given data.

    The models are those of Nelder and Wedderburn (1972); the dual is Fenchel's (Rockafellar 1970, theorem 31.1).

    Parameters
    ----------
    design : Design
        The features, and whether there is an intercept (the last of the parameters of each output).
    loss : Loss
        With the observations.
    weights : array (n,)
        Of the rows; they add up to one.
    offset : array (n,) or (n, outputs)
        Added to the scores.
    l1, l2 : float

    Examples
    --------
    >>> from cumulant.glm import design_of, loss_of
    >>> X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, 3.0, -1.0])
    >>> problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.full(3, 1 / 3), np.zeros(3), l2=0.5)
    >>> problem.value(np.array([1.0])), problem.shape            # (0 + 1 + 0) / 6 + 1 / 4
    (0.41666..., (1,))
    """

    design: Design
    loss: Loss
    weights: np.ndarray
    offset: np.ndarray
    l1: float = 0.0
    l2: float = 0.0

    differentiable: ClassVar[bool] = False

    @property
    def n_terms(self) -> int:
        """Rows."""
        return self.design.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the parameters: columns with the intercept last, times outputs where there are several."""
        columns, k = self.design.shape[1], self.loss.outputs
        return (columns,) if k == 1 else (columns, k)

    @property
    def strong_convexity(self) -> float:
        """In the weights."""
        return self.l2

    def without_intercept(self, x: np.ndarray) -> np.ndarray:
        """The parameters that are penalised."""
        return x[:-1] if self.design.intercept else x

    def row_weights(self, array: np.ndarray) -> np.ndarray:
        """The weights of the rows, in a shape that multiplies `array`."""
        return self.weights if array.ndim == 1 else self.weights[:, None]

    # Primal -----------------------------------------------------------------------------------------------------------

    def scores(self, x: np.ndarray) -> np.ndarray:
        """``X w + b + o``."""
        return self.design.times(x) + self.offset

    def penalty(self, x: np.ndarray) -> float:
        """``l1 |w|_1 + l2/2 |w|^2``."""
        w = self.without_intercept(x)
        value = 0.5 * self.l2 * dot(w, w)
        return value + self.l1 * float(np.abs(w).sum()) if self.l1 else value

    def value(self, x: Any) -> float:
        """The objective."""
        x = np.asarray(x, dtype=np.float64)
        return dot(self.weights, self.loss.terms(self.scores(x))[0]) + self.penalty(x)

    def accurate_value(self, value: float, x: Any) -> float:
        """The objective, from a computed `value`; again where losses are differences of larger numbers."""
        if not (isinstance(self.loss, NamedLoss) and self.loss.code in (1, 3)):  # Poisson, gamma
            return value
        if value > 1e-3 * dot(self.weights, 1.0 + np.abs(self.loss.constant)):
            return value
        x = np.asarray(x, dtype=np.float64)
        losses = self.loss.divergence(self.scores(x), np.zeros(self.n_terms)).value
        return dot(self.weights, losses) + self.penalty(x)

    def constant_start(self) -> np.ndarray:
        """No weights, and with an intercept about the best one."""
        x = np.zeros(self.shape)
        if self.design.intercept:
            x[-1] = self.loss.start(self.weights) if self.loss.outputs > 1 else self.loss.start(self.weights)[0]
        return x

    def constant_loss(self) -> float:
        """The mean loss of the best score that is the same for all rows, near enough; offsets are added."""
        best = self.loss.start(self.weights)
        return dot(self.weights, self.loss.terms(self.offset + (best if self.offset.ndim == 2 else best[0]))[0])

    def loss_gradient(self, slope: np.ndarray) -> np.ndarray:
        """The gradient of the mean loss."""
        return self.design.transposed(self.row_weights(slope) * slope)

    def ridge(self, x: np.ndarray) -> np.ndarray:
        """``l2 w``, and zero for the intercept: the gradient of the quadratic penalty."""
        out = self.l2 * x
        if self.design.intercept:
            out[-1] = 0.0
        return out

    # Second order -----------------------------------------------------------------------------------------------------

    def hessian_product(self, curvature: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The Hessian of the smooth part times `v`."""
        if v.ndim == 1:
            return self.design.weighted(self.weights * curvature, v) + self.ridge(v)
        change = self.loss.apply(curvature, self.design.times(v))
        return self.loss_gradient(change) + self.ridge(v)

    def diagonal(self, curvature: np.ndarray) -> np.ndarray:
        """The diagonal of the Hessian of the smooth part, in the shape of the parameters."""
        ridge = self.ridge(np.ones(self.shape))
        if curvature.ndim == 1:
            return self.design.squares(self.weights * curvature) + ridge
        own = self.weights[:, None] * curvature * (1.0 - curvature)
        return np.stack([self.design.squares(own[:, k]) for k in range(own.shape[1])], axis=1) + ridge

    def hessian(self, curvature: np.ndarray) -> np.ndarray:
        """The Hessian of the smooth part, a matrix; parameters in the order of ``x.ravel()``."""
        ridge = self.ridge(np.ones(self.shape)).ravel()
        if curvature.ndim == 1:
            out = self.design.gram(self.weights * curvature)
            out.flat[:: len(out) + 1] += ridge
            return out
        p, k = self.shape
        out = np.empty((p, k, p, k))
        for a in range(k):
            for b in range(a, k):
                both = self.weights * curvature[:, a] * ((a == b) - curvature[:, b])
                out[:, a, :, b] = self.design.cross_gram(both)
                out[:, b, :, a] = out[:, a, :, b].T
        if self.design.intercept:
            # Adding one number to all intercepts changes nothing: any curvature will do there, and makes this definite.
            out[-1, :, -1, :] += np.mean(np.diagonal(out[-1, :, -1, :])) / k
        out = out.reshape(p * k, p * k)
        out.flat[:: p * k + 1] += ridge
        return out

    # Dual -------------------------------------------------------------------------------------------------------------

    def balanced(self, slope: np.ndarray) -> np.ndarray:
        """Slopes whose weighted sum is zero, from slopes where it is nearly: the condition of an intercept.

        For one output the larger of the positive and the negative part shrinks: each mean moves towards its
        observation, which stays in the domain. For several, probabilities of the classes with too much mass shrink in
        proportion, and what each row frees goes to the others by their lack.
        """
        if not self.design.intercept:
            return slope
        if slope.ndim == 1:
            mass = self.weights * slope
            up, down = float(mass[mass > 0].sum()), -float(mass[mass < 0].sum())
            if up == down:
                return slope
            if up > down:
                return np.where(slope > 0, slope * (down / up), slope)
            return np.where(slope < 0, slope * (up / down), slope)
        assert isinstance(self.loss, SoftmaxLoss)
        own = np.zeros_like(slope)
        own[np.arange(len(slope)), self.loss.y] = 1.0
        mean, excess = slope + own, self.weights @ slope
        surplus = np.maximum(excess, 0.0)
        freed = mean * (surplus / np.maximum(self.weights @ mean, 1e-300))
        lack = np.maximum(-excess, 0.0)
        share = lack / lack.sum() if lack.sum() > 0 else np.zeros_like(lack)
        return slope - freed + freed.sum(axis=1, keepdims=True) * share

    def feasible(self, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes that satisfy every constraint of the dual, near the given ones, and ``X^T (p s)`` of the weights."""
        slope = self.balanced(self.loss.clipped(slope))
        return self.shrunk(slope, self.without_intercept(self.loss_gradient(slope)))

    def shrunk(self, slope: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Balanced slopes and their ``X^T (p s)``, shrunk until no entry of the latter is above ``l1``.

        With ``l2 > 0`` the dual has no such constraint, only a price that a small ``l2`` makes steep: whichever is
        better. All slopes shrink alike: balance is kept, and each mean stays in the domain.
        """
        top = float(np.max(np.abs(gradient), initial=0.0)) if self.l1 or not self.l2 else 0.0
        if top <= self.l1:
            return slope, gradient
        shrink = (1 - 1e-12) * self.l1 / top
        found = shrink * slope, shrink * gradient
        if self.l2 > 0 and self.dual_value(*found) <= self.dual_value(slope, gradient):
            return slope, gradient
        return found

    def dual_value(self, slope: np.ndarray, gradient: np.ndarray) -> float:
        """``D(s)`` of feasible slopes, with their ``X^T (p s)``; minus infinity where there is no penalty at all."""
        offset = slope * self.offset
        inner = (offset if slope.ndim == 1 else offset.sum(axis=1)) - self.loss.conjugate(slope)
        return dot(self.weights, inner) - self.conjugate_penalty(gradient)

    def conjugate_penalty(self, gradient: np.ndarray) -> float:
        """``R*(-gradient)``."""
        beyond = np.maximum(np.abs(gradient) - self.l1, 0.0) if self.l1 else gradient
        if self.l2 > 0:
            return dot(beyond, beyond) / (2 * self.l2)
        return 0.0 if self.l1 > 0 or not np.any(beyond) else np.inf

    def lower_bound(self, slope: np.ndarray) -> float:
        """A lower bound on the minimum, from slopes that need not be feasible."""
        return self.dual_value(*self.feasible(slope))

    def take(self, rows: Any) -> "GLMProblem":
        """The objective on some of the rows."""
        weights = self.weights[rows]
        return replace(
            self,
            design=self.design.take(rows),
            loss=self.loss.take(rows),
            weights=weights / weights.sum(),
            offset=np.ascontiguousarray(self.offset[rows]),
        )
