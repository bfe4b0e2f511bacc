"""Solvers of the likelihood of sequences: dual ascent, L-BFGS, exponentiated and stochastic gradients."""
