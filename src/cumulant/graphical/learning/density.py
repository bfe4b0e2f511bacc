"""What the pairwise density estimators share: structure, parameters, scores, draws and files."""

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import files
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, FileFormatError, TooWide
from cumulant.graphical.lattices import complete
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.methods import METHODS, Method, method_named
from cumulant.graphical.learning.normaliser import Normaliser, normaliser
from cumulant.graphical.learning.planner import SamplingPlan
from cumulant.graphical.learning.problem import Fit, SampledRun
from cumulant.graphical.learning.sparse_structure import SparseStructure, sparse_structure
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.sampling.draws import Draws

_NOT_SAVED = ("callback", "checkpoint")
_STRUCTURES = ("sparse", "complete", "tree")
_CHAINS, _DRAWS, _THIN = (
    4,
    100,
    5,
)  # of a Markov chain: chains, draws of each that diagnostics need, sweeps between them
_APART = 1.1  # R-hat above which chains have not met


class PairwiseDensity(DensityMixin, BaseEstimator):
    """A pairwise model of data. Subclasses have the settings, code the data, and make models."""

    n_features_in_: int
    model_: Any
    edges_: np.ndarray
    certificate_: Certificate | None
    refusal_: str
    status_: str
    structure_: SparseStructure | None
    draws_: Draws | None
    _found: Fit
    _known: tuple[Any, Normaliser] | None

    # Settings of subclasses
    structure: Any
    method: str | Method
    l1: float | None
    l2: float
    mixing: FastMixing | None
    random_state: Any
    time_limit: float | None
    checkpoint: Any
    callback: Any
    verbose: bool | None

    # Methods of subclasses
    _learn_states: Any  # learn how data are coded, and code them
    _states: Any  # data as the model takes them, NaN where one is missing
    _empty: Any  # the model with some edges and zero parameters
    _tree: Any  # the best tree for coded data
    _sizes: Any  # how many states each feature has; None for spins
    _coding: Any  # how data are coded, as arrays for a file
    _set_coding: Any  # what `_coding` gave, read from a file
    _decoded: Any  # values of the model as the data have them

    def _dtype(self) -> Any:
        """Of the data as they come; None for any."""
        return np.float64

    def __sklearn_tags__(self) -> Any:
        """Missing values are summed over."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # Learning ---------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data of shape (observations, features); NaN is a missing value."""
        method = method_named(self.method)
        kind = self.structure if isinstance(self.structure, str) else None
        if kind is not None and kind not in _STRUCTURES:
            raise ValueError(
                f"structure must be {', '.join(map(repr, _STRUCTURES))} or pairs of features; got {self.structure!r}"
            )
        x = self._learn_states(self._validated(X))
        self.structure_ = None
        if kind == "tree":
            if np.isnan(x).any():
                raise ValueError("structure='tree' needs complete data; X holds missing values: use structure='sparse'")
            why = "no certificate: a closed form, no tree has a larger (smoothed) likelihood"
            return self._take(Fit(self._tree(x), None, "tree", why))
        if method.name == "mcmc" and self.mixing is None:
            raise ValueError(
                "method='mcmc' needs mixing=FastMixing(...): the set in which Gibbs sampling is certain to mix"
            )
        if method.objective != "pseudo_likelihood" and np.isnan(x).any():
            raise ValueError(f"X holds missing values, which method='pseudo_likelihood' sums over; got {method.name!r}")
        progress = None if self.verbose is None else (type(self).__name__ if self.verbose else False)
        left = self.time_limit
        edges: Any = self.structure if kind is None else complete(x.shape[1]) if kind == "complete" else None
        if edges is None:
            self.structure_ = sparse_structure(
                x, self._sizes(), l1=self.l1, spins=self._sizes() is None, time_limit=left,
                progress=progress,
            )  # fmt: skip
            edges = self.structure_.edges
            left = None if left is None else max(left - self.structure_.seconds, 0.01 * left)
        found = fit(
            x, self._empty(np.asarray(edges)), method=method, mixing=self.mixing, l2=self.l2, rng=self._rng(),
            callback=self.callback, progress=progress, time_limit=left, checkpoint=self.checkpoint,
        )  # fmt: skip
        if self.structure_ is not None and self.structure_.status in ("time_limit", "interrupted"):
            found = dataclasses.replace(found, status=self.structure_.status)
        return self._take(dataclasses.replace(found, problem=None))

    def verify(self, X: Any, y: Any = None) -> Certificate:
        """Issue the certificate again from the data that were learnt from: see `Certificate.verify`."""
        check_is_fitted(self)
        if self.certificate_ is None:
            raise CertificateError(self.refusal_, "there is a certificate")
        problem = learning_problem(
            self._states(self._validated(X, reset=False)), self._empty(self.edges_), mixing=self.mixing, l2=self.l2,
            objective=method_named(self.method).objective,
        )  # fmt: skip
        return self.certificate_.verify(Subject(problem, dataclasses.replace(self._found, model=self.model_)))

    def _validated(self, X: Any, reset: bool = True) -> Any:
        return validate_data(self, X, dtype=self._dtype(), ensure_all_finite="allow-nan", reset=reset)

    def _take(self, found: Fit) -> Self:
        self._found, self._known, self.draws_ = found, None, None
        self.model_, self.certificate_, self.refusal_ = found.model, found.certificate, found.refusal
        self.status_, self.edges_ = found.status, found.model.edges
        return self

    def _rng(self) -> Any:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state

    # Answers ----------------------------------------------------------------------------------------------------------

    @property
    def normaliser_(self) -> Normaliser:
        """``log Z`` of the model, and how it is known: exact, within a proved interval, or annealed with its standard
        error. `score` and `score_samples` subtract it: all of them are off by its error alone.
        """
        check_is_fitted(self)
        if self._known is None or self._known[0] is not self.model_:
            self._known = (self.model_, normaliser(self.model_))
        return self._known[1]

    def score_samples(self, X: Any) -> np.ndarray:
        """``log p(x)`` of each observation, missing values summed out; `normaliser_` says how ``log Z`` is known."""
        check_is_fitted(self)
        x = self._states(self._validated(X, reset=False))
        whole = ~np.isnan(x).any(axis=1)
        out, log_z = np.zeros(len(x)), self.normaliser_.value
        if whole.any():
            out[whole] = self.model_.family.score(x[whole].astype(np.int64), self.model_.theta) - log_z
        for row in np.flatnonzero(~whole):
            known = {int(v): int(x[row, v]) for v in np.flatnonzero(~np.isnan(x[row]))}
            if known:  # nothing is said about an observation of which nothing is known: probability one
                out[row] = normaliser(self.model_.given(known)).value - log_z
        return out

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, *, method: str | None = None, **options: Any
    ) -> np.ndarray:
        """Draws, coded as the data were.

        `method` and `options` are those of `DiscreteModel.sample`. Without one the draws are independent and exact, or,
        where the graph is too wide for that, those of four Markov chains (``method="mcmc"``): then `draws_` has the
        chains themselves, for R-hat and effective sample sizes, and a warning says so where R-hat is above 1.1.
        """
        check_is_fitted(self)
        rng = self._rng() if random_state is None else random_state
        self.draws_ = None
        if method in (None, "exact", "perfect"):
            try:
                return self._decoded(self.model_.sample(n_samples, rng=rng, method=method, **options))
            except TooWide:
                if method is not None:
                    raise
        settings = {"chains": _CHAINS, "thin": _THIN, **options}
        each = -(-n_samples // settings["chains"])
        draws = self.model_.sample(max(each, _DRAWS), rng=rng, method=method or "mcmc", **settings)
        _warn_if_apart(self.model_, draws)
        self.draws_ = draws
        places = np.linspace(0, draws.values.shape[1] - 1, each).astype(np.int64)  # of each chain, spread over it
        found = draws.values[:, places].swapaxes(0, 1).reshape(-1, draws.values.shape[2])
        return self._decoded(found[:n_samples])

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted estimator to an `.npz` file (no pickle), which `load` reads.

        `callback` and `checkpoint`, a `random_state` that is not a number, and the path of `structure_` are not
        written.
        """
        check_is_fitted(self)
        found = self._found
        settings = {name: _plain(value) for name, value in self.get_params().items() if name not in _NOT_SAVED}
        if not isinstance(self.random_state, int | np.integer):
            settings["random_state"] = None
        arrays = {"theta": self.model_.theta, "edges": self.edges_, **self._coding()}
        fitted: dict[str, Any] = {name: getattr(found, name) for name in ("method", "refusal", "status", "value")}
        fitted |= {"n_features_in": self.n_features_in_, "seconds": found.seconds, "run": None, "plan": None}
        fitted["certificate"] = None if self.certificate_ is None else self.certificate_.to_json()
        if found.plan is not None and found.path is not None:
            fitted["plan"], arrays["path"] = dataclasses.asdict(found.plan), found.path
        if found.run is not None:
            fitted["run"] = {name: getattr(found.run, name) for name in ("seed", "delta", "smoothness", "starts")}
            arrays["errors"] = found.run.errors
        return files.save(path, type(self).__name__, arrays, {"parameters": settings, "fitted": fitted})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote."""
        saved = files.load(path, cls.__name__)
        try:
            new = cls(**_restored(saved.settings["parameters"]))
            fitted, arrays = dict(saved.settings["fitted"]), saved.arrays
            new.n_features_in_, new.structure_ = int(fitted.pop("n_features_in")), None
            new._set_coding(arrays)
            model = learning_problem(arrays["theta"], new._empty(arrays["edges"])).bind(arrays["theta"])
            certificate, plan, run = (fitted.pop(name) for name in ("certificate", "plan", "run"))
            return new._take(
                Fit(
                    model,
                    None if certificate is None else Certificate.from_json(certificate),
                    plan=None if plan is None else SamplingPlan(**plan),
                    path=arrays.get("path"),
                    run=None if run is None else SampledRun(**run, errors=arrays["errors"]),
                    **fitted,
                )
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise FileFormatError(f"{path} does not hold a {cls.__name__} of this version: {problem}") from problem


def _warn_if_apart(model: Any, draws: Draws) -> None:
    """Where chains disagree about the energy or about a variable: they have not mixed."""

    def energy(x):
        return np.asarray(model.family.score(x, model.theta))

    r_hat = np.append(draws.r_hat(), draws.r_hat(energy))
    moving = np.append(np.ptp(draws.flat, axis=0) > 0, np.ptp(draws.of(energy)) > 1e-9)
    # Chains that stand still at different values have no variance within, and R-hat is not a number.
    worst = float(np.max(np.where(np.isnan(r_hat), np.inf, r_hat), where=moving, initial=1.0))
    if worst > _APART:
        warnings.warn(
            f"the Markov chains have not mixed: R-hat is {worst:.3g} (draws_ has the chains). Give a larger burn_in= "
            "and thin=, or another method=",
            stacklevel=3,
        )


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(value, Method):
        return {"method": value.name, "settings": dataclasses.asdict(value)}
    if isinstance(value, FastMixing):
        return dataclasses.asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _restored(settings: dict[str, Any]) -> dict[str, Any]:
    settings = dict(settings)
    if isinstance(settings["method"], dict):
        chosen = dict(settings["method"]["settings"])
        if chosen.get("plan") is not None:
            chosen["plan"] = SamplingPlan(**chosen["plan"])
        settings["method"] = METHODS[settings["method"]["method"]](**chosen)
    if settings["mixing"] is not None:
        settings["mixing"] = FastMixing(**settings["mixing"])
    return settings
