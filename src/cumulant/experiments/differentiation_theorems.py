"""Sections 9 and 10 of the course: networks and derivatives, and each printed formula that is wrong, on examples."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from cumulant import layers
from cumulant.experiments.base import Report, claim, experiment, listed
from cumulant.layers import autodiff
from cumulant.plotting import COLOURS, figure
from cumulant.precision import float64
from cumulant.randomness import generator

TITLE = "Approximation by networks, back-propagation, argmin layers and transport: theorems and corrections of a course"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, sections 9 and 10"
_NOTES = (
    "Corrections of spelling only are left out: rho for phi in proposition 14, F(h) for F(mu), the number of an "
    "equation. Proposition 13 is an application of the theorem of Hahn and Banach with nothing to compute; it is "
    "stated for signed measures. Proposition 14 is put to the test on measures of finitely many points."
)
COST, A, B, EPSILON = (
    np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]]),
    np.array([0.2, 0.5, 0.3]),
    np.array([0.6, 0.4]),
    0.5,
)


@experiment
def run(quick: bool, rng: int) -> Report:
    """Random networks and chains; differences are central, of step 1e-6, unless it is said otherwise."""
    generate = generator(rng)
    density, errors = _density(generate, (10, 40) if quick else (10, 40, 160))
    differences, curve = _finite_differences()
    claims = (
        density,
        _separating_measures(generate),
        _telescope(),
        _barron_constant(),
        _expansion(generate),
        differences,
        _example(),
        _sons(),
        *_back_propagation(generate),
        _order_of_products(),
        _residual_shapes(generate),
        *_argmin(),
        _envelope(),
        _simultaneous(),
        _unrolled(),
    )
    return Report(claims, lambda: _draw(errors, curve), _NOTES)


def _slopes(function, x, h=1e-6):
    """Central differences of a function of an array."""
    x, found = np.asarray(x, dtype=np.float64), []
    for unit in np.eye(x.size).reshape(-1, *x.shape):
        found.append((function(x + h * unit) - function(x - h * unit)) / (2 * h))
    return np.array(found).reshape(x.shape)


def _density(generate, widths):
    """Theorem 3: the uniform error on a square of the best combination of random neurons of growing number."""
    side = np.linspace(-1, 1, 25)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    target = np.abs(points[:, 0]) * np.cos(3 * points[:, 1]) + (points[:, 0] > points[:, 1]) * (points @ [1.0, -1.0])
    W, z = 8 * generate.normal(size=(max(widths), 2)), 6 * generate.normal(size=max(widths))
    errors = {}
    for name, rho in (("sigmoid", expit), ("square", np.square)):
        features = rho(points @ W.T + z)
        errors[name] = [
            float(np.max(np.abs(features[:, :q] @ np.linalg.lstsq(features[:, :q], target, rcond=1e-12)[0] - target)))
            for q in widths
        ]
    found = claim(
        item="Theorem 3",
        statement="combinations of sigmoid neurons come as close as one likes to a continuous function; those of a "
        "polynomial do not",
        published="dense in C(Omega), without a rate",
        ours=f"a function with kinks on a 25 x 25 grid, {listed(widths, 'g')} neurons: largest error "
        f"{listed(errors['sigmoid'])} with sigmoids, {listed(errors['square'])} with squares",
        holds=all(b < a / 1.5 for a, b in itertools.pairwise(errors["sigmoid"]))
        and errors["square"][-1] > 0.9 * errors["square"][0],
    )
    return found, (widths, errors)


def _separating_measures(generate):
    """A measure on finitely many points that all neurons integrate to zero is in the kernel of their matrix."""
    points, W, z = generate.normal(size=(30, 3)), 4 * generate.normal(size=(2000, 3)), 4 * generate.normal(size=2000)
    singular = {
        name: np.linalg.svd(rho(points @ W.T + z), compute_uv=False)
        for name, rho in (("sigmoid", expit), ("square", np.square))
    }
    ranks = {name: int(np.sum(s > 1e-9 * s[0])) for name, s in singular.items()}
    half = float(np.max(np.abs(expit(1e4 * (points @ W[0] + z[0])) - (points @ W[0] + z[0] > 0))))
    return claim(
        item="Proposition 14",
        statement="a signed measure that every sigmoid neuron integrates to zero is zero, since scaled neurons tend to "
        "half-spaces",
        published="(53) implies (54)",
        ours=f"measures on 30 points in space, 2000 neurons: rank {ranks['sigmoid']} for sigmoids, {ranks['square']} "
        f"for squares; a neuron scaled by 10^4 is {half:.0e} from its half-space",
        holds=ranks == {"sigmoid": 30, "square": 10} and half < 1e-6,
    )


def _telescope():
    t, d, grid = np.linspace(0, 1, 6), np.array([1.0, 3.0, 2.0, -1.0, 0.5]), np.linspace(0, 0.999, 500)
    values = d[np.minimum((grid * 5).astype(int), 4)]
    ours = sum(v * ((grid >= a).astype(float) - (grid >= b)) for v, a, b in zip(d, t, t[1:], strict=False))
    printed = sum(v * ((grid >= a).astype(float) - (grid >= a)) for v, a in zip(d, t, strict=False))
    return claim(
        item="Section 9.3",
        statement="a step function is sum d_k (1_[t_k, inf) - 1_[t_{k+1}, inf))",
        published="sum d_k (1_[t_k, inf) - 1_[t_k, inf))",
        ours=f"five steps: {np.max(np.abs(ours - values)):g} away, the printed sum, which is zero, "
        f"{np.max(np.abs(printed - values)):g}",
        holds=np.array_equal(ours, values) and not np.any(printed),
        corrected=True,
    )


def _barron_constant():
    """For exp(-x^2 / 2): with (2 pi)^-p the integral is E |N(0, 1)|; both bounds are true."""
    w = np.linspace(-40, 40, 400_001)
    transform = np.sqrt(2 * np.pi) * np.exp(-(w**2) / 2)
    integral = float(np.sum(np.abs(w) * transform) * (w[1] - w[0]))
    constant = layers.gaussian_barron_constant(1)
    return claim(
        item="Section 9.3, Barron",
        statement="(2 r C_f)^2 / q with C_f = (2 pi)^-p int |w| |f^(w)| dw for the transform without a factor, and a "
        "constant neuron",
        published="C_f = int |w| |f^(w)| dw",
        ours=f"Gaussian, p = 1: {integral:.6f} as printed, {integral / (2 * np.pi):.6f} with the factor (E |N(0, 1)| = "
        f"{constant:.6f}): the printed bound is {(integral / constant) ** 2:.1f} times as large",
        holds=abs(integral / (2 * np.pi) - constant) < 1e-6 and integral > constant,
        loose=True,
    )


def _expansion(generate):
    n, p, q = 4, 2, 3
    points, y, W, u = (generate.normal(size=shape) for shape in ((n, p), n, (q, p), q))
    layer = layers.OneHiddenLayer(points, y, reduction="sum")
    e = expit(points @ W.T) @ u - y
    slope = expit(points @ W.T) * (1 - expit(points @ W.T))
    direction, errors = generate.normal(size=(q, p)), []
    for size in (1e-2, 1e-3):
        exact = float(layer.value(np.column_stack([W + size * direction, u])))
        ours = np.sum((e + (slope * (points @ (size * direction).T)) @ u) ** 2) / 2
        errors.append(abs(exact - ours))
    return claim(
        item="Section 9.2",
        statement="f(W + eps, u) = |e + [rho'(A W^T) o (A eps^T)] u|^2 / 2 + o(|eps|)",
        published="[...] y in place of [...] u",
        ours=f"remainders {listed(errors, '.1e')} for |eps| of 1e-2 and 1e-3, of second order; the printed product "
        f"is of {n} x {q} and {n} numbers",
        holds=50 < errors[0] / errors[1] < 200 and n != q,
        corrected=True,
    )


def _finite_differences():
    steps = 10.0 ** np.arange(-13, 0)
    errors = {
        scheme: np.array([abs(float(autodiff.fd_grad(np.exp, 1.0, scheme, h)) - np.e) for h in steps])
        for scheme in ("forward", "central")
    }
    best = {scheme: steps[int(np.argmin(values))] for scheme, values in errors.items()}
    at = {h: float(errors["forward"][np.argmin(np.abs(np.log10(steps / h)))]) for h in (1e-6, 1e-8, 1e-10)}
    found = claim(
        item="Section 10.1",
        statement="finite differences take p + 1 evaluations and have a best step: longer ones are inexact, shorter "
        "ones lose digits",
        published="eps small enough",
        ours="exp at 1, forward: "
        + ", ".join(f"{h:g}: {error:.1e}" for h, error in at.items())
        + f"; best steps {best['forward']:g} forward, {best['central']:g} central ({errors['central'].min():.0e})",
        holds=at[1e-8] < at[1e-6]
        and at[1e-8] < at[1e-10]
        and 1e-9 <= best["forward"] <= 1e-7 <= best["central"] <= 1e-4,
    )
    return found, (steps, errors)


def _example():
    """(55): f = y log x + sqrt(y log x) at (2, 3), in four ways."""

    def f(x, y):
        b = y * autodiff.log(x)
        return b + autodiff.sqrt(b)

    x, y = autodiff.Expression.variable("x"), autodiff.Expression.variable("y")
    formula = f(x, y)
    reverse = autodiff.reverse_vjp(f, [2.0, 3.0])[1]
    found = {
        "forward": [autodiff.forward_jvp(f, [2.0, 3.0], unit)[1] for unit in ([1.0, 0.0], [0.0, 1.0])],
        "backward": reverse,
        "symbolic": [autodiff.symbolic_grad(formula, each).evaluate(x=2.0, y=3.0) for each in (x, y)],
    }
    b = 3 * np.log(2)
    by_hand = np.array([(1 + 0.5 / np.sqrt(b)) * 1.5, (1 + 0.5 / np.sqrt(b)) * np.log(2)])
    off = max(float(np.max(np.abs(np.array(each) - by_hand))) for each in found.values())
    return claim(
        item="(55)",
        statement="forward, backward and symbolic differentiation of y log x + sqrt(y log x) agree; backward takes one "
        "pass and forward two",
        published="two passes against one",
        ours=f"at (2, 3): ({reverse[0]:.12f}, {reverse[1]:.12f}), {off:.0e} from the formula",
        holds=off < 1e-14 and np.allclose(reverse, [2.020101259532, 0.933484994993], atol=1e-12),
    )


def _sons():
    """bar_k as a sum over those that use node k, and over those it is computed from, on the graph of (55)."""
    x, y = 2.0, 3.0
    a = np.log(x)
    b = y * a
    parents = {"a": {"x": 1 / x}, "b": {"y": a, "a": y}, "c": {"b": 0.5 / np.sqrt(b)}, "f": {"b": 1.0, "c": 1.0}}
    found = {}
    for name in ("sons", "parents"):
        bar = {"f": 1.0}
        for node in ("c", "b", "a", "y", "x"):
            if name == "sons":
                bar[node] = sum(slopes[node] * bar[son] for son, slopes in parents.items() if node in slopes)
            else:  # the derivative of a parent by what comes after it is zero
                bar[node] = sum(parents.get(parent, {}).get(node, 0.0) * bar.get(parent, 0.0) for parent in
                                parents.get(node, {}))  # fmt: skip
        found[name] = bar["x"], bar["y"]
    return claim(
        item="Section 10.4",
        statement="in backward mode the derivative by a node is a sum over its sons, the nodes that use it",
        published="over parent(k)",
        ours=f"graph of (55): ({found['sons'][0]:.6f}, {found['sons'][1]:.6f}) over sons, {found['parents']} over "
        f"parents",
        holds=np.allclose(found["sons"], [2.020101259532, 0.933484994993]) and found["parents"] == (0, 0),
        corrected=True,
    )


def _dense(x, theta):
    return jnp.tanh(theta @ x)


def _half_square(x):
    return jnp.sum(x**2) / 2


def _back_propagation(generate):
    sizes = (3, 4, 2)
    thetas, x0 = [generate.normal(size=(m, n)) for n, m in itertools.pairwise(sizes)], generate.normal(size=3)

    def loss(last):
        return float(np.sum(np.tanh(last @ np.tanh(thetas[0] @ x0)) ** 2) / 2)

    exact = _slopes(loss, thetas[1])
    gradients = layers.backpropagation([_dense] * 2, thetas, x0, _half_square)[1]
    x1 = np.tanh(thetas[0] @ x0)
    x2 = np.tanh(thetas[1] @ x1)
    printed = np.outer(1 - x2**2, x1)  # w_k x^T, without z_k
    ours = np.outer((1 - x2**2) * x2, x1)
    off = [float(np.max(np.abs(each - exact))) for each in (gradients[1], ours, printed)]
    return (
        claim(
            item="(59)",
            statement="the backward recursion runs over k = t, ..., 1",
            published="from k = t - 1 to 0",
            ours=f"two layers: grad_theta of the last one, k = t, is within {off[0]:.0e} of differences and has norm "
            f"{np.linalg.norm(exact):.3f}; as printed it is never computed, and k = 0 asks for theta_(-1)",
            holds=off[0] < 1e-8 and np.linalg.norm(exact) > 0.01,
            corrected=True,
        ),
        claim(
            item="(60)",
            statement="for f_k = rho(theta x): [d_theta f_k]^T z = (rho'(theta x) o z) x^T",
            published="w_k x^T, without z_k; rho a `linearity`",
            ours=f"{off[1]:.0e} from differences, the printed form {off[2]:.2f}",
            holds=off[1] < 1e-8 and off[2] > 1e-2,
            corrected=True,
        ),
    )


def _order_of_products():
    dims = (100, 5, 200, 5, 100)
    matrices = [np.ones((m, n), np.float32) for n, m in itertools.pairwise(dims)]
    counted = {
        order: layers.operations(lambda *each, o=order: layers.multiply_chain(each, o), *matrices).products
        for order in ("forward", "backward", "optimal")
    }
    return claim(
        item="Section 10.5",
        statement="forward mode multiplies the Jacobians of a chain from the input, backward mode from the output; "
        "another order can be cheaper than both",
        published="n_0 sum n_k n_{k+1} and n_t sum n_k n_{k+1}",
        ours=f"{dims}: " + ", ".join(f"{order} {count}" for order, count in counted.items()) + " products, counted",
        holds=counted == {"forward": 250_000, "backward": 250_000, "optimal": 57_500},
    )


def _residual_shapes(generate):
    """h(x) = x + W_2^T rho(W_1 x) with W_1, W_2 of q x n."""
    n, q = 3, 5
    W1, W2, x, z = (generate.normal(size=shape) for shape in ((q, n), (q, n), n, n))
    m = (1 - np.tanh(W1 @ x) ** 2) * (W2 @ z)
    ours = {"x": z + W1.T @ m, "W_1": np.outer(m, x), "W_2": np.outer(np.tanh(W1 @ x), z)}
    exact = {
        "x": _slopes(lambda v: z @ (v + W2.T @ np.tanh(W1 @ v)), x),
        "W_1": _slopes(lambda V: z @ (x + W2.T @ np.tanh(V @ x)), W1),
        "W_2": _slopes(lambda V: z @ (x + V.T @ np.tanh(W1 @ x)), W2),
    }
    off = max(float(np.max(np.abs(ours[name] - exact[name]))) for name in ours)
    try:
        fits = (W1.T @ x).size > 0
    except ValueError:
        fits = False
    tau, W = 0.1, generate.normal(size=(2, n))
    step = x + (-tau * W).T @ np.tanh(W @ x)
    descent = x - tau * _slopes(lambda v: float(np.sum(np.log(np.cosh(W @ v)))), x)
    return claim(
        item="Section 10.7, residual networks",
        statement="W_1 and W_2 of a recurrent residual perceptron are of q x n; with W_2 = -tau W_1 and rho = psi' "
        "it is a gradient step on psi(W_1 x)",
        published="(R^{n x q})^2",
        ours=f"n = 3, q = 5: gradients in x, W_1, W_2 within {off:.0e} of differences; with n x q the product W_1 x "
        f"{'exists' if fits else 'does not exist'}; the gradient step agrees to {np.max(np.abs(step - descent)):.0e}",
        holds=off < 1e-8 and not fits and np.max(np.abs(step - descent)) < 1e-8,
        corrected=True,
    )


_B = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]])


def _ridge(x, theta):
    return jnp.sum((jnp.asarray(_B) @ x - theta) ** 2) / 2 + jnp.sum(x**2) / 4


def _argmin():
    theta, target = np.array([1.0, 2.0, 3.0]), np.array([1.0, -1.0])
    hessian = _B.T @ _B + np.eye(2) / 2

    def best(theta):
        return np.linalg.solve(hessian, _B.T @ theta)

    exact = _slopes(lambda t: np.sum((best(t) - target) ** 2) / 2, theta)
    with float64():
        found = np.asarray(jax.grad(lambda t: jnp.sum((layers.argmin(_ridge, jnp.zeros(2), t) - target) ** 2) / 2)(
            jnp.asarray(theta)
        ))  # fmt: skip
    tau, x = 0.1, {1: np.zeros(2), -1: np.zeros(2)}
    for _ in range(60):
        x = {sign: at + sign * tau * (hessian @ at - _B.T @ theta) for sign, at in x.items()}
    left = {sign: float(np.linalg.norm(at - best(theta))) for sign, at in x.items()}
    return (
        claim(
            item="(67)",
            statement="the gradient of L(x*(theta)) is grad_theta L - [d2E/dx dtheta]^T [d2E/dx2]^-1 grad_x L",
            published="the same, with h = grad E for a fixed point",
            ours=f"ridge regression 3 x 2: {listed(found, '.6f')}, {np.max(np.abs(found - exact)):.0e} from "
            f"differences",
            holds=np.max(np.abs(found - exact)) < 1e-8
            and np.allclose(found, [0.46373365, 0.73483948, -0.27110583], atol=1e-7),
        ),
        claim(
            item="Section 10.7, argmin layers",
            statement="gradient descent on E is a residual recursion with u = -grad E",
            published="u = grad E",
            ours=f"60 steps of 0.1: {left[-1]:.0e} from the minimiser with -grad E, {left[1]:.0e} with the printed "
            f"sign",
            holds=left[-1] < 1e-3 and left[1] > 1e3,
            corrected=True,
        ),
    )


def _envelope():
    theta = np.array([1.0, 2.0, 3.0])
    with float64():
        start = jnp.zeros(2)
        found = np.asarray(jax.grad(lambda t: layers.envelope(_ridge, start, t))(jnp.asarray(theta)))
        best = np.asarray(layers.argmin(_ridge, start, jnp.asarray(theta)))
    exact = _slopes(lambda t: float(_minimum(t)), theta)
    return claim(
        item="(68)",
        statement="envelope theorem: the gradient of min_x E(x, theta) is grad_theta E at the minimiser",
        published="the same",
        ours=f"ridge regression 3 x 2: {listed(found, '.6f')}, {np.max(np.abs(found - exact)):.0e} from differences, "
        f"{np.max(np.abs(found - (theta - _B @ best))):.0e} from theta - B x*",
        holds=np.max(np.abs(found - exact)) < 1e-7 and np.max(np.abs(found - (theta - _B @ best))) < 1e-8,
    )


def _minimum(theta):
    x = np.linalg.solve(_B.T @ _B + np.eye(2) / 2, _B.T @ theta)
    return np.sum((_B @ x - theta) ** 2) / 2 + np.sum(x**2) / 4


def _simultaneous():
    """u and v from the old values, as printed, and one after the other."""
    K = np.exp(-COST / EPSILON)
    u, v, masses = np.ones(3), np.ones(2), []
    for _ in range(400):
        u, v = A / (K @ v), B / (K.T @ u)
        masses.append(float(u @ K @ v))
    sequential = layers.sinkhorn(COST, A, B, EPSILON)
    shares = np.abs(np.diff(masses[-50:]))
    return claim(
        item="Section 10.7, Sinkhorn",
        statement="Sinkhorn's halves must follow each other: v_{k+1} = b / (K^T u_{k+1})",
        published="v_{k+1} = b / (K^T u_k)",
        ours=f"3 x 2: the mass of the printed iteration alternates between {min(masses[-2:]):.6f} and "
        f"{max(masses[-2:]):.6f} after 400 steps; one after the other {float(np.sum(sequential.plan)):.6f} after "
        f"{int(sequential.steps)}",
        holds=shares.min() > 2 and abs(float(np.sum(sequential.plan)) - 1) < 1e-9,
        corrected=True,
    )


def _unrolled():
    """Back-propagation through the half steps tends to the gradient at the limit, which is eps log u, centred."""
    K = np.exp(-COST / EPSILON)
    errors, printed = [], None
    limit = np.asarray(layers.sinkhorn(COST, A, B, EPSILON, tol=1e-13).f)
    with float64():
        for steps in (2, 5, 40):
            gradient = jax.grad(
                lambda a, n=steps: layers.sinkhorn_unrolled(jnp.asarray(COST), a, jnp.asarray(B), EPSILON, n).value
            )(jnp.asarray(A))
            gradient = np.asarray(gradient)
            errors.append(float(np.max(np.abs(gradient - gradient.mean() - limit + limit.mean()))))
    u = np.exp(limit / EPSILON)
    printed_u = A / (EPSILON * (K @ np.exp(np.asarray(layers.sinkhorn(COST, A, B, EPSILON).g) / EPSILON)))
    printed = float(np.max(np.abs(printed_u / u - 1)))
    return claim(
        item="Section 10.7, unrolled transport",
        statement="the objective is eps (<a, log u> + <b, log v> - <u, K v>), maximised; unrolled gradients tend to "
        "eps log u, up to a constant",
        published="<a, log u> + <b, log v> - eps <K u, v>, minimised, with gradient log u",
        ours=f"distance to the limit after 2, 5, 40 steps: {listed(errors, '.0e')}; stationarity of the printed "
        f"objective, u = a / (eps K v), is off by {printed:.0%}",
        holds=errors[2] < 1e-10 < errors[1] < errors[0] and printed > 0.5,
        corrected=True,
    )


def _draw(errors, curve):
    fig, (left, right) = figure(1, 2)
    widths, found = errors
    for colour, (name, values) in zip(COLOURS, found.items(), strict=False):
        left.plot(widths, values, "o-", color=colour, label=name)
    left.set(xscale="log", yscale="log", xlabel="neurons", ylabel="largest error", title="combinations of neurons")
    steps, differences = curve
    for colour, (name, values) in zip(COLOURS, differences.items(), strict=False):
        right.loglog(steps, np.maximum(values, 1e-16), "o-", color=colour, label=name)
    right.set(xlabel="step", ylabel="error", title="finite differences of exp at 1")
    return fig
