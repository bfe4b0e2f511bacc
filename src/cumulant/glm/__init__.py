"""Generalised linear models, fitted with a certified duality gap: `GLM`, a scikit-learn estimator.

`GLMProblem` is the objective with its dual. `GLMNewton`, `GLMWorkingSet`, `GLMProximalNewton` and `GLMDualAscent` are
the solvers behind it; all of them can be given to `optim.run`. `OnlineLasso` and `OnlineL1Logistic` learn from
streams with an l1 penalty, by interior-point steps; `prequential` evaluates a learner on a stream.
"""

from cumulant.glm.batch.model import GLM
from cumulant.glm.batch.penalty_path import PenaltyPath
from cumulant.glm.objective.certify import certify_glm_concordance, certify_glm_gap
from cumulant.glm.objective.design import DenseDesign, SparseDesign, design_of
from cumulant.glm.objective.duality_gap import PrimalDual
from cumulant.glm.objective.losses import loss_of
from cumulant.glm.objective.problem import GLMProblem
from cumulant.glm.online.lasso import OnlineLasso
from cumulant.glm.online.logistic import OnlineL1Logistic
from cumulant.glm.online.prequential import ContingencyTable, hashing, prequential
from cumulant.glm.online.pruning import Pruning
from cumulant.glm.solvers.dual_ascent import GLMDualAscent
from cumulant.glm.solvers.newton import GLMNewton
from cumulant.glm.solvers.proximal_newton import GLMProximalNewton
from cumulant.glm.solvers.working_set import GLMWorkingSet

__all__ = [
    "GLM",
    "ContingencyTable",
    "DenseDesign",
    "GLMDualAscent",
    "GLMNewton",
    "GLMProblem",
    "GLMProximalNewton",
    "GLMWorkingSet",
    "OnlineL1Logistic",
    "OnlineLasso",
    "PenaltyPath",
    "PrimalDual",
    "Pruning",
    "SparseDesign",
    "certify_glm_concordance",
    "certify_glm_gap",
    "design_of",
    "hashing",
    "loss_of",
    "prequential",
]
