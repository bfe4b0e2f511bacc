"""The risk for large ``n``, and how large is large: ``d/(2n)``, its second-order form, and sample sizes."""

from typing import Any

import numpy as np

from cumulant.families.base import ExponentialFamily
from cumulant.families.risk._arguments import grid, natural_parameter
from cumulant.families.risk.exact import risk_map_quadratic
from cumulant.families.statistics import ConjugatePrior


def asymptote(d: Any, n: Any) -> Any:
    """``d/(2n)``, the limit of the risk of MLE and posterior mode with ``d`` parameters (Le Priol 2021, 5.23).

    ``d`` counts minimal parameters: ``K - 1`` for K classes, ``d(d+1)/2`` for a covariance. A limit, not a bound; and
    for discrete families it holds under a prior only, the risk of the MLE being infinite for every ``n``.

    >>> asymptote(2, [10, 100])
    array([0.1 , 0.01])
    """
    d, n = grid(positive=("d", "n"), d=d, n=n)
    return (d / (2 * n))[()]


def fisher_distance(family: ExponentialFamily, theta_star: Any, mu: Any) -> float:
    """``|mu* - mu|_F``, ``F = hess A*(mu*) = Cov(T)^-1``: the distance between means in standard deviations of ``T``.

    >>> from cumulant.families import NormalKnownMean
    >>> round(fisher_distance(NormalKnownMean(), [-0.5], [1.5]), 6)  # |1 - 1.5| over sqrt(2)
    0.353553
    """
    theta_star = natural_parameter(family, theta_star)
    step = np.asarray(mu, dtype=np.float64) - np.asarray(family.to_mean(theta_star))
    if step.shape != (family.dim,):
        raise ValueError(f"mu must be one mean parameter of {family}, shape ({family.dim},); got shape {np.shape(mu)}")
    root = np.linalg.cholesky(np.asarray(family.fisher(theta_star)))
    return float(np.linalg.norm(np.linalg.solve(root, step)))


def second_order_risk(family: ExponentialFamily, theta_star: Any, n: Any, prior: ConjugatePrior | None = None) -> Any:
    """``(n d + n0^2 |mu* - mu0|_F^2) / (2 (n + n0)^2)``: the risk if ``A*`` were its quadratic at the truth (5.111).

    Better than `asymptote` at moderate ``n``, because it knows the prior. An approximation, not a bound.

    >>> from cumulant.families import ConjugatePrior, NormalKnownMean
    >>> second_order_risk(NormalKnownMean(), [-0.5], [10, 100], ConjugatePrior([2.0], 1.0)).round(6)
    array([0.043388, 0.004926])
    """
    if prior is None or float(np.asarray(prior.strength)) == 0:
        return risk_map_quadratic(n, 0.0, family.dim, 0.0)
    distance = fisher_distance(family, theta_star, prior.mean)
    return risk_map_quadratic(n, float(np.asarray(prior.strength)), family.dim, distance)


def samples_to_quadratic(d: Any, n0: Any = 0.0, distance: Any = 0.0, constant: Any = 1.0) -> Any:
    """How many observations bring ``E |mu* - mu_n|_F`` below ``1/(5 M)``, where ``A*`` behaves as its quadratic.

    ``25 M^2 d + 5 M n0 |mu* - mu0|_F - n0``, with the self-concordance constant ``M`` (`self_concordance_constant`);
    from ``(n d + n0^2 D^2)/(n + n0)^2 <= 1/(25 M^2)``. Le Priol (2021, section 5.5) prints it for ``M = 1`` and
    without the factor ``n0`` of the second term.

    >>> samples_to_quadratic(1, n0=[0.0, 10.0], distance=3.0)
    array([ 25., 165.])
    """
    d, n0, distance, constant = grid(positive=("d",), d=d, n0=n0, distance=distance, constant=constant)
    needed = 25 * constant**2 * d + 5 * constant * n0 * distance - n0
    return np.maximum(np.ceil(needed), 0.0)[()]
