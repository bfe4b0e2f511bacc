"""Adaptation of linear-Gaussian models: averaged stochastic proximal gradient steps towards the transfer."""

import warnings
from typing import Any

import numpy as np

from cumulant import checks, randomness, threads
from cumulant.causal.adaptation import averaged, checked_step_sizes, checked_times, chosen_models, same_problems
from cumulant.causal.distances import initial_distances
from cumulant.causal.normal_adaptation_kernels import adapt, draw_samples
from cumulant.causal.normal_model import NormalSCM
from cumulant.causal.trajectories import Trajectories

MODELS = ("causal", "anticausal")


def adapt_normal(
    reference: NormalSCM,
    transfer: NormalSCM,
    T: int,
    step_sizes: Any = (0.001, 0.003, 0.01, 0.02, 0.03),
    rng: Any = None,
    *,
    prox: bool = True,
    models: tuple[str, ...] = MODELS,
    log_every: int = 10,
    times: Any = None,
    samples: tuple[Any, Any] | None = None,
    n_runs: int = 1,
    n_jobs: int | None = None,
) -> Trajectories:
    """How fast each direction learns the transfer distribution, from one observation of it at a time.

    Models begin at the reference, in Cholesky coordinates, in which the negative log-likelihood of an observation is
    convex: ``|L^T x - zeta|^2 / 2 - sum log L_ii + |L_{Y|X}^T y - M x - m|^2 / 2 - sum log [L_{Y|X}]_ii``, with ``x``
    and ``y`` exchanged for the anticausal model. Each step is a gradient step on the squares and a proximal step on the
    logarithms, ``l <- (l + sqrt(l^2 + 4 step)) / 2`` on the diagonals, which stay positive. What is measured is
    ``KL(p* || p_theta)``, exactly, at the average ``theta = (theta_1 + ... + theta_t) / t``. Both models and all step
    sizes see the same observations.

    For terms of smoothness ``B`` and ``step <= 1 / (5 B)`` the expected divergence is at most
    `optim.rates.stochastic_proximal_average`. The smoothness of one observation is ``1 + |x|^2 + |y|^2`` in both
    directions, which no constant bounds: single runs blow up where a step is large, their divergences are then huge or
    infinite, and ``tune(..., diverged="any")`` discards the step size.

    Parameters
    ----------
    reference, transfer : NormalSCM
        Written along the arrow, batches of the same shape.
    T : int
        The number of observations.
    step_sizes : float, array (n_steps,) or (n_steps, n_problems)
        A warning says where one times the expected smoothness is above two.
    rng : int, numpy.random.Generator or None
        The same seed gives the same answer at any number of threads.
    prox : bool
        False takes a gradient step on the logarithms too.
    models : tuple of {"causal", "anticausal"}
        The joint distribution in Cholesky coordinates is the causal model, packed another way.
    log_every : int
        Divergences are kept after ``0, log_every, 2 log_every, ..., T`` observations.
    times : array of int, optional
        Where to keep them instead.
    samples : pair of arrays ``(T, *batch, K_x)`` and ``(T, *batch, K_y)``, optional
        The observations, in this order, instead of draws from the transfer.
    n_runs : int
        Runs of each problem with other observations, of which the divergences are averaged.
    n_jobs : int or None
        Threads over problems; None takes all cores.

    Returns
    -------
    Trajectories

    Examples
    --------
    >>> from cumulant.causal import sample_normal_reference, tune
    >>> reference = sample_normal_reference(5, 50, rng=0)
    >>> found = adapt_normal(reference, reference.intervene("cause", rng=1), 100, rng=2)
    >>> best = tune(found, 100, diverged="any")
    >>> bool(best.mean("causal")[-1] < best.mean("anticausal")[-1] < best.mean("causal")[0] / 2)
    True

    References
    ----------
    Le Priol (2021), thesis, section 4.6 and appendix 4.D.
    """
    for name, each in (("reference", reference), ("transfer", transfer)):
        checks.instance(name, each, NormalSCM, "a NormalSCM")
    same_problems(reference, transfer)
    T = checks.whole("T", T)
    models = chosen_models(models, MODELS)
    checks.instance("prox", prox, (bool, np.bool_), "True or False")
    when = checked_times(T, log_every, times)
    n = int(np.prod(reference.shape))
    given = checked_step_sizes(step_sizes, n)
    steps = np.ascontiguousarray(np.broadcast_to(given.reshape(given.shape[0], -1), (given.shape[0], n)).T)
    seen = None if samples is None else _observations(samples, T, transfer)
    seed = randomness.seed(rng) if seen is None else 0
    _warn_of_large_steps(steps, transfer)
    start, goal = (_flat(each, n) for each in (reference, transfer))
    n_runs = checks.whole("n_runs", n_runs)
    if n_runs > 1 and samples is not None:
        raise ValueError(f"n_runs must be 1 where samples are given, as all runs would be the same; got {n_runs}")
    out = np.empty((len(models), n * n_runs, given.shape[0], when.size))
    _adapt(start, goal, steps, when, bool(prox), seen, seed, models, n_runs, out, n_jobs)
    kl = averaged(np.moveaxis(out, 1, 2), n_runs)
    return Trajectories(models, given, when, kl, initial_distances(start, goal, "cholesky"))


