"""Dual ascent on the workers of a Dask cluster."""
