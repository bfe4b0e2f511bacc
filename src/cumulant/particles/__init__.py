"""Particles: sequential Monte Carlo along bridges of distributions, from one that can be sampled to the target.

One engine (`run`) serves every bridge: it weighs, keeps the evidence, resamples and records.
"""

from cumulant.particles.bridges import Bridge, Population, Start, Step
from cumulant.particles.engine import Outcome, Settings, run_population
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
    "Bridge",
    "IsingFamily",
    "Outcome",
    "OverlapDistribution",
    "ParameterPath",
    "ParticleResult",
    "Population",
    "Safeguard",
    "Settings",
    "Start",
    "Step",
    "TwoBlockFamily",
    "VariationalBridge",
    "VariationalResult",
    "check_family",
    "free_energy",
    "has_both_modes",
    "kl_gradient",
    "least_steps_between_resamplings",
    "overlap_distribution",
    "run",
    "run_population",
    "safeguarded_step",
    "up_share",
    "variational_smc",
    "weight_model",
]
