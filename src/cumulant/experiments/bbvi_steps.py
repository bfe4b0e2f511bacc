"""How much proximal steps and Adam depend on the step size: excess KL after the same number of gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant import variational as vi
from cumulant.experiments._bbvi import SOURCE as _SOURCE
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import COLOURS, figure
from cumulant.randomness import generator
from cumulant.variational.regression import RegressionELBO

TITLE = "Variational inference: proximal steps and Adam over five orders of magnitude of the step size"
SOURCE = f"{_SOURCE}; a comparison of our own"

_SIZES = np.geomspace(1e-5, 1.0, 11)


@experiment
def run(quick: bool, rng: int) -> Report:
    """A logistic regression; both methods start at the standard normal and see the same number of gradients."""
    generate = generator(rng)
    n, d, steps = (100, 4, 500) if quick else (500, 10, 3000)
    X = generate.normal(size=(n, d)) * np.geomspace(1.0, 0.1, d)
    y = (generate.random(n) < 1 / (1 + np.exp(-X @ generate.normal(size=d)))).astype(int)
    target = vi.logistic_regression(X, y)
    best = -vi.fit(target, accuracy=1e-8).elbo
    problem = RegressionELBO(target)

    def excess(w):
        """Exact, by quadrature; infinite where the run left the set."""
        w = np.asarray(w)
        if not (np.all(np.isfinite(w)) and np.all(np.diagonal(w[:, 1:]) > 0) and np.max(np.abs(w)) < 1e6):
            return np.inf
        return max(float(problem.value(w)) - best, 1e-9)

    keys = jax.random.split(jax.random.key(int(generate.integers(2**31))), 3 if quick else 5)
    found = {}
    for name, one in (("proximal steps", _proximal), ("Adam", _adam)):
        found[name] = [
            float(np.median([excess(one(target, d, float(size), steps, key)) for key in keys])) for size in _SIZES
        ]
    widths = {name: int(np.sum(np.array(values) < 0.1)) for name, values in found.items()}
    claim = Claim(
        "proximal steps are more robust to the step size than Adam on a triangular factor with a logarithmic diagonal",
        "our question; the source has no experiment",
        f"step sizes of {len(_SIZES)} with an excess below 0.1 nats after {steps} gradients: "
        + ", ".join(f"{name} {count}" for name, count in widths.items())
        + "; best "
        + ", ".join(f"{name} {min(values):.1e}" for name, values in found.items()),
        verdict(widths["proximal steps"] > widths["Adam"]),
    )
    return Report((claim,), lambda: _draw(found))


@functools.partial(jax.jit, static_argnums=(1, 3))
def _run_proximal(target, d, size, steps, key):
    q = vi.FullRank(d)
    problem = vi.proximal_problem(target, q, jnp.zeros((1, d)))
    solver = optim.RobbinsMonro(lambda _: size, vi.EnergyGradient())
    state = solver.init(problem, jnp.asarray(q.pack(0.0, 1.0)), key)
    return jax.lax.fori_loop(0, steps, lambda _, s: solver.step(problem, s), state).mean


def _proximal(target, d, size, steps, key):
    with jax.enable_x64(True):
        return np.asarray(_run_proximal(target, d, size, steps, key))


@functools.partial(jax.jit, static_argnums=(1, 3))
def _run_adam(target, d, size, steps, key):
    """Kingma and Ba (2015), with their settings, on ``(m, L)``, ``C = tril(L, -1) + diag(exp(diag L))``."""

    def factor(L):
        return jnp.tril(L, -1) + jnp.diag(jnp.exp(jnp.diagonal(L)))

    def loss(parameters, u):
        m, L = parameters
        return -target.at(m + factor(L) @ u) - jnp.sum(jnp.diagonal(L))

    def step(k, carried):
        parameters, first, second = carried
        g = jax.grad(loss)(parameters, jax.random.normal(jax.random.fold_in(key, k), (d,), jnp.float64))
        first = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, first, g)
        second = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b**2, second, g)
        t = k + 1.0
        parameters = jax.tree.map(
            lambda p, a, b: p - size * (a / (1 - 0.9**t)) / (jnp.sqrt(b / (1 - 0.999**t)) + 1e-8),
            parameters, first, second,
        )  # fmt: skip
        return parameters, first, second

    start = (jnp.zeros(d), jnp.zeros((d, d)))
    zeros = jax.tree.map(jnp.zeros_like, start)
    m, L = jax.lax.fori_loop(0, steps, step, (start, zeros, zeros))[0]
    return jnp.concatenate([m[:, None], factor(L)], axis=1)


def _adam(target, d, size, steps, key):
    with jax.enable_x64(True):
        return np.asarray(_run_adam(target, d, size, steps, key))


def _draw(found):
    fig, ax = figure()
    for colour, (name, values) in zip(COLOURS, found.items(), strict=False):
        shown = np.where(np.isfinite(values), values, np.nan)
        ax.loglog(_SIZES, shown, "o-", color=colour, label=name)
    ax.set(xlabel="step size", ylabel="excess KL, median of runs")
    return fig
