"""How good predictions of yes and no are: errors, areas under the ROC curve and log-losses, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri, xlog1py, xlogy
from scipy.stats import binomtest, rankdata
from scipy.stats import t as student

from cumulant import checks, randomness

_LEVEL = 0.9


class Estimate(NamedTuple):
    """A number and an interval around it."""

    value: float
    lower: float
    upper: float

    def __str__(self):
        return f"{self.value:.3f} [{self.lower:.3f}, {self.upper:.3f}]"


@dataclass(frozen=True)
class Evaluation:
    """How probabilities of yes did on a set of queries.

    Attributes
    ----------
    queries, positives : int
        How many there were, and how many of them were yes.
    error : Estimate
        The share where the more probable answer is wrong, with Wilson's interval.
    base_error : float
        The same for the answer that is more frequent, given to every query.
    auc : Estimate or None
        The area under the ROC curve, see `auc`; None where all answers are the same.
    log_loss : float
        Minus the mean log-probability of what was right, in nats: infinite where that had probability 0.
    """

    queries: int
    positives: int
    error: Estimate
    base_error: float
    auc: Estimate | None
    log_loss: float

    def __str__(self):
        area = "" if self.auc is None else f", AUC {self.auc}"
        return (
            f"{self.queries} queries: error {self.error} (base rate {self.base_error:.3f}){area}, "
            f"log-loss {self.log_loss:.3f}"
        )


def evaluate(labels: Any, probabilities: Any, *, level: float = _LEVEL) -> Evaluation:
    """Errors, area under the ROC curve and log-loss of probabilities of yes.

    Intervals take queries as independent, which leave-one-out queries of one network are not: they are a guide to the
    size of the noise. Several networks or trials give better ones (`mean_interval`).

    >>> print(evaluate([0, 0, 1, 1, 1], [0.1, 0.6, 0.4, 0.7, 0.9]))
    5 queries: error 0.400 [0.143, 0.728] (base rate 0.400), AUC 0.833 [0.235, 0.988], log-loss 0.480
    """
    y, p = _pair(labels, probabilities, "probabilities")
    if p.size and not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"probabilities must be between 0 and 1; got {p[(p < 0) | (p > 1)][0]:g}")
    both = 0 < y.sum() < y.size
    return Evaluation(
        queries=y.size,
        positives=int(y.sum()),
        error=error_rate(y, p, level=level),
        base_error=float(min(y.mean(), 1 - y.mean())),
        auc=auc(y, p, level=level) if both else None,
        log_loss=float(-(xlogy(y, p) + xlog1py(~y, -p)).mean()),
    )


def error_rate(labels: Any, probabilities: Any, *, level: float = _LEVEL) -> Estimate:
    """The share of queries where ``p > 1/2`` is wrong, with Wilson's interval.

    >>> error_rate([0, 1, 1, 0], [0.2, 0.9, 0.4, 0.1]).value
    0.25
    """
    y, p = _pair(labels, probabilities, "probabilities")
    checks.fraction("level", level)
    wrong = int(((p > 0.5) != y).sum())
    low, high = binomtest(wrong, y.size).proportion_ci(level, method="wilson")
    return Estimate(wrong / y.size, float(low), float(high))


def auc(labels: Any, scores: Any, *, level: float = _LEVEL) -> Estimate:
    """The area under the ROC curve: how often a yes has a larger score than a no, a tie counted half.

    The interval is that of DeLong, DeLong and Clarke-Pearson (1988), on the logit scale; it is the whole of [0, 1]
    where the area is 0 or 1, of which their variance says nothing.

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value
    0.75
    """
    y, s = _pair(labels, scores, "scores")
    checks.fraction("level", level)
    value, covariance = _delong(y, s[None])
    area, error = float(value[0]), float(np.sqrt(covariance[0, 0]))
    if not 0.0 < area < 1.0:
        return Estimate(area, 0.0, 1.0)
    width = ndtri(0.5 + level / 2) * error / (area * (1 - area))
    return Estimate(area, float(expit(logit(area) - width)), float(expit(logit(area) + width)))


def auc_difference(
    labels: Any, first: Any, second: Any, *, level: float = _LEVEL, groups: Any = None, draws: int = 2000, rng: Any = 0
) -> Estimate:
    """The area under the ROC curve of `first` less that of `second` on the same queries, with a paired bootstrap.

    Queries are drawn again with their two scores; with `groups` (the person a query is about, the network), whole
    groups are. The interval has the quantiles of the differences. Draws that lack yes or no are drawn again. It is the
    whole of [-1, 1] where the draws say nothing of its ends: where there is one group, where they are too few for the
    level, and where all have the same difference although the two rank the queries differently.

    >>> y = np.repeat([0, 1], 50)
    >>> noise = np.random.default_rng(0).normal(size=100)
    >>> found = auc_difference(y, y + noise, noise)
    >>> bool(found.lower > 0)
    True
    """
    y, a = _pair(labels, first, "first")
    _, b = _pair(labels, second, "second")
    _require_both(y)
    checks.fraction("level", level)
    checks.whole("draws", draws)
    scores = np.stack([a, b])
    value = float(-np.diff(_areas(y, scores))[0])
    generator = randomness.generator(rng)
    names = np.arange(y.size) if groups is None else np.unique(checks.array("groups", groups), return_inverse=True)[1]
    if names.shape != y.shape:
        raise ValueError(f"groups must have one entry for each of the {y.size} queries; got shape {names.shape}")
    members = np.split(np.argsort(names, kind="stable"), np.cumsum(np.bincount(names))[:-1])
    found = []
    while len(found) < draws:
        chosen = np.concatenate([members[g] for g in generator.integers(len(members), size=len(members))])
        if 0 < y[chosen].sum() < chosen.size:
            found.append(-np.diff(_areas(y[chosen], scores[:, chosen]))[0])
    silent = np.ptp(found) == 0 and not np.array_equal(*rankdata(scores, axis=1))
    if len(members) < 2 or draws * (1 - level) / 2 < 1 or silent:
        return Estimate(value, -1.0, 1.0)
    low, high = np.quantile(found, [0.5 - level / 2, 0.5 + level / 2])
    return Estimate(value, float(low), float(high))


def mean_interval(values: Any, *, level: float = _LEVEL) -> Estimate:
    """The mean of trials with Student's interval; with one trial it has no ends (they are infinite).

    >>> print(mean_interval([0.1, 0.2, 0.3]))
    0.200 [0.031, 0.369]
    """
    x = checks.real_array("values", values, ndim=1)
    checks.fraction("level", level)
    if x.size == 0:
        raise ValueError("values must hold at least one number; got none")
    if x.size == 1:
        return Estimate(float(x[0]), -np.inf, np.inf)
    width = student.ppf(0.5 + level / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size)
    return Estimate(float(x.mean()), float(x.mean() - width), float(x.mean() + width))


def _areas(y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The area of each row of scores, from ranks (Mann and Whitney)."""
    ranks = rankdata(scores, axis=1)
    positives = y.sum()
    return (ranks[:, y].sum(axis=1) - positives * (positives + 1) / 2) / (positives * (y.size - positives))


