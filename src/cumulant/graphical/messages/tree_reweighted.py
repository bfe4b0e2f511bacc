"""Tree-reweighted message passing: an upper bound on ``log Z`` from a distribution over spanning trees."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumulant.certificates import Certificate, by_construction, check, issuer, recipe_of, rounding
from cumulant.errors import CertificateError
from cumulant.graphical.messages.answers import Approximation
from cumulant.graphical.messages.incidence import check_settings, normalise, require_addable, require_model
from cumulant.graphical.messages.pairwise_tables import PairwiseTables
from cumulant.graphical.messages.simple_bounds import check_simple_bounds
from cumulant.graphical.messages.spanning_tree_polytope import (
    DENSE,
    heaviest_forest,
    orientation_of_forest,
    orientation_of_given,
    roots,
    uniform_orientation,
)
from cumulant.graphical.messages.tree_reweighted_kernels import pair_beliefs, propagate, sums_of_messages

_STEP_TOL, _STEP_SWEEPS = 1e-5, 200  # of the messages on the way; the last run is to the caller's own
_TRIALS = 4  # steps tried along one direction
_FLOOR = 0.02  # of the first distribution: an edge that is in no tree would make the bound infinite


@dataclass(frozen=True, eq=False)
class TreeReweighted(Approximation):
    """An upper bound on ``log Z``, the messages and the trees that prove it, and pseudo-marginals.

    `marginals` and `beliefs` are an approximation, on trees exact. `trace` is the bound before each sweep of messages,
    at all edge probabilities that were tried: every one is valid. The bound also holds where single and pair
    pseudo-marginals do not agree within `tol`, and it has not `converged`.

    Attributes
    ----------
    bound : float
        ``log Z`` (of the states that agree with the evidence) is at most this, rounding included.
    edges, edge_probabilities : arrays
        Pairs of variables that share a factor, and how likely each is in a tree.
    steps : array
        The lowest bound at the first edge probabilities, after each tree that was added, and at the end; never rising.
    gap : float
        What other edge probabilities could gain at most, if the messages are at their fixed point.
    proof : Proof
        What the certificate is recomputed from.
    """

    bound: float
    edges: np.ndarray
    edge_probabilities: np.ndarray
    steps: np.ndarray
    gap: float
    proof: "Proof"

    def __str__(self):
        end = "converged" if self.converged else "not converged"
        trees = f"{len(self.proof.trees)} trees added, " if self.proof.trees else ""
        return f"log Z <= {self.bound:.6g}  ({trees}{len(self.trace)} sweeps, {end})"


@dataclass(frozen=True, eq=False)
class Proof:
    """Messages, and a mixture of distributions over trees: first `given` edge probabilities, or where that is None all
    spanning trees alike; then single ones.
    """

    messages: np.ndarray
    given: np.ndarray | None
    trees: tuple[np.ndarray, ...]
    weights: np.ndarray  # of the first distribution, and of the trees

    def orientation(self, n: int, edges: np.ndarray) -> np.ndarray:
        """The probabilities of edges and their directions, from the beginning; refused where a tree is none."""
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.size != len(self.trees) + 1 or weights.min() < 0 or abs(weights.sum() - 1.0) > 1e-9:
            raise CertificateError("the weights of the trees must be a distribution")
        given = self.given
        start = uniform_orientation(n, edges) if given is None else orientation_of_given(n, edges, given)
        orient = weights[0] * start
        for weight, tree in zip(weights[1:].tolist(), self.trees, strict=True):
            if heaviest_forest(n, edges[tree], np.ones(tree.size)).size < tree.size:
                raise CertificateError("one of the trees has a cycle")
            orient += weight * orientation_of_forest(n, edges, tree)
        return orient


def tree_reweighted(
    model: Any,
    edge_probabilities: Any = "optimised",
    *,
    max_trees: int = 50,
    gap: float = 1e-2,
    max_sweeps: int = 1000,
    tol: float = 1e-8,
    damping: float = 0.0,
) -> TreeReweighted:
    """An upper bound on ``log Z`` of a pairwise model by tree-reweighted messages, and pseudo-marginals.

    For a distribution over spanning trees with edge probabilities ``rho`` Hölder's inequality gives ``log Z <= sum over
    trees of p(T) log Z_T``, where tree ``T`` has the pair tables ``theta_ij / rho_ij``, up to shifts between tables.
    Messages

    ``u_(j -> i)(x_i) = log sum over x_j of exp(theta_ij / rho_ij + H_j(x_j) - u_(i -> j)(x_j))``,
    ``H_i = theta_i + sum_j rho_ij u_(j -> i)``,

    have the best shifts as their fixed point (Wainwright, Jaakkola, Willsky 2005). **The bound does not wait for it.**
    Let ``F_(j -> i)`` be the right-hand side for whatever messages there are, ``k_(j|i)`` the probability that the tree
    has the edge with ``i`` as the parent of ``j``, and ``k_i`` that ``i`` is the root. Then

    ``log Z <= sum_i k_i log sum over x_i of exp(H_i + sum_j k_(j|i) (F_(j -> i) - u_(j -> i)) / k_i)``

    for *all* messages: it is the dual of maximising ``E <theta, T> + sum_i k_i H(x_i) + sum k_(j|i) H(x_j | x_i)`` over
    pseudo-marginals (Globerson and Jaakkola 2007), at a point made from the messages. It is computed before each sweep.

    The bound is convex in ``rho``, and its derivative at the fixed point is minus the mutual information of each edge.
    With ``"optimised"`` probabilities conditional gradient steps lower it: a maximum spanning tree of the mutual
    information is mixed in, in place of the part of the mixture with the least, by a step along which only bounds
    count. A fiftieth of the probability stays with the uniform trees, so that no edge is in none.

    Parameters
    ----------
    model : DiscreteModel
        Of single variables and pairs, with or without evidence; impossible states (-inf) are allowed.
    edge_probabilities : str or array
        ``"optimised"``, ``"uniform"`` (all spanning trees alike: effective resistances; above 2048 variables some trees
        that use the edges evenly) or a number in (0, 1] for each pair of
        free variables that share a factor, in the order of ``result.edges`` (pairs ``i < j``, sorted). An array must be
        in the polytope of forests; that is checked by one flow for each variable, and it is rounded down to multiples
        of ``n / 2^30`` for that.
    max_trees, gap : int, float
        Conditional gradient ends after this number of trees, or where no tree promises `gap` nats.
    max_sweeps, tol : int, float
        The last run of messages ends where the pseudo-marginals agree within `tol`.
    damping : float
        In [0, 1): the weight of the old message in the new one.

    References
    ----------
    Wainwright, Jaakkola, Willsky (2005), "A new class of upper bounds on the log partition function". Globerson,
    Jaakkola (2007), "Convergent propagation algorithms via oriented trees".

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> model = Ising([(0, 1), (0, 2), (1, 3), (2, 3)], [-0.5, 0.5, 0.5, 0.5], [0.4, 0.3, -0.5, -0.2])
    >>> uniform = tree_reweighted(model, "uniform")                   # 3/4 for each edge
    >>> best = tree_reweighted(model)
    >>> round(model.log_partition(), 4), round(best.bound, 4), round(uniform.bound, 4)
    (3.3675, 3.5..., 3.526)
    >>> bool((uniform.trace >= model.log_partition()).all())          # valid at every sweep
    True
    """
    check_settings(max_trees=max_trees, gap=gap, max_sweeps=max_sweeps, tol=tol, damping=damping)
    require_model(model)
    structure, theta, _ = model.restricted()
    require_addable(theta)
    pairs = PairwiseTables.of(structure, theta)
    given, optimise = _probabilities(edge_probabilities, pairs.edges)
    search = _Search(pairs, given, float(damping))
    if optimise and len(pairs.edges):
        search.add_trees(max_trees, gap)
        search.drop()
    settled = search.settle(search.orient, search.messages, max_sweeps, tol)
    search.offer(settled)
    return _answer(model, search, settled, tol)


@dataclass(eq=False)
class _Settled:
    """Messages after a run at some edge probabilities."""

    orient: np.ndarray
    messages: np.ndarray  # with the lowest bound of the run
    last: np.ndarray  # those at its end
    value: float
    size: float
    disagreement: float


@dataclass(eq=False)
class _Search:
    """The best bound so far, with the messages and the trees that give it."""

    pairs: PairwiseTables
    given: np.ndarray | None
    damping: float
    trees: list[np.ndarray] = field(default_factory=list)
    trace: list[np.ndarray] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)

    def __post_init__(self):
        n, edges = self.pairs.n_variables, self.pairs.edges
        self.layout = self.pairs.layout()
        self.weights = np.ones(1)
        self.orient = (
            uniform_orientation(n, edges) if self.given is None else orientation_of_given(n, edges, self.given)
        )
        if (self.probabilities() <= 0).any():
            raise ValueError("edge_probabilities must be positive after rounding down")
        self.messages, self.value, self.size = np.zeros(int(self.layout[3][-1])), np.inf, 0.0

    def probabilities(self) -> np.ndarray:
        return self.orient.reshape(-1, 2).sum(axis=1)

    def settle(self, orient: np.ndarray, messages: np.ndarray, max_sweeps: int, tol: float) -> _Settled:
        """Messages from those given; what they prove on the way is noted."""
        pairs, current, best, bounds = self.pairs, messages.copy(), messages.copy(), np.empty(max_sweeps)
        root = roots(pairs.n_variables, pairs.edges, orient)
        sweeps, value, size, disagreement = propagate(
            current, best, pairs.tables, pairs.fields, orient, root, self.damping, max_sweeps, tol, bounds, self.layout
        )
        self.trace.append(bounds[:sweeps] + pairs.constant)
        return _Settled(orient, best, current, value, size, disagreement)

    def offer(self, found: _Settled) -> bool:
        """Keep it if its bound is lower."""
        lower = found.value < self.value
        if lower:
            self.orient, self.messages, self.value, self.size = found.orient, found.messages, found.value, found.size
        return lower

    def beliefs(self, orient: np.ndarray, messages: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Logarithms of single pseudo-marginals, those of edges, and the mutual information of edges."""
        pairs = self.pairs
        total, tables, information = (
            np.zeros(pairs.fields.size),
            np.zeros(pairs.tables.size),
            np.zeros(len(pairs.edges)),
        )
        sums_of_messages(messages, pairs.fields, orient, total, self.layout)
        pair_beliefs(messages, total, pairs.tables, orient, tables, information, self.layout)
        return total, tables, information

    def direction(self, information: np.ndarray) -> tuple[np.ndarray, float]:
        """The tree with the most mutual information, and how much more than now it has: no mixture has more."""
        tree = heaviest_forest(self.pairs.n_variables, self.pairs.edges, information)
        return tree, float(information[tree].sum() - self.probabilities() @ information)

    def add_trees(self, max_trees: int, gap: float) -> None:
        """Conditional gradient on the edge probabilities: probability goes to the heaviest tree from the lightest part
        of the mixture (pairwise steps; Lacoste-Julien and Jaggi 2015).
        """
        n, edges = self.pairs.n_variables, self.pairs.edges
        self.offer(self.settle(self.orient, self.messages, _STEP_SWEEPS, _STEP_TOL))
        self.steps.append(self.value)
        parts, first = [self.orient], 0.5  # the first step to try is twice the last one
        for k in range(max_trees + 1):
            information = self.beliefs(self.orient, self.messages)[2]
            tree, most_to_gain = self.direction(information)
            if most_to_gain <= gap or k == max_trees:
                return
            self.trees.append(tree)
            self.weights = np.append(self.weights, 0.0)
            parts.append(orientation_of_forest(n, edges, tree))
            weight = [float(part.reshape(-1, 2).sum(axis=1) @ information) for part in parts]
            room = self.weights - np.where(np.arange(len(parts)) == 0, _FLOOR, 0.0)
            light = int(np.argmin(np.where(room > 0, weight, np.inf)))
            most = float(room[light])
            step = self.along(parts[-1] - parts[light], most, min(2.0 * first, most))
            if step == 0.0:
                self.trees.pop()
                self.weights = self.weights[:-1]
                return
            first = step
            self.weights[-1] += step
            self.weights[light] = self.weights[light] - step if step < most else (0.0 if light else _FLOOR)
            self.steps.append(self.value)

    def drop(self) -> None:
        """Leave out the trees that have given all of their probability away."""
        left = np.flatnonzero(self.weights[1:] > 0)
        self.trees, self.weights = [self.trees[k] for k in left], self.weights[np.append(0, left + 1)]

    def along(self, direction: np.ndarray, most: float, step: float) -> float:
        """The step of at most `most` with the lowest bound of a few; 0 where none is below what is known.

        The slope at a point, minus the mutual information that the direction gains there, says on which side of it the
        lowest bound is.
        """
        start, messages, taken = self.orient, self.messages, 0.0
        gain = direction.reshape(-1, 2).sum(axis=1)
        low, low_slope = 0.0, -float(gain @ self.beliefs(start, messages)[2])
        high, high_slope, enough = None, 0.0, -0.1 * low_slope
        for _ in range(_TRIALS):
            found = self.settle(np.maximum(start + step * direction, 0.0), messages, _STEP_SWEEPS, _STEP_TOL)
            if self.offer(found):
                taken, messages = step, found.messages
            slope = -float(gain @ self.beliefs(found.orient, found.last)[2])
            if slope < 0.0:
                low, low_slope = step, slope
            else:
                high, high_slope = step, slope
            if abs(slope) <= enough or low == most:
                break
            if high is None:
                step = min(2.0 * step, most)
            else:  # where the chord of the slope is zero
                step = low + (high - low) * float(np.clip(-low_slope / (high_slope - low_slope), 0.1, 0.9))
        return taken


