"""What `ChainCRF` and `TreeCRF` share: settings, the choice of a solver, the run, predictions, files."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cumulant import checks, files, optim
from cumulant.certificates import Certificate, Subject
from cumulant.graphical import DiscreteModel
from cumulant.sequences.certify import certify_weights
from cumulant.sequences.data.graph_data import GraphData
from cumulant.sequences.data.sequence_data import SequenceData
from cumulant.sequences.solvers.dual_ascent import SequenceDualAscent
from cumulant.sequences.solvers.lbfgs import SequenceLBFGS
from cumulant.sequences.solvers.switching import SequenceSwitching
from cumulant.sequences.training import FitMonitor, free_memory

__all__ = ["CRF"]

_NO_LABELS = "y must be given: a label for each token or node"
_NOT_SAVED = ("random_state", "checkpoint", "callback", "start")  # of the settings


class Fitted:
    """What fitting leaves."""

    classes_: np.ndarray
    weights_: np.ndarray
    certificate_: Certificate | None
    weights_certificate_: Certificate | None
    dual_: Any
    objective_: float
    history_: list[dict[str, float]]
    status_: str
    memory_: int
    template: str | None = None


@dataclass(eq=False, repr=False)
class CRF(Fitted, BaseEstimator):
    """A conditional random field fitted by `optim.run`. Subclasses read the data, pose the problem and decode."""

    l2: float | None = None
    l1: float = 0.0
    solver: str = "auto"
    sampling: str = "gap"
    nonuniformity: float = 0.8
    tol: float = 1e-3
    max_epochs: int = 100
    bias: bool = True
    n_blocks: int | None = None
    n_jobs: int | None = None
    marginals: str = "float64"
    time_limit: float | None = None
    checkpoint: Any = None
    callback: Any = None
    random_state: Any = 0
    verbose: bool = False
    line_search: str | float = "newton"
    first_step: str = "chord"
    subprecision: float = 1e-3
    refresh: int | None = None
    start: Any = ("mixture", 1e-3)

    _kind: ClassVar[str]  # of its files
    _others: ClassVar[dict[str, Callable[[], Any]]] = {"lbfgs": SequenceLBFGS}  # solvers beside dual ascent

    def _prepare(self, X: Any, y: Any) -> Any:
        """The objective of training data; sets `classes_` and what `_encode` needs."""
        raise NotImplementedError

    def _listed(self, X: Any) -> tuple[Any, np.ndarray]:
        """`X` as something that can be read twice, and the number of tokens or nodes of each sequence or graph."""
        raise NotImplementedError

    def _encode(self, X: Any, y: Any = None) -> Any:
        """Data as arrays, as training saw them; what has no tokens or nodes is left out."""
        raise NotImplementedError

    def _problem(self, data: Any, labels: np.ndarray) -> Any:
        """The objective of these data, with labels numbered."""
        raise NotImplementedError

    def _decode(self, data: Any) -> np.ndarray:
        """The number of the best label of every node."""
        raise NotImplementedError

    def _node_marginals(self, data: Any) -> np.ndarray:
        """The probability of each label at every node."""
        raise NotImplementedError

    def _log_likelihoods(self, data: Any, labels: np.ndarray) -> np.ndarray:
        """``log p(y_i | x_i)`` of labels by number."""
        raise NotImplementedError

    def _own(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What its files keep beside weights, labels and settings: settings and arrays."""
        raise NotImplementedError

    def _restore(self, saved: Any) -> None:
        """The attributes that `_own` kept."""
        raise NotImplementedError

    # Fitting ----------------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, *watched: Any) -> Self:
        """`watched` are the development set and the test set, each with its labels."""
        self._check_settings()
        start = time.perf_counter()
        self._train(self._prepare(X, y), start, *watched)
        return self

    def _train(self, problem: Any, start: float, *watched: Any) -> None:
        solver = self._choose(problem)
        self._run(solver, problem, FitMonitor(self, problem, start, *watched))

    def _check_settings(self) -> None:
        checks.choice("solver", self.solver, ("auto", "sdca", *self._others))
        checks.choice("marginals", self.marginals, ("float64", "float32"))
        checks.positive("tol", self.tol)
        checks.whole("max_epochs", self.max_epochs)
        if self.n_blocks is not None:
            checks.whole("n_blocks", self.n_blocks)
        for name in ("l1", "nonuniformity", "l2", "time_limit"):  # their ranges: by the problem, the solver and the run
            if (value := getattr(self, name)) is not None or name in ("l1", "nonuniformity"):
                checks.number(name, value)
        if not isinstance(self.bias, bool | np.bool_):
            raise TypeError(f"bias must be True or False; got {self.bias!r}")
        if self.solver in self._others and self.l1:
            raise ValueError(f"solver={self.solver!r} does not take an l1 penalty: use solver='sdca' with l1 > 0")
        checks.positive("subprecision", self.subprecision)
        self._ascent()  # refuses bad settings before the data are looked at

    def _ascent(self) -> SequenceDualAscent:
        return SequenceDualAscent(
            sampling=self.sampling,
            nonuniformity=self.nonuniformity,
            n_blocks=1 if self.n_blocks is None else self.n_blocks,
            dtype=self.marginals,
            max_epochs=int(self.max_epochs),
            line_search=self.line_search,
            first_step=self.first_step,
            subprecision=self.subprecision,
            refresh=self.refresh,
            start=self._start(),
        )

    def _start(self) -> Any:
        """What dual ascent starts from: the weights, where another estimator is given."""
        if not isinstance(self.start, CRF):
            return self.start
        if type(self.start) is not type(self):
            raise TypeError(f"start must be a fitted {type(self).__name__}; got a {type(self.start).__name__}")
        self.start._check_fitted()
        return self.start.weights_

    def _choose(self, problem: Any) -> Any:
        """The solver, if what it keeps fits into the memory that is free; sets `memory_`, its size in bytes."""
        ascent, free = self._ascent(), free_memory()
        if self.solver in self._others:
            wanted = [self._others[self.solver]()]
        else:
            wanted = [ascent] if self.l1 or self.solver == "sdca" else [ascent, SequenceLBFGS()]
        for solver in wanted:
            self.memory_ = _memory(problem, solver)
            if free is None or self.memory_ <= 0.95 * free:
                return SequenceSwitching(ascent, tol=self.tol) if solver is ascent and len(wanted) == 2 else solver
        ways = ["fewer or smaller data"]
        if wanted == [ascent]:
            ways += ["solver='lbfgs', which keeps no marginals of pairs or cliques"] if not self.l1 else []
            ways += ["marginals='float32'"] if self.marginals == "float64" else []
        raise MemoryError(
            f"training needs about {self.memory_ / 2**30:.2g} GiB ({len(problem.labels)} labels to learn from, of "
            f"{problem.n_labels} kinds), and {(free or 0) / 2**30:.2g} GiB are free: use {' or '.join(ways)}"
        )

    def _run(self, solver: Any, problem: Any, monitor: FitMonitor) -> None:
        result = optim.run(
            solver,
            problem,
            np.zeros(problem.shape),
            max_steps=int(self.max_epochs),
            tol=(self.tol, 2.0**-52),  # relative to the objective alone, unless that is zero within rounding: one label
            callback=monitor,
            time_limit=self.time_limit,
            checkpoint=self.checkpoint,
            rng=self.random_state,
            progress=type(self).__name__ if self.verbose else False,
        )
        monitor.finish(result)

    def _accuracy(self, weights: np.ndarray, data: Any) -> float:
        """The share of labels that these weights predict."""
        return 1.0 - self._errors(weights, data)[0]

    def _errors(self, weights: np.ndarray, data: Any) -> tuple[float, float]:
        """The share of labels that these weights get wrong, and of sequences or graphs with a wrong one."""
        self.weights_ = weights
        wrong = self.classes_[self._decode(data)] != data.labels
        return float(np.mean(wrong)), float(np.mean([part.any() for part in data.split(wrong)]))

    # Using ------------------------------------------------------------------------------------------------------------

    def _labelled(self, X: Any, y: Any) -> Any:
        data = self._encode(X, y)
        if data.labels is None:
            raise ValueError(_NO_LABELS)
        return data

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        numbers = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        known = self.classes_[numbers] == labels
        if not np.all(known):
            unknown = labels[np.argmin(known)].item()
            raise ValueError(f"y must hold labels that are known; label {unknown!r} did not occur in training")
        return numbers.astype(np.int64)

    def _each(self, answers: Callable[[Any], list], empty: Callable[[], Any], X: Any, y: Any = None) -> list:
        """The answer for each sequence or graph; `empty` makes that of one without tokens or nodes."""
        self._check_fitted()
        X, sizes = self._listed(X)
        found = iter(answers(self._encode(X, y)) if sizes.any() else ())
        return [next(found) if size else empty() for size in sizes.tolist()]

    def predict(self, X: Any) -> list:
        """The most probable labelling of each sequence or graph: a list of lists of labels, empty for an empty one."""

        def answers(data):
            return [labels.tolist() for labels in data.split(self.classes_[self._decode(data)])]

        return self._each(answers, list, X)

    def predict_single(self, x: Any) -> list:
        """The most probable labels of one sequence or graph, as one entry of what `predict` takes."""
        return self.predict(_one(x))[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The share of labels that are predicted. Labels that did not occur in training are an error."""
        self._check_fitted()
        data = self._labelled(X, y)
        return float(np.mean(self._decode(data) == self._numbers(data.labels)))

    def predict_marginals(self, X: Any, as_dicts: bool = False) -> list:
        """``p(label | x)`` of every token or node: a list of arrays ``(nodes, labels)``, in the order of `classes_`.

        With `as_dicts`, a list of ``{label: probability}`` in the place of each array.
        """
        found = self._each(
            lambda data: data.split(self._node_marginals(data)), lambda: np.zeros((0, len(self.classes_))), X
        )
        if not as_dicts:
            return found
        labels = self.classes_.tolist()
        return [[dict(zip(labels, row, strict=True)) for row in table.tolist()] for table in found]

    def predict_marginals_single(self, x: Any, as_dicts: bool = False) -> Any:
        """`predict_marginals` of one sequence or graph."""
        return self.predict_marginals(_one(x), as_dicts)[0]

    def log_likelihood(self, X: Any, y: Any = None) -> np.ndarray:
        """``log p(y_i | x_i)`` of every sequence or graph; 0 of an empty one."""

        def answers(data):
            if data.labels is None:
                raise ValueError(_NO_LABELS)
            return self._log_likelihoods(data, self._numbers(data.labels)).tolist()

        return np.array(self._each(answers, float, X, y))

    def model(self, x: Any) -> DiscreteModel:
        """The distribution ``p(y | x)`` of the labels of one sequence or graph: a model, as those of `graphical`.

        It answers `log_partition`, `mean`, `marginals`, `map`, `entropy`, `kl`, `log_prob`, `sample` and `given`, with
        labels by their names.
        """
        self._check_fitted()
        return self._model(self._encode(_one(x)))

    def _model(self, data: Any) -> DiscreteModel:
        raise NotImplementedError

    def verify(self, X: Any, y: Any = None) -> Certificate:
        """Issue the certificate of the weights again, in float64 from the training data; returns the fresh one.

        As long as the estimator has its dual variables (`dual_`) this is `certificate_`. After loading, unpickling, or
        training on a cluster it is `weights_certificate_`, the claim that needs nothing but the weights. Raises
        `CertificateError` where the claim does not hold on these data.
        """
        self._check_fitted()
        data = self._labelled(X, y)
        problem = self._problem(data, self._numbers(data.labels))
        if self.certificate_ is not None and self.dual_ is not None:
            return self.certificate_.verify(Subject(problem, (self.weights_, self.dual_)))
        if self.weights_certificate_ is None:
            return certify_weights(problem, self.weights_)  # says why there is none
        return self.weights_certificate_.verify(Subject(problem, self.weights_))

    def __getstate__(self):
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "dual_"}  # too large to travel

    def __setstate__(self, state):
        super().__setstate__(state)
        if hasattr(self, "weights_"):
            self.dual_ = None

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the fitted model to a file, which `load` reads."""
        self._check_fitted()
        if self.classes_.dtype == object:
            raise TypeError("labels must be numbers or strings to be saved; these are Python objects")
        settings, arrays = self._own()
        settings |= {
            "parameters": {k: v for k, v in self.get_params(deep=False).items() if k not in _NOT_SAVED},
            "random_state": self.random_state if isinstance(self.random_state, int) else None,
            "certificate": None if self.weights_certificate_ is None else self.weights_certificate_.to_json(),
            "objective": self.objective_,
            "status": self.status_,
            "history": self.history_,
        }
        return files.save(path, self._kind, {"weights": self.weights_, "classes": self.classes_} | arrays, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Read a model that `save` wrote."""
        saved = files.load(path, cls._kind)
        settings = saved.settings
        crf: Any = cls().set_params(**settings["parameters"], random_state=settings["random_state"])
        crf.weights_, crf.classes_ = saved.arrays["weights"], saved.arrays["classes"]
        text = settings["certificate"]
        crf.certificate_ = crf.weights_certificate_ = None if text is None else Certificate.from_json(text)
        crf.dual_ = None
        crf.objective_, crf.status_, crf.history_ = settings["objective"], settings["status"], settings["history"]
        crf._restore(saved)
        return crf


def _one(x: Any) -> Any:
    """A batch of one sequence or graph."""
    if not isinstance(x, SequenceData | GraphData):
        return [x]
    if len(x) != 1:
        raise ValueError(f"x must be one sequence or graph, as one entry of what predict takes; got {len(x)}")
    return x


def _memory(problem: Any, solver: Any) -> int:
    """Bytes: marginals, and arrays of the size of the weights."""
    dual = isinstance(solver, SequenceDualAscent)
    pairs = solver.history if isinstance(solver, SequenceLBFGS) else 2
    copies = 4 + (solver.n_blocks if dual else 2 * pairs)
    return int(problem.memory(solver.dtype if dual else None) + 8 * np.prod(problem.shape) * copies)
