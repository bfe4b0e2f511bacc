"""Which of two variables, as the cause, adapts faster to changes? A scikit-learn estimator for tables."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cumulant import checks, files, randomness
from cumulant.causal.changes import Change
from cumulant.causal.fitted_pairs import CategoricalPairs, NormalPairs
from cumulant.causal.speed import compare_speed
from cumulant.causal.tables import read_all
from cumulant.errors import FileFormatError

_SURE = 0.95  # of the explanations under which speed points to the cause
_ARRAYS = ("times_", "kl_", "step_sizes_", "interval_", "distances_", "distance_intervals_", "beyond_")
_WORDS = {
    "none": "nothing changed",
    "everything": "both mechanisms changed, in either direction",
    "cause": "the distribution of {this} changed, {other} given {this} did not",
    "effect": "{this} was set and no longer depends on {other}",
    "row": "{this} changed for one value of {other}",
}


class AdaptationSpeed(BaseEstimator):
    """Two variables, a table from before a change and tables from after it: which direction adapts faster?

    Both factorisations, ``p(x) p(y | x)`` and ``p(y) p(x | y)``, begin at the reference and are adapted to each
    transfer by averaged stochastic gradients, one observation at a time, with the step size that suits each best. Where
    the *cause* was changed, the causal direction is the faster: its distance from where it has to go is smaller by a
    factor of at least the number of categories (Le Priol 2021, proposition 4.5.1). Where the *effect* was changed the
    anticausal direction is usually faster. So speed points to the cause only where it is the cause that changed: the
    estimator compares the explanations of each change and says where that is not clear (`caution_`, also a warning).
    The tables themselves are not known. For categories, pairs of them are drawn from the posterior under the prior of
    `table_changes`: first which mechanism changed, then the mechanisms, those that were kept in common to both tables.
    What is reported are medians and quantiles over these draws. (Tables of smoothed counts would differ in every
    mechanism, by noise, which hides the advantage of small tables.)

    It assumes that rows are independent draws, and that one mechanism was changed from outside and the other not at
    all. Repeated rows look like certainty. Rows that were selected by the values of one variable look as if this
    variable were a cause that was changed. Where both mechanisms changed a little, a change of one cause is often the
    simplest explanation: of tables with 9 cells and 1,000 rows whose cells all changed, by factors of about
    ``exp(0.5)``, one in six (dense prior) to one in four (sparse) looked so, for the right variable as often as for
    the wrong one.

    Parameters
    ----------
    family : {"categorical", "normal"}
        Categories, or numbers with a linear-Gaussian model, standardised by the reference.
    n_bins : int, pair of int or None, optional
        Columns of numbers are cut into this many bins; None for a column whose values are categories.
    categories : pair of sequences, optional
        All values that a column may have, where some are not in the reference; None for one that is complete.
    strategy : {"quantile", "uniform"}
        Bins with equal shares of the reference, or of equal width.
    outside : {"outer", "error"}
        Values of a transfer outside of the range of the reference: counted in the outer bins, with their share in
        `beyond_`, or refused.
    pseudo_count : float, optional
        Of each cell of a row, in the prior of `table_changes`; several are averaged over unless it is given.
    budget : int, optional
        After how many observations directions are compared. By default ``max(20, K_x K_y / 4)`` for categories and 50
        for numbers.
    step_sizes : array, optional
        Among which each direction chooses.
    n_draws : int
        Pairs of tables for the intervals: drawn from the posterior, or, for numbers, of rows drawn with replacement.
    n_runs : int
        Runs with other observations for each of them, averaged. Of tables with many rows, they are what makes the
        interval wide.
    level : float
        Of the intervals.
    random_state : int, Generator or None
    n_jobs : int, optional
        Threads; answers do not depend on it.

    Attributes
    ----------
    names_ : pair of str
        The variables.
    faster_ : str or None
        The variable that adapts faster as the cause; None where the interval of `advantage_` includes zero, or no step
        size comes nearer to the transfers.
    advantage_, interval_ : float, array (2,)
        ``log(KL of the second variable as the cause / KL of the first)`` at the budget, KL averaged over transfers and
        runs: positive where the first is faster; the median over draws, and the interval between quantiles, which is
        the whole line where no step size comes nearer to the transfers. For categories and one transfer the interval is
        exact for tables of the prior: it holds the advantage of the true tables, with the step sizes that were chosen,
        with probability `level`, whatever the number of rows (with many draws and runs). How often it holds the truth
        for other tables was measured: see the guide.
    caution_ : str or None
        Why speed may not point to the cause.
    changes_ : list of lists of Change
        For each transfer the explanations of the change, the most probable first; `table_changes`, `normal_changes`.
    distances_, distance_intervals_ : array (n_transfers, 2), (n_transfers, 2, 2)
        Initial squared distances with the first and with the second variable as the cause, medians and intervals: what
        the theory predicts speed from.
    times_, kl_ : array (n_times,), (n_models, n_transfers, n_draws, n_times)
        Divergences with the chosen step sizes, of `models_`: the first variable as the cause, the second, and for
        categories the table without a direction. One run for each draw.
    step_sizes_ : array (n_models,)
    beyond_ : array (n_transfers, 2)
        The shares of values outside of the bins.
    tables_ : list of arrays
        The reference and the transfers: means of the draws for categories; for numbers the mean and the covariance, in
        one array.

    References
    ----------
    Le Priol (2021), thesis, chapter 4; Bengio et al. (2020), "A meta-transfer objective for learning to disentangle
    causal mechanisms".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> effect = np.array([[0.6, 0.3, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    >>> def table(cause, n=2000):
    ...     x = rng.choice(3, n, p=cause)
    ...     return np.stack([x, [rng.choice(3, p=effect[i]) for i in x]], axis=1)
    >>> model = AdaptationSpeed(n_draws=50, random_state=0).fit(table([0.4, 0.3, 0.3]), table([0.1, 0.1, 0.8]))
    >>> model.faster_, model.changes_[0][0].kind, model.caution_
    ('X', 'cause', None)
    """

    def __init__(
        self,
        family: str = "categorical",
        *,
        n_bins: Any = None,
        categories: Any = None,
        strategy: str = "quantile",
        outside: str = "outer",
        pseudo_count: float | None = None,
        budget: int | None = None,
        step_sizes: Any = None,
        n_draws: int = 200,
        n_runs: int = 100,
        level: float = 0.9,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.family, self.n_bins, self.categories = family, n_bins, categories
        self.strategy, self.outside = strategy, outside
        self.pseudo_count, self.budget, self.step_sizes = pseudo_count, budget, step_sizes
        self.n_draws, self.n_runs, self.level = n_draws, n_runs, level
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, reference: Any, transfers: Any) -> Self:
        """Compare the two directions.

        Parameters
        ----------
        reference : DataFrame or array (rows, 2)
            From before the change.
        transfers : the same, or a sequence of them
            From after one or several unknown changes.
        """
        checks.choice("family", self.family, ("categorical", "normal"))
        checks.choice("outside", self.outside, ("outer", "error"))
        checks.fraction("level", self.level)
        checks.whole("n_draws", self.n_draws, 10)
        checks.whole("n_runs", self.n_runs)
        self.seed_ = self._seed()
        self.names_, columns, transfer_columns = read_all(reference, transfers)
        pairs: Any
        if self.family == "categorical":
            settings = self._pair("n_bins"), self._pair("categories"), self.strategy, self.outside, self.pseudo_count
            pairs = CategoricalPairs.learn(self.names_, columns, transfer_columns, *settings)
        else:
            for name in ("n_bins", "categories"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is for family='categorical'; got it with family='normal'")
            pairs = NormalPairs.learn(self.names_, columns, transfer_columns)
        budget = pairs.default_budget if self.budget is None else checks.whole("budget", self.budget)
        found = compare_speed(
            pairs,
            budget=budget,
            step_sizes=pairs.default_step_sizes if self.step_sizes is None else self.step_sizes,
            n_draws=self.n_draws,
            n_runs=self.n_runs,
            level=float(self.level),
            seed=self.seed_,
            n_jobs=self.n_jobs,
        )
        self.budget_, self.models_ = budget, pairs.models
        self.times_, self.kl_, self.step_sizes_ = found.times, found.kl, found.step_sizes
        self.advantage_, self.interval_ = found.advantage, found.interval
        self.distances_, self.distance_intervals_ = found.distances, found.distance_intervals
        self.beyond_, self.tables_, self.labels_ = pairs.beyond, found.tables, pairs.labels
        self.changes_ = pairs.changes()
        self.faster_ = self._faster() if found.tuned else None
        self.caution_ = self._caution(found.tuned)
        if self.caution_ is not None:
            warnings.warn(self.caution_, UserWarning, stacklevel=2)
        return self

    def summary(self) -> str:
        """What was found, in words."""
        check_is_fitted(self, "kl_")
        first, second = self.names_
        low, high = self.interval_
        lines = [f"Adaptation speed of {first} -> {second} and {second} -> {first}, after {self.budget_} observations"]
        if self.faster_ is None:
            lines.append("  faster: undecided")
        else:
            other = second if self.faster_ == first else first
            lines.append(f"  faster: {self.faster_} -> {other}")
        lines.append(
            f"  log ratio of divergences {self.advantage_:+.3f} (positive: {first} -> {second} is faster), "
            f"{self.level:.0%} interval {low:+.3f} to {high:+.3f}"
        )
        for i, (changes, distances) in enumerate(zip(self.changes_, self.distances_, strict=True)):
            best = changes[0]
            lines.append(f"  transfer {i}: {self.describe(best)} (probability {best.probability:.2f})")
            lines.append(
                f"    initial squared distance {distances[0]:.4g} for {first} -> {second}, {distances[1]:.4g} for "
                f"{second} -> {first}"
            )
        lines.append(f"  caution: {self.caution_ or 'none'}")
        lines.append(
            "  assumes: rows are independent draws; one mechanism was changed from outside, the other not at all; rows "
            "selected by a variable, or small changes of both mechanisms, can look like a changed cause"
        )
        return "\n".join(lines)

    def describe(self, change: Change) -> str:
        """A change in words, with the names of the variables."""
        check_is_fitted(self, "kl_")
        this = "" if change.variable is None else self.names_[change.variable]
        other = "" if change.variable is None else self.names_[1 - change.variable]
        return _WORDS[change.kind].format(this=this, other=other)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted estimator to an `.npz` file (no pickle), which `load` reads."""
        check_is_fitted(self, "kl_")
        parameters = {name: _plain(value) for name, value in self.get_params().items() if name != "random_state"}
        parameters["random_state"] = self.seed_
        fitted = {
            "names": list(self.names_),
            "models": list(self.models_),
            "faster": self.faster_,
            "advantage": self.advantage_,
            "budget": self.budget_,
            "caution": self.caution_,
            "labels": self.labels_,
            "changes": [[tuple(change) for change in changes] for changes in self.changes_],
        }
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        arrays |= {f"table/{i}": each for i, each in enumerate(self.tables_)}
        return files.save(path, type(self).__name__, arrays, {"parameters": parameters, "fitted": fitted})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote."""
        saved = files.load(path, cls.__name__)
        try:
            new, fitted = cls(**saved.settings["parameters"]), saved.settings["fitted"]
            for name in _ARRAYS:
                setattr(new, name, saved.arrays[name])
            new.names_, new.models_ = tuple(fitted["names"]), tuple(fitted["models"])
            for name in ("faster", "advantage", "budget", "caution", "labels"):
                setattr(new, f"{name}_", fitted[name])
            new.changes_ = [[Change(*change) for change in changes] for changes in fitted["changes"]]
            new.tables_ = [saved.arrays[f"table/{i}"] for i in range(1 + len(new.changes_))]
            new.seed_ = saved.settings["parameters"]["random_state"]
        except (KeyError, TypeError, ValueError) as problem:
            raise FileFormatError(f"{path} does not hold an AdaptationSpeed of this version: {problem}") from problem
        return new

    # Helpers ----------------------------------------------------------------------------------------------------------

    def _faster(self) -> str | None:
        low, high = self.interval_
        if low > 0:
            return self.names_[0]
        return self.names_[1] if high < 0 else None

    def _caution(self, tuned: bool) -> str | None:
        """Where the faster direction need not be the causal one, and why."""
        unclear = []
        for i, changes in enumerate(self.changes_):
            points = [sum(c.probability for c in changes if c[:2] == ("cause", v)) for v in (0, 1)]
            named = None if self.faster_ is None else self.names_.index(self.faster_)
            best = changes[0]
            where = f" after transfer {i}" if len(self.changes_) > 1 else ""
            if best.kind == "none":
                unclear.append(f"it is likely that nothing changed{where}, so that speed says nothing")
            elif sum(points) < _SURE:
                unclear.append(
                    f"{self.describe(best)}{where} with probability {best.probability:.2f}: the change may be on the "
                    "effect, and then the anticausal direction is often the faster"
                )
            elif named is not None and points[1 - named] > 0.5:
                unclear.append(f"{self.describe(best)}{where}, which points to the slower direction")
            elif named is not None and points[named] < _SURE:
                unclear.append(
                    f"either variable may be the cause that changed{where}: {self.names_[0]} with probability "
                    f"{points[0]:.2f}, {self.names_[1]} with {points[1]:.2f}"
                )
        if not tuned:
            unclear.append(
                "no step size comes nearer to the transfer: the tables differ too little, or all runs diverge"
            )
        if not unclear:
            return None
        return "faster adaptation does not mean cause here: " + "; ".join(unclear)

    def _pair(self, name: str) -> tuple[Any, Any]:
        """One setting for each column."""
        value = getattr(self, name)
        if value is None or (name == "n_bins" and isinstance(value, int | np.integer)):
            return value, value
        if not isinstance(value, tuple | list) or len(value) != 2:
            one = "a number of bins, " if name == "n_bins" else ""
            raise ValueError(f"{name} must be {one}a pair, one for each column, or None; got {value!r}")
        return value[0], value[1]

    def _seed(self) -> int:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else randomness.seed(state)


def _plain(value: Any) -> Any:
    """A parameter as JSON has it: numbers of NumPy are numbers, sequences are lists."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return value.item() if isinstance(value, np.generic) else [_plain(each) for each in value]
