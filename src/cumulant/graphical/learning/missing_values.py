"""Learning from data with missing values: conditionals of what is known, summed over what is not."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from cumulant.certificates import Certificate
from cumulant.errors import CertificateError
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.learning.conditional_likelihood import ConditionalProblem, Objective
from cumulant.graphical.learning.missing_values_kernels import marginal_conditionals
from cumulant.graphical.samplers.gibbs import TableArrays
from cumulant.threads import in_parts

_LIMIT = 1024  # joint states of a variable and the missing ones around it


@dataclass(frozen=True)
class MarginalisedProblem(ConditionalProblem):
    """Minimise ``-mean over data of sum_i log p(x_i | x_known) + l2/2 |theta|^2`` over the known ``x_i``.

    ``p(x_i | x_known)`` is the conditional probability given all other known values of the observation, the missing
    ones summed out: those that are reached from ``i`` through missing ones matter, and are summed over exactly. Where
    that needs more than 1,024 joint states, the conditional is left out. Which ones are depends on the pattern of what
    is missing alone, so that at the true parameters the gradient has mean zero, as that of the pseudo-likelihood has,
    if values are missing completely at random. Sums inside a logarithm are not convex: nothing is certified.
    """

    convex: ClassVar[bool] = False

    @property
    def strong_convexity(self) -> float:
        """None is known."""
        return 0.0

    @cached_property
    def _unpenalised(self) -> Objective:
        assert self.data is not None
        return marginalised_likelihood(self.model.family, self.data)[0]

    @property
    def left_out(self) -> float:
        """How many conditionals of an observation are left out, on average."""
        assert self.data is not None
        return marginalised_likelihood(self.model.family, self.data)[1]

    def certify(self, theta: np.ndarray) -> Certificate:
        """Refused: there may be other minima."""
        raise CertificateError(
            "no certificate: with missing values the objective is not convex, and only its gradient is known to vanish "
            f"({self.left_out:.3g} conditionals of an observation are left out, on average)",
            "the objective is convex",
        )


def marginalised_likelihood(family: DiscreteFamily, data: np.ndarray) -> tuple[Objective, float]:
    """The objective of `MarginalisedProblem` without its penalty, with its gradient; and what is left out.

    `data` are values ``(observations, variables)``, NaN where one is missing.

    >>> from cumulant.graphical import Ising
    >>> family = Ising([(0, 1)], 0.0, [0.0, 0.0]).family
    >>> value, gradient = marginalised_likelihood(family, np.array([[1.0, np.nan], [1.0, -1.0]]))[0](np.zeros(3))
    >>> round(float(value / np.log(2)), 12)                    # three values are known, of two observations
    1.5
    """
    missing = np.isnan(data)
    known = np.where(missing, np.asarray(family.labels.numbers(np.zeros(data.shape, np.int64))), data)
    states = np.where(missing, -1, family.states(known))
    states, counts = np.unique(states, axis=0, return_counts=True)
    states, weights = np.ascontiguousarray(states), counts / counts.sum()
    structure = family.structure
    arrays = TableArrays.of(structure, np.zeros(int(structure.table_starts[-1])))

    def evaluate(theta):
        filled = arrays._replace(tables=np.ascontiguousarray(family.log_tables(theta)))

        def work(first, last):
            gradient = np.zeros(filled.tables.size)
            found = marginal_conditionals(states[first:last], weights[first:last], filled, _LIMIT, gradient)
            return *found, gradient

        parts = in_parts(work, len(states), None)
        gradient = np.sum([part[2] for part in parts], axis=0)
        return sum(part[0] for part in parts), family.mean_of(gradient), sum(part[1] for part in parts)

    def value_and_gradient(theta):
        value, gradient, _ = evaluate(theta)
        return float(value), gradient

    return value_and_gradient, float(evaluate(np.zeros(family.dim))[2])
