"""The operator norm of a matrix: exactly, or an interval from products with vectors alone."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from cumulant import checks, randomness
from cumulant.certificates import Certificate, Interval, assume, by_construction, issuer
from cumulant.geometry._calling import FINITE, public_function

__all__ = ["PowerMethod", "certify_operator_norm", "operator_norm", "operator_norm_interval"]


def _matrix(arguments: dict) -> None:
    shape = np.shape(arguments["A"])
    if len(shape) < 2 or 0 in shape[-2:]:
        raise ValueError(f"A must be matrices on the last two axes, with at least one entry; got shape {shape}")


@public_function(shapes=_matrix, A=FINITE)
def operator_norm(A):
    """The largest singular value, ``max |A x| / |x|``; its square is the smoothness of ``|A x - b|^2 / 2``.

    >>> float(operator_norm([[3.0, 0.0], [4.0, 0.0]]).round(12))
    5.0
    """
    return jnp.linalg.norm(A, ord=2, axis=(-2, -1))


class PowerMethod(NamedTuple):
    """Settings of the power method: the number of steps, the probability of failure, and the seed of the start."""

    steps: int = 200
    delta: float = 1e-9
    seed: int = 0


def operator_norm_interval(A: Any, *, steps: int = 200, delta: float = 1e-9, rng: Any = 0) -> Interval:
    """An interval that contains ``|A|`` with probability at least ``1 - delta``, from products with ``A`` and ``A^T``.

    From a Gaussian vector ``b``: ``|A|^(2k) |<b, v>| <= |(A^T A)^k b|`` with ``v`` the leading singular vector, and
    ``|<b, v>| >= delta sqrt(pi / 2)`` with probability ``1 - delta``, which gives the upper end (Dixon 1983). The lower
    end, a Rayleigh quotient, always holds. The ends are about ``log(sqrt(p) / delta) / (2 steps)`` apart, relatively,
    or closer. The subject of its certificate is ``(A, PowerMethod(steps, delta, seed))``.

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
    certificate = certify_operator_norm(A, PowerMethod(steps, delta, randomness.seed(rng)))
    assert isinstance(certificate.bound, Interval)
    return replace(certificate.bound, certificate=certificate)


@issuer
def certify_operator_norm(given: Any, answer: PowerMethod) -> Certificate:
    """The certificate of `operator_norm_interval` for the matrix `given` and the settings `answer`."""
    A, (steps, delta, seed) = given, answer
    if not (hasattr(A, "shape") and len(A.shape) == 2 and 0 not in A.shape):
        raise ValueError(f"A must be a matrix with at least one entry; got {getattr(A, 'shape', type(A).__name__)}")
    checks.fraction("delta", delta)
    checks.whole("steps", steps)
    start = np.random.default_rng(seed).standard_normal(A.shape[1])
    log_growth, v = np.log(np.linalg.norm(start)), start / np.linalg.norm(start)
    lower, upper, b = 0.0, np.inf, float(np.linalg.norm(start))
    small = float(np.prod(A.shape)) * np.finfo(np.float64).tiny  # where products are rounded to the smallest numbers
    for _ in range(steps):
        # Both products are normalised, so that entries of 1e-200 or 1e200 neither underflow nor overflow.
        with np.errstate(invalid="ignore", over="ignore"):  # `_normalised` refuses what is not finite
            size, image = _normalised(A @ v)
            back, v = _normalised(A.T @ image) if size > 0 else (0.0, v)
        if size < small or back < small:  # for a Gaussian start the matrix is then this small
            upper = 2.0 * small * max(b, 1.0) / delta
            break
        lower, log_growth = max(lower, size), log_growth + np.log(size) + np.log(back)
    else:
        lower = max(lower, _normalised(A @ v)[0])
        with np.errstate(over="ignore"):
            upper = float(np.exp((log_growth - np.log(delta * np.sqrt(np.pi / 2))) / (2 * steps)))
    slack = 1 + 4 * sum(A.shape) * np.finfo(np.float64).eps  # one product's rounding: the root of `steps` of them
    lower = lower / slack
    return Certificate(
        quantity="|A|",
        bound=Interval(lower, max(upper * slack, lower), min(lower * slack, max(upper * slack, lower))),
        theorem="power method from a Gaussian start (Dixon 1983, theorem 1)",
        assumptions=(
            by_construction("the start is Gaussian and independent of A", f"seed = {seed}"),
            assume("A.T is the transpose of A"),
        ),
        kind="with probability",
        delta=delta,
    )


def _normalised(vector: np.ndarray) -> tuple[float, np.ndarray]:
    """The Euclidean norm, without overflow or underflow of squares, and the vector divided by it."""
    largest = float(np.max(np.abs(vector)))
    if not np.isfinite(largest):
        raise ValueError("A must be finite: a product with it is not")
    if largest == 0:
        return 0.0, vector
    scaled = vector / largest
    size = float(np.linalg.norm(scaled))
    return largest * size, scaled / size
