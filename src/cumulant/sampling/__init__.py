"""What every sampler shares: draws of several chains, and the diagnostics that say how much they are worth."""

from cumulant.sampling.diagnostics import effective_sample_size, split_r_hat
from cumulant.sampling.draws import Draws

__all__ = ["Draws", "effective_sample_size", "split_r_hat"]
