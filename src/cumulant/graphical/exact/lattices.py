"""Partition functions of lattices by other means than elimination: transfer matrix, Kac-Ward, and the torus."""

from typing import Any

import numpy as np
from scipy.sparse import csc_array, identity
from scipy.sparse.linalg import splu

from cumulant import checks
from cumulant.errors import DomainError, TooWide
from cumulant.graphical.exact.square_lattice import SquareLattice
from cumulant.graphical.exact.transfer_kernels import transfer
from cumulant.graphical.kaufman import Torus
from cumulant.graphical.pairwise import Ising
from cumulant.randomness import generator

__all__ = ["kac_ward", "torus_log_partition", "transfer_matrix", "transfer_matrix_means"]

_LARGEST = 1e300  # of all parameters together
_LARGEST_ERROR = 1e-6  # of log Z by a determinant, in nats, and of means by a transfer matrix
_ROUNDING = 2.0**-49  # of logarithms, relative to the sum of the couplings
_DENSE, _PROBES = 256, 4  # rows up to which the norm of an inverse is computed, and vectors that estimate it beyond


def transfer_matrix(model: Ising, rows: int, columns: int) -> float:
    """``log Z`` of an Ising model on ``grid(rows, columns)``, a cylinder or a torus by the transfer matrix.

    The vector over the ``2^columns`` states of the last spins of all columns is multiplied by one sparse factor for
    each spin (Kramers and Wannier 1941), in logarithms throughout, so that no temperature is too low. Where both sides
    are joined it is the trace: this is done for each state of the first row. Fields and couplings are any, and edges
    may come in any order. The lattice is turned where that takes less.

    The time grows as ``rows columns 2^columns``, and as ``rows columns 4^columns`` on a torus: 20 columns of a grid
    take some seconds, 10 of a torus too. At most 24, and 12 of a torus.

    >>> from cumulant.graphical import grid, torus
    >>> model = Ising(grid(3, 4), 0.3, 0.1)
    >>> bool(np.isclose(transfer_matrix(model, 3, 4), model.log_partition()))
    True
    >>> model = Ising(torus(3, 4), 0.3, 0.1)
    >>> bool(np.isclose(transfer_matrix(model, 3, 4), model.log_partition()))
    True
    """
    return _transfer(model, rows, columns, False)[0]


def transfer_matrix_means(model: Ising, rows: int, columns: int) -> tuple[float, np.ndarray]:
    """``log Z`` and the means ``E x_i`` of all spins, shape (rows, columns), by `transfer_matrix` forth and back.

    The vectors of all steps are kept, ``rows columns 2^columns`` numbers, and the time is about twice that of ``log Z``
    alone. At most 16 columns. Means come from differences of logarithms as large as all couplings together: they are
    refused where the rounding of these is above 1e-6 and above a thousandth of the smallest coupling or field.

    >>> from cumulant.graphical import grid
    >>> model = Ising(grid(3, 4), 0.3, np.linspace(-1, 1, 12))
    >>> log_z, means = transfer_matrix_means(model, 3, 4)
    >>> bool(np.allclose(means.ravel(), model.mean()[:12]))
    True
    """
    _check(model)
    sizes = np.abs(model.theta)[model.theta != 0]
    lost = _ROUNDING * float(np.sum(sizes))
    if lost > max(_LARGEST_ERROR, 1e-3 * float(np.min(sizes, initial=np.inf))):
        raise DomainError(
            f"couplings and fields from {sizes.min():.3g} to {sizes.max():.3g} leave too few digits of the means: ask "
            "model.mean()"
        )
    return _transfer(model, rows, columns, True)


def _transfer(model: Ising, rows: int, columns: int, with_means: bool) -> tuple[float, np.ndarray]:
    _check(model)
    rows, columns = checks.whole("rows", rows), checks.whole("columns", columns)
    if model.n_variables != rows * columns or model.evidence:
        raise ValueError(f"the model must have {rows} * {columns} spins and no evidence; it has {model.n_variables}")
    lattice = SquareLattice.of(model, rows, columns)
    if lattice is None:
        raise ValueError(f"the edges are not those of a grid or torus with {rows} rows and {columns} columns")
    fields = model.fields.reshape(rows, columns)
    turn = _transfer_bits(lattice.turned()) < _transfer_bits(lattice)
    if turn:
        lattice, fields = lattice.turned(), np.ascontiguousarray(fields.T)
    wide = _transfer_bits(lattice)
    if wide > 24 or lattice.shape[1] > (16 if with_means else 24):
        raise TooWide(
            f"a transfer matrix for {lattice.shape[1]} columns takes 2^{wide} numbers at each spin: ask log_partition, "
            "spin_glass_log_partition where there are no fields, or bound_log_partition for an interval"
        )
    r, c = lattice.shape
    kept = np.zeros(((r - 1) * c + 1 if with_means and r > 1 else 2, 1 << c))
    means = np.zeros((r, c))
    value = transfer(lattice.right, lattice.down, fields, lattice.joined_down, kept, np.zeros(1 << c), means)
    return float(value), means.T.copy() if turn else means


def _check(model: Any) -> None:
    """That it is an Ising model (others have couplings and fields too, of other statistics), of numbers that add up."""
    checks.instance("model", model, Ising, "an Ising model")
    if not np.sum(np.abs(model.theta) / _LARGEST) < 1.0:
        raise DomainError(f"couplings and fields must add up to less than {_LARGEST:g} in absolute value")


def _transfer_bits(lattice: SquareLattice) -> int:
    """The logarithm to base 2 of the entries that a step goes over."""
    return (2 if lattice.joined_down else 1) * lattice.shape[1]


