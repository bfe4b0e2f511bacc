"""Normals in several dimensions: what `theories` holds for others."""

import numpy as np

from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import MultivariateNormalKnownCovariance, MultivariateNormalKnownMean
from cumulant.families.risk.bounds import bound_mle_covariance
from cumulant.families.risk.exact import log_determinant_gap, risk_mle_covariance, risk_mle_isotropic, risk_mle_normal
from cumulant.families.risk.normal1d import risk_map_normal1d
from cumulant.families.risk.theories import QuadraticTheory, Theorem, Theory, strength_of, theory
from cumulant.families.special import log_minus_digamma
from cumulant.geometry.symmetric import vech


class _CovarianceTheory(Theory):
    """Of a covariance matrix estimated with `lost` degrees of freedom spent on the mean."""

    lost: int

    @property
    def batch(self):
        return self.family.size + self.lost

    def tail_index(self, n, strength):  # of tr S^-1, with n - lost degrees of freedom
        return np.inf if strength > 0 else max((n - self.lost - self.family.size + 1) / 2, 0.0)

    def self_concordance(self):  # -log det(mu_1 - mu_0 mu_0^T) / 2: half a logarithmic barrier
        return float(np.sqrt(2.0))

    def gap(self, theta, k):
        if k < self.batch:
            return np.inf
        return 0.5 * float(log_determinant_gap(np.asarray(float(k)), float(self.lost), self.family.size))


@theory.register(MultivariateNormal)
class _MultivariateTheory(_CovarianceTheory):
    lost = 1

    def sample_central(self, theta, n, trials, rng):
        usual, d = self.family.usual(theta), self.family.size
        covariance = np.asarray(usual["covariance"])
        mean = usual["mean"] + rng.standard_normal((trials, d)) @ np.linalg.cholesky(covariance).T / np.sqrt(n)
        # One observation has no spread.
        scatter = wishart(covariance, n - 1, trials, rng) if n > 1 else np.zeros((trials, d, d))
        return np.concatenate([mean, vech(scatter / n)], axis=-1)

    def exact(self, theta_star, n, prior):
        if prior is not None:
            return None
        text = "exact risk of the MLE of a normal mean and covariance"
        return Theorem(risk_mle_normal(n, self.family.size), text, any_truth=True)


@theory.register(MultivariateNormalKnownMean)
class _KnownMeanTheory(_CovarianceTheory):
    lost = 0

    def sample_central(self, theta, n, trials, rng):
        return vech(wishart(np.asarray(self.family.usual(theta)["covariance"]), n, trials, rng) / n)

    def exact(self, theta_star, n, prior):
        if prior is not None:
            return None
        text = "exact risk of the MLE, Le Priol (2021), (5.58)"
        return Theorem(risk_mle_covariance(n, self.family.size), text, any_truth=True)

    def bound(self, theta_star, n, prior):
        if prior is not None:
            return None
        bound = bound_mle_covariance(n, self.family.size)
        return Theorem(bound.value, bound.theorem, any_truth=True)


@theory.register(MultivariateNormalKnownCovariance)
class _KnownCovarianceTheory(QuadraticTheory):
    def sample_central(self, theta, n, trials, rng):
        root = np.linalg.cholesky(np.asarray(self.family.covariance, dtype=np.float64))
        return self.family.to_mean(theta) + rng.standard_normal((trials, self.family.size)) @ root.T / np.sqrt(n)


class _IndependentTheory(Theory):
    batch = 2

    def sample_central(self, theta, n, trials, rng):
        size, each = self.family.size, self.family._per_variance
        variances = -0.5 / theta[size:]  # one for all, or one for each
        mean = theta[:size] * variances + np.sqrt(variances / n) * rng.standard_normal((trials, size))
        shape = (trials, variances.size)
        squares = rng.chisquare(each * (n - 1), shape) if n > 1 else np.zeros(shape)
        return np.concatenate([mean, variances * squares / (n * each)], axis=-1)

    def tail_index(self, n, strength):
        return np.inf if strength > 0 else self.family._per_variance * (n - 1) / 2

    def self_concordance(self):  # -(k/2) log(mu_1 - |mu_0|^2) for the k coordinates of a variance
        return float(np.sqrt(2.0 / self.family._per_variance))


@theory.register(MultivariateNormalDiagonal)
class _DiagonalTheory(_IndependentTheory):
    def gap(self, theta, k):
        return np.inf if k < 2 else 0.5 * self.family.size * float(log_determinant_gap(np.asarray(float(k)), 1.0, 1))

    def exact(self, theta_star, n, prior):
        size = self.family.size
        if prior is None:
            text = "exact risk of the MLE of a normal mean and variance, for each coordinate"
            return Theorem(size * risk_mle_normal(n, 1), text, any_truth=True)
        own, truth = (np.asarray(mu).reshape(2, size).T for mu in (prior.mean, self.family.to_mean(theta_star)))
        total = sum(risk_map_normal1d(n, strength_of(prior), *pair).total for pair in zip(own, truth, strict=True))
        return Theorem(total, "exact risk of the posterior mode, by quadrature for each coordinate")


@theory.register(MultivariateNormalIsotropic)
class _IsotropicTheory(_IndependentTheory):
    def gap(self, theta, k):
        if k < 2:
            return np.inf
        half = 0.5 * self.family.size
        return half * float(log_minus_digamma(half * (k - 1)) - np.log1p(-1.0 / k))

    def exact(self, theta_star, n, prior):
        if prior is not None:
            return None
        text = "exact risk of the MLE of a normal mean and one variance"
        return Theorem(risk_mle_isotropic(n, self.family.size), text, any_truth=True)


def wishart(scale: np.ndarray, n: int, trials: int, rng: np.random.Generator) -> np.ndarray:
    """Sums ``sum_i x_i x_i^T`` of `n` draws of ``N(0, scale)``: Bartlett's triangle, or the draws if they are few."""
    d = scale.shape[0]
    root = np.linalg.cholesky(scale)
    if n < d:
        x = root @ rng.standard_normal((trials, d, n))
    else:
        triangle = np.tril(rng.standard_normal((trials, d, d)), -1)
        triangle[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(n - np.arange(d), size=(trials, d)))
        x = root @ triangle
    return x @ np.swapaxes(x, -1, -2)
