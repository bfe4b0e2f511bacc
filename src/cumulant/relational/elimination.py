"""The joint of a network and ``z`` alone: exact answers by enumeration, and Gibbs sampling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks, randomness
from cumulant.errors import TooWide
from cumulant.relational.elimination_kernels import collect_states, enumerate_states, gibbs_sweeps, habit_tables
from cumulant.relational.messages import gate_people
from cumulant.relational.network import Network
from cumulant.relational.parameters import Tables, assemble_counts, tables_of
from cumulant.relational.posterior import Posterior
from cumulant.threads import side_by_side

LARGEST = 20


class Eliminated(NamedTuple):
    """Numbers from which ``log p(s, f, z)`` is looked up; see `elimination_kernels`."""

    tables: Tables
    logs: tuple[np.ndarray, np.ndarray, np.ndarray]
    first: np.ndarray
    width: np.ndarray
    log_habit: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, model: Any, network: Network) -> Eliminated:
        """Of a model and what is observed."""
        layout, tables, (first, width) = network.layout, tables_of(model.theta), habit_numbers(network)
        log_habit, share = np.empty(int(first[-1])), np.empty((int(first[-1]), 6))
        habit_tables(layout.attribute, first, width, log_habit, share, tuple(tables))
        with np.errstate(divide="ignore"):  # a prior of 0 is handled by `choices`
            log_prior = np.log(tables.prior)
        return cls(tables, (np.log(tables.pair), np.log(tables.habit[:, 0]), log_prior), first, width, log_habit, share)

    @property
    def numbers(self) -> tuple:
        """The arguments of kernels that need energies alone."""
        return self.logs, self.first, self.width, self.log_habit

    def start(self, n: int) -> np.ndarray:
        """Nobody independent, or everybody where the prior says so."""
        return np.full(n, int(self.tables.prior[0] == 0.0), np.int64)

    def has_choice(self) -> bool:
        """Whether the prior leaves any."""
        return bool((self.tables.prior > 0.0).all())


def habit_numbers(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Where the numbers of each person begin in the tables of `elimination_kernels`, and how many go to a row."""
    with_it = (network.ties & network.attribute).sum(axis=1)
    width = network.degrees - with_it + 1
    return np.concatenate([[0], np.cumsum((with_it + 1) * width)]), width


def log_joint_table(model: Any, network: Network, found: Eliminated | None = None) -> np.ndarray:
    """``log p(s, f, z)`` for all ``z``, by the number whose binary digits they are, the lowest that of person 0.

    Where the prior leaves no choice there is one entry, that of the one ``z`` with positive probability.
    """
    found = Eliminated.of(model, network) if found is None else found
    n = network.n_people
    if found.has_choice() and n > LARGEST:
        raise TooWide(
            f"the exact method sums over 2^{n} states, and at most 2^{LARGEST} are allowed: use method='loopy' or "
            "'double_loop' for an estimate, model.bound_log_likelihood(network) for an interval, or method='ais' for "
            "an estimate with its error"
        )
    table = np.empty(2**n if found.has_choice() else 1)
    z, able, kinds = _work(found, n)
    enumerate_states(tuple(network.layout), model.ordered, *found.numbers, z, able, kinds, table)
    return table


def log_total(table: np.ndarray) -> float:
    """``log sum exp`` of all entries, the largest taken out first."""
    largest = table.max()
    return float(largest + np.log(np.exp(table - largest).sum()))


def exact(model: Any, network: Network, *, pairs: bool = True) -> Posterior:
    """All ``2^n`` states in the order of Gray, for at most 20 people."""
    found, n = Eliminated.of(model, network), network.n_people
    table = log_joint_table(model, network, found)
    value = log_total(table)
    weights = np.exp(table - value)
    z, able, kinds = _work(found, n)
    both, sums = np.zeros((n, n)), _sums(found, network)
    layout = tuple(network.layout)
    collect_states(
        layout, model.ordered, found.first, found.width, found.share, tuple(found.tables), z, able, kinds, weights,
        both, sums,
    )  # fmt: skip
    return _posterior(model, network, "exact", found, both, sums, value, True, table.size, pairs)


