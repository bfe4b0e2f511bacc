"""Penalties of your own, and penalties on trees of unknowns: solvers see one vector."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.problems.enclosures import UNIT, Enclosure, enclose
from cumulant.optim.problems.penalties import PENALTIES, NoPenalty, Penalty
from cumulant.optim.problems.trees import unflatten, vector
from cumulant.precision import precise
from cumulant.pytrees import pytree


@dataclasses.dataclass(frozen=True)
class ProximalMap(Penalty):
    """A penalty of your own: its proximal map and its value, as JAX functions.

    ``prox(v, step, data) = argmin_x R(x) + |x - v|^2 / (2 step)`` and ``value(x, data) = R(x)``. Both take `x` as the
    objective does: an array, or a tree of arrays. Nothing is known of the conjugate, so there is no certificate: end
    the run by `residual_tol`.

    Parameters
    ----------
    prox, value : callable
        Module-level functions: they are part of the compiled program.
    data : pytree of arrays
        What they need besides. `layers.argmin` can be differentiated in it.

    Examples
    --------
    >>> def shrink(v, step, weight):
    ...     return v / (1 + step * weight)
    >>> def ridge(x, weight):
    ...     return weight * jnp.sum(x**2) / 2
    >>> ProximalMap(shrink, ridge, 3.0).prox([4.0, 8.0], 1.0)
    array([1., 2.])
    """

    prox_function: Callable
    value_function: Callable
    data: Any = ()

    def __post_init__(self):
        checks.takes("prox", self.prox_function, "v, step, data")
        checks.takes("value", self.value_function, "x, data")

    @precise
    def value(self, x):
        """``R(x)``."""
        return self.value_function(x, self.data)

    @precise
    def prox(self, v, step):
        """The proximal map."""
        return self.prox_function(v, step, self.data)

    @precise
    def dual_scale(self, u, doubt):
        """Zero: the conjugate is not known."""
        return jnp.zeros((), u.dtype)


pytree(ProximalMap, static=("prox_function", "value_function"))


@pytree
@dataclasses.dataclass(frozen=True)
class _OnTree(Penalty):
    """A penalty whose functions take a tree, as one on the vector of its leaves."""

    penalty: Any
    structure: Any = dataclasses.field(metadata={"static": True})
    shapes: Any = dataclasses.field(metadata={"static": True})

    def value(self, x):
        return self.penalty.value(unflatten(self.structure, self.shapes, x))

    def prox(self, v, step):
        return vector(self.penalty.prox(unflatten(self.structure, self.shapes, v), step))

    @precise
    def dual_scale(self, u, doubt):
        return jnp.zeros((), u.dtype)


@pytree
@dataclasses.dataclass(frozen=True)
class Parts(Penalty):
    """``R(x) = sum_i R_i(x_i)`` over consecutive parts ``x_i`` of a vector, of the given sizes."""

    penalties: tuple
    sizes: tuple[int, ...] = dataclasses.field(metadata={"static": True})

    def __str__(self):
        return " and ".join(map(str, self.penalties))

    @property
    def is_set(self) -> bool:
        """Whether any part is confined to a set."""
        return any(penalty.is_set for penalty in self.penalties)

    def _each(self, x: Any) -> Any:
        ends = np.cumsum(self.sizes)
        return ((p, slice(end - n, end)) for p, n, end in zip(self.penalties, self.sizes, ends, strict=True))

    @precise
    def value(self, x):
        """The sum of the values."""
        return sum((p.value(x[part]) for p, part in self._each(x)), jnp.zeros((), x.dtype))

    @precise
    def prox(self, v, step):
        """Part by part."""
        return jnp.concatenate([p.prox(v[part], step) for p, part in self._each(v)])

    @precise
    def feasible(self, x):
        """Part by part."""
        return jnp.concatenate([p.feasible(x[part]) for p, part in self._each(x)])

    @precise
    def conjugate_point(self, u):
        """Part by part."""
        return jnp.concatenate([p.conjugate_point(u[part]) for p, part in self._each(u)])

    @precise
    def dual_scale(self, u, doubt):
        """The smallest of the parts: ``R*`` is the sum of the conjugates."""
        return jnp.min(jnp.stack([p.dual_scale(u[part], doubt[part]) for p, part in self._each(u)]))

    def enclosed_value(self, x: Any) -> Enclosure:
        """The sum of the enclosed values."""
        return _total([p.enclosed_value(x[part]) for p, part in self._each(x)])

    def enclosed_conjugate(self, u: Enclosure) -> Enclosure:
        """The sum of the conjugates."""
        error = np.broadcast_to(u.error, u.value.shape)
        return _total([p.enclosed_conjugate(Enclosure(u.value[part], error[part])) for p, part in self._each(u)])

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Part by part."""
        return np.concatenate([p.nearest_dual(u[part]) for p, part in self._each(u)])

    def reach(self, x: np.ndarray) -> float:
        """At most the norm of the reaches of the parts."""
        return math.hypot(*(p.reach(x[part]) for p, part in self._each(x))) * (1 + 8 * UNIT)


def _total(parts: list[Enclosure]) -> Enclosure:
    total = enclose(0.0)
    for part in parts:
        total = total + part
    return total


def is_known(penalty: Any) -> bool:
    """Whether value, proximal map and conjugate are all ours."""
    return type(penalty) in PENALTIES or (isinstance(penalty, Parts) and all(map(is_known, penalty.penalties)))


def _is_penalty(node: Any) -> bool:
    return node is None or hasattr(node, "prox")


def check_penalty(penalty: Any) -> None:
    """Refuse what is neither a penalty nor a tree of them."""
    found = [] if penalty is None else jax.tree.leaves(penalty, is_leaf=_is_penalty)
    for each in found or [penalty]:
        missing = penalty is None if each is None else not (hasattr(each, "prox") and hasattr(each, "value"))
        if missing or isinstance(each, type):
            raise TypeError(
                "penalty must have the methods prox and value, as L1(0.1) has, or be a tree of such; got "
                f"{each.__name__ if isinstance(each, type) else type(each).__name__}"
            )


def for_vector(penalty: Any, x: Any) -> Any:
    """The penalty of the vector of all leaves of ``x``, from one of the tree ``x`` or a tree of penalties for it.

    >>> from cumulant import optim
    >>> x = {"bias": np.ones(1), "weights": np.array([3.0, -1.0])}
    >>> for_vector({"weights": optim.L1(2.0), "bias": None}, x).prox(vector(x), 1.0)
    array([1., 1., 0.])
    """
    if isinstance(penalty, ProximalMap):
        leaves, structure = jax.tree.flatten(x)
        return _OnTree(penalty, structure, tuple(np.shape(leaf) for leaf in leaves))
    if penalty is None or _is_penalty(penalty):
        return NoPenalty() if penalty is None else penalty
    penalties, structure = jax.tree.flatten(penalty, is_leaf=_is_penalty)
    try:
        parts = structure.flatten_up_to(x)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"penalty must be a tree that begins as x0 does; {problem}") from None
    sizes = tuple(sum(map(np.size, jax.tree.leaves(part))) for part in parts)
    return Parts(tuple(for_vector(p, part) for p, part in zip(penalties, parts, strict=True)), sizes)
