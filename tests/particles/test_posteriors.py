"""Annealing to posteriors with reference draws: means agree, and both modes of a mixture get their half."""

import numpy as np
import pytest
from tests.variational.posteriors import FOLDER, NAMES, _mixture, load

from cumulant import particles
from cumulant.sampling import constrained

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.exists(), reason="the reference draws of posteriordb are not here"),
]
MIXTURE = "low_dim_gauss_mix-low_dim_gauss_mix"
CHOSEN = NAMES[1:2] + NAMES[5:6] + NAMES[8:]


@pytest.mark.parametrize("name", CHOSEN)
def test_means_are_those_of_the_reference_draws(name):
    target, mean, sd = load(name)
    result = particles.anneal(target, 1000, None, sweeps=4, rng=0)
    assert result.status == "converged"
    found = result.mean()
    if name.startswith("eight_schools"):
        found = found[8:]
    if name.startswith("garch"):
        found = found[1:]
    # A mean of 500 effective draws is within 0.2 standard deviations at 4.5 standard errors.
    assert result.ess > 300
    np.testing.assert_allclose((found - mean) / sd, 0.0, atol=0.2)


def test_a_mixture_whose_means_are_not_ordered_has_two_modes_alike():
    """``Z`` is twice that of ordered means, and each order has probability 1/2 and the reference means."""
    ordered, mean, sd = load(MIXTURE)
    y = np.load(FOLDER / f"{MIXTURE}.npz", allow_pickle=False)["data_y"]
    spaces = {"sigma": "positive", "theta": ("bounded", 0.0, 1.0)}
    both = constrained(_mixture, {"mu": (2,), "sigma": (2,), "theta": ()}, spaces, {"y": y})
    found = [particles.anneal(each, 1000, None, sweeps=4, n_islands=3, rng=0) for each in (both, ordered)]
    assert abs(found[0].log_partition() - found[1].log_partition() - np.log(2)) < 0.5
    draws = found[0].draws
    first = draws.flat[:, 0] < draws.flat[:, 1]
    assert abs(draws.weights.ravel() @ first - 0.5) < 0.2
    swapped = draws.flat[:, [1, 0, 3, 2, 4]] * [1, 1, 1, 1, -1] + [0, 0, 0, 0, 1]
    in_order = np.where(first[:, None], draws.flat, swapped)
    np.testing.assert_allclose((draws.weights.ravel() @ in_order - mean) / sd, 0.0, atol=0.25)
