"""Overlaps of pairs against a double loop, and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.particles import free_energy, has_both_modes, overlap_distribution, up_share


def test_overlaps_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    x, W = rng.choice([-1, 1], (12, 10)), rng.random(12)
    W = W / W.sum()
    found = overlap_distribution(x, W, bins=11)  # every value of q in the middle of a bin
    expected, mean, positive = np.zeros(11), 0.0, 0.0
    for s in range(12):
        for t in range(12):
            if s != t:
                q, share = x[s] @ x[t] / 10, W[s] * W[t] / (1 - np.sum(W**2))
                expected[min(int((q + 1) / 2 * 11), 10)] += share
                mean += share * abs(q)
                positive += share * (1.0 if q > 0 else 0.5 if q == 0 else 0.0)
    assert_allclose(found.probability, expected, atol=1e-14)
    assert_allclose([found.mean_abs, found.positive, found.probability.sum()], [mean, positive, 1.0])
    assert_allclose(overlap_distribution(-x, W, bins=11).probability, expected, atol=1e-14)


def test_modes_and_energies():
    x = np.array([[1, 1, 1, -1], [-1, -1, -1, 1], [1, -1, 1, -1]])
    assert_allclose(up_share(x, [0.2, 0.3, 0.5]), 0.45)
    assert has_both_modes(x)
    assert not has_both_modes(x[:1])
    assert_allclose(free_energy(8000.693147181, 0.1, 400), -2.0001732868, atol=5e-11)


def test_refusals():
    with pytest.raises(ValueError, match="must be spins"):
        up_share([[0, 1]])
    with pytest.raises(ValueError, match="at least two particles"):
        overlap_distribution([[1, 1]])
    with pytest.raises(ValueError, match="one has all of it"):
        overlap_distribution([[1, 1], [-1, 1]], [1.0, 0.0])
    with pytest.raises(ValueError, match="weights must be a number for each of the 2 particles"):
        up_share([[1], [-1]], weights=[1.0])
    with pytest.raises(ValueError, match="temperature must be positive"):
        free_energy(1.0, 0.0, 4)
