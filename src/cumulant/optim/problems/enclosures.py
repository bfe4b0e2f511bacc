"""Numbers with a bound on their error: what certificates are computed with.

An `Enclosure` holds float64 numbers and, entry by entry, a bound on their distance from the exact ones. Every operation
adds what its own rounding may have changed, underflow included, to what the errors of its arguments can change (Higham
2002, sections 2.2 and 3.1). The exact result is always within ``error`` of ``value``, to all orders, and a zero error
means that nothing was rounded.
"""

import dataclasses
from typing import Any

import numpy as np

UNIT = 2.0 * 2.0**-53  # the relative error of one operation, doubled for the rounding of the bounds themselves
TINY = float(np.finfo(np.float64).tiny)  # what an operation may lose where numbers below it are flushed to zero


@dataclasses.dataclass(frozen=True)
class Enclosure:
    """Numbers within ``error`` of ``value``, entry by entry.

    >>> third = enclose(1.0) / 3.0
    >>> bool(third.error > 0), bool(abs(third.value - 1 / 3) <= third.error)
    (True, True)
    >>> float((enclose(2.0) - 2.0).upper)
    0.0
    """

    value: Any
    error: Any

    __array_ufunc__ = None  # so that `array + enclosure` is left to the enclosure

    @property
    def upper(self) -> Any:
        """At least the exact numbers."""
        return np.where(self.error == 0, self.value, (self.value + self.error) + UNIT * np.abs(self.value))

    def __neg__(self):
        return Enclosure(-self.value, self.error)

    def __add__(self, other):
        other = enclose(other)
        value = self.value + other.value
        exact = (self.value == 0) | (other.value == 0)
        return _rounded(value, _grown(self.error + other.error), np.where(exact, 0.0, UNIT * np.abs(value)))

    __radd__ = __add__

    def __sub__(self, other):
        return self + (-enclose(other))

    def __rsub__(self, other):
        return enclose(other) - self

    def __mul__(self, other):
        other = enclose(other)
        value = self.value * other.value
        zero = (self.value == 0) & (self.error == 0) | (other.value == 0) & (other.error == 0)
        with np.errstate(invalid="ignore"):  # zero times infinity, which is left out
            error = np.abs(self.value) * other.error + (np.abs(other.value) + other.error) * self.error
        own = np.where((np.abs(self.value) == 1) | (np.abs(other.value) == 1), 0.0, UNIT * np.abs(value) + TINY)
        return _rounded(value, np.where(zero, 0.0, _grown(error)), np.where(zero, 0.0, own))

    __rmul__ = __mul__

    def __truediv__(self, other):
        other = enclose(other)
        least = np.abs(other.value) - other.error
        zero = (self.value == 0) & (self.error == 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = self.value / other.value
            error = (self.error + np.abs(value) * other.error) / least
        error = np.where(least > 0, _grown(error), np.inf)
        own = np.where(np.abs(other.value) == 1, 0.0, UNIT * np.abs(value) + TINY)
        return _rounded(value, np.where(zero & (least > 0), 0.0, error), np.where(zero, 0.0, own))

    def __rtruediv__(self, other):
        return enclose(other) / self

    def __getitem__(self, index):
        return Enclosure(self.value[index], self.error[index])

    def sum(self, axis: int | None = None) -> "Enclosure":
        """The sum over an axis, or over all entries."""
        size = np.abs(self.value).sum(axis=axis)
        terms = self.value.size if axis is None else self.value.shape[axis]
        return Enclosure(
            self.value.sum(axis=axis), _grown(self.error.sum(axis=axis), terms) + max(terms - 1, 0) * UNIT * size
        )

    def square(self) -> "Enclosure":
        """The square of each entry."""
        zero = (self.value == 0) & (self.error == 0)
        error = (2 * np.abs(self.value) + self.error) * self.error
        value = self.value * self.value
        return _rounded(value, _grown(error), np.where(zero, 0.0, UNIT * value + TINY))

    def sqrt(self) -> "Enclosure":
        """The square root of each entry, of which none is negative."""
        value = np.sqrt(np.maximum(self.value, 0.0))
        error = np.where(self.error == 0, 0.0, self.error / np.maximum(np.maximum(value, np.sqrt(self.error)), TINY))
        return _rounded(value, _grown(error), UNIT * value)

    def positive_part(self) -> "Enclosure":
        """The larger of each entry and zero."""
        return Enclosure(np.maximum(self.value, 0.0), np.where(self.value + self.error <= 0, 0.0, self.error))

    def widened(self, error: Any) -> "Enclosure":
        """The same numbers with more error."""
        return Enclosure(self.value, _grown(self.error + error))


def _grown(error: Any, terms: float = 1.0) -> Any:
    """A bound, made larger by what rounding may have taken from it."""
    return error * (1 + (terms + 8) * UNIT)


def _rounded(value: Any, error: Any, own: Any) -> Enclosure:
    return Enclosure(value, error + own)


def enclose(value: Any, error: Any = 0.0) -> Enclosure:
    """Numbers as an enclosure; exact unless an error is given."""
    if isinstance(value, Enclosure):
        return value
    value, error = np.asarray(value, dtype=np.float64), np.asarray(error, dtype=np.float64)
    return Enclosure(value, error if error.shape == value.shape else error + np.zeros(value.shape))


def dot(A: Any, b: Any) -> Enclosure:
    """``A b`` for an exact matrix, dense or sparse, or for two vectors."""
    b = enclose(b)
    if isinstance(A, Enclosure):
        return (A * b).sum()
    size = abs(A)
    terms = A.shape[-1]
    value, magnitude = np.asarray(A @ b.value), np.asarray(size @ np.abs(b.value))
    error = _grown(np.asarray(size @ b.error), terms) if np.any(b.error) else np.zeros_like(value)
    own = terms * (UNIT * magnitude + TINY) if np.any(b.value) and size.max() > 0 else np.zeros_like(value)
    return Enclosure(value, error + own)


def smallest_eigenvalue(C: np.ndarray, computed: float | None = None) -> float:
    """A number that the smallest eigenvalue of a symmetric matrix is proved to be at least; `computed` may be given.

    Exact for diagonal matrices. Otherwise ``C - t I`` is factored by Cholesky's method for a ``t`` just below the
    computed eigenvalue: where that succeeds in floating point, the smallest eigenvalue of ``C - t I`` is at least
    ``-g trace(C - t I)``, ``g`` about ``(n + 1) 2^-53`` (Rump 2006, theorem 2.3).

    >>> smallest_eigenvalue(np.diag([1.0, -4e-16]))
    -4e-16
    >>> 0.99 < smallest_eigenvalue(np.array([[2.0, 1.0], [1.0, 2.0]])) < 1.0
    True
    """
    n, diagonal = len(C), np.diagonal(C)
    if not np.any(C - np.diag(diagonal)):
        return float(diagonal.min())
    size = float(np.max(np.abs(C).sum(axis=1)))  # at least every eigenvalue in absolute value
    if not np.isfinite(size * n):
        return -np.inf
    computed = float(np.linalg.eigvalsh(C)[0]) if computed is None else computed
    below = (n + 4) * UNIT * size + n * TINY
    for _ in range(60):
        shift = computed - below
        shifted = C - shift * np.eye(n)
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            below *= 2
            continue
        trace = float(np.trace(np.abs(shifted)))
        return shift - (n + 4) * UNIT * trace - UNIT * (size + abs(shift)) - n * n * TINY
    return -size