def pack(model: NormalSCM) -> np.ndarray:
    """The Cholesky coordinates of each model of a batch, as the kernels take them: ``(n, size)``."""
    n = model.shape[0]
    return np.ascontiguousarray(np.concatenate([each.reshape(n, -1) for each in model.to_cholesky()], axis=-1))


def _adapt(start, goal, steps, times, proximal, seen, seed, models, n_runs, out, n_jobs) -> None:
    """Fill `out`, by threads over the runs of all problems."""
    T, (p, q), truth = int(times[-1]), start.sizes, pack(goal)
    directions = {"causal": (start, goal), "anticausal": (start.reverse(), goal.reverse())}
    given = [(pack(begin), pack(end), end.to_mean().mean) for begin, end in (directions[model] for model in models)]

    def work(first, last):
        x, y = np.empty((T, p)), np.empty((T, q))
        end = np.empty((steps.shape[1], truth.shape[1]))
        for run in range(first, last):
            i = run // n_runs
            if seen is None:
                draw_samples(truth[i], seed, run, x, y)
            else:
                x[:], y[:] = seen[0][:T, i], seen[1][:T, i]
            for model, (begin, target, mean), answer in zip(models, given, out, strict=True):
                pair = (x, y) if model == "causal" else (y, x)
                adapt(*pair, steps[i], times, proximal, begin[i], target[i], mean[i], answer[run], end)

    threads.in_parts(work, start.shape[0] * n_runs, n_jobs)


def _warn_of_large_steps(steps: np.ndarray, transfer: NormalSCM) -> None:
    smoothness = np.broadcast_to(transfer.smoothness().reshape(-1, 1), steps.shape)
    large = steps * smoothness > 2
    if np.any(large):
        problems = int(large.any(axis=1).sum())
        warnings.warn(
            f"step size {steps[large].min():g} times the expected smoothness 1 + E |x|^2 + E |y|^2 = "
            f"{smoothness[large].max():.3g} is above two on {problems} of {len(steps)} problems: such runs usually "
            "diverge",
            RuntimeWarning,
            stacklevel=3,
        )


def _observations(samples: Any, T: int, model: NormalSCM) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(samples, tuple | list) or len(samples) != 2:
        raise TypeError(f"samples must be a pair of arrays; got {type(samples).__name__}")
    found = []
    for name, each, size in zip(("causes", "effects"), samples, model.sizes, strict=True):
        values = checks.real_array(f"samples of the {name}", each)
        if values.shape != (T, *model.shape, size):
            raise ValueError(f"samples of the {name} must have shape {(T, *model.shape, size)}; got {values.shape}")
        found.append(values.reshape(T, -1, size))
    return found[0], found[1]


def _flat(model: NormalSCM, n: int) -> NormalSCM:
    """With one leading axis."""
    return NormalSCM(*(each.reshape(n, *each.shape[len(model.shape) :]) for each in model.to_natural()))
