"""Markov chains over discrete models: `Gibbs`, `SwendsenWang`, `Wolff`, `MultiSpin`, and perfect draws.

Each is a sampler in the sense of `cumulant.sampling.protocol`: settings, `init`, `step`, and `advance` for many sweeps
at once. ``sampling.sample(Gibbs("chromatic"), model, 1000)`` and ``model.sample(1000, method="chromatic")`` are the
same.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising, Potts
from cumulant.graphical.samplers.blocked import blocked_gibbs
from cumulant.graphical.samplers.cluster_samplers import ising_clusters, potts_clusters
from cumulant.graphical.samplers.coupling import perfect_draws
from cumulant.graphical.samplers.gibbs import LANES, IsingArrays, Run, ising_gibbs, table_gibbs
from cumulant.graphical.samplers.multi_spin import torus_gibbs
from cumulant.threads import in_parts

_SCANS = ("systematic", "random", "chromatic", "blocked")
METHODS = ("exact", *_SCANS, "multi_spin", "swendsen_wang", "wolff", "perfect")


class Program(NamedTuple):
    """A sampler's sweeps for one model: the variables they move, whether on spins -1 and +1 (else on states 0, 1, 2,
    ...), how many chains are best run at once, and what there is to report.
    """

    run: Run
    free: np.ndarray
    spins: bool = True
    group: int = 1
    report: dict[str, float] = {}  # noqa: RUF012  (never changed)


class DiscreteChains(NamedTuple):
    """Chains over a discrete model: the variables that move, all states with the evidence, and the sweeps done."""

    x: np.ndarray
    states: np.ndarray
    sweeps: int
    seed: int
    program: Program


class CompiledSampler(ABC):
    """`init`, `step` and `advance` from a program for the target, whose states are those that users see."""

    backend: ClassVar[str] = "host"
    n_jobs: int | None = None

    @abstractmethod
    def program(self, model: Any, chains: int) -> Program:
        """The sweeps of a model."""

    def init(self, model: Any, x0: Any, rng: Any) -> DiscreteChains:
        """Chains at ``x0``, one row each."""
        x = np.array(x0)
        return DiscreteChains(x, x, 0, randomness.seed(rng), self.program(model, len(x)))

    def step(self, model: Any, state: DiscreteChains) -> DiscreteChains:
        """One sweep of every chain, in place."""
        return self.advance(model, state, 0, 1, 1)[0]

    def advance(
        self, model: Any, state: DiscreteChains, n: int, burn_in: int, thin: int
    ) -> tuple[DiscreteChains, np.ndarray]:
        """``burn_in + n * thin`` sweeps in place, and the `n` draws of each chain."""
        x, run, group = state.x, state.program.run, state.program.group
        chains, sweeps = len(x), burn_in + n * thin
        if state.sweeps + sweeps >= 2**32 or (state.sweeps + sweeps) * max(x.shape[1], 1) >= 2**63:
            raise ValueError(f"burn_in + n * thin must be below 2**32 sweeps; got {state.sweeps + sweeps}")
        found = np.empty((chains, n, x.shape[1]), x.dtype)
        if x.shape[1] and sweeps:

            def work(first, last):
                for start in range(first * group, min(last * group, chains), group):
                    some = slice(start, min(start + group, chains))
                    run(x[some], found[some], state.sweeps, burn_in, thin, state.seed, start)

            in_parts(work, -(-chains // group), self.n_jobs)
        return state._replace(sweeps=state.sweeps + sweeps), self.values(model, state, found)

    def values(self, model: Any, state: DiscreteChains, found: np.ndarray) -> np.ndarray:
        """The draws as users see them."""
        return found

    def report(self, state: DiscreteChains) -> dict[str, float]:
        """What the settings of the draws say besides the seed."""
        return state.program.report


class DiscreteSampler(CompiledSampler):
    """The same for a `DiscreteModel`: variables with evidence do not move, and values are coded as states."""

    def init(self, model: Any, x0: Any, rng: Any) -> DiscreteChains:
        """Chains at the values ``x0`` ``(chains, variables)``; evidence overrides them."""
        states = np.array(model.family.states(x0))
        for v, x in model._evidence.items():
            states[:, v] = x
        program = self.program(model, len(states))
        x = 2 * states[:, program.free] - 1 if program.spins else states[:, program.free]
        x = np.ascontiguousarray(x, np.int8 if program.spins else np.int64)
        return DiscreteChains(x, states, 0, randomness.seed(rng), program)

    def values(self, model: Any, state: DiscreteChains, found: np.ndarray) -> np.ndarray:
        """The draws with the variables that do not move, as data have them."""
        free, spins = state.program.free, state.program.spins
        if free.size < model.structure.n_variables:
            whole = np.repeat(state.states[:, None], found.shape[1], axis=1)
            whole[:, :, free] = (found + 1) // 2 if spins else found
            return model.labels.numbers(whole)
        return found if spins else model.labels.numbers(found)


@dataclass(frozen=True)
class Gibbs(DiscreteSampler):
    """Gibbs sampling: a variable, or a forest of them, is drawn given the rest.

    Parameters
    ----------
    scan : str
        ``"systematic"`` (every variable in order), ``"random"`` (as many uniformly drawn variables as there are; the
        scan of the mixing-time theorems, reversible), ``"chromatic"`` (one colour of a colouring after the other) or
        ``"blocked"`` (one forest after the other, each drawn jointly).
    n_jobs : int, optional
        Threads; the draws do not depend on it.

    Examples
    --------
    >>> from cumulant import sampling
    >>> from cumulant.graphical import Ising, grid
    >>> model = Ising(grid(3, 3), 0.3)
    >>> draws = sampling.sample(Gibbs("chromatic"), model, 500, rng=0)
    >>> bool((draws.values == model.sample(500, rng=0, method="chromatic").values).all())
    True
    """

    scan: str = "systematic"
    n_jobs: int | None = None

    def __post_init__(self):
        if self.scan not in _SCANS:
            raise ValueError(f"scan must be one of {', '.join(map(repr, _SCANS))}; got {self.scan!r}")

    def program(self, model: Any, chains: int) -> Program:
        """The sweeps of a model."""
        if isinstance(model, Ising) and self.scan != "blocked":
            arrays = IsingArrays.of(model)
            group = LANES if chains >= LANES and self.scan != "random" else 1
            return Program(ising_gibbs(arrays, self.scan), arrays.free, group=group)
        structure, tables, free = model.restricted()
        if np.isneginf(tables).any():
            raise DomainError(
                f"method={self.scan!r} needs every state to be possible: impossible states (-inf) may disconnect the "
                "states that the chain can reach; use method='exact'"
            )
        blocked = self.scan == "blocked"
        run = blocked_gibbs(structure, tables) if blocked else table_gibbs(structure, tables, self.scan)
        return Program(run, free, spins=False)


@dataclass(frozen=True)
class SwendsenWang(DiscreteSampler):
    """Bonds between neighbours that agree, then a new colour for every cluster (Swendsen and Wang 1987).

    For Ising models with any couplings, and Potts models with couplings that are not negative.
    """

    n_jobs: int | None = None

    method: ClassVar[str] = "swendsen_wang"

    def program(self, model: Any, chains: int) -> Program:
        """The sweeps of a model."""
        if isinstance(model, Ising):
            arrays = IsingArrays.of(model)
            return Program(ising_clusters(arrays, self.method), arrays.free)
        if not isinstance(model, Potts):
            raise DomainError(f"method={self.method!r} is for Ising and Potts models; got {type(model).__name__}")
        return Program(potts_clusters(model, self.method), model.restricted()[2], spins=False)


@dataclass(frozen=True)
class Wolff(SwendsenWang):
    """One cluster at a time, grown from a variable drawn uniformly (Wolff 1989). A sweep is one cluster.

    For Ising models with any couplings, and Potts models with couplings that are not negative and no fields.
    """

    method: ClassVar[str] = "wolff"


@dataclass(frozen=True)
class MultiSpin(DiscreteSampler):
    """Chequerboard sweeps of a uniform torus with 64 spins in a word; see `torus_gibbs` for what it takes.

    A decision has 24 random bits: the draws' ``settings["bias"]`` bounds the error of a probability.
    """

    n_jobs: int | None = None

    def program(self, model: Any, chains: int) -> Program:
        """The sweeps of a model."""
        if not isinstance(model, Ising):
            raise DomainError(f"method='multi_spin' is for Ising models; got {type(model).__name__}")
        run, bias = torus_gibbs(model)
        return Program(run, np.arange(model.n_variables), report={"bias": bias})


def sampler_of(method: str, n_jobs: int | None = None) -> Any:
    """The sampler that a method of `DiscreteModel.sample` names."""
    kinds = {"swendsen_wang": SwendsenWang, "wolff": Wolff, "multi_spin": MultiSpin}
    return kinds[method](n_jobs) if method in kinds else Gibbs(method, n_jobs)


def draw_perfectly(model: Any, n: int, rng: Any, **options: Any) -> np.ndarray:
    """`n` independent draws by coupling from the past; see `perfect_draws`."""
    if not isinstance(model, Ising):
        raise DomainError(f"method='perfect' is for Ising models; got {type(model).__name__}")
    arrays = IsingArrays.of(model)
    found = perfect_draws(arrays, n, randomness.seed(rng), **options)
    spins = model.labels.numbers(model.given_states(n))
    spins[:, arrays.free] = found
    return spins
