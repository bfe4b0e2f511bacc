"""What the on-line l1 learners share: settings, fits, streams, certificates, files."""

import os
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from cumulant import files, optim
from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, FileFormatError
from cumulant.glm.batch.inputs import weights_of
from cumulant.glm.batch.model_files import saved_parameters
from cumulant.glm.objective.design import design_of
from cumulant.glm.objective.losses import loss_of
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.online.one_vs_rest import OneVsRest, certify_rows, parts_of
from cumulant.glm.online.passes import OnlinePasses, rows_of_a_step
from cumulant.glm.online.pruning import PruningAndPaths
from cumulant.glm.online.state import CURVATURES, FORMULATIONS, OnlineSettings, OnlineState
from cumulant.randomness import generator

_POSITIVE = ("l1", "x0", "z0", "step", "centring")
_STREAMED = "no certificate: the rows of a stream are gone; certify(X, y) gives one on rows that are given"


@dataclass(eq=False, repr=False)
class OnlineL1(PruningAndPaths, BaseEstimator):
    """What both learners share, with the settings of `OnlineLasso`. The subclass defines the targets and the loss."""

    l1: float = 0.1
    formulation: str = "bound"
    curvature: str = "averaged"
    x0: float = 1.0
    z0: float = 1.0
    step: float = 1.0
    step_delay: float = 50.0
    step_power: float = 1.0
    centring: float = 1.0
    centring_power: float = 0.9
    separate_steps: bool = False
    implicit: bool = False
    deferral: float = 0.05
    fit_intercept: bool = True
    passes: int = 10
    shuffle: bool = True
    time_limit: float | None = None
    random_state: Any = None
    checkpoint: Any = None
    callback: Any = None
    verbose: bool = False

    _family: ClassVar[str]
    _code: ClassVar[int]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags

    # Settings ---------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        for name in (*_POSITIVE, "step_power"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf):
                raise ValueError(f"{name} must be a positive number; got {value!r}")
        for name in ("step_delay", "centring_power"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf):
                raise ValueError(f"{name} must be a number, at least 0; got {value!r}")
        if not (isinstance(self.deferral, Real) and 0 <= float(self.deferral) <= 0.5):
            raise ValueError(f"deferral must be between 0 (every feature at every row) and 0.5; got {self.deferral!r}")
        if self.formulation not in FORMULATIONS:
            raise ValueError(f"formulation must be one of {', '.join(FORMULATIONS)}; got {self.formulation!r}")
        if self.curvature not in CURVATURES:
            raise ValueError(f"curvature must be one of {', '.join(CURVATURES)}; got {self.curvature!r}")
        if isinstance(self.passes, bool) or not (isinstance(self.passes, int | np.integer) and self.passes >= 1):
            raise ValueError(f"passes must be a positive whole number; got {self.passes!r}")
        limit = self.time_limit
        if not (limit is None or (isinstance(limit, Real) and not isinstance(limit, bool) and float(limit) > 0)):
            raise ValueError(f"time_limit must be a positive number of seconds or None; got {limit!r}")

    def _settings(self, l1: float | None = None) -> OnlineSettings:
        return OnlineSettings(
            self._code, FORMULATIONS.index(self.formulation), CURVATURES.index(self.curvature),
            not self.separate_steps, bool(self.fit_intercept), bool(self.implicit),
            float(self.l1 if l1 is None else l1),
            float(self.step), float(self.step_delay), float(self.step_power),
            float(self.centring), float(self.centring_power), float(self.deferral),
        )  # fmt: skip

    # Learning ---------------------------------------------------------------------------------------------------------

    def _rows(self, X: Any, y: Any, reset: bool) -> tuple[Any, np.ndarray]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, reset=reset, y_numeric=self._family == "normal"
        )
        return _canonical(X), np.asarray(y)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _by_output(self, targets: np.ndarray) -> list[np.ndarray]:
        """The targets of each learner: one, unless there are several classes."""
        return [targets]

    @property
    def _state(self) -> OnlineState:
        """Of the learner, or of the first of several."""
        return self._states[0]

    def _begin(self, outputs: int) -> None:
        start = float(self.x0), float(self.z0)
        self._states = tuple(OnlineState.start(self.n_features_in_, *start) for _ in range(outputs))
        self._coef, self._pruned = None, False
        self._kind = self._settings()[1:3]

    def _passes(self, problem: Any, weights: np.ndarray, settings: OnlineSettings, rng: Any) -> optim.Result:
        """All passes, or as many rows as the time allows; `_states` are where they end."""
        a_pass = -(-problem.n_terms // rows_of_a_step(problem))
        watched = self.callback is not None or self.verbose
        return optim.run(
            OnlinePasses(settings, self._states, weights * (len(weights) / weights.sum()), bool(self.shuffle)),
            problem,
            np.zeros(problem.shape),
            max_steps=self.passes * a_pass,
            tol=None,
            every=a_pass if watched else self.passes * a_pass,
            callback=self.callback,
            time_limit=self.time_limit,
            checkpoint=self.checkpoint,
            rng=rng,
            progress=type(self).__name__ if self.verbose else False,
        )

    def _warn_if_stalled(self, before: int = 0) -> None:
        worst = max(self._states, key=lambda state: state.stalls)
        if worst.stalls > before:
            warnings.warn(
                f"steps have stalled: up to row {worst.rows} the boundary let through only "
                f"{worst.diagnostics()['share_of_allowed_steps']:.2g} of the steps allowed, and the weights "
                "hardly move; use separate_steps=True, or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _rng(self) -> np.random.Generator:
        if isinstance(self.random_state, np.random.RandomState):
            return generator(int(self.random_state.randint(2**31 - 1)))
        return generator(self.random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget earlier rows and learn from these `passes` times, in a random order unless ``shuffle=False``.

        `certificate_` bounds how far the objective on these rows is above its minimum, also where the clock or Ctrl-C
        ended the fit early. With `sample_weight` the mean loss is the weighted mean; a row of weight 0 is left out.
        """
        self._check()
        X, y = self._rows(X, y, reset=True)
        X, targets, weights = _kept(X, self._first_targets(y), sample_weight, self._code == 0)
        problem = self._problem(X, targets, weights, float(self.l1))
        self._begin(len(parts_of(problem)))
        result = self._passes(problem, weights, self._settings(), self._rng())
        self.status_ = str(result.status)
        self.n_iter_ = max(-(-self._state.rows // len(targets)), 1)
        self.certificate_, self.refusal_ = certify_rows(problem, self._parameters()), ""
        self._warn_if_stalled()
        return self

    def _absorb(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn from a batch; the score of each row before it was learned, a column for each class of several."""
        self._check()
        first = not hasattr(self, "_states")
        X, y = self._rows(X, y, reset=first)
        targets = self._by_output(self._first_targets(y, classes) if first else self._more_targets(y, classes))
        weights = weights_of(sample_weight, X)
        if first:
            self._begin(len(targets))
        settings = self._settings()
        if settings[1:3] != self._kind:
            raise ValueError("formulation and curvature cannot change while a stream is being learned: use fit")
        stalls, order = max(state.stalls for state in self._states), np.arange(len(y))
        scores = [
            state.learn(settings, X, own, weights, order) for state, own in zip(self._states, targets, strict=True)
        ]
        self._coef, self._pruned = None, False
        self.n_iter_, self.status_ = 1, "max_steps"
        self.certificate_, self.refusal_ = None, _STREAMED
        self._warn_if_stalled(stalls)
        return scores[0] if len(scores) == 1 else np.column_stack(scores)

    def _first_targets(self, y: np.ndarray, classes: Any = None) -> np.ndarray:
        return self._targets(y)

    def _more_targets(self, y: np.ndarray, classes: Any) -> np.ndarray:
        return self._targets(y)

    # Looking ----------------------------------------------------------------------------------------------------------

    def _weights(self) -> np.ndarray:
        """The weights, with a row for each class where there are several."""
        check_is_fitted(self, "_states")
        if self._coef is None:
            found = [state.weights(self._settings()) for state in self._states]
            self._coef = found[0] if len(found) == 1 else np.stack(found)
        return self._coef

    def _intercepts(self) -> Any:
        """The intercept, or one for each class."""
        found = [state.intercept for state in self._states]
        return found[0] if len(found) == 1 else np.array(found)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "_states")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if sp.issparse(X) and self._coef is None:
            rows, settings = _canonical(X), self._settings()
            scores = [state.scores(settings, rows) for state in self._states]
            return scores[0] if len(scores) == 1 else np.column_stack(scores)
        return np.asarray(X @ self._weights().T) + self._intercepts()

    def _predictions(self, scores: np.ndarray) -> np.ndarray:
        """What a score stands for: a mean."""
        raise NotImplementedError

    @property
    def n_rows_(self) -> int:
        """Rows learned so far."""
        return self._state.rows

    def diagnostics(self) -> dict[Any, Any]:
        """How the steps went; for several classes a dictionary of these for each class.

        `surrogate_gap` is the sum of slacks times multipliers, which is a duality gap only where the mean gradient
        vanishes, and never a certificate; `barrier` is it over the number of constraints. `sum_of_steps` must grow
        without bound for the convergence that Carbonetto (2009, section 2.3) conjectures: `cut_steps` and
        `share_of_allowed_steps` say how much of the schedule the fraction-to-the-boundary rule let through, and
        `stalled_doublings` in how many doublings of the rows it was less than a hundredth (each comes with a warning).
        `sweeps` and `clipped_deferrals` count, for deferred features, the blocks and the deferred steps that would
        have left the interior.
        """
        check_is_fitted(self, "_states")
        if len(self._states) == 1:
            return self._state.diagnostics()
        return {label: state.diagnostics() for label, state in zip(self.classes_.tolist(), self._states, strict=True)}

    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """How far the objective on these rows is above its minimum, at the weights as they are now.

        The objective is ``(1/n) sum_i loss_i + l1 |w|_1`` over the rows given: the dual point is the slopes of the
        losses at their scores, scaled until feasible. Nothing is claimed about rows that are not given.
        """
        check_is_fitted(self, "_states")
        return certify_rows(self._given(X, y, sample_weight), self._parameters())

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
        """Issue `certificate_` again from the data of the fit, also after `save` and `load`.

        Returns the fresh certificate. Raises `CertificateError` if there is none, or if it does not hold for these
        rows and the weights as they are.
        """
        check_is_fitted(self, "_states")
        if self.certificate_ is None:
            raise CertificateError(self.refusal_, assumption="a fit on rows that are at hand")
        return self.certificate_.verify(Subject(self._given(X, y, sample_weight), self._parameters()))

    def _given(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """The problem on given rows."""
        X, y = self._rows(X, y, reset=False)
        X, targets, weights = _kept(X, self._targets(y), sample_weight, False)
        return self._problem(X, targets, weights, float(self.l1))

    def _parameters(self) -> np.ndarray:
        weights = self._weights()
        if not self.fit_intercept:
            return weights
        return np.concatenate([weights, np.expand_dims(self._intercepts(), -1)], axis=-1)

    def _problem(self, X: Any, targets: np.ndarray, weights: np.ndarray, l1: float) -> Any:
        design, shares, zeros = (
            design_of(X, bool(self.fit_intercept), 1),
            weights / weights.sum(),
            np.zeros(len(targets)),
        )
        parts = tuple(
            GLMProblem(design, loss_of(self._family, own), shares, zeros, l1, 0.0) for own in self._by_output(targets)
        )
        return parts[0] if len(parts) == 1 else OneVsRest(parts)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the model to a file. What `load` reads continues to learn from the same state, bit for bit.

        The file grows with the features that have occurred, not with their number: weights that are zero because no row
        had the feature take no space.
        """
        check_is_fitted(self, "_states")
        fitted = {"status": self.status_, "refusal": self.refusal_, "n_iter": self.n_iter_}
        fitted["certificate"] = None if self.certificate_ is None else self.certificate_.to_json()
        header = {"parameters": saved_parameters(self), "fitted": fitted, "outputs": len(self._states)}
        arrays = {f"{k}.{name}": a for k, state in enumerate(self._states) for name, a in state.compact().items()}
        if self._pruned:
            arrays["kept"] = np.flatnonzero(self._weights())
        return files.save(path, type(self).__name__, arrays | self._labels(), header)

    def _labels(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read a model that `save` wrote."""
        saved = files.load(path, cls.__name__)
        arrays = dict(saved.arrays)
        try:
            model, fitted = cls(**saved.settings["parameters"]), saved.settings["fitted"]
            model._check()
            if "classes" in arrays:
                model.classes_ = arrays["classes"]
            states = range(int(saved.settings["outputs"]))
            names = {name.partition(".")[2] for name in arrays if name.startswith("0.")}
            model._states = tuple(OnlineState.expanded({name: arrays[f"{k}.{name}"] for name in names}) for k in states)
            certificate = fitted["certificate"]
            model.certificate_ = None if certificate is None else Certificate.from_json(certificate)
            model.status_, model.refusal_, model.n_iter_ = fitted["status"], fitted["refusal"], fitted["n_iter"]
            model._coef, model._pruned, model._kind = None, "kept" in arrays, model._settings()[1:3]
            model.n_features_in_ = len(model._state.s0)
            if model._pruned:
                whole = model._weights()
                model._coef = np.zeros_like(whole)
                model._coef.flat[arrays["kept"]] = whole.flat[arrays["kept"]]
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise FileFormatError(f"{path} does not hold a {cls.__name__} of this version: {problem}") from problem
        return model


def _canonical(X: Any) -> Any:
    """As CSR without duplicates: the loops take every entry of a row to be another feature."""
    X = sp.csr_matrix(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _kept(X: Any, targets: np.ndarray, sample_weight: Any, every: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """The rows of positive weight; with `every`, they must have all the classes of `targets`."""
    weights = weights_of(sample_weight, X)
    kept = weights > 0
    if not kept.any():
        raise ValueError("sample_weight must have a positive sum; all weights are zero")
    if not kept.all():
        left = len(np.unique(targets[kept]))
        if every and left < 2:
            raise ValueError("y has one class only among the rows of positive weight: two are needed")
        if every and left < len(np.unique(targets)):
            raise ValueError("sample_weight must be positive for at least one row of each class of y")
        X, targets, weights = X[kept], targets[kept], weights[kept]
    return X, targets, weights
