"""Annealing: particles from independent variables, or a wide distribution, to a model or a posterior."""

from typing import Any

import numpy as np

from cumulant import checks
from cumulant.families import MultivariateNormal
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.gibbs_jax import ColouredGibbs, UniformTorus
from cumulant.particles.accelerated_bridges import ColouredBridge, TorusBridge
from cumulant.particles.bridges import Bridge
from cumulant.particles.ising_bridge import IsingBridge, ising_weights
from cumulant.particles.islands import run
from cumulant.particles.result import ParticleResult
from cumulant.particles.table_bridge import TableBridge
from cumulant.particles.target_bridge import TargetBridge
from cumulant.particles.temperatures import Temperatures
from cumulant.sampling.annealing import GeometricPath
from cumulant.sampling.hamiltonian import HMC
from cumulant.sampling.target import Target


def anneal(
    model: Any,
    n_particles: int = 1000,
    temperatures: Any = 100,
    *,
    share: float | None = None,
    weights: str | None = None,
    sweeps: int = 1,
    sampler: Any = None,
    start: Any = None,
    pilot: bool = False,
    resampling: str = "stratified",
    ess_threshold: float = 0.5,
    chain_length: int = 1,
    exchange: int | None = None,
    n_islands: int = 1,
    delta: float = 0.05,
    rng: Any = None,
    progress: Any = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    client: Any = None,
) -> ParticleResult:
    """Weighted particles of a model, and an estimate of ``log Z``, by sequential Monte Carlo along temperatures.

    Discrete models: ``f_t(x) = exp(sum_i theta_i(x_i) + t sum_f theta_f(x_f))`` begins with independent variables that
    have the single-variable tables of the model, and is moved by Gibbs sweeps; a table's entry -inf, a hard constraint,
    is the factor ``(1 - t)^2`` on the way, so that constraints are violated less and less. Densities of vectors: ``f_t
    = q^(1 - t) p^t`` begins with a distribution ``q`` that is given, and is moved by Metropolis steps; where a density
    is NaN it counts as zero, and ``result.trace["undefined"]`` has the number of such particles. The weights of a step
    are ``f_t'(x) / f_t(x)`` at the particles before the move; particles are resampled where their effective number is
    small. With temperatures that are given ``E exp(log_partition) = Z`` exactly, for any number of particles (Neal
    2001; Del Moral, Doucet and Jasra 2006), which is what the certificate rests on.

    Parameters
    ----------
    model : DiscreteModel, UniformTorus, Target or GeometricPath
        With evidence ``Z`` is the sum over the states that agree with it. A `UniformTorus` (columns a multiple of 64)
        is run in JAX, on an accelerator where there is one, with 32 spins in a word.
    n_particles : int
    temperatures : int, array or None
        A number of equal steps from 0 to 1, or increasing numbers from 0 to 1; None chooses them by `share`.
    share : float, optional
        Choose temperatures such that each step keeps this effective share of equally weighted particles (0.9 where
        `temperatures` is None). The path then depends on the particles: the estimate is consistent, not unbiased, and
        there is no certificate, unless a `pilot` chooses the path.
    weights : {"rb", "naive"}, optional
        For Ising models: ``"rb"`` sums one colour of a two-coloured graph out of the weights, which makes their
        variance smaller; it is the default where the graph has two colours.
    sweeps : int
        Gibbs sweeps, or steps of the sampler, at each temperature.
    sampler : RandomWalk, MALA or HMC, optional
        For densities. By default `HMC` in coordinates in which the particles have unit covariance, with steps as long
        as are accepted; both make the path depend on the particles as `share` does. For Ising models
        `graphical.ColouredGibbs()` runs the particles in JAX. There, and on a `UniformTorus`, decisions have 23 or 24
        random digits, so that the estimate is unbiased only up to their rounding, and there is no certificate.
    start : (family, theta), optional
        For a `Target`: where the path begins, in free coordinates. By default normal, with mean zero and unit variance.
    pilot : bool
        Run twice: the first population chooses the path, the second is the answer.
    resampling, ess_threshold, chain_length, exchange, n_islands, delta, rng, progress, time_limit, n_jobs, client
        As for `run`. Answers do not depend on `n_jobs`.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> model = Ising(grid(4, 4), 0.4, 0.1)
    >>> result = anneal(model, 500, 50, rng=0)
    >>> model.log_partition() in result.interval(0.99)
    True
    >>> result.certificate.lower < model.log_partition(), result.mean().shape
    (True, (16,))
    """
    bridge: Bridge
    checks.whole("sweeps", sweeps)
    chosen = Temperatures.of(temperatures, share)
    if isinstance(model, UniformTorus):
        _refuse_unused(model, weights=weights, sampler=sampler, start=start)
        bridge = TorusBridge(model, chosen, sweeps)
    elif isinstance(model, DiscreteModel):
        _refuse_unused(model, start=start)
        if not model.restricted()[2].size:
            raise ValueError(
                f"{model!r} has no variable that is free: there is nothing to draw, and model.log_partition() is exact"
            )
        if sampler is not None:
            if not (isinstance(sampler, ColouredGibbs) and isinstance(model, Ising)):
                accepted = " or be ColouredGibbs()" if isinstance(model, Ising) else ""
                raise ValueError(f"sampler of {model!r:.40} must be left out{accepted}; got {sampler!r:.40}")
            bridge = ColouredBridge(model, chosen, ising_weights(model, weights), sweeps)
        elif isinstance(model, Ising):
            kind = ising_weights(model, weights)
            edges = _free_edges(model)
            bridge = IsingBridge(model, np.zeros(edges, np.int64), chosen, kind, sweeps, n_jobs)
        else:
            if checks.choice("weights", weights, ("rb", "naive", None)) == "rb":
                raise ValueError(f"weights='rb' is for Ising models; {type(model).__name__} has weights='naive'")
            bridge = TableBridge(model, chosen, sweeps, n_jobs)
    else:
        kinds = "a DiscreteModel, a UniformTorus, a Target or a GeometricPath"
        checks.instance("model", model, (Target, GeometricPath), kinds)
        _refuse_unused(model, weights=weights)
        path = _path(model, start)
        if sampler is not None and not hasattr(sampler, "step"):
            raise TypeError(
                f"sampler must be RandomWalk(), MALA() or HMC(), or another with a step; got {sampler!r:.40}"
            )
        bridge = TargetBridge(path, HMC(0.4, 8) if sampler is None else sampler, chosen, sampler is None, sweeps)
    return run(
        bridge,
        n_particles,
        n_islands=n_islands,
        resampling=resampling,
        ess_threshold=ess_threshold,
        chain_length=chain_length,
        exchange=exchange,
        pilot=pilot,
        delta=delta,
        method="anneal",
        total=chosen.total,
        rng=rng,
        progress=progress,
        time_limit=time_limit,
        n_jobs=n_jobs,
        client=client,
    )


def _free_edges(model: Ising) -> int:
    """How many edges join two variables without evidence."""
    given = np.isin(model.edges, list(model.evidence))
    return int((~given.any(axis=1)).sum())


def _path(model: Any, start: Any) -> GeometricPath:
    if isinstance(model, GeometricPath):
        _refuse_unused(model, start=start)
        return model
    if start is None:
        family = MultivariateNormal(model.dim)
        start = family, family.natural(mean=np.zeros(model.dim), covariance=np.eye(model.dim))
    if not (isinstance(start, tuple) and len(start) == 2):
        raise TypeError(f"start must be a pair of a family and its natural parameter; got {type(start).__name__}")
    with checks.about("start"):
        return GeometricPath(*start, model)


def _refuse_unused(model: Any, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is not an argument for a {type(model).__name__}; leave it out")
