"""Exponential families: one file each, holding only what is particular to it; `base` derives the rest from ``A``."""

import importlib
from typing import TYPE_CHECKING

from cumulant.families.base import ExponentialFamily
from cumulant.families.bernoulli import Bernoulli, Binomial, Geometric, NegativeBinomial
from cumulant.families.categorical import Categorical, Multinomial
from cumulant.families.compare import Candidate, Comparison, compare
from cumulant.families.dirichlet import Beta, Dirichlet
from cumulant.families.estimate import Estimate
from cumulant.families.finite import FiniteFamily, SampledFamily
from cumulant.families.gamma import Gamma, InverseGamma
from cumulant.families.gamma_type import (
    Exponential,
    GammaKnownShape,
    GammaType,
    LaplaceKnownCentre,
    ParetoKnownMinimum,
    Rayleigh,
    WeibullKnownShape,
)
from cumulant.families.goodness import Goodness, goodness_of_fit, probability_transform
from cumulant.families.inverse_gaussian import InverseGaussian
from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.families.multivariate_normal_diagonal import MultivariateNormalDiagonal, MultivariateNormalIsotropic
from cumulant.families.multivariate_normal_known import (
    MultivariateNormalKnownCovariance,
    MultivariateNormalKnownMean,
)
from cumulant.families.normal import LogNormal, Normal, NormalKnownMean, NormalKnownVariance
from cumulant.families.normal_inverse_wishart import NormalInverseGamma, NormalInverseWishart
from cumulant.families.poisson import Poisson
from cumulant.families.predictive import Predictive
from cumulant.families.product import Product
from cumulant.families.profile import Profile, profile
from cumulant.families.protocol import BoundedFamily, Family
from cumulant.families.statistics import ConjugatePrior, Statistics, StreamingMAP
from cumulant.families.von_mises import VonMises, VonMisesFisher
from cumulant.families.wishart import InverseWishart, Wishart

if TYPE_CHECKING:
    from cumulant.families import risk

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "BoundedFamily",
    "Candidate",
    "Categorical",
    "Comparison",
    "ConjugatePrior",
    "Dirichlet",
    "Estimate",
    "Exponential",
    "ExponentialFamily",
    "Family",
    "FiniteFamily",
    "Gamma",
    "GammaKnownShape",
    "GammaType",
    "Geometric",
    "Goodness",
    "InverseGamma",
    "InverseGaussian",
    "InverseWishart",
    "LaplaceKnownCentre",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateNormalDiagonal",
    "MultivariateNormalIsotropic",
    "MultivariateNormalKnownCovariance",
    "MultivariateNormalKnownMean",
    "NegativeBinomial",
    "Normal",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownMean",
    "NormalKnownVariance",
    "ParetoKnownMinimum",
    "Poisson",
    "Predictive",
    "Product",
    "Profile",
    "Rayleigh",
    "SampledFamily",
    "Statistics",
    "StreamingMAP",
    "VonMises",
    "VonMisesFisher",
    "WeibullKnownShape",
    "Wishart",
    "all_families",
    "compare",
    "goodness_of_fit",
    "probability_transform",
    "profile",
    "risk",
]


def __getattr__(name: str):
    """`families.risk` is imported when something asks for it: quadrature and simulation are not needed to fit."""
    if name == "risk":
        return importlib.import_module("cumulant.families.risk")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def all_families() -> tuple[ExponentialFamily, ...]:
    """One instance of every family, for tests and tables.

    >>> sum(family.dim for family in all_families()) > 12
    True
    """
    return (
        Bernoulli(),
        Binomial(7),
        Categorical(4),
        Multinomial(6, 3),
        Geometric(),
        NegativeBinomial(2.5),
        Poisson(),
        Exponential(),
        Gamma(),
        GammaKnownShape(2.5),
        InverseGamma(),
        InverseGaussian(),
        Beta(),
        Dirichlet(4),
        Normal(),
        NormalKnownVariance(2.0),
        NormalKnownMean(0.5),
        LogNormal(),
        MultivariateNormal(3),
        MultivariateNormalDiagonal(3),
        MultivariateNormalIsotropic(3),
        MultivariateNormalKnownCovariance([[2.0, 0.5], [0.5, 1.0]]),
        MultivariateNormalKnownMean([0.5, -1.0]),
        Wishart(2),
        InverseWishart(2),
        NormalInverseGamma(),
        NormalInverseWishart(2),
        VonMises(),
        VonMisesFisher(3),
        LaplaceKnownCentre(0.5),
        ParetoKnownMinimum(2.0),
        WeibullKnownShape(1.5),
        Rayleigh(),
        Product((Gamma(), Poisson(), Normal())),
        FiniteFamily([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [2.0, 1.0], [0.0, 3.0]], [1.0, 2.0, 1.0, 0.5, 1.0]),
    )
