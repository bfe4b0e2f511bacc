"""Islands that communicate: unbiased, the same on any number of threads, an honest error and certificate."""

import dataclasses

import numpy as np
import pytest
from tests.particles.test_engine import Narrowing

from cumulant import graphical, particles

DIM = 10
EXACT = -DIM * np.log(2.0)


@dataclasses.dataclass(frozen=True)
class Many(Narrowing):
    """Many coordinates, so that few particles have most of the weight."""

    steps: int = 6

    def begin(self, n, seed):
        return particles.Start(np.random.default_rng([seed, 0, 0]).normal(size=(n, DIM)), 0.0)

    def advance(self, population):
        increments = -1.5 / self.steps * np.sum(population.x**2, axis=1)
        return particles.Step(population.x, increments, population.step == self.steps)


def exchanges(result):
    """How often islands were resampled: all then have the same estimate, and traces that come from the same ones."""
    logs = result.trace["log_z"]
    return sum(len(np.unique(column)) < len(logs) for column in logs.T[1:])


@pytest.mark.parametrize("resampling", ["stratified", "residual"])
def test_the_mean_of_islands_that_communicate_is_unbiased(resampling):
    """Four particles in each of eight islands, so that islands are uneven, and are resampled."""
    settings = {"n_islands": 8, "exchange": 2, "ess_threshold": 0.0, "resampling": resampling, "n_jobs": 1}
    found = [particles.run(Many(), 4, rng=seed, **settings) for seed in range(200)]
    assert sum(exchanges(each) > 0 for each in found) > 50
    ratios = np.exp([each.log_partition() - EXACT for each in found])
    assert abs(ratios.mean() - 1) < 4 * ratios.std(ddof=1) / np.sqrt(ratios.size)
    # E Z (E_hat[x^2] - 1/4) = 0 at the end, by the same theorem.
    off = ratios * [each.expect(lambda x: np.mean(x**2, axis=1)) - 0.25 for each in found]
    assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(off.size)


def test_threads_change_nothing_and_the_certificate_is_that_of_one_estimate():
    one, two = (particles.run(Many(), 4, n_islands=8, exchange=1, rng=2, n_jobs=jobs) for jobs in (1, 2))
    assert exchanges(one) > 0
    assert [each.log_z for each in one.outcomes] == [each.log_z for each in two.outcomes]
    assert one.certificate.details["estimates"] == 1
    assert one.certificate.lower == pytest.approx(one.log_partition() + np.log(0.05), abs=1e-6)
    assert one.certificate.verify(one.subject).lower == one.certificate.lower
    assert one.replicate_error == np.inf
    assert one.log_partition_error == np.inf
    assert one.interval().lower == -np.inf
    apart = particles.run(Many(), 4, n_islands=8, rng=2)
    assert apart.log_partition() != one.log_partition()


def test_models_are_annealed_by_islands_that_communicate():
    model = graphical.Ising(graphical.torus(4, 4), 0.6)
    result = particles.anneal(model, 20, 20, n_islands=6, exchange=2, rng=0)
    assert abs(result.log_partition() - model.log_partition()) < 1.0
    assert result.certificate.lower < model.log_partition()


def test_paths_that_are_not_given_are_refused():
    model = graphical.Ising(graphical.torus(4, 4), 0.6)
    with pytest.raises(ValueError, match="exchange needs a path that is given"):
        particles.anneal(model, 20, None, n_islands=6, exchange=2, rng=0)
    with pytest.raises(ValueError, match="exchange must be a whole number"):
        particles.anneal(model, 20, 5, n_islands=6, exchange=0, rng=0)
    assert particles.anneal(model, 20, None, n_islands=4, exchange=2, pilot=True, rng=0).certificate is not None
    stopped = particles.anneal(model, 20, 50, n_islands=4, exchange=1, time_limit=1e-9, rng=0)
    assert stopped.status == "time_limit"
