"""The bias-variance split of the divergence in Bregman geometry, on a sample of estimates.

With ``theta~ = E theta_n``: ``E KL(theta* || theta_n) = KL(theta* || theta~) + E KL(theta~ || theta_n)``. The centre
is the mean of the *natural* parameters. The identity is exact (Le Priol 2021, theorem 5.5.2), also for the mean over
a finite sample of estimates. Closed forms: `exact.bias_variance_gamma`, `normal1d.risk_map_normal1d`,
`bias_variance_quadratic`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.families.base import ExponentialFamily
from cumulant.families.risk._arguments import grid, natural_parameter, whole
from cumulant.families.risk.exact import Split
from cumulant.families.risk.monte_carlo import divergences, simulated_estimates
from cumulant.families.statistics import ConjugatePrior
from cumulant.randomness import generator


@dataclass(frozen=True)
class BiasVariance:
    """``total = bias + variance`` over simulated data sets; `centre` is the mean natural parameter ``theta~``.

    `total_standard_error` is that of the total, over the trials.
    """

    total: float
    bias: float
    variance: float
    centre: np.ndarray
    total_standard_error: float


def bias_variance(
    family: ExponentialFamily,
    theta_star: Any,
    n: int,
    prior: ConjugatePrior | None = None,
    *,
    trials: int = 10_000,
    rng: Any = None,
) -> BiasVariance:
    """Simulate the split of ``E KL(truth || estimate)`` into bias and variance.

    Where some data set has no finite estimate, its natural parameter is off at infinity: all three are infinite, and
    so is the centre.

    Examples
    --------
    >>> from cumulant.families import ConjugatePrior, Normal
    >>> fam = Normal()
    >>> theta, prior = fam.natural(mean=0.0, variance=1.0), ConjugatePrior([1.0, 2.0], strength=1.0)
    >>> split = bias_variance(fam, theta, 5, prior, trials=500, rng=0)
    >>> abs(split.total - split.bias - split.variance) < 1e-12
    True
    """
    theta_star = natural_parameter(family, theta_star)
    estimates = simulated_estimates(family, theta_star, whole("n", n), prior, whole("trials", trials), generator(rng))
    centre = np.mean(estimates, axis=0)
    if not np.all(np.isfinite(centre)):
        return BiasVariance(np.inf, np.inf, np.inf, np.full(family.dim, np.inf), np.inf)
    kl = divergences(family, theta_star, estimates)
    return BiasVariance(
        total=float(np.mean(kl)),
        bias=float(divergences(family, theta_star, centre[None])[0]),
        variance=float(np.mean(divergences(family, centre, estimates))),
        centre=centre,
        total_standard_error=float(np.std(kl, ddof=1) / np.sqrt(kl.size)) if kl.size > 1 else np.inf,
    )


def bias_variance_quadratic(n: Any, n0: Any, d: Any, distance: Any) -> Split:
    """The split where ``A*`` is quadratic: bias ``n0^2 D^2 / (2 (n + n0)^2)``, variance ``n d / (2 (n + n0)^2)``.

    See `exact.risk_map_quadratic` for the arguments.

    >>> bias_variance_quadratic(3, 1, 2, 1.0)
    Split(total=np.float64(0.21875), bias=np.float64(0.03125), variance=np.float64(0.1875))
    """
    n, n0, d, distance = grid(positive=("d",), n=n, n0=n0, d=d, distance=distance)
    total = n + n0
    some = total > 0
    safe = np.where(some, total, 1.0)
    bias = np.where(some, 0.5 * (n0 / safe * distance) ** 2, np.inf)
    variance = np.where(some, 0.5 * n * d / safe**2, 0.0)
    return Split((bias + variance)[()], bias[()], variance[()])
