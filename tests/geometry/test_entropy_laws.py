"""The laws of entropies, each written once and run over all of them: vectors and symmetric matrices alike.

One compiled bundle per entropy evaluates every law at a fixed batch of points; hypothesis chooses the points. The rules
of differentiation are the library's own, so they are compared with finite differences.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.geometry import (
    Burg,
    Euclidean,
    Hypentropy,
    LogDet,
    NegativeLog,
    Power,
    Shannon,
    Spectral,
    VonNeumann,
)

VECTORS = [Euclidean(), Shannon(), Burg(), NegativeLog(), Power(1.5), Hypentropy(0.7)]
MATRICES = [VonNeumann(), LogDet(), Spectral(Hypentropy(0.7))]
EACH = pytest.mark.parametrize("entropy", VECTORS + MATRICES, ids=str)
SOME = pytest.mark.parametrize("entropy", [Power(1.5), Hypentropy(0.7), VonNeumann(), LogDet()], ids=str)
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
BATCH, SIZE = 6, 3
QUICK = {"xla_backend_optimization_level": 0}  # these programs run once: the time goes into compiling them


def on_the_line(entropy):
    base = getattr(entropy, "base", entropy)
    return isinstance(base, Euclidean | Hypentropy) or getattr(base, "alpha", 0) > 1


def points(entropy, rng, spread):
    """A batch of points of the interior: eigenvalues or entries over a few orders of magnitude."""
    values = np.exp(spread * rng.standard_normal((BATCH, SIZE)))
    if on_the_line(entropy):
        values = values * rng.choice([-1.0, 1.0], size=values.shape)
    if entropy.event_ndim == 1:
        return values
    basis = np.linalg.qr(rng.standard_normal((BATCH, SIZE, SIZE)))[0]
    matrix = np.einsum("bij,bj,bkj->bik", basis, values, basis)
    return (matrix + matrix.swapaxes(-2, -1)) / 2


def directions(entropy, rng, x):
    """Tangents small enough to stay inside: x^(1/2) d x^(1/2), or entries in proportion."""
    if entropy.event_ndim == 1:
        return x * rng.uniform(-0.5, 0.5, x.shape)
    values, basis = np.linalg.eigh(x)
    root = np.einsum("bij,bj,bkj->bik", basis, np.sqrt(np.abs(values)), basis)
    d = rng.uniform(-0.15, 0.15, x.shape)
    return root @ (d + d.swapaxes(-2, -1)) @ root


@functools.cache
def compiled(entropy):
    """Both sides of every law, for batches of points ``x, y, z`` and directions ``v`` at ``x``, ``w`` at ``y``."""
    axes = tuple(range(-entropy.event_ndim, 0))

    def dot(a, b):
        return jnp.sum(a * b, axis=axes)

    def bundle(x, y, z, v, w):
        psi, grad, conj, back, D = (
            entropy.value,
            entropy.gradient,
            entropy.conjugate,
            entropy.conjugate_gradient,
            entropy.divergence,
        )
        u, s = grad(x), grad(y)
        h = 1e-5

        def central(f, *pairs):
            up = f(*(p + h * d for p, d in pairs))
            return (up - f(*(p - h * d for p, d in pairs))) / (2 * h)

        def tangent(f, *pairs):
            return jax.jvp(f, tuple(p for p, _ in pairs), tuple(d for _, d in pairs))[1]

        du = entropy.hessian_apply(x, v)
        return {
            "round trip": (back(u), x),
            "dual round trip": (grad(back(u)), u),
            "fenchel-young": (psi(x) + conj(u), dot(x, u)),
            "young gap": psi(x) + conj(s) - dot(x, s) - D(x, y),
            "divergence": D(x, y),
            "no divergence": D(x, x),
            "definition": (D(x, y) + dot(s, x - y), psi(x) - psi(y)),
            "conjugate divergence": (D(x, y) + dot(x, s - u), conj(s) - conj(u)),
            "three points": (D(x, z), D(x, y) + D(y, z) + dot(s - grad(z), x - y)),
            "inverse hessian": (entropy.inverse_hessian_apply(x, du), v),
            "value, by differences": (dot(u, v), central(psi, (x, v))),
            "gradient, by differences": (du, central(grad, (x, v))),
            "conjugate, by differences": (dot(x, du), central(conj, (u, du))),
            "conjugate gradient, by differences": (v, central(back, (u, du))),
            "divergence, by differences": (tangent(D, (x, v), (y, w)), central(D, (x, v), (y, w))),
            "rule of value": (tangent(psi, (x, v)), dot(u, v)),
            "rule of gradient": (tangent(grad, (x, v)), du),
            "rule of conjugate": (tangent(conj, (u, du)), dot(x, du)),
            "rule of conjugate gradient": (tangent(back, (u, du)), v),
            "second derivative of divergence": (
                tangent(lambda a: tangent(lambda b: D(b, y), (a, v)), (x, v)),
                dot(v, du),
            ),
            "reverse mode": (jax.grad(lambda a: jnp.sum(psi(a)))(x), u),
            "inside": entropy.in_domain(x) & entropy.in_conjugate_domain(u),
        }

    return jax.jit(bundle, compiler_options=QUICK)


@EACH
@FEW
@given(seed=st.integers(0, 2**31))
def test_laws(entropy, seed):
    rng = np.random.default_rng(seed)
    x, y, z = (points(entropy, rng, 0.7) for _ in range(3))
    v, w = directions(entropy, rng, x), directions(entropy, rng, y)
    with jax.enable_x64(True):
        laws = jax.tree.map(np.asarray, compiled(entropy)(x, y, z, v, w))
    assert np.all(laws.pop("inside"))
    assert np.all(laws.pop("divergence") > 0)
    assert_array_equal(laws.pop("no divergence") < 1e-25, True)
    assert_allclose(laws.pop("young gap"), 0.0, atol=2e-10)
    for name, (left, right) in laws.items():
        rough = "differences" in name
        scale = np.max(np.abs(right))
        assert_allclose(
            left, right, rtol=2e-7 if rough else 2e-9, atol=scale * (1e-7 if rough else 1e-11), err_msg=name
        )


@SOME
def test_single_precision_keeps_its_type_and_six_digits(entropy):
    rng = np.random.default_rng(1)
    x, y = points(entropy, rng, 0.4), points(entropy, rng, 0.4)

    def answers(x, y):
        u = entropy.gradient(x)
        return (
            *(entropy.value(x), u, entropy.conjugate(u), entropy.conjugate_gradient(u)),
            *(entropy.divergence(x, y), entropy.hessian_apply(x, y), entropy.inverse_hessian_apply(x, y)),
        )

    program = jax.jit(answers, compiler_options=QUICK)
    single = program(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    with jax.enable_x64(True):
        double = jax.tree.map(np.asarray, program(x, y))
    for one, two in zip(single, double, strict=True):
        assert one.dtype == jnp.float32
        assert_allclose(one, two, rtol=2e-4, atol=2e-5 * np.max(np.abs(two)))


@SOME
def test_close_points_keep_their_digits_in_both_precisions(entropy):
    # D(x + h v|x) = h^2 <v, hess v> / 2 + O(h^3): at h = 1e-9 the definition itself has no digit left.
    rng = np.random.default_rng(2)
    x = points(entropy, rng, 0.4)
    v = directions(entropy, rng, x)
    axes = tuple(range(-entropy.event_ndim, 0))
    program = jax.jit(entropy.divergence, compiler_options=QUICK)
    for h, kind, rtol in ((1e-9, np.float64, 1e-6), (1e-4, np.float32, 1e-3)):
        near, base = (x + h * v).astype(kind), x.astype(kind)
        step = near.astype(np.float64) - base.astype(np.float64)
        expected = np.sum(step * entropy.hessian_apply(base.astype(np.float64), step), axis=axes) / 2
        with jax.enable_x64(kind is np.float64):
            got = np.asarray(program(near, base))
        assert got.dtype == kind
        assert_allclose(got, expected, rtol=rtol)


@SOME
def test_numpy_input_gives_float64_numpy_and_agrees_with_vmap(entropy):
    rng = np.random.default_rng(3)
    x, y = points(entropy, rng, 0.7), points(entropy, rng, 0.7)
    got = entropy.divergence(x.tolist(), y)
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.float64
    with jax.enable_x64(True):
        one_by_one = np.asarray(jax.vmap(entropy.divergence)(jnp.asarray(x), jnp.asarray(y)))
    assert_allclose(got, one_by_one, rtol=1e-12)
    assert got.shape == (BATCH,)


def test_no_two_entropies_share_a_compiled_program():
    structures = [jax.tree.structure(entropy) for entropy in (*VECTORS, *MATRICES, Power(0.25), Spectral(Power(0.25)))]
    assert len(set(structures)) == len(structures)
    assert not any(a == b for i, a in enumerate(structures) for b in structures[:i])
