"""Functions to minimise, with their constants: any JAX function, least squares, quadratics.

Classification losses are in `margin_problems` and `multinomial`, penalised problems in `composite`, and likelihoods in
`cumulant.optim.problems.likelihoods`. Every problem is a frozen dataclass and a pytree: its arrays are
leaves. Its `value` and `gradient` take NumPy (then computed in float64) or JAX arrays, and work under `jit`.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from cumulant.optim.problems.sparse_matrix import (
    SparseMatrix,
    column_squares,
    host_matrix,
    row_squares,
    singular_values,
)
from cumulant.optim.protocol import Problem
from cumulant.precision import any_tracer, precise
from cumulant.pytrees import pytree

__all__ = ["LeastSquares", "Objective", "Quadratic", "problem_type", "widen"]


@dataclass_transform(frozen_default=True, eq_default=False)
def problem_type(cls: type) -> type:
    """Class decorator: a frozen dataclass and a pytree; fields made by `static` are settings, the rest leaves.

    What JAX puts together again is not validated a second time: its leaves may be tracers, placeholders, or a stack
    of many problems on its way through `vmap`.
    """
    return pytree(dataclasses.dataclass(frozen=True, eq=False)(cls))


def static(default: Any = dataclasses.MISSING) -> Any:
    """A field that is part of the compiled program: a function, a name, a flag."""
    return dataclasses.field(default=default, metadata={"static": True})


def widen(tree: Any) -> Any:
    """The same problem on NumPy arrays in float64: what certificates are computed from."""

    def wide(leaf):
        if isinstance(leaf, jax.Array | np.ndarray | np.generic):
            array = np.asarray(leaf)
            return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array
        return leaf

    widened = jax.tree.map(wide, tree)
    # A problem that is wide already is returned as it is, with the singular values it has computed.
    unchanged = all(a is b for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(widened), strict=True))
    return tree if unchanged else widened


def is_concrete(*values: Any) -> bool:
    """Whether values can be looked at: a problem may also be made from tracers, inside `jit`."""
    known = jax.Array | np.ndarray | np.generic | float | int | list | tuple | SparseMatrix
    return all(isinstance(value, known) or sparse.issparse(value) for value in values) and not any_tracer(values)


def array(value: Any, name: str, ndim: int) -> Any:
    """An array of finite floats with so many axes; NumPy in float64 unless it is a JAX array."""
    if not isinstance(value, jax.Array):
        value = np.asarray(value)
        if value.dtype.kind not in "biuf":
            raise TypeError(f"{name} must be an array of real numbers; got dtype {value.dtype}")
        value = value.astype(np.float64)
    if value.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} {'axis' if ndim == 1 else 'axes'}; got shape {value.shape}")
    if not np.all(np.isfinite(np.asarray(value))):
        raise ValueError(f"{name} must be finite; it holds NaN or infinity")
    return value


def matrix(value: Any, name: str) -> Any:
    """A matrix of finite floats with at least one entry: an array as above, or a `SparseMatrix` from SciPy's."""
    if isinstance(value, SparseMatrix) or sparse.issparse(value):
        if not isinstance(value, SparseMatrix):
            if value.dtype.kind not in "biuf" or value.ndim != 2:
                raise TypeError(
                    f"{name} must be a matrix of real numbers; got {value.ndim} axes of dtype {value.dtype}"
                )
            value = SparseMatrix.of(value)
        if not np.all(np.isfinite(np.asarray(value.data))):
            raise ValueError(f"{name} must be finite; it holds NaN or infinity")
    else:
        value = array(value, name, 2)
    if 0 in value.shape:
        raise ValueError(f"{name} must not be empty; got shape {value.shape}")
    return value


def not_negative(value: Any, name: str) -> None:
    """Refuse a negative or infinite constant."""
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative; got {value}")


def term_number(i: Any, n: int) -> None:
    """Refuse what is neither the number of a term nor a vector of them; a traced number cannot be looked at."""
    if any_tracer(i):
        return
    host = np.asarray(i)
    if host.dtype.kind not in "iu" or host.ndim > 1 or not np.all((host >= 0) & (host < n)):
        raise ValueError(f"i must be a whole number from 0 to {n - 1}, or a vector of them; got {i!r}")


