"""What the experiments on Gaussian variational inference share: replicated runs on a Gaussian whose fit is known."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant import variational as vi

MEAN, COVARIANCE = np.array([1.0, -1.0]), np.array([[1.0, 0.3], [0.3, 0.5]])
SOURCE = "Domke, Garrigos and Gower (2023), provable convergence guarantees for black-box variational inference"


class Setting(NamedTuple):
    """A target, a family of approximations, the best of them and a start, with their distances squared."""

    target: Any
    family: vi.FullRank
    best: np.ndarray
    start: np.ndarray
    far: float
    apart: float


@functools.cache
def setting(kind: str) -> Setting:
    """The Gaussian in two dimensions of the theory's table, from a standard normal start."""
    target, q = vi.gaussian(MEAN, COVARIANCE), vi.FullRank(2, kind)
    values, vectors = np.linalg.eigh(COVARIANCE)
    root = (vectors * np.sqrt(values)) @ vectors.T
    best = q.pack(MEAN, np.linalg.cholesky(COVARIANCE) if kind == "triangular" else (root + root.T) / 2)
    start = q.pack(0.0, 1.0)
    apart = float(np.trace(COVARIANCE))  # |w* - (mode, 0)|^2
    return Setting(target, q, best, start, float(np.sum((best - start) ** 2)), apart)


def constants(target: Any) -> tuple[float, float]:
    """The strong convexity and the smoothness of a target that has both."""
    return float(target.strong_convexity), float(target.smoothness)


def replicate(kind: str, solver: Any, n_steps: int, replicas: int, seed: int) -> np.ndarray:
    """The answers of independent runs: ``(replicas, d, d + 1)``."""
    here = setting(kind)
    with jax.enable_x64(True):
        draws = np.zeros((1, 2))
        if kind == "triangular":
            problem = vi.proximal_problem(here.target, here.family, draws)
        else:
            problem = vi.projected_problem(here.target, here.family, draws, here.target.smoothness**-0.5)

        @jax.jit
        @jax.vmap
        def answers(key):
            state = solver.init(problem, jnp.asarray(here.start), key)
            return jax.lax.fori_loop(0, n_steps, lambda _, s: solver.step(problem, s), state).mean

        return np.asarray(answers(jax.random.split(jax.random.key(seed), replicas)))


def squared_distances(kind: str, w: np.ndarray) -> np.ndarray:
    """``|w - w*|^2`` of each run."""
    return np.sum((w - setting(kind).best) ** 2, axis=(1, 2))


def divergences(w: np.ndarray) -> np.ndarray:
    """``KL(q_w | p)`` of each run, in closed form."""
    P = np.linalg.inv(COVARIANCE)
    m, C = w[:, :, 0] - MEAN, w[:, :, 1:]
    S = C @ np.swapaxes(C, 1, 2)
    quadratic = np.einsum("ij,nji->n", P, S) + np.einsum("ni,ij,nj->n", m, P, m)
    return (quadratic - 2 - np.linalg.slogdet(P @ S)[1]) / 2


def holds(values: np.ndarray, bound: float) -> bool:
    """Whether the mean and three standard errors are below a bound."""
    return bool(values.mean() + 3 * values.std(ddof=1) / np.sqrt(len(values)) <= bound)
