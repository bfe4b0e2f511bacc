"""The nearest model that provably mixes fast: Euclidean projection of couplings and tables onto norm balls."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cumulant import checks
from cumulant.certificates import Certificate, Subject, by_construction, check, issuer, rounding
from cumulant.graphical.mixing.certificates import dependency_norm
from cumulant.graphical.mixing.dependency import dependency_matrix, pair_tables
from cumulant.graphical.mixing.dual_projection import Nearest
from cumulant.graphical.mixing.row_sum_projection import nearest_row_sums, row_sum_dual
from cumulant.graphical.mixing.spectral_projection import dual_value, nearest_weights
from cumulant.graphical.mixing.table_projection import Tables, nearest_tables, table_dual
from cumulant.graphical.pairwise import Ising, PairwiseMRF, edge_array

_NORMS = ("spectral", "one", "inf")


@dataclass(frozen=True)
class Projection:
    """The answer of `project`.

    Attributes
    ----------
    model : Ising or PairwiseMRF
        The nearest model in the set; it is in the set whatever the gap.
    value : float
        Half the squared distance from the model that was given, over couplings or entries of tables.
    certificate : Certificate
        How far `value` can be above the smallest one: a duality gap. Half the squared distance between `model`
        and the true projection is no larger.
    radius, norm
        The set.
    multipliers : array
        What proves the lower bound: a point of the dual problem.
    given : Ising or PairwiseMRF
        The model that was projected.
    """

    model: Any
    value: float
    certificate: Certificate
    radius: float
    norm: str
    multipliers: np.ndarray = field(repr=False)
    given: Any = field(repr=False)

    @property
    def subject(self) -> Subject:
        """What the certificate speaks of: ``projection.certificate.verify(projection.subject)`` issues it again."""
        return Subject(self.given, self)

    @property
    def relative_gap(self) -> float:
        """The certified gap over `value`; zero where the model was in the set already."""
        return self.certificate.upper / self.value if self.value > 0 else 0.0


def project(model: Any, radius: float = 0.9, *, norm: str = "spectral", tol: float = 1e-8) -> Projection:
    """The nearest model whose linear dependency matrix has ``norm(R) <= radius``; with ``radius < 1`` it mixes fast.

    For spins ``R_ij = |J_ij|`` and the distance is over couplings; for tables ``R_ij`` is half of
    ``max_a range_b theta_ij(a, b)`` and it is over all their entries (tables of the same pair are added up first).
    Fields are left alone: no mixing bound depends on them. A model inside the set is returned as it is.

    Parameters
    ----------
    model : Ising or PairwiseMRF
    radius : float
        Positive; below 1 for a chain that is certain to mix.
    norm : str
        ``"spectral"``, ``"one"`` or ``"inf"``.
    tol : float
        The duality gap asked for, relative to the half squared distance.

    Returns
    -------
    Projection

    Examples
    --------
    >>> from cumulant.graphical import Ising, complete
    >>> nearest = project(Ising(complete(3), 1.0), radius=0.9)
    >>> nearest.model.couplings.round(6)
    array([0.45, 0.45, 0.45])
    >>> nearest.model.mixing_time(0.01, norm="inf").bound
    110.0

    References
    ----------
    Domke and Liu (2013), "Projecting Ising model parameters for fast mixing"; Liu and Domke (2014), "Projecting Markov
    random field parameters for fast mixing".
    """
    if getattr(model, "_evidence", None):
        raise ValueError("project takes a model without evidence: project it first, then condition on the evidence")
    if isinstance(model, Ising):
        pairs, couplings = _distinct(model.edges, model.couplings, model.n_variables)
        nearest, point = _couplings(pairs, couplings, model.n_variables, radius, norm, tol)
        new: Any = Ising(pairs, point, model.fields)
    elif isinstance(model, PairwiseMRF):
        tables = _tables_of(model)
        nearest = nearest_tables(tables, _radius(radius), _norm(norm), tol=tol)
        new = PairwiseMRF(_fields_of(model), tables.edges, _split(tables, nearest.point))
    else:
        raise TypeError(f"project takes an Ising or a PairwiseMRF model; got {type(model).__name__}")
    uncertified: Any = None
    found = Projection(new, nearest.value, uncertified, float(radius), norm, nearest.multipliers, model)
    return replace(found, certificate=certify_projection(model, found))


def project_box(model: Any, bound: float) -> Ising:
    """The nearest Ising model with ``|J_ij| <= bound``: each coupling clipped.

    Where the largest degree is ``D`` this mixes fast if ``D tanh(bound) < 1`` (``mixing_time(norm="degree")``).

    >>> from cumulant.graphical import Ising
    >>> project_box(Ising([(0, 1), (1, 2)], [0.5, -0.1]), 0.2).couplings
    array([ 0.2, -0.1])
    """
    if not isinstance(model, Ising):
        raise TypeError(f"project_box takes an Ising model; got {type(model).__name__}")
    bound = _radius(bound, "bound")
    pairs, couplings = _distinct(model.edges, model.couplings, model.n_variables)
    return Ising(pairs, np.clip(couplings, -bound, bound), model.fields)


def project_couplings(
    edges: Any, couplings: Any, radius: float = 0.9, *, norm: str = "spectral", n: int | None = None, tol: float = 1e-8
) -> np.ndarray:
    """The couplings of `project`, for edges that are distinct pairs: what a solver calls in each step.

    >>> project_couplings([(0, 1), (0, 2)], [3.0, -1.0], 1.0).round(6)
    array([ 0.948683, -0.316228])
    """
    edges, couplings = edge_array(edges), checks.real_array("couplings", couplings, finite=False)
    if couplings.shape != (len(edges),):
        raise ValueError(f"couplings must have one number for each of {len(edges)} edges; got shape {couplings.shape}")
    if not np.isfinite(couplings).all():
        raise ValueError("couplings must be finite")
    n = int(edges.max(initial=-1)) + 1 if n is None else n
    return _couplings(edges, couplings, n, radius, norm, tol)[1]


def project_tables(
    edges: Any, tables: Any, radius: float = 0.9, *, norm: str = "spectral", tol: float = 1e-8
) -> list[np.ndarray]:
    """The tables of `project`, for edges that are distinct pairs.

    >>> [t] = project_tables([(0, 1)], [[[1.0, -1.0], [-1.0, 1.0]]], 0.5)
    >>> t.round(6)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    edges, each = edge_array(edges), [checks.real_array("a table of tables", t, finite=False) for t in tables]
    if len(each) != len(edges) or any(t.ndim != 2 or not np.isfinite(t).all() for t in each):
        raise ValueError(f"tables must be one finite table with two axes for each of the {len(edges)} edges")
    flat = _pack(edges, each, int(edges.max(initial=-1)) + 1)
    return _split(flat, nearest_tables(flat, _radius(radius), _norm(norm), tol=tol).point)


