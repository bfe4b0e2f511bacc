"""Learning discrete models from data or from their mean statistics."""

import math
from typing import Any

import numpy as np

from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.learning.exact import fit_conditional, fit_exact
from cumulant.graphical.learning.fast_set import fast_set
from cumulant.graphical.learning.mcmc import fit_by_sampling
from cumulant.graphical.learning.planner import Schedule
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.learning.without_guarantee import fit_without_guarantee
from cumulant.graphical.mixing.fast_mixing import FastMixing
from cumulant.graphical.pairwise import BoltzmannMachine, Ising, Potts

__all__ = ["METHODS", "fit", "learning_problem"]

METHODS = ("mcmc", "exact", "pseudo_likelihood", "composite", "contrastive_divergence", "persistent")

_ROWS = 4096  # observations that are counted at once


def fit(
    data: Any,
    structure: Any,
    *,
    method: str = "mcmc",
    mixing: FastMixing | None = None,
    l2: float = 0.0,
    fields: bool = True,
    eps: float = 0.1,
    delta: float = 0.1,
    schedule: Schedule | None = None,
    smoothness: float | None = None,
    max_work: float = 3e10,
    tol: float = 1e-10,
    max_steps: int = 5000,
    iterations: int = 300,
    sweeps: int = 1,
    chains: int = 500,
    step: float = 0.2,
    rng: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Fit:
    """Maximise the mean log-likelihood minus ``l2/2 |theta|^2``, over a fast-mixing set where one is given.

    ``theta* = argmin A(theta) - <theta, mean statistic> + l2/2 |theta|^2``. In the set this is the nearest model to the
    data in Kullback-Leibler divergence (but for `l2`), right or not.

    Parameters
    ----------
    data : array of shape (observations, variables), or of shape (parameters,)
        Observations, or the mean of their statistics in the order of ``theta`` (of those that are learnt, if
        ``fields=False``).
    structure : DiscreteModel or pairs of variables
        A model whose family is fitted, its own parameters ignored: spins, colours, units or tables of any order. Pairs
        are the edges of an `Ising` model.
    method : str
        * ``"mcmc"``: projected gradient with gradients from Gibbs sampling, in `mixing`; with ``l2 > 0`` certifies
          ``|theta - theta*| <= eps``, without (and ``fields=False``) ``f(theta) - f* <= eps``, each with probability
          ``1 - delta``, by as many iterations, chains and updates as that needs. For models whose tables have at most
          two variables;
        * ``"exact"``: gradients by elimination, for models of small width; `mixing` is optional;
        * ``"pseudo_likelihood"``, ``"composite"``: conditional likelihoods of variables or of pairs that share a table.
          The certificate is about that objective;
        * ``"contrastive_divergence"``, ``"persistent"``: sampling without guarantees, and without a certificate.
    mixing : FastMixing, optional
        The set of couplings, or tables of pairs, to stay in.
    l2 : float
    fields : bool
        Whether single variables have parameters; without, only couplings, or tables of two and more variables, are
        learnt.
    eps, delta : float
        Of ``"mcmc"``: the accuracy, and the probability of missing it.
    schedule : Schedule, optional
        Of ``"mcmc"``: what to run instead of the plan for `eps`; the certificate says what it is good for.
    smoothness : float, optional
        Of ``"mcmc"``: ``L``, steps are ``1 / L``. Without it ``R^2 + l2``, which is proved; a smaller one makes a
        faster run whose certificate says that ``L`` is assumed.
    max_work : float
        Of ``"mcmc"``: refuse a plan of more updates than this.
    tol, max_steps
        Of ``"exact"`` and the conditional likelihoods: the certified gap aimed at, relative to the objective or to 1.
    iterations, sweeps, chains, step
        Of the methods without guarantees.
    rng : int, Generator or None
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    progress : bool
        Of the methods that sample: show a bar on standard error, where that is a terminal.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> exact = fit([0.6], Ising([(0, 1)], 0.0), method="exact", fields=False, l2=1.0)
    >>> exact.model.couplings.round(6)                          # tanh t + t = 0.6
    array([0.304539])
    >>> exact.certificate.upper < 1e-10
    True
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    problem = learning_problem(data, structure, mixing=mixing, l2=l2, fields=fields)
    if method == "exact":
        return fit_exact(problem, tol=tol, max_steps=max_steps)
    if method == "mcmc":
        return fit_by_sampling(
            problem,
            eps=eps,
            delta=delta,
            schedule=schedule,
            smoothness=smoothness,
            max_work=max_work,
            rng=rng,
            n_jobs=n_jobs,
            progress=progress,
        )
    if method in ("pseudo_likelihood", "composite"):
        if mixing is not None:
            raise ValueError(f"method={method!r} takes no mixing: project the answer with graphical.project")
        return fit_conditional(problem, method, tol=tol, max_steps=max_steps)
    return fit_without_guarantee(
        problem, method, iterations=iterations, sweeps=sweeps, chains=chains, step=step, rng=rng, n_jobs=n_jobs,
        progress=progress,
    )  # fmt: skip


def learning_problem(
    data: Any, structure: Any, *, mixing: FastMixing | None = None, l2: float = 0.0, fields: bool = True
) -> LearningProblem:
    """What `fit` minimises, as an object: ``problem.value_and_gradient(theta)``, and what its certificates verify with.

    >>> problem = learning_problem([0.6], [(0, 1)], fields=False)
    >>> round(problem.value_and_gradient(np.array([0.0]))[0], 6)        # 2 log 2
    1.386294
    """
    if not (math.isfinite(l2) and l2 >= 0):
        raise ValueError(f"l2 must be finite and not negative; got {l2}")
    if mixing is not None and not isinstance(mixing, FastMixing):
        raise TypeError(f"mixing must be a FastMixing set or None; got {type(mixing).__name__}")
    x = np.asarray(data)
    if x.size == 0 or x.dtype.kind not in "iubf" or not np.isfinite(x).all():
        raise ValueError(f"data must be finite numbers, at least one observation; got shape {x.shape}, dtype {x.dtype}")
    model = _model(structure, x)
    if model.evidence:
        raise ValueError("structure must be a model without evidence")
    if model.n_variables < model.structure.n_variables:
        raise TypeError(f"structure must be a model without hidden variables; got a {type(model).__name__}")
    if np.isneginf(model.theta).any():
        raise ValueError(
            "structure has impossible states, and learning would forget them, as it does all parameters of structure: "
            "give it finite tables"
        )
    free = np.arange(model.family.dim)
    if isinstance(model, Ising | Potts | BoltzmannMachine):
        edges = np.sort(model.edges, axis=1)
        if len(np.unique(edges, axis=0)) < len(edges):
            raise ValueError("the edges of structure must be distinct: the same pair is named twice")
        free = free if fields else free[free.size - len(edges) :]
    elif not fields:
        width = np.diff(model.structure.scope_starts)
        free = np.flatnonzero(np.repeat(width > 1, np.diff(model.structure.table_starts)))
    if mixing is not None:
        fast_set(model, free, mixing)  # refused here, before any work
    if x.ndim == 1:
        if x.shape != free.shape:
            raise ValueError(f"data of one axis are {free.size} mean statistics; got {x.size}")
        return LearningProblem(model, x.astype(np.float64), float(l2), free, mixing)
    if x.ndim != 2:
        raise ValueError(f"data must have one axis (mean statistics) or two (observations, variables); got {x.ndim}")
    return LearningProblem(model, _mean_statistics(model, x)[free], float(l2), free, mixing, x)


def _mean_statistics(model: DiscreteModel, x: np.ndarray) -> np.ndarray:
    """By counting entries of tables: statistics of all observations side by side would be a large matrix."""
    family, counts = model.family, np.zeros(int(model.structure.table_starts[-1]))
    for first in range(0, len(x), _ROWS):
        entries = family.entries(family.states(x[first : first + _ROWS]))
        counts += np.bincount(entries.ravel(), minlength=counts.size)
    return family.mean_of(counts / len(x))


def _model(structure: Any, x: np.ndarray) -> DiscreteModel:
    if isinstance(structure, DiscreteModel):
        return structure
    edges = np.asarray(structure)
    if x.ndim == 2:
        return Ising(edges, 0.0, np.zeros(x.shape[1]))
    return Ising(edges, 0.0)
