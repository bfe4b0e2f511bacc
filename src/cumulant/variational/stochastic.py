"""Fits by stochastic gradients: the coordinates, the size of the steps, and the test that ends them."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from cumulant import optim, randomness
from cumulant.optim.schedules import InverseSqrt
from cumulant.precision import precise
from cumulant.sampling import Target
from cumulant.variational.estimators import EnergyGradient, EntropyGradient, StickingTheLanding
from cumulant.variational.gaussians import FullRank, Gaussian, Isotropic
from cumulant.variational.low_rank import LowRank
from cumulant.variational.objective import NegativeELBO, projected_problem, proximal_problem
from cumulant.variational.whitening import estimated_smoothness, laplace, scales_at, search, whitened

_BATCH = 16  # draws a step
_TEST = 512  # draws of the test that ends a run
_BLOCKS = 8  # of these draws
_FIRST = 20  # steps before the first test
_DENSE = 300  # coordinates up to which Hessians are formed for families that do not need them
ESTIMATORS = {
    "energy": EnergyGradient(_BATCH, antithetic=True, standardised=True),
    "entropy": EntropyGradient(_BATCH, antithetic=True),
    "stl": StickingTheLanding(_BATCH, antithetic=True),
}


class Found(NamedTuple):
    """The Gaussian in the target's coordinates, the run, and estimates: of the excess and of the smoothness."""

    gaussian: Gaussian
    w: np.ndarray
    result: Any
    excess: float
    smoothness: float


def stochastic_steps(
    target: Target,
    gaussian: Gaussian,
    route: str,
    gradients: Any,
    solver: optim.RobbinsMonro | None,
    accuracy: float,
    start: Any,
    max_steps: int | None,
    settings: dict[str, Any],
    rng: Any,
) -> Found:
    """Proximal or projected steps in coordinates in which the curvature at the mode is about one.

    The size of the steps follows from the largest curvature at draws of the start, by power iteration: what is assumed
    of the target, not known. A run that becomes infinite, or ends worse than it began, is repeated with shorter steps;
    where that does not help the start is the answer, with status ``"diverged"``.
    """
    seed = randomness.seed(rng)
    generator = np.random.default_rng([seed, 1])
    origin, root = _coordinates(target, gaussian, start, settings["time_limit"], generator)
    near = whitened(target, origin, root)
    w0 = _start(near, gaussian, generator)
    points = np.asarray(gaussian.place(w0, generator.normal(size=(4, gaussian.noise_dim))))
    smoothness = estimated_smoothness(near, np.concatenate([np.zeros((1, target.dim)), points]), generator)
    half = generator.normal(size=(_affordable(32, gaussian), gaussian.noise_dim))
    draws = np.concatenate([half, -half])
    if route == "prox":
        problem = proximal_problem(near, gaussian, draws)
    else:
        least = (4 * max(smoothness, 1.0) if near.smoothness is None else near.smoothness) ** -0.5
        problem = projected_problem(near, gaussian, draws, least)
    before = float(problem.value(w0))
    noise = (target.dim + 3 if isinstance(gaussian, FullRank) else 4.0) / gradients.batch
    size = 0.5 / (max(smoothness, 1.0) * (1 + noise))
    result = test = None
    for shorter in (1.0, 0.1, 0.01):
        test = _GradientTest(near, gaussian, accuracy, np.random.default_rng([seed, 2]))
        chosen = solver or optim.RobbinsMonro(InverseSqrt(shorter * size, 100.0), gradients, average=True, burn_in=20)
        result = optim.run(
            chosen,
            problem,
            w0,
            tol=None,
            callback=test,
            max_steps=20_000 if max_steps is None else max_steps,
            every=_FIRST,
            rng=seed,
            **settings,
        )
        worse = not float(problem.value(result.x)) <= before + max(accuracy, 1e-3 * abs(before))
        if (result.status != "diverged" and not worse) or solver is not None:
            break
    assert result is not None
    assert test is not None
    w, status = np.asarray(result.x), "accurate" if test.passed else result.status
    if not float(problem.value(w)) <= before + max(accuracy, 1e-3 * abs(before)):
        w, status = w0, "diverged"
    result = dataclasses.replace(result, status=status)  # pyright: ignore[reportArgumentType]
    excess = test.latest if test.passed and w is not w0 else test.excess(w)
    if isinstance(gaussian, FullRank) and gaussian.kind == "symmetric":  # the same Gaussian by its triangular factor
        C = np.linalg.qr(w[:, 1:].T)[1].T
        gaussian, w = FullRank(target.dim), np.concatenate([w[:, :1], C * np.sign(np.diagonal(C))], axis=1)
    return Found(gaussian, np.asarray(gaussian.moved(w, origin, root)), result, excess, smoothness)


