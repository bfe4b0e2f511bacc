"""Normals in several dimensions: the distributions of their mean statistics, their exact risks, their constants."""

import numpy as np

from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import MultivariateNormalKnownCovariance, MultivariateNormalKnownMean
from cumulant.families.risk.bounds import bound_mle_covariance
from cumulant.families.risk.concordance import self_concordance_constant
from cumulant.families.risk.diagnostics import gap_batch, gap_of
from cumulant.families.risk.exact import log_determinant_gap, risk_mle_covariance, risk_mle_isotropic, risk_mle_normal
from cumulant.families.risk.expected import Theorem, exact_risk, quadratic_risk, upper_bound
from cumulant.families.risk.mean_statistics import sample_central, wishart
from cumulant.families.risk.normal1d import risk_map_normal1d
from cumulant.families.risk.tails import tail_index
from cumulant.families.special import log_minus_digamma_numpy
from cumulant.geometry.symmetric import vech

__all__: list[str] = []

_SQRT2 = float(np.sqrt(2.0))

# Mean and covariance unknown ----------------------------------------------------------------------------------------


@sample_central.register
def _(family: MultivariateNormal, theta, n, trials, rng):
    usual, d = family.usual(theta), family.size
    covariance = np.asarray(usual["covariance"])
    root = np.linalg.cholesky(covariance)
    mean = usual["mean"] + rng.standard_normal((trials, d)) @ root.T / np.sqrt(n)
    # One observation has no spread.
    scatter = wishart(covariance, n - 1, trials, rng) if n > 1 else np.zeros((trials, d, d))
    return np.concatenate([mean, vech(scatter / n)], axis=-1)


@tail_index.register
def _(family: MultivariateNormal, n, strength):  # of tr S^-1, with n - 1 degrees of freedom
    return np.inf if strength > 0 else max((n - family.size) / 2, 0.0)


@self_concordance_constant.register
def _(family: MultivariateNormal) -> float:  # -log det(mu_1 - mu_0 mu_0^T) / 2: half a logarithmic barrier
    return _SQRT2


@gap_of.register
def _(family: MultivariateNormal, theta, k):
    return np.inf if k <= family.size else 0.5 * float(log_determinant_gap(np.asarray(float(k)), 1.0, family.size))


@gap_batch.register
def _(family: MultivariateNormal) -> int:
    return family.size + 1


@exact_risk.register
def _(family: MultivariateNormal, theta_star, n, prior):
    if prior is not None:
        return None
    return Theorem(
        risk_mle_normal(n, family.size), "exact risk of the MLE of a normal mean and covariance", any_truth=True
    )


# Mean known ---------------------------------------------------------------------------------------------------------


@sample_central.register
def _(family: MultivariateNormalKnownMean, theta, n, trials, rng):
    return vech(wishart(np.asarray(family.usual(theta)["covariance"]), n, trials, rng) / n)


@tail_index.register
def _(family: MultivariateNormalKnownMean, n, strength):
    return np.inf if strength > 0 else max((n - family.size + 1) / 2, 0.0)


@self_concordance_constant.register
def _(family: MultivariateNormalKnownMean) -> float:
    return _SQRT2


@gap_of.register
def _(family: MultivariateNormalKnownMean, theta, k):
    return np.inf if k < family.size else 0.5 * float(log_determinant_gap(np.asarray(float(k)), 0.0, family.size))


@gap_batch.register
def _(family: MultivariateNormalKnownMean) -> int:
    return family.size


@exact_risk.register
def _(family: MultivariateNormalKnownMean, theta_star, n, prior):
    if prior is not None:
        return None
    return Theorem(
        risk_mle_covariance(n, family.size), "exact risk of the MLE, Le Priol (2021), (5.58)", any_truth=True
    )


@upper_bound.register
def _(family: MultivariateNormalKnownMean, theta_star, n, prior):
    if prior is not None:
        return None
    bound = bound_mle_covariance(n, family.size)
    return Theorem(bound.value, bound.theorem, any_truth=True)


