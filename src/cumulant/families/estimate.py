"""Estimates as a statistician wants them: with standard errors, intervals, and the expected distance from the truth."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from cumulant.families.base import ExponentialFamily
from cumulant.families.statistics import ConjugatePrior, Statistics
from cumulant.precision import float64, to_numpy


@dataclass(frozen=True, eq=False)
class Estimate:
    """A fitted parameter and how well it is known.

    Standard errors and intervals are the usual large-sample ones: the inverse Fisher information over ``n`` (over
    ``n0 + n`` under a prior, which is then the Laplace approximation of the posterior). They are approximations, not
    certificates; `risk` says which parts of the theory are exact.

    Attributes
    ----------
    theta : array
        The natural parameter; `mu` is the mean parameter and `usual` the usual ones by name.
    covariance : array
        Of the natural parameter.
    standard_errors : array
        Of the natural parameter, its square-rooted diagonal; `usual_standard_errors` by the delta method.
    log_likelihood : float
        Of the data, at `theta`.
    chosen : tuple of str
        Constants of the family that were chosen from the same data (see `profile`); `aic` and `bic` charge for them.
    """

    family: ExponentialFamily
    statistics: Statistics
    prior: ConjugatePrior | None
    theta: Any
    covariance: Any
    usual: dict[str, Any]
    usual_standard_errors: dict[str, Any]
    log_likelihood: Any
    chosen: tuple[str, ...] = ()

    @property
    def mu(self):
        """The mean parameter ``grad A(theta)``."""
        return self.family.to_mean(self.theta)

    @property
    def count(self) -> float:
        """How many observations, by weight."""
        return self.statistics.count

    @property
    def n_parameters(self) -> int:
        """How many numbers were fitted: the natural parameters, and the constants that were `chosen`."""
        return self.family.dim + len(self.chosen)

    @property
    def aic(self):
        """Akaike's criterion ``2 k - 2 log likelihood`` for ``k`` fitted parameters: smaller is better."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self):
        """Schwarz's criterion ``k log n - 2 log likelihood``: smaller is better."""
        return self.n_parameters * np.log(self.count) - 2 * self.log_likelihood

    @property
    def standard_errors(self):
        """Standard errors of the natural parameter."""
        return np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))

    def interval(self, level: float = 0.95):
        """Lower and upper ends for each natural parameter, shape ``(..., dim, 2)``, by the normal approximation."""
        half = standard_deviations(level) * self.standard_errors
        return np.stack([self.theta - half, self.theta + half], axis=-1)

    def usual_interval(self, level: float = 0.95) -> dict[str, Any]:
        """Lower and upper ends for each usual parameter by name, by the delta method."""
        z = standard_deviations(level)
        return jax.tree.map(
            lambda value, error: np.stack([value - z * error, value + z * error], axis=-1),
            self.usual,
            self.usual_standard_errors,
        )

    @property
    def risk(self):
        """The expected ``KL(truth || estimate)`` over data sets of this size: see `families.risk.expected_kl`.

        For a batch of estimates, one `Risk` whose values are those of each; it carries no single certificate.
        """
        from cumulant.families.risk import expected_kl

        batch = self.theta.shape[:-1]
        if not batch:
            return expected_kl(self.family, self.theta, self.count, prior=self.prior)
        counts = np.broadcast_to(self.count, batch)
        risks = [
            expected_kl(self.family, self.theta[index], counts[index], prior=_prior_of(self.prior, batch, index))
            for index in np.ndindex(batch)
        ]
        value, error = (np.reshape([getattr(r, name) for r in risks], batch) for name in ("value", "standard_error"))
        return replace(risks[0], value=value, standard_error=error, certificate=None, subject=None)

    def __str__(self):
        lines = [
            f"{self.family} from {float(np.max(self.count)):g} observations, "
            f"log likelihood {float(np.sum(self.log_likelihood)):.6g}"
        ]
        leaves = zip(
            _named(self.usual),
            *map(jax.tree.leaves, (self.usual_standard_errors, self.usual_interval())),
            strict=True,
        )
        for (name, value), error, ends in leaves:
            if value.size > _MOST_LINES:
                for label, array in ((name, value), (f"standard errors of {name}", error)):
                    lines.append(f"  {label} =\n    {np.array2string(array, precision=4, prefix='    ')}")
                continue
            labels = [f"{name}[{', '.join(map(str, index))}]" if index else name for index in np.ndindex(value.shape)]
            width = max(map(len, labels), default=0)
            for label, index in zip(labels, np.ndindex(value.shape), strict=True):
                low, high = ends[index]
                lines.append(
                    f"  {label:{width}} = {value[index]:.6g} ± {error[index]:.2g}   95%: [{low:.6g}, {high:.6g}]"
                )
        return "\n".join(lines)


