"""Particles: sequential Monte Carlo along bridges of distributions, from one that can be sampled to the target.

One engine (`run`) serves every bridge: it weighs, keeps the evidence, resamples and records.
"""

from cumulant.particles.annealing import anneal
from cumulant.particles.bridges import Bridge, Population, SeveralSteps, Start, Step
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
from cumulant.particles.spins import OverlapDistribution, free_energy, has_both_modes, overlap_distribution, up_share
from cumulant.particles.variational.bridge import VariationalBridge
from cumulant.particles.variational.directions import kl_gradient
from cumulant.particles.variational.family import TwoBlockFamily, check_family
from cumulant.particles.variational.lattice import IsingFamily
from cumulant.particles.variational.method import VariationalResult, variational_smc
from cumulant.particles.variational.path import ParameterPath
from cumulant.particles.variational.safeguards import (
    AllowedStep,
    Safeguard,
    least_steps_between_resamplings,
    safeguarded_step,
    weight_model,
)

__all__ = [
    "AllowedStep",
    "BlockGibbs",
    "Bridge",
    "ConditionalMeanField",
    "ConditionalObjective",
    "IsingFamily",
    "Outcome",
    "OverlapDistribution",
    "ParameterPath",
    "Parameters",
    "ParticleResult",
    "Population",
    "Safeguard",
    "Settings",
    "SeveralSteps",
    "Start",
    "Step",
    "TwoBlockFamily",
    "VariationalBridge",
    "VariationalResult",
    "anneal",
    "check_family",
    "check_refinement",
    "conditional_mean_field",
    "conditional_means",
    "fit_conditional_mean_field",
    "free_energy",
    "halve",
    "has_both_modes",
    "hot_coupling",
    "kl_gradient",
    "least_steps_between_resamplings",
    "overlap_distribution",
    "peel",
    "run",
    "run_population",
    "safeguarded_step",
    "split_largest",
    "up_share",
    "variational_smc",
    "weight_model",
]