def _delong(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Areas and their covariance: the variances of how each yes does against all no, and each no against all yes."""
    _require_both(y)
    positives, negatives = int(y.sum()), int(y.size - y.sum())
    ranks = rankdata(scores, axis=1)
    above = (ranks[:, y] - rankdata(scores[:, y], axis=1)) / negatives
    below = 1.0 - (ranks[:, ~y] - rankdata(scores[:, ~y], axis=1)) / positives
    covariance = sum(
        np.atleast_2d(np.cov(part)) / size if size > 1 else np.full((len(scores), len(scores)), np.inf)
        for part, size in ((above, positives), (below, negatives))
    )
    return above.mean(axis=1), np.asarray(covariance)


def _require_both(y: np.ndarray) -> None:
    if not 0 < y.sum() < y.size:
        raise ValueError("labels must hold both yes and no: there is no ROC curve of one of them alone")


def _pair(labels: Any, values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    y, x = checks.real_array("labels", labels, ndim=1), checks.real_array(name, values, ndim=1)
    if y.size == 0:
        raise ValueError("labels must hold at least one query; got none")
    if not np.isin(y, (0, 1)).all():
        raise ValueError(f"labels must be 0 or 1; got {y[~np.isin(y, (0, 1))][0]:g}")
    if x.shape != y.shape:
        raise ValueError(f"{name} must have one entry for each of the {y.size} labels; got shape {x.shape}")
    return y.astype(bool), x
