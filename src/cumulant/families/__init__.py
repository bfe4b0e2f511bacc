"""Exponential families: one file each, holding only what is particular to it; `base` derives the rest from ``A``."""

from cumulant.families.base import ExponentialFamily
from cumulant.families.categorical import Categorical
from cumulant.families.estimate import Estimate
from cumulant.families.gamma import Gamma
from cumulant.families.gamma_type import (
    Exponential,
    GammaKnownShape,
    GammaType,
    LaplaceKnownCentre,
    ParetoKnownMinimum,
    Rayleigh,
    WeibullKnownShape,
)
from cumulant.families.normal import LogNormal, Normal, NormalKnownMean, NormalKnownVariance
from cumulant.families.poisson import Poisson
from cumulant.families.statistics import ConjugatePrior, Statistics, StreamingMAP

__all__ = [
    "Categorical",
    "ConjugatePrior",
    "Estimate",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "GammaKnownShape",
    "GammaType",
    "LaplaceKnownCentre",
    "LogNormal",
    "Normal",
    "NormalKnownMean",
    "NormalKnownVariance",
    "ParetoKnownMinimum",
    "Poisson",
    "Rayleigh",
    "Statistics",
    "StreamingMAP",
    "WeibullKnownShape",
    "all_families",
]


def all_families() -> tuple[ExponentialFamily, ...]:
    """One instance of every family, for tests, tables and the curious.

    >>> sum(family.dim for family in all_families()) > 12
    True
    """
    return (
        Categorical(4),
        Poisson(),
        Exponential(),
        Gamma(),
        GammaKnownShape(2.5),
        Normal(),
        NormalKnownVariance(2.0),
        NormalKnownMean(0.5),
        LogNormal(),
        LaplaceKnownCentre(0.5),
        ParetoKnownMinimum(2.0),
        WeibullKnownShape(1.5),
        Rayleigh(),
    )
