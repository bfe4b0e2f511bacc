"""What is claimed, by which theorem, on what: `Certificate`, `Assumption`, `Interval`.

A certificate is a statement about the distance between an answer and the truth. It is never an estimate in disguise: if
the inputs do not support it, it is not issued, and `CertificateError` names the assumption that failed. What it says
can be recomputed from the data by `verify`.
"""

import importlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from cumulant.errors import CertificateError

__all__ = [
    "Assumption",
    "Certificate",
    "Interval",
    "assume",
    "by_construction",
    "check",
    "recipe_of",
    "rounding",
    "verifier",
]

Status = Literal["checked", "by construction", "assumed"]
Kind = Literal["deterministic", "with probability", "in expectation"]

_MARKS = {"checked": "✓", "by construction": "=", "assumed": "?"}
_VERIFIERS: dict[str, Callable[[Any, Any], float]] = {}


@dataclass(frozen=True)
class Assumption:
    """One thing a certificate rests on, and how we know it.

    `status` is `checked` (tested on these inputs), `by construction` (true of the algorithm), or `assumed` (the
    user's word).
    """

    text: str
    status: Status
    detail: str = ""

    def __post_init__(self):
        if self.status not in _MARKS:
            raise ValueError(f"status of an assumption must be one of {', '.join(_MARKS)}; got {self.status!r}")

    def __str__(self):
        return f"{_MARKS[self.status]} {self.text} ({self.status}{': ' + self.detail if self.detail else ''})"


def check(holds: Any, text: str, detail: str = "") -> Assumption:
    """An assumption tested here and now; raises `CertificateError` naming it when it does not hold.

    >>> check(0.5 > 0, "the objective is strongly convex", "mu = 0.5").status
    'checked'
    >>> check(False, "the objective is strongly convex", "mu = 0")
    Traceback (most recent call last):
    ...
    cumulant.errors.CertificateError: no certificate: the objective is strongly convex does not hold (mu = 0)
    """
    if not bool(holds):
        because = f" ({detail})" if detail else ""
        raise CertificateError(f"no certificate: {text} does not hold{because}", assumption=text)
    return Assumption(text, "checked", detail)


def by_construction(text: str, detail: str = "") -> Assumption:
    """An assumption that the algorithm guarantees."""
    return Assumption(text, "by construction", detail)


def assume(text: str, detail: str = "") -> Assumption:
    """An assumption that only the user can vouch for, such as how the data were drawn."""
    return Assumption(text, "assumed", detail)


