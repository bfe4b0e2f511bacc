"""What one search for an interval around ``log Z`` works on, and the bounds that it has found so far."""

import math
from dataclasses import dataclass, field

import numpy as np

from cumulant.certificates import rounding
from cumulant.errors import CertificateError, TooWide
from cumulant.graphical.bounds.ledger import Ledger
from cumulant.graphical.bounds.partition import Partition, strengths
from cumulant.graphical.bounds.reweighted import Tables
from cumulant.graphical.structure import Structure

_LEAST = 2**16  # bytes that are always allowed: those of single factors and of trees come on top


@dataclass
class Bracket:
    """The best bounds so far, rounding included, and the reason for each.

    Every bound is offered when a piece of work is finished, so that the interval is a function of their number.
    """

    lower: float = -np.inf
    upper: float = np.inf
    slack: float = 0.0
    reasons: dict[str, str] = field(default_factory=dict)
    estimate: float | None = None
    likely: bool = False  # whether the lower bound holds with probability 1 - delta only
    exact: bool = False

    @property
    def width(self) -> float:
        """Upper minus lower, and never zero."""
        return max(self.upper - self.lower, 1e-9)

    def offer_lower(self, value: float, reason: str, slack: float = 0.0, likely: bool = False) -> bool:
        """Take a bound from below if it is better, and say whether it is."""
        bound = float(np.nextafter(value - slack, -np.inf))
        better = bound > self.lower
        if better:
            self.lower, self.likely, self.reasons["lower"] = bound, likely, reason
            self.slack = max(self.slack, slack)
        return better

    def offer_upper(self, value: float, reason: str, slack: float) -> None:
        """Take a bound from above if it is better."""
        bound = float(np.nextafter(value + slack, np.inf)) if value > -np.inf else value
        if bound < self.upper:
            self.upper, self.reasons["upper"] = bound, reason
            self.slack = max(self.slack, slack)

    def settle(self, value: float, reason: str, slack: float) -> None:
        """Take an exact value, in place of all bounds."""
        self.lower, self.upper, self.slack, self.reasons = -np.inf, np.inf, 0.0, {}
        self.offer_lower(value, reason, slack)
        self.offer_upper(value, reason, slack)
        self.estimate, self.likely, self.exact = value, False, True

    def theorem(self) -> str:
        """What the bounds rest on, as a noun phrase."""
        if self.lower > self.upper:
            raise CertificateError(
                f"no certificate: log Z was found to be at least {self.lower:.17g} by {self.reasons['lower']}, and at "
                f"most {self.upper:.17g} by {self.reasons['upper']}"
            )
        if self.exact:
            return self.reasons["upper"]
        ends = (("upper", "above"), ("lower", "below"))
        return " and ".join(f"{self.reasons[end]} from {side}" for end, side in ends if end in self.reasons)


@dataclass
class Memory:
    """What one search may leave for the next on a model of the same structure: shapes with their plans, cuts, blocks,
    and the last shares and distributions.
    """

    known: dict[Structure, Structure] = field(default_factory=dict)
    cuts: dict[int, list[Partition]] = field(default_factory=dict)
    others: dict[int, list] = field(default_factory=dict)
    blocks: list[list[np.ndarray]] = field(default_factory=list)
    point: np.ndarray | None = None
    q: np.ndarray | None = None


@dataclass
class Context:
    """The model of a search, what it may use, and its bounds."""

    structure: Structure
    theta: np.ndarray
    ledger: Ledger
    max_memory: int
    seed: int
    n_jobs: int | None = None
    memory: Memory = field(default_factory=Memory)
    bracket: Bracket = field(default_factory=Bracket)

    def __post_init__(self):
        states = int(self.structure.cardinalities.sum())
        if 8 * states > self.bytes:
            raise TooWide(
                f"a number for each of the {states} states of the variables is {8 * states / 2**20:.0f} MiB, more than "
                f"max_memory = {self.max_memory / 2**20:g} MiB"
            )
        self.tables = Tables.of(self.structure, self.theta)
        wide = self.tables.theta[: int(self.tables.structure.table_starts[-1])]
        self.hard = bool(np.isneginf(wide).any())  # whether a factor of several variables has impossible entries
        self.strength = strengths(self.tables.structure, self.tables.theta)

    @property
    def bytes(self) -> int:
        """The memory for tables."""
        return max(self.max_memory, _LEAST)

    def bytes_in_time(self, rate: float) -> int:
        """The memory for tables that can be gone through often enough in the time, at `rate` bytes for a second."""
        limit = self.ledger.time_limit
        return self.bytes if limit is None else int(min(self.bytes, max(rate * limit, _LEAST)))

    def simple(self) -> None:
        """Bounds by the largest entry of every table, and by its mean at uniform probabilities (Jensen)."""
        tables, bracket = self.tables, self.bracket
        structure, theta = tables.structure, tables.theta
        sizes = np.concatenate([np.diff(structure.table_starts), structure.cardinalities])
        states = math.fsum(np.log(structure.cardinalities))
        largest = tables.largest(theta)
        slack = tables.slack + rounding(tables.constant if tables.constant > -np.inf else 0.0, states, terms=4.0)
        if self.structure.n_variables == 0:
            bracket.settle(tables.constant, "the sum of the tables, as no variable is free", slack)
        elif (largest == -np.inf).any() or tables.constant == -np.inf:
            bracket.settle(-np.inf, "a table without a possible entry", 0.0)
        else:
            size = tables.largest(np.where(np.isfinite(theta), np.abs(theta), 0.0)).sum()
            slack += rounding(size, terms=4.0 + sizes.max(initial=0))
            above = math.fsum([tables.constant, states, *largest.tolist()])
            bracket.offer_upper(above, "the largest entry of each table", slack)
            if np.isfinite(theta).all():
                means = np.add.reduceat(theta, np.cumsum(sizes) - sizes) / sizes
                below = math.fsum([tables.constant, states, *means.tolist()])
                bracket.offer_lower(below, "Jensen's inequality at uniform probabilities", slack)