def _couplings(edges, couplings, n, radius, norm, tol) -> tuple[Nearest, np.ndarray]:
    """Signs are kept: the constraint sees absolute values only."""
    solve = nearest_weights if _norm(norm) == "spectral" else nearest_row_sums
    nearest = solve(edges, np.abs(couplings), n, _radius(radius), tol=tol)
    return nearest, np.copysign(nearest.point, couplings) * (nearest.point > 0)


@issuer
def certify_projection(model: Any, projection: Projection) -> Certificate:
    """The objective at the projected model minus the dual at its multipliers, both from the model that was given.

    No multipliers give a dual above the smallest distance, whatever they are; a distance is not negative either.
    """
    radius, norm, multipliers = projection.radius, projection.norm, projection.multipliers
    inside = dependency_norm(dependency_matrix(projection.model, "linear"), norm)
    allowed = 1e-9 if norm != "spectral" or model.n_variables <= 400 else 1e-4  # the width of a bound on the norm
    mass = multipliers
    if isinstance(model, Ising):
        pairs, couplings = _distinct(model.edges, model.couplings, model.n_variables)
        squares = (projection.model.couplings - couplings) ** 2
        dual = (dual_value if norm == "spectral" else row_sum_dual)(pairs, np.abs(couplings), radius, multipliers)
    else:
        given = _tables_of(model)
        squares = (given.flat - _tables_of(projection.model).flat) ** 2
        inactive = norm == "spectral" and projection.value == 0.0  # its multipliers are logarithms
        mass = np.exp(np.clip(multipliers, -100.0, 100.0)) if norm == "spectral" and not inactive else multipliers
        dual = 0.0 if inactive else table_dual(given, radius, norm, multipliers)
    value, lower = 0.5 * float(squares.sum()), max(dual, 0.0)
    terms = squares.size + multipliers.size + 16.0
    return Certificate(
        "1/2 |theta - given|^2 - min over the set",
        max(value - lower, 0.0),
        "Lagrangian duality with a multiplier of rank one: the norm of a non-negative matrix is its Perron root"
        if norm == "spectral"
        else "Lagrangian duality, one multiplier for each row",
        (
            check(
                inside <= radius * (1.0 + allowed),
                f"the {norm} norm is at most {radius:g}, to within {allowed:g} of it",
                f"computed: {inside:.9g}",
            ),
            by_construction("the point is feasible: Z y <= radius y for a positive y, to the last bit"),
        ),
        slack=0.0 if value == 0.0 else rounding(value, lower, 2.0 * radius * float(np.abs(mass).sum()), terms=terms),
        details={"value": value, "lower bound": lower},
    )


def _distinct(edges: np.ndarray, couplings: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Each pair once, in the order given; couplings of an edge named twice are added."""
    low, high = edges.min(axis=1, initial=n), edges.max(axis=1, initial=-1)
    code, first, place = np.unique(low * max(n, 1) + high, return_index=True, return_inverse=True)
    if code.size == len(edges):
        return edges, np.asarray(couplings)
    order = np.argsort(first)
    total = np.bincount(place, couplings, code.size)
    return edges[first[order]], total[order]


def _tables_of(model: PairwiseMRF) -> Tables:
    pairs, each = [], []
    for edges, tables in pair_tables(model):
        pairs.append(edges)
        each += list(tables)
    return _pack(np.concatenate([*pairs, np.zeros((0, 2), np.int64)]), each, model.n_variables)


def _pack(edges: np.ndarray, each: list[np.ndarray], n: int) -> Tables:
    shapes = np.array([t.shape for t in each], dtype=np.int64).reshape(-1, 2)
    return Tables(edges, shapes, np.concatenate([*(t.ravel() for t in each), np.zeros(0)]), n)


def _split(tables: Tables, flat: np.ndarray) -> list[np.ndarray]:
    return [flat[a:b].reshape(s) for (a, b), s in zip(pairwise(tables.starts), tables.shapes, strict=True)]


def _fields_of(model: PairwiseMRF) -> list[np.ndarray]:
    fields = [np.zeros(int(q)) for q in model.cardinalities]
    for scope, table in model.factors:
        if len(scope) == 1:
            fields[scope[0]] = fields[scope[0]] + table
    return fields


def _radius(radius: float, name: str = "radius") -> float:
    return float(checks.positive(name, radius))


def _norm(norm: str) -> str:
    checks.choice("norm", norm, _NORMS)
    return norm
