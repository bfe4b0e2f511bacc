"""Variational sequential Monte Carlo of an admixture: particles that choose their path in the family of the model."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from cumulant import checks, particles
from cumulant.admixture.model import AdmixtureModel, Counts, Logs, Parameters
from cumulant.particles import TwoBlockFamily

_START = 0.1  # phi, gamma and eta of the first distribution
_GROWTH = 0.5  # the variance of the weights may double in a step; 0.95, as published, ends far from the posterior


class AdmixtureFamily(TwoBlockFamily):
    """The family of an `AdmixtureModel` with ``theta = (eta, phi, gamma)``, none of them negative.

    ``x_A`` are counts of components (`Counts`), ``x_B`` logarithms of frequencies and memberships (`Logs`). The start
    has ``eta = phi = gamma = 0.1``, where words say nothing about components; the target is the posterior. A move is a
    sweep of two-stage Gibbs, with `exchange` as in `AdmixtureModel.sweep`.

    Normalisers are those of the family over the constant of the priors (`AdmixtureModel.log_constant`): at the target
    that is ``p(w)``.

    Carbonetto (2009), equation 3.101.
    """

    def __init__(self, model: AdmixtureModel, exchange: bool = True, n_jobs: int | None = None):
        self.model = checks.instance("model", model, AdmixtureModel, "an AdmixtureModel")
        self.exchange, self.n_jobs = checks.instance("exchange", exchange, bool, "True or False"), n_jobs
        self.exact, self.magnitude = model.n_components == 1, model.magnitude
        size = model.n_components * model.corpus.n_words
        self.target = np.concatenate([np.full(size, float(model.allele_prior)), [1.0, 0.0]])
        self.start = np.full(size + 2, _START)
        self.lower = np.zeros(size + 2)
        self.log_partition_at_start = model.log_normaliser(self.parameters(self.start)) - model.log_constant

    def parameters(self, theta: np.ndarray) -> Parameters:
        """The parameter as arrays of the model."""
        shape = (self.model.n_components, self.model.corpus.n_words)
        return Parameters(np.asarray(theta[:-2]).reshape(shape), float(theta[-2]), float(theta[-1]))

    def begin(self, n: int, rng: np.random.Generator) -> tuple[Counts, Logs]:
        """Exact draws of the start."""
        return self.model.draw_exactly(n, self.parameters(self.start), _seed(rng), self.n_jobs)

    def statistics(self, x_A: Counts, x_B: Logs) -> np.ndarray:
        """``log beta``, ``sum m log beta`` and ``sum (c - m) log beta``."""
        return _flat(self.model._statistics(x_A.words, x_B.frequencies))

    def log_block(self, x_A: Any, theta: Any) -> Any:
        """``sum_kl log B(A_kl)``."""
        model = self.model
        eta = theta[:-2].reshape(model.n_components, -1)
        shapes = eta + (theta[-2] - theta[-1]) * x_A.words + theta[-1] * model.totals
        totals = jnp.add.reduceat(shapes, model.corpus.locus_starts[:-1], axis=-1)
        return gammaln(shapes).sum(axis=(-1, -2)) - gammaln(totals).sum(axis=(-1, -2))

    def block_values(self, x_A: Counts, theta: np.ndarray) -> np.ndarray:
        """`log_block` in NumPy."""
        return self.model.log_marginal(x_A.words, self.parameters(theta))

    def block_means(self, x_A: Counts, theta: np.ndarray) -> np.ndarray:
        """Digammas."""
        return _flat(self.model.moments(x_A.words, self.parameters(theta)))

    def block_products(self, x_A: Counts, theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Trigammas, by as many operations as there are parameters."""
        return _flat(self.model.covariance_product(x_A.words, self.parameters(theta), self.parameters(vector)))

    def sample_B(self, x_A: Counts, theta: np.ndarray, rng: np.random.Generator) -> Logs:
        """Dirichlet distributions."""
        return self.model.draw_parameters(x_A, self.parameters(theta), _seed(rng), 0, self.n_jobs)

    def sample_A(self, x_B: Logs, theta: np.ndarray, rng: np.random.Generator) -> Counts:
        """The component of every token."""
        return self.model.draw_counts(x_B, self.parameters(theta), _seed(rng), 0, self.n_jobs)

    def move(self, x: tuple[Counts, Logs], theta: np.ndarray, rng: np.random.Generator) -> tuple[Counts, Logs]:
        """A sweep over both blocks, which begins with ``x_B``."""
        return self.model.sweep(
            x[0], self.parameters(theta), 1, _seed(rng), 0, exchange=self.exchange, n_jobs=self.n_jobs
        )

    def draws(self, x_A: Counts, x_B: Logs) -> np.ndarray:
        """Memberships ``(n, D, K)``."""
        return np.exp(x_B.memberships)


def variational_evidence(
    model: AdmixtureModel,
    n_particles: int = 100,
    n_steps: int = 500,
    *,
    finish: int | None = None,
    safeguard: particles.Safeguard | str = "exact",
    exchange: bool = True,
    curvature: str = "bfgs",
    pilot: bool = False,
    n_islands: int = 1,
    rng: Any = None,
    progress: Any = False,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Run `particles.variational_smc` on the family of an admixture: steps at most ``(1 + k)^-0.6``, gradients with
    frequencies integrated out, interior-point directions that keep every parameter positive.

    The particles have the distribution at the last parameter, a flattened posterior, unless `finish` steps lead them to
    the target: ``log_partition`` of the result then estimates ``log p(w)``, as that of `annealed_evidence` does, and
    without `finish` a lower bound on it. It is biased, unless a `pilot` chooses the path.

    Moves exchange components in whole documents (`exchange`), and the variance of the weights may double in a step.
    Without exchanges the particles stay in the modes they met first. ``Safeguard("joint-quadratic", variance=0.95)``
    and ``exchange=False`` is the method as published. With ``curvature="none"`` directions are those of steepest
    descent: better from about 500 steps on, worse with 100.

    Carbonetto (2009), section 3.5.1.

    Examples
    --------
    >>> from cumulant.admixture import Corpus
    >>> model = AdmixtureModel(Corpus.from_counts([[2, 1, 0], [0, 1, 2]]), 2, 0.7, 0.5)
    >>> result = variational_evidence(model, 500, 100, finish=20, rng=0)
    >>> bool(abs(result.log_partition() + 7.584500) < 0.1)
    True
    """
    with checks.about("safeguard"):
        rule = particles.Safeguard(safeguard, variance=_GROWTH) if isinstance(safeguard, str) else safeguard
    return particles.variational_smc(
        AdmixtureFamily(model, exchange, n_jobs), n_particles, n_steps, step_size=0.6, gradient="rb", finish=finish,
        safeguard=rule, curvature=curvature, pilot=pilot, n_islands=n_islands, rng=rng, progress=progress,
        time_limit=time_limit, n_jobs=n_jobs,
    )  # fmt: skip


def _flat(theta: Parameters) -> np.ndarray:
    n = len(theta.eta)
    return np.concatenate([theta.eta.reshape(n, -1), *(np.asarray(each).reshape(n, 1) for each in theta[1:])], axis=1)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
