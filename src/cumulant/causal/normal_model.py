"""Linear-Gaussian cause-effect models, in batches: their coordinates, their reversal and interventions on them."""

import dataclasses
from typing import Any, NamedTuple, Self

import numpy as np

from cumulant import checks, families, randomness
from cumulant.causal.matrices import (
    check_batches,
    check_positive_definite,
    check_trailing,
    check_triangular,
    inverse,
    matvec,
    solve,
    transposed,
)
from cumulant.causal.normal_divergence import normal_kl
from cumulant.causal.normal_prior import sample_marginals


class MeanCoordinates(NamedTuple):
    """``X ~ N(mean, covariance)`` and ``Y | X ~ N(slope X + intercept, conditional_covariance)``."""

    mean: np.ndarray
    covariance: np.ndarray
    slope: np.ndarray
    intercept: np.ndarray
    conditional_covariance: np.ndarray


class NaturalCoordinates(NamedTuple):
    """``precision = S_X^-1``, ``shift = S_X^-1 mu_X``; ``conditional_precision = S_{Y|X}^-1``, ``coupling`` that times
    the slope and ``conditional_shift`` that times the intercept.
    """

    shift: np.ndarray
    precision: np.ndarray
    coupling: np.ndarray
    conditional_shift: np.ndarray
    conditional_precision: np.ndarray


class CholeskyCoordinates(NamedTuple):
    """``L L^T`` is the precision and ``L_{Y|X} L_{Y|X}^T`` the conditional one, both ``L`` lower triangular with a
    positive diagonal; ``shift = L^-1 eta_X``, ``coupling = L_{Y|X}^-1 B``, ``conditional_shift = L_{Y|X}^-1 b``.
    """

    shift: np.ndarray
    factor: np.ndarray
    coupling: np.ndarray
    conditional_shift: np.ndarray
    conditional_factor: np.ndarray