def gibbs(
    model: Any,
    network: Network,
    *,
    n_sweeps: int = 2000,
    burn_in: int = 200,
    n_chains: int = 4,
    rng: Any = None,
    n_jobs: int | None = None,
    pairs: bool = True,
) -> Posterior:
    """Gibbs sampling of ``z`` with all else summed out: a change costs the number of ties of a person.

    Beliefs on gates and attributes are averages of their conditional expectations given ``z``.

    Parameters
    ----------
    n_sweeps, burn_in : int
        Sweeps of each chain that count, and those before them that do not.
    n_chains : int
        Chains start from draws of the prior.
    """
    checks.whole("n_sweeps", n_sweeps)
    checks.whole("burn_in", burn_in, 0)
    checks.whole("n_chains", n_chains)
    found, n, seed = Eliminated.of(model, network), network.n_people, randomness.seed(rng)
    starts = np.random.default_rng(seed).random((n_chains, n)) < found.tables.prior[1]

    def chain(c):
        _, able, kinds = _work(found, n)
        z, both, sums = starts[c].astype(np.int64), np.zeros((n, n)), _sums(found, network)
        flat = (tuple(network.layout), model.ordered, *found.numbers, found.share, tuple(found.tables))
        gibbs_sweeps(c, seed, 0, burn_in, *flat, z, able, kinds, np.zeros((0, 0)), sums)
        gibbs_sweeps(c, seed, burn_in, n_sweeps, *flat, z, able, kinds, both, sums)
        return both, sums

    answers = side_by_side(chain, n_chains, n_jobs)
    total = n_chains * n_sweeps
    both = np.sum([each[0] for each in answers], axis=0) / total
    sums = tuple(np.sum([each[1][part] for each in answers], axis=0) / total for part in range(3))
    return _posterior(model, network, "gibbs", found, both, sums, None, None, n_chains * n_sweeps, pairs)


def _work(found: Eliminated, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return found.start(n), np.zeros((n, 2), np.int64), np.zeros((2, 2), np.int64)


def _sums(found: Eliminated, network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    gates = network.layout.others.size
    return np.zeros((found.log_habit.size, 2)), np.zeros(gates), np.zeros(gates)


def _posterior(
    model: Any, network: Network, method: str, found: Eliminated, both: np.ndarray, sums: Any, value: float | None,
    converged: bool | None, sweeps: int, pairs: bool,
) -> Posterior:  # fmt: skip
    layout, n = network.layout, network.n_people
    both = np.triu(both) + np.triu(both, 1).T
    mass, swayed, able = sums
    independence = both.diagonal().copy()
    beliefs = np.empty((n, n, 2, 2))
    beliefs[..., 1, 1] = both
    beliefs[..., 1, 0] = np.maximum(independence[:, None] - both, 0.0)
    beliefs[..., 0, 1] = beliefs[..., 1, 0].T
    beliefs[..., 0, 0] = np.maximum(1.0 - independence[:, None] - independence[None, :] + both, 0.0)
    above = np.triu_indices(n, 1)
    pair_sums = np.zeros((8, 4))
    np.add.at(pair_sums, layout.code[above], beliefs[above].reshape(-1, 4))
    habits = _habits(found, mass, n)
    beliefs[np.arange(n), np.arange(n)] = 0.0
    counts = assemble_counts(layout, pair_sums, independence, habits, swayed, able)
    return Posterior(
        model, network, method, independence, habits, gate_people(layout), swayed, counts, value, converged, sweeps,
        0.0, np.zeros(0), 0.0, beliefs if pairs else None,
    )  # fmt: skip


def _habits(found: Eliminated, mass: np.ndarray, n: int) -> np.ndarray:
    """``(z, encouraged, discouraged)`` of each person from the mass of ``(k, l, z)``."""
    person = np.repeat(np.arange(n), np.diff(found.first))
    at = np.arange(person.size) - found.first[person]
    none_k = np.exp((at // found.width[person]) * np.log1p(-found.tables.sway[1]))
    none_l = np.exp((at % found.width[person]) * np.log1p(-found.tables.sway[0]))
    alone = np.stack([none_k * none_l, none_k * (1 - none_l), (1 - none_k) * none_l, (1 - none_k) * (1 - none_l)], 1)
    habits = np.zeros((n, 2, 4))
    np.add.at(habits[:, 0], person, mass[:, :1] * found.share[:, 2:])
    np.add.at(habits[:, 1], person, mass[:, 1:] * alone)
    return habits.reshape(n, 2, 2, 2)
