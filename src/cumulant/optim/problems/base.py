"""What the problems of this folder share: how they become pytrees, and how their arrays are validated.

Every problem is a frozen dataclass and a pytree: its arrays are leaves. Its `value` and `gradient` take NumPy (then
computed in float64) or JAX arrays, and work under `jit`.
"""

import dataclasses
from typing import Any, dataclass_transform

import jax
import numpy as np
from scipy import sparse

from cumulant import checks
from cumulant.optim.problems.sparse_matrix import SparseMatrix
from cumulant.precision import any_tracer
from cumulant.pytrees import pytree


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
    return not any_tracer(values)


def array(value: Any, name: str, ndim: int) -> Any:
    """An array of finite floats with `ndim` axes; NumPy in float64 unless it is a JAX array."""
    if not isinstance(value, jax.Array):
        value = np.array(checks.real_array(name, value, finite=False))
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
    checks.not_negative(name, value)


def point(problem: Any, x: Any) -> np.ndarray:
    """`x` in float64, refused where it is not a point of the problem."""
    x = checks.real_array("x", x, finite=False)
    if problem.shape is not None and x.shape != tuple(problem.shape):
        raise ValueError(f"x must have shape {tuple(problem.shape)} for this {type(problem).__name__}; got {x.shape}")
    return x


def ordered_constants(smoothness: Any, strong_convexity: Any, kind: str = "") -> None:
    """Refuse a smoothness below the strong convexity: no function has both."""
    if smoothness is None or not is_concrete(smoothness, strong_convexity):
        return
    if not np.all(np.asarray(smoothness) >= np.asarray(strong_convexity)):
        raise ValueError(
            f"{kind}smoothness must be at least {kind}strong_convexity: the curvature of f is between them; got "
            f"{smoothness} and {strong_convexity}"
        )


def term_number(i: Any, n: int) -> None:
    """Refuse what is neither the number of a term nor a vector of them; a traced number cannot be looked at."""
    if any_tracer(i):
        return
    host = np.asarray(i)
    if host.dtype.kind not in "iu" or host.ndim > 1 or not np.all((host >= 0) & (host < n)):
        raise ValueError(f"i must be a whole number from 0 to {n - 1}, or a vector of them; got {i!r}")
