"""Time to a Gaussian within 0.1 and 0.01 nats of the best one, for logistic regressions.

The peers are NumPyro's AutoMultivariateNormal with Adam, for a grid of learning rates (constant, and halved every
thousand steps) and numbers of particles of which the fastest counts, and PyMC's full-rank ADVI with its defaults and
two other learning rates. Both take steps until they are there; the excess is measured at records between steps, outside
of the clock, against the best Gaussian found by quadrature. Ours is `variational.fit` with no setting but the accuracy:
by stochastic steps (``method="prox"``) and with the default, which is quadrature. Everything is compiled before. Times
are CPU seconds of the process, over all threads, so that what else runs on the machine does not count; wall-clock times
are printed beside them.

Run as ``python -m benchmarks.variational [small|large]``; NumPyro and PyMC are not among the project's dependencies.
"""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import variational as vi
from cumulant.variational.regression import RegressionELBO

SIZES = {"small": (2000, 30), "large": (20_000, 200)}
RATES = (0.001, 0.003, 0.01, 0.03)
PARTICLES = (1, 8, 32)
MOST = 20_000  # steps of a peer
GOALS = (0.1, 0.01)
CHUNK = 25
HALVING = 0.5  # of a learning rate that decays, every thousand steps


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 0.1, d)
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=d)))).astype(np.int64)


class Clock:
    """CPU and wall-clock seconds of some calls."""

    def __init__(self):
        self.cpu = self.wall = 0.0

    def call(self, work: Callable) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        answer = work()
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall
        return answer


def numpyro_records(X, y, rate, particles, decaying=False) -> Iterator[tuple[Clock, int, np.ndarray, np.ndarray]]:
    """Clock, steps, mean and factor, every `CHUNK` steps of Adam."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoMultivariateNormal

    X, y = jnp.asarray(X, dtype=jnp.float32), jnp.asarray(y)

    def model(X, y):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([X.shape[1]]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=X @ z).to_event(1), obs=y)

    guide = AutoMultivariateNormal(model)
    steps_of_rate = (lambda k: rate * HALVING ** (k / 1000.0)) if decaying else rate
    svi = SVI(model, guide, numpyro.optim.Adam(steps_of_rate), Trace_ELBO(num_particles=particles))
    first = svi.init(jax.random.key(0), X, y)

    @jax.jit
    def steps(state, X, y):
        return jax.lax.scan(lambda s, _: (svi.update(s, X, y)[0], None), state, None, length=CHUNK)[0]

    jax.block_until_ready(steps(first, X, y))
    clock, state = Clock(), first
    for k in range(CHUNK, MOST + 1, CHUNK):
        state = clock.call(lambda s=state: jax.block_until_ready(steps(s, X, y)))
        parameters = svi.get_params(state)
        loc, scale = (np.asarray(parameters[name], dtype=np.float64) for name in ("auto_loc", "auto_scale_tril"))
        yield clock, k, loc, scale


def pymc_records(X, y, rate) -> Iterator[tuple[Clock, int, np.ndarray, np.ndarray]]:
    """The same for PyMC's FullRankADVI, every 100 steps."""
    import pymc as pm

    with pm.Model():
        z = pm.Normal("z", 0.0, 1.0, shape=X.shape[1])
        pm.Bernoulli("y", logit_p=pm.math.dot(X, z), observed=y)
        method = pm.FullRankADVI(random_seed=0)
        optimiser = pm.adagrad_window(learning_rate=rate) if rate else pm.adagrad_window()
        method.fit(1, obj_optimizer=optimiser, progressbar=False)
        clock = Clock()
        for k in range(100, MOST + 1, 100):
            clock.call(lambda: method.refine(100, progressbar=False))
            approx = method.approx
            yield clock, k, approx.mean.eval(), np.linalg.cholesky(approx.cov.eval())


def peer_times(excess: Callable, records: Iterator, name: str) -> dict[float, tuple[float, float, int]]:
    """CPU and wall seconds and steps at which each goal was first met."""
    met: dict[float, tuple[float, float, int]] = {}
    for clock, k, mean, scale in records:
        found = excess(mean, scale)
        for goal in GOALS:
            if found <= goal:
                met.setdefault(goal, (clock.cpu, clock.wall, k))
        if len(met) == len(GOALS):
            break
    told = ", ".join(f"{goal}: {cpu:.2f} s CPU, {wall:.2f} s, {k} steps" for goal, (cpu, wall, k) in met.items())
    print(f"    {name}: {told or 'no goal met'}", flush=True)
    return met


def race(size: str) -> None:
    n, d = SIZES[size]
    X, y = data(n, d)
    target = vi.logistic_regression(X, y)
    exact = vi.fit(target, accuracy=1e-9)
    problem = RegressionELBO(target)

    def excess(mean, scale):
        return float(problem.value(problem.gaussian.pack(mean, np.tril(scale)))) + exact.elbo

    print(
        f"logistic regression, n = {n}, d = {d}: best ELBO {exact.elbo:.6f}, certified to {exact.certificate.upper:.1e}"
    )
    ours = {}
    for method in ("prox", "auto"):
        for goal in GOALS:
            vi.fit(target, method=method, accuracy=goal, rng=1)
            clocks = []
            for seed in range(3):
                clock = Clock()
                found = clock.call(lambda s=seed, m=method, g=goal: vi.fit(target, method=m, accuracy=g, rng=s))
                left = excess(found.mean, found.scale)
                assert left <= goal, (method, goal, left)
                clocks.append((clock.cpu, clock.wall, found.work, left))
            ours[method, goal] = tuple(np.median(np.array(clocks), axis=0))
            cpu, wall, work, left = ours[method, goal]
            print(f"    cumulant {method} {goal}: {cpu:.3f} s CPU, {wall:.3f} s, {work:.0f} steps, excess {left:.1e}")
    peers: dict[str, dict[float, list]] = {"NumPyro": {}, "PyMC": {}}
    grid = [(rate, particles) for particles in PARTICLES for rate in RATES]
    for rate, particles in grid if size == "small" else [(r, p) for r, p in grid if p == 8]:
        for decaying in (False, True):
            name = f"NumPyro rate {rate}{' decaying' if decaying else ''} particles {particles}"
            met = peer_times(excess, numpyro_records(X, y, rate, particles, decaying), name)
            for goal, (cpu, wall, _) in met.items():
                peers["NumPyro"].setdefault(goal, []).append((cpu, wall))
    if size == "small":
        for rate in (None, 0.01, 0.03):
            met = peer_times(excess, pymc_records(X, y, rate), f"PyMC rate {rate or 'default'}")
            for goal, (cpu, wall, _) in met.items():
                peers["PyMC"].setdefault(goal, []).append((cpu, wall))
    for (method, goal), (cpu, wall, *_) in ours.items():
        for peer, met in peers.items():
            if goal in met:
                best_cpu, best_wall = (min(column) for column in zip(*met[goal], strict=True))
                ratios = f"x{best_cpu / cpu:.1f} CPU, x{best_wall / wall:.1f} wall"
                print(f"  {method} against {peer} at {goal} nats: {ratios}", flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ["small"]:
        race(chosen)