def _answer(model: Any, search: _Search, settled: _Settled, tol: float) -> TreeReweighted:
    (structure, theta, free), pairs = model.restricted(), search.pairs
    value = search.value + pairs.constant
    slack = _slack(pairs, search.layout, search.size, len(search.trees))
    total, tables, information = search.beliefs(settled.orient, settled.last)
    gap = max(search.direction(information)[1], 0.0)
    single = np.split(normalise(total, search.layout[1]), search.layout[1][1:-1]) if pairs.n_variables else []
    marginals, flat = pairs.expanded(single, np.split(tables, search.layout[2][1:-1]))
    alike = "all spanning trees alike (Kirchhoff 1847)"
    uniform = alike if pairs.n_variables <= DENSE else "trees that use the edges evenly, or all spanning trees alike"
    first = uniform if search.given is None else "as given: a flow for each variable shows that they come from forests"
    also = f", and {len(search.trees)} trees" if search.trees else ""
    certificate = _certificate(
        structure, theta, value, slack, search.orient, first + also,
        {"sweeps": sum(map(len, search.trace)), "disagreement": settled.disagreement},
    )  # fmt: skip
    return TreeReweighted(
        model,
        np.concatenate(search.trace) + slack,
        certificate,
        model._all_marginals(marginals),
        flat,
        bool(settled.disagreement <= tol),
        float(np.nextafter(value + slack, np.inf)),
        free[pairs.edges],
        search.probabilities(),
        np.array([*search.steps, search.value]) + pairs.constant + slack,
        gap,
        Proof(search.messages, search.given, tuple(search.trees), search.weights),
    )


