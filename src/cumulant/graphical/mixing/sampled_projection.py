"""The reverse projection in divergence onto a fast-mixing set, by Gibbs sampling: for models of any size."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.graphical.learning.planner import SamplingPlan
from cumulant.graphical.mixing.fast_mixing import CouplingSet, FastMixing
from cumulant.graphical.pairwise import Ising
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.graphical.samplers.gibbs import random_scan


@dataclass(frozen=True)
class SampledProjection:
    """The answer of `project_reverse_kl`.

    Attributes
    ----------
    model : Ising
        In the set: the mean of the second half of the iterates.
    decrease : float
        An estimate of how far the divergence fell from the Euclidean projection to the answer: its gradient integrated
        along the path of iterates, from chains that had no part in the steps.
    residual, noise : float
        How far a projected gradient step of the planned length moves from the answer, over that length, by chains of
        its own; and the standard error of the gradient in it, as a norm. A residual of the size of the noise is one
        that cannot be told from zero.
    plan : SamplingPlan
    """

    model: Ising
    decrease: float
    residual: float
    noise: float
    plan: SamplingPlan


def project_reverse_kl(
    model: Ising,
    mixing: FastMixing,
    *,
    plan: SamplingPlan | None = None,
    step_size: float = 0.2,
    rng: Any = None,
    n_jobs: int | None = None,
) -> SampledProjection:
    """Minimise ``KL(p_theta || p_psi)`` over couplings in a fast-mixing set, and over all fields, by sampling.

    The gradient ``Cov_theta(T) (theta - psi)`` is a mean under the model that mixes fast; nothing is needed of ``psi``,
    which may be out of reach of any sampler. Projected stochastic gradient from the Euclidean projection. The
    divergence is not convex, so that there is no certificate; each estimate of the gradient has chains that are near
    the model as `FastMixing.mixing` says. `project_kl` is exact for at most 16 spins.

    Parameters
    ----------
    model : Ising
        Without evidence, each pair joined once.
    mixing : FastMixing
    plan : SamplingPlan, optional
        Iterations, chains (half of them for the steps) and updates; 100 of 1,000, for a total variation of 0.01,
        without it.
    step_size : float
    rng : int, Generator or None
    n_jobs : int, optional

    Examples
    --------
    >>> from cumulant.graphical import Ising, project_kl
    >>> given = Ising([(0, 1)], 0.8, [0.5, 0.0])
    >>> exact = project_kl(given, FastMixing(0.4, "box"), "reverse").model.theta
    >>> found = project_reverse_kl(given, FastMixing(0.4, "box"), rng=0).model.theta
    >>> bool(np.abs(found - exact).max() < 0.05)
    True

    References
    ----------
    Domke and Liu (2013), "Projecting Ising model parameters for fast mixing", section 5.
    """
    if not isinstance(model, Ising) or model.evidence:
        raise TypeError(f"model must be an Ising model without evidence; got {type(model).__name__}")
    checks.instance("mixing", mixing, FastMixing, "a FastMixing set")
    checks.positive("step_size", step_size)
    if plan is not None:
        checks.instance("plan", plan, SamplingPlan, "a SamplingPlan")
    n, members = model.n_variables, CouplingSet(mixing, model.edges, model.n_variables)
    rate = members.mixing()
    plan = SamplingPlan(100, 1000, rate.tau(0.01)) if plan is None else plan
    draw, graph = randomness.generator(rng), Neighbours.of(n, model.edges)
    psi = np.asarray(model.theta)

    def gradient(theta, chains):
        """``Cov(T) (theta - psi)``, and its standard error."""
        x = (2 * draw.integers(0, 2, (chains, n), dtype=np.int8) - 1).astype(np.int8)
        random_scan(x, graph, theta[n:], theta[:n], plan.updates, seed=int(draw.integers(2**63)), n_jobs=n_jobs)
        spins = x.astype(np.float64)
        T = np.concatenate([spins, spins[:, model.edges[:, 0]] * spins[:, model.edges[:, 1]]], axis=1)
        T -= T.mean(axis=0)
        each = (T @ (theta - psi))[:, None] * T
        return each.sum(axis=0) / (chains - 1), float(np.sqrt(each.var(axis=0).sum() / chains))

    theta, total = members.project(psi)[0], np.zeros(psi.size)
    decrease, half, before, few = 0.0, plan.iterations // 2, None, max(plan.chains // 2, 2)
    for k in range(plan.iterations):
        g, _ = gradient(theta, few)
        if before is not None:
            decrease -= 0.5 * float((g + before[1]) @ (theta - before[0]))
        before = theta, g
        step = step_size / (1.0 + 5.0 * k / plan.iterations)
        theta = members.project(theta - step * gradient(theta, few)[0])[0]
        if k >= half:
            total += theta
    answer = members.project(total / (plan.iterations - half))[0]  # in the set already, but for rounding
    g, noise = gradient(answer, 4 * plan.chains)
    decrease -= 0.5 * float((g + before[1]) @ (answer - before[0])) if before is not None else 0.0
    moved = float(np.linalg.norm(members.project(answer - step_size * g)[0] - answer)) / step_size
    return SampledProjection(Ising(model.edges, answer[n:], answer[:n]), decrease, moved, noise, plan)
