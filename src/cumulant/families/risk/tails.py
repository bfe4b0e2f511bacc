"""How heavy the tail of the divergence is: which of its moments are finite, hence which averages mean something."""

import functools
from typing import Any

import numpy as np

from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Categorical, Multinomial
from cumulant.families.gamma_type import GammaType
from cumulant.families.normal import Normal, NormalKnownVariance
from cumulant.families.poisson import Poisson

__all__ = ["estimated_tail_index", "tail_index"]


@functools.singledispatch
def tail_index(family: Any, n: float, strength: float) -> float | None:
    """The supremum of the ``q`` for which ``E KL^q`` is finite, or None where it is not known.

    At most 1: the risk is infinite. At most 2: it is finite, but an average over simulations has no standard error.
    `strength` is that of the prior, whose mean is inside the domain; 0 is the MLE.

    Examples
    --------
    >>> from cumulant.families import NormalKnownMean
    >>> tail_index(NormalKnownMean(), 3, 0.0)
    1.5
    """
    return None


@tail_index.register
def _(family: GammaType, n, strength):
    return np.inf if strength > 0 else n * family.alpha  # the divergence grows as 1/mu_n, and mu_n ~ Gamma(n alpha)


@tail_index.register
def _(family: Normal, n, strength):
    return np.inf if strength > 0 else (n - 1) / 2


@tail_index.register
def _(family: NormalKnownVariance, n, strength):
    return np.inf


@tail_index.register(Bernoulli)
@tail_index.register(Binomial)
@tail_index.register(Categorical)
@tail_index.register(Geometric)
@tail_index.register(Multinomial)
@tail_index.register(NegativeBinomial)
@tail_index.register(Poisson)
def _(family, n, strength):
    return np.inf if strength > 0 else 0.0  # without a prior, an unseen class or no count at all: infinite divergence


def estimated_tail_index(values: np.ndarray) -> float:
    """Hill's estimate of the tail index from the largest ``sqrt(len)`` values: an indication, not a proof.

    >>> rng = np.random.default_rng(0)
    >>> 1.2 < estimated_tail_index(rng.pareto(1.5, 100_000) + 1) < 1.8
    True
    """
    finite = np.sort(values[np.isfinite(values) & (values > 0)])
    k = int(np.sqrt(finite.size))
    if k < 2:
        return np.inf
    logs = np.log(finite[-k - 1 :])
    spread = float(np.mean(logs[1:] - logs[0]))
    return 1.0 / spread if spread > 0 else np.inf
