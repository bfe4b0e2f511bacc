"""Generalised linear models, fitted with a certified duality gap: `GLM`, a scikit-learn estimator.

`GLMProblem` is the objective with its dual. `GLMNewton`, `GLMWorkingSet`, `GLMProximalNewton` and `GLMDualAscent` are
the solvers behind it; all of them can be given to `optim.run`. `OnlineLasso` and `OnlineL1Logistic` learn from
streams with an l1 penalty, by interior-point steps; `prequential` evaluates a learner on a stream.

Importing this package costs nothing: a name is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cumulant.glm.batch.coefficient_table import CoefficientTable
    from cumulant.glm.batch.model import GLM
    from cumulant.glm.batch.penalty_path import PenaltyPath
    from cumulant.glm.objective.certify import certify_glm_concordance, certify_glm_distance, certify_glm_gap
    from cumulant.glm.objective.design import DenseDesign, SparseDesign, design_of
    from cumulant.glm.objective.duality_gap import PrimalDual
    from cumulant.glm.objective.losses import loss_of
    from cumulant.glm.objective.problem import GLMProblem
    from cumulant.glm.online.lasso import OnlineLasso
    from cumulant.glm.online.logistic import OnlineL1Logistic
    from cumulant.glm.online.one_vs_rest import OneVsRest, certify_one_vs_rest
    from cumulant.glm.online.prequential import ContingencyTable, hashing, prequential
    from cumulant.glm.online.pruning import Pruning
    from cumulant.glm.solvers.dual_ascent import GLMDualAscent
    from cumulant.glm.solvers.newton import GLMNewton
    from cumulant.glm.solvers.proximal_newton import GLMProximalNewton
    from cumulant.glm.solvers.working_set import GLMWorkingSet

_MODULES = {
    "batch.coefficient_table": ("CoefficientTable",),
    "batch.model": ("GLM",),
    "batch.penalty_path": ("PenaltyPath",),
    "objective.certify": ("certify_glm_concordance", "certify_glm_distance", "certify_glm_gap"),
    "objective.design": ("DenseDesign", "SparseDesign", "design_of"),
    "objective.duality_gap": ("PrimalDual",),
    "objective.losses": ("loss_of",),
    "objective.problem": ("GLMProblem",),
    "online.lasso": ("OnlineLasso",),
    "online.logistic": ("OnlineL1Logistic",),
    "online.one_vs_rest": ("OneVsRest", "certify_one_vs_rest"),
    "online.prequential": ("ContingencyTable", "hashing", "prequential"),
    "online.pruning": ("Pruning",),
    "solvers.dual_ascent": ("GLMDualAscent",),
    "solvers.newton": ("GLMNewton",),
    "solvers.proximal_newton": ("GLMProximalNewton",),
    "solvers.working_set": ("GLMWorkingSet",),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "GLM",
    "CoefficientTable",
    "ContingencyTable",
    "DenseDesign",
    "GLMDualAscent",
    "GLMNewton",
    "GLMProblem",
    "GLMProximalNewton",
    "GLMWorkingSet",
    "OneVsRest",
    "OnlineL1Logistic",
    "OnlineLasso",
    "PenaltyPath",
    "PrimalDual",
    "Pruning",
    "SparseDesign",
    "certify_glm_concordance",
    "certify_glm_distance",
    "certify_glm_gap",
    "certify_one_vs_rest",
    "design_of",
    "hashing",
    "loss_of",
    "prequential",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
