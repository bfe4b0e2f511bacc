"""Intervals that contain ``log Z``: convex combinations above, blocks below, annealing with a stated confidence."""