@dataclass(frozen=True)
class Interval:
    """A closed interval known to contain a number, with a best guess inside it.

    >>> interval = Interval(1.0, 2.0)
    >>> 1.5 in interval, interval.width
    (True, 1.0)
    """

    lower: float
    upper: float
    estimate: float | None = None
    certificate: "Certificate | None" = field(default=None, repr=False, compare=False)

    def __post_init__(self):
        object.__setattr__(self, "lower", float(self.lower))
        object.__setattr__(self, "upper", float(self.upper))
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            raise ValueError(f"an interval needs lower <= upper; got [{self.lower}, {self.upper}]")
        if self.estimate is not None:
            object.__setattr__(self, "estimate", float(self.estimate))
            if not self.lower <= self.estimate <= self.upper:
                raise ValueError(f"the estimate {self.estimate} is outside its interval [{self.lower}, {self.upper}]")

    @property
    def width(self) -> float:
        """Upper minus lower."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return bool(self.lower <= value <= self.upper)

    def __str__(self):
        guess = "" if self.estimate is None else f", estimate {self.estimate:.6g}"
        return f"[{self.lower:.6g}, {self.upper:.6g}]{guess}"


@dataclass(frozen=True)
class Certificate:
    """How far an answer can be from the truth.

    Parameters
    ----------
    quantity : str
        What is bounded, as a formula: ``"f(x) - f*"``.
    bound : float or Interval
        An upper bound on the quantity, or an interval that contains it.
    theorem : str
        Where the claim comes from: name, author, year, equation.
    assumptions : tuple of Assumption
        What the theorem needs, each with how we know it.
    kind : str
        ``"deterministic"``, ``"with probability"`` (at least ``1 - delta``) or ``"in expectation"`` (over the
        randomness of the algorithm or of the data).
    delta : float, optional
        The probability that the claim fails; exactly when `kind` is ``"with probability"``.
    slack : float
        What rounding may add to the bound.
    recipe : str
        Name of the function registered by `verifier` that recomputes the bound from the data.
    details : mapping of str to float
        Numbers worth showing beside the bound: the value, a relative gap, the constants.

    Examples
    --------
    >>> strong = check(True, "mu > 0", "mu = 0.5")
    >>> c = Certificate("f(x) - f*", 0.02, "strong convexity: |grad f(x)|^2 / (2 mu)", (strong,))
    >>> print(c)
    f(x) - f* <= 0.02  [deterministic]
      by strong convexity: |grad f(x)|^2 / (2 mu)
      ✓ mu > 0 (checked: mu = 0.5)
    >>> Certificate.from_json(c.to_json()) == c
    True
    """

    quantity: str
    bound: float | Interval
    theorem: str
    assumptions: tuple[Assumption, ...] = ()
    kind: Kind = "deterministic"
    delta: float | None = None
    slack: float = 0.0
    recipe: str = ""
    details: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.bound, Interval):
            object.__setattr__(self, "bound", float(self.bound))
            if math.isnan(self.bound):
                raise CertificateError(f"no certificate: the bound on {self.quantity} is not a number")
        if (self.kind == "with probability") != (self.delta is not None):
            raise ValueError("delta belongs to, and is needed by, a certificate 'with probability'")
        if self.delta is not None and not 0 < self.delta < 1:
            raise ValueError(f"delta must be strictly between 0 and 1; got {self.delta}")
        if not (math.isfinite(self.slack) and self.slack >= 0):
            raise ValueError(f"slack must be finite and not negative; got {self.slack}")
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "details", {name: float(value) for name, value in self.details.items()})

    @property
    def upper(self) -> float:
        """The largest value the quantity can have, rounding included."""
        return (self.bound.upper if isinstance(self.bound, Interval) else self.bound) + self.slack

    def __str__(self):
        claim = f"in {self.bound}" if isinstance(self.bound, Interval) else f"<= {self.bound:.6g}"
        how = self.kind if self.delta is None else f"with probability at least 1 - {self.delta:g}"
        rounding = f", rounding {self.slack:.1g}" if self.slack else ""
        lines = [f"{self.quantity} {claim}  [{how}{rounding}]", f"  by {self.theorem}"]
        if self.details:
            lines.append("  " + ", ".join(f"{name} = {value:.6g}" for name, value in self.details.items()))
        return "\n".join(lines + [f"  {assumption}" for assumption in self.assumptions])

    def verify(self, problem: Any, x: Any) -> "Certificate":
        """Recompute the bound in float64 from the problem's data and `x`, never from running totals.

        Returns a certificate with the fresh bound. Raises `CertificateError` if the fresh bound is above the claimed
        one by more than the slack.
        """
        recompute = _verifier(self.recipe, self.quantity)
        fresh = float(recompute(problem, x))
        # Negated so that a NaN fails too.
        if not fresh <= self.upper:
            raise CertificateError(
                f"the certificate does not hold: {self.quantity} was claimed to be at most {self.upper:.17g} "
                f"and recomputing it gives {fresh:.17g}",
                assumption=self.quantity,
            )
        return replace(self, bound=fresh)

    def to_json(self) -> str:
        """A JSON text from which `from_json` makes an equal certificate."""
        fields = asdict(self)
        if isinstance(self.bound, Interval):
            fields["bound"] = {"lower": self.bound.lower, "upper": self.bound.upper, "estimate": self.bound.estimate}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """The certificate that `to_json` wrote."""
        try:
            fields = json.loads(text)
            bound = fields["bound"]
            fields["bound"] = Interval(**bound) if isinstance(bound, dict) else bound
            fields["assumptions"] = tuple(Assumption(**each) for each in fields["assumptions"])
            return cls(**fields)
        except (json.JSONDecodeError, KeyError, TypeError) as problem:
            raise ValueError(f"this is not the JSON text of a certificate: {problem}") from problem


def verifier(function: Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    """Register `function(problem, x) -> bound` as a recipe by which certificates can be verified.

    Its name, ``module:function``, goes into `Certificate.recipe`, so that a certificate read from a file still knows
    how to verify itself. Only functions marked this way are ever called.
    """
    _VERIFIERS[recipe_of(function)] = function
    return function


def recipe_of(function: Callable) -> str:
    """The name under which `verifier` registers a function."""
    return f"{function.__module__}:{function.__qualname__}"


def _verifier(recipe: str, quantity: str) -> Callable[[Any, Any], float]:
    if not recipe:
        raise CertificateError(f"this certificate of {quantity} has no recipe: it can be read but not recomputed")
    module = recipe.partition(":")[0]
    if recipe not in _VERIFIERS and module.split(".")[0] == "cumulant":
        importlib.import_module(module)
    if recipe not in _VERIFIERS:
        raise CertificateError(f"no function is registered under the recipe {recipe!r}")
    return _VERIFIERS[recipe]


def rounding(*magnitudes: Any, terms: float = 1.0) -> float:
    """A bound on the rounding error of a float64 sum of `terms` numbers whose absolute values add up to `magnitudes`.

    The usual first-order bound ``terms * 2^-53 * sum |a_i|`` (Higham 2002, section 4.2), doubled for what it drops.
    """
    total = float(sum(np.sum(np.abs(np.asarray(magnitude, dtype=np.float64))) for magnitude in magnitudes))
    return 2.0 * terms * 2.0**-53 * total
