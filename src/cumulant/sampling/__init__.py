"""What every sampler shares: targets, draws, the loop over chains, resampling, annealing paths, diagnostics.

`sample(sampler, target, n)` runs any sampler on any target it can handle: `RandomWalk`, `MALA` and `HMC` on a `Target`,
the samplers of `graphical` on its models.
"""

from cumulant.sampling.annealing import (
    GeometricPath,
    annealed_importance_sampling,
    lower_from_estimates,
    next_temperature,
)
from cumulant.sampling.chains import sample
from cumulant.sampling.diagnostics import effective_sample_size, log_mean_exp, split_r_hat, weighted_sample_size
from cumulant.sampling.draws import Draws
from cumulant.sampling.hamiltonian import HMC
from cumulant.sampling.langevin import MALA
from cumulant.sampling.pareto import ParetoFit, pareto_shape
from cumulant.sampling.protocol import Sampler
from cumulant.sampling.random_walk import RandomWalk
from cumulant.sampling.resampling import resample
from cumulant.sampling.target import Target
from cumulant.sampling.transforms import ConstrainedTarget, constrained

__all__ = [
    "HMC",
    "MALA",
    "ConstrainedTarget",
    "Draws",
    "GeometricPath",
    "ParetoFit",
    "RandomWalk",
    "Sampler",
    "Target",
    "annealed_importance_sampling",
    "constrained",
    "effective_sample_size",
    "log_mean_exp",
    "lower_from_estimates",
    "next_temperature",
    "pareto_shape",
    "resample",
    "sample",
    "split_r_hat",
    "weighted_sample_size",
]
