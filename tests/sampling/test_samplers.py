"""The contract of samplers over all of them, and exact Gaussians that a step must leave as they are."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import graphical
from cumulant.errors import DomainError
from cumulant.sampling import HMC, MALA, RandomWalk, Sampler, Target, sample
from cumulant.sampling.chains import _advance

MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
# Programs are compiled for a number of chains and of draws, at most 256 of them: tests with 6 chains and n = 44 modulo
# 256 share two programs.
SAMPLERS = [RandomWalk(1.2), MALA(0.5), HMC(0.5, 6)]


def quadratic(x, data):
    mean, precision = data
    return -(x - mean) @ precision @ (x - mean) / 2


def half_line(x):
    return jnp.where(x[0] > 0, -x[0], jnp.nan)


GAUSSIAN = Target(quadratic, 2, (MEAN, np.linalg.inv(COVARIANCE)))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_a_step_leaves_the_gaussian_as_it_is_and_is_reversible(sampler):
    n = 40_000
    x = np.random.default_rng(1).multivariate_normal(MEAN, COVARIANCE, size=n)
    y = sample(sampler, GAUSSIAN, 1, chains=n, burn_in=0, start=x, rng=2).flat
    assert (y != x).any(axis=1).mean() > 0.3  # it moves
    features = {"x": lambda z: z, "square": lambda z: np.einsum("ni,nj->nij", z - MEAN, z - MEAN).reshape(n, -1)}
    for feature in features.values():
        change = feature(y) - feature(x)
        assert np.all(np.abs(change.mean(axis=0)) < 4.5 * change.std(axis=0) / np.sqrt(n))
    both = np.tanh(x[:, 0]) * np.sin(y[:, 1]) - np.tanh(y[:, 0]) * np.sin(x[:, 1])
    assert abs(both.mean()) < 4.5 * both.std() / np.sqrt(n)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_chains_far_away_find_the_gaussian(sampler):
    draws = sample(sampler, GAUSSIAN, 1580, chains=6, burn_in=300, start=[8.0, 8.0], rng=0)
    assert draws.r_hat().max() < 1.03
    assert np.all(np.abs(draws.mean() - MEAN) < 4.5 * draws.standard_error())
    spread = draws.mean(lambda z: (z - MEAN) ** 2)
    error = draws.standard_error(lambda z: (z - MEAN) ** 2)
    assert np.all(np.abs(spread - np.diag(COVARIANCE)) < 4.5 * error)
    assert np.all((draws.settings["acceptance"] > 0.2) & (draws.settings["acceptance"] < 1.0))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_the_contract_of_samplers(sampler):
    assert isinstance(sampler, Sampler)
    first = sample(sampler, GAUSSIAN, 300, chains=6, burn_in=7, thin=2, rng=5)
    assert first.values.shape == (6, 300, 2)
    assert first.settings["n"] == 300
    assert_allclose(sample(sampler, GAUSSIAN, 300, chains=6, burn_in=7, thin=2, rng=5).values, first.values)
    assert (sample(sampler, GAUSSIAN, 300, chains=6, burn_in=7, thin=2, rng=6).values != first.values).any()
    # Every second state of a longer run, whatever the pieces it is computed in.
    longer = sample(sampler, GAUSSIAN, 812, chains=6, burn_in=0, rng=5).values
    assert_allclose(longer[:, 8::2][:, :300], first.values)


def test_without_draws_there_is_only_the_burn_in():
    draws = sample(RandomWalk(1.2), GAUSSIAN, 0, chains=6, burn_in=44, thin=3, rng=5)
    assert draws.values.shape == (6, 0, 2)
    same = sample(RandomWalk(1.2), GAUSSIAN, 44, chains=6, burn_in=0, rng=5)
    assert_allclose(draws.settings["acceptance"], same.settings["acceptance"])


SPINS = graphical.Ising(graphical.grid(3, 3), 0.4, 0.1)
COLOURS = graphical.Potts(graphical.grid(2, 3), 0.5, n_states=3)
DISCRETE = [
    *((graphical.Gibbs(scan), SPINS) for scan in ("systematic", "random", "chromatic", "blocked")),
    (graphical.Gibbs(), COLOURS.given({1: 2})),
    (graphical.SwendsenWang(), SPINS),
    (graphical.Wolff(n_jobs=1), SPINS),
    (graphical.SwendsenWang(), COLOURS),
    (graphical.Wolff(), COLOURS),
    (graphical.MultiSpin(), graphical.Ising(graphical.torus(4, 128), 0.3)),
    (graphical.ColouredGibbs(), SPINS.given({4: -1})),
    (graphical.LatticeGibbs(), graphical.UniformTorus(4, 6, 0.3, 0.1)),
    (graphical.EdgeFlips(), graphical.SubgraphsWorld(graphical.grid(2, 3), 0.5, 0.3)),
]


@pytest.mark.parametrize(("sampler", "target"), DISCRETE, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("chains", [3, 20])
def test_the_contract_of_samplers_of_discrete_models(sampler, target, chains):
    assert isinstance(sampler, Sampler)
    whole = sample(sampler, target, 6, chains=chains, burn_in=4, thin=2, rng=3)
    assert whole.values.shape[:2] == (chains, 6)
    assert whole.settings["seed"] == 3
    # Chain by chain the same, whatever the number of chains and however a run is divided.
    assert (sample(sampler, target, 6, chains=2, burn_in=4, thin=2, rng=3).values == whole.values[:2]).all()
    state = sampler.init(target, target.starts(chains, None, 3), 3)
    for _ in range(4):
        state = sampler.step(target, state)
    state, first = sampler.advance(target, state, 3, 0, 2)
    state, rest = sampler.advance(target, state, 3, 0, 2)
    assert (np.concatenate([first, rest], axis=1) == whole.values).all()
    assert state.sweeps == 16
    assert len(state.x) == chains
    with pytest.raises(ValueError, match="shape"):
        sample(sampler, target, 1, start=np.zeros(1, int))


def test_where_the_density_is_not_a_number_no_chain_goes():
    draws = sample(RandomWalk(2.0), Target(half_line, 1), 4096, chains=4, start=[1.0], rng=0)
    assert draws.values.min() > 0
    assert abs(draws.mean()[0] - 1.0) < 4.5 * draws.standard_error()[0]
    with pytest.raises(DomainError, match="start of chain 1"):
        sample(RandomWalk(2.0), Target(half_line, 1), 10, chains=2, start=[[1.0], [-1.0]])


def test_the_clock_ends_a_run_with_what_there_is():
    draws = sample(RandomWalk(1.0), GAUSSIAN, 10**7, chains=6, time_limit=0.05, burn_in=0, rng=0)
    assert 0 < draws.settings["n"] < 10**7
    assert draws.values.shape[1] == draws.settings["n"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomWalk(0.0), "scale must be positive"),
        (lambda: MALA(np.inf), "step_size must be positive"),
        (lambda: HMC(0.1, 0), "n_leapfrog must be positive"),
        (lambda: sample(RandomWalk(1.0), GAUSSIAN, -1), "n must be a whole number from 0"),
        (lambda: sample(RandomWalk(1.0), GAUSSIAN, 1, chains=0), "chains must be a whole number from 1"),
        (lambda: sample(RandomWalk(1.0), GAUSSIAN, 1, time_limit=0), "time_limit, in seconds, must be"),
        (lambda: sample(RandomWalk(1.0), GAUSSIAN, 1, start=[1.0]), r"start must have shape \(2,\)"),
    ],
)
def test_settings_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_step_sizes_are_data_of_the_program():
    before = _advance._cache_size()
    for scale in (0.5, 0.6, 0.7):
        sample(RandomWalk(scale), GAUSSIAN, 44, chains=6, burn_in=1, rng=0)
    assert _advance._cache_size() <= before + 1


def _without_a_gradient(x):
    """Standard normal; on the left the derivative of a square root that is not taken is not a number."""
    return -(x[0] ** 2) / 2 + 1e-12 * jnp.where(x[0] > 0.5, jnp.sqrt(x[0] - 0.5), 0.0)


def test_a_random_walk_needs_no_gradient():
    draws = sample(RandomWalk(2.0), Target(_without_a_gradient, 1), 2048, chains=4, start=[-1.0], rng=0)
    assert abs(draws.mean()[0]) < 4.5 * draws.standard_error()[0]
    left = draws.mean(lambda x: (x < 0.5).astype(float))[0]
    assert abs(left - 0.691462) < 4.5 * draws.standard_error(lambda x: (x < 0.5).astype(float))[0]
    with pytest.raises(DomainError, match="gradient is not finite"):
        sample(MALA(0.1), Target(_without_a_gradient, 1), 10, start=[-1.0], rng=0)
