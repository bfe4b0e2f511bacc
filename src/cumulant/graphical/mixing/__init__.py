"""Mixing-time certificates: dependency matrices, their norms, and projections on fast-mixing sets."""
