"""Variational sequential Monte Carlo: particles that choose the next distribution by descending a KL divergence.

`family` says what a model must give, `lattice` gives it for Ising models; `safeguards` bound the steps, `directions`
choose them, `bridge` is the method itself and `path` runs a path that is given.
"""
