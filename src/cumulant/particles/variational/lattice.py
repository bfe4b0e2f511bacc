"""Ising models as two-block families: any graph that splits into two forests, with tied or free couplings."""

from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.blocked import acyclic_blocks
from cumulant.graphical.samplers.colouring import colouring
from cumulant.particles.bridges import magnitude_of
from cumulant.particles.variational import lattice_kernels as kernels
from cumulant.particles.variational.family import TwoBlockFamily

TYINGS = ("global", "sign", "edge")


class Forest(NamedTuple):
    """One block as a forest given the other one: see `lattice_kernels`."""

    nodes: np.ndarray  # numbers in the model, of this block and of the other one
    other_nodes: np.ndarray
    order: np.ndarray
    n_roots: int
    parent: np.ndarray
    link: np.ndarray
    starts: np.ndarray
    across: np.ndarray
    others: np.ndarray
    inner: np.ndarray  # edges inside of the other block
    inner_ends: np.ndarray

    @classmethod
    def of(cls, edges: np.ndarray, nodes: np.ndarray, other_nodes: np.ndarray) -> "Forest":
        """From the edges of a graph and the two blocks; a cycle inside of the first is refused."""
        size = nodes.size + other_nodes.size
        where, other = np.full(size, -1), np.full(size, -1)
        where[nodes], other[other_nodes] = np.arange(nodes.size), np.arange(other_nodes.size)
        graph = nx.Graph()
        graph.add_nodes_from(range(nodes.size))
        across: list[list[tuple[int, int]]] = [[] for _ in range(nodes.size)]
        inner = []
        for e, (i, j) in enumerate(edges.tolist()):
            if where[i] >= 0 and where[j] >= 0:
                graph.add_edge(int(where[i]), int(where[j]), number=e)
            elif where[i] < 0 and where[j] < 0:
                inner.append((e, other[i], other[j]))
            else:
                near, far = (i, j) if where[i] >= 0 else (j, i)
                across[where[near]].append((e, int(other[far])))
        if nodes.size and not nx.is_forest(graph):
            raise DomainError("each block must induce a forest: one of them has a cycle")
        below_roots, parent, link = [], np.full(nodes.size, -1), np.full(nodes.size, -1)
        roots = sorted(min(tree) for tree in nx.connected_components(graph))
        for root in roots:
            for above, below in nx.bfs_edges(graph, root):
                below_roots.append(below)
                parent[below], link[below] = above, graph.edges[above, below]["number"]
        flat = np.array([pair for each in across for pair in each], dtype=np.int64).reshape(-1, 2)
        inside = np.array(inner, dtype=np.int64).reshape(-1, 3)
        return cls(
            nodes,
            other_nodes,
            np.array([*roots, *below_roots], dtype=np.int64),
            len(roots),
            parent,
            link,
            np.concatenate([[0], np.cumsum([len(each) for each in across])]).astype(np.int64),
            np.ascontiguousarray(flat[:, 0]),
            np.ascontiguousarray(flat[:, 1]),
            np.ascontiguousarray(inside[:, 0]),
            np.ascontiguousarray(inside[:, 1:]),
        )


