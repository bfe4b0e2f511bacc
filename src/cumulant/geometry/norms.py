"""The operator norm of a matrix: exactly, or an interval from products with vectors alone."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from cumulant import randomness
from cumulant.certificates import Certificate, Interval, assume, by_construction
from cumulant.geometry._door import FINITE, door

__all__ = ["operator_norm", "operator_norm_interval"]


def _matrix(arguments: dict) -> None:
    shape = np.shape(arguments["A"])
    if len(shape) < 2 or 0 in shape[-2:]:
        raise ValueError(f"A must be matrices on the last two axes, with at least one entry; got shape {shape}")


@door(shapes=_matrix, A=FINITE)
def operator_norm(A):
    """The largest singular value, ``max |A x| / |x|``; its square is the smoothness of ``|A x - b|^2 / 2``.

    >>> float(operator_norm([[3.0, 0.0], [4.0, 0.0]]).round(12))
    5.0
    """
    return jnp.linalg.norm(A, ord=2, axis=(-2, -1))


def operator_norm_interval(A: Any, *, steps: int = 200, delta: float = 1e-9, rng: Any = 0) -> Interval:
    """An interval that contains ``|A|`` with probability at least ``1 - delta``, from products with ``A`` and ``A^T``.

    From a Gaussian vector ``b``: ``|A|^(2k) |<b, v>| <= |(A^T A)^k b|`` with ``v`` the leading singular vector, and
    ``|<b, v>| >= delta sqrt(pi / 2)`` with probability ``1 - delta``, which gives the upper end (Dixon 1983). The lower
    end, a Rayleigh quotient, always holds. The ends are about ``log(sqrt(p) / delta) / (2 steps)`` apart, relatively,
    or closer.

    Parameters
    ----------
    A : matrix
        Anything with `shape`, ``A @ x`` and ``A.T @ y``: a NumPy array, a SciPy sparse matrix, a `LinearOperator`.

    Examples
    --------
    >>> interval = operator_norm_interval(np.diag([3.0, 2.0, 1.0]))
    >>> 3.0 in interval, bool(interval.upper < 3.2)
    (True, True)
    """
    if not (hasattr(A, "shape") and len(A.shape) == 2 and 0 not in A.shape):
        raise ValueError(f"A must be a matrix with at least one entry; got {getattr(A, 'shape', type(A).__name__)}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be strictly between 0 and 1; got {delta}")
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got {steps}")
    start = randomness.generator(rng).standard_normal(A.shape[1])
    log_growth = np.log(np.linalg.norm(start))
    v = start / np.linalg.norm(start)
    for _ in range(steps):
        with np.errstate(invalid="ignore", over="ignore"):  # seen in the next line
            v = A.T @ (A @ v)
        size = np.linalg.norm(v)
        if not np.isfinite(size):
            raise ValueError("A must be finite: a product with it is not")
        if size == 0:  # A^T A b = 0 for a Gaussian b: only the zero matrix does that, but for chance zero
            return Interval(0.0, 0.0, 0.0)
        log_growth += np.log(size)
        v = v / size
    lower = float(np.linalg.norm(A @ v))
    upper = float(np.exp((log_growth - np.log(delta * np.sqrt(np.pi / 2))) / (2 * steps)))
    slack = (
        1 + 4 * sum(A.shape) * np.finfo(np.float64).eps
    )  # the rounding of one product, as the root of `steps` of them
    upper = max(upper * slack, lower)
    certificate = Certificate(
        quantity="|A|",
        bound=Interval(lower / slack, upper, lower),
        theorem="power method from a Gaussian start (Dixon 1983, theorem 1)",
        assumptions=(
            by_construction("the start is Gaussian and independent of A", f"rng = {rng!r}"),
            assume("A.T is the transpose of A"),
        ),
        kind="with probability",
        delta=delta,
    )
    return Interval(lower / slack, upper, lower, certificate)
