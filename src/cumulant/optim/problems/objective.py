"""Any JAX function as a problem, with the constants its author vouches for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.problems.base import is_concrete, ordered_constants, problem_type, static
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


def call_traced(name: str, function: Callable, x: Any, data: Any, at: str = "x and data") -> Any:
    """``function(x, data)``, with a sentence where JAX cannot trace it, or not at these arguments."""
    try:
        return function(x, data)
    except (
        jax.errors.TracerArrayConversionError,
        jax.errors.TracerIntegerConversionError,
        jax.errors.ConcretizationTypeError,
    ) as problem:
        raise TypeError(
            f"{name} must be a JAX function: write it with jax.numpy, and without NumPy functions, float() or a Python "
            f"`if` on what it is given ({type(problem).__name__})"
        ) from problem
    except (TypeError, ValueError) as problem:
        raise type(problem)(f"{name} cannot be computed at this {at}: {problem}") from problem


def call_scalar(name: str, function: Callable, x: Any, data: Any, at: str = "x and data") -> Any:
    """The same for a function that must return a number.

    >>> call_scalar("function", lambda x, data: 2 * x, jnp.ones(3), ())
    Traceback (most recent call last):
    ...
    ValueError: function must return a number; it returns an array of shape (3,)
    """
    value = call_traced(name, function, x, data, at)
    if isinstance(value, jax.Array | float | int) or getattr(value, "dtype", np.dtype(object)).kind in "biuf":
        value = jnp.asarray(value)
        if value.shape != ():
            raise ValueError(f"{name} must return a number; it returns an array of shape {value.shape}")
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    raise TypeError(f"{name} must return a number; it returns {type(value).__name__}")


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
    >>> import jax.numpy as jnp
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
        checks.takes("function", self.function, "x, data")
        checks.instance("convex", self.convex, bool, "True or False")
        for name in ("strong_convexity", "relative_strong_convexity"):
            checks.number(name, getattr(self, name))
        for name in ("smoothness", "strong_convexity", "relative_smoothness", "relative_strong_convexity"):
            constant = getattr(self, name)
            if constant is not None and is_concrete(constant):
                checks.not_negative(name, constant)
        ordered_constants(self.smoothness, self.strong_convexity)
        ordered_constants(self.relative_smoothness, self.relative_strong_convexity, "relative_")
        if is_concrete(self.strong_convexity) and self.strong_convexity > 0:
            object.__setattr__(self, "convex", True)
        if self.relative_smoothness is not None and self.reference is None:
            raise ValueError("relative_smoothness needs the entropy it is relative to: give reference too")

    @precise
    def value(self, x):
        """``f(x)``."""
        return call_scalar("function", self.function, x, self.data)
