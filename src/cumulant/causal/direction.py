"""Which of two variables is the cause, from their joint table and a prior on the mechanisms of each direction."""

from typing import Any, NamedTuple

import numpy as np

from cumulant import checks, randomness
from cumulant.causal.categorical import CategoricalSCM
from cumulant.causal.categorical_prior import concentrations, sample_reference
from cumulant.families import Dirichlet

_CHUNK = 2_000_000  # numbers drawn at a time


class BayesError(NamedTuple):
    """How often the best guess is wrong, with its standard error; an error near one of the same size is no estimate."""

    error: float
    standard_error: float


def direction_log_odds(P: Any, prior: Any = "dense", backward: Any = None) -> np.ndarray:
    """``log p(P | X -> Y) - log p(P | Y -> X)``, exactly: positive where X is the likelier cause, both alike before.

    Under ``X -> Y`` the cause is ``Dir(a)`` and each row ``Dir(b)``, independent, which gives a table the density
    ``Dir(p_X; a) prod_x Dir(p_{Y|x}; b) prod_x p(x)^{1 - K_y}``; the last factor is the Jacobian of the map from tables
    to marginal and rows. Under the dense prior with ``K_x = K_y = K`` this is

        (K - 1) [ sum_y log p(y) - sum_x log p(x) ] = K (K - 1) [ KL(u || p_X) - KL(u || p_Y) ],

    ``u`` uniform: the more uniform marginal is the effect (Le Priol 2021, appendix 4.C.1). Under the sparse prior both
    directions give each square table the same density, and the answer is zero. The sparse priors of ``X -> Y`` and of
    ``Y -> X`` on tables that are not square are two distributions, ``Dir(1 / K_y)`` and ``Dir(1 / K_x)`` over all
    cells: there the answer depends on the table.

    Parameters
    ----------
    P : array (..., K_x, K_y) or CategoricalSCM
        Joint tables of positive probabilities, or models written as ``X -> Y``.
    prior : {"dense", "sparse"} or pair
        Concentrations ``(a, b)`` of cause and rows; in a pair, numbers or arrays ``(K_x,)`` and ``(K_x, K_y)``.
    backward : optional
        The prior of ``Y -> X``; the same as `prior` unless given, which arrays have to be.

    Examples
    --------
    >>> float(direction_log_odds([[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]]))
    -0.056341...
    """
    with checks.about("P"):
        model = P if isinstance(P, CategoricalSCM) else CategoricalSCM.from_joint(P)
    for name, each in (("prior", prior), ("backward", backward if backward is not None else prior)):
        checks.instance(name, each, (str, tuple, list), "'dense', 'sparse' or a pair of concentrations")
    if backward is None:
        if not isinstance(prior, str) and any(np.ndim(each) for each in prior):
            raise ValueError("prior has arrays, which say nothing of the other direction: give backward as well")
        backward = prior
    return _log_density(model, "prior", prior) - _log_density(model.reverse(), "backward", backward)


def _log_density(model: CategoricalSCM, name: str, prior: Any) -> np.ndarray:
    """Of the joint tables, when their mechanisms have Dirichlet distributions."""
    causes, effects = model.sizes
    with checks.about(name):
        a, b = prior if not isinstance(prior, str) and len(prior) == 2 else concentrations(prior, effects)
        a, b = checks.real_array("concentrations", a), checks.real_array("concentrations", b)
        if not (np.all(a > 0) and np.all(b > 0)):
            raise ValueError("concentrations must be positive")
        if a.shape not in ((), (causes,)) or b.shape not in ((), (causes, effects)):
            raise ValueError(
                f"concentrations must be numbers, or of shapes {(causes,)} and {(causes, effects)}; got {a.shape} and "
                f"{b.shape}"
            )
    a, b = np.broadcast_to(a, (causes,)), np.broadcast_to(b, (causes, effects))
    normaliser = float(Dirichlet(causes).log_partition(a)) + float(np.sum(Dirichlet(effects).log_partition(b)))
    cause = np.sum((a - effects) * model.log_cause, axis=-1)  # a - 1, and 1 - K_y from the Jacobian
    return cause + np.sum((b - 1) * model.log_effect, axis=(-2, -1)) - normaliser


def bayes_error(K: int, n_mc: int = 100_000, rng: Any = None, *, prior: Any = "dense") -> BayesError:
    """How often the best guess of the direction is wrong, for tables of `sample_reference` seen exactly.

    The mean over `n_mc` random tables of the smaller of the two posterior probabilities: the share of wrong guesses has
    the same mean and a larger variance. 1/2 means that the directions cannot be told apart.

    Under the dense prior, causes are drawn from a Dirichlet distribution that is closer to the uniform one and weighed
    by the ratio of the densities: wrong guesses come from tables whose cause is as uniform as the effect, and there is
    hardly one in a million of them for K = 14. Beyond K = 30 a few tables carry the whole weight, and the standard
    error is as large as the error. Under other priors nothing is done about rare errors: where `n_mc` times the error
    is not well above ten, both numbers that are returned are usually far too small.

    >>> found = bayes_error(3, 20_000, rng=0)
    >>> abs(found.error - 0.2411) < 4 * found.standard_error
    True
    """
    K, n_mc, generator = checks.whole("K", K, 2), checks.whole("n_mc", n_mc, 2), randomness.generator(rng)
    at_once, dense = max(1, _CHUNK // K**2), isinstance(prior, str) and prior == "dense"
    parts = []
    for first in range(0, n_mc, at_once):
        n = min(at_once, n_mc - first)
        parts.append(_dense_losses(K, n, generator) if dense else _losses(K, n, prior, generator))
    logs = np.concatenate(parts)
    top = logs.max()
    shares = np.exp(logs - top)  # of the largest: the squares of tiny losses would vanish
    error, spread = shares.mean(), shares.std(ddof=1) / np.sqrt(n_mc)
    return BayesError(float(np.exp(top) * error), float(np.exp(top) * spread))


def _losses(K: int, n: int, prior: Any, generator: np.random.Generator) -> np.ndarray:
    """Logarithms of the smaller posterior probabilities. Tables with the arrow reversed have the same distribution of
    them.
    """
    return _log_smaller(direction_log_odds(sample_reference(K, n, prior, generator), prior))


def _dense_losses(K: int, n: int, generator: np.random.Generator) -> np.ndarray:
    """The same for the dense prior, where the marginals are all that counts, with causes from ``Dir(c)`` and weights.

    The loss falls as ``prod p(x)^(K - 1)`` towards the border of the simplex, so that weighted losses have a finite
    variance for ``1 <= c <= K``; the choice keeps their relative error low from K = 2 to 30.
    """
    c = 1 + 0.4 * (K - 1)
    cause = generator.standard_gamma(c, (n, K))
    rows = generator.standard_exponential((n, K, K))
    cause /= cause.sum(axis=-1, keepdims=True)
    effect = np.einsum("nx,nxy->ny", cause / rows.sum(axis=-1), rows)
    logs, family = np.log(cause).sum(axis=-1), Dirichlet(K)
    ratio = float(family.log_partition(np.full(K, c))) - float(family.log_partition(np.ones(K)))
    return _log_smaller((K - 1) * (np.log(effect).sum(axis=-1) - logs)) + ratio - (c - 1) * logs


def _log_smaller(log_odds: np.ndarray) -> np.ndarray:
    return -np.logaddexp(0.0, np.abs(log_odds))
