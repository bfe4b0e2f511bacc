"""The incidence of tables and variables, over which messages run: what all algorithms of this kind share."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.graphical.messages.incidence_kernels import places_of_scopes
from cumulant.graphical.structure import Structure
from cumulant.sampling.chains import require_counts

LARGEST_SUM = (
    1e140  # of the absolute values of all entries, so that squares, and quotients by weights of 1e-12, are finite
)


class Incidence(NamedTuple):
    """Tables, nodes and the links between them, as flat arrays; the arguments of the kernels, in their order.

    A node is a variable (or, for region graphs, several variables together), a link says that a table is about a node.
    Links of table ``f`` are ``first[f] : first[f + 1]``.
    """

    table_starts: np.ndarray  # where each table begins in the array of all tables
    first: np.ndarray  # where the links of each table begin
    node: np.ndarray  # the node of each link
    factor: np.ndarray  # the table of each link
    node_starts: np.ndarray  # where the states of each node begin
    link_starts: np.ndarray  # where the links of each node begin in `links`
    links: np.ndarray  # the links of the nodes, one node after the other
    message_starts: np.ndarray  # where the message of each link begins
    place_starts: np.ndarray  # where the places of each link begin
    places: np.ndarray  # the state of the node of a link at each entry of its table

    @classmethod
    def of(cls, structure: Structure) -> "Incidence":
        """With the variables of a structure as nodes; made once for each structure."""
        if "incidence" not in structure.plans:
            sizes = np.diff(structure.table_starts)
            width = np.diff(structure.scope_starts)
            place_starts = starts_of(np.repeat(sizes, width))
            places = np.zeros(int(place_starts[-1]), dtype=np.int32)
            places_of_scopes(
                structure.cardinalities,
                structure.scope_starts,
                structure.scopes,
                structure.table_starts,
                place_starts,
                places,
            )
            structure.plans["incidence"] = cls.linked(
                structure.table_starts, structure.scope_starts, structure.scopes, structure.cardinalities, places
            )
        return structure.plans["incidence"]

    @classmethod
    def linked(cls, table_starts, first, node, node_sizes, places) -> "Incidence":
        """From tables, the nodes of their links, and the places of all links one after the other."""
        width = np.diff(first)
        order = np.argsort(node, kind="stable")
        return cls(
            np.ascontiguousarray(table_starts, dtype=np.int64),
            np.ascontiguousarray(first, dtype=np.int64),
            np.ascontiguousarray(node, dtype=np.int64),
            np.repeat(np.arange(width.size), width),
            starts_of(node_sizes),
            starts_of(np.bincount(node, minlength=node_sizes.size)),
            order.astype(np.int64),
            starts_of(node_sizes[node]),
            starts_of(np.repeat(np.diff(table_starts), width)),
            places,
        )

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return self.node_starts.size - 1

    @property
    def degrees(self) -> np.ndarray:
        """How many tables are about each node."""
        return np.diff(self.link_starts)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        """A flat array over the states of all nodes as one array for each node."""
        return np.split(flat, self.node_starts[1:-1]) if self.n_nodes else []


def is_forest(structure: Structure) -> bool:
    """Whether the factor graph, with a node for each variable and one for each factor, has no cycle."""
    n, factors = structure.n_variables + structure.n_factors, np.arange(structure.n_factors)
    if structure.scopes.size == 0:
        return True
    ends = structure.scopes, structure.n_variables + np.repeat(factors, np.diff(structure.scope_starts))
    graph = coo_array((np.ones(structure.scopes.size), ends), (n, n))
    return bool(connected_components(graph, directed=False)[0] == n - structure.scopes.size)


def tables_of(model: Any) -> tuple[Structure, np.ndarray, np.ndarray]:
    """The free variables of a model with their tables, as kernels take them, and their numbers in the model."""
    require_model(model)
    structure, theta, free = model.restricted()
    require_addable(theta)
    return structure, np.array(theta), free  # a copy: kernels are compiled once more for arrays that are read-only


def require_addable(theta: np.ndarray) -> None:
    """Refuse tables whose finite entries are so large that sums of them, divided by small weights, overflow."""
    largest = np.abs(theta, where=np.isfinite(theta), out=np.zeros(theta.size)).max(initial=0.0)
    if not largest < LARGEST_SUM / max(theta.size, 1):
        raise DomainError(
            f"theta has {theta.size} entries of up to {largest:.3g} in absolute value; "
            f"bounds need them to add up to less than {LARGEST_SUM:g}"
        )


def require_model(model: Any) -> None:
    """Refuse what is not a discrete model."""
    if isinstance(model, type) or not hasattr(model, "restricted"):
        raise TypeError(f"model must be a discrete model, such as Ising(edges, couplings); got {model!r:.60}")


def check_settings(**settings: Any) -> None:
    """Refuse settings of an iteration that make no sense: dampings, numbers of nats or tolerances, and else counts."""
    for name, value in settings.items():
        if name == "damping":
            if not 0.0 <= checks.number(name, value) < 1.0:
                raise ValueError(f"damping must be at least 0 and below 1; got {value!r}")
        elif name.endswith(("tol", "gap")):
            checks.not_negative(name, value)
        else:
            require_counts(**{name: (value, 0 if name == "max_trees" else 1)})


def ranges(begin: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """``begin, begin + 1, ..., begin + size - 1`` for each pair, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(int(sizes.sum())) + np.repeat(begin - (ends - sizes), sizes)


def normalise(logs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """``exp`` of logarithms, each piece between two `starts` divided by its sum."""
    if logs.size == 0:
        return logs.copy()
    sizes = np.diff(starts)
    weights = np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts[:-1]), sizes))
    return weights / np.repeat(np.add.reduceat(weights, starts[:-1]), sizes)


def starts_of(sizes: Any) -> np.ndarray:
    """Where pieces of these sizes begin, one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
