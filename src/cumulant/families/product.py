"""Products of families: independent parts observed together."""

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.families.base import ExponentialFamily, constant, family


@family
class Product(ExponentialFamily):
    """Tuples ``x = (x_1, ..., x_k)`` of independent observations, the i-th from the i-th of `parts`.

    ``T``, ``theta`` and ``mu`` are those of the parts one after the other; ``A`` is the sum of theirs.

    Examples
    --------
    >>> from cumulant.families import Gamma, Poisson
    >>> fam = Product((Gamma(), Poisson()))
    >>> theta = fam.natural(parts=({"shape": 2.0, "rate": 3.0}, {"rate": 4.0}))
    >>> fam.dim, fam.log_partition(theta)
    (3, np.float64(1.802775422...))
    """

    parts: tuple[ExponentialFamily, ...] = constant()

    def __post_init__(self):
        if isinstance(self.parts, list):
            object.__setattr__(self, "parts", tuple(self.parts))

    @property
    def dim(self):
        return sum(part.dim for part in self.parts)

    @property
    def event_shape(self):
        return tuple(part.event_shape for part in self.parts)

    @property
    def support(self):
        return "; ".join(f"x_{i + 1}: {part.support}" for i, part in enumerate(self.parts))

    @property
    def domain(self):
        return "; ".join(f"theta_{i + 1}: {part.domain}" for i, part in enumerate(self.parts))

    @property
    def mean_domain(self):
        return "; ".join(f"mu_{i + 1}: {part.mean_domain}" for i, part in enumerate(self.parts))

    def split(self, vector):
        """The pieces of a natural or mean parameter that belong to each part."""
        ends = np.cumsum([part.dim for part in self.parts])
        return tuple(vector[..., end - part.dim : end] for part, end in zip(self.parts, ends, strict=True))

    def _each(self, name, *vectors):
        """The answers of the parts to one question about their pieces."""
        pieces = zip(*(self.split(v) for v in vectors), strict=True)
        return [getattr(part, name)(*piece) for part, piece in zip(self.parts, pieces, strict=True)]

    def statistics(self, x):
        return jnp.concatenate([part.statistics(piece) for part, piece in zip(self.parts, x, strict=True)], axis=-1)

    def log_base(self, x):
        return sum(part.log_base(piece) for part, piece in zip(self.parts, x, strict=True))

    def log_partition(self, theta):
        return sum(self._each("log_partition", theta))

    def natural(self, *, parts):
        pieces = [part.natural(**usual) for part, usual in zip(self.parts, parts, strict=True)]
        return jnp.concatenate(pieces, axis=-1)

    def usual(self, theta):
        return {"parts": tuple(self._each("usual", theta))}

    def to_mean(self, theta):
        return jnp.concatenate(self._each("to_mean", theta), axis=-1)

    def to_natural(self, mu):
        return jnp.concatenate(self._each("to_natural", mu), axis=-1)

    def conjugate(self, mu):
        return sum(self._each("conjugate", mu))

    def expected_log_base(self, theta):
        return sum(self._each("expected_log_base", theta))

    def log_prob(self, x, theta):
        return sum(p.log_prob(piece, t) for p, piece, t in zip(self.parts, x, self.split(theta), strict=True))

    def entropy(self, theta):
        return sum(self._each("entropy", theta))

    def kl(self, theta, other):
        return sum(self._each("kl", theta, other))

    def in_domain(self, theta):
        return jnp.all(jnp.stack(self._each("in_domain", theta)), axis=0)

    def in_mean_domain(self, mu):
        return jnp.all(jnp.stack(self._each("in_mean_domain", mu)), axis=0)

    def in_support(self, x):
        inside = [part.in_support(piece) for part, piece in zip(self.parts, x, strict=True)]
        return jnp.all(jnp.stack(jnp.broadcast_arrays(*inside)), axis=0)

    def _draw(self, key, theta, shape):
        keys = jax.random.split(key, len(self.parts))
        return tuple(p._draw(k, t, shape) for p, k, t in zip(self.parts, keys, self.split(theta), strict=True))

    def _check_event(self, x):
        if not isinstance(x, tuple) or len(x) != len(self.parts):
            raise DomainError(f"x, data of {self}, must be a tuple of {len(self.parts)} arrays, one per part")
        for part, piece in zip(self.parts, x, strict=True):
            part._check_event(piece)

    # Central coordinates are those of the parts, one after the other.

    def _central(self, x, weights):
        return jnp.concatenate(
            [part._central(piece, weights) for part, piece in zip(self.parts, x, strict=True)], axis=-1
        )

    def _merge(self, first, second, share):
        pieces = zip(self.parts, self.split(first), self.split(second), strict=True)
        return jnp.concatenate([part._merge(a, b, share) for part, a, b in pieces], axis=-1)

    def _from_mean(self, mu):
        return jnp.concatenate(self._each("_from_mean", mu), axis=-1)

    def _central_to_mean(self, central):
        return jnp.concatenate(self._each("_central_to_mean", central), axis=-1)

    def _central_to_natural(self, central):
        return jnp.concatenate(self._each("_central_to_natural", central), axis=-1)

    def _estimable(self, central):
        return jnp.all(jnp.stack(self._each("_estimable", central)), axis=0)

    def _obstacle(self, central, count):
        for i, (part, piece) in enumerate(zip(self.parts, self.split(np.asarray(central)), strict=True)):
            if not bool(part._estimable(jnp.asarray(piece))):
                return f"in part {i + 1} ({part}), {part._obstacle(piece, count)}"
        return super()._obstacle(central, count)
