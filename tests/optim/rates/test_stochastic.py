"""The theorems on stochastic mirror descent, in expectation over many streams, through the solver's own `step`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import families, optim
from cumulant.families.risk import gap_constant
from cumulant.optim import rates
from cumulant.optim.solvers.stochastic_mirror_descent import StochasticMirrorDescentState

STREAMS = 4000


def means(family, schedule, mean0, statistics):
    """The mean parameter after each step, for every stream: shape (streams, steps + 1)."""
    solver = optim.StochasticMirrorDescent(family, schedule)

    def one(rows):
        stream = optim.SampleLikelihood(family, rows)
        start = StochasticMirrorDescentState(jnp.asarray([mean0]), 0, jnp.zeros(2, jnp.uint32), jnp.zeros(1), False)
        step = lambda s, _: ((new := solver.step(stream, s)), new.mean[0])  # noqa: E731
        return jax.lax.scan(step, start, length=statistics.shape[1])[1]

    with jax.enable_x64(True):
        after = np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(statistics)))
    return np.column_stack([np.full(len(after), mean0), after])


def mean_and_error(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


@pytest.fixture(scope="module")
def variance_streams():
    """A hundred observations of N(0, 1), by their squares."""
    return np.random.default_rng(0).normal(size=(STREAMS, 100, 1)) ** 2


def reverse(mu):
    """``D_A(theta*; theta)`` for the variance of a normal law, true variance one."""
    return 0.5 * (mu - 1 - np.log(mu))


def test_the_gap_bound_at_constant_steps(variance_streams):
    found = means(families.NormalKnownMean(0.0), 0.1, 5.0, variance_streams)
    average, error = mean_and_error(reverse(found))
    n = np.array([1, 10, 50, 100])
    np.testing.assert_allclose(average[n], [1.037, 0.264, 0.0247, 0.0258], atol=np.max(4 * error[n]))
    gap = gap_constant(families.NormalKnownMean(0.0), np.array([-0.5]))
    assert gap == pytest.approx(0.635181, abs=1e-6)
    bound = rates.smd_gap(np.arange(101), 0.1, gap, reverse(5.0))
    assert np.all(average <= bound + 3 * error + 1e-12)
    # The looser form P D0 + C, as published.
    loose = bound + 0.9 ** np.arange(101) * gap
    np.testing.assert_allclose(loose[n], [1.711, 1.052, 0.641, 0.635], atol=5e-4)


def test_the_gap_bound_at_decreasing_steps(variance_streams):
    schedule = optim.InverseTime(0.8, 3.0)
    found = means(families.NormalKnownMean(0.0), schedule, 0.2, variance_streams)
    average, error = mean_and_error(reverse(found))
    sizes = np.array([float(schedule(k)) for k in range(100)])
    bound = rates.smd_gap(np.arange(101), sizes, 0.635181422730739, reverse(0.2))
    assert np.all(average <= bound + 3 * error + 1e-12)
    assert rates.smd_gap(0, 0.1, 1.0, 2.0) == 2.0


class Tail:
    """Steps ``(2 n + 1) / (n + 1)^2`` from ``n = start`` on."""

    def __init__(self, start):
        self.start = start

    def __call__(self, k):
        n = self.start + k
        return (2 * n + 1) / (n + 1) ** 2


def test_the_bound_from_the_variance_at_the_optimum():
    # N(m, 1): D = (m - m*)^2 / 2 and C = 1.
    start = rates.smd_optimum_variance_start()
    assert start == 3
    statistics = np.random.default_rng(1).normal(size=(STREAMS, 100, 1))
    found = means(families.NormalKnownVariance(1.0), Tail(start), 2.0, statistics)
    average, error = mean_and_error(found**2 / 2)
    N = start + np.arange(101)
    bound = rates.smd_optimum_variance(N, 1.0, 2.0, start)
    assert bound[0] == 2.0
    assert np.all(average <= bound + 3 * error + 1e-12)
    assert np.max(average[1:] / bound[1:]) > 0.3  # and it is of the right order
    with pytest.raises(ValueError, match="N must be at least start = 3"):
        rates.smd_optimum_variance(2, 1.0, 2.0, 3)


def test_the_bound_from_the_variance_on_an_average():
    """A normal mean, where (5.31) holds with ``C = 1``: of the average it is a bound, of ``C / 4`` it is not."""
    rng, trials = np.random.default_rng(0), 20_000
    for start, D0 in ((0, 50.0), (3, 2.0)):
        mu, total, checked = np.full(trials, (2 * D0) ** 0.5), np.zeros(trials), []
        for k in range(1, 201):
            mu = mu - 2 / (k + start + 1) * (mu - rng.standard_normal(trials))
            total += (k + start) * 0.5 * mu**2
            if k in (1, 10, 200):
                value = 2 * total / (k * (k + 2 * start + 1))
                checked.append((value.mean(), value.std() / trials**0.5, rates.smd_variance(k, 1.0, D0, start)))
        assert all(mean - 3 * error <= bound for mean, error, bound in checked)
        mean, error, _ = checked[-1]
        assert mean - 3 * error > rates.smd_variance(200, 0.25, 0.0, start)
    assert rates.smd_variance(1, 1.0, 50.0) == 2.0  # the first step forgets the start
    for wrong in ({"n": 0}, {"start": -1}):
        with pytest.raises(ValueError, match="must"):
            rates.smd_variance(**{"n": 3, "C": 1.0, **wrong})


def test_steps_that_are_not_steps_are_refused():
    with pytest.raises(ValueError, match=r"gamma must be in \(0, 1\]; got 1.5"):
        rates.smd_gap(3, 1.5, 1.0, 1.0)
    with pytest.raises(ValueError, match="C must be finite and not negative"):
        rates.smd_gap(3, 0.5, np.inf, 1.0)
