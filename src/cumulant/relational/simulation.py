"""Populations drawn from the model, and learning from them when nothing is hidden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import checks, randomness
from cumulant.relational.network import Latents, Network, networks_of
from cumulant.relational.parameters import Counts, assemble_counts, checked_prior, tables_of


def simulate(theta: np.ndarray, ordered: bool, n: int, rng: Any) -> Network:
    """Independent people, their attributes, ties, and then the attributes of the others in the order of people."""
    rng, tables = randomness.generator(rng), tables_of(theta)
    independent = rng.random(n) < tables.prior[1]
    attribute = independent & (rng.random(n) < theta[7])
    code = 4 * attribute[:, None] + 2 * attribute[None, :] + 1
    # the attribute of a dependent person, unknown as yet, does not change the rule of a pair
    probability = tables.pair[code, 2 * independent[:, None] + independent[None, :]]
    ties = np.triu(rng.random((n, n)) < probability, 1)
    ties |= ties.T
    chance = rng.random((n, n))
    sways, encouraged, discouraged = np.zeros((n, n), bool), np.zeros(n, bool), np.zeros(n, bool)
    index, choice = np.arange(n), rng.random(n)
    # in the ordered reading a person is swayed by the dependent ones before, so that these must have chosen
    for x in [*np.flatnonzero(~independent), *np.flatnonzero(independent)]:
        able = ties[x] & (independent | (index < x) if ordered else independent)
        sways[x] = able & (chance[x] < tables.sway[attribute.astype(int)])
        encouraged[x], discouraged[x] = (sways[x] & attribute).any(), (sways[x] & ~attribute).any()
        if not independent[x]:
            attribute[x] = choice[x] < tables.habit[1, 1 + 2 * int(encouraged[x]) + int(discouraged[x])]
    return Network(attribute, ties, Latents(independent, sways, encouraged, discouraged))


@dataclass(frozen=True, eq=False)
class CompleteFit:
    """Probabilities learned from networks whose latent variables are known.

    Attributes
    ----------
    theta : array (14,)
    counts : Counts
        Of all networks together.
    """

    theta: np.ndarray
    counts: Counts


def fit_complete(nets: Any, alpha: Any = 4.0, beta: Any = 4.0, *, influence: str = "independent") -> CompleteFit:
    """``theta_k = (alpha - 1 + successes_k) / (alpha + beta - 2 + trials_k)``: the exact posterior mode.

    With all latent variables known the rules do not interact: each has its own Beta posterior, whose mode this is.

    Parameters
    ----------
    nets : Network or sequence of them
        With `latents`, as `SmokersModel.sample` gives them.
    alpha, beta : float or array (14,)
        Of the Beta prior of every rule, or of each, at least 1; 1 and 1 give the maximum-likelihood estimate.
    influence : {"independent", "ordered"}
        As for `SmokersModel`.

    Examples
    --------
    >>> from cumulant.relational import SmokersModel
    >>> truth = SmokersModel()
    >>> fit = fit_complete([truth.sample(200, seed) for seed in range(4)])
    >>> bool(abs(fit.theta - truth.theta).max() < 0.05)
    True
    """
    prior = checked_prior(alpha, beta, interior=False)
    ordered = checks.choice("influence", influence, ("independent", "ordered")) == "ordered"
    counts = sum((_counts(net, ordered) for net in networks_of(nets)), Counts.zeros())
    return CompleteFit(counts.map_estimate(*prior), counts)


def _counts(network: Network, ordered: bool) -> Counts:
    if network.latents is None:
        raise ValueError("nets must have latents, as those of SmokersModel.sample have; use fit_em without them")
    layout, latents, n = network.layout, network.latents, network.n_people
    z, above = latents.independent.astype(int), np.triu_indices(n, 1)
    pair_sums, habits = np.zeros((8, 4)), np.zeros((n, 2, 2, 2))
    np.add.at(pair_sums, (layout.code[above], 2 * z[above[0]] + z[above[1]]), 1.0)
    habits[np.arange(n), z, latents.encouraged.astype(int), latents.discouraged.astype(int)] = 1.0
    people = np.repeat(np.arange(n), np.diff(layout.starts))
    able = latents.independent[layout.others] | (ordered & (layout.others < people))
    swayed = latents.sways[people, layout.others]
    return assemble_counts(layout, pair_sums, z.astype(float), habits, swayed.astype(float), able.astype(float))