def kac_ward(model: Ising, positions: Any) -> float:
    """``log Z`` of an Ising model without fields on a planar graph, in polynomial time.

    ``Z = 2^n prod cosh(J) sqrt(det(1 - T))``, with a row for each direction of an edge and ``T_ef = tanh(J_e)
    exp(i angle(e, f) / 2)`` where ``f`` goes on from the end of ``e`` without turning back (Kac and Ward 1952; proved
    for all planar graphs by Dolbilin and others 1999). It has no table that grows with the width.

    At low temperature and with frustration the determinant is a small difference of large products: where rounding may
    have moved the answer by more than 1e-6 it is refused with a `DomainError`. On square lattices, tori among them,
    `spin_glass_log_partition` is exact at any temperature.

    Parameters
    ----------
    model : Ising
        Without fields or evidence.
    positions : array (variables, 2)
        Where the spins lie in the plane; the edges must be straight lines that do not cross. This is the caller's word:
        only lines of no length and lines from one spin in the same direction are noticed.

    >>> from cumulant.graphical import grid
    >>> model = Ising(grid(3, 3), np.linspace(-1, 1, 12))
    >>> bool(np.isclose(kac_ward(model, [(i // 3, i % 3) for i in range(9)]), model.log_partition()))
    True
    """
    _check(model)
    where = checks.real_array("positions", positions)
    if where.shape != (model.n_variables, 2):
        raise ValueError(f"positions must have shape ({model.n_variables}, 2); got {where.shape}")
    if np.any(model.fields) or model.evidence:
        raise DomainError("the determinant of Kac and Ward is for models without fields and evidence")
    edges, place = np.unique(np.sort(model.edges, axis=1), axis=0, return_inverse=True)
    couplings = np.zeros(len(edges))  # those of an edge that is named twice add up
    np.add.at(couplings, place, model.couplings)
    ends = np.concatenate([edges, edges[:, ::-1]])
    weights = np.tile(np.tanh(couplings), 2)
    along = where[ends[:, 1]] - where[ends[:, 0]]
    angle = np.arctan2(along[:, 1], along[:, 0])
    order = np.lexsort((angle, ends[:, 0]))
    same = (np.diff(angle[order]) == 0) & (np.diff(ends[order, 0]) == 0)
    if not along.any(axis=1).all() or same.any():
        raise ValueError("positions must keep the edges apart: one has no length, or two leave a spin the same way")
    leaving: list[list[int]] = [[] for _ in range(model.n_variables)]
    for e, (start, _) in enumerate(ends.tolist()):
        leaving[start].append(e)
    m = len(edges)
    pairs = [(e, f) for e in range(2 * m) for f in leaving[ends[e, 1]] if f != (e + m) % (2 * m)]
    total = model.n_variables * np.log(2.0) + np.sum(np.logaddexp(couplings, -couplings) - np.log(2.0))
    if not pairs:
        return float(total)
    e, f = np.array(pairs).T
    turn = (angle[f] - angle[e] + np.pi) % (2 * np.pi) - np.pi
    matrix = csc_array(identity(2 * m)) - csc_array((weights[e] * np.exp(0.5j * turn), (e, f)), (2 * m, 2 * m))
    logs, error = _log_determinant(csc_array(matrix), 2 * m)
    if not error <= _LARGEST_ERROR:
        raise DomainError(
            f"couplings of up to {np.abs(couplings).max():.3g} with frustration leave too few digits of the "
            f"determinant (an error of {error:.1g} in log Z): ask log_partition, or bound_log_partition for an interval"
        )
    return float(total + 0.5 * logs)


def _log_determinant(matrix: csc_array, n: int) -> tuple[float, float]:
    """``log |det M|`` of a matrix of `n` rows, and what rounding may have done to half of it.

    ``|d log det M| <= |M^-1|_F |dM|_F``, where ``|dM| <= c eps |L||U|`` for an elimination with at most ``c`` entries
    in a row (Higham 2002, theorem 9.3). Above some size both norms are estimated by random signs, and twice their
    product is taken.
    """
    try:
        factors = splu(matrix)
    except RuntimeError:  # exactly singular
        return -np.inf, np.inf
    probes = np.eye(n) if n <= _DENSE else generator(0).choice([-1.0, 1.0], (n, _PROBES)) / np.sqrt(_PROBES)
    inverse = float(np.linalg.norm(factors.solve(probes.astype(complex))))
    lower, upper = factors.L.tocsr(), factors.U
    product = float(np.linalg.norm(abs(lower) @ (abs(upper) @ probes))) + float(np.linalg.norm(matrix.data))
    error = 4.0 * 2.0**-53 * (np.diff(lower.indptr).max() + 8.0) * inverse * product
    return float(np.log(np.abs(upper.diagonal())).sum()), error


def torus_log_partition(rows: int, columns: int, couplings: Any) -> float:
    """``log Z`` of the Ising model on ``torus(rows, columns)`` without fields, by Kaufman's formula.

    `couplings` is one number, or two: across (within rows) and down. See `Torus.log_partition`, which also bounds the
    rounding, as `bound_log_partition` of such a model does.

    >>> from cumulant.graphical import torus
    >>> bool(np.isclose(torus_log_partition(3, 4, 0.4), Ising(torus(3, 4), 0.4).log_partition(method="elimination")))
    True
    """
    rows, columns = checks.whole("rows", rows, 3), checks.whole("columns", columns, 3)
    both = checks.real_array("couplings", couplings)
    if both.shape not in ((), (2,)) or not np.all(np.abs(both) < 1e300):
        raise ValueError(f"couplings must be one number, or two (across, down), below 1e300; got {couplings}")
    across, down = np.broadcast_to(both, 2).tolist()
    return Torus(rows, columns, across, down).log_partition()[0]
