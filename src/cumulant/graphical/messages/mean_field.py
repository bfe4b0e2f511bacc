"""Naive mean field: the best product of independent distributions, and the lower bound on ``log Z`` it gives."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, by_construction, check, issuer, recipe_of, rounding
from cumulant.errors import CertificateError
from cumulant.graphical.messages.answers import Approximation
from cumulant.graphical.messages.incidence import Incidence, check_settings, normalise, tables_of
from cumulant.graphical.messages.mean_field_kernels import ascend, free_energy
from cumulant.graphical.messages.mean_field_newton import NewtonProblem
from cumulant.graphical.messages.simple_bounds import check_simple_bounds
from cumulant.graphical.structure import Structure
from cumulant.randomness import generator

_FAR = 30.0  # of the logarithm of a probability where Newton's method starts
_PRODUCT = "q is a product of distributions"
GIBBS = "Gibbs' inequality: log Z = E_q log f + H(q) + KL(q || p) >= E_q log f + H(q)"


@dataclass(frozen=True, eq=False)
class MeanField(Approximation):
    """A distribution ``q`` from a tractable class, and ``E_q <theta, T> + H(q) <= log Z``.

    Its `trace` is the bound after each sweep of the best start, which never falls; the bound holds whether it has
    `converged` or not. There is no `certificate` where it is minus infinity (``q`` has mass on impossible states).

    Attributes
    ----------
    bound : float
        The lower bound on ``log Z`` (of the states that agree with the evidence), rounding taken off.
    blocks : tuple of arrays
        The variables that ``q`` keeps together; single ones for naive mean field.
    q : tuple of arrays
        What the certificate is recomputed from: the distributions, or the log tables of the blocks.
    coordinates : tuple of arrays, or None
        For each free variable logarithms to which its distribution is proportional, with mean zero over its states
        (minus infinity where it is kept out of one): of a spin ``[-t, t]``, with its field ``t`` in the approximation.
        They come from the update and not from ``q``, so that they tell apart what is one in ``q``. None for blocks.
    """

    bound: float
    blocks: tuple[np.ndarray, ...]
    q: tuple[np.ndarray, ...]
    coordinates: tuple[np.ndarray, ...] | None = None

    @property
    def log_normaliser(self) -> float:
        """``sum_i log sum_x exp(coordinates_i(x))``, of spins ``sum_i log 2 cosh t_i``: the log-partition function of
        the approximation itself (Carbonetto 2009, (4.22)). It is no bound on that of the model.
        """
        if self.coordinates is None:
            raise ValueError("log_normaliser is of independent variables; blocks have tables and no coordinates")
        return math.fsum(float(np.logaddexp.reduce(each)) for each in self.coordinates)

    def __str__(self):
        end = "converged" if self.converged else "not converged"
        kept = f"{len(self.blocks)} blocks, " if any(block.size > 1 for block in self.blocks) else ""
        return f"log Z >= {self.bound:.6g}  ({kept}{len(self.trace)} sweeps, {end})"


def mean_field(
    model: Any,
    *,
    method: str = "coordinate",
    n_starts: int = 8,
    max_sweeps: int = 10_000,
    tol: float = 1e-10,
    rng: Any = 0,
) -> MeanField:
    """Naive mean field: ``q(x) = prod_i q_i(x_i)`` with a large ``F(q) = E_q <theta, T> + H(q)``.

    By coordinate ascent, ``log q_i(x_i) = sum_f E_q [theta_f | x_i] + const`` is the exact maximiser in ``q_i``, so
    that ``F`` rises at each update, without damping, and every value of it is a lower bound on ``log Z``. It has local
    maxima: the first start is the distribution by the factors of single variables alone, the others are random, and the
    best is kept.

    By Newton's method in the natural parameters of ``q``, those of all variables at once: a step along ``(tau I - hess
    F)^-1 grad F`` with the first shift ``tau`` of a list that makes the matrix positive definite, as long as Armijo's
    rule allows. ``F`` never falls, and converges quadratically near a maximum with negative definite Hessian; each step
    solves a dense system of as many rows as there are parameters. A start where all of ``q`` is as good as certain has
    a gradient of nearly zero, and stays where it is: the bound holds there too.

    Parameters
    ----------
    model : DiscreteModel
        With or without evidence, tables of any arity; impossible states (-inf) are kept out of ``q`` where that can be.
    method : str
        ``"coordinate"``, or ``"newton"``: for models of up to 4096 parameters without impossible states.
    n_starts : int
        How many starts.
    max_sweeps, tol : int, float
        Each start ends when no probability moves by more than `tol` in a sweep; by Newton's method (a step counts as a
        sweep), when no entry of the gradient is larger.
    rng : int, Generator or None
        For the random starts.

    References
    ----------
    Jordan, Ghahramani, Jaakkola, Saul (1999), "An introduction to variational methods for graphical models".

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> model = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
    >>> result = mean_field(model)
    >>> round(result.bound, 6), round(model.log_partition(), 6)
    (3.005327, 3.367531)
    >>> fields = [t[1] for t in result.coordinates]
    >>> np.round(fields, 4), round(result.log_normaliser, 4)
    (array([ 0.0878,  0.0337, -0.6787, -0.4785]), 3.1019)
    >>> newton = mean_field(model, method="newton")
    >>> len(newton.trace) < len(result.trace), bool(np.isclose(newton.bound, result.bound, rtol=1e-12))
    (True, True)
    >>> print(result.certificate)
    -log Z <= -3.00533  [deterministic, rounding ...]
      by Gibbs' inequality: log Z = E_q log f + H(q) + KL(q || p) >= E_q log f + H(q)
      = q is a product of distributions (by construction)
      ✓ q has no mass on impossible states (checked)
      ✓ the score of one state and the largest entries of all tables agree with the bound (checked: ...)
    """
    check_settings(n_starts=n_starts, max_sweeps=max_sweeps, tol=tol)
    checks.choice("method", method, ("coordinate", "newton"))
    structure, theta, free = tables_of(model)
    problem = NewtonProblem.of(structure, theta) if method == "newton" else None
    layout, draw = Incidence.of(structure), generator(rng)
    fields = _fields(layout, theta)
    best = None
    for start in range(n_starts):
        if start:  # distributions drawn uniformly from the simplex
            q = normalise(np.log(draw.standard_exponential(fields.size)), layout.node_starts)
        else:
            q = normalise(fields, layout.node_starts)
        if problem is None:
            trace, logs = np.empty(max_sweeps), np.empty(q.size)
            sweeps, change = ascend(q, logs, theta, max_sweeps, tol, trace, tuple(layout))
            trace = trace[:sweeps].copy()
        else:
            with np.errstate(divide="ignore"):
                logs, trace, change = problem.maximise(np.maximum(np.log(q), -_FAR), max_sweeps, tol)
            q = normalise(logs, layout.node_starts)
        value, size = free_energy(q, theta, tuple(layout))
        if best is None or value > best[0]:
            best = value, size, q, trace, bool(change <= tol), logs
    assert best is not None
    value, size, q, trace, converged, logs = best
    slack = slack_of_mean_field(layout, size) if value > -np.inf else 0.0
    certificate = lower_certificate(structure, theta, value, slack, _PRODUCT, recipe_of(certify_mean_field))
    single, bound = layout.split(q), float(np.nextafter(value - slack, -np.inf))
    marginals, alone = model._all_marginals(single), tuple(np.array([v]) for v in free)
    centred = tuple(each - np.mean(each[each > -np.inf]) for each in layout.split(logs))
    return MeanField(
        model, trace, certificate, marginals, beliefs_of(layout, q), converged, bound, alone, tuple(single), centred
    )


def lower_certificate(
    structure: Structure, theta: np.ndarray, value: float, slack: float, what: str, recipe: str
) -> Certificate | None:
    """The certificate of a lower bound on ``log Z``, as an upper bound on its negative; None where that is infinite."""
    if value == -np.inf:
        return None
    assumptions = (
        by_construction(what),
        check(np.isfinite(value), "q has no mass on impossible states"),
        check_simple_bounds(structure, theta, value - slack, np.inf),
    )
    return Certificate("-log Z", -value, GIBBS, assumptions, slack=float(slack), recipe=recipe)


@issuer
def certify_mean_field(model: Any, result: MeanField) -> Certificate:
    """``-log Z <= -F(q)`` from the tables of the model and ``result.q``, one factor at a time, by exact summation."""
    structure, theta, free = model.restricted()
    if len(result.q) != free.size:
        raise CertificateError(f"q is about {len(result.q)} variables, the model has {free.size} free ones")
    terms = [-p[p > 0] * np.log(p[p > 0]) for p in result.q]
    for p in result.q:
        check(abs(math.fsum(p) - 1.0) <= rounding(4.0 * p.size) and (p >= 0).all(), _PRODUCT, "its probabilities")
    for f in range(structure.n_factors):
        weight, possible = np.ones(()), np.ones((), bool)
        for v in structure.scope(f):
            weight = np.multiply.outer(weight, result.q[v])
            possible = np.logical_and.outer(possible, result.q[v] > 0)
        terms.append(weight[possible] * structure.table(f, theta)[possible])
    flat = np.concatenate([*terms, np.zeros(0)])
    slack = slack_of_mean_field(Incidence.of(structure), float(np.abs(flat).sum()))
    found = lower_certificate(structure, theta, math.fsum(flat), slack, _PRODUCT, recipe_of(certify_mean_field))
    if found is None:
        raise CertificateError("no certificate: q has mass on impossible states")
    return found


def beliefs_of(layout: Incidence, q: np.ndarray) -> np.ndarray:
    """The table of each factor when its nodes are independent, one after the other."""
    out = np.ones(int(layout.table_starts[-1]))
    for k, f in enumerate(layout.factor.tolist()):
        at = layout.places[layout.place_starts[k] : layout.place_starts[k + 1]]
        out[layout.table_starts[f] : layout.table_starts[f + 1]] *= q[layout.node_starts[layout.node[k]] + at]
    return out


def _fields(layout: Incidence, theta: np.ndarray) -> np.ndarray:
    """The tables of single variables, added up for each of them; finite, as a start may be anywhere."""
    fields = np.zeros(int(layout.node_starts[-1]))
    for f in np.flatnonzero(np.diff(layout.first) == 1).tolist():
        i = layout.node[layout.first[f]]
        own = theta[layout.table_starts[f] : layout.table_starts[f + 1]]
        fields[layout.node_starts[i] : layout.node_starts[i + 1]] += np.where(np.isneginf(own), -50.0, own)
    return fields


def slack_of_mean_field(layout: Incidence, size: float) -> float:
    """What rounding may add to one value of the bound, with terms of this `size` together: by the additions and
    multiplications, and by distributions that do not quite add up to one, of which the entropy sees the difference.
    """
    terms = float(layout.table_starts[-1] + layout.node_starts[-1] + np.diff(layout.first).max(initial=0))
    return rounding(size, terms=terms) + rounding(float(layout.node_starts[-1]), terms=4.0)
