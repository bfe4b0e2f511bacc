"""The inverse of the mean map of a discrete family: maximum likelihood, and why there may be none."""

from dataclasses import replace
from typing import Any

import numpy as np

from cumulant.errors import DomainError
from cumulant.families.finite import outside_of_hull
from cumulant.graphical.exact.covariance import states_of
from cumulant.graphical.exact.elimination import Elimination
from cumulant.optim import LBFGS, NegativeLogLikelihood
from cumulant.optim.problems.likelihoods import newton_decrement

_MAX_STEPS = 100
_FEW_STATES = 2048  # up to which a linear programme is asked why there is no estimate
_IN_HULL = 1e-9
_START_L2 = 1e-6
_TOO_SMALL = 1e-12  # a decrease, relative to the value, whose digits are mostly rounding


def solve_mean_equation(family: Any, mu: np.ndarray) -> np.ndarray:
    """The ``theta`` of least norm with ``grad A(theta) = mu``, by L-BFGS and then Newton steps along
    `family.directions`.

    The answer is one at which the Newton decrement proves that a minimiser of ``A(theta) - <theta, mu>`` exists; it is
    then at rounding level. `DomainError` gives the reason where there is none.
    """
    basis = family.directions()
    off = mu - family.to_mean(np.zeros(family.dim))
    outside = off - basis @ (basis.T @ off)
    if np.linalg.norm(outside) > _IN_HULL * (1.0 + np.linalg.norm(mu)):
        at = int(np.abs(outside).argmax())
        raise DomainError(
            f"mean parameter of {family} must be in the affine hull of the statistics: tables must add up to one and "
            f"agree where they share variables; got {mu[at]:.6g} at index {at}, off by {outside[at]:.3g}"
        )
    _refuse_extremes(family, mu)
    # The penalty keeps the start finite where there is no estimate.
    solver, problem = LBFGS(), NegativeLogLikelihood(family, mu, _START_L2)
    theta = solver.step(problem, solver.init(problem, np.zeros(family.dim), None)).x
    problem = replace(problem, l2=0.0)
    theta = basis @ (basis.T @ theta)
    value, best, smallest = float(problem.value(theta)), None, np.inf
    for _ in range(_MAX_STEPS):
        found = newton_decrement(family, mu, theta)
        if np.isinf(found.decrement):
            break  # the Fisher information is singular but for rounding
        if np.isfinite(found.upper):
            if not found.decrement < smallest / 2:
                break  # rounding is all that is left
            best, smallest = theta, found.decrement
            if found.decrement**2 < _TOO_SMALL * (1.0 + abs(value)):
                # Values no longer tell steps apart: the whole step, which the next decrement judges.
                theta = theta + found.direction
                value = float(problem.value(theta))
                continue
        for size in 0.5 ** np.arange(30.0):
            trial = theta + size * found.direction
            after = float(problem.value(trial))
            if after <= value - 1e-4 * size * found.decrement**2 + 1e-15 * (1.0 + abs(value)):
                break
        else:
            break  # no step decreases the objective beyond its rounding
        theta, value = trial, after
    if best is None:
        raise DomainError(f"mean parameter of {family} {_reason(family, mu, theta)}")
    return best


def _refuse_extremes(family: Any, mu: np.ndarray) -> None:
    """A statistic whose mean is its largest or smallest value, table by table, is certain."""
    starts = family.structure.table_starts
    if family.design is None:
        sizes = np.diff(starts)
        low, high = np.zeros(family.dim), np.repeat(np.where(sizes > 1, 1.0, np.inf), sizes)
    else:
        dense = family.design.toarray()
        low = np.minimum.reduceat(dense, starts[:-1], axis=0).sum(axis=0)
        high = np.maximum.reduceat(dense, starts[:-1], axis=0).sum(axis=0)
    bad = (high > low) & ((mu <= low) | (mu >= high))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DomainError(
            f"mean parameter of {family} must be inside the marginal polytope; statistic {at} has mean {mu[at]:.6g}, "
            f"and its values reach from {low[at]:g} to {high[at]:g}: it would be certain, and theta infinite"
        )


def _reason(family: Any, mu: np.ndarray, theta: np.ndarray) -> str:
    """Why the Newton steps towards `mu` did not end."""
    rule = "must be inside the marginal polytope"
    size = float(np.linalg.norm(theta))
    direction = theta / size if size > 0 else theta
    structure, tables, left = family.structure.restrict(family.log_tables(direction), {})
    top = Elimination.of(structure, tables).best(np.ones(left.size, bool))[0]
    if size > 0 and float(direction @ mu) >= top:
        return f"{rule}; along a direction v it has <v, mu> = {direction @ mu:.6g}, and no state more than {top:.6g}"
    if family.structure.n_states() <= _FEW_STATES:
        why = outside_of_hull(family.statistics(family.values(states_of(family.structure))), mu)
        if why:
            return f"{rule}; {why}"
    return (
        f"{rule}; it is on the boundary, outside, or too near to it to tell: where Newton's method ends |theta| "
        f"is {size:.3g}, and nothing proves that an estimate exists"
    )
