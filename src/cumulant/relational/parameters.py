"""The fourteen probabilities of the model, their names, and the counts they are learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from cumulant import checks
from cumulant.relational.network import networks_of

N_PARAMETERS = 14
SMALLEST = 1e-100  # products of a few messages stay within double precision

#: Where EM starts: it tells the rules apart, which a start with equal probabilities cannot.
DEFAULT_START = (0.5, 0.1, 0.05, 0.2, 0.08, 0.12, 0.1, 0.5, 0.4, 0.4, 0.4, 0.2, 0.7, 0.5)


class Rule(NamedTuple):
    """A probability: its name, and of what it is the probability."""

    name: str
    meaning: str


RULES: tuple[Rule, ...] = (
    Rule("independent", "a person decides independently of friends"),
    Rule("tie_neither", "a tie of two independent people, neither with the attribute"),
    Rule("tie_one", "a tie of two independent people, one with the attribute"),
    Rule("tie_both", "a tie of two independent people, both with the attribute"),
    Rule("tie_without", "a tie where only one is independent, and that one is without the attribute"),
    Rule("tie_with", "a tie where only one is independent, and that one has the attribute"),
    Rule("tie_dependent", "a tie of two people who both depend on friends"),
    Rule("attribute_independent", "the attribute of an independent person"),
    Rule("sway_with", "an influential friend with the attribute sways a person"),
    Rule("sway_without", "an influential friend without the attribute sways a person"),
    Rule("attribute_alone", "the attribute of a dependent person whom nobody sways"),
    Rule("attribute_discouraged", "the attribute of a dependent person swayed by friends without it only"),
    Rule("attribute_encouraged", "the attribute of a dependent person swayed by friends with it only"),
    Rule("attribute_torn", "the attribute of a dependent person swayed by both kinds of friends"),
)


def checked_parameters(name: str, theta: Any) -> np.ndarray:
    """Fourteen probabilities; the first may be 0 or 1, the others lie strictly between.

    >>> checked_parameters("theta", [0.5] * 13)
    Traceback (most recent call last):
    ...
    ValueError: theta must hold 14 probabilities; got shape (13,)
    """
    found = checks.real_array(name, theta, ndim=1).copy()
    if found.shape != (N_PARAMETERS,):
        raise ValueError(f"{name} must hold {N_PARAMETERS} probabilities; got shape {found.shape}")
    if not 0.0 <= found[0] <= 1.0:
        raise ValueError(f"{name}[0], independent, must be between 0 and 1; got {found[0]:g}")
    for k in range(1, N_PARAMETERS):
        if not SMALLEST <= found[k] < 1.0:
            raise ValueError(
                f"{name}[{k}], {RULES[k].name}, must be strictly between 0 and 1 (at least {SMALLEST:g}); "
                f"got {found[k]:g}"
            )
    return found


def checked_fixed(fixed: Mapping[Any, float] | None) -> dict[int, float]:
    """Probabilities that are held, by the numbers of their rules."""
    out: dict[int, float] = {}
    if fixed is not None and not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must be a mapping of rules to probabilities; got {type(fixed).__name__}")
    names = [rule.name for rule in RULES]
    for key, value in (fixed or {}).items():
        if isinstance(key, str):
            k = names.index(checks.choice("a key of fixed", key, names))
        else:
            k = checks.whole("a key of fixed", key, 0)
            if k >= N_PARAMETERS:
                raise ValueError(f"a key of fixed must be a rule from 0 to {N_PARAMETERS - 1}; got {key}")
        theta = np.full(N_PARAMETERS, 0.5)
        theta[k] = checks.number(f"fixed[{key!r}]", value)
        checked_parameters("fixed", theta)
        out[k] = float(value)
    return out


def checked_prior(alpha: Any, beta: Any, *, interior: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The Beta prior of each rule, from numbers or arrays (14,): at least 1, or with `interior` more, so that its mode
    is not at 0 or 1.

    >>> checked_prior(4.0, 1.0)
    Traceback (most recent call last):
    ...
    ValueError: beta must be finite and more than 1, so that no rule becomes impossible; got 1
    """
    found = []
    for name, value in (("alpha", alpha), ("beta", beta)):
        each = checks.real_array(name, value)
        if each.shape not in ((), (N_PARAMETERS,)):
            raise ValueError(f"{name} must be a number or {N_PARAMETERS} of them; got shape {each.shape}")
        wrong = each <= 1.0 if interior else each < 1.0
        if wrong.any():
            wanted = "more than 1, so that no rule becomes impossible" if interior else "at least 1"
            raise ValueError(f"{name} must be finite and {wanted}; got {each[wrong].flat[0]:g}")
        found.append(np.broadcast_to(each, (N_PARAMETERS,)).copy())
    return found[0], found[1]


