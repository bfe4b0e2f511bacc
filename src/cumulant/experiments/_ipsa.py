"""What the experiments of chapter 2 share: the data sets, the learners, the exact solutions, all run as one batch."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import optim
from cumulant.optim import interior_point as ip
from cumulant.plotting import COLOURS, figure, legend
from cumulant.precision import precise

SOURCE = "Carbonetto (2009), New probabilistic inference algorithms, thesis, University of British Columbia, chapter 2"

N, WIDE = 100, np.repeat([0.0, 2.0, 0.0, 2.0], 10)
INTERIOR = ("interior point", "interior point, sigma = k^-0.9", "interior point, bounding variables")
BASELINES = ("sub-gradient", "projected gradient", "smoothed", "augmented Lagrangian")


def variances(rng: np.random.Generator, nu: float, size: int) -> np.ndarray:
    """Draws from ``InvGamma(2.5, nu)``, of mean ``nu / 1.5``."""
    return nu / rng.gamma(2.5, size=size)


def draw(seed: int, nu: float = 1.0, w: np.ndarray = WIDE) -> tuple[np.ndarray, np.ndarray]:
    """One data set: features that share a factor, with variances ``InvGamma(2.5, nu)``, and a noisy response."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(N, 1))
    A = shared + np.sqrt(variances(rng, nu, w.size)) * rng.normal(size=(N, w.size))
    return A, A @ w + rng.normal(size=N)


def sets(seeds, nu: float = 1.0, w: np.ndarray = WIDE) -> tuple[np.ndarray, np.ndarray]:
    """Several data sets, stacked."""
    found = [draw(seed, nu, w) for seed in seeds]
    return np.stack([A for A, _ in found]), np.stack([y for _, y in found])


LEARNERS = {
    "interior point": lambda k0: ip.InteriorPointSA(ip.Harmonic(k0), ip.ConstantSigma(0.5)),
    "interior point, sigma = k^-0.9": lambda k0: ip.InteriorPointSA(ip.Harmonic(k0), ip.PowerSigma(0.9)),
    "interior point, bounding variables": lambda k0: ip.InteriorPointSA(ip.Harmonic(k0), ip.ConstantSigma(0.5)),
    "sub-gradient": lambda k0: ip.SubgradientSGD(ip.Harmonic(k0)),
    "projected gradient": lambda k0: ip.ProjectedSGD(ip.Harmonic(k0)),
    "smoothed": lambda k0: ip.SmoothedL1SGD(ip.Harmonic(k0)),
    "augmented Lagrangian": lambda k0: ip.AugmentedLagrangianSGD(ip.Harmonic(k0), k0=k0),
    "Mehrotra": lambda k0, exponent, ceiling: ip.InteriorPointSA(
        ip.Harmonic(k0), ip.MehrotraSigma(exponent, ip.PowerSigma(ceiling))
    ),
}


@precise(static=("name", "marks"))
def _learn(A, y, weight, settings, name, marks):
    def one(A, y, weight, settings):
        loss, p, solver = optim.LeastSquares(A, y), A.shape[1], LEARNERS[name](*settings)
        if isinstance(solver, ip.SubgradientSGD | ip.SmoothedL1SGD):
            problem, start, coefficients = optim.Composite(loss, optim.L1(weight)), np.zeros(p), lambda x: x
        else:
            problem = ip.l1_regularize(loss, weight, "bound" if "bounding" in name else "split")
            start = problem.start(p) if isinstance(solver, ip.InteriorPointSA) else np.zeros(2 * p)
            coefficients = problem.objective.coefficients
        state = solver.init(problem, jnp.asarray(start, A.dtype), jax.random.PRNGKey(0))
        found, done = [], 0
        for mark in marks:
            state = jax.lax.fori_loop(done, mark, lambda _, s: solver.step(problem, s), state)
            found.append(coefficients(state.x))
            done = mark
        return jnp.stack(found)

    return jax.vmap(one)(A, y, weight, settings)


