"""Random linear-Gaussian models, by the nearly symmetric prior of appendix 4.F."""

from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.causal.normal_model import NormalSCM
from cumulant.causal.normal_prior import sample_marginals


def sample_normal_reference(
    K: int, n: int, rng: Any = None, *, n0: float | None = None, cond_scale: float = 10.0, gain: float = 1.0
) -> NormalSCM:
    """`n` random models with `K` causes and `K` effects, by the nearly symmetric prior of appendix 4.F.

    The precision of the cause is Wishart with `n0` degrees of freedom (``2 K + 2`` by default) and scale ``I / K``, its
    shift ``N(0, precision / n0)``; those of the effect are the same with scale `cond_scale` ``I / K``; slopes are
    independent ``N(0, gain^2 / K)``. The source prints ``I / sqrt(K)`` as the covariance of the slopes: as the standard
    deviation it gives ``E tr S_X / K = K / (K + 1)`` and ``E tr S_Y / K = gain^2 K / (K + 1) + 1 / (K + 1)`` at
    ``cond_scale = K = 10``, the near symmetry that is asked for.

    >>> sample_normal_reference(3, 5, rng=0)
    NormalSCM(3 causes, 3 effects, batch of 5)
    """
    K, n, generator = checks.whole("K", K), checks.whole("n", n), randomness.generator(rng)
    checks.positive("cond_scale", cond_scale)
    checks.not_negative("gain", gain)
    shift, precision = sample_marginals(K, (n,), generator, n0)
    conditional_shift, conditional = sample_marginals(K, (n,), generator, n0, cond_scale)
    slope = generator.normal(0.0, gain / np.sqrt(K), (n, K, K))
    return NormalSCM(shift, precision, conditional @ slope, conditional_shift, conditional)