def _certificate(structure, theta, value, slack, orient, how, details) -> Certificate:
    return Certificate(
        "log Z",
        value,
        "Hölder's inequality over spanning trees (Wainwright, Jaakkola, Willsky 2005), at any messages by the dual of "
        "Globerson and Jaakkola 2007",
        (
            by_construction("the edge probabilities come from a distribution over forests", how),
            check(orient.min(initial=0.0) >= 0, "directions of edges have probabilities that are not negative"),
            by_construction("the shifted tables of the trees add up to those of the model"),
            check_simple_bounds(structure, theta, -np.inf, value + slack),
        ),
        slack=slack,
        recipe=recipe_of(certify),
        details=details,
    )


def _slack(pairs: PairwiseTables, layout: tuple[np.ndarray, ...], size: float, n_trees: int) -> float:
    """What rounding may have taken from the bound: the terms of its sums, and directions that are off by an ulp or two,
    each of which counts by an entropy.
    """
    tables = pairs.tables
    finite = np.where(np.isfinite(tables), np.abs(tables), 0.0)
    largest = np.maximum.reduceat(finite, layout[2][:-1]).sum() if tables.size else 0.0
    fields = np.maximum.reduceat(np.abs(pairs.fields), layout[1][:-1]).sum() if pairs.fields.size else 0.0
    degree = np.bincount(layout[0], minlength=pairs.n_variables).max(initial=0)
    terms = 8.0 * (degree + pairs.sizes.max(initial=0) + 8.0)
    entropies = float(np.log(pairs.sizes).sum())
    sums = rounding(size, largest, fields, terms=terms)
    return sums + rounding(entropies, terms=n_trees + 8.0 + terms) + rounding(pairs.constant, terms=4.0) + pairs.slack