def _coordinates(target, gaussian, start, time_limit, generator) -> tuple[np.ndarray, Any]:
    """An origin and a root that leaves the structure of the family as it is: a matrix, a vector or a number."""
    if isinstance(gaussian, FullRank):
        at_mode = laplace(target, start, time_limit)
        return at_mode.mode, at_mode.root
    if target.dim <= _DENSE:
        at_mode = laplace(target, start, time_limit)
        origin, scales = at_mode.mode, 1 / np.linalg.norm(np.linalg.inv(at_mode.root), axis=0)
    else:
        origin = search(target, start, time_limit)[-1]
        scales = scales_at(target, origin, generator)
    return origin, float(np.mean(scales**-2.0) ** -0.5) if isinstance(gaussian, Isotropic) else scales


def _start(near: Target, gaussian: Gaussian, generator: np.random.Generator) -> np.ndarray:
    """Scales of one; for low rank also the directions in which the curvature at the mode is least, by Lanczos."""
    if not isinstance(gaussian, LowRank):
        return gaussian.pack(0.0, 1.0)
    d, rank = gaussian.dim, gaussian.rank
    F = 0.01 * generator.normal(size=(d, rank))
    if rank < d - 1:
        zero = np.zeros(d)
        times: Any = {"matvec": lambda v: np.asarray(_hessian_times(near, zero, np.ravel(v))), "dtype": float}
        settings: Any = {"ncv": min(4 * rank + 10, d), "maxiter": 15, "tol": 0.02, "v0": generator.normal(size=d)}
        try:
            values, vectors = eigsh(LinearOperator((d, d), **times), k=rank, which="SA", **settings)
        except ArpackNoConvergence as partial:
            values, vectors = partial.eigenvalues, partial.eigenvectors
        # An eigenvalue t of the Hessian below one is a variance of 1 / t along its vector, of which s^2 = 1 is there.
        useful = (values > 1e-6) & (values < 0.9)
        F[:, : np.sum(useful)] = vectors[:, useful] * np.sqrt(1 / values[useful] - 1)
    return gaussian.pack(0.0, (1.0, F))


@precise
def _hessian_times(target, x, v):
    return -jax.jvp(jax.grad(target.at), (x,), (v,))[1]


def _affordable(n: int, gaussian: Gaussian) -> int:
    """Draws for which gradients in ``w`` fit in about 200 MB: `n` but for very many coordinates."""
    return max(min(n, 25_000_000 // int(np.prod(gaussian.shape))), 8)


class _GradientTest:
    """Ends a run where ``|grad f|^2 / 2``, in coordinates where the Hessian is about one, is below the accuracy.

    The gradient is estimated by sticking the landing at the average of the iterates. The squared norm of a mean of
    draws is too large by its variance, which in many dimensions hides a small gradient; products of the means of
    different blocks of draws are not. Two standard errors are added. The test is made at twice as many steps each time.
    """

    def __init__(self, target, family, accuracy, generator):
        self.problem = NegativeELBO(target, family, np.zeros((1, family.noise_dim)))
        self.accuracy, self.generator, self.passed = accuracy, generator, False
        self.next, self.latest = _FIRST, np.nan

    def excess(self, w: np.ndarray) -> float:
        gaussian = self.problem.gaussian
        u = self.generator.normal(size=(_affordable(_TEST // 2, gaussian), gaussian.noise_dim))
        square, error = _squared_gradient(self.problem, w, u[: len(u) // _BLOCKS * _BLOCKS])
        return max(float(square) + 2 * float(error), 0.0) / 2

    def __call__(self, snapshot) -> bool:
        if snapshot.step < self.next:
            return False
        self.next = 2 * snapshot.step
        self.latest = self.excess(np.asarray(snapshot.x))
        self.passed = self.latest <= self.accuracy
        return self.passed


@precise
def _squared_gradient(problem, w, u):
    """``|grad f|^2`` without bias, from the products of the mean gradients of blocks of pairs ``u, -u``, and its
    standard error (jackknife over blocks).
    """
    estimator = StickingTheLanding()
    each = jax.vmap(lambda v: estimator.at(problem, w, jnp.stack([v, -v])))(u)
    means = jnp.mean(each.reshape(_BLOCKS, -1, *each.shape[1:]), axis=1).reshape(_BLOCKS, -1)
    products = means @ means.T
    total, own, rows = jnp.sum(products), jnp.trace(products), jnp.sum(products, axis=1)
    value = (total - own) / (_BLOCKS * (_BLOCKS - 1))
    left = (total - 2 * rows + jnp.diagonal(products)) - (own - jnp.diagonal(products))  # without each block
    without = left / ((_BLOCKS - 1) * (_BLOCKS - 2))
    return value, jnp.sqrt((_BLOCKS - 1) / _BLOCKS * jnp.sum((without - jnp.mean(without)) ** 2))
