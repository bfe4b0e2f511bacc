"""The linear-chain conditional random field as a scikit-learn estimator."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cumulant import files, optim
from cumulant.certificates import Certificate
from cumulant.sequences import chain_kernels as kernels
from cumulant.sequences.batch import LBFGS
from cumulant.sequences.data import SequenceData, Vocabulary
from cumulant.sequences.exponentiated_gradient import OEG
from cumulant.sequences.problem import ChainProblem, in_parts
from cumulant.sequences.sdca import DualAscent, certify_gradient
from cumulant.sequences.stochastic import SAG, SAGA, SGD, SVRG, GradientDescent

__all__ = ["ChainCRF"]

# Besides dual ascent: its rivals, for the primal objective (and OEG for the dual), none of which takes an l1 penalty.
_RIVALS: dict[str, Callable[[], Any]] = {
    "lbfgs": LBFGS,
    "oeg": OEG,
    "sag": lambda: SAG(sampling="uniform", line_search=False),
    "sag-nus": SAG,
    "saga": SAGA,
    "svrg": SVRG,
    "sgd": SGD,
    "gd": GradientDescent,
}
_SOLVERS = ("auto", "sdca", *_RIVALS)
_PATIENCE = 3  # records without a better score on the development set


class ChainCRF(BaseEstimator):
    """Linear-chain conditional random field: ``p(y | x) ~ exp(w . F(x, y))``, fitted with a certified duality gap.

    ``F`` counts the attributes of each token with its label, the label of each token, of the first and of the last one
    (`bias`), and pairs of neighbouring labels. The weights minimise
    ``l2/2 |w|^2 + l1 |w|_1 + (1/n) sum_i -log p(y_i | x_i)``, a convex function. What is returned is at most
    `certificate_` above its minimum.

    Parameters
    ----------
    l2 : float, optional
        ``1/n`` by default. CRFsuite's ``c2`` is ``l2 * n / 2``.
    l1 : float
        Makes weights exactly zero. Only the dual solver handles it.
    solver : str
        ``"sdca"`` dual coordinate ascent; ``"lbfgs"``; ``"auto"``: dual ascent where its marginals fit into memory,
        which is the faster road to any tolerance on the data we have seen, else L-BFGS. For comparison ``"oeg"``,
        ``"sag"``, ``"sag-nus"``, ``"saga"``, ``"svrg"``, ``"sgd"`` and ``"gd"``.
    sampling, nonuniformity
        How dual ascent draws sequences: see `DualAscent`.
    tol : float
        Stop when the duality gap is at most this share of the objective.
    max_epochs : int
        Passes over the data at most.
    bias : bool
        Three biases per label: every token, the first, the last.
    min_count : int
        Attributes that occur less often than this are dropped.
    n_blocks : int, optional
        Blocks of sequences that ascend side by side; chosen from the data by default. It is part of the algorithm.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    marginals : str
        ``"float64"``, or ``"float32"`` for half the memory.
    time_limit : float, optional
        Seconds. The best weights so far are kept, with their certificate.
    random_state : int, Generator or None
    verbose : bool
        A progress bar on the terminal.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    weights_ : array (attributes + biases + labels, labels)
    certificate_ : Certificate
        Of ``P(w) - P*``; its details bound ``|w - w*|``.
    objective_ : float
    history_ : list of dict
        epoch (oracle calls over sequences), oracle_calls, line_search_evaluations, seconds (evaluation included),
        primal, dual, gap.
    status_ : str
        ``"converged"``, ``"max_epochs"``, ``"time_limit"``, ``"interrupted"``, ``"stopped"`` by the development set, or
        ``"rounding"``: the gap looked small enough, but float32 marginals cannot certify it.
    template : str or None
        A note that files keep: the text of the template that made the attributes. Nothing here reads it.

    Examples
    --------
    >>> X = [[["the"], ["dog"], ["runs"]], [["a"], ["dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF(tol=1e-6).fit(X, y)
    >>> crf.predict([[["the"], ["dog"]]])
    [['D', 'N']]
    >>> print(crf.certificate_.quantity)
    P(w) - P*
    """

    classes_: np.ndarray
    weights_: np.ndarray
    certificate_: Certificate | None
    objective_: float
    history_: list[dict[str, float]]
    status_: str
    memory_: int
    template: str | None = None

    def __init__(
        self,
        l2=None,
        l1=0.0,
        solver="auto",
        sampling="gap",
        nonuniformity=0.8,
        tol=1e-3,
        max_epochs=100,
        bias=True,
        min_count=0,
        n_blocks=None,
        n_jobs=None,
        marginals="float64",
        time_limit=None,
        random_state=0,
        verbose=False,
    ):
        self.l2 = l2
        self.l1 = l1
        self.solver = solver
        self.sampling = sampling
        self.nonuniformity = nonuniformity
        self.tol = tol
        self.max_epochs = max_epochs
        self.bias = bias
        self.min_count = min_count
        self.n_blocks = n_blocks
        self.n_jobs = n_jobs
        self.marginals = marginals
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, X_dev: Any = None, y_dev: Any = None) -> "ChainCRF":
        """Fit to sequences `X` with labels `y`.

        `X` is a list of sequences, each a list of tokens ``{name: value}`` or ``[name, ...]``, a list of arrays
        ``(length, attributes)``, or `SequenceData` (whose own labels are used without `y`). With a development set,
        training stops when its token accuracy has not risen for three records, and the best weights are kept.
        """
        self._check_settings()
        start = time.perf_counter()
        problem = self._prepare(X, y)
        solver = self._choose(problem)
        if self.solver == "auto" and not self.l1 and not self._fits(problem, solver):
            solver = LBFGS()
        self._check_memory(problem, solver)
        watch = _Watch(self, problem, start, X_dev, y_dev)
        if isinstance(solver, DualAscent):
            self._ascend(problem, solver, watch)
        else:
            self._descend(problem, solver, watch)
        watch.finish(problem)
        return self

    def _check_settings(self) -> None:
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(_SOLVERS)}; got {self.solver!r}")
        if not (np.isfinite(self.tol) and self.tol > 0):
            raise ValueError(f"tol must be positive; got {self.tol}")
        if isinstance(self.max_epochs, bool) or not self.max_epochs >= 1:
            raise ValueError(f"max_epochs must be at least 1; got {self.max_epochs}")
        if not self.min_count >= 0:
            raise ValueError(f"min_count must not be negative; got {self.min_count}")
        if self.solver in _RIVALS and self.l1:
            raise ValueError(f"solver={self.solver!r} does not take an l1 penalty: use solver='sdca' with l1 > 0")

    def _prepare(self, X, y) -> ChainProblem:
        vocabulary = Vocabulary.learn(X)
        data = vocabulary.encode(X, y)
        if data.labels is None:
            raise ValueError("y must be given: a label for each token")
        self.classes_, labels = np.unique(data.labels, return_inverse=True)
        occurrences = np.bincount(data.features.indices[data.features.data != 0], minlength=vocabulary.size)
        kept = np.flatnonzero(occurrences >= max(self.min_count, 1))
        self.n_features_in_ = vocabulary.size
        self.columns_ = None if len(kept) == vocabulary.size else kept
        self.vocabulary_ = vocabulary if self.columns_ is None else vocabulary.restrict(kept)
        data = self._columns_of(data)
        data = SequenceData(data.features, data.offsets, labels)
        return ChainProblem(data, len(self.classes_), self.l2, self.l1, self.bias, self.n_jobs)

    def _columns_of(self, data: SequenceData) -> SequenceData:
        """The attributes that training kept, of data with all of them."""
        if self.columns_ is None or data.features.shape[1] == len(self.columns_):
            return data
        return SequenceData(data.features[:, self.columns_], data.offsets, data.labels)

    def _choose(self, problem) -> Any:
        if self.solver in _RIVALS:
            return _RIVALS[self.solver]()
        blocks = self.n_blocks if self.n_blocks is not None else _blocks_for(problem)
        return DualAscent(
            sampling=self.sampling,
            nonuniformity=self.nonuniformity,
            n_blocks=blocks,
            dtype=self.marginals,
            aim=0.8 * self.tol,
        )

    def _fits(self, problem, solver) -> bool:
        """Whether the arrays of training fit into the memory that is free; sets `memory_`, their size in bytes."""
        tokens, k = len(problem.labels), problem.n_labels
        size = 8 if self.marginals == "float64" else 4
        pairs = (tokens - problem.n_terms) * k * k * size if isinstance(solver, DualAscent) else 0
        copies = 4 + (solver.n_blocks if isinstance(solver, DualAscent) else 2 * getattr(solver, "history", 2))
        self.memory_ = int(pairs + tokens * k * 24 + 8 * problem.shape[0] * k * copies)
        free = _free_memory()
        return free is None or self.memory_ <= 0.95 * free

    def _check_memory(self, problem, solver) -> None:
        """Refuse what will not fit before anything is computed."""
        if self._fits(problem, solver):
            return
        ways = ["more memory"]
        if isinstance(solver, DualAscent):
            ways = ["solver='lbfgs', which keeps no marginals of pairs"] if not self.l1 else ways
            ways += ["marginals='float32'"] if self.marginals == "float64" else []
        raise MemoryError(
            f"training needs about {self.memory_ / 2**30:.2g} GiB ({len(problem.labels)} tokens, {problem.n_labels} "
            f"labels), and {(_free_memory() or 0) / 2**30:.2g} GiB are free: use {' or '.join(ways)}"
        )

    def _ascend(self, problem, solver, watch) -> None:
        result = optim.run(
            solver,
            problem,
            np.zeros(problem.shape),
            max_steps=int(self.max_epochs),
            tol=None,
            callback=watch.after_ascent,
            time_limit=self.time_limit,
            rng=self.random_state,
            progress=bool(self.verbose),
        )
        watch.end(result.status, result.x, result.certificate)

    def _descend(self, problem, solver, watch) -> None:
        result = optim.run(
            solver,
            problem,
            np.zeros(problem.shape),
            max_steps=int(self.max_epochs),
            tol=None,
            callback=watch.after_descent,
            time_limit=self.time_limit,
            rng=self.random_state,
            progress=bool(self.verbose),
        )
        watch.end(result.status, result.x, result.certificate)

    # Using ------------------------------------------------------------------------------------------------------------

    def _encode(self, X: Any, y: Any = None) -> SequenceData:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        if isinstance(X, SequenceData) or self.vocabulary_.names is None:
            full = Vocabulary(None, self.n_features_in_)
            return self._columns_of(full.encode(X, y))
        return self.vocabulary_.encode(X, y)

    def _arrays(self, data: SequenceData):
        matrix = data.features
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, data.offsets

    def _numbers(self, labels: np.ndarray) -> np.ndarray:
        numbers = np.searchsorted(self.classes_, labels)
        known = numbers < len(self.classes_)
        known &= self.classes_[np.minimum(numbers, len(self.classes_) - 1)] == labels
        if not np.all(known):
            raise ValueError(f"label {labels[np.argmin(known)].item()!r} did not occur in training")
        return numbers.astype(np.int64)

    def predict(self, X: Any) -> list:
        """The most probable labelling of each sequence (Viterbi): a list of lists of labels."""
        data = self._encode(X)
        return [labels.tolist() for labels in data.split(self.classes_[self._decode(data)])]

    def _decode(self, data: SequenceData) -> np.ndarray:
        arrays, k, longest = self._arrays(data), len(self.classes_), int(data.lengths.max())
        out = np.empty(data.features.shape[0], dtype=np.int64)

        def part(first, last):
            work, origin = np.empty((longest + 2, k)), np.zeros((longest, k), dtype=np.int32)
            kernels.decode(self.weights_, data.features.shape[1], self.bias, *arrays, first, last, out, work, origin)

        in_parts(part, len(data), self.n_jobs)
        return out

    def predict_marginals(self, X: Any) -> list:
        """``p(y_t = label | x)`` of every token: a list of arrays ``(length, labels)``, in the order of `classes_`."""
        data = self._encode(X)
        return data.split(self._forward_backward(data)[1])

    def _forward_backward(self, data: SequenceData) -> tuple[np.ndarray, np.ndarray]:
        arrays, k, longest = self._arrays(data), len(self.classes_), int(data.lengths.max())
        nodes, log_z = np.empty((data.features.shape[0], k)), np.empty(len(data))

        def part(first, last):
            work = np.empty((3 * longest + 2 * k, k))
            kernels.expectations(
                self.weights_, data.features.shape[1], self.bias, *arrays, first, last, nodes, np.zeros((k, k)), log_z,
                work,
            )  # fmt: skip

        in_parts(part, len(data), self.n_jobs)
        return log_z, nodes

    def log_likelihood(self, X: Any, y: Any = None) -> np.ndarray:
        """``log p(y_i | x_i)`` of every sequence."""
        data = self._encode(X, y)
        if data.labels is None:
            raise ValueError("y must be given: a label for each token")
        scores = np.empty(len(data))
        kernels.label_scores(
            self.weights_, data.features.shape[1], self.bias, *self._arrays(data), self._numbers(data.labels), scores
        )
        return scores - self._forward_backward(data)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens whose label is predicted. Labels that did not occur in training are an error."""
        data = self._encode(X, y)
        if data.labels is None:
            raise ValueError("y must be given: a label for each token")
        return float(np.mean(self._decode(data) == self._numbers(data.labels)))

    # Looking ----------------------------------------------------------------------------------------------------------

    def state_features(self) -> list[tuple[Any, Any, float]]:
        """``(attribute, label, weight)``, the largest weights first; attributes by name, or by column of the input."""
        self._encode_check()
        weights = self.weights_[: -len(self.classes_)]
        attributes = len(weights) - 3 * self.bias
        columns = np.arange(attributes) if self.columns_ is None else self.columns_
        names = list(self.vocabulary_.names) if self.vocabulary_.names is not None else columns.tolist()
        names += ["(bias)", "(first)", "(last)"] if self.bias else []
        order = np.argsort(-np.abs(weights), axis=None, kind="stable")
        rows, labels = np.unravel_index(order, weights.shape)
        return [
            (names[r], self.classes_[k], float(weights[r, k])) for r, k in zip(rows, labels, strict=True)
            if weights[r, k] != 0
        ]  # fmt: skip

    def transitions(self) -> list[tuple[Any, Any, float]]:
        """``(label, next label, weight)``, the largest weights first."""
        self._encode_check()
        weights = self.weights_[-len(self.classes_) :]
        order = np.argsort(-np.abs(weights), axis=None, kind="stable")
        rows, labels = np.unravel_index(order, weights.shape)
        return [(self.classes_[j], self.classes_[k], float(weights[j, k])) for j, k in zip(rows, labels, strict=True)]

    def _encode_check(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the fitted model to a file, which `load` reads."""
        self._encode_check()
        if self.classes_.dtype == object:
            raise TypeError("labels must be numbers or strings to be saved; these are Python objects")
        arrays: dict[str, Any] = {"weights": self.weights_, "classes": self.classes_}
        if self.columns_ is not None:
            arrays["columns"] = self.columns_
        settings = {
            "parameters": {k: v for k, v in self.get_params().items() if k != "random_state"},
            "random_state": self.random_state if isinstance(self.random_state, int) else None,
            "names": self.vocabulary_.names,
            "n_features_in": int(self.n_features_in_),
            "certificate": None if self.certificate_ is None else self.certificate_.to_json(),
            "objective": self.objective_,
            "status": self.status_,
            "history": self.history_,
            "template": self.template,
        }
        return files.save(path, "chain CRF", arrays, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "ChainCRF":
        """Read a model that `save` wrote."""
        saved = files.load(path, "chain CRF")
        settings = saved.settings
        crf = cls(**settings["parameters"], random_state=settings["random_state"])
        crf.weights_, crf.classes_ = saved.arrays["weights"], saved.arrays["classes"]
        crf.columns_ = saved.arrays.get("columns")
        crf.n_features_in_ = settings["n_features_in"]
        size = len(crf.weights_) - len(crf.classes_) - 3 * crf.bias
        crf.vocabulary_ = Vocabulary(settings["names"], size)
        text = settings["certificate"]
        crf.certificate_ = None if text is None else Certificate.from_json(text)
        crf.objective_, crf.status_, crf.history_ = settings["objective"], settings["status"], settings["history"]
        crf.template = settings.get("template")
        return crf


class _Watch:
    """Sees each record of a run: keeps the history, decides when to stop, remembers the best weights."""

    def __init__(self, crf, problem, start, X_dev, y_dev):
        self.crf, self.problem, self.start = crf, problem, start
        self.dev = None if X_dev is None else crf._columns_of(_encode_like(crf, X_dev, y_dev))
        if self.dev is not None and self.dev.labels is None:
            raise ValueError("y_dev must be given with X_dev")
        self.best, self.best_weights, self.since_best = -np.inf, None, 0
        self.why = ""
        crf.history_ = []

    def after_ascent(self, snapshot) -> bool:
        row, n = snapshot.measures, self.problem.n_terms
        self._remember(
            row["updates"] / n, row["oracle_calls"], row["line_search_evaluations"], row["value"], row["dual"]
        )
        return self._enough(snapshot.x, row["bound"], row["value"], row["updates"] / n)

    def after_descent(self, snapshot) -> bool:
        value, bound, n = snapshot.value, snapshot.bound, self.problem.n_terms
        calls = snapshot.measures.get("oracle_calls", n * snapshot.measures.get("evaluations", 0.0))
        evaluations = snapshot.measures.get("line_search_evaluations", 0.0)
        self._remember(calls / n, calls, evaluations, value, value - bound)
        return self._enough(snapshot.x, bound, value, calls / n)

    def _remember(self, epoch, calls, evaluations, primal, dual) -> None:
        self.crf.history_.append(
            {
                "epoch": float(epoch),
                "oracle_calls": int(calls),
                "line_search_evaluations": int(evaluations),
                "seconds": time.perf_counter() - self.start,
                "primal": float(primal),
                "dual": float(dual),
                "gap": float(primal - dual),
            }
        )

    def _enough(self, weights, gap, value, epochs) -> bool:
        if self.dev is not None:
            self.crf.weights_ = weights
            decoded = self.crf._decode(self.dev)
            score = float(np.mean(self.crf.classes_[decoded] == self.dev.labels))
            self.crf.history_[-1]["dev_accuracy"] = score
            if score > self.best:
                self.best, self.best_weights, self.since_best = score, weights.copy(), 0
            else:
                self.since_best += 1
                if self.since_best >= _PATIENCE:
                    self.why = "stopped"
                    return True
        if gap <= self.crf.tol * abs(value):
            self.why = "converged"
            return True
        if epochs >= self.crf.max_epochs:
            self.why = "max_epochs"
            return True
        return False

    def end(self, status, weights, certificate) -> None:
        self.crf.status_ = self.why or {"max_steps": "max_epochs"}.get(status, status)
        self.weights, self.crf.certificate_ = weights, certificate

    def finish(self, problem) -> None:
        """The fitted attributes, with a certificate of the weights that are kept."""
        crf = self.crf
        if self.best_weights is not None:
            self.weights, crf.certificate_ = self.best_weights, None
        crf.weights_ = np.ascontiguousarray(self.weights).reshape(problem.shape)
        crf.objective_ = problem.value(crf.weights_)
        enough = crf.tol * abs(crf.objective_)
        certificate = crf.certificate_
        if problem.l1 == 0 and (certificate is None or certificate.upper > enough):
            # The marginals are gone, since these are not the last weights, or too coarse (float32) to say enough.
            other = certify_gradient(problem, crf.weights_)
            crf.certificate_ = other if certificate is None or other.upper < certificate.upper else certificate
        certified = crf.certificate_ is None or crf.certificate_.upper <= 2 * enough
        if crf.marginals == "float32" and crf.status_ == "converged" and not certified:
            crf.status_ = "rounding"


def _encode_like(crf, X, y) -> SequenceData:
    if isinstance(X, SequenceData) or crf.vocabulary_.names is None:
        return Vocabulary(None, crf.n_features_in_).encode(X, y)
    return crf.vocabulary_.encode(X, y)


def _blocks_for(problem: ChainProblem) -> int:
    """Blocks worth their price: two where sequences share few attributes."""
    return 1


def _free_memory() -> int | None:
    """Bytes that can be used without swapping, where the system says."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None
