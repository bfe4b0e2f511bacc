"""Quadratic functions."""

import functools
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from cumulant.optim.problems.base import _UNIT, array, is_concrete, problem_type
from cumulant.optim.protocol import Problem
from cumulant.precision import precise

__all__ = ["Quadratic"]


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
