"""Differentiable layers on JAX: fixed points, minimisers, optimal transport, flows, a network with one hidden layer.

What is computed by an iteration is differentiated by a theorem rather than through the iteration, and where a theorem
bounds the distance to the exact answer, there is a certificate.
"""

from cumulant.layers.approximation import (
    StepNetwork,
    StepTarget,
    barron_bound,
    barron_constant,
    certify_step_network,
    gaussian_barron_constant,
    step_network,
)
from cumulant.layers.argmin import ArgminProblem, argmin, certify_argmin, envelope
from cumulant.layers.chain import backpropagation, chain_jacobian, feed_forward, multiply_chain
from cumulant.layers.checkpoints import CheckpointCost, binomial_steps, checkpoint_cost
from cumulant.layers.cost import DerivativeCost, Operations, chain_cost, derivative_cost, operations
from cumulant.layers.fixed_point import FixedPointProblem, certify_fixed_point, fixed_point
from cumulant.layers.kantorovich import kantorovich_radius
from cumulant.layers.leapfrog import leapfrog, leapfrog_back
from cumulant.layers.network import OneHiddenLayer, VariableProjection
from cumulant.layers.neural_ode import neural_ode
from cumulant.layers.recurrent import recurrent
from cumulant.layers.sinkhorn import Sinkhorn, sinkhorn
from cumulant.layers.sinkhorn_unrolled import sinkhorn_unrolled
from cumulant.layers.transport_bounds import (
    TransportProblem,
    certify_entropic_transport,
    certify_transport,
    round_plan,
)

__all__ = [
    "ArgminProblem",
    "CheckpointCost",
    "DerivativeCost",
    "FixedPointProblem",
    "OneHiddenLayer",
    "Operations",
    "Sinkhorn",
    "StepNetwork",
    "StepTarget",
    "TransportProblem",
    "VariableProjection",
    "argmin",
    "backpropagation",
    "barron_bound",
    "barron_constant",
    "binomial_steps",
    "certify_argmin",
    "certify_entropic_transport",
    "certify_fixed_point",
    "certify_step_network",
    "certify_transport",
    "chain_cost",
    "chain_jacobian",
    "checkpoint_cost",
    "derivative_cost",
    "envelope",
    "feed_forward",
    "fixed_point",
    "gaussian_barron_constant",
    "kantorovich_radius",
    "leapfrog",
    "leapfrog_back",
    "multiply_chain",
    "neural_ode",
    "operations",
    "recurrent",
    "round_plan",
    "sinkhorn",
    "sinkhorn_unrolled",
    "step_network",
]