def frequency_prior(nets: Any, trials: Any = 6.0) -> tuple[np.ndarray, np.ndarray]:
    """Beta priors worth so many `trials`, whose modes are at what was observed: ``(alpha, beta)``, for `fit_em`.

    The modes of the probabilities of a tie are at the density of ties, those of the probabilities of the attribute at
    its frequency, and the other three at 1/2. ``Beta(4, 4)`` for all 14, which is worth six trials too, has its mode at
    1/2: in a sparse network each probability of a tie that is used has to leave it, and the posterior of a small one is
    largest where nobody decides independently and only one of the six is used.

    Examples
    --------
    >>> from cumulant.relational import Network
    >>> alpha, beta = frequency_prior(Network.from_edges([1, 0, 0, 0, 0, 0], [(0, 1)]))
    >>> ((alpha - 1) / 6).round(3).tolist()[:2]                    # 1/2, and (1 + 1) / (15 + 2)
    [0.5, 0.118]
    """
    found = networks_of(nets)
    pairs, people = sum(len(net.pairs) for net in found), sum(net.n_people for net in found)
    mode = np.full(N_PARAMETERS, 0.5)
    mode[1:7] = (sum(net.n_ties for net in found) + 1.0) / (pairs + 2.0)
    mode[[7, 10, 11, 12, 13]] = (sum(int(net.attribute.sum()) for net in found) + 1.0) / (people + 2.0)
    weight = checks.real_array("trials", trials)
    if weight.shape not in ((), (N_PARAMETERS,)) or (weight <= 0).any():
        raise ValueError(f"trials must be a positive number or {N_PARAMETERS} of them; got {trials!r}")
    return 1.0 + weight * mode, 1.0 + weight * (1.0 - mode)


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each rule was used, and how often with success; expected numbers where latents are not known.

    Counts of several networks add up.

    Attributes
    ----------
    successes, trials : array (14,)

    Examples
    --------
    >>> counts = Counts(np.ones(14), np.full(14, 4.0))
    >>> float((counts + counts).map_estimate(4.0, 4.0)[0])    # (2 + 3) / (8 + 6)
    0.35714285714285715
    """

    successes: np.ndarray
    trials: np.ndarray

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.successes + other.successes, self.trials + other.trials)

    def mixed_with(self, other: Counts, share: float) -> Counts:
        """``(1 - share)`` of these and ``share`` of the others."""
        return Counts(
            (1.0 - share) * self.successes + share * other.successes,
            (1.0 - share) * self.trials + share * other.trials,
        )

    @classmethod
    def zeros(cls) -> Counts:
        """None."""
        return cls(np.zeros(N_PARAMETERS), np.zeros(N_PARAMETERS))

    def map_estimate(self, alpha: Any, beta: Any) -> np.ndarray:
        """``(alpha - 1 + successes) / (alpha + beta - 2 + trials)``: the mode under ``Beta(alpha, beta)`` priors, the
        same of all rules or, with arrays (14,), of each its own.

        With ``alpha = beta = 1`` a rule that was never used has no estimate: an error says which.
        """
        down = alpha + beta - 2.0 + self.trials
        if not (down > 0).all():
            k = int(np.argmin(down))
            raise ValueError(
                f"rule {k}, {RULES[k].name}, was never used and has no estimate without a prior: take alpha, beta > 1"
            )
        return (alpha - 1.0 + self.successes) / down

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        """``successes / theta - (trials - successes) / (1 - theta)``: the derivative of the log-likelihood."""
        return self.successes / theta - (self.trials - self.successes) / (1.0 - theta)


class Settings(NamedTuple):
    """Beta priors, what is held fixed, and the reading of who is able to sway."""

    alpha: np.ndarray
    beta: np.ndarray
    fixed: dict[int, float]
    influence: str

    def log_prior(self, theta: np.ndarray) -> float:
        """The Beta densities of the rules that are learned, up to their constants."""
        free = [k for k in range(N_PARAMETERS) if k not in self.fixed]
        logs = xlogy(self.alpha[free] - 1.0, theta[free]) + xlog1py(self.beta[free] - 1.0, -theta[free])
        return float(logs.sum())

    def maximise(self, counts: Counts) -> np.ndarray:
        """The M-step."""
        return self.hold(counts.map_estimate(self.alpha, self.beta))

    def hold(self, theta: np.ndarray) -> np.ndarray:
        """With the fixed values in their places."""
        theta = theta.copy()
        for k, value in self.fixed.items():
            theta[k] = value
        return theta


class Tables(NamedTuple):
    """The parameters as kernels see them."""

    pair: np.ndarray
    """(8, 4): ``p(tie_xy | z_x, z_y, attributes)`` by `Layout.code` and ``2 z_x + z_y``"""
    habit: np.ndarray
    """(2, 5): ``p(attribute)`` of an independent person and of a dependent one with ``2 encouraged + discouraged``"""
    sway: np.ndarray
    """(2,): without, with the attribute"""
    prior: np.ndarray
    """(2,): dependent, independent"""


def pair_rule(attribute_x: int, attribute_y: int, z_x: int, z_y: int) -> int:
    """Which of the rules 1 to 6 a pair uses."""
    if z_x and z_y:
        return 1 + attribute_x + attribute_y
    if z_x or z_y:
        return 4 + (attribute_x if z_x else attribute_y)
    return 6


#: (8, 4): the rule by `Layout.code` and ``2 z_x + z_y``.
PAIR_RULES = np.array([[pair_rule(c >> 2, (c >> 1) & 1, z >> 1, z & 1) for z in range(4)] for c in range(8)])
_TIED = (np.arange(8) & 1).astype(bool)[:, None]


def tables_of(theta: np.ndarray) -> Tables:
    """The tables of the factors; of rows of probabilities, (..., 14), with their axes in front."""
    pair = np.where(_TIED, theta[..., PAIR_RULES], 1.0 - theta[..., PAIR_RULES])
    own = theta[..., [7, 10, 11, 12, 13]]
    habit = np.stack([1.0 - own, own], axis=-2)
    prior = np.stack([1.0 - theta[..., 0], theta[..., 0]], axis=-1)
    # rows of their own in memory: a kernel is compiled anew for arrays in another order
    return Tables(pair, np.ascontiguousarray(habit), np.ascontiguousarray(theta[..., [9, 8]]), prior)


def assemble_counts(
    layout: Any, pair_sums: np.ndarray, independent: np.ndarray, habits: np.ndarray, swayed: np.ndarray,
    able: np.ndarray,
) -> Counts:  # fmt: skip
    """Counts from beliefs.

    `pair_sums` (8, 4) is the mass of pairs by code and ``2 z_x + z_y``, each pair once; `habits` (n, 2, 2, 2) of
    ``(z_x, encouraged, discouraged)``; `swayed` and `able` have a number for each entry of `layout.others`: the
    probability that the other person sways, and that the other person is able to.
    """
    successes, trials = np.zeros(N_PARAMETERS), np.zeros(N_PARAMETERS)
    n, attribute = layout.attribute.size, layout.attribute.astype(bool)
    successes[0], trials[0] = independent.sum(), n
    np.add.at(trials, PAIR_RULES, pair_sums)
    np.add.at(successes, PAIR_RULES, pair_sums * _TIED)
    trials[7], successes[7] = independent.sum(), independent[attribute].sum()
    kind = attribute[layout.others]
    for k, chosen in ((8, kind), (9, ~kind)):
        trials[k], successes[k] = able[chosen].sum(), swayed[chosen].sum()
    dependent = habits[:, 0].reshape(n, 4)
    trials[10:], successes[10:] = dependent.sum(axis=0), dependent[attribute].sum(axis=0)
    return Counts(successes, trials)
