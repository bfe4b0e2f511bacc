"""Products of families: the divergence is a sum over independent parts, and so is everything here."""

import numpy as np

from cumulant.families.product import Product
from cumulant.families.risk.concordance import self_concordance_constant
from cumulant.families.risk.diagnostics import gap_batch, gap_of
from cumulant.families.risk.expected import Theorem, exact_risk, upper_bound
from cumulant.families.risk.mean_statistics import sample_central
from cumulant.families.risk.tails import tail_index
from cumulant.families.statistics import ConjugatePrior

__all__: list[str] = []


@sample_central.register
def _(family: Product, theta, n, trials, rng):
    pieces = zip(family.parts, family.split(theta), strict=True)
    return np.concatenate([sample_central(part, piece, n, trials, rng) for part, piece in pieces], axis=-1)


@tail_index.register
def _(family: Product, n, strength):
    indices = [tail_index(part, n, strength) for part in family.parts]
    return None if any(index is None for index in indices) else min(i for i in indices if i is not None)


@self_concordance_constant.register
def _(family: Product) -> float:
    return max(self_concordance_constant(part) for part in family.parts)


@gap_of.register
def _(family: Product, theta, k):
    return sum(gap_of(part, piece, k) for part, piece in zip(family.parts, family.split(theta), strict=True))


@gap_batch.register
def _(family: Product) -> int:
    return max(gap_batch(part) for part in family.parts)


def _sum(function, family, theta_star, n, prior):
    """The theorems of the parts added up, or None where one is missing."""
    priors = [None] * len(family.parts)
    if prior is not None:
        priors = [ConjugatePrior(mean, prior.strength) for mean in family.split(np.asarray(prior.mean))]
    pieces = zip(family.parts, family.split(theta_star), priors, strict=True)
    theorems = [function(part, theta, n, own) for part, theta, own in pieces]
    if any(theorem is None for theorem in theorems):
        return None
    text = "sum over independent parts: " + "; ".join(dict.fromkeys(theorem.text for theorem in theorems))
    return Theorem(sum(t.value for t in theorems), text, all(theorem.any_truth for theorem in theorems))


@exact_risk.register
def _(family: Product, theta_star, n, prior):
    return _sum(exact_risk, family, theta_star, n, prior)


@upper_bound.register
def _(family: Product, theta_star, n, prior):
    return _sum(upper_bound, family, theta_star, n, prior)
