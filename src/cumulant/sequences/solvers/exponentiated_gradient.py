"""On-line exponentiated gradient ascent on the dual of chains."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cumulant import randomness
from cumulant.certificates import Certificate, Subject
from cumulant.optim.protocol import Solver
from cumulant.sequences.certify import certify_gap
from cumulant.sequences.chain.problem import ChainMarginals, ChainProblem
from cumulant.sequences.solvers.exponentiated_gradient_kernels import exponentiated_epoch, lay_out


class ExponentiatedGradientState(NamedTuple):
    """The weights, the log-potentials of each sequence, and the marginals, entropies and steps that go with them."""

    x: np.ndarray
    potentials: np.ndarray
    pair_potentials: np.ndarray
    nodes: np.ndarray
    counts: np.ndarray
    entropies: np.ndarray
    steps: np.ndarray
    counters: np.ndarray
    sweep: int
    updates: int
    seed: int


@dataclass(frozen=True)
class SequenceExponentiatedGradient(Solver):
    """On-line exponentiated gradient (Collins, Globerson, Koo, Carreras, Bartlett 2008) for `ChainProblem`.

    The dual block of a sequence moves to ``alpha_i^(1 - eta) p(. | x_i; w)^eta``, normalised: exponentiated gradient
    ascent on ``n D`` with step ``eta``, and a mixture of the log-potentials of the block with the scores of the
    weights. The step of each sequence is halved until the dual does not fall, at one oracle call a trial, and raised by
    a twentieth after (to one at most). The certificate is the duality gap.

    Blocks start from potentials on the labels of single nodes only. Then all pairs of a sequence share one matrix of
    log-potentials for ever, and what is stored are ``16 K (N + n K)`` bytes rather than ``16 K^2 N``; certifying lays
    out the marginals of all pairs, ``8 K^2 (N - n)`` bytes.

    Parameters
    ----------
    step_size : float
        The first step of every sequence.
    potential : float
        What the right label of each node has more than the others, to begin with: labels have a probability of
        ``1 / (1 + (K - 1) exp(-potential))``.

    Examples
    --------
    >>> from cumulant import optim
    >>> from cumulant.sequences import ChainProblem, SequenceData
    >>> data = SequenceData([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 2, 3], [0, 1, 0])
    >>> result = optim.run(SequenceExponentiatedGradient(), ChainProblem(data, 2), np.zeros((7, 2)), tol=1e-10, rng=0)
    >>> result.status, round(result.value, 6)
    ('converged', 0.578004)
    """

    step_size: float = 0.5
    potential: float = 10.0

    backend: ClassVar[str] = "host"

    def __post_init__(self):
        if not 0 < self.step_size <= 1:
            raise ValueError(f"step_size must be positive and at most 1; got {self.step_size!r}")
        if not (np.isfinite(self.potential) and self.potential >= 0):
            raise ValueError(f"potential must be finite and not negative; got {self.potential!r}")

    def init(self, problem: ChainProblem, x0: Any, rng: Any) -> ExponentiatedGradientState:
        """Distributions near the labels. The starting weights `x0` are not used: they follow from the marginals."""
        if problem.l1:
            raise ValueError("exponentiated gradient needs a differentiable objective: l1 must be 0")
        labels, n, k = problem.labels, problem.n_terms, problem.n_labels
        potentials, pair_potentials = np.zeros((len(labels), k)), np.zeros((n, k, k))
        potentials[np.arange(len(labels)), labels] = self.potential
        nodes, counts, entropies = np.empty_like(potentials), np.empty_like(pair_potentials), np.empty(n)
        lay_out(potentials, pair_potentials, problem.data.offsets, nodes, np.empty((0, k, k)), counts, entropies)
        residual = problem.gold - problem._gathered((nodes, counts.sum(axis=0))) / n
        return ExponentiatedGradientState(
            residual / problem.l2, potentials, pair_potentials, nodes, counts, entropies, np.full(n, self.step_size),
            np.zeros(2), 0, 0, randomness.seed(rng),
        )  # fmt: skip

    def step(self, problem: ChainProblem, state: ExponentiatedGradientState) -> ExponentiatedGradientState:
        """One epoch."""
        starts, _, place = problem.attributes_of_sequences
        exponentiated_epoch(
            state.x, problem.bias, *problem.tokens, problem.data.offsets, starts, place, *state[1:7], problem.scale,
            problem.n_terms, state.seed, state.sweep, state.counters,
        )  # fmt: skip
        return state._replace(sweep=state.sweep + 1, updates=state.updates + problem.n_terms)

    def solution(self, problem: ChainProblem, state: ExponentiatedGradientState) -> np.ndarray:
        """The weights."""
        return state.x

    def measure(self, problem: ChainProblem, state: ExponentiatedGradientState) -> dict[str, float]:
        """The two objectives and the gap, with the entropies that are kept: the certificate computes them anew."""
        primal = problem.value(state.x)
        dual = float(np.mean(state.entropies) - 0.5 * problem.l2 * np.vdot(state.x, state.x))
        return {
            "value": primal,
            "bound": max(primal - dual, 0.0),
            "dual": dual,
            "updates": float(state.updates),
            "oracle_calls": float(state.counters[0]),
            "line_search_evaluations": float(state.counters[1]),
        }

    def marginals(self, problem: ChainProblem, state: ExponentiatedGradientState) -> ChainMarginals:
        """The marginals of all nodes and pairs, from the potentials."""
        k = problem.n_labels
        nodes, counts, entropies = np.empty_like(state.nodes), np.empty_like(state.counts), np.empty(problem.n_terms)
        pairs = np.empty((len(problem.labels) - problem.n_terms, k, k))
        lay_out(state.potentials, state.pair_potentials, problem.data.offsets, nodes, pairs, counts, entropies)
        return ChainMarginals(nodes, pairs)

    def certify(self, problem: ChainProblem, state: ExponentiatedGradientState) -> Certificate:
        """``P(w) - P* <= P(w) - D(mu)``."""
        return certify_gap(*self.subject(problem, state))

    def subject(self, problem: ChainProblem, state: ExponentiatedGradientState) -> Subject:
        """The problem; the weights and the marginals."""
        return Subject(problem, (state.x, self.marginals(problem, state)))
