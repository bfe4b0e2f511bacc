"""What is claimed, by which theorem, on what: `Certificate`, `Assumption`, `Interval`.

A certificate is a statement about the distance between an answer and the truth. It is never an estimate in disguise: if
the inputs do not support it, it is not issued, and `CertificateError` names the assumption that failed. What it says
can be recomputed by `verify` from its subject: the problem or model it speaks of, and the answer it speaks about.
"""

import importlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import wraps
from typing import Any, Literal, NamedTuple, ParamSpec

import numpy as np

from cumulant import checks
from cumulant.errors import CertificateError

__all__ = [
    "Assumption",
    "Certificate",
    "Interval",
    "Subject",
    "assume",
    "by_construction",
    "check",
    "issuer",
    "recipe_of",
    "rounding",
]

Status = Literal["checked", "by construction", "assumed"]
Kind = Literal["deterministic", "with probability", "in expectation"]

_MARKS = {"checked": "✓", "by construction": "=", "assumed": "?"}
_ISSUERS: dict[str, Callable[..., "Certificate"]] = {}
_P = ParamSpec("_P")


class Subject(NamedTuple):
    """What a certificate speaks of: `given` (a problem, a model, data) and the `answer` it makes a claim about.

    Results carry theirs: ``result.certificate.verify(result.subject)``.
    """

    given: Any
    answer: Any


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
        checks.choice("status of an assumption", self.status, _MARKS)

    def __str__(self):
        return f"{_MARKS[self.status]} {self.text} ({self.status}{': ' + self.detail if self.detail else ''})"


