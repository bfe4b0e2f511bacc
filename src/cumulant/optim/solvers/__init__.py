"""Deterministic solvers, one a file: gradient, accelerated, proximal, mirror, Newton and quasi-Newton methods."""