# Covariance known ---------------------------------------------------------------------------------------------------


@sample_central.register
def _(family: MultivariateNormalKnownCovariance, theta, n, trials, rng):
    root = np.linalg.cholesky(np.asarray(family.covariance, dtype=np.float64))
    return family.to_mean(theta) + rng.standard_normal((trials, family.size)) @ root.T / np.sqrt(n)


@tail_index.register
def _(family: MultivariateNormalKnownCovariance, n, strength):
    return np.inf


@self_concordance_constant.register
def _(family: MultivariateNormalKnownCovariance) -> float:
    return 0.0


@gap_of.register
def _(family: MultivariateNormalKnownCovariance, theta, k):
    return 0.5 * family.size / k


@gap_batch.register
def _(family: MultivariateNormalKnownCovariance) -> int:
    return 1


@exact_risk.register
def _(family: MultivariateNormalKnownCovariance, theta_star, n, prior):
    return quadratic_risk(family, theta_star, n, prior)


# Independent coordinates --------------------------------------------------------------------------------------------


@sample_central.register(MultivariateNormalDiagonal)
@sample_central.register(MultivariateNormalIsotropic)
def _(family, theta, n, trials, rng):
    shared = isinstance(family, MultivariateNormalIsotropic)
    variances = -0.5 / theta[family.size :]  # one for all, or one for each
    mean = theta[: family.size] * variances + np.sqrt(variances / n) * rng.standard_normal((trials, family.size))
    each = family.size if shared else 1
    squares = rng.chisquare(each * (n - 1), (trials, variances.size)) if n > 1 else np.zeros((trials, variances.size))
    return np.concatenate([mean, variances * squares / (n * each)], axis=-1)


@tail_index.register(MultivariateNormalDiagonal)
@tail_index.register(MultivariateNormalIsotropic)
def _(family, n, strength):
    each = family.size if isinstance(family, MultivariateNormalIsotropic) else 1
    return np.inf if strength > 0 else each * (n - 1) / 2


@self_concordance_constant.register
def _(family: MultivariateNormalDiagonal) -> float:
    return _SQRT2


@self_concordance_constant.register
def _(family: MultivariateNormalIsotropic) -> float:  # -(d/2) log(mu_1 - |mu_0|^2)
    return float(np.sqrt(2.0 / family.size))


@gap_of.register
def _(family: MultivariateNormalDiagonal, theta, k):
    return np.inf if k < 2 else 0.5 * family.size * float(log_determinant_gap(np.asarray(float(k)), 1.0, 1))


@gap_of.register
def _(family: MultivariateNormalIsotropic, theta, k):
    if k < 2:
        return np.inf
    half = 0.5 * family.size
    return half * float(log_minus_digamma_numpy(half * (k - 1)) - np.log1p(-1.0 / k))


@gap_batch.register(MultivariateNormalDiagonal)
@gap_batch.register(MultivariateNormalIsotropic)
def _(family) -> int:
    return 2


@exact_risk.register
def _(family: MultivariateNormalDiagonal, theta_star, n, prior):
    if prior is None:
        text = "exact risk of the MLE of a normal mean and variance, for each coordinate"
        return Theorem(family.size * risk_mle_normal(n, 1), text, any_truth=True)
    pairs = [np.asarray(mu).reshape(2, family.size).T for mu in (prior.mean, family.to_mean(theta_star))]
    strength = float(np.asarray(prior.strength))
    total = sum(risk_map_normal1d(n, strength, own, truth).total for own, truth in zip(*pairs, strict=True))
    return Theorem(total, "exact risk of the posterior mode, by quadrature for each coordinate")


@exact_risk.register
def _(family: MultivariateNormalIsotropic, theta_star, n, prior):
    if prior is not None:
        return None
    return Theorem(
        risk_mle_isotropic(n, family.size), "exact risk of the MLE of a normal mean and one variance", any_truth=True
    )
