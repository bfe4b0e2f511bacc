"""Constrained variables as free ones: positive numbers, intervals, simplices, ordered vectors, correlation matrices.

Samplers and variational fits work on vectors without constraints; the change of variables is part of the density.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.precision import precise
from cumulant.pytrees import pytree
from cumulant.sampling.target import Target

_STATIC: Any = {"static": True}
KINDS = ("real", "positive", "bounded", "simplex", "ordered", "correlation")


class _Variable(NamedTuple):
    """A variable: its name, its shape, its constraint, and the ends of an interval."""

    name: str
    shape: tuple[int, ...]
    kind: str
    lower: float = 0.0
    upper: float = 1.0

    @property
    def free_shape(self) -> tuple[int, ...]:
        """The shape of the free coordinates."""
        if self.kind == "simplex":
            return (*self.shape[:-1], self.shape[-1] - 1)
        if self.kind == "correlation":
            return (*self.shape[:-2], self.shape[-1] * (self.shape[-1] - 1) // 2)
        return self.shape

    def place(self, v):
        """The variable, and the logarithm of the volume that a unit of its free coordinates has there."""
        if self.kind == "real":
            return v, 0.0
        if self.kind == "positive":
            return jnp.exp(v), jnp.sum(v)
        if self.kind == "bounded":
            width = self.upper - self.lower
            inside = jnp.sum(jax.nn.log_sigmoid(v) + jax.nn.log_sigmoid(-v))
            return self.lower + width * jax.nn.sigmoid(v), inside + v.size * math.log(width)
        event = {"ordered": 1, "simplex": 1, "correlation": 2}[self.kind]
        each = {"ordered": _ordered, "simplex": _simplex, "correlation": _correlation(self.shape[-1])}[self.kind]
        values, logs = jax.vmap(each)(v.reshape(-1, v.shape[-1]))
        return values.reshape(*self.shape[: len(self.shape) - event], *values.shape[1:]), jnp.sum(logs)


def _ordered(v):
    """``v_0, v_0 + exp(v_1), ...``"""
    return jnp.cumsum(jnp.concatenate([v[:1], jnp.exp(v[1:])])), jnp.sum(v[1:])


def _simplex(v):
    """Breaking a stick: the share ``sigmoid(v_k - log(K - k))`` of what is left, so that zero is the centre."""
    shifted = v - jnp.log(jnp.arange(v.size, 0, -1.0))
    log_left = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jax.nn.log_sigmoid(-shifted))])
    shares = jnp.concatenate([jnp.exp(jax.nn.log_sigmoid(shifted) + log_left[:-1]), jnp.exp(log_left[-1:])])
    return shares, jnp.sum(jax.nn.log_sigmoid(shifted) + jax.nn.log_sigmoid(-shifted) + log_left[:-1])


def _correlation(size: int) -> Callable:
    """Partial correlations ``tanh v`` (Lewandowski, Kurowicka and Joe 2009), by the rows of Cholesky's factor."""
    rows, columns = np.tril_indices(size, -1)

    def place(v):
        partial = jnp.zeros((size, size)).at[rows, columns].set(jnp.tanh(v))
        log_slope = jnp.sum(jnp.log1p(-(jnp.tanh(v) ** 2)))
        left = jnp.cumprod(1 - jnp.concatenate([jnp.zeros((size, 1)), partial[:, :-1]], axis=1) ** 2, axis=1)
        L = jnp.tril(jnp.where(jnp.eye(size, dtype=bool), 1.0, partial) * jnp.sqrt(left))
        # From partial correlations to rows of L, and from L to the entries of L L^T below the diagonal.
        to_rows = jnp.sum(jnp.where(np.tri(size, k=-1, dtype=bool), jnp.log(left), 0.0)) / 2
        to_matrix = jnp.sum(jnp.arange(size - 1, -1, -1.0) * jnp.log(jnp.diagonal(L)))
        return L @ L.T, log_slope + to_rows + to_matrix

    return place


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class ConstrainedTarget(Target):
    """The density of constrained variables in free coordinates. Made by `constrained`."""

    spaces: tuple[_Variable, ...] = dataclasses.field(default=(), metadata=_STATIC)

    def at(self, x: Any) -> Any:
        """The log-density of the free coordinates, in plain JAX."""
        placed = {space.name: space.place(v) for space, v in zip(self.spaces, self.unflatten(x).values(), strict=True)}
        point = {name: value for name, (value, _) in placed.items()}
        volume = sum(log for _, log in placed.values())
        return (self.function(point) if self.data is None else self.function(point, self.data)) + volume

    def constrain(self, x: Any) -> dict[str, np.ndarray]:
        """Free coordinates ``(..., dim)`` as the variables themselves, by name."""
        x = np.asarray(x, dtype=np.float64)
        found = _placed(self, x.reshape(-1, self.dim))
        # In the order of the coordinates: JAX sorts the names of a dictionary.
        return {space.name: found[space.name].reshape(*x.shape[:-1], *space.shape) for space in self.spaces}

    @property
    def constrained_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each variable in its own space."""
        return {space.name: space.shape for space in self.spaces}


@precise
def _placed(target, x):
    def one(x):
        return {s.name: s.place(v)[0] for s, v in zip(target.spaces, target.unflatten(x).values(), strict=True)}

    return jax.vmap(one)(x)


def constrained(
    function: Callable[..., Any],
    variables: Mapping[str, Any],
    constraints: Mapping[str, Any],
    data: Any = None,
) -> ConstrainedTarget:
    """A target over variables with constraints, in free coordinates.

    Parameters
    ----------
    function : callable
        The log-density of a dictionary of variables, in their own spaces, as for `Target`.
    variables : mapping of str to shape
    constraints : mapping of str to str or tuple
        ``"positive"``; ``("bounded", lower, upper)``; ``"simplex"`` (the last axis is positive and sums to one);
        ``"ordered"`` (the last axis increases); ``"correlation"`` (the last two axes are a correlation matrix, with
        densities over its entries below the diagonal). Variables that are not named are free.
    data : pytree of arrays, optional
        What the function needs besides.

    Examples
    --------
    >>> target = constrained(lambda x: -jnp.sum(x["rate"]), {"rate": (2,)}, {"rate": "positive"})
    >>> float(target.log_density([0.0, 0.0])), target.constrain([[0.0, 1.0]])["rate"].round(3)
    (-2.0, array([[1.   , 2.718]]))
    """
    if not isinstance(variables, Mapping) or not variables:
        raise TypeError("variables must be a mapping of names to shapes, with at least one")
    unknown = set(constraints) - set(variables)
    if unknown:
        raise ValueError(f"constraints names {', '.join(sorted(unknown))}, which variables does not have")
    spaces = tuple(
        _space(name, tuple(map(int, shape)), constraints.get(name, "real")) for name, shape in variables.items()
    )
    free = {space.name: space.free_shape for space in spaces}
    return ConstrainedTarget(function, free, data, spaces=spaces)


def _space(name: str, shape: tuple[int, ...], given: Any) -> _Variable:
    kind, *ends = given if isinstance(given, tuple) else (given,)
    if kind not in KINDS:
        raise ValueError(f"the constraint of {name} must be one of {', '.join(KINDS)}; got {kind!r}")
    if (kind == "bounded") != (len(ends) == 2):
        raise ValueError(f"the constraint of {name} must be ('bounded', lower, upper) or a word; got {given!r}")
    if ends and not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
        raise ValueError(f"the ends of {name} must be finite and in order; got {ends}")
    if kind in ("simplex", "ordered") and (not shape or shape[-1] < 2):
        raise ValueError(f"{name} needs a last axis of at least 2 to be {kind}; its shape is {shape}")
    if kind == "correlation" and (len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2):
        raise ValueError(f"{name} must be square matrices of at least 2 rows to be correlations; its shape is {shape}")
    return _Variable(name, shape, kind, *map(float, ends))
