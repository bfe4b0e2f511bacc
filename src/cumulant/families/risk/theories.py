"""What is known in closed form about estimates in each family: one class a family, and `theory` finds it.

A `Theory` knows the distribution of the mean statistic, the tail of the divergence, the self-concordance of the
entropy, the optimality gap of a batch, the exact risk and a bound on it. What is not known is said so.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax, xlogy

from cumulant.errors import CertificateError
from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Categorical, Multinomial
from cumulant.families.dirichlet import Beta, Dirichlet
from cumulant.families.gamma import Gamma
from cumulant.families.gamma_type import GammaType
from cumulant.families.inverse_gaussian import InverseGaussian
from cumulant.families.normal import Normal, NormalKnownVariance
from cumulant.families.poisson import Poisson
from cumulant.families.product import Product
from cumulant.families.risk.asymptotics import fisher_distance
from cumulant.families.risk.bounds import bound_map_gamma, bound_mle_gamma
from cumulant.families.risk.counts import (
    binomial_window,
    negative_binomial_window,
    poisson_window,
    risk_map_categorical,
    risk_map_poisson,
)
from cumulant.families.risk.exact import (
    log_determinant_gap,
    risk_map_gamma,
    risk_map_quadratic,
    risk_mle_gamma,
    risk_mle_normal,
)
from cumulant.families.risk.gamma_spread import gamma_gap
from cumulant.families.risk.normal1d import risk_map_normal1d
from cumulant.families.special import excess_numpy, log_minus_digamma
from cumulant.families.statistics import ConjugatePrior
from cumulant.precision import float64, to_numpy

_BLOCK = 1 << 22  # raw observations held at once where the distribution of their mean is not known
_NOTHING = 1e-280  # levels of counts below which their ratios overflow
_BY_QUADRATURE = "exact risk of the posterior mode, by quadrature"


@dataclass(frozen=True)
class Theorem:
    """A value or bound on a grid of sample sizes, the theorem behind it, and whether it is the same for every truth."""

    value: Any
    text: str
    any_truth: bool = False


def strength_of(prior: ConjugatePrior | None) -> float:
    """The strength of a prior, 0 where there is none."""
    return 0.0 if prior is None else float(np.asarray(prior.strength))


class Theory:
    """What is known about a family of which nothing in particular is."""

    batch: int | None = None  # the smallest batch whose likelihood is bounded almost surely

    def __init__(self, family: Any):
        self.family = family

    def sample_central(self, theta: np.ndarray, n: int, trials: int, rng: np.random.Generator) -> np.ndarray:
        """Mean statistics of `trials` data sets of `n` observations, in the family's central coordinates."""
        family = self.family
        size = max(1, _BLOCK // (n * max(1, int(np.prod(family.event_shape)))))
        parts = []
        for start in range(0, trials, size):
            x = family.sample(theta, (n, min(size, trials - start)), rng=rng)
            x = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), x)
            with float64():
                parts.append(to_numpy(_average(family, x)))
        return np.concatenate(parts)

    def tail_index(self, n: float, strength: float) -> float | None:
        """See `risk.tail_index`."""
        return None

    def self_concordance(self) -> float:
        """See `risk.self_concordance_constant`."""
        raise CertificateError(
            f"no self-concordance constant is known for {self.family}: check_self_concordance gives an indication",
            assumption="A* is self-concordant",
        )

    def gap(self, theta: np.ndarray, k: int) -> float:
        """See `risk.gap_constant`."""
        raise NotImplementedError(f"the optimality gap of {self.family} for a batch of {k} has no closed form here")

    def exact(self, theta_star: np.ndarray, n: Any, prior: ConjugatePrior | None) -> Theorem | None:
        """The exact risk, where one is known."""
        return None

    def bound(self, theta_star: np.ndarray, n: Any, prior: ConjugatePrior | None) -> Theorem | None:
        """A finite-sample upper bound on the risk, where one is known."""
        return None


@functools.singledispatch
def theory(family: Any) -> Theory:
    """The theory of a family."""
    return Theory(family)


