"""What a bridge is: the contract between the engine and every sequence of distributions it runs.

A **bridge** is a frozen dataclass of settings (a model among them) that leads particles from a distribution that can be
sampled to a target, through unnormalised ``f_0, f_1, ..., f_K``. It has

* ``begin(n, seed) -> Start``: exact draws of ``f_0``, and ``log Z_0``;
* ``advance(population) -> Step``: the next distribution and the logarithms of the weights that lead to it. Weights of
  the particles where they are (the backward kernel is the reversal of the move to come) leave ``x`` as it is; a bridge
  with weights after a move returns the moved ``x``;
* ``move(population) -> x``: transitions that leave the current distribution as it is, after resampling; may be none.
  Where particles are moved several times at a step, ``population.moves`` counts the moves before this one;
* ``kinds(population) -> dict``: further estimates of ``log Z``, such as a bound, by name; may be empty;
* ``draws(x) -> array``: the particles as users see them, ``(n, ...)``.

``fixed`` says whether the path is the same whatever the particles do. Only then ``E exp(log_z) = Z_K / Z_0 * Z_0``, and
only then a run supports a certificate. A step that looks at particles (temperatures chosen by their effective size, a
parameter moved along an estimated gradient) is not fixed, and may offer ``frozen(outcome)``, the bridge with the path
that a run designed, for runs with fresh particles. The engine refuses to run it with the seeds it has in
``designed_by``.

It may be able to take `SeveralSteps` at once.

Particles are any pytree whose leaves take an array of particles as an index: arrays with a row for each, or objects
with a layout of their own, which have a method ``join(others)`` where chains of particles are to be kept. `advance` and
`move` may change them in place: nobody keeps those of a step that is over.

Random numbers come from ``(population.seed, population.step)`` and nothing else: from the counters of compiled kernels,
or from ``population.generator(stream)``.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from cumulant.certificates import Assumption, assume
from cumulant.graphical.discrete_model import DiscreteModel


class Start(NamedTuple):
    """Exact draws of the first distribution: `x` (arrays with a row for each particle), ``log Z_0``, and what the
    bridge carries along that is not per particle.
    """

    x: Any
    log_z: float
    memory: Any = None


class Step(NamedTuple):
    """One step of a bridge: see `Bridge`. `record` is what the trace should say; `last` ends the run."""

    x: Any
    log_increments: np.ndarray
    last: bool
    memory: Any = None
    record: Mapping[str, float] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """Weighted particles on their way.

    Attributes
    ----------
    x : pytree of arrays
        With a row for each particle.
    log_weights : array (n,)
        Logarithms of weights that sum to one.
    log_z : float
        The estimate of the log-normaliser of the current distribution.
    step : int
        The number of the current distribution, from 0.
    seed : int
    memory : object
        What the bridge carries along.
    moves : int
        How often the particles have been moved at this step.
    """

    x: Any
    log_weights: np.ndarray
    log_z: float
    step: int
    seed: int
    memory: Any = None
    moves: int = 0

    @property
    def size(self) -> int:
        """The number of particles."""
        return self.log_weights.size

    @property
    def weights(self) -> np.ndarray:
        """Weights that sum to one."""
        return np.exp(self.log_weights)

    @property
    def ess(self) -> float:
        """``1 / sum w^2``."""
        return float(1.0 / np.sum(self.weights**2))

    def generator(self, stream: int = 0) -> np.random.Generator:
        """Random numbers of this step; streams are independent."""
        return np.random.default_rng([self.seed, self.step, stream])


@runtime_checkable
class Bridge(Protocol):
    """A sequence of distributions with the moves between them; see the head of this module.

    A bridge may have a property `exact`, true where the weights of all states are the same. Without it, particles that
    weigh the same are not believed to say what others would: see `Outcome.variance`. It may have a number `magnitude`,
    the sum of the sizes of its terms, where these can cancel and leave a small ``log Z``: rounding is theirs.
    """

    @property
    def fixed(self) -> bool:
        """Whether the path does not depend on the particles."""
        ...

    def begin(self, n: int, seed: int) -> Start:
        """`n` exact draws of the first distribution."""
        ...

    def advance(self, population: Population) -> Step:
        """The next distribution and the weights that lead to it."""
        ...

    def move(self, population: Population) -> Any:
        """Particles after transitions that leave the current distribution as it is."""
        ...

    def kinds(self, population: Population) -> dict[str, float]:
        """Further estimates of the target's log-normaliser at the end of a run."""
        ...

    def draws(self, x: Any) -> np.ndarray:
        """Particles as users see them."""
        ...


@runtime_checkable
class SeveralSteps(Protocol):
    """A bridge that can take several steps, with their resampling, in one compiled program."""

    def possible_at_once(self, population: Population) -> int:
        """How many steps from here, none of them the last; 0 where the next has to be taken by itself."""
        ...

    def several_steps(
        self, population: Population, points: np.ndarray, threshold: float
    ) -> tuple[Any, Iterable[tuple[Step, bool, np.ndarray]]]:
        """The particles after as many steps as `points` has rows, and for each step what `advance` would say (its `x`
        is not used), whether particles were resampled, which they are where the effective size falls below `threshold`,
        and their ancestors, at the `points` of the step (see `sampling.resampling.POINTS`).
        """
        ...


def magnitude_of(model: DiscreteModel) -> float:
    """The sum over the tables of a model of their largest finite entry in size, those of the evidence too: for an Ising
    model ``sum_i |h_i| + sum_e |J_e|``.
    """
    sizes = np.abs(model.family.log_tables(model.theta))
    sizes[~np.isfinite(sizes)] = 0.0
    return float(np.maximum.reduceat(sizes, model.structure.table_starts[:-1]).sum()) if sizes.size else 0.0


def on_the_word_of(part: Any, claim: str) -> tuple[Assumption, ...]:
    """What is assumed of a part of a bridge: nothing where it is of this package, whose tests stand for it."""
    if type(part).__module__.startswith("cumulant."):
        return ()
    return (assume(claim),)
