"""Section 9 of the course: a network with one hidden layer, trained, constructed, and grown neuron by neuron."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from cumulant.experiments.base import Claim, Report, experiment, listed, verdict
from cumulant.layers import OneHiddenLayer, barron_bound, gaussian_barron_constant, step_network
from cumulant.plotting import COLOURS, figure
from cumulant.precision import float64
from cumulant.randomness import generator, key

TITLE = "One hidden layer: gradient descent against quasi-Newton, universality in one dimension, Barron's rate"
SOURCE = "Peyré (2021), course notes on optimization for machine learning, section 9, and its companion notebooks"

UNITS, POINTS, WIDTH = 20, 256, 0.4


def target(t):
    """``sin(6 pi |t|^1.5) + t^2``."""
    return np.sin(6 * np.pi * np.abs(t) ** 1.5) + t**2


@experiment
def run(quick: bool, rng: int) -> Report:
    """Fit a curve in one dimension, build networks by hand, and fit a Gaussian bump one neuron at a time."""
    generate = generator(rng)
    trained, fits = _training(generate, 1 if quick else 5, 100 if quick else 600)
    grown, curve = _greedy(generate, 20 if quick else 500, 200 if quick else 500)
    claims = (*trained, _degree(generate), _constructed(), *grown)
    notes = (
        "Judged by the median of five starts with unit-norm slopes times 20 and steps placed in the interval. "
        "The growing network uses the companion's settings: tanh, a 50 x 50 grid on [-1, 1]^2, Adam with rate 0.01."
    )
    return Report(claims, lambda: _draw(fits, curve), notes)


def _layer():
    t = np.linspace(-1, 1, POINTS)
    return OneHiddenLayer(np.column_stack([t, np.ones(POINTS)]), target(t))


def _start(layer, generate):
    """Rows of unit norm with their bias adjusted, as in the course, steep enough for the waves of the target."""
    slopes = 20.0 * generate.choice([-1.0, 1.0], size=UNITS)
    W = np.column_stack([slopes, -slopes * generate.uniform(-1, 1, size=UNITS)])
    return np.column_stack([W, np.zeros(UNITS)])


def _training(generate, starts, iterations):
    layer = _layer()
    steps = np.column_stack([np.full((UNITS, 2), 0.1), np.full(UNITS, 0.2)])
    last: dict[str, list] = {"gradient descent": [], "BFGS": [], "variable projection": []}
    fits = {}
    for _ in range(starts):
        x0 = _start(layer, generate)
        fits["gradient descent"] = _descend(layer, x0, steps, 200 if iterations < 600 else 2000)
        fits["BFGS"] = _bfgs(layer, x0, iterations)
        projected = layer.projected()
        fits["variable projection"] = projected.full(_bfgs(projected, x0[:, :-1], iterations))
        for name, x in fits.items():
            last[name].append(float(layer.value(x)))
    median = {name: float(np.median(values)) for name, values in last.items()}
    claims = (
        Claim(
            "gradient descent is hard to tune: after 2000 steps it is far from what BFGS finds",
            "the curve is not fitted",
            f"median loss {median['gradient descent']:.4f}, BFGS {median['BFGS']:.4f}",
            verdict(median["gradient descent"] > 3 * median["BFGS"]),
            item="Section 9.2, gradient descent",
        ),
        Claim(
            "BFGS fits the curve",
            "loss 0.0070 after 600 iterations",
            f"median loss {median['BFGS']:.4f}, best {min(last['BFGS']):.4f}",
            verdict(median["BFGS"] <= 0.0070),
            item="Section 9.2, BFGS",
        ),
        Claim(
            "solving for the outer weights at each step helps",
            "not stated",
            f"median loss {median['variable projection']:.5f} against {median['BFGS']:.5f} in as many iterations",
            verdict(median["variable projection"] < median["BFGS"]),
            item="Section 9.2, outer weights",
        ),
    )
    return claims, fits


def _descend(layer, x0, steps, count):
    with float64():
        descent = jax.jit(lambda x: jax.lax.fori_loop(0, count, lambda _, x: x - steps * layer.gradient(x), x))
        return np.asarray(descent(jnp.asarray(x0)))


def _bfgs(problem, x0, iterations):
    def both(flat):
        value, gradient = problem.value_and_gradient(flat.reshape(x0.shape))
        return float(value), np.asarray(gradient).ravel()

    found = minimize(both, x0.ravel(), jac=True, method="BFGS", options={"maxiter": iterations, "gtol": 1e-10})
    return found.x.reshape(x0.shape)


def _degree(generate) -> Claim:
    """Neurons ``<w, a>^2`` are quadratic forms, however many there are."""
    points, W = generate.normal(size=(200, 4)), generate.normal(size=(60, 4))
    rank = int(np.linalg.matrix_rank((points @ W.T) ** 2))
    wide = int(np.linalg.matrix_rank(np.tanh(points @ W.T)))
    return Claim(
        "with a polynomial activation the width does not help: the functions span a space of fixed dimension",
        "O(p^d) for degree d",
        f"60 neurons in dimension 4: rank {rank} for the square (p (p + 1) / 2 = 10), {wide} for tanh",
        verdict(rank == 10 and wide == 60),
        item="Section 9.1",
    )


def _constructed() -> Claim:
    grid = np.linspace(0, 1, 4001)
    errors, within = [], True
    for q in (10, 20, 40, 80):
        network = step_network(lambda t: np.sin(2 * np.pi * t), 0.0, 1.0, q, lipschitz=2 * np.pi)
        errors.append(float(np.max(np.abs(network(grid) - np.sin(2 * np.pi * grid)))))
        within &= network.certificate is not None and errors[-1] <= network.certificate.upper
    return Claim(
        "a sum of steep sigmoids approximates any continuous function of one variable; for a Lipschitz one at rate 1/q",
        "density, without a rate",
        "sup error on a sine with 10, 20, 40, 80 units: " + listed(errors, ".4f") + ", within the bound pi / q",
        verdict(within),
        item="Section 9.3, steps",
    )


def _greedy(generate, neurons, iterations):
    """Fit one tanh neuron to what the others left over, and keep it, repeatedly; the loss each time."""
    side = np.linspace(-1, 1, 50)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = np.exp(-np.sum(points**2, axis=1) / (2 * WIDTH**2))
    with float64():
        losses = np.asarray(_grow(points, values, key(generate), neurons, iterations))
    count = np.arange(1, neurons + 1)
    start = float(np.mean(values**2))
    ratio = np.sqrt(losses * count / start)
    # Every point of the square is in the disc of radius sqrt 2; the bound is for the uniform measure on that disc.
    constant = gaussian_barron_constant(2, WIDTH)
    bound = np.array([barron_bound(constant, np.sqrt(2), int(q)) for q in count])
    bites = int(np.ceil(barron_bound(constant, np.sqrt(2), 1) / start))
    last = ratio[neurons // 10 :]
    claims = (
        Claim(
            "a network grown by one neuron at a time has sqrt(loss) at or below sqrt(loss_0 / q)",
            "at or below",
            f"largest ratio to it {last.max():.2f} from q = {neurons // 10 + 1} on, {ratio[-1]:.2f} at q = {neurons}",
            verdict(last.max() <= 1),
            item="Section 9.3, greedy",
        ),
        Claim(
            "the loss is below Barron's bound (2 r C_f)^2 / q",
            "some network is below it",
            f"largest share of the bound {np.max(losses / bound):.3f}; up to q = {bites} the bound is above the loss "
            f"of no network at all, {start:.3f}, and says nothing; the {losses[-1]:.1e} of {neurons} grown neurons it "
            f"promises from q = {barron_bound(constant, np.sqrt(2), 1) / losses[-1]:.1e} on",
            verdict(np.all(losses <= bound), loose=True),
            item="Section 9.3, Barron",
        ),
    )
    return claims, (count, np.sqrt(losses), np.sqrt(start / count), np.sqrt(bound))


def _grow(points, values, seed, neurons, iterations):
    def neuron(parameters):
        w, z, u = parameters
        return u * jnp.tanh(points @ w + z)

    def add(residual, one):
        first, second = jax.random.split(one)
        w = jax.random.normal(first, (2,))
        start = (w, jax.random.uniform(second, (), minval=-1.0, maxval=1.0), jnp.zeros(()))
        gradient = jax.grad(lambda parameters: jnp.mean((neuron(parameters) - residual) ** 2))
        zeros = jax.tree.map(jnp.zeros_like, start)

        def adam(k, state):
            x, m, v = state
            g = gradient(x)
            m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
            v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b**2, v, g)
            scale = jnp.sqrt(1 - 0.999 ** (k + 1.0)) / (1 - 0.9 ** (k + 1.0))
            x = jax.tree.map(lambda a, b, c: a - 0.01 * scale * b / (jnp.sqrt(c) + 1e-8), x, m, v)
            return x, m, v

        fitted, _, _ = jax.lax.fori_loop(0, iterations, adam, (start, zeros, zeros))
        residual = residual - neuron(fitted)
        return residual, jnp.mean(residual**2)

    keys = jax.random.split(seed, neurons)
    return jax.jit(lambda r: jax.lax.scan(add, r, keys)[1])(jnp.asarray(values))


def _draw(fits, curve):
    fig, (left, right) = figure(1, 2)
    layer = _layer()
    t = np.linspace(-1, 1, 600)
    left.plot(t, target(t), color=COLOURS[6], linewidth=3, alpha=0.4, label="target")
    for colour, (name, x) in zip(COLOURS, fits.items(), strict=False):
        left.plot(t, layer.predict(x, np.column_stack([t, np.ones_like(t)])), color=colour, label=name)
    left.set(xlabel="$t$", ylabel="$h(t)$", title=f"{UNITS} sigmoids, one start", ylim=(-1.1, 3.2))
    count, error, rate, bound = curve
    right.loglog(count, error, color=COLOURS[0], label="grown network")
    right.loglog(count, rate, color=COLOURS[1], linestyle="--", label=r"$\sqrt{\mathrm{loss}_0 / q}$")
    right.loglog(count, bound, color=COLOURS[2], linestyle=":", label="Barron's bound")
    right.set(xlabel="neurons $q$", ylabel="root mean squared error", title="a Gaussian bump in the plane")
    return fig
