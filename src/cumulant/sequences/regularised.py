"""What the penalised likelihoods of chains and of graphs share: penalties, labels, the dual, and bounds on rounding."""

from functools import cached_property
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.optim.protocol import Problem

__all__ = ["TINY", "UNIT", "Regularised", "dot"]

UNIT = 2.0**-52  # twice the unit roundoff: products of several factors (1 + u) are covered
_BLOCK = 256
TINY = 1e-300  # what a probability may have lost by underflow
_DOT = 512  # terms that count in the rounding of `dot`: one block, and the pairwise sum over blocks


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """``sum a b``, in blocks of 256 added pairwise: its rounding grows with the logarithm of the size."""
    a, b = a.ravel(), b.ravel()
    whole = a.size - a.size % _BLOCK
    blocks = np.einsum("ij,ij->i", a[:whole].reshape(-1, _BLOCK), b[:whole].reshape(-1, _BLOCK))
    return float(np.sum(blocks) + np.vdot(a[whole:], b[whole:]))


class Regularised(Problem):
    """``P(w) = l2/2 |w|^2 + l1 |w|_1 + (1/n) sum_i [log Z_i(w) - w . F(x_i, y_i)]`` and its dual ``D(mu)``.

    Subclasses compute ``log Z_i`` and expectations of ``F``. Their *beliefs* are the marginals that expectations of
    ``F`` are linear in: `_gathered` maps them to ``sum_i E F(x_i, y)``.
    """

    data: Any
    n_labels: int
    l2: Any
    l1: float
    n_terms: int
    gold: Any  # (1/n) sum_i F(x_i, y_i)

    convex = True
    constants_are = "checked"

    def __post_init__(self):
        if not hasattr(self.data, "labels"):
            raise TypeError(f"data must be SequenceData or GraphData; got {self.data!r:.60}")
        checks.whole("n_labels", self.n_labels)
        if self.data.labels is None:
            raise ValueError("data must have labels to learn from")
        labels = np.asarray(self.data.labels)
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= self.n_labels:
            raise ValueError(f"labels must be numbers from 0 to {self.n_labels - 1}")
        object.__setattr__(self, "n_terms", len(self.data))
        l2 = 1.0 / self.n_terms if self.l2 is None else float(checks.positive("l2", self.l2))
        object.__setattr__(self, "l2", l2)
        checks.not_negative("l1", self.l1)

    # What subclasses compute ------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        raise NotImplementedError

    def log_partitions(self, w: Any) -> np.ndarray:
        """``log Z_i(w)`` of every sequence or graph."""
        raise NotImplementedError

    def _expectations(self, w: np.ndarray) -> tuple[np.ndarray, Any]:
        """``log Z_i(w)`` and the beliefs at `w`."""
        raise NotImplementedError

    def _distribution(self, mu: Any) -> tuple[np.ndarray, Any]:
        """Entropies and beliefs of the distributions with the conditional probabilities of `mu`."""
        raise NotImplementedError

    def _minus_labels(self, beliefs: Any) -> Any:
        """Beliefs minus those of the labels, which may overwrite `beliefs`."""
        raise NotImplementedError

    def _gathered(self, beliefs: Any, magnitude: bool = False) -> np.ndarray:
        """``sum_i E F(x_i, y)``, laid out like the weights; with `magnitude`, of absolute values of the features."""
        raise NotImplementedError

    def _belief_errors(self, beliefs: Any, relative: np.ndarray) -> Any:
        """Bounds on what the rounding of beliefs and of their sums adds, given relative errors for each term."""
        raise NotImplementedError

    def _magnitudes(self, w: np.ndarray) -> np.ndarray:
        """For every term, a bound on the sum of the absolute values that make up the score of any labelling."""
        raise NotImplementedError

    @property
    def _operations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For every term: additions in a score, additions and multiplications of a pass, and ``log`` of labellings."""
        raise NotImplementedError

    # Both objectives --------------------------------------------------------------------------------------------------

    @property
    def strong_convexity(self) -> float:
        """``l2``."""
        return self.l2

    @property
    def scale(self) -> float:
        """``l2 n``."""
        return self.l2 * self.n_terms

    @cached_property
    def labels(self) -> np.ndarray:
        """The labels as int64."""
        return np.ascontiguousarray(self.data.labels, dtype=np.int64)

    def value(self, w: Any) -> float:
        """``P(w)``."""
        w = self._weights(w)
        return self._value(w, self.log_partitions(w))

    def value_and_gradient(self, w: Any) -> tuple[float, np.ndarray]:
        """``P(w)`` and the gradient of its smooth part: ``l2 w + (1/n) sum_i grad phi_i(w)``, shaped like `w`."""
        w = self._weights(w)
        log_z, beliefs = self._expectations(w)
        gradient = self._gathered(self._minus_labels(beliefs))
        gradient /= self.n_terms
        gradient += self.l2 * w
        return self._value(w, log_z), gradient

    def gradient(self, w: Any) -> np.ndarray:
        """The gradient of the smooth part of ``P``."""
        return self.value_and_gradient(w)[1]

    def penalty(self, w: np.ndarray) -> float:
        """``l2/2 |w|^2 + l1 |w|_1``."""
        return 0.5 * self.l2 * dot(w, w) + (self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0)

    def _value(self, w: np.ndarray, log_z: np.ndarray) -> float:
        return float(self.penalty(w) + np.mean(log_z) - dot(w, self.gold))

    def weights_of(self, residual: np.ndarray) -> np.ndarray:
        """``w = soft(v, l1) / l2``."""
        if self.l1 == 0:
            return residual / self.l2
        return np.sign(residual) * np.maximum(np.abs(residual) - self.l1, 0.0) / self.l2

    def dual(self, mu: Any, w: np.ndarray | None = None) -> float:
        """``D(mu)``, with the weights ``w(mu)`` where they are known.

        Without them it is computed at the distribution that has the conditional probabilities of `mu`, which is `mu`
        itself where its marginals agree: a lower bound on the minimum of ``P`` whatever rounding has done to them.
        """
        if w is not None:
            return float(np.mean(self.entropies(mu)) - 0.5 * self.l2 * dot(w, w))
        entropy, beliefs = self._distribution(mu)
        w = self.weights_of(-self._gathered(self._minus_labels(beliefs)) / self.n_terms)
        return float(np.mean(entropy) - 0.5 * self.l2 * dot(w, w))

    def entropies(self, mu: Any) -> np.ndarray:
        """The entropy of the distribution with these marginals, of every sequence or graph."""
        raise NotImplementedError

    def divergences(self, mu: Any, nu: Any) -> np.ndarray:
        """``KL(mu_i || nu_i)`` of the distributions with these marginals, of every sequence or graph.

        Pairs (cliques) minus inner nodes (separators); every sum of ``p log(p / q) - p + q``, which keeps the digits of
        small divergences. Infinite where `nu` lacks mass that `mu` has.
        """
        raise NotImplementedError

    def log_probs(self, mu: Any, labels: Any) -> np.ndarray:
        """``log prod_C mu_C(y_C) / prod_S mu_S(y_S)`` of every sequence or graph, at labels by number ``(N,)``."""
        raise NotImplementedError

    def _labelling(self, labels: Any) -> np.ndarray:
        labels = np.asarray(labels)
        if labels.shape != self.labels.shape or labels.dtype.kind not in "iu":
            raise ValueError(f"labels must be {len(self.labels)} whole numbers; got {labels.dtype} {labels.shape}")
        if labels.min() < 0 or labels.max() >= self.n_labels:
            raise ValueError(f"labels must be numbers from 0 to {self.n_labels - 1}")
        return labels.astype(np.int64)

    def _block(self, mu: Any, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The marginals of the cliques of one term, and those of its separators, flat."""
        raise NotImplementedError

    def _put(self, mu: Any, nu: Any, i: int) -> None:
        """Overwrites the marginals of one term by those in `nu`."""
        raise NotImplementedError

    def residual(self, mu: Any) -> np.ndarray:
        """``v(mu) = (1/n) sum_i [F(x_i, y_i) - E_{mu_i} F(x_i, y)]``, summed as differences: small where they agree."""
        raise NotImplementedError

    def conjugate_marginals(self, w: Any, dtype: Any = np.float64) -> Any:
        """The marginals of ``p(. | x_i; w)``: the dual variables that the weights stand for."""
        raise NotImplementedError

    def start(self, epsilon: float = 0.01, dtype: Any = np.float64) -> Any:
        """Marginals next to the labels: ``epsilon`` of the uniform distribution, ``1 - epsilon`` on the labels."""
        raise NotImplementedError

    def start_from_potential(self, potential: float = 10.0, dtype: Any = np.float64) -> Any:
        """The marginals of the distribution whose factors score `potential` where they agree with the labels."""
        raise NotImplementedError

    def checked_marginals(self, mu: Any, dtype: Any = np.float64, name: str = "start") -> Any:
        """A copy of marginals to start from; refused where they do not agree with each other, or some are not positive.

        At a marginal of zero the slope of the entropy is infinite. Errors call the marginals `name`.
        """
        arrays, kind = [np.array(part, dtype=np.float64) for part in mu], type(self.start(0.5))
        shapes, given = [part.shape for part in self.start(0.5)], [part.shape for part in arrays]
        if given != shapes:
            raise ValueError(f"{name}: marginals must have shapes {shapes}; got {given}: are they those of other data?")
        if not all(np.all(np.isfinite(part)) and np.all(part > 0) for part in arrays):
            raise ValueError(f"{name}: marginals must be positive; mix them with a little of the uniform distribution")
        off = self._inconsistency(kind(*arrays))
        if off > 1e-6:
            raise ValueError(f"{name}: marginals must agree with each other and sum to one; they are off by {off:.1e}")
        return self._as(kind(*arrays), dtype)

    def _inconsistency(self, mu: Any) -> float:
        """How far marginals are from each other where they overlap, and from a sum of one."""
        raise NotImplementedError

    def _as(self, mu: Any, dtype: Any) -> Any:
        """The marginals with those of pairs or cliques in this precision."""
        raise NotImplementedError

    def block_gaps(self, mu: Any, w: Any = None) -> np.ndarray:
        """``KL(mu_i || p(. | x_i; w))`` of every term, at ``w(mu)`` by default; their mean is then the duality gap."""
        w = self.weights_of(self.residual(mu)) if w is None else self._weights(w)
        return np.maximum(self.log_partitions(w) - self.entropies(mu) - self._mean_scores(mu, w), 0.0)

    def _mean_scores(self, mu: Any, w: np.ndarray) -> np.ndarray:
        """``w . E_{mu_i} F(x_i, y)`` of every term."""
        raise NotImplementedError

    def _weights(self, w: Any) -> np.ndarray:
        w = np.ascontiguousarray(w, dtype=np.float64)
        if w.size != np.prod(self.shape):
            raise ValueError(f"w must have shape {self.shape}; got {w.shape}")
        w = w.reshape(self.shape)
        if not np.all(np.isfinite(w)):
            raise ValueError("w must be finite; it holds NaN or infinity")
        return w

    # With bounds on rounding, for certificates ------------------------------------------------------------------------

    def score_errors(self, w: np.ndarray) -> np.ndarray:
        """Bounds on the rounding of ``log Z_i(w)``, and of the score of any labelling, of every term.

        A computed sum of ``m`` numbers is off by at most ``m u`` times the sum of their absolute values (Higham 2002,
        section 4.2), and ``log Z`` by at most as much as the score that is off most, beside the rounding of the pass.
        """
        in_score, in_pass, log_labellings = self._operations
        return UNIT * ((in_score + 48.0) * (self._magnitudes(w) + log_labellings) + in_pass)

    def loss(self, w: np.ndarray) -> tuple[float, float]:
        """``sum_i phi_i(w)``, and a bound on its rounding."""
        log_z, errors = self.log_partitions(w), self.score_errors(w)
        total = float(np.sum(log_z)) - self.n_terms * dot(w, self.gold)
        gold = dot(np.abs(w), self._gold_magnitude) * self.n_terms
        return total, float(2 * np.sum(errors)) + UNIT * (_DOT + self._longest_sum) * gold

    def dual_terms(self, mu: Any) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The parts of ``n D(mu)``: the sum of the entropies, and ``n v(mu)``, each followed by bounds on its rounding.

        They are those of the distributions that have the conditional probabilities of `mu`.
        """
        entropy, beliefs = self._distribution(mu)
        _, in_pass, log_labellings = self._operations
        slack = float(np.sum(UNIT * (in_pass + 48.0) * (log_labellings + 1.0)))
        errors = self._gathered(self._belief_errors(beliefs, UNIT * in_pass), magnitude=True)
        return float(np.sum(entropy)), slack, -self._gathered(self._minus_labels(beliefs)), errors

    def residual_at(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``n v`` at the marginals of the weights themselves, and bounds on its rounding, elementwise."""
        _, beliefs = self._expectations(w)
        with np.errstate(over="ignore"):  # infinite: the marginals are not known at all, only that they are at most 1
            relative = np.minimum(np.expm1(4.0 * self.score_errors(w)), 1e300)
        errors = self._gathered(self._belief_errors(beliefs, relative), magnitude=True)
        return -self._gathered(self._minus_labels(beliefs)), errors

    @property
    def _longest_sum(self) -> int:
        """The most numbers that are added up for one entry of `gold`."""
        raise NotImplementedError

    @property
    def _gold_magnitude(self) -> np.ndarray:
        """`gold` with absolute values of the features."""
        raise NotImplementedError
