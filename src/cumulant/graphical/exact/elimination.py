"""Exact answers by elimination: what they cost, and the orders and passes behind them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import rounding
from cumulant.errors import TooWide
from cumulant.graphical.exact import orders
from cumulant.graphical.exact.orders import Order, elimination_order
from cumulant.graphical.exact.passes import Pass, megabytes
from cumulant.graphical.exact.program import Program
from cumulant.graphical.exact.schedule import plan
from cumulant.graphical.structure import Structure

MAX_MEMORY = 2**31  # bytes


@dataclass(frozen=True)
class Cost:
    """What exact inference on a model needs, known before it starts.

    Attributes
    ----------
    log2_largest : float
        The binary logarithm of the largest clique.
    entries : float
        Entries of all cliques: the multiplications and additions of one pass.
    memory : int
        Bytes of tables for the partition function.
    memory_marginals : int
        Bytes for the marginals as well, with as few recomputations as `max_memory` allows.
    order : str
        The kind of order.
    """

    log2_largest: float
    entries: float
    memory: int
    memory_marginals: int
    order: str

    def __str__(self):
        return (
            f"largest table 2^{self.log2_largest:.1f}, {self.entries:.3g} entries in a pass, memory "
            f"{megabytes(self.memory)} for log Z and {megabytes(self.memory_marginals)} for marginals "
            f"({self.order} order)"
        )


@dataclass
class Elimination:
    """Exact inference on tables of logarithms, by one order of elimination.

    `structure` has no variable with one state, and no evidence: see `Structure.restrict`.
    """

    structure: Structure
    theta: np.ndarray
    order: Order
    max_memory: int = MAX_MEMORY
    n_jobs: int | None = None

    @classmethod
    def of(
        cls,
        structure: Structure,
        theta: np.ndarray,
        *,
        order: Any = "best",
        max_memory: int = MAX_MEMORY,
        n_jobs: int | None = None,
        **unknown: Any,
    ) -> "Elimination":
        """With the order of this kind, or the given order of the variables; orders are found once for a structure."""
        checks.keywords("exact inference", unknown, ("order", "max_memory", "n_jobs"))
        checks.positive("max_memory", max_memory, finite=False)
        return cls(structure, theta, _order(structure, order), max_memory, n_jobs)

    @property
    def program(self) -> Program:
        """The steps; refused where no computer could hold their largest table."""
        if self.order.log2_largest > min(48.0, math.log2(max(self.max_memory, 8))):
            raise TooWide(
                f"exact inference needs a table of 2^{self.order.log2_largest:.1f} entries "
                f"({megabytes(8 * 2.0**self.order.log2_largest)}), max_memory is {megabytes(self.max_memory)}: "
                "raise max_memory, or ask bound_log_partition for an interval (bound_marginals for marginals)"
            )
        key = ("program", self.order.order.tobytes())
        if key not in self.structure.plans:
            self.structure.plans[key] = Program.of(self.structure, self.order.order)
        return self.structure.plans[key]

    def cost(self) -> Cost:
        """What it needs."""
        program = self.program
        limit = self.max_memory // 8
        log_z, marginals = plan(program, False, False, limit), plan(program, True, False, limit)
        return Cost(
            self.order.log2_largest, self.order.entries, 8 * log_z.entries, 8 * marginals.entries, self.order.kind
        )

    # Passes ----------------------------------------------------------------------------------------------------------

    def log_partition(self) -> float:
        """``log Z``; -inf where every state is impossible."""
        return self._passes(False, False)[0]

    def marginals(self) -> tuple[float, list[np.ndarray]]:
        """``log Z`` and the distribution of each variable."""
        log_z, marginals, _ = self._passes(True, False)
        return log_z, marginals

    def beliefs(self) -> tuple[float, list[np.ndarray], np.ndarray]:
        """``log Z``, the distribution of each variable, and the marginal tables of all factors as one flat array."""
        return self._passes(True, True)

    def answer(self, question: str) -> tuple[float, list[np.ndarray], np.ndarray]:
        """``"log_partition"``, ``"marginals"`` or ``"beliefs"``: the three of `beliefs`, empty where not asked for."""
        return self._passes(question != "log_partition", question == "beliefs")

    def _passes(self, backward: bool, beliefs: bool):
        for linear in (True, False):
            done = Pass(self.program, self.theta, linear, backward, beliefs, self.max_memory, self.n_jobs).run()
            if done is not None:
                return done
        raise AssertionError("logarithms cannot underflow")

    # States ----------------------------------------------------------------------------------------------------------

    def sample(self, uniforms: np.ndarray) -> np.ndarray:
        """Independent draws, one for each row of `uniforms`."""
        for linear in (True, False):
            one = Pass(self.program, self.theta, linear, False, False, self.max_memory, self.n_jobs)
            if one.keep_all(np.full(self.program.n_steps, 0 if linear else 1)):
                return one.decode(uniforms, uniforms.shape[0])
        raise AssertionError("logarithms cannot underflow")

    def best(self, maximised: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest value, over the variables marked in `maximised`, of the log of the sum over the others, and
        where it is. The order must eliminate the others first; states of those are 0.
        """
        summed = self.program.summed
        # a product has no variable: it may stand before a sum, and adds nothing up
        modes = np.where((summed >= 0) & maximised[np.maximum(summed, 0)], 2, 1)
        one = Pass(self.program, self.theta, False, False, False, self.max_memory, self.n_jobs)
        one.keep_all(modes)
        return one.log_partition(), one.decode(np.zeros((0, 0)), 1)[0] * maximised


