"""Adaptation of categorical models: averaged stochastic gradient steps from the reference towards the transfer."""

from typing import Any

import numpy as np
from scipy.special import xlogy

from cumulant import checks, randomness, threads
from cumulant.causal.categorical import CategoricalSCM
from cumulant.causal.categorical_kernels import adapt_mechanisms, adapt_table, draw_cells
from cumulant.causal.distances import initial_distances
from cumulant.causal.trajectories import Trajectories

MODELS = ("causal", "anticausal", "joint")
_OBSERVATIONS, _CELLS = 1_000_000, 4_000_000  # drawn, and of tables copied, at a time by a thread
_LARGEST_STEP = 1e100


def adapt_categorical(
    reference: CategoricalSCM,
    transfer: CategoricalSCM,
    T: int,
    step_sizes: Any = (0.03, 0.1, 0.3, 1.0, 3.0, 9.0, 30.0),
    rng: Any = None,
    *,
    models: tuple[str, ...] = MODELS,
    log_every: int = 10,
    times: Any = None,
    n_runs: int = 1,
    n_jobs: int | None = None,
) -> Trajectories:
    """How fast each direction learns the transfer distribution, from one observation of it at a time.

    Models begin at the reference, written as ``p(x) p(y | x)`` (``"causal"``), as ``p(y) p(x | y)`` (``"anticausal"``)
    or as one table (``"joint"``). An observation ``(x, y)`` of the transfer distribution moves the logits along the
    gradient of ``log p(x, y)``: ``s_X += step (e_x - softmax(s_X))``, and so the row that was seen. What is measured is
    ``KL(p* || p_theta)``, exactly, at the average ``theta = (theta_0 + ... + theta_{t-1}) / t`` of the logits. All
    models and step sizes see the same observations.

    The expected divergence is at most ``|theta_0 - theta*|^2 / (2 step t) + step B^2 / 2``, with ``B = 2`` for two
    mechanisms and ``sqrt(2)`` for a table (`adaptation_bound`): the initial distance is the part of the bound that the
    direction of a model decides.

    Parameters
    ----------
    reference, transfer : CategoricalSCM
        Written along the arrow, batches of the same shape.
    T : int
        The number of observations.
    step_sizes : float, array (n_steps,) or (n_steps, n_problems)
    rng : int, numpy.random.Generator or None
        The same seed gives the same answer at any number of threads.
    models : tuple of {"causal", "anticausal", "joint"}
    log_every : int
        Divergences are kept after ``0, log_every, 2 log_every, ..., T`` observations.
    times : array of int, optional
        Where to keep them instead.
    n_runs : int
        Runs of each problem with other observations, of which the divergences are averaged.
    n_jobs : int or None
        Threads over problems; None takes all cores.

    Returns
    -------
    Trajectories

    Examples
    --------
    >>> from cumulant.causal import sample_reference, tune
    >>> reference = sample_reference(10, 50, "dense", rng=0)
    >>> found = adapt_categorical(reference, reference.intervene("cause", rng=1), 100, rng=2)
    >>> best = tune(found, 20)
    >>> bool(best.mean("causal")[2] < best.mean("joint")[2] < best.mean("anticausal")[2])
    True

    References
    ----------
    Le Priol (2021), thesis, sections 4.4 and 4.5.4.
    """
    for name, each in (("reference", reference), ("transfer", transfer)):
        checks.instance(name, each, CategoricalSCM, "a CategoricalSCM")
    same_problems(reference, transfer)
    T = checks.whole("T", T)
    models = chosen_models(models, MODELS)
    when = checked_times(T, log_every, times)
    n = int(np.prod(reference.shape))
    start, goal = (_flat(each, n) for each in (reference, transfer))
    given = checked_step_sizes(step_sizes, n)
    steps = np.ascontiguousarray(np.broadcast_to(given.reshape(given.shape[0], -1), (given.shape[0], n)))
    n_runs = checks.whole("n_runs", n_runs)
    out = np.empty((len(models), len(given), n * n_runs, when.size))
    _adapt(start, goal, steps, when, randomness.seed(rng), models, n_runs, out, n_jobs)
    return Trajectories(models, given, when, averaged(out, n_runs), initial_distances(start, goal))


