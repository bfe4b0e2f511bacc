"""Self-concordance of entropies, and the certificate it gives: close to the truth, the divergence is at most quadratic.

A convex function ``f`` has self-concordance constant ``M`` if ``|D^3 f[h,h,h]| <= 2 M (D^2 f[h,h])^{3/2}``
everywhere, so that ``M^2 f`` is self-concordant in the standard sense (Nesterov 2004, chapter 4). Scaling ``f``
changes ``M``: the entropy ``-log mu`` has ``M = 1``, but that of a normal variance, half of it, has ``M = sqrt 2``;
entropies that stay bounded at the boundary of their domain (Bernoulli, categorical, Poisson) have none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer
from cumulant.families.base import ExponentialFamily
from cumulant.families.risk.theories import theory
from cumulant.families.special import log1p_excess
from cumulant.precision import float64, to_jax, to_numpy

QUADRATIC_RADIUS = 0.2153444362
"""Where ``omega*(t/(1-t)) = t^2``: for ``M |mu* - mu|_F`` below it the divergence is at most ``|mu* - mu|_F^2``."""


def omega(t: Any) -> Any:
    """``t - log(1 + t)``, the lower barrier of self-concordance (Nesterov 2004, section 4.1.4)."""
    return log1p_excess(t)


def omega_star(t: Any) -> Any:
    """``-t - log(1 - t)`` for ``0 <= t <= 1``, the conjugate of `omega`; infinite at 1.

    >>> float(omega_star(0.5))
    0.193147...
    """
    return log1p_excess(-np.asarray(t) if not isinstance(t, jax.Array) else -t)


def self_concordance_constant(family: Any) -> float:
    """The constant ``M`` of the conjugate ``A*`` of a family: 0 if quadratic, infinite if not self-concordant.

    ``alpha^{-1/2}`` for gamma-type families, ``sqrt 2`` for normals with unknown (co)variance. Le Priol (2021,
    section 5.5) takes 1 for all of them and for categorical families as well, which is right for ``alpha >= 1`` only.
    Raises `CertificateError` for families whose constant is not known.

    Examples
    --------
    >>> from cumulant.families import Exponential, Normal, Poisson
    >>> [float(round(self_concordance_constant(f), 6)) for f in (Exponential(), Normal(), Poisson())]
    [1.0, 1.414214, inf]
    """
    return theory(family).self_concordance()


@dataclass(frozen=True)
class Concordance:
    """The ratios found: `constant` is the largest, a lower bound on ``M``, met at `point` in `direction`."""

    constant: float
    point: np.ndarray
    direction: np.ndarray
    ratios: np.ndarray


def check_self_concordance(function: Callable, points: Any, directions: Any) -> Concordance:
    """``|D^3 f[h,h,h]| / (2 (D^2 f[h,h])^{3/2})`` at the given points, by automatic differentiation.

    Parameters
    ----------
    function : callable
        A convex function of one vector, in JAX: ``family.conjugate``, say.
    points, directions : array
        Shape ``(k, dim)`` each.

    Returns
    -------
    Concordance
        Its `constant` is a lower bound on the self-concordance constant: the largest ratio seen. It can refute
        self-concordance, not prove it.

    Examples
    --------
    >>> from cumulant.families import NormalKnownMean
    >>> float(round(check_self_concordance(NormalKnownMean().conjugate, [[0.5], [2.0]], [[1.0], [1.0]]).constant, 6))
    1.414214
    """
    points, directions = np.asarray(to_jax(points), dtype=np.float64), np.asarray(to_jax(directions), dtype=np.float64)
    if points.ndim != 2 or points.shape != directions.shape:
        raise ValueError(
            f"points and directions must both have shape (k, dim); got {points.shape} and {directions.shape}"
        )

    def ratio(x, h):
        def line(t):
            return jnp.reshape(function(x + t * h), ())

        second = jax.grad(jax.grad(line))
        value = jnp.abs(jax.grad(second)(0.0)) / (2.0 * second(0.0) ** 1.5)
        return jnp.where(jnp.isfinite(line(0.0)), value, jnp.nan)

    with float64():
        ratios = to_numpy(jax.jit(jax.vmap(ratio))(points, directions))
    if np.any(np.isnan(ratios)):
        bad = int(np.flatnonzero(np.isnan(ratios))[0])
        raise ValueError(
            f"function is not finite and strictly convex at points[{bad}] = {points[bad]} along {directions[bad]}"
        )
    worst = int(np.argmax(ratios))
    return Concordance(float(ratios[worst]), points[worst], directions[worst], ratios)


class LocalQuadratic(NamedTuple):
    """A truth ``mu_star`` of a family, and the form of the bound of `certify_local_quadratic`."""

    family: ExponentialFamily
    mu_star: Any
    form: str = "sharp"


@issuer
def certify_local_quadratic(given: LocalQuadratic, answer: Any) -> Certificate:
    """A certificate on ``KL(p_{mu*} || p_mu)`` from the distance ``|mu* - mu|_F`` in the metric of the truth.

    With ``mu = answer``, ``t = M |mu* - mu|_F`` and ``F = hess A*(mu*)``: at most ``omega*(t/(1-t)) / M^2`` for
    ``t < 1/2`` (``form="sharp"``), which is at most ``|mu* - mu|_F^2`` for ``t < 0.2153`` (``form="square"``).
    Proposition 5.5.1 of Le Priol (2021) is the latter with ``M = 1``; it fails as stated for ``alpha < 1`` and for
    bounded entropies.

    Raises `CertificateError` where ``A*`` is not self-concordant or ``mu`` is too far from ``mu*``.

    Examples
    --------
    >>> from cumulant.families import Bernoulli, Exponential
    >>> certify_local_quadratic(LocalQuadratic(Exponential(), [1.0]), [1.1]).bound < 0.01
    True
    >>> certify_local_quadratic(LocalQuadratic(Bernoulli(), [0.01]), [1e-12])
    Traceback (most recent call last):
    ...
    cumulant.errors.CertificateError: no certificate: it was not shown that A* is self-concordant (Bernoulli()...)
    """
    family, mu_star, form = given
    if form not in ("sharp", "square"):
        raise ValueError(f"form must be 'sharp' or 'square'; got {form!r}")
    constant = self_concordance_constant(family)
    concordant = check(np.isfinite(constant), "A* is self-concordant", f"{family} has a bounded entropy")
    distance, t = _distance(family, mu_star, answer, constant)
    radius = 0.5 if form == "sharp" else QUADRATIC_RADIUS
    near = check(t < radius, f"M |mu* - mu|_F < {radius:.4g}", f"it is {t:.4g}")
    bound = _sharp_bound(distance, t, constant) if form == "sharp" else distance**2
    name = "omega*(t/(1-t)) / M^2, t = M |mu* - mu|_F" if form == "sharp" else "|mu* - mu|_F^2"
    return Certificate(
        quantity="KL(p_mu* || p_mu)",
        bound=bound,
        theorem=f"self-concordance: {name} (Le Priol 2021, proposition 5.5.1, with the constant M)",
        assumptions=(by_construction(concordant.text, f"M = {constant:.6g}"), near),
        slack=1e-14 * bound + 2.0**-1000,
        details={"distance": distance, "M": constant},
    )


def _distance(family, mu_star, mu, constant):
    """``|mu* - mu|_F``, rounded up by what the solve may have lost, and ``t``."""
    mu_star, mu = np.asarray(mu_star, dtype=np.float64), np.asarray(mu, dtype=np.float64)
    if mu_star.shape != (family.dim,) or mu.shape != (family.dim,):
        raise ValueError(f"mu_star and mu must have shape ({family.dim},); got {mu_star.shape} and {mu.shape}")
    fisher = np.asarray(family.fisher(family.to_natural(mu_star)))
    family.to_natural(mu)  # refuses what is not a mean of the family
    finite = bool(np.all(np.isfinite(fisher)))
    doubt = 4.0 * family.dim * 2.0**-53 * float(np.linalg.cond(fisher)) if finite else np.inf
    check(doubt < 0.1, "the Fisher information at mu* is well conditioned", f"it is known within {doubt:.2g}")
    plain = float(np.linalg.norm(np.linalg.solve(np.linalg.cholesky(fisher), mu - mu_star)))
    return plain * (1.0 + 2.0 * doubt), constant * plain * (1.0 + 2.0 * doubt)


def _sharp_bound(distance, t, constant):
    if constant == 0:
        return 0.5 * distance**2  # a quadratic: the limit, and exact
    return float(omega_star(t / (1.0 - t))) / constant**2
