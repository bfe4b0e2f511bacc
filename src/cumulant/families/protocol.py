"""What a family is: the questions that closed forms and finite sums both answer."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Family(Protocol):
    """An exponential family ``p(x) = h(x) exp(<theta, T(x)> - A(theta))``: the parameter is an argument.

    There are two kinds: closed forms in JAX (`ExponentialFamily`) and finite sums on the host
    (`graphical.DiscreteFamily`). Parameters lie on the last axis and are batched over the leading ones. NumPy input is
    answered in NumPy and float64, JAX input in JAX and the caller's precision.

    >>> from cumulant import families, graphical
    >>> isinstance(families.Poisson(), Family), isinstance(graphical.Ising([(0, 1)], 0.5).family, Family)
    (True, True)
    """

    @property
    def dim(self) -> int:
        """How many natural parameters there are."""
        ...

    def statistics(self, x: Any) -> Any:
        """``T(x)``, shape ``(..., dim)``."""
        ...

    def log_partition(self, theta: Any) -> Any:
        """``A(theta)``."""
        ...

    def to_mean(self, theta: Any) -> Any:
        """``mu = grad A(theta) = E T(x)``."""
        ...

    def value_and_mean(self, theta: Any) -> tuple[Any, Any]:
        """``A(theta)`` and ``grad A(theta)`` together."""
        ...

    def to_natural(self, mu: Any) -> Any:
        """A ``theta`` with ``grad A(theta) = mu``; `DomainError` with the reason where there is none."""
        ...

    def conjugate(self, mu: Any) -> Any:
        """``A*(mu) = max_theta <theta, mu> - A(theta)``."""
        ...

    def entropy(self, theta: Any) -> Any:
        """``-E log p(x)``."""
        ...

    def kl(self, theta: Any, other: Any) -> Any:
        """``KL(p_theta || p_other)``."""
        ...

    def bregman(self, theta: Any, other: Any) -> Any:
        """``A(theta) - A(other) - <grad A(other), theta - other> = KL(p_other || p_theta)``."""
        ...

    def fisher(self, theta: Any) -> Any:
        """``hess A(theta) = Cov T(x)``, shape ``(..., dim, dim)``."""
        ...

    def log_prob(self, x: Any, theta: Any) -> Any:
        """``log p(x)``."""
        ...

    def sample(self, theta: Any, n: Any = 1, *, rng: Any = None) -> Any:
        """Independent draws, shape ``(n, *batch, *event)``."""
        ...

    def in_domain(self, theta: Any) -> Any:
        """Whether ``theta`` is a natural parameter."""
        ...

    def in_mean_domain(self, mu: Any) -> Any:
        """Whether ``mu`` is the mean of a member."""
        ...

    def collect(self, x: Any, weights: Any = None) -> Any:
        """The `Statistics` of data: they add up with those of other data."""
        ...


@runtime_checkable
class BoundedFamily(Family, Protocol):
    """A family whose statistics are bounded: then ``A`` is smooth, and a Newton decrement bounds the distance to the
    maximum likelihood.
    """

    def statistics_radius(self) -> float:
        """``R`` with ``|T(x) - c| <= R`` for every ``x`` and some ``c``: ``hess A <= R^2`` everywhere."""
        ...

    def directions(self) -> Any:
        """An orthonormal basis (dim, rank) of the span of all ``T(x) - T(y)``; all of the space where the family is
        minimal.
        """
        ...

    def mean_rounding(self, theta: Any) -> float:
        """The relative error that rounding may leave in the probabilities that `to_mean` and `fisher` add up."""
        ...
