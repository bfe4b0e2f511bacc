"""Markov logic: a log-linear model of attributes and ties, fitted by pseudo-likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cumulant import checks
from cumulant.certificates import Certificate
from cumulant.glm import GLM
from cumulant.relational.network import Network, networks_of, pairs_of

#: The features, and what each counts.
FEATURES = {
    "attribute": "people with the attribute",
    "tie_neither": "ties of two without the attribute",
    "tie_one": "ties of one with and one without it",
    "tie_both": "ties of two with it",
    "pair_one": "pairs of one with and one without it, tied or not",
    "pair_both": "pairs of two with it, tied or not",
    "triangle": "triangles of ties",
}
_DEFAULT = ("attribute", "tie_neither", "tie_one", "tie_both")


class Rows(NamedTuple):
    """The conditionals of all atoms as a logistic regression: equal rows are kept once, with their number."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray


class MarkovLogic(BaseEstimator):
    """A log-linear model ``p(s, f) = exp(<w, N(s, f)> - A(w))`` of an attribute `s` and symmetric ties `f`.

    The features ``N`` count what the clauses on ``s_x, f_xy, s_y`` distinguish, and with ``a, b, c, t`` their weights
    each atom given all others is a logistic regression with tied weights:

    ``logit p(s_x = 1 | rest) = a + sum_y (c_(1+s_y) - c_(s_y)) + f_xy (b_(1+s_y) - b_(s_y))``,
    ``logit p(f_xy = 1 | rest) = b_(s_x + s_y) + t (friends in common)``.

    The weights minimise the mean over all atoms of the negative logarithm of these conditionals (the pseudo-likelihood,
    Besag 1975) plus ``l2 / 2 |w|^2``: convex, with a certified gap. For a query about one atom with all others known
    the conditionals are the answer of the model, without sampling.

    In networks of one size, ``(a, c_1, c_2)`` moved along ``(-(n - 1), 1, 2)`` changes no conditional of an attribute:
    the three weights have no meaning apart from each other; leave ``pair_one`` out (``c_1 = 0``) to determine them. The
    default leaves ``pair_both`` out as well: in one network, the number of *others* with the attribute is one less for
    those who have it. Pseudo-likelihood separates people by that number, in learning and in leave-one-out queries, and
    its predictions then look perfect without saying anything of somebody whose attribute is not known.

    Parameters
    ----------
    features : sequence of str, optional
        Some of ``attribute, tie_neither, tie_one, tie_both, pair_one, pair_both, triangle``; the first four by
        default.
    l2 : float, optional
        By default ``1e-3`` divided by the number of atoms: 1e-3 beside the sum of the logarithms.
    tol : float
        The relative gap at which the fit stops: see `glm.GLM`.

    Attributes
    ----------
    weights_ : dict of str to float
    certificate_ : Certificate
        Of the gap between the penalised mean negative log-pseudo-likelihood and its minimum; `verify` issues it again.
    log_pseudo_likelihood_ : float
        The sum over all atoms.
    n_atoms_ : int
    status_ : str

    References
    ----------
    Carbonetto (2009), section 5.3.1; Richardson and Domingos (2006).

    Examples
    --------
    >>> network = Network.from_edges([1, 1, 1, 0, 0, 0], [(0, 1), (1, 2), (3, 4), (4, 5), (2, 3)])
    >>> model = MarkovLogic(l2=0.1).fit([network])
    >>> model.predict_attribute(network).round(2)
    array([0.79, 0.93, 0.5 , 0.5 , 0.07, 0.21])
    """

    def __init__(self, features: Sequence[str] | None = None, *, l2: float | None = None, tol: float = 1e-10):
        self.features, self.l2, self.tol = features, l2, tol

    def fit(self, nets: Any, y: Any = None) -> Self:
        """Learn from one network or several."""
        rows = self.rows(nets)
        if rows.y.min() == rows.y.max():
            raise ValueError(f"nets: every attribute and every tie is {rows.y[0]:g}, from which nothing can be learned")
        model = self._solver(rows).fit(rows.X, rows.y, sample_weight=rows.weight)
        self.weights_ = dict(zip(self._features(), model.coef_.ravel().tolist(), strict=True))
        self.certificate_, self.status_ = model.certificate_, model.status_
        self.n_atoms_ = int(rows.weight.sum())
        self.log_pseudo_likelihood_ = self.log_pseudo_likelihood(nets)
        self._fitted = model
        return self

    def verify(self, nets: Any) -> Certificate:
        """Issue the certificate again from the networks that were learnt from."""
        check_is_fitted(self)
        rows = self.rows(nets)
        return self._fitted.verify(rows.X, rows.y, sample_weight=rows.weight)

    def predict_attribute(self, net: Network) -> np.ndarray:
        """For each person, the probability of the attribute given all else in the network."""
        check_is_fitted(self)
        checks.instance("net", net, Network, "a Network")
        return expit(attribute_rows(net, self._features()) @ self._vector())

    def predict_tie(self, net: Network, pairs: Any = None) -> np.ndarray:
        """The probability of a tie given all else: a matrix of all pairs, or one number for each of `pairs`."""
        check_is_fitted(self)
        checks.instance("net", net, Network, "a Network")
        if pairs is not None:
            x, y = pairs_of("pairs", pairs, net.n_people).T
            return expit(tie_rows(net, self._features(), x, y) @ self._vector())
        x, y = np.triu_indices(net.n_people, 1)
        out = np.zeros((net.n_people, net.n_people))
        out[x, y] = out[y, x] = expit(tie_rows(net, self._features(), x, y) @ self._vector())
        return out

    def log_pseudo_likelihood(self, nets: Any, weights: Any = None) -> float:
        """The sum over all atoms of ``log p(atom | rest)``, with these weights or those of the fit."""
        rows = self.rows(nets)
        w = self._vector(weights)
        return float(-(rows.weight * np.logaddexp(0.0, -(2 * rows.y - 1) * (rows.X @ w))).sum())

    def gradient(self, nets: Any, weights: Any = None) -> np.ndarray:
        """The derivative of `log_pseudo_likelihood` in the weights: counts less what each atom expects of them."""
        rows = self.rows(nets)
        w = self._vector(weights)
        return (rows.weight * (rows.y - expit(rows.X @ w))) @ rows.X

    def rows(self, nets: Any) -> Rows:
        """Every atom of the networks as a row of a logistic regression."""
        features, blocks = self._features(), []
        for net in networks_of(nets):
            x, y = np.triu_indices(net.n_people, 1)
            blocks.append(np.column_stack([attribute_rows(net, features), net.attribute]))
            blocks.append(np.column_stack([tie_rows(net, features, x, y), net.ties[x, y]]))
        table, count = np.unique(np.concatenate(blocks), axis=0, return_counts=True)
        return Rows(table[:, :-1], table[:, -1], count.astype(float))

    # Helpers --------------------------------------------------------------------------------------------------------

    def _solver(self, rows: Rows) -> GLM:
        l2 = 1e-3 / rows.weight.sum() if self.l2 is None else checks.positive("l2", self.l2)
        return GLM("bernoulli", l2=float(l2), fit_intercept=False, tol=self.tol)

    def _features(self) -> tuple[str, ...]:
        if self.features is None:
            return _DEFAULT
        if not hasattr(self.features, "__len__"):
            raise TypeError(f"features must be a list of names; got {self.features!r}")
        if isinstance(self.features, str) or len(set(self.features)) < len(self.features) or not len(self.features):
            raise ValueError(f"features must be a list of different names; got {self.features!r}")
        return tuple(checks.choice("each of features", name, FEATURES) for name in self.features)

    def _vector(self, weights: Any = None) -> np.ndarray:
        if weights is None:
            return np.array([self.weights_[name] for name in self._features()])
        w = checks.real_array("weights", weights, ndim=1)
        if w.size != len(self._features()):
            raise ValueError(f"weights must have one entry for each of {', '.join(self._features())}; got {w.size}")
        return w


def attribute_rows(net: Network, features: Sequence[str]) -> np.ndarray:
    """What the logit of each person's attribute multiplies each weight by: the change of the counts."""
    s, f, n = net.attribute.astype(float), net.ties.astype(float), net.n_people
    with_it, without = f @ s, f @ (1.0 - s)
    others_with = s.sum() - s
    others_without = n - 1 - others_with
    columns = {
        "attribute": np.ones(n),
        "tie_neither": -without,
        "tie_one": without - with_it,
        "tie_both": with_it,
        "pair_one": others_without - others_with,
        "pair_both": others_with,
        "triangle": np.zeros(n),
    }
    return np.stack([columns[name] for name in features], axis=1)


def tie_rows(net: Network, features: Sequence[str], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same for the ties of pairs."""
    kind = net.attribute[x].astype(int) + net.attribute[y]
    columns = {name: np.zeros(x.size) for name in FEATURES}
    columns |= {name: (kind == k).astype(float) for k, name in enumerate(("tie_neither", "tie_one", "tie_both"))}
    if "triangle" in features:
        f = net.ties.astype(float)
        columns["triangle"] = (f @ f)[x, y]
    return np.stack([columns[name] for name in features], axis=1)
