"""The bridge of conditional mean field: from mean field to an Ising model through ever finer partitions."""

import dataclasses
import functools
from typing import Any

import numpy as np

from cumulant.graphical import Ising, mean_field
from cumulant.graphical.samplers.gibbs import IsingArrays
from cumulant.particles.bridges import Population, Start, Step, magnitude_of
from cumulant.particles.conditional.block_gibbs import BlockGibbs, sweep
from cumulant.particles.conditional.objective import ConditionalObjective, Parameters
from cumulant.particles.conditional.partitions import Blocks
from cumulant.particles.conditional.solver import fit_conditional_mean_field
from cumulant.particles.engine import NO_SPREAD, Outcome


@dataclasses.dataclass(frozen=True, eq=False)
class ConditionalMeanField:
    """The bridge of `conditional_mean_field`: see there.

    Attributes
    ----------
    model : Ising
    partitions : tuple of partitions
        Each a refinement of the one before; the last has single spins.
    first : Parameters
        Of the product distribution that it begins with.
    temperatures : int
        Steps between two approximations.
    path : tuple of Parameters, optional
        The approximations, one for each partition. Without them, they are fitted to the particles on the way.
    designed_by : whole numbers
        The seeds of the particles that the path was fitted to.
    """

    model: Ising
    partitions: tuple[Blocks, ...]
    first: Parameters
    temperatures: int = 100
    free_edges: bool = False
    sweeps: int = 1
    backward: str = "mixture"
    path: tuple[Parameters, ...] | None = None
    n_jobs: int | None = None
    designed_by: tuple[int, ...] = ()

    @functools.cached_property
    def spins(self) -> IsingArrays:
        """The spins without evidence."""
        return IsingArrays.of(self.model)

    @functools.cached_property
    def given(self) -> np.ndarray:
        """The spins of the evidence; zero for the others."""
        out = np.zeros(self.model.n_variables, np.int8)
        for v, spin in self.model.evidence.items():
            out[v] = spin
        return out

    @functools.cached_property
    def kernels(self) -> tuple[BlockGibbs, ...]:
        """Block Gibbs on each of the partitions."""
        return tuple(BlockGibbs(self.spins.edges, blocks, self.n_jobs) for blocks in self.partitions)

    @property
    def fixed(self) -> bool:
        """Whether the approximations are given, and not fitted to the particles."""
        return self.path is not None

    @property
    def exact(self) -> bool:
        """Whether there is no coupling, so that no weight differs from another."""
        return float(np.abs(self.spins.couplings).sum()) <= NO_SPREAD

    @property
    def magnitude(self) -> float:
        """Of the terms of the model."""
        return magnitude_of(self.model)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The names of the variables."""
        return self.model.shapes

    @property
    def n_steps(self) -> int:
        """How many steps the bridge has."""
        return len(self.partitions) * self.temperatures

    @property
    def target(self) -> Parameters:
        """The parameters of the free spins, given the evidence."""
        return Parameters(self.spins.fields, self.spins.couplings)

    def begin(self, n: int, seed: int) -> Start:
        """Independent spins: ``log Z_0 = sum_i log 2 cosh t_i``."""
        t = self.first.fields
        uniform = np.random.default_rng([seed, 0, 0]).random((n, t.size))
        x = np.where(2.0 * uniform < 1.0 + np.tanh(t), 1, -1).astype(np.int8)
        return Start(x, float(self.spins.constant + np.logaddexp(t, -t).sum()), (self.first,))

    def advance(self, population: Population) -> Step:
        """Where an approximation is reached, the next one is fitted; then one step towards it."""
        stage, place = divmod(population.step - 1, self.temperatures)
        known: tuple[Parameters, ...] = population.memory
        if place == 0:
            known = (*known, self._next(stage, population))
        old, new = (known[-2].towards(known[-1], k / self.temperatures) for k in (place, place + 1))
        kernel, x = self.kernels[stage], population.x
        if self.backward == "mixture":
            x = kernel.redraw(x, new, population.seed, population.step)
        log_weights = kernel.log_weights(x, old, new, self.backward)
        record = {"n_blocks": len(self.partitions[stage]), "distinct": distinct(x)}
        return Step(x, log_weights, population.step == self.n_steps, known, record)

    def _next(self, stage: int, population: Population) -> Parameters:
        if self.path is not None:
            return self.path[stage]
        blocks = self.partitions[stage]
        found = fit_conditional_mean_field(
            ConditionalObjective(
                self.spins, blocks, population.x.astype(np.float64), population.weights, self.free_edges
            )
        )
        if len(blocks) == self.spins.n:  # single spins are the target itself
            assert all(np.array_equal(a, b) for a, b in zip(found, self.target, strict=True))
        return found

    def move(self, population: Population) -> Any:
        """Sweeps that leave the current distribution as it is, after the move of the reversal kernel where that is
        not part of the weights.
        """
        x, (stage, place) = population.x, divmod(population.step - 1, self.temperatures)
        old, new = population.memory[-2:]
        at = old.towards(new, (place + 1) / self.temperatures)
        if self.backward == "reversal":
            x = self.kernels[stage].redraw(x, at, population.seed, population.step)
        if self.sweeps:
            begin = self.sweeps * population.step
            x = sweep(x, self.kernels[stage].graph, at, self.sweeps, population.seed, begin, self.n_jobs)
        return x

    def frozen(self, outcome: Outcome) -> "ConditionalMeanField":
        """The same bridge with the approximations of a finished run."""
        return dataclasses.replace(self, path=outcome.population.memory[1:], designed_by=(outcome.population.seed,))

    def kinds(self, population: Population) -> dict[str, float]:
        """None but the product of mean weights."""
        return {}

    def draws(self, x: np.ndarray) -> np.ndarray:
        """All spins, those of the evidence among them."""
        out = np.tile(self.given, (len(x), 1))
        out[:, self.spins.free] = x
        return out


def product_start(spins: IsingArrays, kind: str) -> Parameters:
    """Independent spins: those of the best of eight runs of mean field, or uniform ones."""
    fields = np.zeros(spins.n)
    if kind == "mean_field":
        free = Ising(spins.edges, spins.couplings, spins.fields)
        p = mean_field(free, tol=1e-14).marginals
        mu, (i, j) = p[:, 1] - p[:, 0], spins.edges.T
        # The argument of the tanh, which is finite where a spin is all but certain.
        fields = spins.fields.copy()
        np.add.at(fields, i, spins.couplings * mu[j])
        np.add.at(fields, j, spins.couplings * mu[i])
    return Parameters(fields, np.zeros(len(spins.edges)))


def distinct(x: np.ndarray) -> int:
    """The number of different rows."""
    packed = np.packbits(x > 0, axis=1)
    return np.unique(packed.view(f"V{packed.shape[1]}")).size
