"""What draws of a Gaussian say about its distance from the target, and the verdict."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.precision import float64, to_numpy
from cumulant.sampling import Target
from cumulant.sampling.pareto import pareto_shape
from cumulant.variational.gaussians import Gaussian
from cumulant.variational.result import FitDiagnostics, Verdict

_FEW, _MANY = 1000, 4000  # draws, and where the first say nothing clear
_ENTRIES = 4_000_000  # coordinates of all draws that are held at a time


def diagnose(target: Target, gaussian: Gaussian, w: np.ndarray, seed: int) -> FitDiagnostics:
    """Importance sampling with draws of the Gaussian: 1,000, and 4,000 where they leave the verdict open.

    What is known of the Gaussian, that its draws have mean zero and variance one when standardised, is taken off the
    estimates of the shifts: where all weights are equal they are exactly zero.
    """
    found = _weighted(target, gaussian, w, seed, _number(_FEW, gaussian.dim))
    shift = max(found.mean_shift, found.scale_shift)
    clear = shift < 0.05 and found.pareto_k < 0.5
    return found if clear else _weighted(target, gaussian, w, seed, _number(_MANY, gaussian.dim))


def _number(n: int, dim: int) -> int:
    """Draws that can be afforded: fewer for very many coordinates."""
    return max(min(n, 20_000_000 // dim), 200)


def _blocks(gaussian: Gaussian, seed: int, n: int) -> Iterator[np.ndarray]:
    """The same standard normal vectors at every call, some at a time."""
    size = max(_ENTRIES // gaussian.noise_dim, 1)
    for k, first in enumerate(range(0, n, size)):
        yield np.random.default_rng([seed, 3, k]).normal(size=(min(size, n - first), gaussian.noise_dim))


def _weighted(target: Target, gaussian: Gaussian, w: np.ndarray, seed: int, n: int) -> FitDiagnostics:
    ratios = np.concatenate([_log_ratios(target, gaussian, w, u) for u in _blocks(gaussian, seed, n)])
    tail = pareto_shape(ratios)
    weights = np.exp(tail.log_weights - tail.log_weights.max())
    evidence = float(np.log(np.mean(weights)) + ratios.max())
    weights /= weights.sum()
    deviations = np.asarray(gaussian.deviations(w))
    first, second, done = np.zeros(gaussian.dim), np.zeros(gaussian.dim), 0
    for u in _blocks(gaussian, seed, n):
        standard = np.asarray(gaussian.apply(w, u)) / deviations
        extra = weights[done : done + len(u)] - 1 / n
        first += extra @ standard
        second += extra @ standard**2
        done += len(u)
    stretched = np.log(np.maximum(1 + second - first**2, 1e-300)) / 2
    return FitDiagnostics(
        elbo=float(np.mean(ratios)),
        elbo_error=float(np.std(ratios) / math.sqrt(n)),
        pareto_k=tail.shape,
        log_evidence=evidence,
        weighted_share=float(1 / (n * np.sum(weights**2))),
        mean_shift=float(np.max(np.abs(first))),
        scale_shift=float(np.max(np.abs(stretched))),
    )


def _log_ratios(target: Target, gaussian: Gaussian, w: np.ndarray, u: np.ndarray) -> np.ndarray:
    """``log p - log q`` at the draws; minus infinity where the density is not a number."""
    with float64():
        log_p, log_q = (np.asarray(v) for v in to_numpy(_densities(target, gaussian, jnp.asarray(w), jnp.asarray(u))))
    return np.where(np.isnan(log_p), -np.inf, log_p) - log_q


@jax.jit
def _densities(target: Any, gaussian: Any, w, u):
    return jax.vmap(target.at)(gaussian.place(w, u)), gaussian.log_prob_at(w, u)


def judge(target: Target, found: FitDiagnostics, status: str) -> tuple[Verdict, tuple[str, ...]]:
    """Whether to believe the fit: the worst of what is known about it, and why."""
    if found.pareto_k > 0.7 and found.weighted_share < 0.9:
        return "do not trust", (
            f"Pareto k is {found.pareto_k:.2f}, above 0.7: no Gaussian of this family is near the target; transform "
            "variables that are bounded or skewed, or sample",
        )
    if status not in ("converged", "accurate"):
        return "do not trust", (f"the run ended as {status!r}: allow more steps or time",)
    moved = f"importance sampling moves a mean by {found.mean_shift:.2f} and a scale by {found.scale_shift:.2f}"
    if max(found.mean_shift, found.scale_shift) > 0.25:
        return "do not trust", (f"{moved} standard deviations: the target is not nearly Gaussian",)
    if max(found.mean_shift, found.scale_shift) > 0.1:
        return "check", (f"{moved} standard deviations: use weighted draws",)
    if not target.strong_convexity > 0:
        return "check", ("the target is not known to be log-concave: a mode far away would go unseen",)
    return "trust", (f"log-concave, Pareto k {found.pareto_k:.2f}, means within {found.mean_shift:.2f} deviations",)
