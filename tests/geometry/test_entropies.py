"""Entropies of vectors against long decimal arithmetic and the published numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.errors import DomainError
from cumulant.geometry import Burg, Euclidean, Hypentropy, NegativeLog, Power, Shannon, csiszar
from tests.reference import geometry_decimal as reference

X, Y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
# The limits, both sides of each, and members away from them.
ALPHAS = [-3.0, -1e-9, 0.0, 1e-9, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.5, 2 - 1e-9, 2.0, 9.0]
POINTS = np.concatenate([np.geomspace(1e-8, 1e8, 17), 1 + np.array([1e-12, -1e-9, 1e-5, -1e-3, 0.03, -0.1, 0.16])])
RELATIVE = np.concatenate([10.0 ** -np.arange(2, 13), -(10.0 ** -np.arange(2, 13)), [0.14, -0.14, 1e-9]])
CLOSE = (np.linspace(0.5, 2.0, RELATIVE.size) * np.array([1e-8, 1.0, 1e6])[:, None]).ravel()
FAR = [each.ravel() for each in np.meshgrid(np.geomspace(1e-6, 1e6, 7), np.geomspace(1e-5, 1e7, 7))]


def exactly(function, *arrays):
    """A reference function over arrays of doubles."""
    return np.array([float(function(*(reference.exact(each) for each in row))) for row in zip(*arrays, strict=True)])


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def everything(entropy, x, u, close, far):
    """All the scalar functions in one program, each entry a vector of its own."""
    return {
        "value": entropy.value(x[:, None]),
        "gradient": entropy.gradient(x),
        "conjugate": entropy.conjugate(u[:, None]),
        "conjugate_gradient": entropy.conjugate_gradient(u),
        "close": entropy.divergence(close[0][:, None], close[1][:, None]),
        "far": entropy.divergence(far[0][:, None], far[1][:, None]),
    }


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_exponent_keeps_full_relative_accuracy(alpha):
    # Dual points with 1 + (alpha - 1) u in [0.01, ...), where the conjugate is well conditioned.
    reach = 0.99 / (1 - alpha) if alpha < 1 else np.inf
    down = -0.99 / (alpha - 1) if alpha > 1 else -np.inf
    u = np.concatenate([np.linspace(max(-5, down), min(reach, 3.0), 24), [1e-12, -1e-9, 1e-4]])
    close = (CLOSE * (1 + np.tile(RELATIVE, 3)), CLOSE)
    with jax.enable_x64(True):
        got = everything(Power(alpha), POINTS, u, close, FAR)
    assert_allclose(got["value"], exactly(lambda x: reference.psi(alpha, x), POINTS), rtol=2e-14)
    assert_allclose(got["gradient"], exactly(lambda x: reference.slope(alpha, x), POINTS), rtol=2e-14)
    assert_allclose(got["conjugate"], exactly(lambda t: reference.conjugate(alpha, t), u), rtol=2e-13)
    assert_allclose(got["conjugate_gradient"], exactly(lambda t: reference.inverse_slope(alpha, t), u), rtol=2e-13)
    assert_allclose(got["close"], exactly(lambda s, t: reference.divergence(alpha, s, t), *close), rtol=1e-14)
    assert_allclose(got["far"], exactly(lambda s, t: reference.divergence(alpha, s, t), *FAR), rtol=2e-14)


@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_exponents_above_one_live_on_the_whole_line(alpha):
    values = np.array([-3.0, -1.0, -0.2, 0.0, 0.4, 2.0])
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    expected = exactly(lambda a, b: reference.divergence(alpha, a, b), x, y)
    entropy = Power(alpha)
    assert_allclose(entropy.divergence(x[:, None], y[:, None]), expected, rtol=1e-14, atol=1e-300)
    assert_allclose(entropy.conjugate_gradient(entropy.gradient(values)), values, rtol=1e-14, atol=1e-15)
    # Derivatives at zero and across it are those of the formulas, not of the branches.
    slopes = jax.jit(jax.grad(entropy.value))(jnp.asarray(values, dtype=jnp.float32))
    assert_allclose(slopes, entropy.gradient(values), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("beta", [1e-7, 0.3, 1e3])
def test_hypentropy_keeps_full_relative_accuracy(beta):
    values = np.concatenate(
        [[-1e3, -1.0, -0.3, -1e-9, 0.0], np.geomspace(1e-9, 1e3, 9), [1.0 + 1e-9, 0.3 * (1 - 1e-7)]]
    )
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    b = reference.exact(beta)
    expected = exactly(lambda s, t: reference.hypentropy_divergence(b, s, t), x, y)
    entropy = Hypentropy(beta)
    assert_allclose(entropy.divergence(x[:, None], y[:, None]), expected, rtol=3e-14, atol=1e-300)
    assert_allclose(entropy.value(values[:, None]), exactly(lambda s: reference.hypentropy(b, s), values), rtol=1e-14)
    assert_allclose(entropy.conjugate_gradient(entropy.gradient(values)), values, rtol=1e-13)
    u = entropy.gradient(values)
    assert_allclose(
        entropy.conjugate(u[:, None]), exactly(lambda t: reference.hypentropy_conjugate(b, t), u), rtol=1e-13
    )


def test_hypentropy_takes_one_beta_a_coordinate_and_differentiates_in_it():
    beta, x = np.array([0.5, 2.0]), np.array([-1.0, 3.0])
    entropy = Hypentropy(beta)
    assert_allclose(entropy.value(x), Hypentropy(0.5).value(x[:1]) + Hypentropy(2.0).value(x[1:]), rtol=1e-15)
    y = np.array([0.2, 0.3])
    with jax.enable_x64(True):

        @jax.jit
        def of(b):
            return Hypentropy(b).value(jnp.asarray(x)) + Hypentropy(b).divergence(jnp.asarray(x), jnp.asarray(y))

        h = 1e-6
        numeric = [(of(beta + h * e) - of(beta - h * e)) / (2 * h) for e in np.eye(2)]
        assert_allclose(jax.jit(jax.grad(of))(jnp.asarray(beta)), numeric, rtol=1e-8)


# Published numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        (Power(2.0), 1.0),
        (Euclidean(), 1.0),
        (Power(1.5), 0.828427124746),
        (Shannon(), 0.693147180560),
        (Power(1.0), 0.693147180560),
        (Power(0.5), 0.585786437627),
        (Burg(), 0.5),
        (NegativeLog(), 0.5),
        (Power(0.0), 0.5),
        (Power(-1.0), 0.375),
    ],
    ids=str,
)
def test_divergences_of_the_power_family(entropy, expected):
    # Peyré 2021, equation (27), prints the Burg divergence with its sign reversed (-0.5 here).
    assert_allclose(entropy.divergence(X, Y), expected, rtol=1e-11)


def test_the_power_family_tends_to_shannon_and_burg():
    x = np.geomspace(0.1, 10, 21)[:, None]
    for near, limit in ((1.0, Shannon()), (0.0, Burg())):
        for gap in (1e-9, 1e-4):
            distance = np.abs(Power(near + gap).value(x) - limit.value(x))
            assert np.all(distance <= 30 * gap)  # smooth in alpha: the derivative is below 30 on these points
            assert np.all(distance[np.abs(x[:, 0] - 1) < 0.6] < 1e-5)


def test_csiszar_equals_bregman_for_shannon_only():
    assert_allclose(csiszar(Shannon(), X, Y), Shannon().divergence(X, Y), rtol=1e-15)
    assert_allclose(csiszar(Shannon(), X, Y), 0.6931471806, rtol=1e-9)
    assert_allclose(csiszar(Burg(), X, Y), 0.6931471806, rtol=1e-9)
    assert_allclose(Burg().divergence(X, Y), 0.5, rtol=1e-14)


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        (Euclidean(), (1.1, 1.9)),
        (Shannon(), (1.10517092, 1.80967484)),
        (Burg(), (1.11111111, 1.66666667)),
        (NegativeLog(), (1.11111111, 1.66666667)),  # affine terms do not change a mirror step
        (Power(0.5), (1.10803324, 1.74455927)),
    ],
    ids=str,
)
def test_one_mirror_step(entropy, expected):
    gradient = X - np.array([2.0, 1.0])
    assert_allclose(entropy.conjugate_gradient(entropy.gradient(X) - 0.1 * gradient), expected, atol=5e-9)


def test_exponentiated_gradient_on_the_simplex():
    x = np.full(3, 1 / 3)
    for _ in range(10):
        x = Shannon().conjugate_gradient(Shannon().gradient(x) - 0.5 * np.array([1.0, 2.0, 3.0]))
        x = x / x.sum()
    assert_allclose(x, (0.993262357, 0.006692549, 4.50940e-5), rtol=1e-6)


# Csiszár divergences ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_csiszar_is_the_mean_of_psi_at_the_ratio_and_jointly_convex(alpha):
    rng = np.random.default_rng(3)
    entropy = Power(alpha)
    x, y, a, b = rng.gamma(1.0, size=(4, 50, 5)) + 0.05
    assert_allclose(csiszar(entropy, x, y), np.sum(y * entropy.value((x / y)[..., None]), axis=-1), rtol=1e-12)
    middle = csiszar(entropy, (x + a) / 2, (y + b) / 2)
    assert np.all(middle <= (csiszar(entropy, x, y) + csiszar(entropy, a, b)) / 2 + 1e-13)
    z = y * (1 + 1e-9)
    expected = exactly(
        lambda s, t: t * reference.psi(alpha, s / t), z[0], y[0]
    )  # the accuracy for close measures is that of the divergence
    assert_allclose(csiszar(entropy, z[0], y[0]), expected.sum(), rtol=1e-13)


def test_csiszar_charges_the_recession_constant_for_mass_where_y_has_none():
    x, y = np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.0])
    assert csiszar(Shannon(), x, y) == np.inf
    assert csiszar(Power(2.0), x, y) == np.inf
    assert_allclose(csiszar(Burg(), x, y), np.log(2) - 0.5 + 0.5, rtol=1e-15)
    assert_allclose(csiszar(Power(0.5), x, y), Power(0.5).value([0.5]) + 2.0 * 0.5, rtol=1e-15)
    assert csiszar(Shannon(), y, y) == 0
    for alpha in (-1.0, 0.0, 0.5):  # lim psi(s) / s, from the definition
        psi = float(reference.psi(alpha, reference.exact(1e12)))
        assert_allclose(Power(alpha).recession, psi / 1e12, rtol=3e-6)


@pytest.mark.parametrize("entropy", [Euclidean(), Hypentropy(1.0), NegativeLog()], ids=str)
def test_csiszar_refuses_an_entropy_without_its_zero_at_one(entropy):
    with pytest.raises(TypeError, match=r"zero minimum at one.*Power\(2.0\)"):
        csiszar(entropy, X, Y)


def test_csiszar_refuses_negative_measures():
    with pytest.raises(DomainError, match=r"x of csiszar must be non-negative and finite; got -1\. at index 1"):
        csiszar(Shannon(), [1.0, -1.0], Y)


# The boundary -------------------------------------------------------------------------------------------------------


def test_zero_log_zero_is_zero():
    x, y = np.array([[0.0], [0.0], [0.1], [0.0]]), np.array([[0.5], [0.0], [0.0], [1.0]])
    assert_array_equal(Shannon().divergence(x, y), [0.5, 0.0, np.inf, 1.0])
    assert_allclose(Power(0.5).divergence(x, y), [2 * np.sqrt(0.5), 0.0, np.inf, 2.0])
    assert_allclose(Power(1.5).divergence(x, y), [0.5**1.5 / 1.5, 0.0, 0.1**1.5 / 0.75, 1 / 1.5])
    assert Shannon().value([0.0, 1.0]) == 1.0


def test_outside_the_domain_the_value_is_infinite():
    x = np.array([[-1.0, 1.0], [0.0, 2.0], [1.0, np.nan]])
    for entropy in (Shannon(), Burg(), Power(0.5), NegativeLog(), Power(-1.0)):
        assert entropy.value(x[0]) == np.inf
        assert entropy.divergence(x[0], [1.0, 1.0]) == np.inf
        closed = entropy in (Shannon(), Power(0.5))
        assert np.isfinite(entropy.value(x[1])) == closed
        assert_array_equal(entropy.in_domain(x), [False, closed, False])
    u = np.array([[0.5], [0.6], [1.0], [1.9], [2.0]])
    for entropy, expected in (
        (Burg(), [True, True, False, False, False]),
        (NegativeLog(), [False] * 5),
        (Power(0.5), [True, True, True, True, False]),
        (Power(-1.0), [True, False, False, False, False]),  # closed at its end, 1/2, where alpha < 0
        (Shannon(), [True] * 5),
    ):
        assert_array_equal(np.isfinite(entropy.conjugate(u)), expected)
        assert_array_equal(entropy.in_conjugate_domain(u), expected)
    assert_allclose(Power(-1.0).conjugate(u)[0], 1.0)


def test_a_mirror_step_keeps_a_zero_at_zero():
    for entropy in (Shannon(), Burg(), Power(0.5)):
        x = np.array([0.0, 1.0])
        assert_array_equal(entropy.conjugate_gradient(entropy.gradient(x) - 0.1)[0], 0.0)
        assert_array_equal(entropy.inverse_hessian_apply(x, np.ones(2))[0], 0.0)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_derivatives_at_zero_are_never_nan(alpha):
    entropy = Power(alpha)
    x, y = jnp.array([0.0, 1.0, 0.3]), jnp.array([0.5, 1.0, 2.0])
    u = jnp.array([-1 / (alpha - 1) if alpha > 1 else -50.0, 0.0, 0.2])

    @jax.jit
    def slopes(x, y, u):
        return (
            *(jax.grad(entropy.value)(x), *jax.grad(entropy.divergence, (0, 1))(x, y)),
            *(jax.grad(entropy.conjugate)(u), jax.jacobian(entropy.conjugate_gradient)(u)),
        )

    answers = slopes(x, y, u)
    assert not any(np.any(np.isnan(each)) for each in answers)
    assert_allclose(answers[0], entropy.gradient(np.asarray(x, dtype=float)), rtol=1e-5)


# Bad input ----------------------------------------------------------------------------------------------------------


def test_refusals_name_the_argument_the_value_and_what_is_accepted():
    with pytest.raises(DomainError, match=r"x of gradient must be non-negative and finite; got -2\. at index 1, 0"):
        Shannon().gradient([[1.0, 2.0], [-2.0, 3.0]])
    with pytest.raises(DomainError, match=r"u of conjugate_gradient must be below 1; got 1\.5 at index 0"):
        Burg().conjugate_gradient([1.5])
    with pytest.raises(DomainError, match="u of conjugate_gradient must be negative"):
        NegativeLog().conjugate_gradient([0.5])
    with pytest.raises(DomainError, match="x of hessian_apply must be positive and finite"):
        Shannon().hessian_apply([0.0], [1.0])
    with pytest.raises(DomainError, match="y of divergence must be non-negative and finite"):
        Shannon().divergence([1.0], [-1.0])
    with pytest.raises(DomainError, match="x of value must be free of NaN; got nan at index 1"):
        Euclidean().value([0.0, np.nan])
    with pytest.raises(DomainError, match="u of conjugate must be free of NaN"):
        Shannon().conjugate([np.nan])
    with pytest.raises(ValueError, match=r"x must be vectors on the last axis for Shannon\(\); got shape \(\)"):
        Shannon().value(1.0)
    with pytest.raises(ValueError, match=r"must have equal sizes; got x of shape \(2,\), y of shape \(3,\)"):
        Shannon().divergence([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="array of real numbers"):
        Shannon().value(np.array(["a"]))


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="alpha of Power must be finite"):
        Power(np.inf)
    with pytest.raises(TypeError, match="alpha of Power must be a number known in advance"):
        Power(jnp.array(1.5))
    for beta in (0.0, -1.0, np.nan, [1.0, -1.0]):
        with pytest.raises(ValueError, match="beta of Hypentropy must be positive and finite"):
            Hypentropy(beta)
