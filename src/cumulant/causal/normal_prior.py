"""Random normal distributions, by the prior of appendix 4.F."""

import numpy as np

from cumulant import checks, families
from cumulant.causal.matrices import matvec


def sample_marginals(
    K: int, batch: tuple[int, ...], generator: np.random.Generator, n0: float | None = None, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Shifts and precisions of normal distributions by the prior of `sample_normal_reference`."""
    dof = 2.0 * K + 2.0 if n0 is None else float(checks.positive("n0", n0))
    if dof <= K - 1:
        raise ValueError(f"n0 must be more than K - 1 = {K - 1}, as degrees of freedom of a Wishart; got {dof:g}")
    wishart, n = families.Wishart(K), int(np.prod(batch))
    drawn = wishart.sample(wishart.natural(dof=dof, scale=scale / K * np.eye(K)), n, rng=generator)
    precision = np.asarray(drawn).reshape(*batch, K, K)
    standard = generator.standard_normal((*batch, K))
    return matvec(np.linalg.cholesky(precision), standard) / np.sqrt(dof), precision
