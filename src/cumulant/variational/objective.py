"""What variational inference minimises: ``KL(q_w | p) = l(w) + h(w) + log Z``, as problems for `optim.run`."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from cumulant.optim import Composite
from cumulant.optim.problems.base import problem_type
from cumulant.optim.problems.penalties import ConvexSet, Penalty
from cumulant.optim.protocol import Problem
from cumulant.precision import precise


@problem_type
class Energy(Problem):
    """``l(w) = -E log p(m + C u)``: smooth and convex with the constants of ``-log p``.

    (Domke, Garrigos and Gower 2023, lemmas 18 and 19.) `value` is the mean over the standard normal vectors `draws`,
    the same at every call: an estimate, by common random numbers. Solvers draw their own.
    """

    target: Any
    gaussian: Any
    draws: Any

    estimated: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of ``w``."""
        return self.gaussian.shape

    smoothness = property(lambda self: self.target.smoothness)
    strong_convexity = property(lambda self: self.target.strong_convexity)
    convex = property(lambda self: self.target.strong_convexity > 0)
    constants_are = property(lambda self: self.target.constants_are)

    @precise
    def value(self, w):
        """``-mean log p(m + C u)`` over the draws."""
        return -jnp.mean(jax.vmap(self.target.at)(self.gaussian.place(w, self.draws)))


@problem_type
class NegativeELBO(Energy):
    """``f(w) = l(w) + h(w)``, ``h = E log q_w``: the Kullback-Leibler divergence from the target, less ``log Z``.

    On ``W_M = {sigma_min(C) >= 1 / sqrt(M)}``, which contains the minimiser, it is ``2 M``-smooth.
    """

    smoothness = property(lambda self: None if self.target.smoothness is None else 2 * self.target.smoothness)

    @precise
    def value(self, w):
        """``l(w) + h(w)`` with ``l`` by the draws and ``h`` exact."""
        energy = -jnp.mean(jax.vmap(self.target.at)(self.gaussian.place(w, self.draws)))
        return energy + self.gaussian.negative_entropy(w)


@problem_type
class NegativeEntropy(Penalty):
    """``h(w) = E log q_w``, a penalty with a proximal map: infinite where ``C`` is degenerate.

    With a `floor`, ``1 / sqrt(M)`` say, also where a diagonal entry of ``C`` is below it: the minimiser is not, the set
    is convex, and ``h`` is ``1 / floor^2``-smooth on it.
    """

    gaussian: Any
    floor: Any = 0.0

    @precise
    def value(self, w):
        """``-log det C - (d / 2) (1 + log 2 pi)``."""
        h = self.gaussian.negative_entropy(w)
        return jnp.where(jnp.isnan(h), jnp.inf, h)

    @precise
    def prox(self, w, step):
        """``argmin_v step h(v) + |v - w|^2 / 2``, entry by entry of the diagonal (or eigenvalue by eigenvalue)."""
        return self.gaussian.raised(self.gaussian.prox(w, step), self.floor)


@problem_type
class Floor(ConvexSet):
    """The set ``W_M = {sigma_min(C) >= floor}``, ``floor = 1 / sqrt(M)``; its proximal map is the projection."""

    gaussian: Any
    floor: Any

    @precise
    def prox(self, w, step):
        """The projection."""
        return self.gaussian.project(w, self.floor)


def proximal_problem(target: Any, gaussian: Any, draws: Any, floor: float = 0.0) -> Composite:
    """``l + h`` with ``h`` by its proximal map: for energy gradients and triangular, diagonal or isotropic factors."""
    return Composite(Energy(target, gaussian, draws), NegativeEntropy(gaussian, floor))


def projected_problem(target: Any, gaussian: Any, draws: Any, floor: float) -> Composite:
    """``f`` on ``W_M``: for entropy and sticking-the-landing gradients and symmetric factors."""
    return Composite(NegativeELBO(target, gaussian, draws), Floor(gaussian, floor))
