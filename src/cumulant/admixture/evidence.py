"""The evidence ``log p(w)`` by annealed importance sampling from the prior, which chooses the number of components."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumulant import checks, particles, randomness
from cumulant.admixture.mean_field import mean_field
from cumulant.admixture.model import AdmixtureModel, Counts, Parameters
from cumulant.particles import ParticleResult, Population, Start, Step


@dataclasses.dataclass(frozen=True, eq=False)
class EvidenceBridge:
    """From the prior to the posterior of an admixture: ``phi_k = k / K``, ``gamma = 0``, ``eta = eta*``.

    A particle is the counts of its components. Weights integrate frequencies and memberships out: they are ratios of
    ``f(z; theta_k) = prod_k B(A_k)``. Each step moves every particle by `n_sweeps` sweeps of two-stage Gibbs,
    with `exchange` as in `AdmixtureModel.sweep`.
    """

    model: AdmixtureModel
    n_temperatures: int
    n_sweeps: int = 1
    exchange: bool = True
    n_jobs: int | None = None
    fixed: bool = dataclasses.field(default=True, init=False)

    def __post_init__(self):
        checks.whole("n_temperatures", self.n_temperatures)
        checks.whole("n_sweeps", self.n_sweeps)
        checks.instance("exchange", self.exchange, bool, "True or False")

    @property
    def exact(self) -> bool:
        """Whether all particles weigh the same: those of a single component."""
        return self.model.n_components == 1

    @property
    def magnitude(self) -> float:
        """Of the log-gammas whose differences are weights."""
        return self.model.magnitude

    def theta(self, step: int) -> Parameters:
        """The distribution of a step."""
        return Parameters(self.model.allele_prior, step / self.n_temperatures, 0.0)

    def begin(self, n: int, seed: int) -> Start:
        """Draws of the prior, whose normaliser is one."""
        return Start(self.model.draw_exactly(n, self.theta(0), seed, self.n_jobs)[0], 0.0)

    def advance(self, population: Population) -> Step:
        """The next power of the likelihood."""
        words, k = population.x.words, population.step
        new, old = (self.model.log_marginal(words, self.theta(at)) for at in (k, k - 1))
        return Step(population.x, new - old, k == self.n_temperatures)

    def move(self, population: Population) -> Counts:
        """Sweeps of two-stage Gibbs at the current power."""
        at = 1 + (population.step - 1) * self.n_sweeps
        theta = self.theta(population.step)
        return self.model.sweep(
            population.x, theta, self.n_sweeps, population.seed, at, exchange=self.exchange, n_jobs=self.n_jobs
        )[0]

    def kinds(self, population: Population) -> dict[str, float]:
        """None besides the product of mean weights."""
        return {}

    def draws(self, x: Counts) -> np.ndarray:
        """How many tokens of each document each component has: (n, D, K)."""
        return x.documents


def annealed_evidence(
    model: AdmixtureModel,
    n_particles: int = 100,
    n_temperatures: int = 500,
    *,
    n_sweeps: int = 1,
    exchange: bool = True,
    n_islands: int = 1,
    rng: Any = None,
    progress: Any = False,
    time_limit: float | None = None,
    n_jobs: int | None = None,
) -> ParticleResult:
    """Estimate ``log p(w)`` with its error and a certified lower bound, by annealing particles from the prior.

    ``exp(log_partition())`` is unbiased for ``p(w)``, whatever the settings; the error falls with `n_temperatures` and
    `n_particles`. A step is `n_sweeps` sweeps of two-stage Gibbs; with `exchange` they also propose to exchange two
    components in a whole document, without which far more temperatures are needed. The draws are weighted
    counts of components ``(n, D, K)``.

    Neal (2001), "Annealed importance sampling".

    Examples
    --------
    >>> from cumulant.admixture import Corpus
    >>> model = AdmixtureModel(Corpus.from_counts([[2, 1, 0], [0, 1, 2]]), 2, 0.7, 0.5)
    >>> result = annealed_evidence(model, 1000, 50, rng=0)
    >>> bool(abs(result.log_partition() + 7.584500) < 4 * result.log_partition_error)
    True
    """
    checks.instance("model", model, AdmixtureModel, "an AdmixtureModel")
    return particles.run(
        EvidenceBridge(model, n_temperatures, n_sweeps, exchange, n_jobs), n_particles, n_islands=n_islands,
        method="annealed evidence", total=n_temperatures, rng=rng, progress=progress, time_limit=time_limit,
        n_jobs=n_jobs,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class ComponentChoice:
    """The evidence of each number of components.

    Attributes
    ----------
    n_components : tuple of int
    log_evidence, error : array
        Estimates of ``log p(w)`` and their standard errors, by `evidence_error`.
    bound : array
        Certified lower bounds on ``log p(w)`` by mean field. An estimate below its bound is too low.
    results : tuple of ParticleResult
    """

    n_components: tuple[int, ...]
    log_evidence: np.ndarray
    error: np.ndarray
    bound: np.ndarray
    results: tuple[ParticleResult, ...]

    @property
    def best(self) -> int:
        """The number of components with the largest estimate."""
        return self.n_components[int(np.argmax(self.log_evidence))]

    @property
    def probability(self) -> np.ndarray:
        """Of each number of components, if all were equally probable before; errors of the estimates are not in it."""
        weights = np.exp(self.log_evidence - self.log_evidence.max())
        return weights / weights.sum()

    @property
    def decided(self) -> bool:
        """Whether the best is ahead of every other by more than two standard errors of the difference, and no estimate
        is below its certified bound.
        """
        top = int(np.argmax(self.log_evidence))
        others = np.arange(self.log_evidence.size) != top
        gaps = self.log_evidence[top] - self.log_evidence[others]
        clear = np.all(gaps > 2 * np.hypot(self.error[top], self.error[others]))
        return bool(clear and (self.log_evidence >= self.bound).all())

    def __str__(self):
        lines = ["    K      log p(w)     error  certified above"]
        table = zip(self.n_components, self.log_evidence, self.error, self.bound, strict=True)
        for k, value, error, bound in table:
            mark = "  <- largest" if k == self.best else ""
            lines.append(f"{k:5d}  {value:12.2f}  {error:8.2g}  {bound:15.2f}{mark}")
        low = [k for k, below in zip(self.n_components, self.log_evidence < self.bound, strict=True) if below]
        if low:
            lines.append(f"Estimates below their certified bounds, at K = {low}, are too low: use more temperatures.")
        elif not self.decided:
            lines.append("The errors are too large to tell the best from the next: use more temperatures.")
        if self.best == max(self.n_components) > min(self.n_components):
            lines.append(f"K = {self.best} is the largest number that was compared: larger ones may be better.")
        return "\n".join(lines)


def choose_components(
    data: Any,
    n_components: Sequence[int],
    *,
    membership_prior: float = 0.1,
    allele_prior: float = 0.1,
    n_particles: int = 50,
    n_temperatures: int = 500,
    n_islands: int = 2,
    rng: Any = None,
    n_jobs: int | None = None,
) -> ComponentChoice:
    """The evidence of several numbers of components, each by `annealed_evidence`.

    Parameters
    ----------
    data : Corpus, Genotypes, or array
        As in `Admixture.fit`.
    n_components : sequence of int
        The numbers to compare.
    n_islands : int
        Independent populations of each: two that disagree show an error that a single one cannot see.

    Examples
    --------
    >>> choice = choose_components([[9, 1, 0], [0, 1, 9], [8, 2, 0]], (1, 2), n_temperatures=50, rng=0)
    >>> choice.best
    2
    """
    from cumulant.admixture.genotypes import as_corpus

    corpus, seed = as_corpus("data", data)[0], randomness.seed(rng)
    several = checks.array("n_components", n_components)
    if several.ndim != 1 or several.size == 0:
        raise ValueError(f"n_components must be the numbers to compare, such as (1, 2, 3); got {n_components!r:.80}")
    numbers = tuple(checks.whole("a number in n_components", k) for k in several.tolist())
    checks.whole("n_islands", n_islands, 2)
    models = [AdmixtureModel(corpus, k, membership_prior, allele_prior) for k in numbers]
    results = tuple(
        annealed_evidence(model, n_particles, n_temperatures, n_islands=n_islands, rng=seed, n_jobs=n_jobs)
        for model in models
    )
    return ComponentChoice(
        numbers,
        np.array([each.log_partition() for each in results]),
        np.array([evidence_error(each) for each in results]),
        np.array([mean_field(each, n_starts=4, rng=seed).elbo for each in models]),
        results,
    )


def evidence_error(result: ParticleResult) -> float:
    """The standard error of ``log p(w)``: from the genealogies of the particles, or from the spread of the logarithms
    of the islands where that is larger. Errors of ``p(w)`` itself cannot show that islands are many nats apart.
    """
    logs = np.array([each.log_z for each in result.outcomes])
    if logs.size == 1:
        return result.log_partition_error
    known = [result.log_partition_error, float(logs.std(ddof=1) / np.sqrt(logs.size))]
    return max(each for each in known if np.isfinite(each))