def learn(name: str, A: np.ndarray, y: np.ndarray, weights, *settings, passes: tuple[int, ...] = (1,)) -> np.ndarray:
    """Coefficients after the given passes, for every data set and every combination of `weights` and `settings`.

    Returns shape (combinations, sets, passes, features).
    """
    weights, *settings = (np.ravel(each).astype(float) for each in np.broadcast_arrays(weights, *settings))
    count, marks = weights.size, tuple(each * A.shape[1] for each in passes)
    each = [np.repeat(values, len(A)) for values in (weights, *settings)]
    found = _learn(np.tile(A, (count, 1, 1)), np.tile(y, (count, 1)), each[0], tuple(each[1:]), name, marks)
    return found.reshape(count, len(A), len(passes), -1)


@precise
def _solve(A, y, weight):
    def one(A, y, weight):
        problem = ip.l1_regularize(optim.LeastSquares(A, y), weight, "bound")
        solver = ip.InteriorPoint(least_mu=1e-13)
        state = solver.init(problem, jnp.asarray(problem.start(A.shape[1]), A.dtype), None)
        state = jax.lax.fori_loop(0, 50, lambda _, s: solver.step(problem, s), state)
        w = problem.objective.coefficients(state.x)
        residual = y - A @ w
        correlation = jnp.max(jnp.abs(A.T @ residual)) / y.size
        theta = residual * jnp.minimum(1.0, weight / correlation)
        primal = jnp.vdot(residual, residual) / (2 * y.size) + weight * jnp.sum(jnp.abs(w))
        dual = (jnp.vdot(y, y) - jnp.vdot(y - theta, y - theta)) / (2 * y.size)
        return w, (primal - dual) / jnp.maximum(primal, 1.0)

    return jax.vmap(one)(A, y, weight)


def exact(A: np.ndarray, y: np.ndarray, weights) -> tuple[np.ndarray, float]:
    """The Lasso solutions, shape (weights, sets, features), and the largest relative duality gap among them."""
    weights = np.ravel(weights).astype(float)
    w, gap = _solve(np.tile(A, (weights.size, 1, 1)), np.tile(y, (weights.size, 1)), np.repeat(weights, len(A)))
    return w.reshape(weights.size, len(A), -1), float(np.max(gap))


def error(found: np.ndarray, solutions: np.ndarray) -> np.ndarray:
    """``|w - w_exact|_1 / N``, averaged over the data sets: shape (pairs, passes)."""
    with np.errstate(over="ignore"):
        return np.mean(np.sum(np.abs(found - solutions[:, :, None, :]), axis=-1) / N, axis=1)


def compare(A, y, weights, k0s, names=INTERIOR + BASELINES) -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """The error of each method after one pass for every pair, the exact solutions, and their largest gap."""
    weights, k0s = (np.ravel(each).astype(float) for each in np.broadcast_arrays(weights, k0s))
    distinct, where = np.unique(weights, return_inverse=True)
    solutions, gap = exact(A, y, distinct)
    solutions = solutions[where]
    return {name: error(learn(name, A, y, weights, k0s), solutions)[:, 0] for name in names}, solutions, gap


def draw_errors(across, errors: dict[str, np.ndarray], xlabel: str, ylim: tuple[float, float]):
    """The error of each method after one pass, on logarithmic axes."""
    fig, ax = figure(width=6.4, height=4.4)
    styles = ("-o", "--", ":", "-s", "-s", "--s", "-s")  # of lines that would hide each other
    for name, values in errors.items():
        colour = COLOURS[0] if name in INTERIOR else COLOURS[1 + BASELINES.index(name)]
        ax.plot(across, values, styles[(INTERIOR + BASELINES).index(name)], color=colour, label=name)
    ax.set(xscale="log", yscale="log", ylim=ylim, xlabel=xlabel, ylabel="$|w - w_{exact}|_1 / N$ after one pass")
    legend(ax, fontsize=7)
    return fig
