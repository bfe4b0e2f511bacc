"""The linear-chain conditional random field as a scikit-learn estimator."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import files
from cumulant.sequences.chain import labelling_kernels as kernels
from cumulant.sequences.chain.chain_kernels import chain_scores
from cumulant.sequences.chain.model import ChainModel
from cumulant.sequences.chain.problem import ChainProblem, expectations_of, token_arrays
from cumulant.sequences.data.sequence_data import SequenceData, Vocabulary
from cumulant.sequences.estimator import CRF
from cumulant.sequences.solvers.dual_ascent import SequenceDualAscent
from cumulant.sequences.solvers.exponentiated_gradient import SequenceExponentiatedGradient
from cumulant.sequences.solvers.gradient_descent import SequenceGradientDescent
from cumulant.sequences.solvers.lbfgs import SequenceLBFGS
from cumulant.sequences.solvers.sag import SequenceSAG
from cumulant.sequences.solvers.saga import SequenceSAGA
from cumulant.sequences.solvers.sgd import SequenceSGD
from cumulant.sequences.solvers.svrg import SequenceSVRG
from cumulant.sequences.solvers.switching import SequenceSwitching
from cumulant.sequences.training import FitMonitor, free_memory
from cumulant.threads import in_parts

__all__ = ["ChainCRF"]

# Other solvers, for comparison: of the primal objective (and OEG of the dual). None takes an l1 penalty.
_OTHERS: dict[str, Callable[[], Any]] = {
    "lbfgs": SequenceLBFGS,
    "oeg": SequenceExponentiatedGradient,
    "sag": lambda: SequenceSAG(sampling="uniform", line_search=False),
    "sag-nus": SequenceSAG,
    "saga": SequenceSAGA,
    "svrg": SequenceSVRG,
    "sgd": SequenceSGD,
    "gd": SequenceGradientDescent,
}
_SOLVERS = ("auto", "sdca", *_OTHERS)


@dataclass(eq=False, repr=False)
class ChainCRF(CRF):
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
        ``"sdca"`` dual coordinate ascent; ``"lbfgs"``; ``"auto"``: dual ascent, continued by L-BFGS once that is
        predicted to be faster (`SequenceSwitching`), or L-BFGS from the start where the marginals of dual ascent do
        not fit into memory. For comparison ``"oeg"``, ``"sag"``, ``"sag-nus"``, ``"saga"``, ``"svrg"``, ``"sgd"`` and
        ``"gd"``.
    sampling, nonuniformity
        How dual ascent draws sequences: see `SequenceDualAscent`.
    tol : float
        Stop when the duality gap is at most this share of the objective.
    max_epochs : int
        Passes over the data at most.
    bias : bool
        Three biases per label: every token, the first, the last.
    min_count : int
        Attributes that occur less often than this are dropped.
    n_blocks : int, optional
        Blocks of sequences that ascend side by side; one by default, which converges fastest on the data we have seen.
        It is part of the algorithm.
    n_jobs : int, optional
        Threads; all cores by default. The answer does not depend on it.
    marginals : str
        ``"float64"``, or ``"float32"`` for half the memory.
    time_limit : float, optional
        Seconds. The weights so far are kept, with their certificate.
    checkpoint : path or optim.Checkpoint, optional
        Where training is saved as it goes, and resumed from if the file is there: see `optim.run`. Not on a cluster.
    callback : callable, optional
        Called with an `optim.Snapshot` at each record of the history. Returning True ends training.
    random_state : int, Generator or None
    verbose : bool
        A progress bar on the terminal.
    engine : str, optional
        This machine by default. ``"dask"``: dual ascent on sequences spread over the workers of the current
        `distributed.Client`, in `n_blocks` shards, by default one for each worker. See `ClusterAscent`.

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
        primal, dual, gap; on a cluster also lost_shards, so far.
    status_ : str
        As in `optim.Result`: ``"converged"`` (the certified relative gap is at most `tol`), ``"max_steps"`` (after
        `max_epochs`), ``"time_limit"``, ``"interrupted"``, ``"stopped"`` (by the development set or the callback), or
        ``"rounding"`` (rounding keeps the gap above `tol`). ``"interrupted"`` too where a cluster lost all its workers.
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

    min_count: int = 0
    engine: str | None = None

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
        solver = self._choose()
        if self.engine == "dask":
            from cumulant.sequences.cluster.ascent import fit

            fit(self, problem, solver, start, X_dev, y_dev)
            return self
        if self.solver == "auto" and not self.l1:
            solver = SequenceSwitching(solver, tol=self.tol) if self._fits(problem, solver) else SequenceLBFGS()
        self._check_memory(problem, getattr(solver, "ascent", solver))
        self._run(solver, problem, FitMonitor(self, problem, start, X_dev, y_dev))
        return self

    def _check_settings(self) -> None:
        self._check_solver(_SOLVERS)
        if not self.min_count >= 0:
            raise ValueError(f"min_count must not be negative; got {self.min_count}")
        if self.engine not in (None, "dask"):
            raise ValueError(f"engine must be None (this machine) or 'dask'; got {self.engine!r}")
        if self.engine == "dask" and self.checkpoint is not None:
            raise ValueError("engine='dask' keeps the dual variables on the workers: it takes no checkpoint")
        if self.engine == "dask" and self.solver not in ("auto", "sdca"):
            raise ValueError(f"engine='dask' trains by dual ascent: solver must be auto or sdca; got {self.solver!r}")
        if self.engine == "dask":
            from cumulant.sequences.cluster.workers import current_client

            current_client()  # refuses before the data are looked at

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
        return self._problem(self._columns_of(data), labels)

    def _problem(self, data: SequenceData, labels: np.ndarray) -> ChainProblem:
        data = SequenceData(data.features, data.offsets, labels)
        return ChainProblem(data, len(self.classes_), self.l2, self.l1, self.bias, self.n_jobs)

    def _columns_of(self, data: SequenceData) -> SequenceData:
        """The attributes that training kept, of data with all of them."""
        if self.columns_ is None or data.features.shape[1] == len(self.columns_):
            return data
        return SequenceData(data.features[:, self.columns_], data.offsets, data.labels)

    def _choose(self) -> Any:
        if self.solver in _OTHERS:
            return _OTHERS[self.solver]()
        return self._ascent()

    def _fits(self, problem, solver) -> bool:
        """Whether the arrays of training fit into the memory that is free; sets `memory_`, their size in bytes."""
        tokens, k = len(problem.labels), problem.n_labels
        size = 8 if self.marginals == "float64" else 4
        pairs = (tokens - problem.n_terms) * k * k * size if isinstance(solver, SequenceDualAscent) else 0
        copies = 4 + (solver.n_blocks if isinstance(solver, SequenceDualAscent) else 2 * getattr(solver, "history", 2))
        self.memory_ = int(pairs + tokens * k * 24 + 8 * problem.shape[0] * k * copies)
        free = free_memory()
        return free is None or self.memory_ <= 0.95 * free

    def _check_memory(self, problem, solver) -> None:
        """Refuse what will not fit before anything is computed."""
        if self._fits(problem, solver):
            return
        ways = ["more memory"]
        if isinstance(solver, SequenceDualAscent):
            ways = ["solver='lbfgs', which keeps no marginals of pairs"] if not self.l1 else ways
            ways += ["marginals='float32'"] if self.marginals == "float64" else []
        raise MemoryError(
            f"training needs about {self.memory_ / 2**30:.2g} GiB ({len(problem.labels)} tokens, {problem.n_labels} "
            f"labels), and {(free_memory() or 0) / 2**30:.2g} GiB are free: use {' or '.join(ways)}"
        )

    # Using ------------------------------------------------------------------------------------------------------------

    def _encode(self, X: Any, y: Any = None) -> SequenceData:
        if isinstance(X, SequenceData) or self.vocabulary_.names is None:
            full = Vocabulary(None, self.n_features_in_)
            return self._columns_of(full.encode(X, y))
        return self.vocabulary_.encode(X, y)

    def _decode(self, data: SequenceData) -> np.ndarray:
        arrays, k, longest = token_arrays(data), len(self.classes_), int(data.lengths.max())
        out = np.empty(data.features.shape[0], dtype=np.int64)

        def part(first, last):
            work, origin = np.empty((longest + 2, k)), np.zeros((longest, k), dtype=np.int32)
            kernels.decode(
                self.weights_, data.features.shape[1], self.bias, *arrays, data.offsets, first, last, out, work, origin
            )

        in_parts(part, len(data), self.n_jobs)
        return out

    def _model(self, data: SequenceData) -> ChainModel:
        w, k = self.weights_, len(self.classes_)
        unary = np.empty((data.features.shape[0], k))
        chain_scores(w, data.features.shape[1], self.bias, *token_arrays(data), 0, len(unary), unary)
        return ChainModel(unary, w[-k:], self.classes_)

    def predict_marginals(self, X: Any) -> list:
        """``p(y_t = label | x)`` of every token: a list of arrays ``(length, labels)``, in the order of `classes_`."""
        self._check_fitted()
        data = self._encode(X)
        return data.split(self._expectations(data)[1])

    def _expectations(self, data: SequenceData):
        return expectations_of(self.weights_, token_arrays(data), data.offsets, self.bias, self.n_jobs)

    def log_likelihood(self, X: Any, y: Any = None) -> np.ndarray:
        """``log p(y_i | x_i)`` of every sequence."""
        self._check_fitted()
        data = self._labelled(X, y)
        scores = np.empty(len(data))
        kernels.label_scores(
            self.weights_,
            data.features.shape[1],
            self.bias,
            *token_arrays(data),
            data.offsets,
            self._numbers(data.labels),
            scores,
        )
        return scores - self._expectations(data)[0]

    # Looking ----------------------------------------------------------------------------------------------------------

    def state_features(self) -> list[tuple[Any, Any, float]]:
        """``(attribute, label, weight)``, the largest weights first; attributes by name, or by column of the input."""
        self._check_fitted()
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
        self._check_fitted()
        weights = self.weights_[-len(self.classes_) :]
        order = np.argsort(-np.abs(weights), axis=None, kind="stable")
        rows, labels = np.unravel_index(order, weights.shape)
        return [(self.classes_[j], self.classes_[k], float(weights[j, k])) for j, k in zip(rows, labels, strict=True)]

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike):
        """Write the fitted model to a file, which `load` reads."""
        settings = self._settings() | {
            "names": self.vocabulary_.names,
            "n_features_in": int(self.n_features_in_),
            "template": self.template,
        }
        arrays: dict[str, Any] = {"weights": self.weights_, "classes": self.classes_}
        if self.columns_ is not None:
            arrays["columns"] = self.columns_
        return files.save(path, "chain CRF", arrays, settings)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "ChainCRF":
        """Read a model that `save` wrote."""
        saved = files.load(path, "chain CRF")
        crf = cls._restored(saved)
        crf.columns_ = saved.arrays.get("columns")
        crf.n_features_in_ = saved.settings["n_features_in"]
        size = len(crf.weights_) - len(crf.classes_) - 3 * crf.bias
        crf.vocabulary_ = Vocabulary(saved.settings["names"], size)
        crf.template = saved.settings.get("template")
        return crf
