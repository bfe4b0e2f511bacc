"""Random normal distributions, by the prior of appendix 4.F."""

import numpy as np

from cumulant import checks, families
from cumulant.causal.matrices import times


def sample_marginals(
    K: int, batch: tuple[int, ...], generator: np.random.Generator, n0: float | None = None, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Shifts and precisions of normal distributions by the prior of `sample_normal_reference`."""
    n0 = 2 * K + 2 if n0 is None else checks.positive("n0", n0)
    if n0 <= K - 1:
        raise ValueError(f"n0 must be more than K - 1 = {K - 1}, as degrees of freedom of a Wishart; got {n0}")
    wishart, n = families.Wishart(K), int(np.prod(batch))
    drawn = wishart.sample(wishart.natural(dof=float(n0), scale=scale / K * np.eye(K)), n, rng=generator)
    precision = np.asarray(drawn).reshape(*batch, K, K)
    standard = generator.standard_normal((*batch, K))
    return times(np.linalg.cholesky(precision), standard) / np.sqrt(n0), precision
