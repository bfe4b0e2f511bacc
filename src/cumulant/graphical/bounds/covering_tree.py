"""Mini-bucket elimination as a model on a tree: which tables stand together, and the bound with its derivatives.

Elimination sums a variable ``v`` out of the product of all tables that are about it, its bucket. Where that product is
too wide, the bucket is split into mini-buckets, and each sums out a copy of ``v`` of its own, by a *powered* sum

    ``m(y) = w log sum_v exp(f(v, y) / w)``.

With weights that are positive and add up to one the sum of the results is above the result for the whole bucket
(Hölder), with one positive weight and the others negative, again adding up to one, below it (Hölder in reverse). What
is added to one mini-bucket and taken off another of the same bucket does not change the model, but does the bound.
(Dechter and Rish 2003; Liu and Ihler 2011, "Bounding the partition function using Hölder's inequality".)
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from cumulant.certificates import rounding
from cumulant.graphical.bounds.reweighted import Tables

_SHIFT = 2**5  # entries of a table that is moved between mini-buckets: more helps little, and L-BFGS keeps 25 of each
_LEAST = 1e-12  # a weight is kept away from zero
_FIRST_NEGATIVE = -2.0  # the logarithm of minus a negative weight, at first
_LARGEST_LOG = 25.0


@dataclass(eq=False)
class Node:
    """A mini-bucket: the variable it sums out and those it keeps, the tables it adds up, where its result goes."""

    scope: tuple[int, ...]  # in the order of elimination: the first is summed out
    shape: tuple[int, ...]
    hard: bool  # whether it may hold an impossible state
    factors: list[tuple[int, tuple[int, ...], tuple[int, ...]]]  # table, how its axes turn, its shape among the others
    children: list[tuple[int, tuple[int, ...]]]  # node, the shape of its result among the axes here
    parent: int = -1

    @property
    def size(self) -> int:
        """Entries of its table."""
        return math.prod(self.shape)


@dataclass(eq=False)
class _Split:
    """A bucket of several mini-buckets: its nodes, what they have in common, and its part of a point."""

    nodes: list[int]
    shape: list[tuple[int, ...]]  # of the shift among the axes of each
    axes: list[tuple[int, ...]]  # to be summed over for its derivative
    size: int
    begin: int
    positive: int  # the one with the positive weight, for bounds from below

    @property
    def shifts(self) -> slice:
        return slice(self.begin, self.begin + len(self.nodes) * self.size)

    @property
    def weights(self) -> slice:
        return slice(self.shifts.stop, self.shifts.stop + len(self.nodes))


@dataclass(eq=False)
class Covering:
    """The mini-buckets of an order: ``bound(x)`` at shifts and weights `x`, all of which are valid.

    `sign` is 1 for bounds above ``log Z``, and -1 for bounds below: what `bound` returns is then above ``-log Z``.
    """

    tables: Tables
    sign: int
    nodes: list[Node] = field(default_factory=list)
    splits: list[_Split] = field(default_factory=list)
    dim: int = 0

    @property
    def exact(self) -> bool:
        """Whether no bucket was split: the bound is then ``log Z``."""
        return not self.splits

    @property
    def memory(self) -> int:
        """Bytes for the tables of all mini-buckets and their results."""
        sizes = [node.size for node in self.nodes]
        results = sum(size // node.shape[0] for size, node in zip(sizes, self.nodes, strict=True))
        return 8 * (sum(sizes) + 3 * results + 3 * max(sizes, default=0))

    def weights(self, x: np.ndarray) -> np.ndarray:
        """The weight of each mini-bucket; those of a bucket add up to one."""
        out = np.ones(len(self.nodes))
        for split in self.splits:
            logs = x[split.weights]
            if self.sign > 0:
                each = np.maximum(np.exp(logs - logs.max()), _LEAST)
                out[split.nodes] = each / each.sum()
            else:
                each = -np.exp(np.clip(logs + _FIRST_NEGATIVE, -_LARGEST_LOG, _LARGEST_LOG))
                each[split.positive] = 0.0
                each[split.positive] = 1.0 - each.sum()
                out[split.nodes] = each
        return out

    def shifts(self, x: np.ndarray) -> list[np.ndarray | None]:
        """What is added to each mini-bucket; over those of a bucket it adds up to zero."""
        out: list[np.ndarray | None] = [None] * len(self.nodes)
        for split in self.splits:
            moved = x[split.shifts].reshape(len(split.nodes), split.size)
            moved = moved - moved.mean(0)
            for k, i in enumerate(split.nodes):
                out[i] = moved[k].reshape(split.shape[k])
        return out

    def bound(self, x: np.ndarray) -> tuple[float, np.ndarray, float]:
        """The bound (on minus ``log Z`` where `sign` is -1), its derivative by `x`, and what rounding may have done."""
        weights = self.weights(x)
        sums, results, value, slack = self._forward(self.shifts(x), weights)
        if value == -np.inf:
            return self.sign * -np.inf, np.zeros(self.dim), 0.0
        gradient = self.sign * self._backward(sums, results, weights)
        return self.sign * value, gradient, slack

    def _forward(self, shifts, weights):
        """The sum in each mini-bucket and its result. An error of one result is passed on as an average, the
        derivatives of a result being probabilities, so that those of all of them add up at most.
        """
        starts = self.tables.structure.table_starts
        ends = [*starts[1:].tolist(), *(starts[-1] + np.cumsum(self.tables.structure.cardinalities)).tolist()]
        theta, sizes = self.tables.theta, self.tables.structure.cardinalities
        sums: list[np.ndarray] = []
        results: list[np.ndarray] = []
        ends_of_trees, slack = [self.tables.constant], self.tables.slack
        for node, w, shift in zip(self.nodes, weights.tolist(), shifts, strict=True):
            total = np.zeros(node.shape)
            for f, turn, shape in node.factors:
                begin = ends[f - 1] if f else 0
                table = theta[begin : ends[f]]
                if len(turn) > 1:
                    scope = self.tables.structure.scope(f)
                    table = table.reshape(sizes[list(scope)]).transpose(turn)
                total += table.reshape(shape)
            for child, shape in node.children:
                total += results[child].reshape(shape)
            if shift is not None:
                total += shift
            flat = total.reshape(node.shape[0], -1)
            result = _powered_sum(flat, w)
            sums.append(flat)
            results.append(result)
            largest = np.abs(flat[np.isfinite(flat)]).max(initial=0.0)
            # the terms of the sum, the power, and weights that add up to one within an ulp or two
            terms = len(node.factors) + len(node.children) + node.shape[0] + 8.0
            slack += rounding(largest, (1.0 + abs(w)) * math.log(2.0 * node.shape[0]), terms=terms)
            if node.parent < 0:
                ends_of_trees.append(float(result[0]))
        value = math.fsum(ends_of_trees)
        return sums, results, value, slack + rounding(value if math.isfinite(value) else 0.0, terms=2.0)

    def _backward(self, sums, results, weights):
        """The derivative by shifts, a marginal of each mini-bucket, and by weights, its conditional entropy."""
        gradient = np.zeros(self.dim)
        adjoint: list[np.ndarray | None] = [np.ones(1) if node.parent < 0 else None for node in self.nodes]
        marginal: dict[int, np.ndarray] = {}
        entropy = np.zeros(len(self.nodes))
        at = {i: (split, k) for split in self.splits for k, i in enumerate(split.nodes)}
        for i in range(len(self.nodes) - 1, -1, -1):
            node, flat, result = self.nodes[i], sums[i], results[i]
            possible = np.isfinite(result)
            with np.errstate(invalid="ignore"):
                log_p = (flat - np.where(possible, result, 0.0)) / weights[i]
                belief = np.where(possible, np.exp(np.minimum(log_p, 0.0)), 0.0)
                belief *= adjoint[i]
            adjoint[i] = None
            if i in at:
                some = belief > 0.0
                entropy[i] = -float(belief[some] @ log_p[some])
                split, k = at[i]
                marginal[i] = belief.reshape(node.shape).sum(axis=split.axes[k]).reshape(-1)
            table = belief.reshape(node.shape)
            for child, shape in node.children:
                over = tuple(a for a, size in enumerate(shape) if size == 1 and node.shape[a] > 1)
                adjoint[child] = table.sum(axis=over).reshape(-1)
        for split in self.splits:
            those = np.stack([marginal[i] for i in split.nodes])
            gradient[split.shifts] = (those - those.mean(0)).reshape(-1)
            w, h = weights[split.nodes], entropy[split.nodes]
            if self.sign > 0:
                gradient[split.weights] = w * (h - w @ h)
            else:
                gradient[split.weights] = w * (h - h[split.positive])
        return gradient


def _powered_sum(flat: np.ndarray, w: float) -> np.ndarray:
    """``w log sum_v exp(f / w)`` over the first axis; an impossible state counts for nothing where ``w > 0``, and makes
    the whole impossible where ``w < 0``.
    """
    scaled = flat / w
    top = scaled.max(axis=0)
    if w < 0 and (top == np.inf).any():
        scaled = np.where(top == np.inf, 0.0, scaled)
        inner = np.where(top == np.inf, 0.0, top)
        return np.where(top == np.inf, -np.inf, w * (np.log(np.exp(scaled - inner).sum(axis=0)) + inner))
    inner = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return w * (np.log(np.exp(scaled - inner).sum(axis=0)) + inner)


def covering(tables: Tables, order: np.ndarray, fits: Callable[[set[int]], bool], sign: int) -> Covering:
    """Split the buckets of `order` into mini-buckets whose variables satisfy `fits`; a single table always does.

    The largest tables come first, and each goes where it adds the fewest variables (Dechter and Rish 2003).
    """
    structure = tables.structure
    n, sizes = structure.n_variables, structure.cardinalities.tolist()
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    scopes = [structure.scope(f) for f in range(structure.n_factors)] + [(v,) for v in range(n)]
    ends = np.cumsum([0, *np.diff(structure.table_starts).tolist(), *sizes])
    hard = [bool((tables.theta[a:b] == -np.inf).any()) for a, b in itertools.pairwise(ends)]
    made = Covering(tables, sign)
    buckets: list[list[tuple[int, bool, tuple[int, ...]]]] = [[] for _ in range(n)]  # number, whether a factor, scope
    for f, scope in enumerate(scopes):
        buckets[min(scope, key=lambda u: rank[u])].append((f, True, scope))
    for v in order.tolist():
        members: list[tuple[set[int], list]] = []
        for item in sorted(buckets[v], key=lambda item: (-len(item[2]), item[1], item[0])):
            best = None
            for mini in members:
                grown = len(mini[0].union(item[2])) - len(mini[0])
                if (best is None or grown < best[0]) and fits(mini[0].union(item[2])):
                    best = (grown, mini)
            if best is None:
                members.append((set(item[2]), [item]))
            else:
                best[1][0].update(item[2])
                best[1][1].append(item)
        own = []
        for variables, items in members:
            scope = tuple(sorted(variables, key=lambda u: rank[u]))
            node = Node(scope, tuple(sizes[u] for u in scope), False, [], [])
            here = len(made.nodes)
            for number, is_factor, theirs in items:
                among = tuple(sizes[u] if u in theirs else 1 for u in scope)
                if is_factor:
                    turn = tuple(sorted(range(len(theirs)), key=lambda a, theirs=theirs: rank[theirs[a]]))
                    node.factors.append((number, turn, among))
                    node.hard |= hard[number]
                else:
                    node.children.append((number, among))
                    made.nodes[number].parent = here
                    node.hard |= made.nodes[number].hard
            made.nodes.append(node)
            own.append(here)
            if len(scope) > 1:
                buckets[scope[1]].append((here, False, scope[1:]))
        if len(own) > 1:
            _split(made, own)
    return made


def _split(made: Covering, own: list[int]) -> None:
    """Note a bucket of several mini-buckets: shifts are tables over what all of them have in common."""
    nodes = [made.nodes[i] for i in own]
    common, size = [], 1
    for u, states in zip(nodes[0].scope, nodes[0].shape, strict=True):
        if size * states <= _SHIFT and all(u in node.scope for node in nodes):
            common.append(u)
            size *= states
    if not common:  # the variable itself has more states than that
        common, size = [nodes[0].scope[0]], nodes[0].shape[0]
    shape = [tuple(s if u in common else 1 for u, s in zip(node.scope, node.shape, strict=True)) for node in nodes]
    axes = [tuple(a for a, u in enumerate(node.scope) if u not in common) for node in nodes]
    # an impossible state in a mini-bucket of negative weight would make the bound minus infinity
    positive = next((k for k, node in enumerate(nodes) if node.hard), 0)
    made.splits.append(_Split(own, shape, axes, size, made.dim, positive))
    made.dim += len(own) * (size + 1)
