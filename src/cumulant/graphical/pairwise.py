"""Pairwise models as makers over `DiscreteModel`: Ising, Potts, Boltzmann machines and general pairwise tables."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

from cumulant import checks
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.graphical.graphs import undirected
from cumulant.graphical.kaufman import torus_answer, torus_of
from cumulant.graphical.labels import Labels
from cumulant.graphical.structure import Structure


class _PairModel(DiscreteModel):
    """A field for each variable and a coupling for each edge; ``theta`` is the fields and then the couplings."""

    edges: np.ndarray
    _n_states: int
    _arguments = ("couplings", "fields")  # what a user calls them

    def _make(
        self, edges: Any, couplings: Any, fields: Any, n_states: int, values, single, pair, names, states
    ) -> None:
        """`single` (states, fields of a variable) and `pair` (states^2,) are the statistics at each state."""
        of_edges, of_variables = self._arguments
        edges = edge_array(edges)
        per = single.shape[1]
        fields = _fields(of_variables, fields, edges, per)
        n = fields.shape[0]
        if edges.size and edges.max() >= n:
            raise ValueError(
                f"edges must join variables from 0 to {n - 1}, as there are {n} {of_variables}; got {edges.max()}"
            )
        couplings = checks.real_array(of_edges, couplings)
        if couplings.ndim == 0:
            couplings = np.full(len(edges), couplings)
        if couplings.shape != (len(edges),):
            raise ValueError(
                f"{of_edges} must be one number, or one for each of {len(edges)} edges; got {couplings.shape}"
            )
        self.edges, self._n_states = edges, n_states
        labels = Labels.of([n_states] * n, names, states, values)
        self._bind(_pair_family(n, edges, n_states, labels, single, pair), np.concatenate([fields.ravel(), couplings]))

    @property
    def fields(self) -> np.ndarray:
        """The field of each variable."""
        return self.theta[: self.family.dim - len(self.edges)]

    @property
    def couplings(self) -> np.ndarray:
        """The coupling of each edge."""
        return self.theta[self.family.dim - len(self.edges) :]

    def _all_marginals(self, found: list[np.ndarray]) -> np.ndarray:
        return np.array(super()._all_marginals(found)).reshape(self.n_variables, self._n_states)

    def to_factor_graph(self) -> FactorGraph:
        """The same distribution with its tables written out, states 0, 1, 2, ..., under the same names."""
        labels = replace(self.labels, values=None)
        new = FactorGraph.from_flat(self.structure, self.family.log_tables(self.theta), labels)
        new._evidence = dict(self._evidence)
        return new

    def _description(self):
        return {}, {"edges": self.edges}

    @classmethod
    def from_networkx(cls, graph: Any, coupling: Any = "weight", field: Any = "field", **settings: Any) -> Self:
        """From an undirected networkx graph with nodes 0, ..., n - 1, or names: attributes of edges and nodes, or
        numbers for all.
        """
        graph = undirected(graph)
        n = graph.number_of_nodes()
        if n and all(isinstance(node, str) for node in graph):
            settings = {"names": list(graph), **settings}
            graph = nx.relabel_nodes(graph, {name: v for v, name in enumerate(graph)})
        if set(graph) != set(range(n)):
            raise ValueError(
                f"the nodes of graph must be the numbers from 0 to {n - 1}, or strings; got {list(graph)!r:.80}"
            )
        pairs = sorted((min(e), max(e)) for e in graph.edges)
        couplings = [_attribute(graph.edges[e], coupling, f"edge {e}") for e in pairs]
        fields = [_attribute(graph.nodes[v], field, f"node {v}") for v in range(n)]
        return cls._of(np.array(pairs, dtype=np.int64).reshape(-1, 2), couplings, fields, settings)

    @classmethod
    def from_pandas(
        cls, edges: Any, fields: Any = None, *, source="source", target="target", coupling="coupling", **settings: Any
    ) -> Self:
        """From a data frame with a row for each edge, and, if given, a series of fields.

        Variables that are strings become names, in the order of the index of `fields` or of their appearance.
        """
        for column in (source, target, coupling):
            if column not in edges:
                raise ValueError(f"edges has no column {column!r}; it has {list(edges.columns)}")
        pairs = np.stack([edges[source].to_numpy(), edges[target].to_numpy()], axis=1)
        if pairs.size and all(isinstance(name, str) for name in pairs.ravel()):
            names = list(dict.fromkeys(pairs.ravel().tolist() if fields is None else list(fields.index)))
            unknown = [name for name in pairs.ravel() if name not in names]
            if unknown:
                raise ValueError(f"edges name the variable {unknown[0]!r}, which has no field")
            settings = {"names": names, **settings}
            pairs = np.array([[names.index(v) for v in pair] for pair in pairs], dtype=np.int64)
        return cls._of(pairs, edges[coupling].to_numpy(), None if fields is None else np.asarray(fields), settings)

    @classmethod
    def _of_description(cls, settings: dict, arrays: dict) -> Self:
        edges, theta = arrays["edges"], arrays["theta"]
        if theta.ndim != 1 or edges.ndim != 2 or theta.size < len(edges):
            raise ValueError("its arrays do not fit together")
        return cls._of(edges, theta[theta.size - len(edges) :], theta[: theta.size - len(edges)], settings)

    @classmethod
    def _of(cls, edges, couplings, fields, settings) -> Self:
        return cls(edges, couplings, fields, **settings)  # type: ignore[call-arg]


class Ising(_PairModel):
    """Spins -1 and +1: ``p(x) = exp(sum_ij J_ij x_i x_j + sum_i h_i x_i - A)``, each edge counted once.

    ``theta`` is the fields and then the couplings, ``T(x)`` the spins and then their products: a minimal family.
    On a torus with one coupling in each direction and no fields `log_partition`, `mean` and `entropy` are in closed
    form, at any size: see `torus_log_partition`. Random couplings without fields on a square lattice that is too wide
    for elimination are summed exactly by `spin_glass_log_partition`.

    Parameters
    ----------
    edges : pairs of variables, shape (edges, 2)
    couplings : number or array
        ``J`` for each edge, or one for all.
    fields : number or array, optional
        ``h`` for each spin; zero, for as many spins as the edges name, without it.
    names, states : sequences of str, optional
        What the spins are called, and their two states, -1 first.

    Examples
    --------
    >>> model = Ising([(0, 1)], 0.5, [0.2, 0.0])
    >>> bool(np.isclose(model.log_partition(), np.log(4 * np.cosh(0.5) * np.cosh(0.2))))
    True
    >>> model.marginals().round(4)                 # p(-1), p(+1)
    array([[0.4013, 0.5987],
           [0.4544, 0.5456]])
    >>> model.log_prob([1, -1]) < model.log_prob([1, 1])
    np.True_
    """

    def __init__(self, edges: Any, couplings: Any, fields: Any = None, *, names: Any = None, states: Any = None):
        spins = np.array([[-1.0], [1.0]])
        self._make(edges, couplings, fields, 2, (-1, 1), spins, np.outer(spins, spins).ravel(), names, states)

    def site_fields(self, x: Any) -> np.ndarray:
        """``h_i + sum_j J_ij x_j``, the field that spin ``i`` feels where its neighbours are as in `x`: half of the
        log-odds of ``x_i = +1`` given the rest, of states ``(..., spins)``.

        >>> model = Ising([(0, 1), (1, 2)], [0.5, -0.3], [0.4, 0.3, -0.5])
        >>> model.site_fields([1, -1, 1])
        array([-0.1,  0.5, -0.2])
        """
        spins = self.family.values(self.family.states(x)).astype(np.float64)
        n, ends = self.n_variables, np.concatenate([self.edges, self.edges[:, ::-1]]).T
        neighbours = csr_array((np.tile(self.couplings, 2), (ends[0], ends[1])), (n, n))
        return self.fields + (neighbours @ spins.reshape(-1, n).T).T.reshape(spins.shape)

    def _answer(self, method: str | None, question: str, options: dict) -> tuple[float, list[np.ndarray], np.ndarray]:
        torus = torus_of(self) if method is None and not options else None
        return super()._answer(method, question, options) if torus is None else torus_answer(self, torus)


class BoltzmannMachine(_PairModel):
    """Units 0 and 1: ``p(x) = exp(sum_ij W_ij x_i x_j + sum_i b_i x_i - A)``, each edge counted once.

    Parameters are as those of `Ising`: `weights` for each edge, and `biases`; `names` and `states`.

    Examples
    --------
    >>> model = BoltzmannMachine([(0, 1)], 1.0, [0.0, -1.0])
    >>> bool(np.isclose(model.log_partition(), np.log(3 + np.exp(-1))))
    True
    """

    _arguments = ("weights", "biases")

    def __init__(self, edges: Any, weights: Any, biases: Any = None, *, names: Any = None, states: Any = None):
        units = np.array([[0.0], [1.0]])
        self._make(edges, weights, biases, 2, None, units, np.outer(units, units).ravel(), names, states)


class Potts(_PairModel):
    """``q`` colours: ``p(x) = exp(sum_ij J_ij [x_i = x_j] + sum_i h_i(x_i) - A)``.

    Parameters
    ----------
    edges, couplings
        As for `Ising`.
    fields : array of shape (variables, q), optional
        Zero, for as many variables as the edges name, without it.
    n_states : int
        The number of colours ``q``; that of `fields` where these are given.
    names, states : sequences of str, optional
        What variables and colours are called.

    Examples
    --------
    >>> model = Potts([(0, 1)], 1.0, n_states=3)
    >>> bool(np.isclose(model.log_partition(), np.log(3 * np.e + 6)))
    True
    """

    def __init__(
        self,
        edges: Any,
        couplings: Any,
        fields: Any = None,
        *,
        n_states: int | None = None,
        names: Any = None,
        states: Any = None,
    ):
        if fields is not None:
            fields = checks.real_array("fields", fields)
            q = "q" if n_states is None else checks.whole("n_states", n_states)
            if fields.ndim != 2 or q not in ("q", fields.shape[1]):
                raise ValueError(f"fields must have shape (variables, {q}); got {fields.shape}")
            n_states = fields.shape[1]
        self.n_states = checks.whole("n_states", n_states)
        colours = np.eye(self.n_states)
        self._make(edges, couplings, fields, self.n_states, None, colours, colours.ravel(), names, states)

    def _description(self):
        return {"n_states": self.n_states}, {"edges": self.edges}

    @classmethod
    def _of(cls, edges, couplings, fields, settings) -> Self:
        n_states = int(settings["n_states"])
        fields = None if fields is None else np.reshape(fields, (-1, n_states))
        return cls(edges, couplings, fields, **{**settings, "n_states": n_states})


class PairwiseMRF(FactorGraph):
    """Tables for single variables and for pairs: ``log p(x) = sum_i theta_i(x_i) + sum_ij theta_ij(x_i, x_j) - A``.

    Parameters
    ----------
    fields : sequence of arrays
        ``theta_i``, one entry for each state: says how many states a variable has.
    edges : pairs of variables
    tables : sequence of arrays
        ``theta_ij`` for each edge, shape (states of i, states of j).
    names, states
        As for `FactorGraph`.

    Examples
    --------
    >>> model = PairwiseMRF([[0.0, 0.0], [0.0, 1.0, 0.0]], [(0, 1)], [[[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> [p.round(3) for p in model.marginals()]
    [array([0.5, 0.5]), array([0.289, 0.422, 0.289])]
    """

    def __init__(
        self,
        fields: Sequence[Any],
        edges: Any = (),
        tables: Iterable[Any] = (),
        *,
        names: Any = None,
        states: Any = None,
    ):
        single = [np.asarray(field, dtype=np.float64) for field in fields]
        pairs, both = edge_array(edges), list(tables)
        if len(pairs) != len(both):
            raise ValueError(f"tables must have one table for each of the {len(pairs)} edges; got {len(both)}")
        if any(field.ndim != 1 or field.size < 1 for field in single):
            raise ValueError("fields must be one list of numbers for each variable, one for each of its states")
        factors = [((i,), field) for i, field in enumerate(single)]
        factors += [((int(i), int(j)), table) for (i, j), table in zip(pairs, both, strict=True)]
        super().__init__([field.size for field in single], factors, names=names, states=states)

    @property
    def edges(self) -> np.ndarray:
        """The pairs that have a table, shape (edges, 2)."""
        starts = self.structure.scope_starts
        first = starts[:-1][np.diff(starts) == 2]
        return self.structure.scopes[first[:, None] + np.arange(2)]


def _pair_family(n, edges, n_states, labels, single, pair) -> DiscreteFamily:
    m, per = len(edges), single.shape[1]
    starts = np.concatenate([np.arange(n), n + 2 * np.arange(m + 1)])
    structure = Structure.flat(np.full(n, n_states), starts, np.concatenate([np.arange(n), edges.ravel()]))
    of_single, of_pair = np.argwhere(single != 0), np.flatnonzero(pair)
    rows = [
        (n_states * np.arange(n)[:, None] + of_single[:, 0]).ravel(),
        (n * n_states + pair.size * np.arange(m)[:, None] + of_pair).ravel(),
    ]
    columns = [(per * np.arange(n)[:, None] + of_single[:, 1]).ravel(), np.repeat(n * per + np.arange(m), of_pair.size)]
    data = [np.tile(single[tuple(of_single.T)], n), np.tile(pair[of_pair], m)]
    shape = (n * n_states + m * pair.size, n * per + m)
    design = csr_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape)
    return DiscreteFamily(structure, design, labels)


def edge_array(edges: Any) -> np.ndarray:
    """Pairs of different variables, or the edges of a networkx graph, as an array of shape (edges, 2)."""
    if isinstance(edges, nx.Graph):
        edges = list(edges.edges)
    array = checks.array("edges", edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            "edges must be pairs of variables numbered from 0, whole numbers of shape (edges, 2); "
            f"got {array.dtype} of shape {array.shape}"
        )
    if array.min() < 0 or (array[:, 0] == array[:, 1]).any():
        raise ValueError("edges must join two different variables, numbered from 0")
    return array.astype(np.int64)


def _fields(name: str, fields: Any, edges: np.ndarray, per: int) -> np.ndarray:
    array = checks.real_array(name, 0.0 if fields is None else fields)
    if array.ndim == 0:
        return np.full((int(edges.max()) + 1 if edges.size else 0, per), array)
    if array.shape[1:] != (() if per == 1 and array.ndim == 1 else (per,)):
        raise ValueError(f"{name} must have one number for each variable; got shape {array.shape}")
    return array.reshape(-1, per)


def _attribute(attributes: dict, wanted: Any, where: str) -> float:
    if not isinstance(wanted, str):
        return float(wanted)
    if wanted not in attributes:
        if wanted == "field":
            return 0.0
        raise ValueError(f"{where} of graph has no attribute {wanted!r}")
    return float(attributes[wanted])
