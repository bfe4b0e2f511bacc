"""Which way to go: estimates of the gradient of the KL divergence, and quasi-Newton directions under lower bounds."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from cumulant import checks
from cumulant.optim.interior_point.centring import PowerSigma
from cumulant.optim.interior_point.constraints import Bounds
from cumulant.optim.interior_point.curvature import damped_bb, damped_bfgs
from cumulant.optim.interior_point.moves import FRACTION, direction
from cumulant.particles.variational.family import TwoBlockFamily
from cumulant.particles.variational.safeguards import require_weights
from cumulant.precision import precise
from cumulant.threads import one_blas_thread

CURVATURES = ("bfgs", "bb", "none")
GRADIENTS = ("plain", "rb")


def kl_gradient(
    weights: Any, x_A: Any, x_B: Any, theta: Any, family: TwoBlockFamily, *, rao_blackwell: bool = False
) -> np.ndarray:
    """An estimate of ``grad KL(p_theta | p_target) = Cov_theta[t] (theta - target)`` from weighted particles.

    Plain: ``sum W (t - mean) <t - mean, delta>`` with ``delta = theta - target``. With `rao_blackwell`, ``x_B`` is
    summed out: ``sum W (m - mean) <m - mean, delta> + sum W C delta`` with ``m = E[t | x_A]`` and ``C = Cov[t | x_A]``.
    At a given ``theta`` its variance is smaller. No covariance matrix is formed. The first sum is of rank ``n - 1`` at
    most, and too small by the factor ``1 - sum W^2`` on average.

    References
    ----------
    Carbonetto (2009), equations 3.26 and 3.30 to 3.33.

    Examples
    --------
    >>> from cumulant.graphical import Ising, torus
    >>> from cumulant.particles import IsingFamily
    >>> family = IsingFamily(Ising(torus(4, 4), 0.5))
    >>> x_A, x_B = family.begin(1000, np.random.default_rng(0))
    >>> kl_gradient(np.full(1000, 1e-3), x_A, x_B, np.zeros(1), family).shape        # exactly -16 on average
    (1,)
    """
    W, theta = require_weights(weights), checks.real_array("theta", theta, ndim=1)
    checks.instance("family", family, TwoBlockFamily, "a TwoBlockFamily")
    if theta.size != family.dim:
        raise ValueError(f"theta must have {family.dim} entries; got {theta.size}")
    for name, block in (("x_A", x_A), ("x_B", x_B)):
        if any(np.shape(leaf)[:1] != W.shape for leaf in jax.tree.leaves(block, is_leaf=lambda x: x is None)):
            raise ValueError(f"{name} must be arrays with a row for each of the {W.size} weights")
    delta = theta - family.target
    if not rao_blackwell:
        return weighted_covariance(W, family.statistics(x_A, x_B), delta)
    between = weighted_covariance(W, family.block_means(x_A, theta), delta)
    return between + W @ family.block_products(x_A, theta, delta)


def weighted_covariance(W: np.ndarray, t: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """``Cov_W[t] delta`` of statistics ``t`` with weights ``W``."""
    along = t @ delta
    share = W * (along - W @ along)
    return share @ t - share.sum() * (W @ t)


@dataclasses.dataclass(frozen=True, eq=False)
class Curvature:
    """What a run has learnt of the Hessian, a matrix with its inverse or a number, and where it was last.

    From the identity, BFGS changes ``B`` in the span of the gradients only. With more parameters than steps and no
    bounds, all is done in an orthonormal `basis` of that span, of which the first `used` columns are filled: the same
    numbers, with matrices of the size of the number of steps.
    """

    matrix: Any
    inverse: Any
    basis: np.ndarray | None = None
    used: int = 0
    point: np.ndarray | None = None
    gradient: np.ndarray | None = None

    @classmethod
    def begin(cls, kind: str, dim: int, n_steps: int, bounded: bool) -> "Curvature":
        """The identity."""
        checks.choice("curvature", kind, CURVATURES)
        if kind != "bfgs":
            return cls(1.0, 1.0)
        small = n_steps < dim and not bounded
        size = n_steps if small else dim
        return cls(np.eye(size), np.eye(size), np.zeros((dim, size)) if small else None)

    def update(self, kind: str, theta: np.ndarray, gradient: np.ndarray, cap: float, damping: float) -> "Curvature":
        """With the gradient at a new point: `damped_bfgs` or `damped_bb`, damped further by the schedule `cap`."""
        matrix, inverse, used = self.matrix, self.inverse, self._extend(gradient)
        if self.point is not None and self.gradient is not None:
            dx, dy = theta - self.point, gradient - self.gradient
            if self.basis is not None:
                dx, dy = dx @ self.basis, dy @ self.basis
            if kind == "bfgs":
                new = damped_bfgs(matrix, dx, dy, damping, cap, inverse)
                if np.isfinite(new.B).all() and np.isfinite(new.Binv).all():
                    matrix, inverse = new.B, new.Binv
            elif kind == "bb":
                matrix = float(damped_bb(matrix, dx, dy, min(cap, 1.0)))
                inverse = 1 / matrix
        return Curvature(matrix, inverse, self.basis, used, theta, gradient)

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """``B^-1 g`` of the last gradient."""
        if self.basis is not None:
            return self.basis @ (self.inverse @ (gradient @ self.basis))
        return self.inverse @ gradient if np.ndim(self.inverse) == 2 else self.inverse * gradient

    def _extend(self, gradient: np.ndarray) -> int:
        """Fill the next column of the basis with what is new in a gradient (Gram and Schmidt, twice)."""
        if self.basis is None or self.used == self.basis.shape[1]:
            return self.used
        rest = gradient
        for _ in range(2):
            rest = rest - self.basis @ (rest @ self.basis)
        size = np.linalg.norm(rest)
        if size <= 1e-10 * np.linalg.norm(gradient):
            return self.used
        self.basis[:, self.used] = rest / size  # columns are only ever added: what others hold of it is not changed
        return self.used + 1


class Search(NamedTuple):
    """A direction for ``theta`` and one for the multipliers of its bounds, and the longest steps these allow."""

    along: np.ndarray
    multipliers: np.ndarray | None
    longest: float
    longest_multipliers: float


@precise
def _primal_dual(bounds, theta, z, slack, gradient, mu, curvature):
    found = direction(bounds, theta, z, slack, gradient, mu, curvature)
    return found.dx, found.dz


def search(
    theta: np.ndarray,
    gradient: np.ndarray,
    curvature: Curvature,
    bounds: Bounds | None = None,
    z: np.ndarray | None = None,
    step: int = 1,
) -> Search:
    """``-B^-1 g``; under lower bounds the primal-dual direction of the barrier problem (Carbonetto 2009, 3.107), with
    ``mu = k^-0.9 <slack, z> / m``. Steps may go 0.995 of the way to the boundary, of ``theta`` and of ``z`` apart.
    """
    if bounds is None or z is None:
        return Search(-curvature.solve(gradient), None, np.inf, np.inf)
    slack = -np.asarray(bounds.value(theta))
    mu = PowerSigma(0.9)(step - 1) * float(slack @ z) / z.size
    with one_blas_thread():
        along, dual = _primal_dual(bounds, theta, z, slack, gradient, mu, curvature.matrix)
    change = -np.asarray(bounds.jacobian_apply(theta, along))
    return Search(along, dual, FRACTION * _room(slack, change), FRACTION * _room(z, dual))


def _room(value: np.ndarray, change: np.ndarray) -> float:
    """How far ``value + a change`` stays positive."""
    falling = change < 0
    return float(np.min(-value[falling] / change[falling], initial=np.inf))
