"""Interior-point methods for smooth convex problems under inequality constraints, with exact or noisy gradients.

`ConstrainedProblem` joins an objective with `Bounds`, `LinearConstraints`, `QuadraticConstraints`, ... ;
`l1_regularize` makes one of any smooth loss and an l1 penalty. `InteriorPoint` solves it with a duality gap,
`InteriorPointSA` on a stream of noisy gradients; `baselines` has the methods it is compared with.
"""

from cumulant.optim.interior_point.barrier import CentralPath, LogBarrier, central_path, log_barrier, noisy_central_path
from cumulant.optim.interior_point.baselines import (
    AugmentedLagrangianSGD,
    ProjectedSGD,
    SmoothedL1SGD,
    SubgradientSGD,
    dykstra,
)
from cumulant.optim.interior_point.batch import InteriorPoint
from cumulant.optim.interior_point.centring import ConstantSigma, MehrotraSigma, PowerSigma, barrier_from_gap
from cumulant.optim.interior_point.certify import certify_constrained, relative_accuracy
from cumulant.optim.interior_point.constraints import (
    Bounds,
    Constraints,
    LinearConstraints,
    QuadraticConstraints,
    SmoothConstraints,
)
from cumulant.optim.interior_point.curvature import DampedBFGS, damped_bb, damped_bfgs
from cumulant.optim.interior_point.diagnostics import (
    Budget,
    Diagnostics,
    Qualification,
    check_licq,
    diagnostics,
    l1_violation,
    rm_budget,
)
from cumulant.optim.interior_point.linear_algebra import (
    PrimalDualStep,
    inertia,
    rank_two_determinant,
    sherman_morrison,
    solve_primal_dual,
)
from cumulant.optim.interior_point.problem import ConstrainedProblem, l1_regularize, on_simplex
from cumulant.optim.interior_point.step_sizes import Harmonic, RobbinsMonroReport, check_robbins_monro
from cumulant.optim.interior_point.stochastic import InteriorPointSA, ipsa_init, ipsa_step
from cumulant.optim.interior_point.structured_sets import AbsoluteBounds, Intersection, SimplexConstraints

__all__ = [
    "AbsoluteBounds",
    "AugmentedLagrangianSGD",
    "Bounds",
    "Budget",
    "CentralPath",
    "ConstantSigma",
    "ConstrainedProblem",
    "Constraints",
    "DampedBFGS",
    "Diagnostics",
    "Harmonic",
    "InteriorPoint",
    "InteriorPointSA",
    "Intersection",
    "LinearConstraints",
    "LogBarrier",
    "MehrotraSigma",
    "PowerSigma",
    "PrimalDualStep",
    "ProjectedSGD",
    "QuadraticConstraints",
    "Qualification",
    "RobbinsMonroReport",
    "SimplexConstraints",
    "SmoothConstraints",
    "SmoothedL1SGD",
    "SubgradientSGD",
    "barrier_from_gap",
    "central_path",
    "certify_constrained",
    "check_licq",
    "check_robbins_monro",
    "damped_bb",
    "damped_bfgs",
    "diagnostics",
    "dykstra",
    "inertia",
    "ipsa_init",
    "ipsa_step",
    "l1_regularize",
    "l1_violation",
    "log_barrier",
    "noisy_central_path",
    "on_simplex",
    "rank_two_determinant",
    "relative_accuracy",
    "rm_budget",
    "sherman_morrison",
    "solve_primal_dual",
]
