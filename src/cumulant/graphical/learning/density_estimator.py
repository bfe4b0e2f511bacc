"""What scikit-learn density estimators of pairwise models share: learning, scores, draws, verification and files."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import files
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, FileFormatError
from cumulant.graphical.lattices import complete
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.methods import METHODS, Method, method_named
from cumulant.graphical.learning.planner import SamplingPlan
from cumulant.graphical.learning.problem import Fit, SampledRun
from cumulant.graphical.mixing.fast_mixing import FastMixing

__all__ = ["PairwiseDensity"]

_NOT_SAVED = ("callback", "checkpoint")


class PairwiseDensity(DensityMixin, BaseEstimator):
    """A pairwise model learnt by `graphical.fit`. Subclasses have the settings, code the data, and make models."""

    n_features_in_: int
    model_: Any
    edges_: np.ndarray
    certificate_: Certificate | None
    refusal_: str
    status_: str
    _found: Fit

    # Settings of subclasses
    structure: Any
    method: str | Method
    l2: float
    mixing: FastMixing | None
    random_state: Any
    time_limit: float | None
    checkpoint: Any
    callback: Any
    verbose: bool

    def _dtype(self) -> Any:
        """Of the data as they come; None for any."""
        return np.float64

    def _learn_states(self, X: np.ndarray) -> np.ndarray:
        """Learn how data are coded, and code them."""
        raise NotImplementedError

    def _states(self, X: np.ndarray) -> np.ndarray:
        """Data as the model takes them."""
        raise NotImplementedError

    def _empty(self, edges: np.ndarray) -> Any:
        """The model with these edges and zero parameters."""
        raise NotImplementedError

    def _tree(self, x: np.ndarray) -> Any:
        """The best tree."""
        raise NotImplementedError

    def _coding(self) -> dict[str, np.ndarray]:
        """How data are coded, as arrays for a file."""
        raise NotImplementedError

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        """What `_coding` gave, read from a file."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from data of shape (observations, features)."""
        method = method_named(self.method)
        data: Any = validate_data(self, X, dtype=self._dtype())
        x = self._learn_states(data)
        if isinstance(self.structure, str) and self.structure == "tree":
            why = "no certificate: a closed form, no tree has a larger (smoothed) likelihood"
            found = Fit(self._tree(x), None, "tree", why)
        else:
            if method.name == "mcmc" and self.mixing is None:
                raise ValueError(
                    "method='mcmc' needs mixing=FastMixing(...): the set in which Gibbs sampling is certain to mix"
                )
            found = fit(
                x, self._empty(self._joined(x.shape[1])), method=method, mixing=self.mixing, l2=self.l2,
                rng=self._rng(), callback=self.callback, progress=bool(self.verbose), time_limit=self.time_limit,
                checkpoint=self.checkpoint,
            )  # fmt: skip
        return self._take(dataclasses.replace(found, problem=None))

    def verify(self, X: Any, y: Any = None) -> Certificate:
        """Issue the certificate again from the data that were learnt from: see `Certificate.verify`."""
        check_is_fitted(self)
        if self.certificate_ is None:
            raise CertificateError(self.refusal_, "there is a certificate")
        data: Any = validate_data(self, X, dtype=self._dtype(), reset=False)
        problem = learning_problem(
            self._states(data), self._empty(self.edges_), mixing=self.mixing, l2=self.l2,
            objective=method_named(self.method).objective,
        )  # fmt: skip
        return self.certificate_.verify(Subject(problem, dataclasses.replace(self._found, model=self.model_)))

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted estimator to an `.npz` file (no pickle), which `load` reads.

        `callback` and `checkpoint`, and a `random_state` that is not a number, are not written.
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
            fitted["run"] = {"seed": found.run.seed, "delta": found.run.delta, "smoothness": found.run.smoothness}
            arrays["errors"] = found.run.errors
        return files.save(path, type(self).__name__, arrays, {"parameters": settings, "fitted": fitted})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read what `save` wrote."""
        saved = files.load(path, cls.__name__)
        try:
            new = cls(**_restored(saved.settings["parameters"]))
            fitted, arrays = dict(saved.settings["fitted"]), saved.arrays
            new.n_features_in_ = int(fitted.pop("n_features_in"))
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

    def score_samples(self, X: Any) -> np.ndarray:
        """``log p(x)`` of each observation, by elimination; `TooWide` where the graph does not allow it."""
        check_is_fitted(self)
        data: Any = validate_data(self, X, dtype=self._dtype(), reset=False)
        return np.atleast_1d(self.model_.log_prob(self._states(data)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def _take(self, found: Fit) -> Self:
        self._found = found
        self.model_, self.certificate_, self.refusal_ = found.model, found.certificate, found.refusal
        self.status_, self.edges_ = found.status, found.model.edges
        return self

    def _drawn(self, n: int, random_state: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.model_.sample(n, rng=self._rng() if random_state is None else random_state)

    def _joined(self, n: int) -> np.ndarray:
        if isinstance(self.structure, str):
            if self.structure != "complete":
                raise ValueError(f"structure must be 'complete', 'tree' or pairs of features; got {self.structure!r}")
            return complete(n)
        return np.asarray(self.structure)

    def _rng(self) -> Any:
        state = self.random_state
        return int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state


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
