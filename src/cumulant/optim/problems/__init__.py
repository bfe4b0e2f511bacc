"""Functions to minimise with their constants: smooth functions, losses of rows, likelihoods, penalties, composites."""
