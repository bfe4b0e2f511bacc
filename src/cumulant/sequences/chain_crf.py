"""The linear-chain conditional random field as a scikit-learn estimator."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cumulant import checks
from cumulant.sequences.chain import labelling_kernels as kernels
from cumulant.sequences.chain.chain_kernels import chain_scores
from cumulant.sequences.chain.model import ChainModel
from cumulant.sequences.chain.problem import ChainProblem, expectations_of, token_arrays
from cumulant.sequences.data.sequence_data import SequenceData, numbered
from cumulant.sequences.data.vocabulary import Vocabulary, sequence_lengths
from cumulant.sequences.estimator import CRF
from cumulant.sequences.solvers.dual_ascent import named
from cumulant.sequences.solvers.exponentiated_gradient import SequenceExponentiatedGradient
from cumulant.sequences.solvers.gradient_descent import SequenceGradientDescent
from cumulant.sequences.solvers.lbfgs import SequenceLBFGS
from cumulant.sequences.solvers.sag import SequenceSAG
from cumulant.sequences.solvers.sgd import SequenceSGD
from cumulant.sequences.solvers.variance_reduced import SequenceSAGA, SequenceSVRG
from cumulant.threads import in_parts


@dataclass(eq=False, repr=False)
class ChainCRF(CRF):
    """Linear-chain conditional random field: ``p(y | x) ~ exp(<w, F(x, y)>)``, fitted with a certified duality gap.

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
    line_search, first_step, subprecision, refresh
        How far dual ascent goes at an update, and when it computes all gaps anew: see `SequenceDualAscent`. With
        ``first_step="half"`` it is the published line search.
    start : tuple, marginals or fitted estimator
        Where dual ascent starts: ``("mixture", 1e-3)``, ``("potential", 10.0)``, marginals such as `dual_`, or a fitted
        `ChainCRF` with the same attributes and labels, whose weights are continued. See `SequenceDualAscent`. A clone
        of scikit-learn's has an estimator that is not fitted: give its `weights_` for cross-validation.
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
        primal, dual, gap; updates (of one sequence each) where the solver makes such; estimate, the mean of the gaps
        that sequences had when they were last visited, of dual ascent; test_error and test_sequence_error, the shares
        of wrong tokens and of sequences with one, with a test set; on a cluster also lost_shards, so far.
    status_ : str
        As in `optim.Result`: ``"converged"`` (the certified relative gap is at most `tol`), ``"max_steps"`` (after
        `max_epochs`), ``"time_limit"``, ``"interrupted"``, ``"stopped"`` (by the development set or the callback), or
        ``"rounding"`` (rounding keeps the gap above `tol`). ``"interrupted"`` too where a cluster lost all its workers.
    template : str or None
        A note that files keep: the text of the template that made the attributes. Nothing here reads it.

    Examples
    --------
    >>> X = [[{"word": "The", "capital": True}, {"word": "dog"}, {"word": "runs"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF(tol=1e-6).fit(X, y)
    >>> crf.predict([[{"word": "The", "capital": True}, {"word": "dog"}]])
    [['D', 'N']]
    >>> print(crf.certificate_.quantity)
    P(w) - P*
    """

    min_count: int = 0
    engine: str | None = None

    _kind = "chain CRF"
    _others: ClassVar[dict[str, Callable[[], Any]]] = {
        "lbfgs": SequenceLBFGS,
        "oeg": SequenceExponentiatedGradient,
        "sag": lambda: SequenceSAG(sampling="uniform", line_search=False),
        "sag-nus": SequenceSAG,
        "saga": SequenceSAGA,
        "svrg": SequenceSVRG,
        "sgd": SequenceSGD,
        "gd": SequenceGradientDescent,
    }

    # Fitting ----------------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, X_dev: Any = None, y_dev: Any = None, X_test: Any = None, y_test: Any = None
    ) -> "ChainCRF":
        """Fit to sequences `X` with labels `y`.

        `X` is a list of sequences, each a list of tokens ``{name: value}`` or ``[name, ...]``, a list of arrays
        ``(length, attributes)``, or `SequenceData` (whose own labels are used without `y`). A value is a weight; a
        string or a list of them, for attributes ``name=string``; or True or False, for the name alone or nothing.
        Sequences without tokens are left out. With a development set, training stops when its token accuracy has not
        risen for three records, and the best weights are kept. Errors on a test set are written into `history_`
        and change nothing.
        """
        return self._fit(X, y, X_dev, y_dev, X_test, y_test)

    def _train(self, problem, start, *watched) -> None:
        if self.engine != "dask":
            super()._train(problem, start, *watched)
            return
        from cumulant.sequences.cluster.ascent import fit

        fit(self, problem, self._ascent(), start, *watched)

    def _check_settings(self) -> None:
        super()._check_settings()
        checks.whole("min_count", self.min_count, least=0)
        checks.choice("engine", self.engine, (None, "dask"))
        if self.engine == "dask" and self.checkpoint is not None:
            raise ValueError("engine='dask' keeps the dual variables on the workers: it takes no checkpoint")
        if self.engine == "dask" and (self.refresh is not None or not named(self.start)):
            raise ValueError("engine='dask' takes no refresh, and starts at ('mixture', ...) or ('potential', ...)")
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
        self.classes_, labels = numbered(data.labels)
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

    # Using ------------------------------------------------------------------------------------------------------------

    def _listed(self, X: Any) -> tuple[Any, np.ndarray]:
        return X, sequence_lengths(X)

    def _encode(self, X: Any, y: Any = None) -> SequenceData:
        if isinstance(X, SequenceData) or self.vocabulary_.names is None:
            full = Vocabulary(None, self.n_features_in_)
            return self._columns_of(full.encode(X, y))
        return self.vocabulary_.encode(X, y)

    def _decode(self, data: SequenceData) -> np.ndarray:
        arrays, k, longest = token_arrays(data), len(self.classes_), int(data.lengths.max())
        out = np.empty(data.features.shape[0], dtype=np.int64)

        def part(first, last):
            work = np.empty((longest, k)), np.empty((2, k)), np.zeros((longest, k), dtype=np.int32)
            kernels.decode(
                self.weights_, data.features.shape[1], self.bias, *arrays, data.offsets, first, last, out, *work
            )

        in_parts(part, len(data), self.n_jobs)
        return out

    def _model(self, data: SequenceData) -> ChainModel:
        w, k = self.weights_, len(self.classes_)
        unary = np.empty((data.features.shape[0], k))
        chain_scores(w, data.features.shape[1], self.bias, *token_arrays(data), 0, len(unary), unary)
        return ChainModel(unary, w[-k:], self.classes_)

    def _expectations(self, data: SequenceData):
        return expectations_of(self.weights_, token_arrays(data), data.offsets, self.bias, self.n_jobs)

    def _node_marginals(self, data: SequenceData) -> np.ndarray:
        return self._expectations(data)[1]

    def _log_likelihoods(self, data: SequenceData, labels: np.ndarray) -> np.ndarray:
        scores, attributes = np.empty(len(data)), data.features.shape[1]
        kernels.label_scores(self.weights_, attributes, self.bias, *token_arrays(data), data.offsets, labels, scores)
        return scores - self._expectations(data)[0]

    # Looking ----------------------------------------------------------------------------------------------------------

    def state_features(self) -> list[tuple[Any, Any, float]]:
        """``(attribute, label, weight)``, the largest weights first; attributes by name, or by column of the input."""
        self._check_fitted()
        weights, labels = self.weights_[: -len(self.classes_)], self.classes_.tolist()
        attributes = len(weights) - 3 * self.bias
        columns = np.arange(attributes) if self.columns_ is None else self.columns_
        names = list(self.vocabulary_.names) if self.vocabulary_.names is not None else columns.tolist()
        names += ["(bias)", "(first)", "(last)"] if self.bias else []
        return [(names[r], labels[k], weight) for r, k, weight in _ranked(weights) if weight != 0]

    def transitions(self) -> list[tuple[Any, Any, float]]:
        """``(label, next label, weight)``, the largest weights first."""
        self._check_fitted()
        labels = self.classes_.tolist()
        return [(labels[j], labels[k], weight) for j, k, weight in _ranked(self.weights_[-len(labels) :])]

    # Files ------------------------------------------------------------------------------------------------------------

    def _own(self) -> tuple[dict[str, Any], dict[str, Any]]:
        settings = {
            "names": self.vocabulary_.names,
            "n_features_in": int(self.n_features_in_),
            "template": self.template,
        }
        return settings, {} if self.columns_ is None else {"columns": self.columns_}

    def _restore(self, saved: Any) -> None:
        self.columns_ = saved.arrays.get("columns")
        self.n_features_in_ = saved.settings["n_features_in"]
        size = len(self.weights_) - len(self.classes_) - 3 * self.bias
        self.vocabulary_ = Vocabulary(saved.settings["names"], size)
        self.template = saved.settings.get("template")


def _ranked(weights: np.ndarray) -> Iterator[tuple[int, int, float]]:
    """Rows, columns and entries of a matrix, the largest first."""
    rows, columns = np.unravel_index(np.argsort(-np.abs(weights), axis=None, kind="stable"), weights.shape)
    return zip(rows.tolist(), columns.tolist(), weights[rows, columns].tolist(), strict=True)
