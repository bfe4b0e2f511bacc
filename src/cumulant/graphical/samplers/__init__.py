"""Markov chains and perfect draws: Gibbs kernels, clusters, multi-spin tori, subgraphs, coupling from the past."""
