"""Learning discrete models from data or from their mean statistics."""

from typing import Any, Unpack

import numpy as np

from cumulant import checks
from cumulant.families.finite import SampledFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.learning.conditional_likelihood import ConditionalProblem
from cumulant.graphical.learning.methods import MCMC, Method, RunSettings, method_named
from cumulant.graphical.learning.missing_values import MarginalisedProblem
from cumulant.graphical.learning.problem import Fit, LearningProblem
from cumulant.graphical.learning.sampled_family import sampled_family_problem
from cumulant.graphical.mixing.fast_mixing import FastMixing, fast_set
from cumulant.graphical.mixing.ferromagnetic import Ferromagnetic
from cumulant.graphical.pairwise import BoltzmannMachine, Ising, Potts

_ROWS = 4096  # observations that are counted at once
_OBJECTIVES = ("likelihood", "pseudo_likelihood", "composite")


def fit(
    data: Any,
    structure: Any,
    *,
    method: str | Method = "mcmc",
    mixing: FastMixing | Ferromagnetic | None = None,
    l2: float = 0.0,
    fields: bool = True,
    rng: Any = None,
    n_jobs: int | None = None,
    **running: Unpack[RunSettings],
) -> Fit:
    """Maximise the mean log-likelihood minus ``l2/2 |theta|^2``, over a fast-mixing set where one is given.

    ``theta* = argmin A(theta) - <theta, mean statistic> + l2/2 |theta|^2``. In the set this is the nearest model to the
    data in Kullback-Leibler divergence (but for `l2`), right or not.

    Parameters
    ----------
    data : array of shape (observations, variables), or of shape (parameters,)
        Observations, or the mean of their statistics in the order of ``theta`` (of those that are learnt, if
        ``fields=False``). NaN is a missing value, which ``"pseudo_likelihood"`` sums over: see `MarginalisedProblem`.
    structure : DiscreteModel, pairs of variables, or families.SampledFamily
        A model whose family is fitted, its own parameters ignored: spins, colours, units or tables of any order. Pairs
        are the edges of an `Ising` model. A family with a statistic and a sampler of its own is learnt by `MCMC`.
    method : str or settings
        An object of settings, or its name for the default settings:

        * ``"mcmc"``, `MCMC`: gradients from Gibbs sampling in `mixing`, certified with probability ``1 - delta``;
        * ``"exact"``, `MaximumLikelihood`: gradients by elimination, for models of small width; `mixing` is optional;
        * ``"pseudo_likelihood"``, `PseudoLikelihood`, and ``"composite"``, `CompositeLikelihood`: conditional
          likelihoods of variables or of pairs that share a table. The certificate is about that objective;
        * ``"contrastive_divergence"``, `ContrastiveDivergence`, and ``"persistent"``, `PersistentChains`: sampling
          without guarantees, and without a certificate.
    mixing : FastMixing or Ferromagnetic, optional
        The set of couplings, or tables of pairs, to stay in; of ferromagnets, gradients come from the subgraphs world.
    l2 : float
    fields : bool
        Whether single variables have parameters; without, only couplings, or tables of two and more variables, are
        learnt.
    rng : int, Generator or None
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    callback, progress, time_limit, checkpoint
        As in `optim.run`.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from cumulant.graphical import Ising
    >>> exact = fit([0.6], Ising([(0, 1)], 0.0), method="exact", fields=False, l2=1.0)
    >>> exact.model.couplings.round(6)                          # tanh t + t = 0.6
    array([0.304539])
    >>> exact.certificate.verify(exact.subject).upper < 1e-10
    True
    """
    chosen = method_named(method)
    if isinstance(structure, SampledFamily):
        if not isinstance(chosen, MCMC):
            raise ValueError(f"a family with a sampler of its own is learnt by method='mcmc'; got {chosen.name!r}")
        if mixing is not None or not fields:
            raise ValueError("mixing and fields are about discrete models: a family with its own sampler has neither")
        return chosen.fit(sampled_family_problem(data, structure, l2), rng=rng, n_jobs=n_jobs, **running)
    problem = learning_problem(data, structure, mixing=mixing, l2=l2, fields=fields, objective=chosen.objective)
    return chosen.fit(problem, rng=rng, n_jobs=n_jobs, **running)


