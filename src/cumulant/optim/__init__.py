"""First-order optimisation with certificates: problems, solvers, one `run` loop, schedules, rates.

`optim.run(solver, problem, x0)` runs any solver on any problem it can handle and returns the answer together with a
bound on how far it can be from the optimum.
"""

from cumulant.optim import flows, interior_point, rates, schedules
from cumulant.optim.accelerated_gradient import AcceleratedGradient
from cumulant.optim.accelerated_proximal_gradient import AcceleratedProximalGradient
from cumulant.optim.block_sampling import (
    BlockSampler,
    GapImportanceSampler,
    GapSampler,
    ImportanceSampler,
    MaxGapSampler,
    ResidualSampler,
    SamplerState,
    UniformSampler,
)
from cumulant.optim.checkpoint import Checkpoint
from cumulant.optim.composite import Composite, lambda_max
from cumulant.optim.conjugate_gradient import ConjugateGradient
from cumulant.optim.dual_coordinate_ascent import DualCoordinateAscent, conditions_of
from cumulant.optim.dual_problem import DualProblem, certify_duality, dual_value, primal_point
from cumulant.optim.finite_sum import FiniteSum
from cumulant.optim.flows import equivalent_entropy, mirror_flow, reparametrised_flow
from cumulant.optim.gradient_descent import GradientDescent
from cumulant.optim.heavy_ball import HeavyBall
from cumulant.optim.implicit_bias import implicit_bias, small_start_limit
from cumulant.optim.lasso import lasso, lasso_path, soft_threshold
from cumulant.optim.lbfgs import LBFGS
from cumulant.optim.likelihoods import CumulantEntropy, NegativeLogLikelihood, SampleLikelihood
from cumulant.optim.line_search import Armijo, ExactLineSearch
from cumulant.optim.margin_losses import LogisticLoss, SmoothedHingeLoss, SquaredHingeLoss
from cumulant.optim.margin_problems import Logistic, MarginLoss
from cumulant.optim.mirror_descent import MirrorDescent, relative_constants
from cumulant.optim.multinomial import MultinomialLogistic
from cumulant.optim.nesterov_flow import nesterov_flow
from cumulant.optim.newton import Newton
from cumulant.optim.optimality import certify_optimality
from cumulant.optim.pca import PrincipalAxes, level_axes, pca
from cumulant.optim.penalties import L1, Box, ElasticNet, GroupLasso, L1Ball, L2Ball, NonNegative, Simplex
from cumulant.optim.preconditioned_gradient import PreconditionedGradient
from cumulant.optim.problems import LeastSquares, Objective, Quadratic
from cumulant.optim.protocol import Problem, Solver
from cumulant.optim.proximal_gradient import ProximalGradient
from cumulant.optim.result import Result, Snapshot
from cumulant.optim.ridge import RidgeSolution, pinv_solution, ridge, ridge_path
from cumulant.optim.run import run
from cumulant.optim.schedules import Constant, InverseCount, InverseSqrt, InverseTime
from cumulant.optim.separability import is_separable, separating_direction
from cumulant.optim.stochastic_gradient import SGA, SGD
from cumulant.optim.stochastic_mirror_descent import StochasticMirrorDescent
from cumulant.optim.trace import Trace
from cumulant.optim.variance_reduced import SAG, SAGA, SVRG
from cumulant.optim.verification import Verification, verify

__all__ = [
    "L1",
    "LBFGS",
    "SAG",
    "SAGA",
    "SGA",
    "SGD",
    "SVRG",
    "AcceleratedGradient",
    "AcceleratedProximalGradient",
    "Armijo",
    "BlockSampler",
    "Box",
    "Checkpoint",
    "Composite",
    "ConjugateGradient",
    "Constant",
    "CumulantEntropy",
    "DualCoordinateAscent",
    "DualProblem",
    "ElasticNet",
    "ExactLineSearch",
    "FiniteSum",
    "GapImportanceSampler",
    "GapSampler",
    "GradientDescent",
    "GroupLasso",
    "HeavyBall",
    "ImportanceSampler",
    "InverseCount",
    "InverseSqrt",
    "InverseTime",
    "L1Ball",
    "L2Ball",
    "LeastSquares",
    "Logistic",
    "LogisticLoss",
    "MarginLoss",
    "MaxGapSampler",
    "MirrorDescent",
    "MultinomialLogistic",
    "NegativeLogLikelihood",
    "Newton",
    "NonNegative",
    "Objective",
    "PreconditionedGradient",
    "PrincipalAxes",
    "Problem",
    "ProximalGradient",
    "Quadratic",
    "ResidualSampler",
    "Result",
    "RidgeSolution",
    "SampleLikelihood",
    "SamplerState",
    "Simplex",
    "SmoothedHingeLoss",
    "Snapshot",
    "Solver",
    "SquaredHingeLoss",
    "StochasticMirrorDescent",
    "Trace",
    "UniformSampler",
    "Verification",
    "certify_duality",
    "certify_optimality",
    "conditions_of",
    "dual_value",
    "equivalent_entropy",
    "flows",
    "implicit_bias",
    "interior_point",
    "is_separable",
    "lambda_max",
    "lasso",
    "lasso_path",
    "level_axes",
    "mirror_flow",
    "nesterov_flow",
    "pca",
    "pinv_solution",
    "primal_point",
    "rates",
    "relative_constants",
    "reparametrised_flow",
    "ridge",
    "ridge_path",
    "run",
    "schedules",
    "separating_direction",
    "small_start_limit",
    "soft_threshold",
    "verify",
]
