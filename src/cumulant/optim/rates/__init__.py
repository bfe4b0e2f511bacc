"""Theorems as functions: each takes the constants of a problem and the number of steps, and returns the guarantee.

`optim.verify(trace, bound)` compares a run with one. All accept arrays of step counts. The gradient-descent rates are
in `gradient_descent`, those of methods with momentum in `accelerated`, those of proximal methods and of penalties in
`proximal`, those of mirror descent in `mirror_descent`, those of stochastic mirror descent in `stochastic`, and those
of dual coordinate ascent in `dual_ascent`.
"""

from cumulant.optim.rates.accelerated import (
    conjugate_gradient,
    heavy_ball,
    heavy_ball_contraction,
    nesterov,
    nesterov_flow,
    nesterov_quadratic_factor,
    nesterov_strongly_convex,
)
from cumulant.optim.rates.dual_ascent import (
    SafeSteps,
    adaptive_rate,
    ascent_lower_bound,
    block_conditions,
    expected_ascent_lower_bound,
    gap_from_dual,
    gap_from_primal,
    iterations_to,
    lipschitz_gap_ascent,
    nonuniformity,
    primal_smoothness,
    safe_steps,
    sdca_adaptive,
    sdca_gap,
    sdca_importance,
    sdca_lipschitz_gap,
    sdca_uniform,
    sgd_strongly_convex,
    weights_distance,
)
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
from cumulant.optim.rates.proximal import fista, ista, ista_strongly_convex, penalised_residual, ridge_distance
from cumulant.optim.rates.stochastic import smd_gap, smd_optimum_variance, smd_optimum_variance_start

__all__ = [
    "SafeSteps",
    "adaptive_rate",
    "armijo_reductions",
    "armijo_step",
    "ascent_lower_bound",
    "block_conditions",
    "conjugate_gradient",
    "expected_ascent_lower_bound",
    "fista",
    "gap_from_dual",
    "gap_from_primal",
    "gd_contraction",
    "gd_convex",
    "gd_decrease",
    "gd_degenerate_quadratic",
    "gd_exact_line_search",
    "gd_quadratic",
    "gd_strongly_convex",
    "heavy_ball",
    "heavy_ball_contraction",
    "implicit_mirror",
    "ista",
    "ista_strongly_convex",
    "iterations_to",
    "lipschitz_gap_ascent",
    "mirror",
    "mirror_divergence",
    "mirror_steps",
    "nesterov",
    "nesterov_flow",
    "nesterov_quadratic_factor",
    "nesterov_strongly_convex",
    "nonuniformity",
    "penalised_residual",
    "primal_smoothness",
    "ridge_distance",
    "safe_steps",
    "sdca_adaptive",
    "sdca_gap",
    "sdca_importance",
    "sdca_lipschitz_gap",
    "sdca_uniform",
    "sgd_strongly_convex",
    "simplex_radius",
    "smd_gap",
    "smd_optimum_variance",
    "smd_optimum_variance_start",
    "weights_distance",
]