def learning_problem(
    data: Any,
    structure: Any,
    *,
    mixing: FastMixing | Ferromagnetic | None = None,
    l2: float = 0.0,
    fields: bool = True,
    objective: str = "likelihood",
) -> LearningProblem:
    """What `fit` minimises, as an object: ``problem.value_and_gradient(theta)``, and what its certificates speak of.

    `objective` is ``"likelihood"``, ``"pseudo_likelihood"`` or ``"composite"``.

    >>> problem = learning_problem([0.6], [(0, 1)], fields=False)
    >>> round(problem.value_and_gradient(np.array([0.0]))[0], 6)        # 2 log 2
    1.386294
    """
    checks.not_negative("l2", l2)
    if mixing is not None and not isinstance(mixing, FastMixing | Ferromagnetic):
        raise TypeError(f"mixing must be a FastMixing or a Ferromagnetic set, or None; got {type(mixing).__name__}")
    if objective not in _OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(map(repr, _OBJECTIVES))}; got {objective!r}")
    if objective != "likelihood" and mixing is not None:
        raise ValueError(f"objective={objective!r} takes no mixing: project the answer with graphical.project")
    x = checks.array("data", data)
    missing = x.dtype.kind == "f" and x.ndim == 2 and bool(np.isnan(x).any())
    if x.size == 0 or x.dtype.kind not in "iubf" or np.isinf(x).any() or (np.isnan(x).any() and not missing):
        raise ValueError(f"data must be finite numbers, at least one observation; got shape {x.shape}, dtype {x.dtype}")
    if missing and objective != "pseudo_likelihood":
        raise ValueError(
            "data must be finite: missing values (NaN) are for method='pseudo_likelihood', which sums over them"
        )
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
        if objective != "likelihood":
            raise ValueError(f"objective={objective!r} needs the data themselves, not their mean statistics")
        return LearningProblem(model, x.astype(np.float64), float(l2), free, mixing)
    if x.ndim != 2:
        raise ValueError(f"data must have one axis (mean statistics) or two (observations, variables); got {x.ndim}")
    if missing:
        return MarginalisedProblem(model, np.zeros(free.size), float(l2), free, mixing, x)
    mean = _mean_statistics(model, x)[free]
    if objective == "likelihood":
        return LearningProblem(model, mean, float(l2), free, mixing, x)
    blocks = "variables" if objective == "pseudo_likelihood" else "pairs"
    return ConditionalProblem(model, mean, float(l2), free, mixing, x, blocks)


def _mean_statistics(model: DiscreteModel, x: np.ndarray) -> np.ndarray:
    """By counting entries of tables: statistics of all observations side by side would be a large matrix."""
    if isinstance(model, Ising):
        spins = model.labels.numbers(model.family.states(x, "data")).astype(np.float64)
        return np.concatenate([spins.mean(axis=0), (spins.T @ spins)[tuple(model.edges.T)] / len(x)])
    family, counts = model.family, np.zeros(int(model.structure.table_starts[-1]))
    for first in range(0, len(x), _ROWS):
        entries = model.structure.entries(family.states(x[first : first + _ROWS], "data"))
        counts += np.bincount(entries.ravel(), minlength=counts.size)
    return family.mean_of(counts / len(x))


def _model(structure: Any, x: np.ndarray) -> DiscreteModel:
    if isinstance(structure, DiscreteModel):
        return structure
    with checks.about("structure"):
        return Ising(structure, 0.0, np.zeros(x.shape[1]) if x.ndim == 2 else None)