# The rounding error of a computed sum of m products is at most about m units of 2^-53 of the sum of absolute values;
# doubled for what the first-order bound drops (Higham 2002, section 3.1).
_UNIT = 2.0 * 2.0**-53


@problem_type
class Objective(Problem):
    """Any JAX function: ``f(x) = function(x, data)``.

    Parameters
    ----------
    function : callable
        A module-level function of ``(x, data)`` that returns a scalar. It is part of the compiled program and is
        compiled once; a fresh lambda would be compiled at every call, and a matrix it closes over would be built into
        the program.
    data : pytree of arrays
        What the function needs besides ``x``.
    smoothness : float, optional
        A constant ``L`` with ``|grad f(x) - grad f(y)| <= L |x - y|``. Your word is taken for it, and so for the rest.
    strong_convexity : float
        A constant ``mu`` with ``f - mu |x|^2 / 2`` convex; 0 if unknown.
    convex : bool
        Whether ``f`` is convex (implied by ``strong_convexity > 0``).
    reference : entropy, optional
        The entropy ``psi`` that the next two constants are relative to:
        ``relative_strong_convexity * D_psi <= D_f <= relative_smoothness * D_psi``.
    relative_smoothness, relative_strong_convexity : float
        For mirror descent. Relative to the Euclidean entropy they are the ordinary constants.

    Examples
    --------
    >>> def huber(x, data):
    ...     return jnp.sum(jnp.where(jnp.abs(x) < 1, x**2 / 2, jnp.abs(x) - 0.5))
    >>> problem = Objective(huber, smoothness=1.0, convex=True)
    >>> problem.gradient([3.0])
    array([1.])
    """

    function: Callable[[Any, Any], Any] = static()
    data: Any = ()
    smoothness: float | None = None
    strong_convexity: float = 0.0
    convex: bool = static(False)
    reference: Any = None
    relative_smoothness: float | None = None
    relative_strong_convexity: float = 0.0

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"function must be a function of (x, data); got {type(self.function).__name__}")
        for name in ("smoothness", "strong_convexity", "relative_smoothness", "relative_strong_convexity"):
            constant = getattr(self, name)
            if constant is not None and is_concrete(constant):
                not_negative(constant, name)
        if is_concrete(self.strong_convexity) and self.strong_convexity > 0:
            object.__setattr__(self, "convex", True)
        if self.relative_smoothness is not None and self.reference is None:
            raise ValueError("relative_smoothness needs the entropy it is relative to: give reference too")

    @precise
    def value(self, x):
        """``f(x)``."""
        return self.function(x, self.data)


