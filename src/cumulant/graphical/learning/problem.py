"""Learning a discrete model: the data as mean statistics, the regularised likelihood, and the set to stay in."""

import copy
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cumulant.certificates import Certificate
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.learning.fast_set import CouplingSet, TableSet, fast_set
from cumulant.graphical.learning.planner import Schedule
from cumulant.graphical.learning.statistics_ball import statistics_ball
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising

__all__ = ["Fit", "LearningProblem", "Run"]


@dataclass(frozen=True)
class Run:
    """What, beside the problem and the schedule, a run by sampling was: enough to do it again.

    Attributes
    ----------
    seed : int
        Of every draw.
    delta : float
        The probability of missing what is certified.
    smoothness : float or None
        ``L`` where it was given instead of proved.
    errors : array (iterations + 1,)
        How far each projection can have been from the true one.
    """

    seed: int
    delta: float
    smoothness: float | None
    errors: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Fit:
    """A model that was learnt, and what is known about it.

    Attributes
    ----------
    model : DiscreteModel
    certificate : Certificate or None
        What is guaranteed, and about which objective; None where nothing can be: then `refusal` says why.
    method : str
    refusal : str
    schedule : Schedule or None
        Iterations, chains and updates, of methods that sample.
    path : array (iterations + 1, parameters) or None
        The iterates of methods that sample, from the start.
    run : Run or None
        Of ``"mcmc"``: the seed and settings by which `replay` does it again.
    value : float
        The objective where it was computed, else NaN: sampling does not compute the likelihood.
    seconds : float
    """

    model: DiscreteModel
    certificate: Certificate | None
    method: str
    refusal: str = ""
    schedule: Schedule | None = None
    path: np.ndarray | None = None
    run: Run | None = None
    value: float = math.nan
    seconds: float = 0.0

    def __str__(self):
        lines = [f"{self.method}: {self.model}, {self.seconds:.2g} s"]
        if self.schedule is not None:
            s = self.schedule
            lines.append(
                f"  {s.iterations} iterations of {s.chains} chains of {s.updates} updates: {s.work:.3g} updates in all"
            )
        if not math.isnan(self.value):
            lines.append(f"  objective {self.value:.10g}")
        lines.append("  " + (self.refusal if self.certificate is None else str(self.certificate)).replace("\n", "\n  "))
        return "\n".join(lines)


@dataclass(frozen=True)
class LearningProblem:
    """Minimise ``f(theta) = A(theta) - <theta, mean> + l2/2 |theta|^2`` over ``theta`` in a set.

    `model` gives the family; `free` are the parameters that are learnt (not those of single variables, where there are
    no fields), the others are zero. ``|T(x) - c| <= R`` for those that are free, and some ``c``.
    """

    model: DiscreteModel
    mean: np.ndarray
    l2: float
    free: np.ndarray
    mixing: FastMixing | None
    data: np.ndarray | None = None

    @property
    def n(self) -> int:
        """How many variables there are."""
        return self.model.n_variables

    @property
    def edges(self) -> np.ndarray:
        """Of an Ising model."""
        assert isinstance(self.model, Ising)
        return self.model.edges

    @cached_property
    def R(self) -> float:
        """The radius of a ball that holds the statistics of every state: see `statistics_ball`."""
        return statistics_ball(self.model.family, self.free)[1]

    @cached_property
    def fast_set(self) -> CouplingSet | TableSet | None:
        """The set to stay in, where there is one."""
        return None if self.mixing is None else fast_set(self.model, self.free, self.mixing)

    def full(self, theta: np.ndarray) -> np.ndarray:
        """All parameters from the free ones."""
        out = np.zeros(self.model.family.dim)
        out[self.free] = theta
        return out

    def bind(self, theta: np.ndarray) -> DiscreteModel:
        """The model with these free parameters."""
        new = copy.copy(self.model)
        new._bind(self.model.family, self.full(theta))
        return new

    def value_and_gradient(self, theta: np.ndarray, **options: Any) -> tuple[float, np.ndarray]:
        """``f`` and its gradient, exact."""
        value, mean = self.model.family.value_and_mean(self.full(theta), **options)
        gap = mean[self.free] - self.mean + self.l2 * theta
        return float(value - self.mean @ theta + 0.5 * self.l2 * theta @ theta), gap

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest point of the set, and how far from the true projection it can be."""
        return (theta, 0.0) if self.fast_set is None else self.fast_set.project(theta)

    def at_zero(self) -> np.ndarray:
        """The gradient at zero, where every state has the same probability."""
        sizes = np.diff(self.model.structure.table_starts)
        uniform = np.repeat(1.0 / sizes, sizes)
        return self.model.family.mean_of(uniform)[self.free] - self.mean

    def distance_from_zero(self) -> float:
        """A bound on ``|theta*|``: ``|grad f(0)| / l2`` by strong convexity, or the reach of the set; infinite where
        neither is known. Of tables, ``theta*`` is the optimum each of whose tables adds up to zero: there is one, as
        constants change no probability, and all steps from zero stay among such tables.
        """
        known = [math.inf]
        if self.l2 > 0:
            known.append(float(np.linalg.norm(self.at_zero())) / self.l2)
        if self.fast_set is not None:
            known.append(self.fast_set.reach())
        return min(known)