@jax.jit
def _average(family, x):
    n = jax.tree.leaves(x)[0].shape[0]
    return family._central(x, jnp.full((n, 1), 1.0 / n))


@theory.register(GammaType)
class _GammaTypeTheory(Theory):
    batch = 1

    def sample_central(self, theta, n, trials, rng):
        return rng.gamma(n * self.family.alpha, size=(trials, 1)) / (n * -theta)

    def tail_index(self, n, strength):  # the divergence grows as 1/mu_n, and mu_n ~ Gamma(n alpha)
        return np.inf if strength > 0 else n * self.family.alpha

    def self_concordance(self):
        return float(self.family.alpha) ** -0.5

    def gap(self, theta, k):
        return float(self.family.alpha * log_minus_digamma(np.asarray(k * self.family.alpha)))

    def exact(self, theta_star, n, prior):
        if prior is None:
            text = "exact risk of the MLE, Le Priol (2021), (5.49)"
            return Theorem(risk_mle_gamma(n, self.family.alpha), text, any_truth=True)
        ratio = self._ratio(theta_star, prior)
        return Theorem(risk_map_gamma(n, strength_of(prior), ratio, self.family.alpha), _BY_QUADRATURE)

    def bound(self, theta_star, n, prior):
        if prior is None:
            bound = bound_mle_gamma(n, self.family.alpha)
        else:
            bound = bound_map_gamma(n, strength_of(prior), self._ratio(theta_star, prior), self.family.alpha)
        return Theorem(bound.value, bound.theorem, any_truth=prior is None)

    def _ratio(self, theta_star, prior):
        return float(prior.mean[0]) / float(self.family.to_mean(theta_star)[0])


@theory.register(Normal)
class _NormalTheory(Theory):  # the log-normal is a normal
    batch = 2

    def sample_central(self, theta, n, trials, rng):
        variance = -0.5 / theta[1]
        mean = theta[0] * variance + np.sqrt(variance / n) * rng.standard_normal(trials)
        # One observation has no spread, and chi-squared with no degree of freedom is zero.
        squares = rng.chisquare(n - 1, size=trials) if n > 1 else np.zeros(trials)
        return np.stack([mean, variance * squares / n], axis=-1)

    def tail_index(self, n, strength):
        return np.inf if strength > 0 else (n - 1) / 2

    def self_concordance(self):  # -log(mu_1 - mu_0^2) / 2: half a logarithmic barrier
        return float(np.sqrt(2.0))

    def gap(self, theta, k):
        return np.inf if k < 2 else 0.5 * float(log_determinant_gap(np.asarray(float(k)), 1.0, 1))

    def exact(self, theta_star, n, prior):
        if prior is None:
            return Theorem(risk_mle_normal(n, 1), "exact risk of the MLE of a normal mean and variance", any_truth=True)
        risk = risk_map_normal1d(n, strength_of(prior), prior.mean, self.family.to_mean(theta_star))
        return Theorem(risk.total, _BY_QUADRATURE)


class QuadraticTheory(Theory):
    """Of a family whose ``A*`` is quadratic: a normal with known variance or covariance."""

    batch = 1

    def tail_index(self, n, strength):
        return np.inf

    def self_concordance(self):
        return 0.0

    def gap(self, theta, k):
        return 0.5 * self.family.dim / k

    def exact(self, theta_star, n, prior):
        d = self.family.dim
        if prior is None:
            return Theorem(risk_map_quadratic(n, 0.0, d, 0.0), "quadratic A*, Le Priol (2021), (5.25)", any_truth=True)
        distance = fisher_distance(self.family, theta_star, prior.mean)
        value = risk_map_quadratic(n, strength_of(prior), d, distance)
        return Theorem(value, "quadratic A*, Le Priol (2021), (5.26)")


@theory.register(NormalKnownVariance)
class _KnownVarianceTheory(QuadraticTheory):
    def sample_central(self, theta, n, trials, rng):
        variance = self.family.variance
        return theta * variance + np.sqrt(variance / n) * rng.standard_normal((trials, 1))


