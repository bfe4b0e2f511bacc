"""First-order optimisation with certificates: problems, solvers, one `run` loop, schedules, rates.

`optim.run(solver, problem, x0)` runs any solver on any problem it can handle and returns the answer together with a
bound on how far it can be from the optimum.
"""

from cumulant.optim import flows, rates, schedules
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
from cumulant.optim.flows import equivalent_entropy, mirror_flow, reparametrised_flow
from cumulant.optim.gradient_descent import GradientDescent
from cumulant.optim.implicit_bias import implicit_bias, small_start_limit
from cumulant.optim.likelihoods import CumulantEntropy, NegativeLogLikelihood, SampleLikelihood
from cumulant.optim.line_search import Armijo, ExactLineSearch
from cumulant.optim.mirror_descent import MirrorDescent
from cumulant.optim.problems import LeastSquares, Objective, Quadratic
from cumulant.optim.protocol import Problem, Solver
from cumulant.optim.result import Result, Snapshot
from cumulant.optim.run import run
from cumulant.optim.schedules import Constant, InverseCount, InverseSqrt, InverseTime
from cumulant.optim.stochastic_mirror_descent import StochasticMirrorDescent
from cumulant.optim.trace import Trace
from cumulant.optim.verification import Verification, verify

__all__ = [
    "Armijo",
    "BlockSampler",
    "Checkpoint",
    "Constant",
    "CumulantEntropy",
    "ExactLineSearch",
    "GapImportanceSampler",
    "GapSampler",
    "GradientDescent",
    "ImportanceSampler",
    "InverseCount",
    "InverseSqrt",
    "InverseTime",
    "LeastSquares",
    "MaxGapSampler",
    "MirrorDescent",
    "NegativeLogLikelihood",
    "Objective",
    "Problem",
    "Quadratic",
    "ResidualSampler",
    "Result",
    "SampleLikelihood",
    "SamplerState",
    "Snapshot",
    "Solver",
    "StochasticMirrorDescent",
    "Trace",
    "UniformSampler",
    "Verification",
    "equivalent_entropy",
    "flows",
    "implicit_bias",
    "mirror_flow",
    "rates",
    "reparametrised_flow",
    "run",
    "schedules",
    "small_start_limit",
    "verify",
]
