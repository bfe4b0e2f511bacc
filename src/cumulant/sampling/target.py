"""Distributions known up to a constant: what samplers draw from and variational methods approximate."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim import Objective
from cumulant.precision import precise
from cumulant.pytrees import pytree

_STATIC: Any = {"static": True}


@pytree
@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """A density ``p(x) = exp(log_density(x)) / Z`` over vectors, with ``Z`` unknown.

    Parameters
    ----------
    function : callable
        A JAX function of ``x``, or of ``(x, data)`` where `data` is given, that returns the log-density up to a
        constant. It is part of the compiled program: a fresh lambda is compiled again, and a large array it closes over
        is built into the program, so give arrays as `data`.
    variables : int or mapping of str to shape
        The number of coordinates; then `function` takes a vector. Or the shapes of named variables, ``{"mu": (),
        "beta": (3,)}``; then it takes a dictionary of arrays, and samplers still see one vector of ``dim`` coordinates.
    data : pytree of arrays, optional
        What the function needs besides ``x``.
    smoothness : float, optional
        ``L`` with ``|grad log p(x) - grad log p(y)| <= L |x - y|``. Your word is taken for it: certificates that use it
        list it as assumed.
    strong_convexity : float
        ``m`` with ``-log p - m |x|^2 / 2`` convex (strong log-concavity); 0 if unknown.

    Examples
    --------
    >>> normal = Target(lambda x: -jnp.sum(x**2) / 2, 2, smoothness=1.0, strong_convexity=1.0)
    >>> float(normal.log_density([1.0, 1.0])), normal.gradient([1.0, 1.0])
    (-1.0, array([-1., -1.]))
    >>> funnel = Target(lambda x: -(x["v"] ** 2) / 18 - jnp.sum(x["z"] ** 2) / 2, {"v": (), "z": (3,)})
    >>> funnel.dim, sorted(funnel.unflatten(np.arange(4.0)))
    (4, ['v', 'z'])
    """

    function: Callable[..., Any] = dataclasses.field(metadata=_STATIC)
    variables: Any = dataclasses.field(metadata=_STATIC)
    data: Any = None
    smoothness: float | None = None
    strong_convexity: float = 0.0

    constants_are: ClassVar[str] = "assumed"

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"function must be a function of x or of (x, data); got {type(self.function).__name__}")
        given = self.variables
        if isinstance(given, Mapping):
            try:
                shapes = tuple((str(name), tuple(int(size) for size in shape)) for name, shape in given.items())
            except (TypeError, ValueError):
                raise TypeError(
                    f"variables must map each name to its shape, as in {{'x': (3,)}}; got {given}"
                ) from None
            object.__setattr__(self, "variables", shapes)
        elif isinstance(given, bool) or not isinstance(given, int | np.integer | tuple):
            raise TypeError(f"variables must be a number of coordinates or a mapping of names to shapes; got {given!r}")
        if self.dim < 1:
            raise ValueError(f"variables: a target needs at least one coordinate; got {self.dim}")
        checks.not_negative("strong_convexity", self.strong_convexity)
        if self.smoothness is not None:
            checks.positive("smoothness", self.smoothness)
        if self.smoothness is not None and self.smoothness < self.strong_convexity:
            raise ValueError(
                f"smoothness must not be below strong_convexity; got {self.smoothness} and {self.strong_convexity}"
            )

    @classmethod
    def of(cls, family: Any, theta: Any) -> "Target":
        """The distribution of a continuous family at a natural parameter, as a target: its constant is known, so that
        it can check a sampler or begin an annealing path.

        >>> from cumulant.families import Normal
        >>> float(Target.of(Normal(), Normal().natural(mean=0.0, variance=1.0)).gradient([2.0])[0])
        -2.0
        """
        if not hasattr(family, "event_shape"):
            raise TypeError(f"family must be an exponential family, such as Normal(); got {type(family).__name__}")
        if getattr(family, "discrete", False) or getattr(family, "on_surface", False):
            raise ValueError(
                f"a target needs a density over all coordinates; observations of {family} are {family.support}"
            )
        if len(family.event_shape) > 1 or any(isinstance(size, tuple) for size in family.event_shape):
            raise ValueError(f"a target needs a family of numbers or vectors; {family} has events {family.event_shape}")
        dim = int(np.prod(family.event_shape, dtype=int))
        return cls(_of_vector if family.event_shape else _of_number, dim, (family, np.asarray(theta, dtype=np.float64)))

    @property
    def dim(self) -> int:
        """The number of coordinates."""
        if isinstance(self.variables, tuple):
            return sum(math.prod(shape) for _, shape in self.variables)
        return int(self.variables)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each named variable, in the order of the coordinates; ``{"x": (dim,)}`` where none is named."""
        return dict(self.variables) if isinstance(self.variables, tuple) else {"x": (self.dim,)}

    def unflatten(self, x: Any) -> dict[str, Any]:
        """Coordinates ``(..., dim)`` as named variables."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        parts = (jnp if isinstance(x, jax.Array) else np).split(x, ends, axis=-1)
        return {
            name: part.reshape((*part.shape[:-1], *shape))
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def starts(self, chains: int, start: Any, seed: int) -> np.ndarray:
        """Where chains begin, ``(chains, dim)``: at `start`, one for all or one each, or at standard normal points."""
        if start is None:
            return np.stack([np.random.default_rng([seed, c]).normal(size=self.dim) for c in range(chains)])
        start = np.asarray(start, dtype=np.float64)
        if start.shape not in ((self.dim,), (chains, self.dim)):
            raise ValueError(f"start must have shape ({self.dim},) or ({chains}, {self.dim}); got {start.shape}")
        return np.broadcast_to(start, (chains, self.dim)).copy()

    @precise
    def log_density(self, x):
        """``log p(x) + log Z`` at coordinates ``(..., dim)``."""
        return jnp.vectorize(self.at, signature="(d)->()")(x)

    @precise
    def gradient(self, x):
        """``grad log p(x)`` at coordinates ``(..., dim)``."""
        return jnp.vectorize(jax.grad(self.at), signature="(d)->(d)")(x)

    def at(self, x: Any) -> Any:
        """The log-density at one vector, in plain JAX: for compiled programs."""
        point = self.unflatten(x) if isinstance(self.variables, tuple) else x
        return self.function(point) if self.data is None else self.function(point, self.data)

    def problem(self) -> Objective:
        """``-log p`` as a problem for `optim.run`: its minimiser is the mode."""
        return Objective(_potential, self, self.smoothness, self.strong_convexity)


def _potential(x, target):
    return -target.at(x)


def _of_vector(x, data):
    family, theta = data
    return family.log_prob(x, theta)


def _of_number(x, data):
    family, theta = data
    return family.log_prob(x[0], theta)
