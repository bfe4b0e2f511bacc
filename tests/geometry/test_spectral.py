"""Entropies of matrices: published numbers, the boundary, ties, and rotations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm, logm

from cumulant.errors import DomainError
from cumulant.geometry import LogDet, NegativeLog, Shannon, Spectral, VonNeumann

X = np.array([[2.0, 1.0], [1.0, 2.0]])
Y = np.array([[1.0, 0.5], [0.5, 2.0]])
S = np.array([[1.0, 0.3], [0.3, -0.5]])
EYE = np.eye(2)


def test_published_divergences():
    both = np.stack([EYE, Y])
    assert_allclose(VonNeumann().divergence(X, both), [3 * np.log(3) - 2, 0.452705267234], rtol=1e-11)
    for entropy in (LogDet(), Spectral(NegativeLog())):
        assert_allclose(entropy.divergence(X, both), [2 - np.log(3), 0.318146356410], rtol=1e-11)


def test_divergences_by_their_definitions():
    expected = np.trace(X @ logm(X) - X @ logm(Y) - X + Y)
    assert_allclose(VonNeumann().divergence(X, np.stack([Y, Y])), expected, rtol=1e-13)
    ratio = X @ np.linalg.inv(Y)
    expected = np.trace(ratio) - np.log(np.linalg.det(ratio)) - 2
    assert_allclose(LogDet().divergence(X, np.stack([Y, Y])), expected, rtol=1e-13)


def test_published_hessians():
    # The Hessian of -log det is +X^-1 S X^-1 (Peyré 2021, section 6.3, prints a minus).
    expected = [[0.2555556, 0.0555556], [0.0555556, -0.2444444]]
    assert_allclose(LogDet().hessian_apply(X, S), expected, atol=5e-8)
    assert_allclose(LogDet().inverse_hessian_apply(X, S), X @ S @ X, rtol=1e-14)
    expected = [[0.47864627, 0.11666667], [0.11666667, -0.34531294]]
    assert_allclose(VonNeumann().hessian_apply(X, S), expected, atol=5e-9)


def test_published_mirror_steps():
    step = VonNeumann().conjugate_gradient(VonNeumann().gradient(X) - 0.1 * S)
    assert_allclose(step, [[1.79461347, 0.91806652], [0.91806652, 2.05979419]], atol=5e-9)
    assert_allclose(step, expm(logm(X) - 0.1 * S), rtol=1e-13)
    step = LogDet().conjugate_gradient(LogDet().gradient(X) - 0.1 * S)
    assert_allclose(step, [[1.61953953, 0.79663836], [0.79663836, 2.01348157]], atol=5e-9)


def test_the_boundary():
    half = np.ones((2, 2))  # of rank one: its zero eigenvalue is zero up to rounding only
    von_neumann, log_det = VonNeumann(), LogDet()
    assert_allclose(von_neumann.value(half), 2 * np.log(2), rtol=1e-14)
    assert von_neumann.in_domain(half)
    assert not log_det.in_domain(half)
    assert log_det.value(half) == np.inf
    assert von_neumann.value(-half) == np.inf
    # The null space of y must be in that of x.
    pairs = von_neumann.divergence(np.stack([half, 2 * half, X]), np.stack([X, half, half]))
    assert_allclose(pairs[:2], [np.trace(-half @ logm(X)) + 2 * np.log(2) - 2 + 4, 4 * np.log(2) - 2], rtol=1e-12)
    assert pairs[2] == np.inf
    assert_array_equal(von_neumann.in_domain(np.stack([X, -X, np.triu(X), X * np.nan])), [1, 0, 0, 0])


def test_repeated_eigenvalues_have_derivatives():
    for entropy in (VonNeumann(), LogDet()):
        with jax.enable_x64(True):

            @jax.jit
            def answers(x, s, entropy=entropy):
                def second(a):
                    return jax.jvp(entropy.value, (a,), (s,))[1]

                return (
                    jax.grad(entropy.value)(x),
                    jax.jvp(second, (x,), (s,))[1],
                    jax.grad(entropy.divergence)(x, x + s / 9),
                )

            gradient, curvature, of_divergence = answers(jnp.eye(2), jnp.asarray(S))
        assert_allclose(gradient, entropy.gradient(EYE), atol=1e-15)
        assert_allclose(curvature, np.sum(S * S), rtol=1e-14)  # the Hessian is the identity there
        assert_allclose(of_divergence, entropy.gradient(EYE) - entropy.gradient(EYE + S / 9), atol=1e-13)


def test_close_matrices_with_a_wide_spectrum():
    # D(c X|X) = tr(X) (c log c - c + 1) for von Neumann and d (c - 1 - log c) for log-det.
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    x = basis @ np.diag([0.1, 1.0, 10.0, 1e3]) @ basis.T
    x = np.round((x + x.T) * 2**11) / 2**12  # so few digits that c X is exact
    h = 2.0**-30
    assert_allclose(VonNeumann().divergence(x * (1 + h), x), np.trace(x) * h**2 / 2, rtol=1e-9)
    assert_allclose(LogDet().divergence(x * (1 + h), x), 4 * h**2 / 2, rtol=2e-9)


def test_refusals():
    with pytest.raises(DomainError, match="x of gradient must be symmetric and finite"):
        VonNeumann().gradient([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(DomainError, match="x of gradient must be a matrix with eigenvalues positive and finite"):
        VonNeumann().gradient(-EYE)
    with pytest.raises(DomainError, match="x of gradient must be a matrix with eigenvalues positive and finite"):
        VonNeumann().gradient(np.diag([1.0, 0.0]))
    with pytest.raises(DomainError, match="u of conjugate_gradient must be a negative definite matrix"):
        LogDet().conjugate_gradient(EYE)
    with pytest.raises(
        ValueError, match=r"x must be square matrices on the last two axes for LogDet\(\); got shape \(2,\)"
    ):
        LogDet().value([1.0, 2.0])
    with pytest.raises(TypeError, match="base of Spectral must be an entropy of vectors"):
        Spectral(LogDet())
    assert VonNeumann() == Spectral(Shannon()) or isinstance(VonNeumann(), Spectral)
