"""First-order optimisation with certificates: problems, solvers, one `run` loop, schedules, rates.

`optim.run(solver, problem, x0)` runs any solver on any problem it can handle and returns the answer together with a
bound on how far it can be from the optimum.
"""

from cumulant.optim import gradients, interior_point, rates, schedules
from cumulant.optim.analysis import flows
from cumulant.optim.analysis.flows import equivalent_entropy, mirror_flow, nesterov_flow, reparametrised_flow
from cumulant.optim.analysis.implicit_bias import implicit_bias, small_start_limit
from cumulant.optim.analysis.lasso import lasso, lasso_path, penalised_path, soft_threshold
from cumulant.optim.analysis.pca import PrincipalAxes, level_axes, pca
from cumulant.optim.analysis.ridge import RidgeSolution, pinv_solution, ridge, ridge_path
from cumulant.optim.analysis.separability import is_separable, separating_direction
from cumulant.optim.certify.mirror_descent import relative_constants
from cumulant.optim.certify.optimality import certify_optimality
from cumulant.optim.driver.checkpoints import Checkpoint
from cumulant.optim.driver.early_stopping import EarlyStopping
from cumulant.optim.driver.interruption import InterruptedWarning
from cumulant.optim.driver.rate_comparison import RateComparison, compare_with_rate
from cumulant.optim.driver.result import Result, Snapshot
from cumulant.optim.driver.run import run
from cumulant.optim.driver.solve import SolveInfo, solve
from cumulant.optim.driver.trace import Trace
from cumulant.optim.finite_sums.block_sampling import (
    BlockSampler,
    GapImportanceSampler,
    GapSampler,
    ImportanceSampler,
    MaxGapSampler,
    ResidualSampler,
    SamplerState,
    UniformSampler,
)
from cumulant.optim.finite_sums.dual_coordinate_ascent import DualCoordinateAscent, conditions_of
from cumulant.optim.finite_sums.dual_problem import DualProblem, certify_duality, dual_value, primal_point
from cumulant.optim.finite_sums.finite_sum import FiniteSum
from cumulant.optim.finite_sums.stochastic_gradient import SGA, SGD
from cumulant.optim.finite_sums.variance_reduced import SAG, SAGA, SVRG
from cumulant.optim.problems.composite import Composite, lambda_max
from cumulant.optim.problems.expectation import Expectation
from cumulant.optim.problems.least_squares import LeastSquares
from cumulant.optim.problems.likelihoods import CumulantEntropy, NegativeLogLikelihood, SampleLikelihood
from cumulant.optim.problems.margin_losses import LogisticLoss, SmoothedHingeLoss, SquaredHingeLoss
from cumulant.optim.problems.margin_problems import Logistic, MarginLoss
from cumulant.optim.problems.multinomial import MultinomialLogistic
from cumulant.optim.problems.objective import Objective
from cumulant.optim.problems.penalties import L1, Box, ElasticNet, GroupLasso, L1Ball, L2Ball, NonNegative, Simplex
from cumulant.optim.problems.proximal_map import ProximalMap
from cumulant.optim.problems.quadratic import Quadratic
from cumulant.optim.protocol import Problem, Solver
from cumulant.optim.schedules import Constant, InverseCount, InverseSqrt, InverseTime
from cumulant.optim.solvers.accelerated_gradient import AcceleratedGradient, AcceleratedProximalGradient
from cumulant.optim.solvers.conjugate_gradient import ConjugateGradient
from cumulant.optim.solvers.gradient_descent import GradientDescent
from cumulant.optim.solvers.heavy_ball import HeavyBall
from cumulant.optim.solvers.lbfgs import LBFGS
from cumulant.optim.solvers.line_search import Armijo, Backtracking, ExactLineSearch
from cumulant.optim.solvers.mirror_descent import MirrorDescent
from cumulant.optim.solvers.newton import Newton
from cumulant.optim.solvers.preconditioned_gradient import PreconditionedGradient
from cumulant.optim.solvers.proximal_gradient import ProximalGradient
from cumulant.optim.solvers.robbins_monro import RobbinsMonro
from cumulant.optim.solvers.stochastic_mirror_descent import StochasticMirrorDescent

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
    "Backtracking",
    "BlockSampler",
    "Box",
    "Checkpoint",
    "Composite",
    "ConjugateGradient",
    "Constant",
    "CumulantEntropy",
    "DualCoordinateAscent",
    "DualProblem",
    "EarlyStopping",
    "ElasticNet",
    "ExactLineSearch",
    "Expectation",
    "FiniteSum",
    "GapImportanceSampler",
    "GapSampler",
    "GradientDescent",
    "GroupLasso",
    "HeavyBall",
    "ImportanceSampler",
    "InterruptedWarning",
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
    "ProximalMap",
    "Quadratic",
    "RateComparison",
    "ResidualSampler",
    "Result",
    "RidgeSolution",
    "RobbinsMonro",
    "SampleLikelihood",
    "SamplerState",
    "Simplex",
    "SmoothedHingeLoss",
    "Snapshot",
    "SolveInfo",
    "Solver",
    "SquaredHingeLoss",
    "StochasticMirrorDescent",
    "Trace",
    "UniformSampler",
    "certify_duality",
    "certify_optimality",
    "compare_with_rate",
    "conditions_of",
    "dual_value",
    "equivalent_entropy",
    "flows",
    "gradients",
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
    "penalised_path",
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
    "solve",
]