@issuer
def certify(model: Any, result: TreeReweighted) -> Certificate:
    """The bound from the tables of the model, the messages and the trees of the proof."""
    structure, theta, free = model.restricted()
    pairs = PairwiseTables.of(structure, theta)
    layout, proof = pairs.layout(), result.proof
    if not np.array_equal(free[pairs.edges], result.edges) or proof.messages.size != layout[3][-1]:
        raise CertificateError("the pairs of this model are not those of the bound")
    orient = proof.orientation(pairs.n_variables, pairs.edges)
    messages, root = proof.messages.copy(), roots(pairs.n_variables, pairs.edges, orient)
    _, value, size, disagreement = propagate(
        messages, messages.copy(), pairs.tables, pairs.fields, orient, root, 0.0, 1, 0.0, np.empty(1), layout
    )
    slack = _slack(pairs, layout, size, len(proof.trees))
    how = f"{len(proof.trees)} trees, and a first distribution"
    return _certificate(
        structure, theta, float(value + pairs.constant), slack, orient, how, {"disagreement": disagreement}
    )


def _probabilities(asked: Any, edges: np.ndarray) -> tuple[np.ndarray | None, bool]:
    if isinstance(asked, str):
        if asked not in ("optimised", "uniform"):
            raise ValueError(f"edge_probabilities must be 'optimised', 'uniform' or an array; got {asked!r}")
        return None, asked == "optimised"
    given = np.asarray(asked, dtype=np.float64)
    if given.shape != (len(edges),) or not ((given > 0) & (given <= 1)).all():
        raise ValueError(
            f"edge_probabilities must be a number in (0, 1] for each of {len(edges)} pairs of free variables; "
            f"got shape {given.shape}" + (f", smallest {given.min():g}, largest {given.max():g}" if given.size else "")
        )
    return given, False
