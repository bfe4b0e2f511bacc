"""Gradient oracles: ``oracle(problem, x, step, key)`` is an estimate of ``grad f(x)``."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.optim.problems.expectation import Expectation
from cumulant.optim.problems.row_sums import RowSums
from cumulant.optim.problems.sparse_matrix import SparseMatrix
from cumulant.pytrees import pytree


class Noise(NamedTuple):
    """The constants of ``E |g - grad f(x)|^2 <= a |x - x*|^2 + b``, for every ``x``."""

    a: float
    b: float


@pytree
@dataclasses.dataclass(frozen=True)
class Exact:
    """The gradient itself.

    >>> from cumulant import optim
    >>> loss = optim.Quadratic([[2.0]], [1.0])
    >>> print(Exact()(loss, jnp.array([3.0]), 0, None))
    [5.]
    """

    def __call__(self, loss, w, step, key):
        """``grad loss(w)``."""
        return loss.gradient(w)

    def noise(self, problem: Any, x_star: Any) -> Noise:
        """None at all."""
        return Noise(0.0, 0.0)


@pytree
@dataclasses.dataclass(frozen=True)
class Noisy:
    """The gradient plus independent normal errors of standard deviation `scale`.

    A gradient observed with error, as in Robbins and Monro (1951).

    >>> from cumulant import optim
    >>> loss = optim.Quadratic([[2.0]], [1.0])
    >>> print(Noisy(0.0)(loss, jnp.array([3.0]), 0, jax.random.key(0)))
    [5.]
    """

    scale: Any = 1.0

    def __post_init__(self):
        if isinstance(self.scale, int | float) and not self.scale >= 0:
            raise ValueError(f"scale of Noisy must not be negative; got {self.scale}")

    def __call__(self, loss, w, step, key):
        """``grad loss(w) + scale N(0, I)``."""
        return loss.gradient(w) + self.scale * jax.random.normal(key, w.shape, w.dtype)

    def noise(self, problem: Any, x_star: Any) -> Noise:
        """``scale^2`` in each coordinate."""
        return Noise(0.0, float(self.scale) ** 2 * np.size(x_star))


@pytree
@dataclasses.dataclass(frozen=True)
class ByRows:
    """The gradient on some rows of `LeastSquares`, `Logistic` or `MarginLoss`, scaled to be unbiased.

    Robbins and Monro (1951).

    Parameters
    ----------
    order : str
        ``"stream"``: in the order given, round again after the last. ``"random"``: drawn with replacement.
    batch : int
        How many rows at a time.

    Examples
    --------
    >>> from cumulant import optim
    >>> loss = optim.LeastSquares([[1.0], [2.0]], [0.0, 0.0])
    >>> print(ByRows()(loss, jnp.array([1.0]), 0, None), ByRows()(loss, jnp.array([1.0]), 1, None))
    [1.] [4.]
    """

    order: str = dataclasses.field(default="stream", metadata={"static": True})
    batch: int = dataclasses.field(default=1, metadata={"static": True})

    def __post_init__(self):
        if self.order not in ("stream", "random"):
            raise ValueError(f"order must be 'stream' or 'random'; got {self.order!r}")
        checks.whole("batch", self.batch)

    def __call__(self, loss: Any, w, step, key):
        """The gradient on the rows of this step."""
        if not isinstance(loss, RowSums):
            raise TypeError(
                f"ByRows needs a loss of the rows of a matrix, such as LeastSquares; got {type(loss).__name__}"
            )
        if isinstance(loss.A, SparseMatrix):
            raise TypeError("ByRows needs a dense matrix: rows of a sparse one have no fixed size")
        n = loss.A.shape[0]
        if self.order == "random":
            rows = jax.random.randint(key, (self.batch,), 0, n)
        else:
            rows = (step * self.batch + jnp.arange(self.batch)) % n
        A, y = jnp.asarray(loss.A)[rows], jnp.asarray(loss.y)[rows]
        few: Any = dataclasses.replace(loss, A=A, y=y, l2=0.0)  # pyright: ignore[reportArgumentType]
        return n * loss.weight / (self.batch * few.weight) * few.gradient(w) + loss.l2 * w

    def noise(self, problem: Any, x_star: Any) -> Noise:
        """``a = 2 (n weight)^2 mean L_i^2 / batch``, ``b = 2 Var_i(n weight grad f_i(x*)) / batch``, rows at random.

        ``L_i`` is the smoothness of the loss of row ``i``; the penalty `l2` has no noise. From ``Var(u) <=
        2 E |u - v|^2 + 2 Var(v)`` with the gradients at ``x`` and ``x*``. Refused for ``order="stream"``, whose
        gradients are not independent.
        """
        if self.order != "random":
            raise ValueError("the noise of ByRows is known for order='random': rows in their given order are not drawn")
        n, share = problem.n_terms, float(problem.l2) / (problem.weight * problem.n_terms)
        factor = n * problem.weight
        smoothness = factor * (np.asarray(problem.term_smoothness) - share)
        x_star = np.asarray(x_star, dtype=np.float64)
        terms = factor * np.asarray(problem.term_gradient(x_star, np.arange(n)), dtype=np.float64).reshape(n, -1)
        spread = float(np.mean(np.sum((terms - terms.mean(axis=0)) ** 2, axis=1)))
        return Noise(2 * float(np.mean(smoothness**2)) / self.batch, 2 * spread / self.batch)


@pytree
@dataclasses.dataclass(frozen=True)
class Sampled:
    """Your own: a module-level function of ``(w, data, step, key)`` that returns an unbiased gradient.

    Robbins and Monro (1951). `constants` are those of its noise, ``(a, b)``, if you know them.

    >>> def pull(w, data, step, key):
    ...     return w - data
    >>> print(Sampled(pull, 2.0)(None, jnp.array([5.0]), 0, None))
    [3.]
    """

    function: Callable[[Any, Any, Any, Any], Any] = dataclasses.field(metadata={"static": True})
    data: Any = ()
    constants: tuple[float, float] | None = dataclasses.field(default=None, metadata={"static": True})

    def __post_init__(self):
        if not callable(self.function):
            raise TypeError(f"function must be a function of (w, data, step, key); got {type(self.function).__name__}")

    def __call__(self, loss, w, step, key):
        """``function(w, data, step, key)``."""
        return self.function(w, self.data, step, key)

    def noise(self, problem: Any, x_star: Any) -> Noise:
        """The constants that were given."""
        return _given(self)


@pytree
@dataclasses.dataclass(frozen=True)
class Fresh:
    """The gradient of the loss of an `Expectation` at `batch` fresh draws: unbiased.

    Robbins and Monro (1951). `constants` are those of its noise, ``(a, b)``, if you know them.

    >>> from cumulant import optim
    >>> loss = optim.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jnp.ones(2))
    >>> print(Fresh(4)(loss, jnp.array([3.0, 1.0]), 0, jax.random.key(0)))
    [2. 0.]
    """

    batch: int = dataclasses.field(default=1, metadata={"static": True})
    constants: tuple[float, float] | None = dataclasses.field(default=None, metadata={"static": True})

    def __post_init__(self):
        checks.whole("batch", self.batch)

    def __call__(self, loss, w, step, key):
        """``grad_w loss(w, z)``, averaged over the draws."""
        if not isinstance(loss, Expectation):
            raise TypeError(f"Fresh draws need an Expectation; got {type(loss).__name__}")
        return jax.grad(loss.mean_loss)(w, key, self.batch)

    def noise(self, problem: Any, x_star: Any) -> Noise:
        """The constants that were given."""
        return _given(self)


def _given(oracle: Any) -> Noise:
    if oracle.constants is None:
        name = type(oracle).__name__
        raise ValueError(f"the noise of {name} gradients is known only to you: give constants=(a, b)")
    return Noise(*map(float, oracle.constants))


def check_oracle(gradients: Any) -> None:
    """Refuse what cannot be called."""
    if not callable(gradients):
        raise TypeError(
            f"gradients must be Exact(), Noisy(), ByRows(), Fresh() or Sampled(); got {type(gradients).__name__}"
        )
