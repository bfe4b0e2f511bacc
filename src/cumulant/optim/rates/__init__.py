"""Theorems as functions: each takes the constants of a problem and the number of steps, and returns the guarantee.

`optim.verify(trace, bound)` compares a run with one. All accept arrays of step counts. The gradient-descent rates are
in `gradient_descent`, those of mirror descent in `mirror_descent`, and those in expectation in `stochastic`.
"""

from cumulant.optim.rates.gradient_descent import (
    armijo_reductions,
    armijo_step,
    gd_contraction,
    gd_convex,
    gd_decrease,
    gd_degenerate_quadratic,
    gd_exact_line_search,
    gd_quadratic,
    gd_strongly_convex,
)
from cumulant.optim.rates.mirror_descent import implicit_mirror, mirror, mirror_divergence, mirror_steps, simplex_radius
from cumulant.optim.rates.stochastic import smd_gap, smd_optimum_variance, smd_optimum_variance_start

__all__ = [
    "armijo_reductions",
    "armijo_step",
    "gd_contraction",
    "gd_convex",
    "gd_decrease",
    "gd_degenerate_quadratic",
    "gd_exact_line_search",
    "gd_quadratic",
    "gd_strongly_convex",
    "implicit_mirror",
    "mirror",
    "mirror_divergence",
    "mirror_steps",
    "simplex_radius",
    "smd_gap",
    "smd_optimum_variance",
    "smd_optimum_variance_start",
]
