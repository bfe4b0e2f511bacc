"""What the gradient methods on the primal objective of chains share.

All of them minimise ``P(w) = l2/2 |w|^2 + (1/n) sum_i phi_i(w)`` of a `ChainProblem` without an l1 penalty. A step is
an epoch: ``n`` updates, each of one sequence (one of all, for gradient descent). Their certificate is
``P(w) - P* <= |grad P(w)|^2 / (2 l2)``, which takes one pass over the data and knows nothing of the run.

Every trace has the columns ``updates`` (of the weights), ``oracle_calls`` (sequences whose marginals or log-partition
function were computed) and ``line_search_evaluations`` (those among them that a line search asked for). Passes made to
measure are not counted.
"""

from typing import Any, ClassVar

import numpy as np

from cumulant.certificates import Certificate
from cumulant.optim.protocol import Solver
from cumulant.sequences.certify import certify_weights
from cumulant.sequences.chain.problem import ChainProblem


class PrimalSolver(Solver):
    """What the methods share: where the weights are, what is measured there, and the certificate."""

    backend: ClassVar[str] = "host"

    def measure(self, problem: ChainProblem, state: Any) -> dict[str, float]:
        """The objective, the bound on its distance to the minimum, and the work so far."""
        value, gradient = problem.value_and_gradient(self.solution(problem, state))
        return measured(problem, value, gradient, state)

    def certify(self, problem: ChainProblem, state: Any) -> Certificate:
        """``P(w) - P* <= |grad P(w)|^2 / (2 l2)``."""
        return certify_weights(problem, self.solution(problem, state))


def measured(problem: ChainProblem, value: float, gradient: np.ndarray, state: Any) -> dict[str, float]:
    """What every trace has."""
    return {
        "value": value,
        "bound": float(np.vdot(gradient, gradient)) / (2 * problem.strong_convexity),
        "updates": float(state.updates),
        "oracle_calls": float(state.counters[0]),
        "line_search_evaluations": float(state.counters[1]),
    }


def start(problem: Any, x0: Any) -> np.ndarray:
    """The weights `x0`, as an array of their own."""
    if problem.l1:
        raise ValueError("gradient methods need a differentiable objective: l1 must be 0")
    return np.array(x0, dtype=np.float64).reshape(problem.shape)


def memory_of_labels(problem: ChainProblem) -> tuple[np.ndarray, np.ndarray]:
    """Nodes ``(N, K)`` and counts of transitions ``(n, K, K)`` of the labels: stored gradients that are zero."""
    labels, k = problem.labels, problem.n_labels
    nodes, counts = np.zeros((len(labels), k)), np.zeros((problem.n_terms, k, k))
    nodes[np.arange(len(labels)), labels] = 1.0
    sequence = np.repeat(np.arange(problem.n_terms), problem.data.lengths)
    left = np.flatnonzero(sequence[:-1] == sequence[1:])
    np.add.at(counts, (sequence[left], labels[left], labels[left + 1]), 1.0)
    return nodes, counts
