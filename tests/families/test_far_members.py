"""Divergences of members whose matrices differ by many orders of magnitude, against 80-digit arithmetic."""

import functools

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import cumulant.families as fam

SCALES = [1e-150, 1e-40, 1e-6, 1e-2, 1e2, 1e6, 1e20, 1e40, 1e150]


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(80):
        yield


def _matrix(a):
    return mp.matrix(np.asarray(a).tolist())


def _excess(ratio):
    return sum(ratio[i, i] for i in range(ratio.rows)) - ratio.rows - mp.log(mp.det(ratio))


def _normal_kl(mean, covariance, other_mean, other_covariance):
    precision = _matrix(other_covariance) ** -1
    apart = _matrix(np.reshape(other_mean, (-1, 1))) - _matrix(np.reshape(mean, (-1, 1)))
    return (_excess(precision * _matrix(covariance)) + (apart.T * precision * apart)[0]) / 2


def _log_multigamma(a, size):
    return sum(mp.loggamma(a - mp.mpf(i) / 2) for i in range(size))


def _wishart_kl(dof, ratio, other_dof):
    """`ratio` is ``B^-1 B'``."""
    a, b, size = mp.mpf(dof) / 2, mp.mpf(other_dof) / 2, ratio.rows
    digamma = sum(mp.digamma(a - mp.mpf(i) / 2) for i in range(size))
    trace = sum(ratio[i, i] for i in range(size))
    gammas = _log_multigamma(b, size) - _log_multigamma(a, size) - (b - a) * digamma
    return gammas - b * mp.log(mp.det(ratio)) + a * (trace - size)


def _pair(rng, size, scale):
    covariance, other = (root @ root.T + np.eye(size) for root in rng.normal(size=(2, size, size)))
    grades = scale ** rng.choice([0.0, 0.5, 1.0], size=size)  # some directions differ more than others
    return covariance, other * np.sqrt(grades[:, None]) * np.sqrt(grades)


@functools.cache
def _slope(family):
    return jax.jit(jax.grad(lambda far, theta: family.kl(theta, far)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_normals_far_apart(size, scale):
    rng = np.random.default_rng(size)
    covariance, other = _pair(rng, size, scale)
    mean, other_mean = rng.normal(size=(2, size))
    family, known = fam.MultivariateNormal(size), fam.MultivariateNormalKnownMean(np.zeros(size))
    theta = family.natural(mean=mean, covariance=covariance)
    far = family.natural(mean=other_mean, covariance=other)
    assert_allclose(family.kl(theta, far), float(_normal_kl(mean, covariance, other_mean, other)), rtol=1e-10)
    kl = known.kl(known.natural(covariance=covariance), known.natural(covariance=other))
    assert_allclose(kl, float(_normal_kl(mean, covariance, mean, other)), rtol=1e-10)
    if 1e-100 < scale < 1e100:  # the square of a precision overflows beyond
        with jax.enable_x64(True):
            assert np.all(np.isfinite(_slope(family)(jnp.asarray(far), jnp.asarray(theta))))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_wisharts_far_apart(size, scale):
    rng = np.random.default_rng(size)
    covariance, other = _pair(rng, size, scale)
    family = fam.Wishart(size)
    kl = family.kl(family.natural(dof=size + 2.5, scale=covariance), family.natural(dof=size + 7.0, scale=other))
    assert_allclose(
        kl, float(_wishart_kl(size + 2.5, _matrix(other) ** -1 * _matrix(covariance), size + 7.0)), rtol=1e-10
    )


@pytest.mark.parametrize("kappa", [1e-40, 1e-2, 1e3])
@pytest.mark.parametrize(
    "scale", [s for s in SCALES[:-1] if s >= 1e-6]
)  # below, rounding of kappa m m^T hides the scale
def test_normal_inverse_wisharts_far_apart(scale, kappa):
    size, rng = 2, np.random.default_rng(0)
    matrix, other = _pair(rng, size, scale)
    mean, other_mean = np.array([1.0, -2.0]), np.array([1.5, 1.0])
    family = fam.NormalInverseWishart(size)
    theta = family.natural(mean=mean, kappa=2.0, dof=5.0, scale=matrix)
    far = family.natural(mean=other_mean, kappa=kappa, dof=9.0, scale=other)
    # The precision is Wishart with the inverse scale, and E of it is dof times that.
    wishart = _wishart_kl(5.0, _matrix(matrix) ** -1 * _matrix(other), 9.0)
    apart = _matrix((other_mean - mean).reshape(-1, 1))
    strength = mp.mpf(kappa) / 2
    distance = mp.mpf(kappa) * 5 * (apart.T * _matrix(matrix) ** -1 * apart)[0]
    truth = wishart + (size * (strength - 1 - mp.log(strength)) + distance) / 2
    assert_allclose(family.kl(theta, far), float(truth), rtol=1e-8)