_MOST_LINES = 16


def _named(usual) -> list[tuple[str, np.ndarray]]:
    """The usual parameters in the order of JAX's leaves, named as Python would reach them."""
    paths = jax.tree_util.tree_leaves_with_path(usual)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), np.asarray(value)) for path, value in paths]


def estimate(family: ExponentialFamily, x, weights=None, prior: ConjugatePrior | None = None) -> Estimate:
    """Fit `family` to observations on the first axis of `x` by maximum likelihood, or under a conjugate prior."""
    statistics = family.collect(x, weights)
    theta = np.asarray(statistics.mle() if prior is None else statistics.map(prior), dtype=np.float64)
    fitted = statistics if prior is None else statistics + prior.as_statistics(family)
    total = np.asarray(statistics.count, dtype=np.float64) + (0.0 if prior is None else np.asarray(prior.strength))
    with float64():
        covariance, usual, errors = to_numpy(_spread(family, np.asarray(fitted.central, np.float64), theta, total))
    logs = np.asarray(family.log_prob(x, theta))
    w = np.ones(logs.shape[:1]) if weights is None else np.asarray(weights, dtype=np.float64)
    log_likelihood = np.sum(w.reshape(w.shape + (1,) * (logs.ndim - w.ndim)) * logs, axis=0)
    return Estimate(family, statistics, prior, theta, covariance, usual, errors, log_likelihood)


@jax.jit
def _spread(family, central, theta, total):
    """The covariance of the natural parameter, and the usual parameters with their standard errors.

    The Fisher information is inverted in central coordinates ``c``, where it is ``(d theta / d c)' (d mu / d c)``: in
    natural coordinates it is singular to rounding where a mean is far larger than its spread. First derivatives are
    enough, and a fifth of the time that second ones take to compile.
    """
    own = family._has_central_inverse()

    def parameters_at(at):  # all from one inverse, which is compiled once
        natural = family._central_to_natural(at) if own else at
        return natural, family.usual(natural), family._central_to_mean(at) if own else None

    def one(c, t, n):
        jacobian, usual_jacobian, slope = jax.jacfwd(parameters_at)(c if own else t)
        information = jacobian.T @ slope if own else family.fisher(t)
        scale = jnp.sqrt(jnp.diagonal(information))
        inverse = jnp.linalg.inv(information / (scale[:, None] * scale)) / (scale[:, None] * scale) / n
        inverse = (inverse + inverse.T) / 2

        def spread(j):
            return jnp.sqrt(jnp.maximum(jnp.einsum("...i,ij,...j->...", j, inverse, j), 0.0))

        return jacobian @ inverse @ jacobian.T, jax.tree.map(spread, usual_jacobian)

    centres, parameters = (each.reshape(-1, family.dim) for each in jnp.broadcast_arrays(central, theta))
    counts = jnp.broadcast_to(total, theta.shape[:-1]).reshape(-1)
    covariance, errors = jax.vmap(one)(centres, parameters, counts)
    covariance = covariance.reshape(*theta.shape, family.dim)
    usual = family.usual(theta)
    return covariance, usual, jax.tree.map(lambda e, u: e.reshape(u.shape), errors, usual)


def _prior_of(prior, batch, index):
    """The prior of one estimate of a batch."""
    if prior is None:
        return None
    mean = np.asarray(prior.mean)
    strength = np.broadcast_to(prior.strength, batch)[index]
    return ConjugatePrior(np.broadcast_to(mean, (*batch, mean.shape[-1]))[index], strength)


def standard_deviations(level: float) -> float:
    """Half the width of a two-sided normal interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must be strictly between 0 and 1; got {level}")
    return float(ndtri(0.5 + level / 2))
