"""Admixture: documents made of topics, individuals made of populations (latent Dirichlet allocation)."""

from cumulant.admixture.data import Corpus

__all__ = ["Corpus"]
