"""Progressive evaluation: each row is predicted, then learned. A table of what was flagged, and a curve of mistakes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

_CHUNK = 1024  # texts that are hashed at once
FEATURES = 2**20


@dataclass(frozen=True)
class ContingencyTable:
    """How many rows of each class were kept and how many flagged; `negative` and `positive` name the classes.

    Parameters
    ----------
    kept, missed : int
        Rows not flagged: of the negative class (rightly) and of the positive one (false negatives).
    false_alarms, caught : int
        Rows flagged: of the negative class (false positives) and of the positive one (rightly).
    threshold : float
        A row was flagged when the probability of the positive class was at least this.
    mistakes : int
        Rows whose more probable class was wrong, whatever `threshold` is.
    curve : array (points, 2)
        Rows seen, and mistakes among them.

    Examples
    --------
    >>> print(ContingencyTable(39384, 2438, 15, 50352, negative="ham", positive="spam"))  # Carbonetto 2009, table 2.1
                             ham              spam
    kept          39384 (42.72%)     2438  (2.64%)
    flagged          15  (0.02%)    50352 (54.62%)
    92189 rows; flagged from probability 0.98; error 2.66%
    """

    kept: int = 0
    missed: int = 0
    false_alarms: int = 0
    caught: int = 0
    threshold: float = 0.98
    negative: str = "negative"
    positive: str = "positive"
    mistakes: int | None = None
    curve: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64), repr=False, compare=False)

    @property
    def total(self) -> int:
        """Rows."""
        return self.kept + self.missed + self.false_alarms + self.caught

    @property
    def error(self) -> float:
        """The share of rows on the wrong side of the threshold."""
        return (self.missed + self.false_alarms) / self.total if self.total else 0.0

    @property
    def accuracy(self) -> float:
        """The share of rows whose more probable class was right."""
        if self.mistakes is None:
            raise ValueError("this table does not know the mistakes at probability 1/2")
        return 1.0 - self.mistakes / self.total if self.total else 1.0

    def __add__(self, other: "ContingencyTable") -> "ContingencyTable":
        """Counts add up; the curve of the second follows on that of the first."""
        same = (self.threshold, self.negative, self.positive) == (other.threshold, other.negative, other.positive)
        if not same:
            raise ValueError("tables add up only with the same threshold and the same classes")
        mistakes = None if self.mistakes is None or other.mistakes is None else self.mistakes + other.mistakes
        shift = np.array([[self.total, self.mistakes or 0]])
        return replace(
            self,
            kept=self.kept + other.kept,
            missed=self.missed + other.missed,
            false_alarms=self.false_alarms + other.false_alarms,
            caught=self.caught + other.caught,
            mistakes=mistakes,
            curve=np.concatenate([self.curve, other.curve + shift]),
        )

    def __str__(self):
        def cell(count):
            return f"{count:8d} {f'({100 * count / max(self.total, 1):.2f}%)':>8s}"

        lines = [
            f"{'':11s}{self.negative:>17s} {self.positive:>17s}",
            f"{'kept':11s}{cell(self.kept)} {cell(self.missed)}",
            f"{'flagged':11s}{cell(self.false_alarms)} {cell(self.caught)}",
            f"{self.total} rows; flagged from probability {self.threshold:g}; error {100 * self.error:.2f}%",
        ]
        if self.mistakes is not None:
            lines[-1] += f"; {self.mistakes} mistakes at 1/2 ({100 * (1 - self.accuracy):.2f}%)"
        return "\n".join(lines)


def hashing(features: int = FEATURES) -> Any:
    """A scikit-learn `HashingVectorizer` for messages: word counts of unit Euclidean length, no vocabulary kept.

    Signs do not alternate: counts stay counts.

    Weinberger et al. (2009), without their signs.

    >>> hashing(16).transform(["buy now", "now now"]).shape
    (2, 16)
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(n_features=features, norm="l2", alternate_sign=False, dtype=np.float64)


