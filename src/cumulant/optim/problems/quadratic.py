"""Quadratic functions."""

import functools
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import array, is_concrete, problem_type
from cumulant.optim.problems.enclosures import UNIT, Enclosure, dot, enclose, smallest_eigenvalue
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


@problem_type
class Quadratic(Problem):
    """``f(x) = <C x, x> / 2 - <b, x>`` with a symmetric matrix ``C``.

    ``grad f = C x - b``; ``L`` and ``mu`` are the extreme eigenvalues of ``C``. Minimised where ``C x = b``. A matrix
    that is symmetric up to rounding is replaced by ``(C + C^T) / 2``.

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
        object.__setattr__(self, "C", C if np.all(np.asarray(C == C.T)) else C / 2 + C.T / 2)
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
    def _least(self) -> float:
        """What the smallest eigenvalue is proved to be at least; also of a ``C`` rounded when it was symmetrised."""
        C = np.asarray(self.C, dtype=np.float64)
        size = 0.0 if not np.any(C - np.diag(np.diagonal(C))) else float(np.max(np.abs(C).sum(axis=1)))
        return smallest_eigenvalue(C, float(self.spectrum[0])) - UNIT * size

    @property
    def constant_rounding(self) -> float:
        """How far the computed smallest eigenvalue may be above the exact one."""
        above = max(float(self.spectrum[0]) - self._least, 0.0)
        return above if above == 0 else above + 2 * UNIT * abs(float(self.spectrum[0]))

    @property
    def negative_curvature(self) -> float:
        """The smallest eigenvalue is proved to be at least minus this; zero where ``f`` is proved to be convex."""
        return max(-self._least, 0.0)

    @property
    def smoothness(self) -> float:
        """``L``: the largest eigenvalue in absolute value."""
        return float(np.max(np.abs(self.spectrum)))

    @property
    def strong_convexity(self) -> float:
        """``mu``: the smallest eigenvalue, or 0 where it cannot be told from 0 (or is negative)."""
        return float(self.spectrum[0]) if self._least > 0 else 0.0

    @property
    def largest_entry(self) -> float:
        """The largest entry of the Hessian in absolute value: its smoothness in the l1 norm."""
        return float(np.max(np.abs(self.C)))

    @property
    def convex(self) -> bool:
        """Whether no eigenvalue is negative, as far as rounding can tell; `negative_curvature` is what that leaves
        open.
        """
        return bool(self.spectrum[0] >= -4 * len(self.b) * UNIT * np.max(np.abs(self.spectrum)))

    def value(self, x):
        """``f(x)``."""
        return self.value_and_gradient(x)[0]

    @precise
    def value_and_gradient(self, x):
        """``f(x)`` and ``C x - b``, in one pass."""
        product = self.C @ x
        return jnp.dot(x, product) / 2 - jnp.dot(self.b, x), product - self.b

    @precise
    def hessian_apply(self, x, v):
        """``C v``."""
        return self.C @ v

    def enclosed_gradient(self, x: Any) -> Enclosure:
        """`gradient` in float64 on the host, with a bound on its error."""
        x, C = enclose(x), np.asarray(self.C, dtype=np.float64)
        return dot(C, x) - np.asarray(self.b, dtype=np.float64)

    def gradient_rounding(self, x) -> float:
        """A bound on the rounding error of `gradient` in float64, in Euclidean norm."""
        return float(np.linalg.norm(self.enclosed_gradient(x).error))
