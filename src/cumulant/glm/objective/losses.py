"""The loss of a row as a function of its score: half a deviance, which is the Fenchel-Young loss of a family.

With the natural link, the score ``eta`` of a row is the natural parameter of its observation ``y`` and the loss is
``A(eta) + A*(T(y)) - eta T(y) = KL(y || eta)``: half the unit deviance. Its conjugate is ``phi*(s) = A*(T(y) + s)
- A*(T(y))``, which is all that duality needs. A slope ``s`` is a mean less an observation.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit, xlog1py, xlogy

from cumulant import checks, families
from cumulant.errors import DomainError
from cumulant.families import ExponentialFamily
from cumulant.glm.objective.design import dot
from cumulant.glm.objective.loss_kernels import (
    bend_softmax,
    conjugates,
    fenchel_young,
    fenchel_young_softmax,
    reach,
    terms,
    terms_softmax,
)
from cumulant.precision import float64, to_numpy

_CODES = {"bernoulli": 0, "binomial": 0, "poisson": 1, "normal": 2, "gamma": 3}
_UNIT = 2.0**-53
_CHUNK = 4096  # rows that a compiled family takes at once: one shape, one compilation


class Divergence(NamedTuple):
    """``phi(eta) + phi*(s) - s eta`` of each row, the part of a duality gap that is its own, with what rounding does.

    The true value is that of scores which differ from `eta` by at most `size` units in the last place, up to `error`.
    """

    value: np.ndarray  # (n,), not negative; infinite where the slope is outside the domain of the conjugate
    change: np.ndarray  # its derivative in the scores, in their shape
    curvature: np.ndarray  # (n,), at least its second derivative in the scores
    size: np.ndarray  # (n,)
    error: np.ndarray  # (n,)
    lack: float = 0.0  # for several outputs: how far the means of a row are from adding up to one


class Loss:
    """What a solver asks of a loss. `y` is the observations as the loss keeps them; all arrays have one row each."""

    outputs: int = 1  # scores per row
    concordance: float | None = None  # c with |phi'''| <= c phi'' everywhere, or None where no such number is known
    y: np.ndarray
    constant: np.ndarray  # what makes the loss half a deviance

    def terms(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value (n,), slope and curvature; for several outputs the curvature is the means."""
        raise NotImplementedError

    def apply(self, curvature: np.ndarray, change: np.ndarray) -> np.ndarray:
        """The second derivative times a change of scores."""
        return curvature * change

    def conjugate(self, slope: np.ndarray) -> np.ndarray:
        """``phi*(slope)`` of each row."""
        raise NotImplementedError

    def reach(self, slope: np.ndarray, change: np.ndarray) -> float:
        """The largest ``t <= 1`` for which ``slope + t change`` is in the closed domain of the conjugate."""
        raise NotImplementedError

    def divergence(self, eta: np.ndarray, slope: np.ndarray) -> Divergence:
        """How far each score is from the one at which the loss has this slope."""
        raise NotImplementedError

    def magnitude(self, eta: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """At least the size of what is added and subtracted in the value of each row, whose slope is given (n,)."""
        return (1.0 + np.abs(self.y) + np.abs(slope)) * (1.0 + np.abs(eta)) + np.abs(self.constant)

    def clipped(self, slope: np.ndarray) -> np.ndarray:
        """Slopes that are beyond the closed domain of the conjugate by rounding, put on its boundary."""
        return slope

    def mean(self, eta: np.ndarray) -> np.ndarray:
        """The mean of an observation with these scores."""
        raise NotImplementedError

    def start(self, weights: np.ndarray) -> np.ndarray:
        """The best scores (outputs,) that are the same for all rows, near enough."""
        raise NotImplementedError

    def take(self, rows: Any) -> Self:
        """The same loss on some of the rows."""
        this: Any = self
        arrays = {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}
        return replace(this, **{name: np.ascontiguousarray(array[rows]) for name, array in arrays.items()})


@dataclass(frozen=True, eq=False)
class NamedLoss(Loss):
    """A loss with compiled loops: Bernoulli and binomial (logit), Poisson (log), gamma (log); see `NormalLoss`.

    The gamma loss ``eta + y exp(-eta) - log y - 1`` has the log link: its natural parameter, minus the inverse of
    the mean, would confine scores to a half-line. It is convex in ``eta`` all the same, with conjugate
    ``r log(r / y) - r + log y + 1``, ``r = 1 - s``.
    """

    code: int
    scale: float
    y: np.ndarray
    constant: np.ndarray

    @property
    def concordance(self):
        """The third derivative is at most the second."""
        return 1.0

    def terms(self, eta):
        """See `Loss`."""
        value, slope, curvature = np.empty(len(eta)), np.empty(len(eta)), np.empty(len(eta))
        terms(self.code, self.scale, eta, self.y, self.constant, value, slope, curvature)
        return value, slope, curvature

    def conjugate(self, slope):
        """See `Loss`."""
        out = np.empty(len(slope))
        conjugates(self.code, self.scale, slope, self.y, self.constant, out)
        return out

    def reach(self, slope, change):
        """See `Loss`."""
        return float(reach(self.code, self.scale, slope, self.y, change))

    def divergence(self, eta, slope):
        """See `Loss`."""
        value, change, curvature, size = (np.empty(len(eta)) for _ in range(4))
        fenchel_young(self.code, self.scale, eta, slope, self.y, value, change, curvature, size)
        return Divergence(value, change, curvature, 8.0 * size, 64.0 * _UNIT * value)

    def clipped(self, slope):
        """See `Loss`."""
        if self.code == 0:
            return np.clip(slope, -self.y, self.scale - self.y)
        return np.minimum(slope, 1.0) if self.code == 3 else np.maximum(slope, -self.y)

    def mean(self, eta):
        """See `Loss`."""
        return self.scale * expit(eta) if self.code == 0 else np.exp(eta)

    def start(self, weights):
        """See `Loss`."""
        mean = dot(weights, self.y)
        if self.code == 0:
            share = min(max(mean / self.scale, 1e-3), 1 - 1e-3)
            return np.array([np.log(share / (1 - share))])
        return np.array([np.log(max(mean, 1e-8))])


@dataclass(frozen=True, eq=False)
class NormalLoss(NamedLoss):
    """Half the squared error over the variance ``v = scale``, ``(v eta - y)^2 / (2 v)``: the link is natural.

    Memory limits it, so that NumPy is as fast as a loop and has nothing to compile.
    """

    @property
    def concordance(self):
        """It is quadratic."""
        return 0.0

    def terms(self, eta):
        """See `Loss`."""
        with np.errstate(over="ignore", invalid="ignore"):
            residual = self.scale * eta - self.y
            return residual * residual * (0.5 / self.scale), residual, np.full(len(eta), self.scale)

    def conjugate(self, slope):
        """See `Loss`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return slope * (0.5 * slope + self.y) / self.scale

    def reach(self, slope, change):
        """See `Loss`."""
        return 1.0

    def divergence(self, eta, slope):
        """See `Loss`."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.y + slope
            change = self.scale * eta - mean
            value, size = 0.5 * change * (change / self.scale), np.abs(eta) + np.abs(mean) / self.scale
            return Divergence(value, change, np.full(len(eta), self.scale), 8.0 * size, 64.0 * _UNIT * value)

    def magnitude(self, eta, slope):
        """See `Loss`."""
        return (np.abs(self.scale * eta) + np.abs(self.y)) ** 2 / self.scale

    def clipped(self, slope):
        """See `Loss`."""
        return slope

    def mean(self, eta):
        """See `Loss`."""
        return self.scale * eta

    def start(self, weights):
        """See `Loss`."""
        return np.array([dot(weights, self.y) / self.scale])


@dataclass(frozen=True, eq=False)
class SoftmaxLoss(Loss):
    """The categorical family with one score per class: ``log sum_k exp(eta_k) - eta_y``.

    All `outputs` classes have scores of their own, as in scikit-learn: a penalty then treats them alike. `y` holds the
    numbers of the classes.
    """

    y: np.ndarray
    outputs: int

    def terms(self, eta):
        """See `Loss`."""
        value, mean = np.empty(len(eta)), np.empty(eta.shape)
        terms_softmax(eta, self.y, value, mean)
        slope = mean.copy()
        slope[np.arange(len(eta)), self.y] -= 1.0
        return value, slope, mean

    def apply(self, curvature, change):
        """See `Loss`."""
        out = np.empty(change.shape)
        bend_softmax(curvature, np.ascontiguousarray(change), out)
        return out

    def _means(self, slope):
        means = slope.copy()
        means[np.arange(len(slope)), self.y] += 1.0
        return means

    def conjugate(self, slope):
        """See `Loss`."""
        means = np.maximum(self._means(slope), 0.0)  # beyond zero by rounding
        return xlogy(means, means).sum(axis=1)

    def reach(self, slope, change):
        """See `Loss`."""
        means, fall = self._means(slope), -change
        beyond = fall > means
        return float(np.min(np.maximum(means[beyond], 0.0) / fall[beyond], initial=1.0))

    def divergence(self, eta, slope):
        """See `Loss`."""
        value, change, size = np.empty(len(eta)), np.empty(eta.shape), np.empty(len(eta))
        eta, slope = np.ascontiguousarray(eta), np.ascontiguousarray(slope)
        lack = float(fenchel_young_softmax(eta, slope, self.y, value, change, size)) + 2.0 * self.outputs * _UNIT
        # The second derivative along any change of scores is a variance, at most the square of the largest change.
        error = (64.0 * _UNIT + 2.0 * lack) * value + 2.0 * lack**2
        return Divergence(value, change, np.ones(len(eta)), 8.0 * size, error, lack)

    def magnitude(self, eta, slope):
        """See `Loss`."""
        return 1.0 + np.abs(eta).max(axis=1)

    def clipped(self, slope):
        """See `Loss`."""
        least = np.zeros_like(slope)
        least[np.arange(len(slope)), self.y] = -1.0
        return np.maximum(slope, least)

    def mean(self, eta):
        """See `Loss`."""
        shifted = np.exp(eta - eta.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    def start(self, weights):
        """See `Loss`."""
        logs = np.log(np.maximum(np.bincount(self.y, weights=weights, minlength=self.outputs), 1e-3))
        return logs - logs.mean()


@dataclass(frozen=True, eq=False)
class FamilyLoss(Loss):
    """Any family with one natural parameter, by its own `log_partition`, `to_mean`, `fisher` and `conjugate`.

    Scores are natural parameters. Where these fill only a half-line, scores outside have infinite loss.
    """

    family: ExponentialFamily
    y: np.ndarray  # T(y)
    constant: np.ndarray  # A*(T(y))

    def terms(self, eta):
        """See `Loss`."""
        inside = np.asarray(self.family.in_domain(eta[:, None]))
        safe = np.where(inside, eta, self.start(np.full(len(eta), 1 / len(eta)))[0])
        log_partition, mean, curvature = _by_chunks(_three, self.family, safe)
        value = np.where(inside, log_partition - eta * self.y + self.constant, np.inf)
        return value, mean - self.y, curvature

    def conjugate(self, slope):
        """See `Loss`."""
        mean = slope + self.y
        inside = np.asarray(self.family.in_mean_domain(mean[:, None]))
        safe = np.where(inside, mean, float(self.family.to_mean(self._anywhere()[None])[0, 0]))
        value = _by_chunks(_conjugate, self.family, safe)[0] - self.constant
        untouched = ~inside & (slope == 0)  # an observation on the boundary that is its own mean
        return np.where(inside, value, np.where(untouched, 0.0, np.inf))

    def _anywhere(self):
        return np.array([0.0]) if bool(self.family.in_domain(np.array([0.0]))) else np.array([-1.0])

    def reach(self, slope, change):
        """See `Loss`."""
        t = 1.0
        while t > 1e-3:
            if np.all(self.family.in_mean_domain((slope + t * change + self.y)[:, None])):
                return t
            t *= 0.5
        return 0.0

    def divergence(self, eta, slope):
        """See `Loss`. Here it is a difference, so that rounding is relative to what cancels."""
        value, own, curvature = self.terms(eta)
        conjugate = self.conjugate(slope)
        with np.errstate(invalid="ignore"):
            divergence = np.where(np.isfinite(conjugate), np.maximum(value + conjugate - slope * eta, 0.0), np.inf)
        cancels = self.magnitude(eta, slope) + np.abs(value) + np.where(np.isfinite(conjugate), np.abs(conjugate), 0.0)
        return Divergence(divergence, own - slope, curvature, 1.0 + np.abs(eta), 64.0 * _UNIT * cancels)

    def mean(self, eta):
        """The mean of ``T(y)``."""
        inside = np.asarray(self.family.in_domain(eta[:, None]))
        if not inside.all():
            raise DomainError(
                f"the scores of {type(self.family).__name__} are its natural parameters: {self.family.domain}; "
                f"got {eta[np.argmin(inside)]:.6g} for row {int(np.argmin(inside))}"
            )
        return _by_chunks(_three, self.family, eta)[1]

    def start(self, weights):
        """See `Loss`."""
        mean = np.array([weights @ self.y])
        if bool(self.family.in_mean_domain(mean)):
            return np.asarray(self.family.to_natural(mean))
        return self._anywhere()


def _three(family, values):
    theta = values[:, None]
    return family.log_partition(theta), family.to_mean(theta)[:, 0], family.fisher(theta)[:, 0, 0]


def _conjugate(family, values):
    return (family.conjugate(values[:, None]),)


def _by_chunks(function, family, values):
    padded = np.pad(values, (0, -len(values) % _CHUNK), mode="edge")
    with float64():
        parts = [to_numpy(function(family, padded[i : i + _CHUNK])) for i in range(0, len(padded), _CHUNK)]
    return [np.concatenate(column)[: len(values)] for column in zip(*parts, strict=True)]


def _support(y, inside, what: str) -> np.ndarray:
    if not np.all(inside):
        first = int(np.argmin(inside))
        raise ValueError(f"y must be {what}; got {np.asarray(y)[first].item()!r} at row {first}")
    return np.ascontiguousarray(y, dtype=np.float64)


def loss_of(family: str | ExponentialFamily, y: np.ndarray, classes: int = 0) -> Loss:
    """The loss of a family, by name or as an object, on observations `y` (numbers of classes for the categorical).

    Half deviances of the models of Nelder and Wedderburn (1972).

    >>> loss = loss_of("poisson", np.array([2.0]))
    >>> loss.terms(np.array([0.0]))[1]                              # the slope is mean minus observation: 1 - 2
    array([-1.])
    """
    y = checks.real_array("y", y, ndim=1)
    scale, name = 1.0, family if isinstance(family, str) else ""
    if isinstance(family, families.Categorical) or name == "categorical":
        return SoftmaxLoss(np.ascontiguousarray(y, dtype=np.int64), classes)
    if isinstance(family, families.Binomial | families.Bernoulli):
        name, scale = "bernoulli", float(family.trials)
    elif isinstance(family, families.Poisson):
        name = "poisson"
    elif isinstance(family, families.NormalKnownVariance):
        name, scale = "normal", float(family.variance)
    if name:
        return _named(name, scale, y)
    if not (isinstance(family, ExponentialFamily) and family.dim == 1 and family.event_shape == ()):
        raise ValueError(f"family must be a name or a family of numbers with one natural parameter; got {family!r}")
    y = _support(y, np.asarray(family.in_support(y)), family.support)
    statistic = np.asarray(family.statistics(y))[:, 0]
    inside = np.asarray(family.in_mean_domain(statistic[:, None]))
    # On the boundary of the mean domain A* has a limit that its formula may not give: the loss is then that much off
    # half a deviance, a constant that no minimiser feels.
    constant = np.zeros(len(y))
    constant[inside] = np.asarray(family.conjugate(statistic[inside][:, None]))
    return FamilyLoss(family, statistic, constant)


def _named(name: str, scale: float, y: np.ndarray) -> NamedLoss:
    if name not in _CODES:
        raise ValueError(f"family must be one of {', '.join([*_CODES, 'categorical'])} or a family; got {name!r}")
    code = _CODES[name]
    if code == 0:
        y = _support(y, (y >= 0) & (y <= scale), f"between 0 and {scale:g}")
        constant, inside = np.zeros(len(y)), (y > 0) & (y < scale)
        if inside.any():
            share = y[inside] / scale
            constant[inside] = scale * (xlogy(share, share) + xlog1py(1 - share, -share))
    elif code == 1:
        y = _support(y, y >= 0, "at least 0 for the Poisson family")
        constant = xlogy(y, y) - y
    elif code == 2:
        return NormalLoss(code, scale, np.ascontiguousarray(y, dtype=np.float64), np.zeros(len(y)))
    else:
        y = _support(y, y > 0, "positive for the gamma family")
        constant = -np.log(y) - 1.0
    return NamedLoss(code, scale, y, constant)
