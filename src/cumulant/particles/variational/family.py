"""What a model gives to variational sequential Monte Carlo: an exponential family of two blocks of variables."""

import abc
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.precision import float64, to_jax, to_numpy


class TwoBlockFamily(abc.ABC):
    """``p(x; theta) = exp(<t(x), theta> - c(theta))`` with ``x = (x_A, x_B)``, each block easy to draw given the other.

    A model of your own is a subclass with the attributes and the abstract methods below. One function,
    ``log f_A(x_A; theta) = log sum_(x_B) exp <t(x_A, x_B), theta>``, gives all that the method needs besides draws. It
    is the log-normaliser of ``x_B`` given ``x_A``, so that

    * weights are its differences, with ``x_B`` summed out (Rao-Blackwellised),
    * its gradient is the conditional mean ``E[t | x_A]``,
    * its Hessian times a vector is ``Cov[t | x_A] v``.

    They are derived from `log_block` by automatic differentiation. Where there are closed forms, override
    `block_values`, `block_means` and `block_products`.

    That `log_block`, the statistics and the two samplers belong to the same distribution is the word of whoever wrote
    them; `check_family` tests it by simulation.

    Attributes
    ----------
    target, start : array (dim,)
        ``theta*``, and a parameter from which exact draws can be made.
    log_partition_at_start : float
        ``c(start)``.
    lower : array (dim,) or None
        Lower bounds on ``theta``, -inf where there is none; the start must lie strictly above them.
    exact : bool
        Whether all states have the same weights: see `Bridge`. False unless said otherwise.
    magnitude : float
        The sum of the sizes of the terms of ``log_block``, where these can cancel: see `Bridge`. Zero unless said
        otherwise.

    References
    ----------
    Carbonetto (2009), PhD thesis, section 3.3.5.

    Examples
    --------
    Two spins with a coupling:

    >>> class Pair(TwoBlockFamily):
    ...     target, start, log_partition_at_start = np.array([1.0]), np.zeros(1), 2 * np.log(2)
    ...     def begin(self, n, rng):
    ...         return rng.choice([-1.0, 1.0], (n, 1)), rng.choice([-1.0, 1.0], (n, 1))
    ...     def statistics(self, a, b):
    ...         return a * b
    ...     def log_block(self, a, theta):
    ...         return jnp.logaddexp(theta * a, -theta * a)[:, 0]
    ...     def sample_B(self, a, theta, rng):
    ...         return np.where(rng.random(a.shape) < 1 / (1 + np.exp(-2 * theta * a)), 1.0, -1.0)
    ...     sample_A = sample_B
    >>> Pair().block_means(np.array([[1.0], [-1.0]]), np.array([0.5])).round(4)      # tanh(1/2)
    array([[0.4621],
           [0.4621]])
    """

    target: np.ndarray
    start: np.ndarray
    log_partition_at_start: float
    lower: np.ndarray | None = None
    exact: bool = False
    magnitude: float = 0.0

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return self.target.size

    @abc.abstractmethod
    def begin(self, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """`n` independent exact draws ``(x_A, x_B)`` of ``p(x; start)``: pytrees of arrays with a row for each."""

    @abc.abstractmethod
    def statistics(self, x_A: Any, x_B: Any) -> np.ndarray:
        """``t(x)`` of each particle, ``(n, dim)``."""

    @abc.abstractmethod
    def log_block(self, x_A: Any, theta: Any) -> Any:
        """``log f_A(x_A; theta)`` of each particle, ``(n,)``, in JAX; only its differences in ``theta`` matter."""

    @abc.abstractmethod
    def sample_B(self, x_A: Any, theta: np.ndarray, rng: np.random.Generator) -> Any:
        """Exact draws of ``x_B`` given ``x_A``."""

    @abc.abstractmethod
    def sample_A(self, x_B: Any, theta: np.ndarray, rng: np.random.Generator) -> Any:
        """Exact draws of ``x_A`` given ``x_B``."""

    def move(self, x: tuple[Any, Any], theta: np.ndarray, rng: np.random.Generator) -> tuple[Any, Any]:
        """A transition that leaves ``p(x; theta)`` as it is and begins with a draw of ``x_B`` given ``x_A``: by default
        that, and then ``x_A`` given ``x_B``. Override it where there are better ones.
        """
        x_B = self.sample_B(x[0], theta, rng)
        return self.sample_A(x_B, theta, rng), x_B

    def draws(self, x_A: Any, x_B: Any) -> np.ndarray:
        """Particles as users see them, ``(n, ...)``: by default all of ``x_A`` and then all of ``x_B``."""
        return np.concatenate([np.asarray(leaf).reshape(len(leaf), -1) for leaf in jax.tree.leaves((x_A, x_B))], axis=1)

    # Derived from log_block -------------------------------------------------------------------------------------------

    def block_values(self, x_A: Any, theta: np.ndarray) -> np.ndarray:
        """``log f_A(x_A; theta)``, ``(n,)``, in float64."""
        return self._call(0, x_A, theta)

    def block_means(self, x_A: Any, theta: np.ndarray) -> np.ndarray:
        """``E[t | x_A]`` of each particle, ``(n, dim)``."""
        return self._call(1, x_A, theta)

    def block_products(self, x_A: Any, theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """``Cov[t | x_A] v`` of each particle, ``(n, dim)``."""
        return self._call(2, x_A, theta, vector)

    def _call(self, which: int, x_A: Any, *rest: np.ndarray) -> np.ndarray:
        with float64():
            return to_numpy(self._programs[which](jax.tree.map(to_jax, x_A), *(jnp.asarray(each) for each in rest)))

    @functools.cached_property
    def _programs(self):
        def one(x, theta):
            return self.log_block(jax.tree.map(lambda leaf: leaf[None], x), theta)[0]

        slope = jax.grad(one, argnums=1)

        def product(x, theta, vector):
            return jax.jvp(lambda theta: slope(x, theta), (theta,), (vector,))[1]

        means = jax.vmap(slope, (0, None))
        return jax.jit(self.log_block), jax.jit(means), jax.jit(jax.vmap(product, (0, None, None)))


def require_family(family: TwoBlockFamily) -> TwoBlockFamily:
    """Refuse a family whose parameters or arrays do not fit together."""
    name = type(family).__name__
    for attribute in ("target", "start"):
        value = np.asarray(getattr(family, attribute))
        if value.ndim != 1 or value.dtype.kind != "f" or not np.isfinite(value).all():
            raise ValueError(f"{attribute} of {name} must be a vector of finite floats; got {value!r:.80}")
    if family.start.shape != family.target.shape:
        raise ValueError(f"start and target of {name} have {family.start.size} and {family.target.size} entries")
    if not np.isfinite(family.log_partition_at_start):
        raise ValueError(f"log_partition_at_start of {name} must be finite; got {family.log_partition_at_start}")
    if family.lower is not None:
        if family.lower.shape != family.target.shape:
            raise ValueError(f"lower of {name} must have {family.dim} entries; got shape {family.lower.shape}")
        if (family.start <= family.lower).any() or (family.target < family.lower).any():
            raise DomainError(f"the start of {name} must lie strictly above lower, the target not below it")
    x_A, x_B = family.begin(2, np.random.default_rng(0))
    for what, found, shape in (
        ("statistics", family.statistics(x_A, x_B), (2, family.dim)),
        ("log_block", family.block_values(x_A, family.start), (2,)),
    ):
        if np.shape(found) != shape or not np.isfinite(found).all():
            raise ValueError(
                f"{what} of {name} must be finite numbers of shape {shape} for two particles; got shape "
                f"{np.shape(found)}"
            )
    return family


def check_family(
    family: TwoBlockFamily, theta: Any = None, *, n: int = 4000, rng: Any = 0, limit: float = 5.0
) -> float:
    """Test by simulation that the parts of a family belong to the same distribution; the largest z-score.

    At the start and at `theta` (half way to the target by default), statistics of draws of ``x_B`` given ``x_A`` must
    have the mean ``grad log f_A``; and two sweeps of both samplers must leave the mean of ``grad log f_A`` under exact
    draws of the start as it is. A score above `limit` is refused with a `DomainError` that says which failed.

    Examples
    --------
    >>> from cumulant.graphical import Ising, torus
    >>> from cumulant.particles import IsingFamily
    >>> check_family(IsingFamily(Ising(torus(4, 4), 0.5))) < 5
    True
    """
    require_family(family)
    checks.whole("n", n, 2)
    checks.positive("limit", limit)
    generator = np.random.default_rng(rng)
    half = family.start + 0.5 * (family.target - family.start) if theta is None else np.asarray(theta, dtype=float)
    x_A, x_B = family.begin(n, generator)
    worst = 0.0
    for where, at in (("start", family.start), ("theta", half)):
        drawn = family.statistics(x_A, family.sample_B(x_A, at, generator))
        score = _score(drawn - family.block_means(x_A, at))
        if score > limit:
            raise DomainError(
                f"sample_B and log_block of {type(family).__name__} do not agree at {where}: the statistics of draws "
                f"are {score:.1f} standard errors from the gradient of log_block"
            )
        worst = max(worst, score)
    before = family.block_means(x_A, family.start)
    for _ in range(2):
        x_B = family.sample_B(x_A, family.start, generator)
        x_A = family.sample_A(x_B, family.start, generator)
    score = _score(family.block_means(x_A, family.start) - before)
    if score > limit:
        raise DomainError(
            f"sweeps of {type(family).__name__} do not leave its start as it is: {score:.1f} standard errors"
        )
    return max(worst, score)


def _score(differences: np.ndarray) -> float:
    """The largest mean of a column, in its standard errors; columns that do not vary must be zero up to rounding."""
    error = differences.std(axis=0, ddof=1) / np.sqrt(len(differences))
    mean = np.abs(differences.mean(axis=0))
    return float(np.max(mean / np.maximum(error, 1e-9), initial=0.0))