@problem_type
class Quadratic(Problem):
    """``f(x) = <C x, x> / 2 - <b, x>`` with a symmetric matrix ``C``.

    ``grad f = C x - b``; ``L`` and ``mu`` are the extreme eigenvalues of ``C``. Minimised where ``C x = b``.

    Peyré (2021, section 5, proposition 4).

    Examples
    --------
    >>> problem = Quadratic([[1.0, 0.0], [0.0, 10.0]], [1.0, 10.0])
    >>> problem.smoothness, problem.strong_convexity, problem.gradient([1.0, 1.0])
    (10.0, 1.0, array([0., 0.]))
    """

    C: Any
    b: Any

    quadratic: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        if not is_concrete(self.C, self.b):
            return
        C, b = array(self.C, "C", 2), array(self.b, "b", 1)
        if C.shape != (b.size, b.size):
            raise ValueError(f"C must be square, of the size of b; got shapes {C.shape} and {b.shape}")
        if not np.allclose(C, C.T, rtol=1e-12 if C.dtype == np.float64 else 1e-6, atol=0):
            raise ValueError("C must be symmetric: use (C + C.T) / 2, which gives the same function")
        object.__setattr__(self, "C", C)
        object.__setattr__(self, "b", b)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``x``."""
        return (self.b.shape[0],)

    @functools.cached_property
    def spectrum(self) -> np.ndarray:
        """The eigenvalues of ``C``, smallest first, in float64."""
        return np.linalg.eigvalsh(np.asarray(self.C, dtype=np.float64))

    @functools.cached_property
    def constant_rounding(self) -> float:
        """How far the computed eigenvalues may be from the exact ones."""
        return len(self.b) * _UNIT * float(np.max(np.abs(self.spectrum)))

    @property
    def smoothness(self) -> float:
        """``L``: the largest eigenvalue in absolute value."""
        return float(np.max(np.abs(self.spectrum)))

    @property
    def strong_convexity(self) -> float:
        """``mu``: the smallest eigenvalue, or 0 where it cannot be told from 0 (or is negative)."""
        return float(self.spectrum[0]) if self.spectrum[0] > self.constant_rounding else 0.0

    @property
    def largest_entry(self) -> float:
        """The largest entry of the Hessian in absolute value: its smoothness in the l1 norm."""
        return float(np.max(np.abs(self.C)))

    @property
    def convex(self) -> bool:
        """Whether no eigenvalue is negative, beyond rounding."""
        return bool(self.spectrum[0] >= -self.constant_rounding)

    @precise
    def value(self, x):
        """``f(x)``."""
        return jnp.dot(x, self.C @ x) / 2 - jnp.dot(self.b, x)

    @precise
    def gradient(self, x):
        """``C x - b``."""
        return self.C @ x - self.b

    @precise
    def value_and_gradient(self, x):
        """``f(x)`` and ``C x - b``, in one pass."""
        product = self.C @ x
        return jnp.dot(x, product) / 2 - jnp.dot(self.b, x), product - self.b

    @precise
    def hessian_apply(self, x, v):
        """``C v``."""
        return self.C @ v

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        C, b, x = (np.abs(np.asarray(a, dtype=np.float64)) for a in (self.C, self.b, x))
        return (len(b) + 2) * _UNIT * float(np.linalg.norm(C @ x + b))


class RowSums(Problem):
    """What losses of the rows of a matrix ``A`` share; `reduction` says whether they are averaged or added up."""

    A: Any
    y: Any
    l2: Any
    reduction: str

    def _checked(self) -> bool:
        """Put the matrix, the targets and the penalty in order; False for tracers, of which nothing can be asked."""
        if self.reduction not in ("mean", "sum"):
            raise ValueError(f"reduction must be 'mean' or 'sum'; got {self.reduction!r}")
        if not is_concrete(self.A, self.y, self.l2):
            return False
        A, y = matrix(self.A, "A"), array(self.y, "y", 1)
        if A.shape[0] != y.size:
            raise ValueError(f"A must have one row for each entry of y; got shapes {A.shape} and {y.shape}")
        not_negative(self.l2, "l2")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "y", y)
        return True

    @property
    def n_terms(self) -> int:
        """The number of observations."""
        return self.A.shape[0]

    @property
    def weight(self) -> float:
        """What multiplies the sum of the losses: ``1 / n`` or 1."""
        return 1.0 / self.A.shape[0] if self.reduction == "mean" else 1.0

    @functools.cached_property
    def singular_values(self) -> np.ndarray:
        """Of ``A``, largest first, in float64; as many as there are columns."""
        return singular_values(self.A)

    def term_gradient(self, x: Any, i: Any) -> Any:
        """``grad f_i(x)`` of the terms in ``f = weight * sum_i f_i``: the loss of row ``i`` and its share of `l2`.

        So ``weight`` times the sum over all ``i`` is `gradient`, and ``weight n`` times one of them, drawn at random,
        is an unbiased estimate of it. `i` is a number from 0 to ``n - 1``, or a vector of them, with a gradient for
        each on the first axis. A row of a sparse matrix costs a pass over its entries.

        >>> LeastSquares([[1.0, 0.0], [0.0, 2.0]], [1.0, 3.0]).term_gradient([0.0, 0.0], [0, 1])
        array([[-1.,  0.],
               [ 0., -6.]])
        """
        term_number(i, self.n_terms)
        return self._term_gradients(x, i)

    @precise
    def _term_gradients(self, x, i):
        def one(i):
            if isinstance(self.A, SparseMatrix):
                here = jnp.where(self.A.rows == i, self.A.data, 0.0)
                row = jax.ops.segment_sum(here, self.A.columns, num_segments=self.A.shape[1])
            else:
                row = jnp.asarray(self.A)[i]
            alone: Any = dataclasses.replace(self, A=row[None], y=jnp.asarray(self.y)[i][None], l2=0.0)  # pyright: ignore
            return alone.gradient(x) + self.l2 / (self.weight * self.n_terms) * x

        return jax.vmap(one)(i) if jnp.ndim(i) else one(i)


@problem_type
class LeastSquares(RowSums):
    """``f(x) = |A x - y|^2 / (2 n) + l2 |x|^2 / 2``, ``A`` of shape ``(n, p)``.

    ``L`` and ``mu`` are the extreme squared singular values of ``A`` over ``n``, plus `l2`.

    Legendre (1805); Peyré (2021, section 3).

    Parameters
    ----------
    A, y : array
        Design (dense, or SciPy sparse) and targets.
    l2 : float
        Strength of the ridge penalty.
    reduction : str
        ``"mean"`` as above, or ``"sum"`` for ``|A x - y|^2 / 2 + l2 |x|^2 / 2``.

    Examples
    --------
    >>> problem = LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> round(problem.smoothness, 9), problem.gradient([0.0, 0.5])
    (90.735494913, array([0., 0.]))
    """

    A: Any
    y: Any
    l2: Any = 0.0
    reduction: str = static("mean")

    quadratic: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    constants_are: ClassVar[str] = "checked"

    def __post_init__(self):
        self._checked()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``x``."""
        return (self.A.shape[1],)

    @property
    def _uncertainty(self) -> float:
        return max(self.A.shape) * _UNIT * float(self.singular_values[0])

    @property
    def constant_rounding(self) -> float:
        """How far the computed ``mu`` may be from the exact one."""
        smallest = float(self.singular_values[-1]) if self.singular_values[-1] > self._uncertainty else 0.0
        return self.weight * 2 * self._uncertainty * smallest

    @property
    def smoothness(self) -> float:
        """``L = sigma_max^2 weight + l2``."""
        return self.weight * float(self.singular_values[0]) ** 2 + float(self.l2)

    @property
    def largest_entry(self) -> float:
        """The largest entry of the Hessian, which is on its diagonal: the smoothness in the l1 norm."""
        return self.weight * float(np.max(column_squares(self.A))) + float(self.l2)

    @property
    def term_smoothness(self) -> np.ndarray:
        """``|a_i|^2`` plus its share of `l2`: the constants of the ``f_i`` in ``f = weight * sum f_i``."""
        return row_squares(self.A) + float(self.l2) / (self.weight * self.n_terms)

    @property
    def strong_convexity(self) -> float:
        """``mu = sigma_min^2 weight + l2``, with a singular value that cannot be told from 0 counted as 0."""
        smallest = float(self.singular_values[-1])
        return (self.weight * smallest**2 if smallest > self._uncertainty else 0.0) + float(self.l2)

    @precise
    def value(self, x):
        """``f(x)``."""
        residual = self.A @ x - self.y
        return self.weight * jnp.dot(residual, residual) / 2 + self.l2 * jnp.dot(x, x) / 2

    @precise
    def gradient(self, x):
        """``weight A^T (A x - y) + l2 x``."""
        return self.weight * (self.A.T @ (self.A @ x - self.y)) + self.l2 * x

    @precise
    def value_and_gradient(self, x):
        """``f(x)`` and its gradient, in one pass."""
        residual = self.A @ x - self.y
        value = self.weight * jnp.dot(residual, residual) / 2 + self.l2 * jnp.dot(x, x) / 2
        return value, self.weight * (self.A.T @ residual) + self.l2 * x

    @precise
    def hessian_apply(self, x, v):
        """``weight A^T A v + l2 v``."""
        return self.weight * (self.A.T @ (self.A @ v)) + self.l2 * v

    @precise
    def slopes(self, x):
        """``weight (A x - y)``: the gradient in the predictions ``A x``."""
        return self.weight * (self.A @ x - self.y)

    @precise
    def conjugate(self, theta):
        """``F*(theta) = |theta|^2 / (2 weight) + <theta, y>`` of the loss ``F`` of the predictions."""
        return jnp.dot(theta, theta) / (2 * self.weight) + jnp.dot(theta, self.y)

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        A, y, x = abs(host_matrix(self.A)), np.abs(np.asarray(self.y, np.float64)), np.abs(np.asarray(x, np.float64))
        size = self.weight * (A.T @ (A @ x + y)) + float(self.l2) * x
        return (sum(A.shape) + 6) * _UNIT * float(np.linalg.norm(size))
