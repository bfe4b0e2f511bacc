"""A cause and an effect with finitely many values each: `CategoricalSCM`, its interventions and its reverse."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from cumulant import checks, randomness
from cumulant.causal.dirichlet import log_dirichlet
from cumulant.causal.matrices import check_batches
from cumulant.families import Categorical

_ROUNDING = 1e-12
_TOLERANCE = 1e-8  # how far probabilities that are given may add up to something other than 1


class Mechanisms(NamedTuple):
    """The parameters of a model: of the cause ``(..., K_x)``, and of the effect for each cause ``(..., K_x, K_y)``."""

    cause: np.ndarray
    effect: np.ndarray


@dataclass(frozen=True, eq=False)
class CategoricalSCM:
    """Models ``p(x) p(y | x)`` of a cause with ``K_x`` values and an effect with ``K_y``, batched over leading axes.

    Each mechanism is a `families.Categorical` distribution in exponential form, ``p(z) = exp(s_z - A(s))`` with
    ``A(s) = log sum exp(s)`` the cumulant function of the family. What is kept are logarithms: probabilities as small
    as ``e^-700`` and smaller survive every operation, in float64.

    Logits ``s`` are determined up to a constant. Here they add up to zero, for the cause and for each row: the
    parameters nearest to any others of the same distribution, which stochastic gradients do not leave.

    Parameters
    ----------
    log_cause : array, shape (..., K_x)
        ``log p(x)``.
    log_effect : array, shape (..., K_x, K_y)
        ``log p(y | x)``, a row for each value of the cause.

    Examples
    --------
    >>> model = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    >>> backwards = model.reverse()
    >>> backwards.to_probability().cause.round(6), backwards.to_probability().effect.round(6)
    (array([0.416667, 0.583333]), array([[0.6     , 0.4     ], [0.428571, 0.571429]]))
    >>> changed = model.intervene("cause", [0.8, 0.2])
    >>> float(changed.kl(model))
    0.192744...

    References
    ----------
    Le Priol, Babanezhad Harikandeh, Bengio, Lacoste-Julien (2021), "An analysis of the adaptation speed of causal
    models", AISTATS; Le Priol (2021), thesis, chapter 4.
    """

    log_cause: np.ndarray
    log_effect: np.ndarray

    def __post_init__(self):
        cause = _log_probabilities("log_cause", self.log_cause)
        effect = _log_probabilities("log_effect", self.log_effect)
        if cause.ndim < 1 or effect.ndim != cause.ndim + 1 or effect.shape[:-1] != cause.shape:
            raise ValueError(
                "log_cause must have shape (..., K_x) and log_effect (..., K_x, K_y), with the same leading axes; got "
                f"{cause.shape} and {effect.shape}"
            )
        if min(effect.shape[-2:]) < 2:
            raise ValueError(f"cause and effect must have at least two values each; got {effect.shape[-2:]}")
        object.__setattr__(self, "log_cause", cause)
        object.__setattr__(self, "log_effect", effect)

    @classmethod
    def from_probabilities(cls, cause: Any, effect: Any) -> "CategoricalSCM":
        """From ``p(x)`` and ``p(y | x)``, positive and each adding up to one along the last axis."""
        parts = _log_of("cause", cause, axes=1), _log_of("effect", effect, axes=1)
        with checks.about("cause, effect"):
            return cls(*parts)

    @classmethod
    def from_joint(cls, table: Any) -> "CategoricalSCM":
        """From joint tables ``P[..., x, y]`` that are positive and add up to one.

        Cells without mass have no finite logits. Where they come from counts, add a pseudo-count to each cell.
        """
        return cls.from_log_joint(_log_of("table", table, axes=2))

    @classmethod
    def from_log_joint(cls, log_table: Any) -> "CategoricalSCM":
        """From the logarithms of joint tables, up to a constant for each: scores or logits will do."""
        logs = checks.real_array("log_table", log_table)
        if logs.ndim < 2 or not logs.size:
            raise ValueError(f"log_table must have shape (..., K_x, K_y); got {logs.shape}")
        cause = logsumexp(logs, axis=-1)
        return cls(cause - logsumexp(cause, axis=-1, keepdims=True), logs - cause[..., None])

    @classmethod
    def from_logits(cls, cause: Any, effect: Any) -> "CategoricalSCM":
        """From logits of the cause ``(..., K_x)`` and of each row ``(..., K_x, K_y)``; constants do not matter."""
        parts = (checks.real_array("cause", cause), checks.real_array("effect", effect))
        with checks.about("cause, effect"):
            if not all(each.size and each.ndim for each in parts):
                raise ValueError("there must be at least one logit of each")
            return cls(*(each - logsumexp(each, axis=-1, keepdims=True) for each in parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes: of a batch of models."""
        return self.log_cause.shape[:-1]

    @property
    def sizes(self) -> tuple[int, int]:
        """``(K_x, K_y)``: the numbers of values of the cause and of the effect."""
        return self.log_effect.shape[-2], self.log_effect.shape[-1]

    @property
    def log_joint(self) -> np.ndarray:
        """``log p(x, y)``, shape ``(..., K_x, K_y)``."""
        return self.log_cause[..., None] + self.log_effect

    def to_joint(self) -> np.ndarray:
        """Tables ``p(x, y)``."""
        return np.exp(self.log_joint)

    def to_probability(self) -> Mechanisms:
        """``p(x)`` and ``p(y | x)``: the mean parameters."""
        return Mechanisms(np.exp(self.log_cause), np.exp(self.log_effect))

    def to_logit(self) -> Mechanisms:
        """Logits that add up to zero, of the cause and of each row: the natural parameters."""
        return Mechanisms(centred(self.log_cause), centred(self.log_effect))

    def joint_logit(self) -> np.ndarray:
        """Logits of the joint table ``(..., K_x, K_y)``, which add up to zero over it: the model without an arrow."""
        logs = self.log_joint
        return logs - logs.mean(axis=(-2, -1), keepdims=True)

    def reverse(self) -> "CategoricalSCM":
        """The same distribution as ``p(y) p(x | y)``: the cause of the answer is the effect here. Exact (Bayes' rule).

        In logits, ``s_{x|y} = s_x + (s_{y|x} - mean_x s_{y|x}) - (A(x) - mean_x A(x))``, ``A(x)`` the log-partition of
        row ``x`` (Le Priol 2021, lemma 4.B.4).
        """
        return CategoricalSCM.from_log_joint(np.swapaxes(self.log_joint, -1, -2))

    def intervene(self, target: str, value: Any = None, x0: Any = None, rng: Any = None) -> "CategoricalSCM":
        """The model after an intervention.

        Parameters
        ----------
        target : {"cause", "effect", "single"}
            ``"cause"`` replaces ``p(x)``. ``"effect"`` replaces ``p(y | x)`` by one distribution, so that the effect
            no longer depends on the cause. ``"single"`` replaces the row ``p(y | x0)`` alone.
        value : array, shape (K,) or (..., K), optional
            The new probabilities. Without them, uniform ones of the simplex, for each model of the batch.
        x0 : int or array of them, optional
            For ``"single"``: whose row; without it the most likely cause of each model.
        rng : int, numpy.random.Generator or None
            For random values. A seed gives other numbers here than it gives `sample_reference`.
        """
        checks.choice("target", target, ("cause", "effect", "single"))
        size = self.sizes[0] if target == "cause" else self.sizes[1]
        if x0 is not None and target != "single":
            raise ValueError(f"x0 says whose row is replaced, for target='single'; got it with target={target!r}")
        if value is None:
            # With the stream of the seed itself, a new cause would be the old one of a reference of that seed.
            new = log_dirichlet(np.ones(size), self.shape, np.random.default_rng((randomness.seed(rng), 1)))
        else:
            new = _log_of("value", value, axes=1)
            if new.shape[-1] != size or new.shape[:-1] not in ((), self.shape):
                raise ValueError(f"value must have shape {(size,)} or {(*self.shape, size)}; got {new.shape}")
            new = np.broadcast_to(new, (*self.shape, size))
        if target == "cause":
            return CategoricalSCM(new, self.log_effect)
        rows = np.broadcast_to(new[..., None, :], self.log_effect.shape)
        if target == "effect":
            return CategoricalSCM(self.log_cause, rows)
        chosen = np.arange(self.sizes[0]) == self._row(x0)[..., None]
        return CategoricalSCM(self.log_cause, np.where(chosen[..., None], rows, self.log_effect))

    def _row(self, x0: Any) -> np.ndarray:
        """Whose row, for each model."""
        if x0 is None:
            return np.argmax(self.log_cause, axis=-1)
        rows = np.asarray(x0)
        if rows.dtype.kind not in "iu" or np.any(rows < 0) or np.any(rows >= self.sizes[0]):
            raise ValueError(f"x0 must be a value of the cause, 0 to {self.sizes[0] - 1}; got {x0!r}")
        if rows.shape not in ((), self.shape):
            raise ValueError(f"x0 must be one number, or one for each model, shape {self.shape}; got {rows.shape}")
        return np.broadcast_to(rows, self.shape)

    def kl(self, other: "CategoricalSCM") -> np.ndarray:
        """``KL(self || other)`` of the joint distributions, for each model of the batch.

        After an intervention, ``transfer.kl(reference)`` is what a model that knows the reference has to unlearn. It
        does not depend on the direction in which the model is written.
        """
        checks.instance("other", other, CategoricalSCM, "a CategoricalSCM")
        _same_sizes("other", self, other)
        natural = [logs.reshape(*logs.shape[:-2], -1) for logs in (self.log_joint, other.log_joint)]
        family = Categorical(natural[0].shape[-1])
        return np.asarray(family.kl(*(each[..., :-1] - each[..., -1:] for each in natural)))

    def squared_distance(self, other: "CategoricalSCM", space: str = "logit") -> np.ndarray:
        """``|s_X - s'_X|^2 + |s_{Y|X} - s'_{Y|X}|^2`` of the logits of this direction, for each model of the batch."""
        checks.choice("space", space, ("logit",))
        checks.instance("other", other, CategoricalSCM, "a CategoricalSCM")
        _same_sizes("other", self, other)
        mine, its = self.to_logit(), other.to_logit()
        return np.sum((mine.cause - its.cause) ** 2, axis=-1) + np.sum((mine.effect - its.effect) ** 2, axis=(-2, -1))

    def joint_squared_distance(self, other: "CategoricalSCM", space: str = "logit") -> np.ndarray:
        """The squared distance of the logits of the joint tables."""
        checks.choice("space", space, ("logit",))
        checks.instance("other", other, CategoricalSCM, "a CategoricalSCM")
        _same_sizes("other", self, other)
        return np.sum((self.joint_logit() - other.joint_logit()) ** 2, axis=(-2, -1))

    def sample(self, n: int = 1, *, rng: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """`n` independent pairs of each model: causes and effects, whole numbers of shape ``(n, *batch)``."""
        n, generator = checks.whole("n", n), randomness.generator(rng)
        tables = self.to_joint().reshape(-1, self.sizes[0] * self.sizes[1])
        ends = np.cumsum(tables, axis=-1)
        uniform = generator.random((len(tables), n))
        cells = np.stack(
            [
                np.searchsorted(each, u * each[-1], side="right").clip(max=each.size - 1)
                for each, u in zip(ends, uniform, strict=True)
            ],
            axis=-1,
        ).reshape(n, *self.shape)
        return cells // self.sizes[1], cells % self.sizes[1]

    def __getitem__(self, index: Any) -> "CategoricalSCM":
        """Part of a batch."""
        if not self.shape:
            raise TypeError("this is one model, not a batch: it has no parts")
        return CategoricalSCM(self.log_cause[index], self.log_effect[index])


def centred(logs: np.ndarray) -> np.ndarray:
    """Minus the mean along the last axis."""
    return logs - logs.mean(axis=-1, keepdims=True)


def _same_sizes(name: str, mine: CategoricalSCM, its: CategoricalSCM) -> None:
    if mine.sizes != its.sizes:
        raise ValueError(f"{name} must have {mine.sizes} values of cause and effect; got {its.sizes}")
    check_batches(name, mine.shape, its.shape)


def _log_of(name: str, value: Any, axes: int) -> np.ndarray:
    """The logarithms of probabilities over the last `axes` axes."""
    found = checks.real_array(name, value)
    if found.ndim < axes:
        raise ValueError(f"{name} must have at least {axes} ax{'e' if axes > 1 else 'i'}s; got shape {found.shape}")
    if not np.all(found > 0):
        where = np.unravel_index(int(np.argmin(found)), found.shape)
        raise ValueError(
            f"{name} must be positive, as zero has no logit (add a pseudo-count to each cell of a table of counts); "
            f"got {found[where]:g} at index {tuple(map(int, where))}"
        )
    total = found.sum(axis=tuple(range(-axes, 0)), keepdims=True)
    if not np.all(np.abs(total - 1) <= _TOLERANCE):
        worst = total.flat[int(np.argmax(np.abs(total - 1)))]
        raise ValueError(f"{name} must add up to one; got a sum of {worst:g} (divide counts by their sum)")
    return np.log(found / total)


def _log_probabilities(name: str, value: Any) -> np.ndarray:
    """Logarithms that were given, normalised where their sum is off by more than rounding."""
    logs = checks.real_array(name, value)
    total = logsumexp(logs, axis=-1, keepdims=True) if logs.ndim else np.array(np.inf)
    off = float(np.max(np.abs(total), initial=0.0))
    if not off <= _TOLERANCE:
        raise ValueError(f"{name} must be logarithms of probabilities that add up to one; off by {off:.2g}")
    return logs - total if off > _ROUNDING else logs