def _adapt(start, goal, steps, times, seed, models, n_runs, out, n_jobs) -> None:
    """Fill `out`, by threads over the runs of all problems."""
    causes, effects = start.sizes
    n, last_time = start.shape[0], int(times[-1])
    table = goal.to_joint()
    ends = np.cumsum(table.reshape(n, -1), axis=-1)
    entropies = np.sum(xlogy(table, table), axis=(-2, -1))
    given = [_starts_and_targets(start, goal, model) for model in models]
    at_once = max(1, min(_OBSERVATIONS // max(last_time, 1), _CELLS // (causes * effects)))

    def work(first, last):
        row = np.empty(causes * effects)
        work_arrays = [
            _work_arrays(arrays, 1 if model == "joint" else len(steps))
            for model, arrays in zip(models, given, strict=True)
        ]
        for begin in range(first, last, at_once):
            here = slice(begin, min(begin + at_once, last))
            problems = np.arange(here.start, here.stop) // n_runs
            seen = np.empty((problems.size, last_time), np.int32)
            draw_cells(ends[problems], begin, seed, seen)
            own = np.ascontiguousarray(steps[:, problems])
            for model, arrays, states, answer in zip(models, given, work_arrays, out, strict=True):
                found = np.empty((len(steps), len(seen), times.size))
                parts, common = [each[problems] for each in arrays], (entropies[problems], seen)
                if model == "joint":
                    adapt_table(*parts, *common, own, times, *states, row, found)
                else:
                    adapt_mechanisms(*parts, *common, model == "anticausal", own, times, *states, row, found)
                answer[:, here] = found

    threads.in_parts(work, n * n_runs, n_jobs)


def averaged(kl: np.ndarray, n_runs: int) -> np.ndarray:
    """Divergences ``(models, steps, problems * runs, times)`` as means over runs, infinite where one is."""
    return kl.reshape(*kl.shape[:2], -1, n_runs, kl.shape[3]).mean(axis=3)


def _starts_and_targets(start: CategoricalSCM, goal: CategoricalSCM, model: str) -> tuple[np.ndarray, ...]:
    """Logits at the beginning and probabilities at the end, (n, rows, cells) of each mechanism of a model."""
    if model == "joint":
        n = start.shape[0]
        return start.joint_logit().reshape(n, 1, -1), goal.to_joint().reshape(n, 1, -1)
    if model == "anticausal":
        start, goal = start.reverse(), goal.reverse()
    logits = start.to_logit()
    return logits.cause[:, None], np.ascontiguousarray(logits.effect), np.exp(goal.log_cause)[:, None], goal.to_joint()


def _work_arrays(arrays: tuple[np.ndarray, ...], n_steps: int) -> list[tuple[np.ndarray, ...]]:
    """Arrays to work in: logits, moments, weights, bases, totals of each mechanism, with the rows of each step size."""
    shapes = [(n_steps * each.shape[1], each.shape[2]) for each in arrays[: len(arrays) // 2]]
    return [(*(np.empty(shape) for _ in range(3)), np.empty(shape[0]), np.empty(shape[0])) for shape in shapes]


def _flat(model: CategoricalSCM, n: int) -> CategoricalSCM:
    """With one leading axis."""
    causes, effects = model.sizes
    return CategoricalSCM(model.log_cause.reshape(n, causes), model.log_effect.reshape(n, causes, effects))


def same_problems(reference: Any, transfer: Any) -> None:
    """Refuse batches of models that do not belong to each other, and empty ones."""
    if reference.shape != transfer.shape or reference.sizes != transfer.sizes:
        raise ValueError(
            "reference and transfer must have the same shape; got "
            f"{(*reference.shape, *reference.sizes)} and {(*transfer.shape, *transfer.sizes)}"
        )
    if 0 in reference.shape:
        raise ValueError("reference must hold at least one model; got an empty batch")


def chosen_models(models: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """One name, or several."""
    if isinstance(models, str) or not hasattr(models, "__iter__"):
        models = (models,)
    return tuple(checks.choice("each of models", each, known) for each in models)


def checked_step_sizes(value: Any, n: int) -> np.ndarray:
    """Step sizes for `n` problems: ``(n_steps,)`` or ``(n_steps, n)``."""
    steps = np.atleast_1d(checks.real_array("step_sizes", value))
    if steps.ndim > 2 or steps.size == 0 or not np.all(steps > 0) or (steps.ndim == 2 and steps.shape[1] != n):
        raise ValueError(f"step_sizes must be positive, of shape (n_steps,) or (n_steps, {n}); got {value!r}")
    if np.any(steps > _LARGEST_STEP):
        raise ValueError(f"step_sizes must be at most {_LARGEST_STEP:g}: sums of iterates overflow; got {value!r}")
    return steps


def checked_times(T: int, log_every: int, times: Any) -> np.ndarray:
    """The times at which divergences are kept."""
    if times is None:
        every = checks.whole("log_every", log_every)
        return np.unique(np.append(np.arange(0, T + 1, every), T))
    found = checks.array("times", times)
    if found.dtype.kind not in "iu" or found.ndim != 1 or found.size == 0 or np.any(np.diff(found) <= 0):
        raise ValueError(f"times must be increasing whole numbers; got {times!r}")
    if found[0] < 0 or found[-1] > T:
        raise ValueError(f"times must be between 0 and T = {T}; got {found[0]} to {found[-1]}")
    return found.astype(np.int64)
