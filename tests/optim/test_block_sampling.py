"""Samplers over blocks: their probabilities by hand, the law of their draws, their refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from cumulant.optim.finite_sums.block_sampling import (
    GapImportanceSampler,
    GapSampler,
    ImportanceSampler,
    MaxGapSampler,
    ResidualSampler,
    UniformSampler,
)

GAPS = np.array([3.0, 1.0, 0.5, 0.5])
CONDITIONS = np.array([1.0, 4.0, 9.0, 2.0])

SAMPLERS = [
    UniformSampler(),
    ImportanceSampler(CONDITIONS),
    ImportanceSampler(CONDITIONS, nonuniformity=1.0),
    GapSampler(),
    GapSampler(nonuniformity=0.3),
    GapImportanceSampler(CONDITIONS),
    MaxGapSampler(),
    ResidualSampler(CONDITIONS),
]


def visited(sampler, values=GAPS, rng=0):
    state = sampler.init(len(values), rng)
    for i, value in enumerate(values):
        state = sampler.update(state, i, value)
    return state


def test_probabilities_of_gap_sampling():
    assert_allclose(GapSampler(nonuniformity=0.8).probabilities(visited(GapSampler())), [0.53, 0.21, 0.13, 0.13])


@pytest.mark.parametrize(
    ("sampler", "weights"),
    [
        (UniformSampler(), np.ones(4)),
        (ImportanceSampler(CONDITIONS), CONDITIONS),
        (GapSampler(), GAPS),
        (GapImportanceSampler(CONDITIONS), GAPS * CONDITIONS),
        (MaxGapSampler(), np.array([1.0, 0.0, 0.0, 0.0])),
        (ResidualSampler(CONDITIONS), GAPS * np.sqrt(CONDITIONS)),
    ],
    ids=str,
)
def test_probabilities_mix_the_uniform_law_with_the_weights(sampler, weights):
    rho = sampler.nonuniformity
    expected = (1 - rho) * 0.25 + rho * weights / weights.sum()
    assert_allclose(sampler.probabilities(visited(sampler)), expected, rtol=1e-14)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_draws_follow_the_probabilities(sampler):
    state = visited(sampler, rng=3)
    probabilities = sampler.probabilities(state)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-14)
    counts = np.bincount([sampler.draw(state) for _ in range(100_000)], minlength=4)
    assert np.all(counts[probabilities == 0] == 0)
    positive = probabilities > 0
    assert stats.chisquare(counts[positive], 100_000 * probabilities[positive]).pvalue > 1e-3
    assert state.draws == 100_000


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_uniform_draws_when_every_gap_has_closed(n):
    for sampler in (GapSampler(nonuniformity=1.0), GapImportanceSampler(np.ones(n), 1.0), ResidualSampler(np.ones(n))):
        state = visited(sampler, np.zeros(n))
        assert_allclose(sampler.probabilities(state), np.full(n, 1 / n))
        counts = np.bincount([sampler.draw(state) for _ in range(20 * n)], minlength=n)
        assert counts.size == n


def test_every_block_is_visited_before_estimates_matter():
    n = 50
    for sampler in (MaxGapSampler(nonuniformity=1.0), GapSampler(nonuniformity=1.0)):
        state = sampler.init(n, rng=1)
        seen = set()
        for _ in range(n):
            i = sampler.draw(state)
            seen.add(i)
            state = sampler.update(state, i, 0.0)
        assert seen == set(range(n))


def test_max_sampling_takes_the_first_largest():
    sampler = MaxGapSampler(nonuniformity=1.0)
    state = visited(sampler, np.array([0.5, 2.0, 2.0, 1.0]))
    assert sampler.draw(state) == 1
    sampler.update(state, 1, 0.1)
    assert sampler.draw(state) == 2


def test_importance_weights_do_not_learn():
    sampler = ImportanceSampler(CONDITIONS)
    assert_array_equal(sampler.probabilities(visited(sampler)), sampler.probabilities(sampler.init(4, rng=0)))


def test_the_same_seed_gives_the_same_blocks():
    def blocks(rng):
        sampler = GapSampler()
        state = visited(sampler, rng=rng)
        return [sampler.draw(state) for _ in range(50)]

    assert blocks(5) == blocks(5)
    assert blocks(np.random.default_rng(5)) == blocks(np.random.default_rng(5))
    assert blocks(5) != blocks(6)


def test_a_gap_below_zero_by_rounding_counts_as_zero():
    state = visited(GapSampler(), np.array([1.0, -1e-15, 1.0, 1.0]))
    assert state.weights[1] == 0.0


def test_settings_own_their_weights():
    weights = CONDITIONS.copy()
    sampler = ImportanceSampler(weights)
    weights[0] = 50.0
    assert sampler.weights[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        sampler.weights[0] = 2.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1])
def test_refuses_what_is_no_gap(value):
    with pytest.raises(ValueError, match="finite and not negative"):
        GapSampler().update(GapSampler().init(3, 0), 0, value)


@pytest.mark.parametrize("i", [-1, 3])
def test_refuses_what_is_no_block(i):
    with pytest.raises(ValueError, match="between 0 and 2"):
        GapSampler().update(GapSampler().init(3, 0), i, 1.0)


@pytest.mark.parametrize("n", [0, -2, 2.5, True])
def test_refuses_what_is_no_number_of_blocks(n):
    with pytest.raises(ValueError, match="n, the number of blocks"):
        UniformSampler().init(n, 0)


@pytest.mark.parametrize("nonuniformity", [-0.1, 1.1, np.nan])
@pytest.mark.parametrize(
    "make", [GapSampler, MaxGapSampler, *(lambda rho, c=c: c([1.0], rho) for c in (ImportanceSampler, ResidualSampler))]
)
def test_refuses_a_share_outside_the_unit_interval(make, nonuniformity):
    with pytest.raises(ValueError, match="nonuniformity"):
        make(nonuniformity)


@pytest.mark.parametrize("make", [ImportanceSampler, GapImportanceSampler, ResidualSampler])
def test_refuses_bad_weights(make):
    with pytest.raises(ValueError, match="at index 1"):
        make([1.0, 0.0])
    with pytest.raises(ValueError, match="at index 0"):
        make([np.nan, 1.0])
    with pytest.raises(ValueError, match="vector"):
        make([])
    with pytest.raises(ValueError, match="must be 2"):
        make([1.0, 2.0]).init(3, 0)
