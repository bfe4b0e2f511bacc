"""Which mechanism changed between two tables? A comparison of the explanations, each with the mechanisms it keeps."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from cumulant import checks

_CONSTANT, _SAME = 1e-28, 1e-12  # variances up to this share of squares, or of another variance, are rounding
_LARGEST = 1e9  # of counts and pseudo-counts: the logarithms of gamma functions beyond cancel to rounding
_SMALLEST = 1e-3  # of pseudo-counts: the logarithms of probabilities go as its inverse
_PSEUDO_COUNTS = tuple(2.0**k for k in range(-4, 3))


class Change(NamedTuple):
    """One explanation of how a table differs from the reference.

    Attributes
    ----------
    kind : str
        ``"none"``; ``"cause"`` (the distribution of `variable` changed, the other given it did not); ``"effect"``
        (`variable` no longer depends on the other, which kept its distribution); ``"row"`` (the distribution of
        `variable` given one value of the other changed); ``"everything"``.
    variable : int or None
        0 or 1: the first or the second variable.
    probability : float
        Among all explanations, which have the same probability before.
    """

    kind: str
    variable: int | None
    probability: float


def table_changes(reference: Any, transfer: Any, pseudo_count: float | None = None) -> list[Change]:
    """How probable each explanation is, from tables of counts before and after, the most probable first.

    An explanation has a cause: `variable` of a ``"cause"``, the other one of an ``"effect"`` and of a ``"row"``, either
    of the rest. The distribution of the cause is uniform on the simplex and each row of the other given it
    ``Dirichlet(a)``, independent; what an explanation keeps is one distribution for both tables, and what was set from
    outside is uniform. The evidence is that of the transfer, given the reference, and exact: the reference by itself
    does not favour a direction, and before the transfer all explanations have the same probability. Of ``"row"``, the
    value of the other variable is averaged over. `pseudo_count` is ``a``; by default seven values from 1/16 (rows with
    a few large probabilities) to 4 (nearly uniform rows) are averaged over.

    An explanation by an ``"effect"`` is about a variable that something else now sets; one by a ``"cause"`` about a
    variable that the other still depends on as before.

    >>> before = np.array([[40, 10], [10, 40]])
    >>> found = table_changes(before, np.array([[72, 17], [2, 9]]))
    >>> found[0].kind, found[0].variable
    ('cause', 0)
    """
    tables = []
    for name, value in (("reference", reference), ("transfer", transfer)):
        counts = checks.real_array(name, value, ndim=2)
        if np.any(counts < 0) or counts.sum() == 0 or min(counts.shape) < 2:
            raise ValueError(f"{name} must be a table of counts, at least 2 x 2 and not empty")
        if counts.sum() > _LARGEST:
            raise ValueError(f"{name} must have at most {_LARGEST:g} observations; got {counts.sum():g}")
        tables.append(counts)
    if tables[0].shape != tables[1].shape:
        raise ValueError(f"transfer must have the shape of the reference, {tables[0].shape}; got {tables[1].shape}")
    found, scores = explain(tables[0], tables[1], pseudo_counts(pseudo_count))
    together: dict[tuple[str, int | None], Any] = {}
    for each, score in zip(found, scores, strict=True):
        name = each.kind, each.variable
        together[name] = np.logaddexp(together.get(name, -np.inf), score)
    return _ranked(list(together), np.array(list(together.values())))


class Explanation(NamedTuple):
    """A `Change` of a table, the variable that is the cause in it, and of which value of it a row is another one."""

    kind: str
    variable: int | None
    cause: int
    place: int | None = None


def explain(before: np.ndarray, after: np.ndarray, among: tuple[float, ...]) -> tuple[list[Explanation], np.ndarray]:
    """All explanations of `table_changes`, those of single rows one by one, and the logarithm of the evidence of each
    times its prior probability, up to a constant: rows of the reference are ``Dirichlet(a)`` with `a` `among` these.
    """
    found: list[Explanation] = []
    scores: list[Any] = []
    for cause in (0, 1):
        old, new = turned(before, cause), turned(after, cause)
        by_rows = np.array([[log_evidence(each, a) for each in (old, new, old + new)] for a in among])
        first, second, both = np.moveaxis(by_rows, 1, 0)  # each (pseudo-counts, rows)
        one, other, kept = (log_evidence(each.sum(axis=1)) for each in (old, new, old + new))
        whole = {
            "none": kept + both.sum(axis=1) - np.log(2),  # half for each cause
            "everything": one + first.sum(axis=1) + other + second.sum(axis=1) - np.log(2),
            "cause": one + other + both.sum(axis=1),
            "effect": kept + first.sum(axis=1) + log_evidence(new.sum(axis=0)),
        }
        row = kept + both.sum(axis=1, keepdims=True) + (first + log_evidence(new) - both) - np.log(len(old))
        of_reference = one + first.sum(axis=1)
        scores.append(logsumexp(np.column_stack([*whole.values(), row]), axis=0) - logsumexp(of_reference))
        variables = {"cause": cause, "effect": 1 - cause}
        found += [Explanation(kind, variables.get(kind), cause) for kind in whole]
        found += [Explanation("row", 1 - cause, cause, place) for place in range(len(old))]
    return found, np.concatenate(scores)


def turned(table: np.ndarray, cause: int) -> np.ndarray:
    """With the cause on the second axis from the end."""
    return np.swapaxes(table, -1, -2) if cause else table


def normal_changes(reference: Any, transfer: Any) -> list[Change]:
    """The same for two columns of numbers, normal and linear, by the Bayesian information criterion.

    Each explanation is fitted by maximum likelihood to both tables and pays half the logarithm of the number of rows
    for each parameter. There is no ``"row"``.

    >>> rng = np.random.default_rng(0)
    >>> x, x_after = rng.normal(size=300), rng.normal(1.0, 2.0, size=300)
    >>> tables = [np.stack([z, z + rng.normal(size=300)], axis=1) for z in (x, x_after)]
    >>> normal_changes(*tables)[0][:2]
    ('cause', 0)
    """
    before, after = (
        checks.real_array(name, value, ndim=2) for name, value in (("reference", reference), ("transfer", transfer))
    )
    for name, value in (("reference", before), ("transfer", after)):
        if value.shape[1] != 2 or len(value) < 5:
            raise ValueError(f"{name} must have two columns and at least five rows; got shape {value.shape}")
    before, after = in_units(before, before), in_units(after, before)
    for name, value in (("reference", before), ("transfer", after)):
        _check_spread(name, value)
    both = np.concatenate([before, after])
    price = 0.5 * np.log(len(both))

    def marginal(values: np.ndarray) -> float:
        return -0.5 * len(values) * (1 + np.log(2 * np.pi * values.var()))

    def conditional(values: np.ndarray, given: np.ndarray) -> float:
        apart = given - given.mean()
        return marginal(values - (apart @ values / (apart @ apart)) * apart)

    def joint(values: np.ndarray) -> float:
        return marginal(values[:, 0]) + conditional(values[:, 1], values[:, 0])

    names: list[tuple[str, int | None]] = [("none", None), ("everything", None)]
    scores = [joint(both) - 5 * price, joint(before) + joint(after) - 10 * price]
    for this in (0, 1):
        other = 1 - this
        separate = marginal(before[:, this]) + marginal(after[:, this])
        names.append(("cause", this))
        scores.append(separate + conditional(both[:, other], both[:, this]) - 7 * price)
        names.append(("effect", this))
        kept = marginal(both[:, other]) + conditional(before[:, this], before[:, other])
        scores.append(kept + marginal(after[:, this]) - 7 * price)
    return _ranked(names, np.array(scores))


def pseudo_counts(value: Any) -> tuple[float, ...]:
    """The one that is given, with which evidence is more than rounding, or those that are averaged over."""
    if value is None:
        return _PSEUDO_COUNTS
    a = float(checks.positive("pseudo_count", value))
    if not _SMALLEST <= a <= _LARGEST:
        raise ValueError(f"pseudo_count must be between {_SMALLEST:g} and {_LARGEST:g}; got {value!r}")
    return (a,)


def in_units(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Columns in units of the range of the reference, from its first row on: no square of them overflows."""
    span = np.ptp(reference, axis=0)
    return (values - reference[0]) / np.where(span > 0, span, 1.0)


