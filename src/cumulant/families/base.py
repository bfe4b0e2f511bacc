"""Everything that follows from the cumulant function ``A``, written once for all families.

A family states its statistic ``T``, base measure and ``A``; this file derives means, entropies, divergences, Fisher
information, estimates and membership tests from them.
"""

import dataclasses
import functools
import inspect
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import checks, randomness
from cumulant.errors import DomainError
from cumulant.families._calling import public_method
from cumulant.families.newton import solve_mean_equation
from cumulant.families.quantiles import quantile, solve_tails
from cumulant.precision import any_jax, any_tracer, as_jax, float64, to_numpy
from cumulant.pytrees import pytree

# The public methods; each is wrapped by the rule of precision when a class defines it.
_PUBLIC = (
    "statistics", "log_base", "log_partition", "natural", "usual", "to_mean", "to_natural", "conjugate",
    "expected_log_base", "log_prob", "entropy", "cross_entropy", "kl", "bregman", "bregman_conjugate", "symmetrised",
    "fisher", "cdf", "survival", "log_cdf", "log_survival", "quantile", "upper_quantile",
)  # fmt: skip
_MEMBERSHIP = ("in_domain", "in_mean_domain", "in_support")


def constant() -> Any:
    """A field of a family that is an array (a known covariance, say): data of the compiled program, not part of it."""
    return dataclasses.field(metadata={"array": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(constant,))
def family(cls: type) -> type:
    """Class decorator: a frozen dataclass that JAX knows as a pytree; fields made by `constant()` are its leaves."""
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    build, signature = cls.__init__, inspect.signature(cls.__init__)

    @functools.wraps(build)
    def init(self, *args, **kwargs):
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as problem:
            raise TypeError(f"{cls.__name__}: {problem}{getattr(cls, 'fitting_advice', '')}") from None
        build(self, *args, **kwargs)

    cls.__init__ = init
    return pytree(cls, static=[f.name for f in dataclasses.fields(cls) if not f.metadata.get("array")])


class Learnable:
    """What learning from sufficient statistics asks of a family: see `families.statistics` for the reduction.

    Central coordinates are the mean parameter in a form that does not cancel: for the normal, (mean, variance) rather
    than (E x, E x^2). By default they are the mean parameter itself. Statistics are kept and merged in them.
    """

    dim: int = 0
    mean_domain: str = ""
    to_natural: Any
    in_domain: Any
    in_mean_domain: Any
    log_partition: Any
    collect: Any
    description: Any  # of what is not a dataclass, for files: its inverse is `from_description`
    from_description: Any
    _refusal: Any

    def _merge(self, first, second, share):
        """Central coordinates of a mixture: ``(1 - share)`` of the first, ``share`` of the second."""
        return first + share[..., None] * (second - first)

    def _from_mean(self, mu):
        return mu

    def _central_to_mean(self, central):
        return central

    def _central_to_natural(self, central):
        return self.to_natural(central)

    def _has_central_inverse(self) -> bool:
        return type(self)._central_to_natural is not Learnable._central_to_natural

    def _estimable(self, central):
        """Whether statistics have a finite maximum-likelihood estimate: the mean lies inside its domain, beyond
        rounding.
        """
        return self.in_mean_domain(self._central_to_mean(central))

    def _obstacle(self, central, count) -> str:
        """Why statistics that are not `_estimable` are not. One unbatched point, on the host."""
        where = f"on the boundary of its domain ({self.mean_domain})"
        return f"the mean statistic {central} of {count:g} observations lies {where}"

    def mle(self, x, weights=None):
        """The maximum-likelihood estimate of ``theta`` from observations on the first axis: ``grad A*(mean T)``.

        Raises `NoEstimateError` where no finite estimate exists, with the reason.
        """
        return self.collect(x, weights).mle()

    def map(self, x, prior, weights=None):
        """The mode of the posterior density of ``theta`` under a `ConjugatePrior`: ``grad A*((n0 mu0 + sum T) / (n0 +
        n))``.
        """
        return self.collect(x, weights).map(prior)


class ExponentialFamily(Learnable):
    """An exponential family ``p(x) = h(x) exp(<theta, T(x)> - A(theta))``, in minimal form.

    Parameters are plain arrays with the parameter on the last axis, batched over leading axes. NumPy input is computed
    in float64 and returned as NumPy; JAX input in the caller's own precision; all methods work under `jit`, `vmap`,
    `grad`.

    To write a family: a class marked `@family` with `dim`, `statistics`, `log_base` and `expected_log_base` or
    `constant_log_base`, `log_partition`, `natural`, `usual`, `_draw`, the membership tests, and closed forms of
    `to_mean`, `to_natural` and `conjugate` where there are any. See `families.poisson` for a short one.

    Attributes
    ----------
    dim : int
        The number of natural parameters, equal to the dimension of ``T``.
    event_shape : tuple of int
        The shape of one observation: ``()`` for a number.
    support, domain, mean_domain, usual_domain : str
        In words: where observations, natural, mean and usual parameters live. Used in error messages and tables.
    discrete, on_surface : bool
        Whether observations are counts or labels; whether they fill only a surface of their space, as the simplex and
        the sphere are, on which the density is one. Neither has a density in that space.
    constant_log_base : float or None
        ``log h``, of a family whose base measure is constant; others define `log_base` and `expected_log_base`.
    ends : tuple of float
        Of a family of numbers: the smallest and the largest of its support.
    """

    dim: int = 0
    event_shape: tuple = ()
    support: str = ""
    domain: str = ""
    mean_domain: str = ""
    usual_domain: str = ""
    discrete: bool = False
    on_surface: bool = False
    constant_log_base: float | None = None
    ends: tuple[float, float] = (-np.inf, np.inf)
    fitting_advice = ""  # said where a known constant is not given

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name in (*_PUBLIC, *_MEMBERSHIP):
            if name in cls.__dict__:
                setattr(cls, name, public_method(cls.__dict__[name], checks=name in _PUBLIC))

    # What a family must state --------------------------------------------------------------------------------------

    def statistics(self, x):
        """The sufficient statistic ``T(x)``, shape ``(..., dim)``."""
        raise NotImplementedError(f"{type(self).__name__} must define statistics(x)")

    def log_base(self, x):
        """The logarithm of the base measure ``h(x)`` on the support, with respect to counting or Lebesgue measure."""
        return jnp.full(x.shape[: x.ndim - len(self.event_shape)], self._constant_base("log_base(x)"), dtype=x.dtype)

    def log_partition(self, theta):
        """The cumulant function ``A(theta) = log sum_x h(x) exp <theta, T(x)>``."""
        raise NotImplementedError(f"{type(self).__name__} must define log_partition(theta)")

    def natural(self, **usual):
        """The natural parameter for the usual ones, such as ``natural(mean=0.0, variance=1.0)``."""
        raise NotImplementedError(f"{type(self).__name__} must define natural(**usual)")

    def usual(self, theta) -> dict:
        """The usual parameters by name; the inverse of `natural`."""
        raise NotImplementedError(f"{type(self).__name__} must define usual(theta)")

    def _draw(self, key, theta, shape):
        """Draws of shape ``(*shape, *batch, *event_shape)``, in plain JAX."""
        raise NotImplementedError(f"{type(self).__name__} must define _draw(key, theta, shape)")

    def in_domain(self, theta):
        """Whether ``theta`` is a natural parameter (finite, and where ``A`` is finite)."""
        return jnp.all(jnp.isfinite(theta), axis=-1)

    def in_mean_domain(self, mu):
        """Whether ``mu`` is the mean of some member, that is, in the interior of the convex hull of ``T``."""
        return jnp.all(jnp.isfinite(mu), axis=-1)

    def in_support(self, x):
        """Whether ``x`` is a possible observation: by default, whether it is finite."""
        return jnp.all(jnp.isfinite(x), axis=tuple(range(-len(self.event_shape), 0)))

    # What follows from A ---------------------------------------------------------------------------------------------

    def to_mean(self, theta):
        """``mu = grad A(theta) = E T(x)``."""
        return jax.grad(lambda t: jnp.sum(self.log_partition(t)))(theta)

    def value_and_mean(self, theta):
        """``A(theta)`` and ``grad A(theta)`` together."""
        return self.log_partition(theta), self.to_mean(theta)

    def to_natural(self, mu):
        """``theta = (grad A)^-1(mu) = grad A*(mu)``, by a safeguarded Newton solve unless there is a closed form."""
        if self._has_central_inverse():
            return self._central_to_natural(self._from_mean(mu))
        return solve_mean_equation(self, mu)

    def _start(self, mu):
        """Some natural parameter from which the Newton solve of `to_natural` starts."""
        return jnp.zeros_like(mu)

    def conjugate(self, mu):
        """``A*(mu) = max_theta <theta, mu> - A(theta)``: the negative entropy relative to the base measure."""
        theta = self.to_natural(mu)
        return jnp.sum(theta * mu, axis=-1) - self.log_partition(theta)

    def expected_log_base(self, theta):
        """``E log h(x)``: the one part of the entropy that ``A`` does not give."""
        return jnp.full(theta.shape[:-1], self._constant_base("expected_log_base(theta)"), dtype=theta.dtype)

    def _constant_base(self, method: str) -> float:
        if self.constant_log_base is None:
            raise NotImplementedError(f"{type(self).__name__} must define {method}, or a constant_log_base")
        return self.constant_log_base

    def log_prob(self, x, theta):
        """``log p(x) = <theta, T(x)> + log h(x) - A(theta)``; minus infinity outside the support.

        `x` of shape ``(*batch, *event_shape)`` is broadcast against the batch of `theta`.
        """
        inside = self.in_support(x)
        return jnp.where(inside, self._log_density(self._inside(x, inside), theta), -jnp.inf)

    def _log_density(self, x, theta):
        """`log_prob` inside the support. Families override it where this sum cancels."""
        return jnp.sum(theta * self.statistics(x), axis=-1) + self.log_base(x) - self.log_partition(theta)

    def entropy(self, theta):
        """``H = -E log p(x) = A(theta) - <theta, mu> - E log h(x)``, in nats (differential for continuous families)."""
        return self.log_partition(theta) - jnp.sum(theta * self.to_mean(theta), axis=-1) - self.expected_log_base(theta)

    def cross_entropy(self, theta, other):
        """``-E_theta log p_other(x)``, which is ``entropy(theta) + kl(theta, other)``."""
        mean = self.to_mean(theta)
        return self.log_partition(other) - jnp.sum(other * mean, axis=-1) - self.expected_log_base(theta)

    def kl(self, theta, other):
        """``KL(p_theta || p_other) = A(other) - A(theta) - <mu, other - theta>``, the truth first.

        Families override it where this sum cancels for near members.
        """
        value = self.log_partition(other) - self.log_partition(theta)
        value = value - jnp.sum(self.to_mean(theta) * (other - theta), axis=-1)
        return jnp.maximum(value, 0.0)  # convexity says >= 0; only rounding can say otherwise

    def bregman(self, theta, other):
        """``A(theta) - A(other) - <grad A(other), theta - other>``, which is ``KL(p_other || p_theta)``."""
        return self.kl(other, theta)

    def bregman_conjugate(self, mu, nu):
        """``A*(mu) - A*(nu) - <grad A*(nu), mu - nu>``, which is ``KL(p_mu || p_nu)``: the truth first."""
        return self.kl(*self._both_to_natural(mu, nu))

    def symmetrised(self, mu, nu):
        """``KL(p_mu || p_nu) + KL(p_nu || p_mu) = <theta_mu - theta_nu, mu - nu>``."""
        first, second = self._both_to_natural(mu, nu)
        return jnp.sum((first - second) * (mu - nu), axis=-1)

    def _both_to_natural(self, mu, nu):
        """The natural parameters of two means by one solve: a solve that stands twice is compiled twice."""
        return self.to_natural(jnp.stack(jnp.broadcast_arrays(mu, nu)))

    def fisher(self, theta):
        """The Fisher information in natural coordinates: ``hess A(theta) = Cov T(x)``, shape ``(..., dim, dim)``."""
        hessian = jax.hessian(self.log_partition)
        flat = theta.reshape(-1, self.dim)
        return jax.vmap(hessian)(flat).reshape(*theta.shape, self.dim)

    # The distribution function, of families of numbers ---------------------------------------------------------------

    def cdf(self, x, theta):
        """The distribution function ``P(X <= x)`` of a family of numbers; `x` is broadcast against the batch of
        `theta`.
        """
        return jnp.exp(self._tails(x, theta)[0])

    def survival(self, x, theta):
        """``P(X > x) = 1 - cdf``, accurate relative to itself where it is small."""
        return jnp.exp(self._tails(x, theta)[1])

    def log_cdf(self, x, theta):
        """``log P(X <= x)``: finite where the probability underflows."""
        return self._tails(x, theta)[0]

    def log_survival(self, x, theta):
        """``log P(X > x)``: finite where the probability underflows."""
        return self._tails(x, theta)[1]

    def quantile(self, p, theta):
        """The inverse of `cdf`; of a count, the smallest ``x`` with ``P(X <= x) >= p``."""
        return quantile(self, p, theta, upper=False)

    def upper_quantile(self, p, theta):
        """The inverse of `survival`, for a small upper tail ``p``; of a count, the smallest ``x`` with ``P(X > x) <=
        p``.
        """
        return quantile(self, p, theta, upper=True)

    def _tails(self, x, theta):
        """``log P(X <= x)`` and ``log P(X > x)``, inside the support and outside of it."""
        x = jnp.floor(x) if self.discrete else x
        low, high = self.ends
        below, above = x < low if self.discrete else x <= low, x >= high
        lower, upper = self._log_tails(jnp.where(below | above, jnp.asarray(self._example_point(), x.dtype), x), theta)
        nothing = jnp.asarray(-jnp.inf, dtype=lower.dtype)
        lower = jnp.where(below, nothing, jnp.where(above, 0.0, lower))
        return lower, jnp.where(below, 0.0, jnp.where(above, nothing, upper))

    def _log_tails(self, x, theta) -> Any:
        """`_tails` inside the support (of counts: below the largest). Both accurate relative to the probability."""
        if self.event_shape:
            raise TypeError(f"{self} has no distribution function: its observations have shape {self.event_shape}")
        raise NotImplementedError(f"{type(self).__name__} must define _log_tails(x, theta)")

    def _inverse_tails(self, log_lower, log_upper, theta):
        """The ``x`` of a continuous family with these two tails, by Newton's method unless there is a closed form."""
        return solve_tails(self, log_lower, log_upper, theta)

    def _point(self, y, theta):
        """A point of a continuous family, and the log of its derivative, in a coordinate ``y`` of the whole line in
        which the density is log-concave and zero is near the middle.
        """
        raise NotImplementedError(f"{type(self).__name__} must define _point(y, theta), or _inverse_tails")

    # Sampling --------------------------------------------------------------------------------------------------------

    def sample(self, theta, n: int | tuple[int, ...] = 1, *, rng: Any = None):
        """Independent draws, shape ``(n, *batch, *event_shape)``.

        Parameters
        ----------
        theta : array
            Natural parameters ``(*batch, dim)``.
        n : int or tuple of int
            How many draws per parameter; they come on the leading axes.
        rng : int, numpy.random.Generator, JAX key or None
            The same int gives the same draws.
        """
        shape = tuple(checks.whole("n", size, 0) for size in (n if isinstance(n, list | tuple) else (n,)))
        if any_jax(theta):
            if not any_tracer(theta, self):
                self._require_domain(theta)
            return _draw(*as_jax((self, randomness.key(rng), theta)), shape)
        theta = checks.real_array("theta", theta, finite=False)
        self._require_domain(theta)
        key = randomness.key(rng)
        with float64():
            return to_numpy(_draw(self, key, theta, shape))

    def _require_domain(self, theta) -> None:
        if not np.all(self.in_domain(theta)):
            raise self._refusal("theta", theta, {})

    # Learning: see `Learnable`, `families.statistics` and `families.estimate`

    def _central(self, x, weights):
        """Central coordinates of data ``(n, *batch, *event)`` under weights ``(n, ...)`` that add up to one."""
        return jnp.sum(weights[..., None] * self.statistics(x), axis=0)

    def _central_kl(self, first, second):
        """`kl` of two members from their central coordinates."""
        return self.kl(self._central_to_natural(first), self._central_to_natural(second))

    def _central_of_numpy(self, x):
        """The same of unweighted NumPy data ``(n, *event)`` by a compiled loop, or None: where there is none, or where
        some observation is not inside the support.
        """
        return

    def collect(self, x, weights=None):
        """The sufficient statistics of a data set (`Statistics`): they add up with those of other data sets."""
        from cumulant.families.statistics import collect

        return collect(self, x, weights)

    def _log_conjugate_normaliser(self, total, count):
        """``log int exp(<total, theta> - count A(theta)) dtheta``, where it has a closed form."""
        raise NotImplementedError(f"{self} has no predictive distribution in closed form")

    def _draw_conjugate(self, key, total, count, shape):
        """Draws ``(*shape, dim)`` of ``theta`` from that density."""
        raise NotImplementedError(f"{self} has no predictive distribution in closed form")

    def estimate(self, x, weights=None, prior=None):
        """An `Estimate`: the parameter with standard errors, intervals, and how far from the truth to expect it."""
        from cumulant.families.estimate import estimate

        return estimate(self, x, weights, prior)

    # Errors, names
    # -----------------------------------------------------------------------------------------------------

    @property
    def usual_names(self) -> tuple[str, ...]:
        """The names of the usual parameters, in the order in which `natural` takes them."""
        return tuple(name for name in inspect.signature(type(self).natural).parameters if name != "self")

    def _inside(self, x, inside):
        """`x` with observations outside the support replaced by one inside, so that no NaN is computed from them."""
        shaped = inside.reshape(inside.shape + (1,) * len(self.event_shape))
        return jnp.where(shaped, x, jnp.asarray(self._example_point(), dtype=jnp.result_type(x)))

    def _example_point(self):
        """Some observation of the support."""
        return np.ones(self.event_shape)

    def _check_event(self, x) -> None:
        shape, size = np.shape(x), len(self.event_shape)
        if size and shape[-size:] != self.event_shape:
            raise DomainError(
                f"x, data of {self}, must have shape (..., {', '.join(map(str, self.event_shape))}); got {shape}"
            )

    def _refusal(self, name: str, value, arguments) -> DomainError:
        """The error for an argument that failed its test."""
        if name == "x":
            return DomainError(f"x, data of {self}, has NaN entries: drop or impute them first")
        if name == "p":
            wrong = np.extract(~((np.asarray(value) >= 0) & (np.asarray(value) <= 1)), value)[0]
            return DomainError(f"p, a probability, must be between 0 and 1; got {wrong}")
        value = np.asarray(value)
        if name in ("mu", "nu"):
            good, kind, rule = self.in_mean_domain(value), "mean parameter", self.mean_domain
        else:
            good, kind, rule = self.in_domain(value), "natural parameter", self.domain
        bad = np.argwhere(~np.atleast_1d(good))
        where = "" if np.ndim(good) == 0 or bad.size == 0 else f" at index {tuple(map(int, bad[0]))}"
        culprit = value if np.ndim(good) == 0 or bad.size == 0 else value[tuple(bad[0])]
        rule = rule or "all entries finite"
        if name == "natural" and "mu" not in arguments:
            given = ", ".join(
                f"{k}={np.array2string(np.asarray(v), threshold=6, precision=6)}" for k, v in arguments.items()
            )
            return DomainError(f"{self} has no member with {given}{where}: it needs {self.usual_domain or rule}")
        if name == "natural":
            return DomainError(
                f"the natural parameter of {self} for this mean is not representable: got {culprit}{where}"
            )
        return DomainError(f"{name}, a {kind} of {self}, must have {rule}; got {culprit}{where}")

    def __repr__(self):
        fields = dataclasses.fields(self) if dataclasses.is_dataclass(self) else ()
        values = {f.name: getattr(self, f.name) for f in fields}
        inner = ", ".join(f"{k}={v.tolist() if isinstance(v, np.ndarray) else v!r}" for k, v in values.items())
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = jax.tree.flatten(self), jax.tree.flatten(other)
        return mine[1] == theirs[1] and all(np.array_equal(a, b) for a, b in zip(mine[0], theirs[0], strict=True))

    def __hash__(self):
        return hash((type(self), jax.tree.structure(self)))


for _name in (*_PUBLIC, *_MEMBERSHIP):
    setattr(ExponentialFamily, _name, public_method(ExponentialFamily.__dict__[_name], checks=_name in _PUBLIC))


@functools.partial(jax.jit, static_argnames=("shape",))
def _draw(family, key, theta, shape):
    return family._draw(key, theta, shape)
