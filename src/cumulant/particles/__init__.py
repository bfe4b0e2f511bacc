"""Particles: sequential Monte Carlo along bridges of distributions, from one that can be sampled to the target.

One engine (`run`) serves every bridge: it weighs, keeps the evidence, resamples and records.
"""

from cumulant.particles.annealing import anneal
from cumulant.particles.bridges import Bridge, Population, Start, Step
from cumulant.particles.conditional.block_gibbs import BlockGibbs
from cumulant.particles.conditional.bridge import ConditionalMeanField
from cumulant.particles.conditional.means import conditional_means
from cumulant.particles.conditional.objective import ConditionalObjective, Parameters
from cumulant.particles.conditional.partitions import check_refinement, halve, peel, split_largest
from cumulant.particles.conditional.sampler import conditional_mean_field
from cumulant.particles.conditional.solver import fit_conditional_mean_field
from cumulant.particles.engine import Outcome, Settings, run_population
from cumulant.particles.hot_coupling import hot_coupling
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult

__all__ = [
    "BlockGibbs",
    "Bridge",
    "ConditionalMeanField",
    "ConditionalObjective",
    "Outcome",
    "Parameters",
    "ParticleResult",
    "Population",
    "Settings",
    "Start",
    "Step",
    "anneal",
    "check_refinement",
    "conditional_mean_field",
    "conditional_means",
    "fit_conditional_mean_field",
    "halve",
    "hot_coupling",
    "peel",
    "run",
    "run_population",
    "split_largest",
]