def _check_spread(name: str, values: np.ndarray) -> None:
    """Refuse columns without a variance, or on one line."""
    apart = values - values.mean(axis=0)
    variances = np.mean(apart**2, axis=0)
    if not np.all(variances > _CONSTANT * np.max(np.abs(values), axis=0) ** 2):
        raise ValueError(f"{name} must have columns that are not constant")
    correlation = np.mean(apart[:, 0] * apart[:, 1]) / np.sqrt(np.prod(variances))
    if not 1 - correlation**2 > _SAME:
        raise ValueError(f"{name} must have columns that are not linear functions of each other")


def log_evidence(counts: np.ndarray, a: float = 1.0) -> Any:
    """Of a sequence with these counts (last axis), Dirichlet parameters all `a`; 1 is uniform on the simplex.

    The difference of the log-partitions of `families.Dirichlet` at the posterior and at the prior.
    """
    total = a * counts.shape[-1]
    each = np.sum(gammaln(counts + a) - gammaln(a), axis=-1)
    return each + gammaln(total) - gammaln(counts.sum(axis=-1) + total)


def _ranked(names: list[tuple[str, int | None]], scores: np.ndarray) -> list[Change]:
    probabilities = np.exp(scores - logsumexp(scores))
    order = np.argsort(-scores, kind="stable")
    return [Change(names[i][0], names[i][1], float(probabilities[i])) for i in order]
