"""Generalised linear models, fitted with a certified duality gap: `GLM`, a scikit-learn estimator.

`GLMProblem` is the objective with its dual, `Newton`, `ProximalNewton` and `DualAscent` the solvers behind it; all of
them can be given to `optim.run`.
"""

from cumulant.glm.certify import concordance_bound, concordance_certificate, duality_gap, gap_certificate
from cumulant.glm.design import DenseDesign, SparseDesign, design_of
from cumulant.glm.dual_ascent import DualAscent
from cumulant.glm.losses import loss_of
from cumulant.glm.model import GLM
from cumulant.glm.newton import Newton
from cumulant.glm.problem import GLMProblem
from cumulant.glm.proximal_newton import ProximalNewton

__all__ = [
    "GLM",
    "DenseDesign",
    "DualAscent",
    "GLMProblem",
    "Newton",
    "ProximalNewton",
    "SparseDesign",
    "concordance_bound",
    "concordance_certificate",
    "design_of",
    "duality_gap",
    "gap_certificate",
    "loss_of",
]
