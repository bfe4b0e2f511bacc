"""Pairwise models as scikit-learn density estimators: of binary data, and of categories or binned numbers."""

import dataclasses
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import files
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, FileFormatError
from cumulant.graphical.lattices import complete
from cumulant.graphical.learning.chow_liu import chow_liu
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.methods import METHODS, Method, method_named
from cumulant.graphical.learning.planner import SamplingPlan
from cumulant.graphical.learning.problem import Fit, SampledRun
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import Ising, PairwiseMRF

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

    # Methods of subclasses
    _learn_states: Any  # learn how data are coded, and code them
    _states: Any  # data as the model takes them
    _empty: Any  # the model with some edges and zero parameters
    _tree: Any  # the best tree for coded data
    _coding: Any  # how data are coded, as arrays for a file
    _set_coding: Any  # what `_coding` gave, read from a file

    def _dtype(self) -> Any:
        """Of the data as they come; None for any."""
        return np.float64

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
                rng=self._rng(), callback=self.callback, time_limit=self.time_limit, checkpoint=self.checkpoint,
                progress=type(self).__name__ if self.verbose else False,
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


class IsingEstimator(PairwiseDensity):
    """An Ising model of binary features, ``p(x) = exp(sum_ij J_ij x_i x_j + sum_i h_i x_i - A)``, learnt from data.

    Parameters
    ----------
    structure : str or pairs of features
        Which features are joined: ``"complete"`` (all), ``"tree"`` (the best one, by Chow and Liu), or edges.
    method : str or settings
        As in `graphical.fit`: ``"pseudo_likelihood"``, ``"composite"``, ``"exact"`` (small width), ``"mcmc"``,
        ``"contrastive_divergence"`` or ``"persistent"``, or an object of settings such as ``graphical.MCMC(eps=0.5)``.
        A tree is always fitted exactly, in closed form.
    l2 : float
        The penalty ``l2/2 |theta|^2``; for a tree, the number of observations added as smoothing.
    mixing : FastMixing, optional
        The set to stay in, in which Gibbs sampling mixes fast. Needed by ``"mcmc"``.
    binarize : float, optional
        Features above it are +1 and others -1. Without it the data must be 0 and 1, or -1 and +1.
    random_state : int, Generator or None
        Only sampling methods draw, and `sample` where it is given no other.
    time_limit, checkpoint, callback
        As in `optim.run`.
    verbose : bool
        A progress bar on the terminal.

    Attributes
    ----------
    model_ : Ising
    edges_, couplings_, fields_ : arrays
    certificate_ : Certificate or None
        What is guaranteed, and about which objective; ``refusal_`` says why where there is none. ``verify(X)`` issues
        it again from the data.
    status_ : str
        How the run ended.
    n_features_in_ : int

    Examples
    --------
    >>> x = Ising([(0, 1), (1, 2)], [0.8, -0.5], np.zeros(3)).sample(1000, rng=0)
    >>> model = IsingEstimator(method="exact", l2=0.01).fit((x + 1) // 2)
    >>> bool(np.abs(model.couplings_ - [0.8, 0.0, -0.5]).max() < 0.15)
    True
    >>> bool(model.score((x + 1) // 2) > -3 * np.log(2))
    True
    """

    def __init__(
        self,
        structure: Any = "complete",
        *,
        method: Any = "pseudo_likelihood",
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        binarize: float | None = None,
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ):
        self.structure, self.method, self.l2, self.mixing, self.binarize = structure, method, l2, mixing, binarize
        self.random_state, self.time_limit, self.checkpoint = random_state, time_limit, checkpoint
        self.callback, self.verbose = callback, verbose

    @property
    def couplings_(self) -> np.ndarray:
        """Of the edges."""
        return self.model_.couplings

    @property
    def fields_(self) -> np.ndarray:
        """Of the features."""
        return self.model_.fields

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, coded as the data were."""
        return np.where(self._drawn(n_samples, random_state) > 0, self.values_[1], self.values_[0])

    def _learn_states(self, X: np.ndarray) -> np.ndarray:
        self.values_ = (-1.0, 1.0) if self.binarize is None and (X == -1).any() else (0.0, 1.0)
        return self._states(X)

    def _states(self, X: np.ndarray) -> np.ndarray:
        if self.binarize is not None:
            return np.where(self.binarize < X, 1, -1)
        if not np.isin(X, self.values_).all():
            bad = X[~np.isin(X, self.values_)][0]
            raise ValueError(f"X must hold 0 and 1, or -1 and +1 (or set binarize=); got {bad:g}")
        return np.where(X > 0, 1, -1)

    def _empty(self, edges: np.ndarray) -> Ising:
        return Ising(edges, 0.0, np.zeros(self.n_features_in_))

    def _coding(self) -> dict[str, np.ndarray]:
        return {"values": np.array(self.values_)}

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        low, high = arrays["values"].tolist()
        self.values_ = (low, high)

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, spins=True)


class MarkovNetworkEstimator(PairwiseDensity):
    """A table for each feature and each joined pair, ``p(x) = exp(sum_i t_i(x_i) + sum_ij t_ij(x_i, x_j) - A)``, learnt
    from categorical data.

    Parameters
    ----------
    structure, method, l2, mixing, random_state, time_limit, checkpoint, callback, verbose
        As those of `IsingEstimator`; the penalty is on all entries of tables.
    categories : "auto", list of arrays, or int
        The values that each feature can have; ``"auto"``: those in the data. A whole number: features are numbers, and
        are cut at their quantiles into that many states; `score_samples` is then about these, and `sample` gives the
        mean of the training data in each.

    Attributes
    ----------
    model_ : PairwiseMRF
    categories_ : list of arrays
        The value of each state of each feature.
    edges_, certificate_, refusal_, status_, n_features_in_
        As those of `IsingEstimator`.

    Examples
    --------
    >>> x = np.array([["red", "warm"], ["red", "warm"], ["blue", "cold"], ["green", "cold"], ["blue", "warm"]])
    >>> model = MarkovNetworkEstimator(method="exact", l2=0.1).fit(x)
    >>> [list(map(str, values)) for values in model.categories_]
    [['blue', 'green', 'red'], ['cold', 'warm']]
    >>> warm, cold = np.exp(model.score_samples([["red", "warm"], ["red", "cold"]]))
    >>> bool(warm > 2 * cold)
    True
    """

    def __init__(
        self,
        structure: Any = "complete",
        *,
        method: Any = "pseudo_likelihood",
        l2: float = 0.01,
        mixing: FastMixing | None = None,
        categories: Any = "auto",
        random_state: Any = None,
        time_limit: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: bool = False,
    ):
        self.structure, self.method, self.l2, self.mixing = structure, method, l2, mixing
        self.categories, self.random_state, self.time_limit = categories, random_state, time_limit
        self.checkpoint, self.callback, self.verbose = checkpoint, callback, verbose

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Exact draws, of the values that the data had."""
        x = self._drawn(n_samples, random_state)
        columns = [values[x[:, v]] for v, values in enumerate(self.categories_)]
        return np.stack(columns, axis=1)

    def __sklearn_tags__(self) -> Any:
        """Categories may be of any kind; bins are cut in numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = not self._binned
        return tags

    def _dtype(self) -> Any:
        return np.float64 if self._binned else None

    @property
    def _binned(self) -> bool:
        return isinstance(self.categories, int | np.integer)

    def _learn_states(self, X: Any) -> np.ndarray:
        if not self._binned:
            self._encoder = OrdinalEncoder(categories=self.categories).fit(X)
            self.categories_ = list(self._encoder.categories_)
            return self._states(X)
        if isinstance(self.categories, bool) or self.categories < 1:
            raise ValueError(f"categories must be 'auto', lists of values, or at least 1; got {self.categories!r}")
        # The same edge twice makes a state that no number falls into: one of them is enough.
        inner = np.linspace(0.0, 1.0, int(self.categories) + 1)[1:-1]
        self._bin_edges = [np.unique(np.quantile(column, inner)) for column in X.T]
        x = self._states(X)
        self.categories_ = []
        for v, edges in enumerate(self._bin_edges):
            inside = [X[x[:, v] == k, v] for k in range(len(edges) + 1)]
            near = np.concatenate([edges[:1], edges]) if len(edges) else np.zeros(1)
            self.categories_.append(np.array([a.mean() if a.size else b for a, b in zip(inside, near, strict=True)]))
        return x

    def _states(self, X: Any) -> np.ndarray:
        if not self._binned:
            return self._encoder.transform(X).astype(np.int64)
        columns = [np.searchsorted(edges, X[:, v], side="right") for v, edges in enumerate(self._bin_edges)]
        return np.stack(columns, axis=1).astype(np.int64)

    def _empty(self, edges: np.ndarray) -> PairwiseMRF:
        sizes = [len(values) for values in self.categories_]
        return PairwiseMRF([np.zeros(q) for q in sizes], edges, [np.zeros((sizes[i], sizes[j])) for i, j in edges])

    def _coding(self) -> dict[str, np.ndarray]:
        arrays = {}
        for v, values in enumerate(self.categories_):
            plain = np.array(values.tolist())
            if plain.dtype.kind not in "biufU" or plain.tolist() != values.tolist():
                raise TypeError(f"the categories of feature {v} must be all numbers or all text to be saved")
            arrays[f"{'objects' if values.dtype.hasobject else 'values'}/{v}"] = plain
        if self._binned:
            arrays |= {f"bins/{v}": edges for v, edges in enumerate(self._bin_edges)}
        return arrays

    def _set_coding(self, arrays: dict[str, np.ndarray]) -> None:
        self.categories_ = [
            arrays[f"values/{v}"] if f"values/{v}" in arrays else arrays[f"objects/{v}"].astype(object)
            for v in range(self.n_features_in_)
        ]
        if self._binned:
            self._bin_edges = [arrays[f"bins/{v}"] for v in range(self.n_features_in_)]
            return
        # The encoder compares values of the type it was fitted with: numbers with numbers.
        kinds = {"n" if values.dtype.kind in "biuf" else values.dtype.kind for values in self.categories_}
        one = np.array([[values[0] for values in self.categories_]], dtype=None if kinds in ({"n"}, {"U"}) else object)
        categories: Any = self.categories_
        self._encoder = OrdinalEncoder(categories=categories).fit(one)

    def _tree(self, x: np.ndarray) -> Any:
        return chow_liu(x, smoothing=self.l2, cardinalities=[len(values) for values in self.categories_])


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