class JointCoordinates(NamedTuple):
    """A normal distribution of all variables together: its mean and covariance, shift and precision, or ``zeta`` and
    Cholesky factor of the precision.
    """

    vector: np.ndarray
    matrix: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class NormalSCM:
    """A cause ``X`` and an effect ``Y``: ``X ~ N(mu, S_X)``, ``Y | X ~ N(A X + a, S_{Y|X})``; or a batch of them.

    The fields are the natural coordinates, with the same leading axes: ``shift`` and ``precision`` of the cause,
    ``coupling``, ``conditional_shift`` and ``conditional_precision`` of the effect. `from_mean`, `from_cholesky` and
    `from_joint` start from other coordinates.

    References
    ----------
    Le Priol (2021), *Optimization tools for non-asymptotic statistics in exponential families*, thesis, section 4.6
    and appendix 4.E.

    Examples
    --------
    >>> model = NormalSCM.from_mean([0.0], [[1.0]], [[0.8]], [0.5], [[0.36]])
    >>> model.reverse().to_mean().slope, model.reverse().reverse().to_mean().slope
    (array([[0.8]]), array([[0.8]]))
    >>> model.intervene("cause", ([0.5], [[0.5]])).kl(model).round(6)  # the new mean and covariance of X
    np.float64(0.221574)
    """

    shift: np.ndarray
    precision: np.ndarray
    coupling: np.ndarray
    conditional_shift: np.ndarray
    conditional_precision: np.ndarray

    def __post_init__(self):
        found = [checks.real_array(name, getattr(self, name)) for name in NaturalCoordinates._fields]
        shift, precision, coupling, conditional_shift, conditional_precision = found
        for name, value, axes in zip(NaturalCoordinates._fields, found, (1, 2, 2, 1, 2), strict=True):
            if value.ndim < axes or 0 in value.shape[value.ndim - axes :]:
                raise ValueError(f"{name} must have at least {axes} axes, none of them empty; got shape {value.shape}")
        n, m = shift.shape[-1], conditional_shift.shape[-1]
        check_trailing("precision", precision, (n, n))
        check_trailing("coupling", coupling, (m, n))
        check_trailing("conditional_precision", conditional_precision, (m, m))
        try:
            batch = np.broadcast_shapes(
                *(value.shape[: value.ndim - axes] for value, axes in zip(found, (1, 2, 2, 1, 2), strict=True))
            )
        except ValueError:
            shapes = ", ".join(str(value.shape) for value in found)
            raise ValueError(f"the leading axes of the coordinates do not fit: shapes {shapes}") from None
        for name, value, axes in zip(NaturalCoordinates._fields, found, (1, 2, 2, 1, 2), strict=True):
            object.__setattr__(self, name, np.broadcast_to(value, (*batch, *value.shape[value.ndim - axes :])))
        check_positive_definite("precision", precision)
        check_positive_definite("conditional_precision", conditional_precision)

    # Coordinates ------------------------------------------------------------------------------------------------------

    @classmethod
    def from_mean(cls, mean: Any, covariance: Any, slope: Any, intercept: Any, conditional_covariance: Any) -> Self:
        """The model of these means, covariances and regression of ``Y`` on ``X``."""
        mean, slope = checks.real_array("mean", mean), checks.real_array("slope", slope)
        intercept = checks.real_array("intercept", intercept)
        precision = inverse("covariance", covariance)
        conditional = inverse("conditional_covariance", conditional_covariance)
        with checks.about("mean coordinates"):
            for name, value, size in (("mean", mean, precision), ("intercept", intercept, conditional)):
                check_trailing(name, value, (size.shape[-1],))
            check_trailing("slope", slope, (conditional.shape[-1], precision.shape[-1]))
        return cls(matvec(precision, mean), precision, conditional @ slope, matvec(conditional, intercept), conditional)

    @classmethod
    def from_cholesky(
        cls, shift: Any, factor: Any, coupling: Any, conditional_shift: Any, conditional_factor: Any
    ) -> Self:
        """The model of these factors of the precision matrices: lower triangular, with a positive diagonal."""
        factor, conditional_factor = (
            check_triangular("factor", factor),
            check_triangular("conditional_factor", conditional_factor),
        )
        shift = checks.real_array("shift", shift)
        coupling = checks.real_array("coupling", coupling)
        conditional_shift = checks.real_array("conditional_shift", conditional_shift)
        check_trailing("shift", shift, factor.shape[-1:])
        check_trailing("conditional_shift", conditional_shift, conditional_factor.shape[-1:])
        check_trailing("coupling", coupling, (conditional_factor.shape[-1], factor.shape[-1]))
        return cls(
            matvec(factor, shift),
            factor @ transposed(factor),
            conditional_factor @ coupling,
            matvec(conditional_factor, conditional_shift),
            conditional_factor @ transposed(conditional_factor),
        )

    @classmethod
    def from_joint(cls, mean: Any, covariance: Any, n_causes: int) -> Self:
        """The model whose joint distribution is ``N(mean, covariance)``; the first `n_causes` variables are ``X``."""
        mean, covariance = checks.real_array("mean", mean), checks.real_array("covariance", covariance)
        k = checks.whole("n_causes", n_causes)
        if mean.ndim < 1 or mean.shape[-1] <= k:
            raise ValueError(f"mean must have more than n_causes = {k} entries; got shape {mean.shape}")
        check_trailing("covariance", covariance, (mean.shape[-1],) * 2)
        precision = inverse("covariance", covariance)
        conditional, coupling = precision[..., k:, k:], -precision[..., k:, :k]
        marginal = inverse("covariance", covariance[..., :k, :k])
        b = matvec(conditional, mean[..., k:]) - matvec(coupling, mean[..., :k])
        return cls(matvec(marginal, mean[..., :k]), marginal, coupling, b, conditional)

    def to_natural(self) -> NaturalCoordinates:
        """The natural coordinates, which are the fields."""
        return NaturalCoordinates(*(getattr(self, name) for name in NaturalCoordinates._fields))

    def to_mean(self) -> MeanCoordinates:
        """Means and covariances, slope and intercept."""
        covariance, conditional = np.linalg.inv(self.precision), np.linalg.inv(self.conditional_precision)
        return MeanCoordinates(
            matvec(covariance, self.shift),
            0.5 * (covariance + transposed(covariance)),
            np.linalg.solve(self.conditional_precision, self.coupling),
            matvec(conditional, self.conditional_shift),
            0.5 * (conditional + transposed(conditional)),
        )

    def to_cholesky(self) -> CholeskyCoordinates:
        """Cholesky factors of the two precision matrices, and what they turn the rest into."""
        factor, conditional = np.linalg.cholesky(self.precision), np.linalg.cholesky(self.conditional_precision)
        return CholeskyCoordinates(
            solve(factor, self.shift),
            factor,
            np.linalg.solve(conditional, self.coupling),
            solve(conditional, self.conditional_shift),
            conditional,
        )

    def to_joint(self, space: str = "mean") -> JointCoordinates:
        """The distribution of all variables: ``"mean"`` and ``"natural"`` in the order ``(X, Y)``.

        ``"cholesky"`` has the order ``(Y, X)``, in which it is ``zeta = (m, zeta_X)``, ``L = [[L_{Y|X}, 0], [-M^T,
        L_X]]``: the Cholesky coordinates of the model packed another way.
        """
        checks.choice("space", space, ("mean", "natural", "cholesky"))
        if space == "mean":
            mean, covariance, slope, intercept, conditional = self.to_mean()
            down = slope @ covariance
            below = np.concatenate([down, conditional + down @ transposed(slope)], axis=-1)
            matrix = np.concatenate([np.concatenate([covariance, transposed(down)], axis=-1), below], axis=-2)
            return JointCoordinates(np.concatenate([mean, matvec(slope, mean) + intercept], axis=-1), matrix)
        if space == "natural":
            carried = transposed(np.linalg.solve(self.conditional_precision, self.coupling))  # B^T S_{Y|X}
            shift = self.shift - matvec(carried, self.conditional_shift)
            above = np.concatenate([self.precision + carried @ self.coupling, -transposed(self.coupling)], axis=-1)
            below = np.concatenate([-self.coupling, self.conditional_precision], axis=-1)
            matrix = np.concatenate([above, below], axis=-2)
            return JointCoordinates(np.concatenate([shift, self.conditional_shift], axis=-1), matrix)
        shift, factor, coupling, conditional_shift, conditional = self.to_cholesky()
        above = np.concatenate([conditional, np.zeros_like(coupling)], axis=-1)
        below = np.concatenate([-transposed(coupling), factor], axis=-1)
        vector = np.concatenate([conditional_shift, shift], axis=-1)
        return JointCoordinates(vector, np.concatenate([above, below], axis=-2))

    @property
    def family(self) -> families.MultivariateNormal:
        """The family of the joint distribution, in the order ``(X, Y)``; `theta` is its parameter."""
        return families.MultivariateNormal(sum(self.sizes))

    @property
    def theta(self) -> np.ndarray:
        """The natural parameter of the joint distribution in `family`."""
        vector, matrix = self.to_joint("mean")
        return np.asarray(self.family.natural(mean=vector, covariance=matrix))

    # Sizes ------------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes: of a batch of models."""
        return self.shift.shape[:-1]

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of coordinates of ``X`` and of ``Y``."""
        return self.shift.shape[-1], self.conditional_shift.shape[-1]

    def __getitem__(self, index: Any) -> Self:
        """Part of a batch."""
        if not self.shape:
            raise TypeError("this is one model, not a batch: it has no parts")
        return type(self)(*(value[index] for value in self.to_natural()))

    def __repr__(self):
        batch = f", batch of {' x '.join(map(str, self.shape))}" if self.shape else ""
        return f"NormalSCM({self.sizes[0]} causes, {self.sizes[1]} effects{batch})"

    # Models made of this one ------------------------------------------------------------------------------------------

    def reverse(self) -> Self:
        """The same joint distribution as a model of ``X`` given ``Y``; ``Y`` is its cause (appendix 4.E.2).

        The precision of ``Y`` is ``L_{Y|X} (I + W W^T)^-1 L_{Y|X}^T`` with ``W = M L_X^-T``, Cholesky coordinates of
        this model: the Schur complement without its difference, which is nothing but rounding where ``Y`` is nearly a
        function of ``X``.
        """
        vector, matrix = self.to_joint("natural")
        n = self.sizes[0]
        _, factor, coupling, _, conditional = self.to_cholesky()
        W = transposed(np.linalg.solve(factor, transposed(coupling)))
        root = np.linalg.solve(np.linalg.cholesky(np.eye(self.sizes[1]) + W @ transposed(W)), transposed(conditional))
        precision = transposed(root) @ root
        mean = self.to_joint("mean").vector[..., n:]
        return type(self)(
            matvec(precision, mean), precision, transposed(self.coupling), vector[..., :n], matrix[..., :n, :n]
        )

    def intervene(self, target: str, value: Any = None, *, rng: Any = None) -> Self:
        """The model after a change of one mechanism.

        Parameters
        ----------
        target : {"cause", "effect"}
            ``"cause"``: ``X`` gets another distribution, ``Y | X`` stays. ``"effect"``: ``Y`` gets a distribution of
            its own, independent of ``X`` (a hard intervention).
        value : pair (mean, covariance), optional
            The new distribution; without it, one is drawn: precision Wishart with ``n0 = 2 K + 2`` degrees of freedom
            and scale ``I / K``, shift ``N(0, precision / n0)`` (appendix 4.F).
        rng : int, numpy.random.Generator or None
            For the draw. A seed gives other numbers here than it gives `sample_normal_reference`.
        """
        checks.choice("target", target, ("cause", "effect"))
        size = self.sizes[0] if target == "cause" else self.sizes[1]
        if value is None:
            # With the stream of the seed itself, a new cause would be the old one of a reference of that seed.
            stream = np.random.default_rng((randomness.seed(rng), 1))
            shift, precision = sample_marginals(size, self.shape, stream)
        else:
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise TypeError(f"value must be a pair (mean, covariance); got {type(value).__name__}")
            mean, precision = checks.real_array("the mean of value", value[0]), inverse("the covariance", value[1])
            check_trailing("the mean of value", mean, (size,))
            check_trailing("the covariance of value", precision, (size, size))
            shift = matvec(precision, mean)
        if target == "cause":
            return dataclasses.replace(self, shift=shift, precision=precision)
        return dataclasses.replace(
            self,
            coupling=np.zeros_like(self.coupling),
            conditional_shift=shift,
            conditional_precision=precision,
        )

    # Distributions ----------------------------------------------------------------------------------------------------

    def sample(self, n: int = 1, *, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """`n` independent pairs of each model: causes ``(n, *batch, K_x)`` and effects ``(n, *batch, K_y)``."""
        generator, n = randomness.generator(rng), checks.whole("n", n)
        shift, factor, coupling, conditional_shift, conditional = self.to_cholesky()
        noise = generator.standard_normal((n, *self.shape, sum(self.sizes)))
        x = solve(transposed(factor), shift + noise[..., : self.sizes[0]])
        y = solve(transposed(conditional), matvec(coupling, x) + conditional_shift + noise[..., self.sizes[0] :])
        return x, y

    def kl(self, other: Self) -> Any:
        """``KL(self || other)`` of the joint distributions, in Cholesky form: see `normal_kl`."""
        self._check_other(other)
        return normal_kl(self.to_joint("cholesky"), other.to_joint("cholesky"), "cholesky")

    def squared_distance(self, other: Self, space: str = "cholesky") -> Any:
        """The squared distance of two models in the coordinates of this direction, for each model of the batch.

        ``|d zeta|^2 + |d L|_F^2 + |d M|_F^2 + |d m|^2 + |d L_{Y|X}|_F^2`` in ``"cholesky"`` coordinates, those in which
        models are adapted, and the same of the ``"natural"`` ones, symmetric matrices in full. After a change of the
        cause the natural distance of the reversed models is larger, by ``|P_Y - P*_Y|_F^2 + |eta_Y - eta*_Y|^2`` (Le
        Priol 2021, 4.74). No other order holds always.
        """
        self._check_other(other)
        checks.choice("space", space, ("cholesky", "natural"))
        if space == "natural":
            return _squared(self.to_natural(), other.to_natural())
        return _squared(self.to_cholesky(), other.to_cholesky())

    def joint_squared_distance(self, other: Self, space: str = "cholesky") -> Any:
        """That of the joint distributions; in Cholesky coordinates it is `squared_distance`, packed another way."""
        self._check_other(other)
        checks.choice("space", space, ("cholesky", "natural"))
        return _squared(self.to_joint(space), other.to_joint(space))

    def smoothness(self) -> Any:
        """``1 + E |x|^2 + E |y|^2``: the expected smoothness of the negative log-likelihood in Cholesky coordinates.

        That of one observation is ``1 + |x|^2 + |y|^2``, in either direction: the largest eigenvalue of the Hessian of
        ``|L^T x - zeta|^2 / 2 + |L_{Y|X}^T y - M x - m|^2 / 2``.
        """
        mean, covariance = self.to_joint("mean")
        return 1 + np.sum(mean**2, axis=-1) + np.trace(covariance, axis1=-2, axis2=-1)

    def gradient_noise(self) -> Any:
        """``E |grad f_i - E grad f_i|^2`` at this model, for observations of it and the squares of `smoothness`.

        The noise in the bound of stochastic proximal gradients (`optim.rates.stochastic_proximal_average`), where this
        model is what is learnt. Residuals ``L^T x - zeta`` are standard normal, and so it is ::

            p + q + q E |x|^2 + sum_i (i E x_i^2 + L_ii^-2) + sum_i (i E y_i^2 + [L_{Y|X}]_ii^-2),

        ``i`` from 1 on, for `p` causes and `q` effects. It depends on the direction and on the order of the variables.

        >>> NormalSCM.from_mean([0.0], [[1.0]], [[0.8]], [0.5], [[0.36]]).gradient_noise().round(12)
        np.float64(6.61)
        """
        p, q = self.sizes
        _, factor, _, _, conditional = self.to_cholesky()
        mean, covariance = self.to_joint("mean")
        squares = mean**2 + np.diagonal(covariance, axis1=-2, axis2=-1)
        x, y = squares[..., :p], squares[..., p:]
        pivots = (np.sum(np.diagonal(L, axis1=-2, axis2=-1) ** -2.0, axis=-1) for L in (factor, conditional))
        turns = (each @ np.arange(1.0, each.shape[-1] + 1) for each in (x, y))
        return p + q + q * np.sum(x, axis=-1) + sum(pivots) + sum(turns)

    def _check_other(self, other: Any) -> None:
        checks.instance("other", other, NormalSCM, "a NormalSCM")
        if self.sizes != other.sizes:
            raise ValueError(f"other must have {self.sizes} coordinates of cause and effect; got {other.sizes}")
        check_batches("other", self.shape, other.shape)


def _squared(first: Any, second: Any) -> Any:
    total: Any = 0.0
    for name in first._fields:
        axes = -1 if name.endswith(("shift", "vector")) else (-2, -1)
        total = total + np.sum((getattr(first, name) - getattr(second, name)) ** 2, axis=axes)
    return total
