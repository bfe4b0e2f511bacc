"""Particles: sequential Monte Carlo along bridges of distributions, from one that can be sampled to the target.

One engine (`run`) serves every bridge: it weighs, keeps the evidence, resamples and records.
"""

from cumulant.particles.annealing import anneal
from cumulant.particles.bridges import Bridge, Population, Start, Step
from cumulant.particles.engine import Outcome, Settings, run_population
from cumulant.particles.hot_coupling import hot_coupling
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult

__all__ = [
    "Bridge",
    "Outcome",
    "ParticleResult",
    "Population",
    "Settings",
    "Start",
    "Step",
    "anneal",
    "hot_coupling",
    "run",
    "run_population",
]
