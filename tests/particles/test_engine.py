"""The engine of particles on a bridge whose every distribution is known: normals with falling variance."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom

from cumulant import particles
from cumulant.errors import CumulantError


@dataclasses.dataclass(frozen=True)
class Narrowing:
    """``f_k = exp(-(1 + 3 k / K) x^2 / 2)`` with ``Z_0 = 1``: the last has ``Z = 1/2``."""

    steps: int = 20
    n_jobs: int | None = None
    fixed: bool = True

    def begin(self, n, seed):
        return particles.Start(np.random.default_rng([seed, 0, 0]).normal(size=(n, 1)), 0.0)

    def advance(self, population):
        increments = -1.5 / self.steps * population.x[:, 0] ** 2
        return particles.Step(population.x, increments, population.step == self.steps)

    def move(self, population):
        deviation = 1 / np.sqrt(1 + 3 * population.step / self.steps)
        noise = population.generator().normal(size=population.x.shape)
        return 0.8 * population.x + 0.6 * deviation * noise

    def kinds(self, population):
        return {}

    def draws(self, x):
        return x


@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("resampling", ["stratified", "systematic", "residual", "multinomial"])
def test_the_estimate_of_z_is_unbiased(threshold, resampling):
    settings = particles.Settings(50, resampling, threshold)
    found = np.exp([particles.run_population(Narrowing(), settings, seed).log_z for seed in range(500)])
    assert abs(found.mean() - 0.5) < 4 * found.std(ddof=1) / np.sqrt(found.size)


def test_the_error_of_one_run_is_that_of_many():
    results = [particles.run(Narrowing(), 200, rng=seed) for seed in range(500)]
    spread = np.std([result.log_partition() for result in results])
    claimed = np.sqrt(np.mean([result.log_partition_error**2 for result in results]))
    assert claimed == pytest.approx(spread, rel=0.1)
    inside = np.mean([-np.log(2) in result.interval(0.95) for result in results])
    assert 0.92 < inside < 0.98


def test_islands_do_not_depend_on_their_number_or_on_threads():
    many, few = (particles.run(Narrowing(), 100, n_islands=n, rng=3, n_jobs=jobs) for n, jobs in ((6, 2), (3, 1)))
    assert [each.log_z for each in many.outcomes[:3]] == [each.log_z for each in few.outcomes]
    assert many.draws.values.shape == (6, 100, 1)
    assert many.certificate is not None
    words = "draws, weights and moves of Narrowing are those of its path"  # which nothing here can check
    assert any(each.text == f"the {words}" and each.status == "assumed" for each in many.certificate.assumptions)
    fresh = many.certificate.verify(many.subject)
    assert fresh.lower <= -np.log(2)


def test_a_path_that_looks_at_its_particles_has_no_certificate():
    assert particles.run(Narrowing(fixed=False), 100, rng=0).certificate is None


def test_the_trace_has_the_variance_of_each_step():
    """The squared coefficient of variation of what weights are multiplied by, from first particles that are known."""
    result = particles.run(Narrowing(steps=1), 2000, rng=0)
    x = np.random.default_rng([result.outcomes[0].population.seed, 0, 0]).normal(size=2000)
    u = np.exp(-1.5 * x**2)
    assert result.trace["weight_variance"][0] == 0
    assert result.trace["weight_variance"][1] == pytest.approx(np.mean(u**2) / np.mean(u) ** 2 - 1, rel=1e-12)
    # In expectation 4 / sqrt(7) - 1, and less for more steps.
    assert result.trace["weight_variance"][1] == pytest.approx(4 / np.sqrt(7) - 1, rel=0.2)
    many = particles.run(Narrowing(steps=20), 2000, rng=0).trace["weight_variance"]
    assert many.shape == (21,)
    assert many.sum() < 0.2


@dataclasses.dataclass(frozen=True)
class Interval(Narrowing):
    """Uniform numbers, of which those below `share` are possible: ``Z = 1``."""

    share: float = 0.45

    def begin(self, n, seed):
        return particles.Start(np.random.default_rng([seed, 0, 0]).random((n, 1)), 0.0)

    def advance(self, population):
        possible = population.x[:, 0] < self.share
        return particles.Step(population.x, np.where(possible, -np.log(self.share), -np.inf), True)


def test_islands_without_a_possible_particle_count_with_all_their_particles():
    """Were each a single zero, the others would be too large a share of the estimates, and the bound above 0."""
    settings = {"n_islands": 620, "ess_threshold": 0.0, "n_jobs": 1}
    found = [particles.run(Interval(), 2, rng=seed, **settings).certificate for seed in range(5)]
    assert all(each.details["estimates"] == 2 * 620 for each in found)
    assert sum(each.lower > 0 for each in found) <= binom.ppf(0.999, 5, 0.05)


def test_islands_without_a_possible_particle_are_no_chains():
    pytest.importorskip("arviz")
    result = particles.run(Interval(share=0.1), 8, n_islands=4, rng=0)
    dead = sum(each.log_z == -np.inf for each in result.outcomes)
    assert 0 < dead < 4
    assert np.asarray(result.to_arviz()["posterior"]["x"]).shape[:2] == (4 - dead, 8)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"begin": lambda self, n, seed: particles.Start(np.zeros((n, 1)), np.nan)}, FloatingPointError, "got nan"),
        (
            {"advance": lambda self, population: particles.Step(population.x, population.x, True)},
            ValueError,
            r"log_increments of Changed must be a number for each of the 50 particles; got shape \(50, 1\)",
        ),
        (
            {"advance": lambda self, population: particles.Step(population.x, np.full(50, np.nan), True)},
            FloatingPointError,
            "the weights of step 1 have 50 NaN",
        ),
        (
            {"draws": lambda self, x: x + np.nan},
            CumulantError,
            "particles of Changed are NaN: its draws or moves made them so",
        ),
    ],
)
def test_a_bridge_of_ones_own_that_is_wrong_is_refused(change, error, words):
    changed = type("Changed", (Narrowing,), change)()
    with pytest.raises(error, match=words):
        particles.run(changed, 50, rng=0).mean()


@pytest.mark.parametrize("settings", [{"ess_threshold": 0.0}, {"chain_length": 2}])
def test_a_few_particles_with_all_the_weight_give_a_wide_interval(settings):
    """Of 200 particles 2 are possible on average. The error is known where 4 are, so that Z seems too large."""
    found = [particles.run(Interval(share=0.01), 200, rng=seed, **settings).interval(0.95) for seed in range(300)]
    known = [each for each in found if np.isfinite(each.width)]
    assert len(known) > 10
    assert sum(0.0 not in each for each in known) <= binom.ppf(0.999, len(known), 0.05)