class IsingFamily(TwoBlockFamily):
    """An Ising model inside a family of Ising models on the same graph, from independent spins to the model.

    ``p(x; theta) = exp(sum_e theta_e x_i x_j + sum_i h_i x_i - c(theta))``. The fields ``h`` of the model are kept at
    every ``theta``; at the start all couplings are zero. Couplings ``theta_e = scale_e p_g(e)`` are tied into groups:

    * ``"global"``: one parameter. ``scale_e = J_e / max |J|``, target ``max |J|``;
    * ``"sign"``: one for the positive and one for the negative couplings, targets ``max |J|`` and ``-max |J|``;
    * ``"edge"``: one for each edge, target ``J_e``.

    Given one block, the other is a forest, which is summed out and drawn exactly in a pass up and a pass down
    (belief propagation on trees): ``log f_A`` and its derivatives are in closed form.

    Parameters
    ----------
    model : Ising
    tying : str
        ``"global"``, ``"sign"`` or ``"edge"``.
    blocks : str or pair of arrays
        ``"bipartite"``: two colours (a chequerboard), for bipartite graphs. ``"trees"``: two forests, found greedily.
        ``"auto"``: the first that the graph allows. Or the variables of ``A`` and those of ``B``.

    References
    ----------
    Carbonetto (2009), PhD thesis, sections 3.3.10 and 3.4; Hamze and de Freitas (2004) for trees.

    Examples
    --------
    >>> from cumulant.graphical import grid
    >>> family = IsingFamily(Ising(grid(2, 2), 0.5), tying="edge")
    >>> ones = np.ones((1, 2), np.int8)                       # both spins of A up: each spin of B has the field 1
    >>> family.block_values(ones, family.target).round(6), family.block_means(ones, family.target).round(4)
    (array([2.253856]), array([[0.7616, 0.7616, 0.7616, 0.7616]]))
    """

    def __init__(self, model: Ising, tying: str = "global", blocks: Any = "auto"):
        checks.instance("model", model, Ising, "an Ising model")
        checks.choice("tying", tying, TYINGS)
        if model.evidence:
            raise ValueError("model must have no evidence: make the model of the free spins, with its fields")
        if not len(model.edges):
            raise ValueError("model must have at least one edge")
        self.model, self.tying = model, tying
        self.edges, self.fields = np.ascontiguousarray(model.edges), np.array(model.fields)
        self.group, self.scale, self.target = _tied(model.couplings, tying)
        self.start = np.zeros(self.target.size)
        self.magnitude = magnitude_of(model)
        self.log_partition_at_start = float(np.sum(np.logaddexp(self.fields, -self.fields)))
        a, b = _blocks(model, blocks)
        self.forest_B, self.forest_A = Forest.of(self.edges, b, a), Forest.of(self.edges, a, b)

    @property
    def n_spins(self) -> int:
        """The number of spins."""
        return self.fields.size

    def couplings(self, theta: Any) -> np.ndarray:
        """``theta_e`` of each edge."""
        return self.scale * np.asarray(theta)[self.group]

    def member(self, theta: Any) -> Ising:
        """The member of the family at `theta`, as a model."""
        return Ising(self.edges, self.couplings(theta), self.fields)

    def begin(self, n, rng):
        """Independent spins in their fields."""
        x = np.where(rng.random((n, self.n_spins)) < 0.5 * (1.0 + np.tanh(self.fields)), 1, -1).astype(np.int8)
        return np.ascontiguousarray(x[:, self.forest_A.nodes]), np.ascontiguousarray(x[:, self.forest_B.nodes])

    def statistics(self, x_A, x_B):
        """Products of neighbours, gathered into groups."""
        out, number = np.empty((len(x_A), self.dim)), np.arange(len(self.edges))
        scratch = _spins(self.n_spins), _numbers(self.dim)
        kernels.pair_statistics(self.draws(x_A, x_B), self.edges, number, self.group, self.scale, *scratch, out)
        return out

    def draws(self, x_A, x_B):
        """The spins in the order of the model, ``(n, spins)``, int8."""
        for name, block, nodes in (("x_A", x_A, self.forest_A.nodes), ("x_B", x_B, self.forest_B.nodes)):
            if np.ndim(block) != 2 or np.shape(block)[1] != nodes.size:
                raise ValueError(f"{name} must have {nodes.size} spins in each row; got shape {np.shape(block)}")
        x = np.empty((len(x_A), self.n_spins), np.int8)
        x[:, self.forest_A.nodes], x[:, self.forest_B.nodes] = x_A, x_B
        return x

    def log_block(self, x_A, theta):
        """The same as `block_values`: there is no need to differentiate it."""
        return self.block_values(x_A, theta)

    def block_values(self, x_A, theta):
        """``log f_A``."""
        f, out = self.forest_B, np.empty(len(x_A))
        scratch = _spins(f.other_nodes.size), _numbers(f.order.size), np.empty(kernels.LANES)
        kernels.block_values(x_A, f, self.couplings(theta), self.fields, *scratch, out)
        return out

    def block_means(self, x_A, theta):
        """``E[t | x_A]``."""
        f, out = self.forest_B, np.empty((len(x_A), self.dim))
        scratch = _spins(f.other_nodes.size), *_numbers(2, f.order.size), _numbers(self.dim)
        kernels.block_means(x_A, f, self.couplings(theta), self.fields, self.group, self.scale, *scratch, out)
        return out

    def block_products(self, x_A, theta, vector):
        """``Cov[t | x_A] v``."""
        f, out = self.forest_B, np.empty((len(x_A), self.dim))
        along = self.couplings(vector)
        scratch = _spins(f.other_nodes.size), *_numbers(4, f.order.size), _numbers(self.dim)
        kernels.block_products(x_A, f, self.couplings(theta), self.fields, along, self.group, self.scale, *scratch, out)
        return out

    def sample_B(self, x_A, theta, rng):
        """The forest ``B`` given ``A``, from the leaves up and the roots down."""
        return self._draw(x_A, self.forest_B, theta, rng)

    def sample_A(self, x_B, theta, rng):
        """The forest ``A`` given ``B``."""
        return self._draw(x_B, self.forest_A, theta, rng)

    def _draw(self, given, f, theta, rng):
        out = np.empty((len(given), f.order.size), np.int8)
        scratch = _spins(f.other_nodes.size), _numbers(f.order.size), _numbers(2), _spins(f.order.size)
        seed = int(rng.integers(2**63))
        kernels.draw_block(given, f, self.couplings(theta), self.fields, seed, *scratch, out)
        return out