def check(holds: Any, text: str, detail: str = "") -> Assumption:
    """An assumption tested here and now; raises `CertificateError` naming it when it does not hold.

    `text` is a clause: the message reads "it was not shown that ...".

    >>> check(0.5 > 0, "the objective is strongly convex", "mu = 0.5").status
    'checked'
    >>> check(False, "the objective is strongly convex", "mu = 0")
    Traceback (most recent call last):
    ...
    cumulant.errors.CertificateError: no certificate: it was not shown that the objective is strongly convex (mu = 0)
    """
    if not bool(holds):
        because = f" ({detail})" if detail else ""
        raise CertificateError(f"no certificate: it was not shown that {text}{because}", assumption=text)
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
        for name in ("lower", "upper"):
            object.__setattr__(self, name, float(checks.number(name, getattr(self, name))))
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            raise ValueError(f"an interval needs lower <= upper; got [{self.lower}, {self.upper}]")
        if self.estimate is not None:
            object.__setattr__(self, "estimate", float(checks.number("estimate", self.estimate)))
            if not self.lower <= self.estimate <= self.upper:
                raise ValueError(
                    f"the estimate of an interval must be between lower and upper; got {self.estimate}, "
                    f"[{self.lower}, {self.upper}]"
                )

    @property
    def width(self) -> float:
        """Upper minus lower."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return bool(self.lower <= value <= self.upper)

    @property
    def claim(self) -> str:
        """What is said of the number: ``= 2`` where it is exact, also to the digits shown, else ``in [1, 2]``.

        >>> Interval(2.0, 2.0).claim, Interval(2.0, 2.0 + 1e-9).claim, Interval(1.0, 2.0).claim
        ('= 2', '= 2 to within 1e-09', 'in [1, 2]')
        """
        if self.lower == self.upper:
            return f"= {self.lower:.6g}"
        if f"{self.lower:.6g}" == f"{self.upper:.6g}":
            return f"= {self.upper:.6g} to within {self.width:.1g}"
        return f"in {self}"

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
        An upper bound on the quantity, or an interval that contains it; of an exact value, both ends are that value.
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
        Name of the function, marked by `issuer`, that issues the certificate again from its subject.
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
            object.__setattr__(self, "bound", float(checks.number("bound", self.bound)))
            if math.isnan(self.bound):
                raise CertificateError(f"no certificate: the bound on {self.quantity} is not a number")
        if (self.kind == "with probability") != (self.delta is not None):
            raise ValueError("delta belongs to, and is needed by, a certificate 'with probability'")
        if self.delta is not None and not 0 < self.delta < 1:
            raise ValueError(f"delta must be strictly between 0 and 1; got {self.delta}")
        checks.not_negative("slack", self.slack)
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "details", {name: float(value) for name, value in self.details.items()})

    @property
    def upper(self) -> float:
        """The largest value the quantity can have, rounding included."""
        return _ends(self.bound)[1] + self.slack

    @property
    def lower(self) -> float:
        """The smallest value the quantity can have, rounding included; -inf where only an upper bound is claimed."""
        return _ends(self.bound)[0] - self.slack

    def __str__(self):
        claim = f"<= {self.bound:.6g}" if not isinstance(self.bound, Interval) else self.bound.claim
        how = self.kind if self.delta is None else f"with probability at least 1 - {self.delta:g}"
        rounding = f", rounding {self.slack:.1g}" if self.slack else ""
        lines = [f"{self.quantity} {claim}  [{how}{rounding}]", f"  by {self.theorem}"]
        if self.details:
            lines.append("  " + ", ".join(f"{name} = {value:.6g}" for name, value in self.details.items()))
        return "\n".join(lines + [f"  {assumption}" for assumption in self.assumptions])

    def verify(self, subject: Subject) -> "Certificate":
        """Issue the certificate again in float64 from the data of its subject, never from running totals.

        Returns the fresh certificate. Raises `CertificateError` if it claims another quantity, kind or theorem, rests
        on other assumptions, or if its bound is beyond the claimed one by more than the slack.
        """
        if not isinstance(subject, Subject):
            raise TypeError(
                "verify takes one argument, the subject of the certificate: result.subject, or "
                f"Subject(given, answer); got {type(subject).__name__}"
            )
        fresh = _issuer(self.recipe, self.quantity)(*subject)
        for name in ("quantity", "kind", "delta", "theorem"):
            claimed, found = getattr(self, name), getattr(fresh, name)
            if claimed != found:
                raise CertificateError(
                    f"the certificate does not hold: its {name} is {claimed!r} and issuing it again gives {found!r}",
                    assumption=self.quantity,
                )
        if _grounds(self) != _grounds(fresh):
            differing = ", ".join(f"{text} ({status})" for text, status in sorted(_grounds(self) ^ _grounds(fresh)))
            raise CertificateError(
                f"the certificate does not hold: it and the one issued again differ in what they rest on: {differing}",
                assumption=self.quantity,
            )
        lower, upper = _ends(fresh.bound)
        # Negated so that a NaN fails too.
        if not upper <= self.upper:
            raise CertificateError(
                f"the certificate does not hold: {self.quantity} was claimed to be at most {self.upper:.17g} "
                f"and recomputing it gives {upper:.17g}",
                assumption=self.quantity,
            )
        if not lower >= self.lower:
            raise CertificateError(
                f"the certificate does not hold: {self.quantity} was claimed to be at least {self.lower:.17g} "
                f"and recomputing it gives {lower:.17g}",
                assumption=self.quantity,
            )
        return fresh

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


def issuer(function: Callable[_P, Certificate]) -> Callable[_P, Certificate]:
    """Register ``function(given, answer) -> Certificate`` as one that issues certificates, now and when verifying.

    Its name, ``module:function``, becomes the `recipe` of the certificates it returns, so that a certificate read from
    a file still knows how to verify itself. Only functions marked this way are ever called.

    >>> @issuer
    ... def distance(given, answer):
    ...     return Certificate("|x - y|", abs(given - answer), "the definition")
    >>> distance(3.0, 2.5).verify(Subject(3.0, 2.5)).bound
    0.5
    """
    recipe = recipe_of(function)

    @wraps(function)
    def issue(*args: _P.args, **settings: _P.kwargs) -> Certificate:
        certificate = function(*args, **settings)
        return certificate if certificate.recipe else replace(certificate, recipe=recipe)

    _ISSUERS[recipe] = issue
    return issue


def recipe_of(function: Callable) -> str:
    """The name under which `issuer` registers a function."""
    return f"{function.__module__}:{function.__qualname__}"


def _issuer(recipe: str, quantity: str) -> Callable[..., Certificate]:
    if not recipe:
        raise CertificateError(f"this certificate of {quantity} has no recipe: it can be read but not recomputed")
    module = recipe.partition(":")[0]
    if recipe not in _ISSUERS and module.split(".")[0] == "cumulant":
        try:
            importlib.import_module(module)
        except ImportError as missing:
            raise CertificateError(f"the recipe {recipe!r} names a module that cannot be imported: {missing}") from None
    if recipe not in _ISSUERS:
        raise CertificateError(f"no function is registered under the recipe {recipe!r}")
    return _ISSUERS[recipe]


def _ends(bound: float | Interval) -> tuple[float, float]:
    return (bound.lower, bound.upper) if isinstance(bound, Interval) else (-math.inf, bound)


def _grounds(certificate: Certificate) -> set[tuple[str, str]]:
    return {(assumption.text, assumption.status) for assumption in certificate.assumptions}


def rounding(*magnitudes: Any, terms: float = 1.0) -> float:
    """A bound on the rounding error of a float64 sum of `terms` numbers whose absolute values add up to `magnitudes`.

    The usual first-order bound ``terms * 2^-53 * sum |a_i|`` (Higham 2002, section 4.2), doubled for what it drops.
    """
    total = float(sum(np.sum(np.abs(np.asarray(magnitude, dtype=np.float64))) for magnitude in magnitudes))
    return 2.0 * terms * 2.0**-53 * total