def prequential(
    model: Any, stream: Any, threshold: float = 0.98, *, classes: Any = None, vectorizer: Any = None, points: int = 200
) -> ContingencyTable:
    """Predict each row, then learn it: what a filter would have done from its first day.

    Dawid (1984) for the word and the idea.

    Parameters
    ----------
    model : estimator
        With `progressive` (`OnlineL1Logistic`), or with `partial_fit` and `predict_proba`: any scikit-learn classifier
        that streams. It is changed.
    stream : (X, y), or an iterable of such batches
        `X` a matrix or a sequence of texts, which `vectorizer` turns into features; `hashing()` by default.
    threshold : float
        Flag a row when the probability of the second class is at least this.
    classes : sequence of two labels, optional
        By default those of `model`, or of `y` where the whole stream is one pair.
    points : int
        Of the curve of mistakes, for each batch of the stream at most.

    Examples
    --------
    >>> from cumulant.glm import OnlineL1Logistic
    >>> words = ["buy cheap pills", "lunch at noon", "cheap pills now", "see you at lunch"] * 10
    >>> table = prequential(OnlineL1Logistic(), (words, ["spam", "ham"] * 20), threshold=0.9)
    >>> table.total, table.false_alarms, table.mistakes < 5
    (40, 0, True)
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be strictly between 0 and 1; got {threshold}")
    if points < 1:
        raise ValueError(f"points must be at least 1; got {points}")
    whole = isinstance(stream, tuple) and len(stream) == 2
    if classes is None:
        classes = getattr(model, "classes_", None)
    if classes is None:
        if not whole:
            raise ValueError("classes must be given for a stream of batches: both labels that may come")
        classes = np.unique(np.asarray(stream[1]))
    classes = np.unique(np.asarray(classes))
    if len(classes) != 2:
        raise ValueError(f"classes must be two labels; got {classes.tolist()}")
    table = ContingencyTable(threshold=threshold, negative=str(classes[0]), positive=str(classes[1]), mistakes=0)
    batches: Iterable = [stream] if whole else stream
    for X, y in batches:
        y = np.asarray(y)
        if len(y) == 0:
            continue
        for features, labels in _matrices(X, y, vectorizer):
            probabilities = _progress(model, features, labels, classes)
            table = table + _counted(probabilities, labels == classes[1], table, points)
    return table


def _matrices(X: Any, y: np.ndarray, vectorizer: Any):
    """The batch as matrices: texts are hashed a thousand at a time."""
    if not (isinstance(X, list | tuple) and len(X) and isinstance(X[0], str | bytes)) and vectorizer is None:
        yield X, y
        return
    if len(X) != len(y):
        raise ValueError(f"there are {len(X)} texts and {len(y)} labels")
    vectorizer = hashing() if vectorizer is None else vectorizer
    for i in range(0, len(y), _CHUNK):
        yield vectorizer.transform(X[i : i + _CHUNK]), y[i : i + _CHUNK]


def _progress(model: Any, X: Any, y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The probability of the second class for each row, from just before it was learned."""
    if hasattr(model, "progressive"):
        return model.progressive(X, y, classes=classes)
    X = sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X)
    out = np.empty(len(y))
    for i in range(len(y)):
        row = X[i : i + 1]
        # Before its first row a model of another library knows nothing: both classes are as likely.
        out[i] = model.predict_proba(row)[0, 1] if hasattr(model, "classes_") else 0.5
        model.partial_fit(row, y[i : i + 1], classes=classes)
    return out


def _counted(probabilities: np.ndarray, positive: np.ndarray, like: ContingencyTable, points: int) -> ContingencyTable:
    flagged = probabilities >= like.threshold
    mistaken = np.cumsum((probabilities > 0.5) != positive)
    marks = np.unique(np.linspace(1, len(positive), min(points, len(positive))).astype(np.int64))
    return replace(
        like,
        kept=int(np.sum(~flagged & ~positive)),
        missed=int(np.sum(~flagged & positive)),
        false_alarms=int(np.sum(flagged & ~positive)),
        caught=int(np.sum(flagged & positive)),
        mistakes=int(mistaken[-1]),
        curve=np.column_stack([marks, mistaken[marks - 1]]),
    )