class EntropyTerm(NamedTuple):
    """A part ``sign h(level(mu))`` of ``A*``, ``h(x) = x log x``, with the levels of mean statistics and their mass.

    `level` is affine, and positive for every mean parameter.
    """

    sign: float
    level: Callable[[np.ndarray], float]
    values: np.ndarray
    mass: np.ndarray


class CountTheory(Theory):
    """Of counts and classes: without a prior, an unseen class or no count at all makes the divergence infinite.

    ``A*`` is a sum of terms ``+-x log x`` of affine functions of ``mu``, one for each count.
    """

    batch = 1

    def entropy_terms(self, theta: np.ndarray, k: int) -> list[EntropyTerm]:
        """The terms of ``A*``, and their levels at the mean statistic of `k` observations."""
        raise NotImplementedError

    def gap(self, theta, k):
        total = 0.0
        for term in self.entropy_terms(theta, k):
            at_truth = float(term.values @ term.mass)
            if at_truth > _NOTHING:  # else it has underflown, and so has its part of the gap
                total += term.sign * at_truth * float(entropic((term.values - at_truth) / at_truth) @ term.mass)
        return total

    def tail_index(self, n, strength):
        return np.inf if strength > 0 else 0.0

    def self_concordance(self):  # bounded at the boundary of its domain, where a self-concordant function blows up
        return np.inf


class _MultinomialTheory(CountTheory):
    def sample_central(self, theta, n, trials, rng):
        p = self.family.usual(theta)["probabilities"]
        return rng.multinomial(n * self.family.trials, p / p.sum(), size=trials)[:, :-1] / n

    def entropy_terms(self, theta, k):
        trials, p = self.family.trials, softmax(np.append(theta, 0.0))
        terms = []
        for j, each in enumerate(p):
            counts, mass = binomial_window(k * trials, float(each), float(np.delete(p, j).sum()))
            level = (lambda mu, j=j: mu[j]) if j < p.size - 1 else (lambda mu: trials - np.sum(mu))
            terms.append(EntropyTerm(1.0, level, counts / k, mass))
        return terms

    def exact(self, theta_star, n, prior):
        trials = self.family.trials  # as many draws of a class are one observation
        p = self._all_classes(self.family.to_mean(theta_star))
        q = p if prior is None else self._all_classes(prior.mean)
        value = trials * risk_map_categorical(np.asarray(n) * trials, strength_of(prior) * trials, p, q)
        return Theorem(value, "exact risk, a sum over the binomial distribution of each class")

    def _all_classes(self, mean):
        first = np.asarray(mean) / self.family.trials
        return np.append(first, 1.0 - first.sum())


class _SuccessTheory(_MultinomialTheory):
    def sample_central(self, theta, n, trials, rng):
        probability = float(self.family.usual(theta)["probability"])
        return rng.binomial(n * self.family.trials, probability, size=(trials, 1)) / n


theory.register(Bernoulli, _SuccessTheory)
theory.register(Binomial, _SuccessTheory)
theory.register(Categorical, _MultinomialTheory)
theory.register(Multinomial, _MultinomialTheory)


@theory.register(Poisson)
class _PoissonTheory(CountTheory):
    def sample_central(self, theta, n, trials, rng):
        return rng.poisson(n * np.exp(theta), size=(trials, 1)) / n

    def entropy_terms(self, theta, k):
        counts, mass = poisson_window(k * float(np.exp(theta[0])))
        return [EntropyTerm(1.0, lambda mu: mu[0], counts / k, mass)]

    def exact(self, theta_star, n, prior):
        rate = float(self.family.to_mean(theta_star)[0])
        value = risk_map_poisson(n, strength_of(prior), rate, rate if prior is None else float(prior.mean[0]))
        return Theorem(value, "exact risk, a sum over the distribution of the total count")