def slack_of_elimination(structure: Structure, theta: np.ndarray) -> float:
    """What rounding may do to ``log Z`` by elimination, whether the pass is in linear numbers or in logarithms.

    An error of an entry moves ``log Z`` by at most as much, since its derivatives are probabilities. Tables are taken
    relative to their largest entries: a step in logarithms adds up numbers of at most the ranges of all tables and the
    logarithm of the number of states; in linear numbers the relative errors of all products and sums add up. The
    largest entries themselves are added last, without rounding but that of the result.
    """
    states, steps = structure.cardinalities, structure.n_factors + structure.n_variables
    largest, ranges = largest_entries(structure, theta)
    entropy = float(np.log(states).sum())
    return (
        rounding(ranges, entropy, terms=4.0 * (steps + 2))
        + rounding(float(states.sum()) + 2.0 * steps, terms=4.0)
        + rounding(largest, entropy, terms=4.0)
    )


def largest_entries(structure: Structure, theta: np.ndarray) -> tuple[float, float]:
    """``sum_f max |theta_f|`` and ``sum_f max theta_f - min theta_f``, over finite entries.

    No state has a score, and no partial sum of one, beyond the first.
    """
    if structure.n_factors == 0:
        return 0.0, 0.0
    starts, finite = structure.table_starts[:-1], theta > -np.inf
    if finite.all():
        high, low = np.maximum.reduceat(theta, starts), np.minimum.reduceat(theta, starts)
    else:
        high = np.maximum.reduceat(np.where(finite, theta, -np.inf), starts)
        low = np.minimum.reduceat(np.where(finite, theta, np.inf), starts)
        some = high > -np.inf
        high, low = high[some], low[some]
    return float(np.maximum(np.abs(high), np.abs(low)).sum()), float((high - low).sum())


def predict(structure: Structure, *, order: Any = "best", max_memory: int = MAX_MEMORY) -> Cost:
    """What exact inference needs, without doing it. Raises `TooWide` where `max_memory` is far away."""
    return Elimination.of(structure, np.zeros(0), order=order, max_memory=max_memory).cost()


def _order(structure: Structure, order: Any) -> Order:
    if isinstance(order, str):
        if order not in structure.plans:
            structure.plans[order] = elimination_order(structure, order)
        return structure.plans[order]
    given = np.ascontiguousarray(order, dtype=np.int64)
    if given.ndim != 1 or not np.array_equal(np.sort(given), np.arange(structure.n_variables)):
        raise ValueError(f"order must name each of the {structure.n_variables} variables once; got {order!r:.80}")
    return Order(given, "given", *orders.cost(structure, given))
