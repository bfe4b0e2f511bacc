"""Every family at extreme parameters, in double and in single precision, against high-precision arithmetic.

An answer is right if it is within a modest multiple of what rounding the arguments alone does to the exact answer.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from cumulant import families as fam
from tests.reference.families import digits, exact, reference, sensitivity

BATCH = 12
FAMILIES = [
    fam.Bernoulli(),
    fam.Binomial(10),
    fam.Binomial(1_000_000),
    fam.Geometric(),
    fam.NegativeBinomial(2.5),
    fam.NegativeBinomial(1e6),
    fam.NegativeBinomial(1e-3),
    fam.Categorical(4),
    fam.Multinomial(1000, 3),
    fam.Poisson(),
    fam.Exponential(),
    fam.GammaKnownShape(3.0),
    fam.GammaKnownShape(1e7),
    fam.GammaKnownShape(1e-3),
    fam.NormalKnownMean(1e3),
    fam.LaplaceKnownCentre(-2.0),
    fam.ParetoKnownMinimum(3.0),
    fam.WeibullKnownShape(0.7),
    fam.Rayleigh(),
    fam.Gamma(),
    fam.InverseGamma(),
    fam.InverseGaussian(),
    fam.Beta(),
    fam.Dirichlet(3),
    fam.Normal(),
    fam.LogNormal(),
    fam.NormalKnownVariance(1.0),
    fam.NormalKnownVariance(1e-12),
    fam.VonMises(),
    fam.VonMisesFisher(3),
    fam.MultivariateNormal(2),
    fam.MultivariateNormalDiagonal(2),
    fam.MultivariateNormalIsotropic(2),
    fam.MultivariateNormalKnownCovariance(np.array([[1e-6, 0.9], [0.9, 1e6]])),
    fam.MultivariateNormalKnownMean(np.array([1e3, -1.0])),
    fam.Wishart(2),
    fam.InverseWishart(2),
    fam.NormalInverseGamma(),
    fam.NormalInverseWishart(2),
]


def _signed(rng, n, low, high):
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(low, high, n)


def _positive(rng, n, low, high, single):
    """Powers of ten; a single-precision number has a tenth of the exponents of a double."""
    return 10.0 ** (rng.uniform(low, high, n) / (8 if single else 1))


def _covariances(rng, n, single):
    """Two by two, of scales and shapes that are far from one."""
    scale = np.sqrt(_positive(rng, (n, 2), -4, 4, False)) * np.sqrt(_positive(rng, 1, -90, 90, single))
    cosine = np.tanh(_signed(rng, n, -1, 0.3 if single else 0.8))
    off = cosine * scale[:, 0] * scale[:, 1]
    return np.stack([np.stack([scale[:, 0] ** 2, off], -1), np.stack([off, scale[:, 1] ** 2], -1)], -2)


def members(family, rng, single, n=BATCH):
    """Natural parameters far from the centre of their domain."""
    wide = 30.0 if single else 300.0
    match type(family).__name__:
        case "Bernoulli" | "Binomial" | "Categorical" | "Multinomial":
            return _signed(rng, (n, family.dim), -6, np.log10(wide))
        case "Geometric" | "NegativeBinomial":
            return -_positive(rng, (n, 1), -12, 2, False)
        case "Poisson":
            return rng.uniform(-wide, 25 if not single else 10, (n, 1))
        case "Normal" | "LogNormal":
            scale = _positive(rng, n, -90, 90, single)
            mean = scale * _signed(rng, n, -5, 3 if single else 8)
            return np.stack([mean / scale**2, -0.5 / scale**2], -1)
        case "NormalKnownVariance":
            return _signed(rng, (n, 1), -5, 3 if single else 8) / np.sqrt(family.variance)
        case "Gamma" | "InverseGamma":
            shape = _positive(rng, n, -6, 4 if single else 9, False)
            return np.stack([shape, -_positive(rng, n, -170, 170, single)], -1)
        case "InverseGaussian":
            return -_positive(rng, (n, 2), -140, 140, single)
        case "Beta" | "Dirichlet":
            return _positive(rng, (n, family.dim), -5, 3 if single else 8, False)
        case "VonMises" | "VonMisesFisher":
            direction = rng.standard_normal((n, family.dim))
            return (
                direction
                / np.linalg.norm(direction, axis=1, keepdims=True)
                * _positive(rng, (n, 1), -8, 3 if single else 7, False)
            )
        case "MultivariateNormal":
            covariance = _covariances(rng, n, single)
            root = np.linalg.cholesky(covariance)
            mean = np.einsum("nij,nj->ni", root, _signed(rng, (n, 2), -3, 2 if single else 5))
            return family.natural(mean=mean, covariance=covariance)
        case "MultivariateNormalDiagonal" | "MultivariateNormalIsotropic":
            variances = _positive(rng, (n, family.dim - 2), -150, 150, single)
            mean = np.sqrt(variances) * _signed(rng, (n, 2), -5, 3 if single else 8)
            return np.concatenate([mean / variances, -0.5 / variances], -1)
        case "MultivariateNormalKnownCovariance":
            return family.natural(mean=_signed(rng, (n, 2), -5, 3 if single else 8))
        case "MultivariateNormalKnownMean":
            return family.natural(covariance=_covariances(rng, n, single))
        case "Wishart" | "InverseWishart":
            dof = 1 + _positive(rng, n, -0.5, 3 if single else 4, False)
            return family.natural(dof=dof, scale=_covariances(rng, n, single))
        case "NormalInverseGamma":
            scale = _positive(rng, 1, -90, 90, single) * _positive(rng, n, -4, 4, False)
            kappa, shape = _positive(rng, n, -4, 4, single), _positive(rng, n, -0.5, 3 if single else 4, False)
            mean = np.sqrt(scale / kappa) * _signed(rng, n, -3, 1)
            return family.natural(mean=mean, kappa=kappa, shape=shape, scale=scale)
        case "NormalInverseWishart":
            scale, kappa = _covariances(rng, n, single), _positive(rng, n, -4, 4, single)
            dof = 1 + _positive(rng, n, -0.5, 3 if single else 4, False)
            offset = _signed(rng, (n, 2), -3, 1)
            mean = np.einsum("nij,nj->ni", np.linalg.cholesky(scale), offset) / np.sqrt(kappa)[:, None]
            return family.natural(mean=mean, kappa=kappa, dof=dof, scale=scale)
    return -_positive(rng, (n, 1), -250, 250, single)


def others(family, theta, rng, single):
    """For half of them another member, for half a close one: down to relative distances of 1e-10."""
    far = theta[rng.permutation(len(theta))]
    digits = rng.uniform(-4 if single else -10, -1, (len(theta), 1))
    near = theta * (1 + 10.0**digits * rng.uniform(-1, 1, theta.shape))
    near = np.where(np.asarray(family.in_domain(near))[:, None], near, theta)
    return np.where(rng.uniform(size=(len(theta), 1)) < 0.5, far, near)


def flatten(x, i):
    """Observation `i` of a batch as a list of exact numbers."""
    return [entry for leaf in jax.tree.leaves(x) for entry in exact(np.atleast_1d(np.asarray(leaf)[i]).ravel())]


def violations(family, rng, *, single=False, allowed=1e4, checked=BATCH):
    """Triples (question, parameters, ratio) where the error is more than `allowed` times what rounding explains."""
    mp.dps = digits(family)
    twin = reference(family)
    unit = 2.0**-24 if single else 2.0**-53
    largest = 3e38 if single else 1.7e308
    dtype = np.float32 if single else np.float64
    theta = np.asarray(members(family, rng, single), dtype=dtype)
    theta = theta[np.asarray(family.in_domain(theta))]
    theta = np.resize(theta, (BATCH, family.dim))
    other = np.asarray(others(family, theta, rng, single), dtype=dtype)
    wrap = jnp.asarray if single else np.asarray
    x = jax.tree.map(lambda leaf: leaf[0], family.sample(wrap(theta), 1, rng=int(rng.integers(2**31))))
    inside = np.asarray(family.in_support(x))
    # Divergences of directions are right to rounding, not relative to themselves.
    resolution = 1.0 if "VonMises" in type(family).__name__ else 1e-10
    found = []

    def compare(name, answers, function, *arguments, extra=0.0):
        for i, answer in enumerate(np.asarray(answers, dtype=np.float64)[:checked]):
            given = [each(i) for each in arguments]
            if given[0] is None:
                continue
            truth = function(*given)
            if abs(truth) > largest:
                if np.isnan(answer):
                    found.append((name, [list(map(float, g)) for g in given], np.nan))
                continue
            scale = sensitivity(function, *given) + abs(truth) + mpf(extra) + mpf(10) ** (-38 if single else -300)
            ratio = float(abs(mpf(answer) - truth) / (unit * scale)) if np.isfinite(answer) else np.inf
            if not ratio <= allowed:
                found.append((name, [list(map(float, g)) for g in given], ratio, answer, float(truth)))

    def parameter(values):
        return lambda i: exact(values[i])

    def observation(i):
        return flatten(x, i) if inside[i] else None

    compare("log_prob", family.log_prob(x, wrap(theta)), twin.log_prob, observation, parameter(theta), extra=1.0)
    compare("kl", family.kl(wrap(theta), wrap(other)), twin.kl, parameter(theta), parameter(other), extra=resolution)
    compare("log_partition", family.log_partition(wrap(theta)), twin.log_partition, parameter(theta), extra=1.0)
    if twin.expected_log_base is not None:
        compare("entropy", family.entropy(wrap(theta)), twin.entropy, parameter(theta), extra=1.0)
    mu = family.to_mean(wrap(theta))
    for k in range(family.dim):
        compare("to_mean", np.asarray(mu)[:, k], lambda t, k=k: twin.mean(t)[k], parameter(theta))
    fine = np.asarray(family.in_mean_domain(mu))
    if np.any(fine):
        mu = np.resize(np.asarray(mu)[fine], (BATCH, family.dim))
        try:
            back = family.to_natural(wrap(mu))
        except fam.base.DomainError as refused:
            found.append(("to_natural", [mu.tolist()], np.inf, str(refused)))
            return found
        for k in range(family.dim):
            compare("to_natural", mu[:, k], lambda t, k=k: twin.mean(t)[k], parameter(np.asarray(back)))
    return found


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_extreme_members(family):
    assert violations(family, np.random.default_rng(0), checked=3) == []


@pytest.mark.slow
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_many_extreme_members(family, single):
    for seed in range(1, 21):
        assert violations(family, np.random.default_rng(seed), single=single) == []


def test_divergences_whose_quotients_underflow():
    family = fam.NormalKnownMean()
    kl = family.kl(family.natural(variance=7e-161), family.natural(variance=7e175))
    assert_allclose(kl, 386.36, rtol=1e-4)
    family = fam.InverseGamma()
    assert np.isfinite(family.kl(family.natural(shape=2.0, scale=1e166), family.natural(shape=2.0, scale=1e-177)))


def test_the_spread_of_an_estimate_of_times():
    times = 1.7e9 + np.random.default_rng(0).standard_normal(1000)
    fitted, shifted = fam.Normal().estimate(times), fam.Normal().estimate(times - 1.7e9)
    for name in ("mean", "variance"):
        assert_allclose(fitted.usual_standard_errors[name], shifted.usual_standard_errors[name], rtol=1e-5)
