"""Solvers of generalised linear models: Newton, proximal Newton, working sets, dual ascent."""
