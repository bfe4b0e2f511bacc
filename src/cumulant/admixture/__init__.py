"""Admixture: documents made of topics, individuals made of populations (latent Dirichlet allocation)."""

from cumulant.admixture.bags_of_words import read_ldac, read_uci
from cumulant.admixture.collapsed import collapsed_gibbs
from cumulant.admixture.collapsed_posterior import CollapsedPosterior
from cumulant.admixture.collapsed_result import CollapsedResult
from cumulant.admixture.collapsed_sampler import CollapsedGibbs
from cumulant.admixture.data import Corpus
from cumulant.admixture.held_out import HeldOut, held_out_likelihood
from cumulant.admixture.lda import LDA

__all__ = [
    "LDA",
    "CollapsedGibbs",
    "CollapsedPosterior",
    "CollapsedResult",
    "Corpus",
    "HeldOut",
    "collapsed_gibbs",
    "held_out_likelihood",
    "read_ldac",
    "read_uci",
]
