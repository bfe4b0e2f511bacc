"""Gaussian variational inference with guarantees: ``q_w = N(m, C C^T)`` nearest to a target in ``KL(q_w | p)``.

`gaussians` are the approximations, `targets` the models whose constants follow from the data, `objective` the problems,
`estimators` the gradients; solvers, schedules and rates are those of `optim`. `divergence`, `annealing_check` and
`calibration` judge a fit, or the fits of a model.
"""

from cumulant.sampling import Target
from cumulant.variational.annealing_check import AnnealingCheck, check_by_annealing
from cumulant.variational.calibration import Calibration, calibrate
from cumulant.variational.divergence import DivergenceBound, DivergenceProblem, bound_divergence, certify_divergence
from cumulant.variational.estimators import (
    EnergyGradient,
    EntropyGradient,
    ScoreGradient,
    StickingTheLanding,
    subsampled_second_moment,
)
from cumulant.variational.fit import fit
from cumulant.variational.gaussians import Diagonal, FullRank, Gaussian, Isotropic
from cumulant.variational.low_rank import LowRank
from cumulant.variational.numpyro_models import NumPyroTarget, from_numpyro
from cumulant.variational.objective import (
    Energy,
    Floor,
    NegativeELBO,
    NegativeEntropy,
    projected_problem,
    proximal_problem,
)
from cumulant.variational.plan import Plan, plan
from cumulant.variational.result import FitDiagnostics, GaussianFit
from cumulant.variational.targets import (
    KnownTarget,
    Regression,
    SumTarget,
    gaussian,
    hierarchical_logistic,
    linear_regression,
    logistic_regression,
    poisson_regression,
    sum_target,
)

__all__ = [
    "AnnealingCheck",
    "Calibration",
    "Diagonal",
    "DivergenceBound",
    "DivergenceProblem",
    "Energy",
    "EnergyGradient",
    "EntropyGradient",
    "FitDiagnostics",
    "Floor",
    "FullRank",
    "Gaussian",
    "GaussianFit",
    "Isotropic",
    "KnownTarget",
    "LowRank",
    "NegativeELBO",
    "NegativeEntropy",
    "NumPyroTarget",
    "Plan",
    "Regression",
    "ScoreGradient",
    "StickingTheLanding",
    "SumTarget",
    "Target",
    "bound_divergence",
    "calibrate",
    "certify_divergence",
    "check_by_annealing",
    "fit",
    "from_numpyro",
    "gaussian",
    "hierarchical_logistic",
    "linear_regression",
    "logistic_regression",
    "plan",
    "poisson_regression",
    "projected_problem",
    "proximal_problem",
    "subsampled_second_moment",
    "sum_target",
]