@theory.register(Geometric)
@theory.register(NegativeBinomial)
class _WaitingTheory(CountTheory):
    def sample_central(self, theta, n, trials, rng):
        probability = float(self.family.usual(theta)["probability"])
        return rng.negative_binomial(n * self.family.successes, probability, size=(trials, 1)) / n

    def entropy_terms(self, theta, k):  # mu log mu - (mu + r) log(mu + r), but for a linear function
        r = float(self.family.successes)
        counts, mass = negative_binomial_window(k * r, -float(np.expm1(theta[0])), float(np.exp(theta[0])))
        first = EntropyTerm(1.0, lambda mu: mu[0], counts / k, mass)
        return [first, EntropyTerm(-1.0, lambda mu: mu[0] + r, counts / k + r, mass)]


class _CurvedTheory(Theory):
    batch = 2  # statistics on the rim of a strictly convex set: the mean of two distinct ones is inside

    def gap(self, theta, k):
        if k >= 2:
            raise NotImplementedError(
                f"the optimality gap of {self.family} is finite for batches of two or more, without a closed form: "
                "monte_carlo_smd estimates it"
            )
        return np.inf


theory.register(Beta, _CurvedTheory)
theory.register(Dirichlet, _CurvedTheory)


@theory.register(Gamma)
class _GammaTheory(_CurvedTheory):  # the inverse gamma is a gamma
    def gap(self, theta, k):
        return np.inf if k < 2 else gamma_gap(float(theta[0]), k)


@theory.register(InverseGaussian)
class _InverseGaussianTheory(_CurvedTheory):
    def gap(self, theta, k):  # mu_1 - 1/mu_0 is chi-squared over k lambda, with k - 1 degrees of freedom
        return np.inf if k < 2 else 0.5 * float(log_determinant_gap(np.asarray(float(k)), 1.0, 1))


def entropic(excess):
    """``y log y - y + 1`` at ``y = 1 + excess >= 0``, without its cancellation; its mean is that of ``y log y`` where
    that of the excess is zero.
    """
    y = 1.0 + np.asarray(excess)
    near = (y > 0) & (y < 2.0)
    positive = np.where(near, y, 1.0)
    return np.where(near, positive * excess_numpy(np.where(near, -excess, 0.0) / positive), xlogy(y, y) - excess)


@theory.register(Product)
class _ProductTheory(Theory):
    """The divergence is a sum over independent parts, and so is everything here."""

    def __init__(self, family):
        super().__init__(family)
        self.parts = [theory(part) for part in family.parts]

    def _each(self, name, theta, *arguments):
        pieces = zip(self.parts, self.family.split(theta), strict=True)
        return [getattr(part, name)(piece, *arguments) for part, piece in pieces]

    @property
    def batch(self):
        batches = [part.batch for part in self.parts]
        return None if None in batches else max(batches)  # type: ignore[type-var]

    def sample_central(self, theta, n, trials, rng):
        return np.concatenate(self._each("sample_central", theta, n, trials, rng), axis=-1)

    def tail_index(self, n, strength):
        indices = [part.tail_index(n, strength) for part in self.parts]
        return None if any(index is None for index in indices) else min(i for i in indices if i is not None)

    def self_concordance(self):
        return max(part.self_concordance() for part in self.parts)

    def gap(self, theta, k):
        return sum(self._each("gap", theta, k))

    def exact(self, theta_star, n, prior):
        return self._sum("exact", theta_star, n, prior)

    def bound(self, theta_star, n, prior):
        return self._sum("bound", theta_star, n, prior)

    def _sum(self, name, theta_star, n, prior):
        """The theorems of the parts added up, or None where one is missing."""
        priors = [None] * len(self.parts)
        if prior is not None:
            priors = [ConjugatePrior(mean, prior.strength) for mean in self.family.split(np.asarray(prior.mean))]
        pieces = zip(self.parts, self.family.split(theta_star), priors, strict=True)
        theorems = [getattr(part, name)(theta, n, own) for part, theta, own in pieces]
        if any(theorem is None for theorem in theorems):
            return None
        text = "sum over independent parts: " + "; ".join(dict.fromkeys(theorem.text for theorem in theorems))
        return Theorem(sum(t.value for t in theorems), text, all(theorem.any_truth for theorem in theorems))