def _numbers(*shape: int) -> np.ndarray:
    """Scratch for the kernels, a column for each particle that is worked on."""
    return np.empty((*shape, kernels.LANES))


def _spins(n: int) -> np.ndarray:
    return np.empty((n, kernels.LANES), np.int8)


def _tied(couplings: np.ndarray, tying: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The group of each edge, its scale, and the target of each group."""
    m = couplings.size
    if tying == "edge":
        return np.arange(m), np.ones(m), np.array(couplings, dtype=np.float64)
    largest = float(np.abs(couplings).max())
    if largest == 0.0:
        raise ValueError(f"the couplings of model are all zero: there is nothing to tie by {tying!r}")
    if tying == "global":
        return np.zeros(m, np.int64), couplings / largest, np.array([largest])
    negative = couplings < 0
    signs, group = np.unique(negative, return_inverse=True)
    return group.astype(np.int64), np.abs(couplings) / largest, np.where(signs, -largest, largest)


def _blocks(model: Ising, blocks: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(blocks, str):
        checks.choice("blocks", blocks, ("auto", "bipartite", "trees"))
        found: list[np.ndarray] = []
        if blocks != "trees":
            colours = colouring(model.n_variables, model.edges)
            found = [np.flatnonzero(colours == c) for c in range(int(colours.max()) + 1)]
        if blocks == "trees" or (blocks == "auto" and len(found) > 2):
            found = [np.sort(each) for each in acyclic_blocks(model.structure)]
        if len(found) > 2:
            raise DomainError(
                f"the graph of the model does not split into two blocks by {blocks!r}: give blocks=(A, B), the "
                "variables of two forests"
            )
        found += [np.zeros(0, np.int64)] * (2 - len(found))
        return found[0], found[1]
    if not isinstance(blocks, tuple | list) or len(blocks) != 2:
        raise TypeError(f"blocks must be 'auto', 'bipartite', 'trees' or a pair of arrays; got {blocks!r:.60}")
    a, b = (checks.real_array("a block of blocks", each, ndim=1).astype(np.int64) for each in blocks)
    if not np.array_equal(np.sort(np.concatenate([a, b])), np.arange(model.n_variables)):
        raise ValueError(f"blocks must hold each of the {model.n_variables} variables once")
    return a, b


def as_family(model: Any, tying: str = "global") -> TwoBlockFamily:
    """The family of a model: as it is, or the Ising models on its graph."""
    if isinstance(model, TwoBlockFamily):
        return model
    checks.instance("model", model, Ising, "an Ising model or a TwoBlockFamily")
    return IsingFamily(model, tying)
