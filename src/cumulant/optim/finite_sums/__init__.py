"""Sums of many terms: stochastic gradients, variance reduction, dual coordinate ascent and how blocks are drawn."""
