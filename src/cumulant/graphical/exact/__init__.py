"""Exact inference: elimination orders, programs and their kernels, enumeration, closed forms for lattices."""
