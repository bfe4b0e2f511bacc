"""The transparent engine against JAX, closed forms and itself: modes agree, nest, and cost what theory says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant.layers import autodiff as ad

MINE = {"exp": ad.exp, "log": ad.log, "sqrt": ad.sqrt, "sin": ad.sin, "cos": ad.cos, "tanh": ad.tanh,
        "abs": ad.absolute, "max": ad.maximum}  # fmt: skip
JAX = {"exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "sin": jnp.sin, "cos": jnp.cos, "tanh": jnp.tanh,
       "abs": jnp.abs, "max": jnp.maximum}  # fmt: skip


def example(x, y):
    """Equation 55 of the course: ``y log x + sqrt(y log x)``."""
    product = y * ad.log(x)
    return product + ad.sqrt(product)


def test_the_worked_example_in_every_mode():
    """f = 3.521468428281, f_x = 2.020101259532, f_y = .933484994993 at (2, 3)."""
    expected = [2.020101259532, 0.933484994993]
    value, slopes = ad.reverse_vjp(example, [2.0, 3.0])
    assert_allclose(value, 3.521468428281, atol=5e-13)
    assert_allclose(slopes, expected, atol=5e-13)
    forward = [ad.forward_jvp(example, [2.0, 3.0], unit)[1] for unit in ([1.0, 0.0], [0.0, 1.0])]
    assert_allclose(forward, slopes, rtol=1e-14)
    x, y = ad.Expression.variable("x"), ad.Expression.variable("y")
    formulas = [ad.symbolic_grad(example(x, y), v) for v in (x, y)]
    assert_allclose([f.evaluate(x=2.0, y=3.0) for f in formulas], slopes, rtol=1e-14)
    assert_allclose(ad.fd_grad(lambda z: example(*z), np.array([2.0, 3.0])), expected, rtol=1e-9)


def network(f, W, u, x):
    """All operations at once, with broadcasting and products of matrices and vectors."""
    hidden = f["tanh"](W @ x + 0.5) / (3.0 - f["cos"](u))
    inner = u @ hidden
    both = f["max"](hidden, 0.1) * f["exp"](-(hidden**2)) - f["abs"](hidden - 0.2)
    return f["sqrt"](1.0 + both @ both) + f["log"](3.0 + inner * inner) + f["sin"](inner) ** 3 + 2.0 ** (inner / 4.0)


def both_networks(rng):
    W, u, x = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    mine = lambda W, u, x: network(MINE, W, u, x)  # noqa: E731
    theirs = lambda W, u, x: network(JAX, W, u, x)  # noqa: E731
    return (W, u, x), mine, theirs


@pytest.mark.parametrize("seed", range(5))
def test_gradients_are_those_of_jax(seed):
    rng = np.random.default_rng(seed)
    point, mine, theirs = both_networks(rng)
    with jax.enable_x64(True):
        value, slopes = jax.value_and_grad(theirs, (0, 1, 2))(*point)
        direction = [rng.normal(size=p.shape) for p in point]
        tangent = jax.jvp(theirs, point, tuple(direction))[1]
    found, gradients = ad.reverse_vjp(mine, list(point))
    assert_allclose(found, value, rtol=1e-13)
    for ours, theirs_ in zip(gradients, slopes, strict=True):
        assert_allclose(ours, theirs_, rtol=1e-11, atol=1e-13)
    assert_allclose(ad.forward_jvp(mine, list(point), direction)[1], tangent, rtol=1e-11)
    assert_allclose(ad.forward_grad(lambda x: mine(point[0], point[1], x), point[2]), gradients[2], rtol=1e-11)


def test_powers_at_zero():
    """``x**0`` has the slope 0 there too, which every further derivative of ``x**2`` leads to; it was NaN."""
    for function in (lambda x: x**0, lambda x: x**1, lambda x: x**2, lambda x: 0.0**x):
        for x in (0.0, 2.0):
            with jax.enable_x64(True):
                expected = jax.grad(function)(x), jax.grad(jax.grad(function))(x)
            slope = lambda y, function=function: ad.reverse_vjp(function, y)[1]  # noqa: E731
            if function(1.0) == 0.0 and x == 0.0:
                continue  # 0**0 has no slope in the exponent
            assert_allclose((slope(x), ad.forward_jvp(slope, x, 1.0)[1]), expected)
            assert_allclose(ad.forward_grad(slope, x), expected[1])
    third = ad.forward_grad(lambda x: ad.forward_jvp(lambda y: ad.reverse_vjp(lambda z: z**2, y)[1], x, 1.0)[1], 0.0)
    assert third == 0.0
    x = ad.Expression.variable("x")
    assert ad.symbolic_grad(x**0.0, x).evaluate(x=0.0) == 0.0


@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (4, 2)), ((3, 4), (4,)), ((4,), (4, 2)), ((4,), (4,))], ids=["mm", "mv", "vm", "vv"]
)
def test_matrix_products_and_broadcasting(a, b):
    """Forward and backward are transposes of each other: ``<c, J v> = <J^T c, v>``."""
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=a), rng.normal(size=b)

    def function(A, B):
        return (A @ B) * 2.0 + ad.total(A * A)

    out, _ = ad.forward_jvp(function, [A, B], [A, B])
    cotangent, dA, dB = rng.normal(size=np.shape(out)), rng.normal(size=a), rng.normal(size=b)
    pulled = ad.reverse_vjp(function, [A, B], cotangent)[1]
    pushed = ad.forward_jvp(function, [A, B], [dA, dB])[1]
    assert_allclose(np.sum(cotangent * pushed), np.sum(pulled[0] * dA) + np.sum(pulled[1] * dB), rtol=1e-12)


def test_sums_over_what_was_copied():
    rng = np.random.default_rng(1)
    A, row, column = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(3, 1))
    slopes = ad.reverse_vjp(lambda A, r, c, s: ad.total(A * r / c + s), [A, row, column, 2.0])[1]
    assert_allclose(slopes[0], row / column)
    assert_allclose(slopes[1], (A / column).sum(axis=0))
    assert_allclose(slopes[2], -(A * row).sum(axis=1, keepdims=True) / column**2)
    assert_allclose(slopes[3], 12.0)


@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_hessians_by_nested_modes(x, y):
    """``f = x^y``: forward over reverse, reverse over forward, forward over forward, against the formulas."""
    f = lambda x, y: x**y  # noqa: E731
    exact = np.array([
        [y * (y - 1) * x ** (y - 2), x ** (y - 1) * (1 + y * np.log(x))],
        [x ** (y - 1) * (1 + y * np.log(x)), x**y * np.log(x) ** 2],
    ])  # fmt: skip
    units = np.eye(2).tolist()
    fwd_rev = [
        [ad.forward_jvp(lambda *z, k=k: ad.reverse_vjp(f, list(z))[1][k], [x, y], e)[1] for e in units] for k in (0, 1)
    ]
    rev_fwd = [ad.reverse_vjp(lambda *z, e=e: ad.forward_jvp(f, list(z), e)[1], [x, y])[1] for e in units]
    fwd_fwd = [
        [ad.forward_jvp(lambda *z, d=d: ad.forward_jvp(f, list(z), d)[1], [x, y], e)[1] for e in units] for d in units
    ]
    for found in (fwd_rev, rev_fwd, fwd_fwd):
        assert_allclose(found, exact, rtol=1e-10, atol=1e-10)


def test_an_inner_derivative_does_not_take_the_outer_variable_for_its_own():
    """d/dx [x * d/dy (x + y)] = 1; with one infinitesimal for both it would be 2 (Siskind and Pearlmutter 2005)."""

    def outer(x):
        return x * ad.forward_jvp(lambda y: x + y, 1.0, 1.0)[1]

    assert ad.forward_jvp(outer, 3.0, 1.0)[1] == 1.0
    assert ad.reverse_vjp(lambda x: x * ad.reverse_vjp(lambda y: x + y, 1.0)[1], 3.0)[1] == 1.0


def test_corners():
    assert ad.reverse_vjp(ad.absolute, 0.0)[1] == 0.0
    assert ad.reverse_vjp(ad.maximum, [1.0, 1.0])[1] == [1.0, 0.0]
    assert ad.forward_jvp(lambda x: 3.0, 1.0, 1.0) == (3.0, 0.0)
    assert ad.reverse_vjp(lambda x, y: x * 2.0, [1.0, 5.0])[1] == [2.0, 0.0]
    assert_allclose(ad.forward_jvp(lambda x: -x / x**2, 2.0, 1.0)[1], 0.25)
    assert (abs(ad.Dual(-2.0, 1.0)).value, abs(ad.Dual(-2.0, 1.0)).tangent) == (2.0, -1.0)
    with np.errstate(divide="ignore"):
        assert ad.reverse_vjp(ad.sqrt, np.float64(0.0))[1] == np.inf  # as it is, not a number made up
    with pytest.raises(TypeError, match="forward_jvp or reverse_vjp inside"):
        ad.forward_jvp(lambda x: ad.fd_grad(ad.sin, x), 1.0, 1.0)
    for mode in (lambda f: ad.reverse_vjp(f, 1.0), lambda f: ad.forward_jvp(f, 1.0, 1.0)):
        for function in (lambda x: [x, x], lambda x: np.array([x, 2 * x])):  # the gradient of either was 0
            with pytest.raises(TypeError, match="must return one number or array"):
                mode(function)
    with pytest.raises(ValueError, match="evaluate needs a value of x; got y"):
        ad.Expression.variable("x").evaluate(y=1.0)
    with pytest.raises(ValueError, match="scheme must be"):
        ad.fd_grad(ad.sin, 1.0, "backward")


def test_formulas_share_equal_parts_and_swell_when_written_out():
    x = ad.Expression.variable("x")
    f = x
    for _ in range(12):
        f = 3.7 * f * (1 - f)
    slope = ad.symbolic_grad(f, x)
    assert slope.operations() < 150 < 10_000 < slope.operations(shared=False)

    def iterated(x):
        for _ in range(12):
            x = 3.7 * x * (1 - x)
        return x

    assert_allclose(slope.evaluate(x=0.3), ad.reverse_vjp(iterated, 0.3)[1], rtol=1e-12)
    assert ad.Expression.variable("x") is x
    assert str(ad.symbolic_grad(ad.sin(x) * x, x)) == "((x * cos(x)) + sin(x))"


def test_what_derivatives_cost():
    """A gradient by reverse mode costs a few evaluations whatever the number of inputs; by forward mode, and by finite
    differences, about as many evaluations as there are inputs. All arithmetic is counted while it is done.
    """
    ratios = {}
    for p in (5, 50):
        W, u = np.ones((10, p)) * 0.1, np.ones(10)

        def loss(x, W=W, u=u):
            return ad.total(ad.tanh(W @ ad.tanh(x)) * u)

        x = np.linspace(-1, 1, p)
        alone = ad.count(loss, x)[1].total
        reverse = ad.count(lambda x, f=loss: ad.reverse_vjp(f, x)[1], x)
        forward = ad.count(lambda x, f=loss: ad.forward_grad(f, x), x)
        differences = ad.count(lambda x, f=loss: ad.fd_grad(f, x), x)
        assert_allclose(reverse[0], forward[0], rtol=1e-13)
        assert_allclose(differences[0], reverse[0], atol=1e-9)
        ratios[p] = [each[1].total / alone for each in (reverse, forward, differences)]
    assert max(ratios[5][0], ratios[50][0]) < 4
    assert 8 < ratios[50][1] / ratios[5][1] < 12
    assert 8 < ratios[50][2] / ratios[5][2] < 12


def test_reverse_visits_each_node_once():
    """``x_{k+1} = x_k + x_k`` has 2^n paths and n nodes."""

    def doubled(x):
        for _ in range(60):
            x = x + x
        return x

    slope, done = ad.count(lambda x: ad.reverse_vjp(doubled, x)[1], 1.0)
    assert slope == 2.0**60
    assert done.nodes <= 180


def test_finite_differences_have_a_best_step():
    """Of exp at 1: errors fall with the step, then rise; central differences do better; defaults are near the best."""

    def error(scheme, step=None):
        return abs(ad.fd_grad(ad.exp, 1.0, scheme, step) - np.e)

    assert_allclose(error("forward", 1e-6), 1.36e-6, rtol=0.01)
    assert error("forward", 1e-8) < 3e-8
    assert 1e-7 < error("forward", 1e-10) < 1e-5
    assert error("central", 1e-6) < 1e-9
    for scheme, smallest in (("forward", 1e-7), ("central", 1e-9)):
        best = min(error(scheme, step) for step in 10.0 ** np.arange(-12, 0))
        assert best < smallest
        assert error(scheme) < smallest
