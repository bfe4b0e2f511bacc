"""What adaptation leaves behind: divergences from the transfer distribution as observations come in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cumulant import checks
from cumulant.causal.distances import Distances


@dataclass(frozen=True, eq=False)
class Trajectories:
    """``KL(p* || p_theta)`` of each model, with each step size, on each problem, at each time.

    Attributes
    ----------
    models : tuple of str
        ``"causal"``, ``"anticausal"``, ``"joint"``.
    step_sizes : array (n_steps,) or (n_steps, n_problems)
    times : array (n_times,)
        How many observations each entry has seen.
    kl : array (n_models, n_steps, n_problems, n_times)
    distances : Distances
        ``|theta_0 - theta*|^2`` of each model on each problem.
    """

    models: tuple[str, ...]
    step_sizes: np.ndarray
    times: np.ndarray
    kl: np.ndarray
    distances: Distances

    def of(self, model: str) -> np.ndarray:
        """The curves of one model, ``(n_steps, n_problems, n_times)``."""
        return self.kl[self.models.index(checks.choice("model", model, self.models))]

    def at(self, time: int) -> int:
        """The place of a time among those that were kept."""
        found = np.flatnonzero(self.times == time)
        if found.size == 0:
            raise ValueError(f"time {time!r} was not kept; there are {_listed(self.times)}")
        return int(found[0])


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best step size of each model and its curves.

    Attributes
    ----------
    models : tuple of str
    times : array (n_times,)
    budget : int
        The time at which step sizes were compared.
    chosen : array (n_models,)
        Their places among the step sizes.
    step_sizes : array (n_models,) or (n_models, n_problems)
    kl : array (n_models, n_problems, n_times)
    discarded : array of bool (n_models, n_steps)
        The step sizes that diverged.
    distances : Distances
        Squared distances at the start; means, where curves are pooled.
    """

    models: tuple[str, ...]
    times: np.ndarray
    budget: int
    chosen: np.ndarray
    step_sizes: np.ndarray
    kl: np.ndarray
    discarded: np.ndarray
    distances: Distances

    def of(self, model: str) -> np.ndarray:
        """The curves of one model, ``(n_problems, n_times)``."""
        return self.kl[self.models.index(checks.choice("model", model, self.models))]

    def at_budget(self, model: str) -> np.ndarray:
        """The divergences of one model at the budget, ``(n_problems,)``."""
        return self.of(model)[:, int(np.flatnonzero(self.times == self.budget)[0])]

    def mean(self, model: str) -> np.ndarray:
        """The mean curve of one model, ``(n_times,)``."""
        return self.of(model).mean(axis=0)


def tune(trajectories: Trajectories, budget: int, *, diverged: str = "mean") -> Tuned:
    """The step size of each model with the smallest mean divergence after `budget` observations.

    Step sizes that diverge are discarded: the divergence at the last time is not finite or above twice that at the
    first, of the mean over problems (``diverged="mean"``), or of any problem (``"any"``: for methods of which single
    runs blow up). Each model has its own: a step size common to all hides which of them adapts faster.

    Parameters
    ----------
    trajectories : Trajectories
    budget : int
        One of its times; the source takes ``K^2 / 4``.
    diverged : {"mean", "any"}
    """
    checks.choice("diverged", diverged, ("mean", "any"))
    checks.instance("trajectories", trajectories, Trajectories, "Trajectories")
    with checks.about("budget"):
        place = trajectories.at(checks.whole("a time", budget, 0))
    kl = trajectories.kl
    first, last = kl[..., 0], kl[..., -1]
    if diverged == "mean":
        first, last = first.mean(axis=-1, keepdims=True), last.mean(axis=-1, keepdims=True)
    discarded = np.any(~(last <= 2 * first), axis=-1) | ~np.all(np.isfinite(kl), axis=(-2, -1))
    scores = np.where(discarded, np.inf, np.where(np.isfinite(kl[..., place]), kl[..., place], np.inf).mean(axis=-1))
    for model, each in zip(trajectories.models, scores, strict=True):
        if not np.any(np.isfinite(each)):
            raise ValueError(f"every step size diverges for the {model} model: give smaller step_sizes")
    chosen = np.argmin(scores, axis=-1)
    return Tuned(
        trajectories.models,
        trajectories.times,
        int(budget),
        chosen,
        trajectories.step_sizes[chosen],
        kl[np.arange(len(chosen)), chosen],
        discarded,
        trajectories.distances,
    )


def pool(parts: Sequence[Trajectories], groups: int = 20) -> Trajectories:
    """Curves averaged over groups of problems of several kinds, as many of each kind in every group.

    ``pool([cause, effect], 20)`` of 100 problems each gives 20 curves, each the mean of 5 interventions on the cause
    and 5 on the effect with one step size (Le Priol 2021, appendix 4.B.4): the question is then which model adapts
    faster where it is not known which variable will be changed. `tune` chooses step sizes for the pooled curves.
    """
    groups = checks.whole("groups", groups)
    if not isinstance(parts, tuple | list) or not parts:
        raise ValueError("parts must be a list of at least one Trajectories")
    for each in parts:
        checks.instance("each of parts", each, Trajectories, "Trajectories")
    first = parts[0]
    for each in parts:
        if each.models != first.models or not np.array_equal(each.times, first.times):
            raise ValueError("parts must have the same models and times")
        if each.step_sizes.ndim != 1 or not np.array_equal(each.step_sizes, first.step_sizes):
            raise ValueError("parts must have the same step sizes, one for all problems")
        if each.kl.shape[2] % groups:
            raise ValueError(f"groups must divide the number of problems, {each.kl.shape[2]}; got {groups}")

    def averaged(values: np.ndarray, axis: int) -> np.ndarray:
        shape = (*values.shape[:axis], groups, -1, *values.shape[axis + 1 :])
        return values.reshape(shape).mean(axis=axis + 1)

    kl = np.mean([averaged(each.kl, 2) for each in parts], axis=0)
    distances = (
        np.mean([averaged(d, 0) for d in each], axis=0) for each in zip(*(p.distances for p in parts), strict=True)
    )
    return Trajectories(first.models, first.step_sizes, first.times, kl, Distances(*distances))


def _listed(times: np.ndarray) -> str:
    if times.size <= 6:
        return ", ".join(map(str, times))
    return f"{', '.join(map(str, times[:3]))}, ..., {times[-1]}"
