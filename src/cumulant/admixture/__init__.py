"""Admixture: documents made of topics, individuals made of populations (latent Dirichlet allocation)."""

from cumulant.admixture.collapsed import collapsed_gibbs
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.collapsed_result import CollapsedResult
from cumulant.admixture.collapsed_sampler import CollapsedGibbs
from cumulant.admixture.data import Corpus

__all__ = ["CollapsedGibbs", "CollapsedPosterior", "CollapsedResult", "Corpus", "collapsed_gibbs"]
