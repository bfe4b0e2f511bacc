"""Structured mean field: independent blocks, each solved exactly, and the lower bound on ``log Z`` they give."""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, issuer, recipe_of, rounding
from cumulant.errors import CertificateError
from cumulant.graphical.exact.elimination import Elimination, slack_of_elimination
from cumulant.graphical.exact.orders import Order, fast_order
from cumulant.graphical.messages.incidence import Incidence, check_settings, ranges, require_addable, require_model
from cumulant.graphical.messages.mean_field import MeanField, beliefs_of, lower_certificate, mean_field
from cumulant.graphical.messages.structured_blocks import choose_blocks, induced, within
from cumulant.graphical.structure import Structure
from cumulant.randomness import generator

_BLOCKS = "q is a product of distributions over blocks"
_PENALTY = 1e6  # per unit of mass on impossible states, where no state of a block avoids them altogether


def structured_mean_field(
    model: Any,
    *,
    blocks: Iterable[Any] | None = None,
    max_memory: int = 2**24,
    n_starts: int = 2,
    max_sweeps: int = 100,
    tol: float = 1e-6,
    rng: Any = 0,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> MeanField:
    """Mean field over blocks: ``q(x) = prod_B q_B(x_B)`` with every ``q_B`` an exact model of its block.

    A block keeps the factors inside it; a factor that joins blocks acts on each of them by its expectation over the
    others, a table over the variables they have in common. Given the others, the best ``q_B`` is

        ``q_B(x_B) = exp(sum_(f in B) theta_f + sum_(f across) E_q[theta_f | x_B] - A_B)``,

    found with its marginals by elimination. Each update raises ``F(q) = E_q <theta, T> + H(q) <= log Z``. Blocks are
    few and wide: on a grid they are strips, and only what the factors between strips correlate is lost.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence.
    blocks : sequence of sequences of variables, optional
        A partition of the variables; those with evidence may be left out. By default it is chosen so that the
        elimination of each block fits into `max_memory` and the factors between blocks are few and weak.
    max_memory : int
        Bytes that the tables of one elimination may take.
    n_starts : int
        How many starts: the first is from `mean_field`, so that the bound is never below that one; the second from
        blocks without what joins them; the others are random.
    max_sweeps, tol : int, float
        A start ends when a sweep over the blocks raises the bound by less than `tol` nats.
    time_limit : float, optional
        Seconds after which no further sweep begins. The bound holds whenever it stops.
    n_jobs : int, optional
        Threads for large tables; the answer does not depend on it.

    References
    ----------
    Saul and Jordan (1996), "Exploiting tractable substructures in intractable networks".

    Examples
    --------
    >>> from cumulant.graphical import grid, spin_glass
    >>> model = spin_glass(grid(6, 6), couplings=0.5, fields=0.5, rng=0)
    >>> halves = [range(0, 18), range(18, 36)]
    >>> [round(model.log_partition() - found.bound, 2)
    ...     for found in (mean_field(model), structured_mean_field(model, blocks=halves))]
    [1.94, 0.53]
    """
    check_settings(n_starts=n_starts, max_sweeps=max_sweeps, tol=tol)
    if time_limit is not None:
        checks.positive("time_limit", time_limit)
    require_model(model)
    structure, theta, free = model.restricted()
    require_addable(theta)
    started = time.monotonic()
    parts = choose_blocks(structure, theta, max_memory) if blocks is None else _given(blocks, free, model.structure)
    joint = Blocks(structure, theta, parts, max_memory, n_jobs)
    draw, best = generator(rng), None
    for start in range(n_starts):
        if start == 0:
            joint.begin_from(np.concatenate([*mean_field(model, rng=draw).q, np.zeros(0)]))
        else:
            joint.begin(None if start == 1 else draw)
        trace: list[float] = []
        converged = False
        while len(trace) < max_sweeps and not converged:
            if trace and time_limit is not None and time.monotonic() - started > time_limit:
                break
            joint.sweep()
            trace.append(joint.bound()[0])
            converged = len(parts) == 1 or (len(trace) > 1 and trace[-1] - trace[-2] <= tol)
        if best is None or trace[-1] > best[0]:
            best = trace[-1], joint.bound()[1], [t.copy() for t in joint.tables], joint.answers(), trace, converged
    assert best is not None
    value, slack, tables, (marginals, beliefs), trace, converged = best
    certificate = lower_certificate(structure, theta, value, slack, _BLOCKS, recipe_of(certify_structured_mean_field))
    kept, bound = tuple(free[part] for part in parts), float(np.nextafter(value - slack, -np.inf))
    marginals = model._all_marginals(marginals)
    return MeanField(
        model, np.array(trace), certificate, marginals, beliefs, bool(converged), bound, kept, tuple(tables)
    )


@issuer
def certify_structured_mean_field(model: Any, result: MeanField) -> Certificate:
    """``-log Z <= -F(q)`` from the tables of the model and those of the blocks, in ``result.q``."""
    structure, theta, free = model.restricted()
    joint = Blocks(structure, theta, [np.searchsorted(free, block) for block in result.blocks], 2**31, None)
    if [t.size for t in joint.tables] != [t.size for t in result.q]:
        raise CertificateError("q is about other blocks, or another model")
    for b, tables in enumerate(result.q):
        joint.tables[b][:] = tables
        joint.solve(b)
    # the tables of q need not be those of the model inside a block: take nothing for granted
    entropies = [
        log_z - _inner(found, own) for log_z, found, own in zip(joint.log_z, joint.flat, joint.tables, strict=True)
    ]
    mean = joint.answers()[1]
    value = math.fsum(entropies + (mean[mean > 0] * theta[mean > 0]).tolist())
    found = lower_certificate(
        structure, theta, value, joint.bound()[1], _BLOCKS, recipe_of(certify_structured_mean_field)
    )
    if found is None:
        raise CertificateError("no certificate: q has mass on impossible states")
    return found


class Blocks:
    """The blocks with their tables: their own factors, and slots for the expectations of those that join blocks.

    `alive` is called between pieces of work, and may raise to end them; blocks of one shape share what is in `known`.
    """

    def __init__(
        self,
        structure: Structure,
        theta: np.ndarray,
        parts: list[np.ndarray],
        max_memory: int,
        n_jobs: int | None,
        alive: Callable[[], None] = lambda: None,
        known: dict[Structure, Structure] | None = None,
    ):
        self.structure, self.theta, self.parts, self.alive = structure, theta, parts, alive
        known = {} if known is None else known
        self.max_memory, self.n_jobs = max_memory, n_jobs
        self.inner: list[Structure] = []
        self.tables: list[np.ndarray] = []
        self.orders: list[Order] = []
        self.whole: list[tuple[np.ndarray, np.ndarray]] = []  # entries of factors inside: in the block, in the model
        self.slots: list[list[tuple[int, int]]] = []  # of each block: (factor, scope in the block)
        self.shares: dict[int, list[tuple[int, int, list[int]]]] = {}  # of a factor: (block, scope there, its axes)
        for b, part in enumerate(parts):
            alive()
            inside, touched, whole = induced(structure, part)
            inside = known.setdefault(inside, inside)
            tables, members, slots = np.zeros(int(inside.table_starts[-1])), set(part.tolist()), []
            own, places = _places(inside, np.flatnonzero(whole)), _places(structure, touched[whole])
            tables[own] = theta[places]
            self.whole.append((own, places))
            for s in np.flatnonzero(~whole).tolist():
                f = int(touched[s])
                slots.append((f, s))
                axes = [a for a, v in enumerate(structure.scope(f)) if v in members]
                self.shares.setdefault(f, []).append((b, s, axes))
            found = within(inside, max_memory)
            self.orders.append(
                fast_order(inside) if found else Elimination.of(inside, tables, max_memory=max_memory).order
            )
            self.inner.append(inside)
            self.tables.append(tables)
            self.slots.append(slots)
        self.log_z = np.full(len(parts), -np.inf)
        self.marginals: list[list[np.ndarray]] = [[] for _ in parts]
        self.flat: list[np.ndarray] = [np.zeros(0) for _ in parts]
        self.across = {f: structure.table(f, theta) for f in self.shares}
        self.finite = {f: np.where(np.isneginf(t), 0.0, t) for f, t in self.across.items()}
        self.hard = {f: np.isneginf(t).astype(float) for f, t in self.across.items() if np.isneginf(t).any()}
        self.widest = float(np.diff(structure.table_starts).max(initial=1))
        self.constants = np.array(  # of factors whose variables are all given
            [float(structure.table(f, theta)) for f in range(structure.n_factors) if not structure.scope(f)]
        )

    def begin(self, draw) -> None:
        """Blocks by themselves, or with random tables in place of what joins them."""
        for b, slots in enumerate(self.slots):
            for _, s in slots:
                table = self.inner[b].table(s, self.tables[b])
                table[...] = 0.0 if draw is None else draw.normal(size=table.shape)
            self.solve(b)

    def begin_from(self, q: np.ndarray) -> None:
        """Independent variables: `q` has the probabilities of their states, one variable after the other."""
        sizes = self.structure.cardinalities
        owner = np.repeat(np.arange(sizes.size), sizes)
        for b, part in enumerate(self.parts):
            self.flat[b] = beliefs_of(Incidence.of(self.inner[b]), q[np.isin(owner, part)])
            if not self.slots[b]:
                self.solve(b)

    def solve(self, b: int) -> None:
        """The marginals of a block with the tables that it has."""
        solver = Elimination(self.inner[b], self.tables[b], self.orders[b], self.max_memory, self.n_jobs)
        self.log_z[b], self.marginals[b], self.flat[b] = solver.beliefs()
        if self.log_z[b] == -np.inf:  # no distribution: any will do for others to go on, and the bound is -inf
            sizes = self.inner[b].cardinalities.tolist()
            self.marginals[b] = [np.full(size, 1.0 / size) for size in sizes]
            single = np.concatenate([*self.marginals[b], np.zeros(0)])
            self.flat[b] = beliefs_of(Incidence.of(self.inner[b]), single)

    def sweep(self) -> None:
        """Each block in turn to its best, given the others."""
        for b, slots in enumerate(self.slots):
            self.alive()
            if slots:
                for penalty in (np.inf, _PENALTY):
                    for f, s in slots:
                        self.inner[b].table(s, self.tables[b])[...] = self._expected(f, b, penalty)
                    self.solve(b)
                    if self.log_z[b] > -np.inf:
                        break

    def _expected(self, f: int, b: int, penalty: float) -> np.ndarray:
        value = self._average(self.finite[f], f, b)
        if f in self.hard:
            mass = self._average(self.hard[f], f, b)
            with np.errstate(invalid="ignore"):  # where there is no mass, no matter
                value = np.where(mass > 0, value - penalty * mass, value)
        return value

    def _average(self, table: np.ndarray, f: int, b: int | None) -> np.ndarray:
        """A table over all variables of a factor, averaged over those outside block `b`."""
        labels = list(range(table.ndim))
        operands: list[Any] = [table, labels]
        for other, s, axes in self.shares[f]:
            if other != b:
                operands += [self.inner[other].table(s, self.flat[other]), axes]
        kept = [] if b is None else next(axes for other, _, axes in self.shares[f] if other == b)
        return np.einsum(*operands, kept)

    def bound(self) -> tuple[float, float]:
        """``F(q)`` and what rounding may add: the factors inside blocks cancel from ``A_B - <slots, their means>``."""
        if (self.log_z == -np.inf).any():
            return -np.inf, 0.0
        terms, sizes, slack = self.constants.tolist(), [0.0], 0.0
        for b, slots in enumerate(self.slots):
            terms.append(self.log_z[b])
            slack += slack_of_elimination(self.inner[b], self.tables[b])
            for _, s in slots:
                slot, found = self.inner[b].table(s, self.tables[b]), self.inner[b].table(s, self.flat[b])
                terms.append(-_inner(found, slot))
                sizes.append(_inner(found, np.where(np.isneginf(slot), 0.0, np.abs(slot))))
        for f, table in self.finite.items():
            terms.append(float(self._average(table, f, None)))
            sizes.append(float(self._average(np.abs(table), f, None)))
            if f in self.hard and self._average(self.hard[f], f, None) > 0:
                return -np.inf, 0.0
        value = math.fsum(terms)
        if not np.isfinite(value):
            return -np.inf, 0.0
        # marginals carry the errors of the steps before them, and do not quite add up to one
        depth = max([inside.n_variables + inside.n_factors for inside in self.inner], default=1)
        return value, slack + rounding(sum(sizes), terms=8.0 * (depth + self.widest)) + rounding(value, terms=4.0)

    def single(self) -> list[np.ndarray]:
        """The distributions of all variables."""
        out: list[np.ndarray] = [np.zeros(0)] * self.structure.n_variables
        for part, found in zip(self.parts, self.marginals, strict=True):
            for v, p in zip(part.tolist(), found, strict=True):
                out[v] = p
        return out

    def answers(self) -> tuple[list[np.ndarray], np.ndarray]:
        """The distributions of all variables, and the tables of all factors under ``q``."""
        single = self.single()
        out = np.ones(int(self.structure.table_starts[-1]))
        for b, (own, places) in enumerate(self.whole):
            out[places] = self.flat[b][own]
        for f in self.shares:
            self.structure.table(f, out)[...] = self._joint(f)
        return single, out

    def _joint(self, f: int) -> np.ndarray:
        operands: list[Any] = []
        for b, s, axes in self.shares[f]:
            operands += [self.inner[b].table(s, self.flat[b]), axes]
        return np.einsum(*operands, list(range(len(self.structure.scope(f)))))


def _places(structure: Structure, factors: np.ndarray) -> np.ndarray:
    """The places of the tables of some factors, one after the other."""
    return ranges(structure.table_starts[:-1][factors], np.diff(structure.table_starts)[factors])


def _inner(mean: np.ndarray, theta: np.ndarray) -> float:
    """``<mean, theta>`` where ``0 * -inf = 0``."""
    there = mean > 0
    return float(np.sum(mean[there] * theta[there]))


def _given(blocks: Iterable[Any], free: np.ndarray, structure: Structure) -> list[np.ndarray]:
    """The given blocks in the numbers of the free variables; together they must name each of these once."""
    parts = [np.unique(np.asarray(list(block), dtype=np.int64)) for block in blocks]
    named = np.concatenate([*parts, np.zeros(0, np.int64)])
    if named.size and not (named.min() >= 0 and named.max() < structure.n_variables):
        raise ValueError(f"blocks must name variables from 0 to {structure.n_variables - 1}")
    parts = [np.searchsorted(free, part[np.isin(part, free)]) for part in parts]
    parts = [part for part in parts if part.size]
    if not np.array_equal(np.sort(np.concatenate([*parts, np.zeros(0, np.int64)])), np.arange(free.size)):
        raise ValueError("blocks must be a partition: each variable without evidence in exactly one of them")
    return parts
