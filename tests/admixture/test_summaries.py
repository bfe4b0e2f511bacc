"""Label-invariant summaries."""

import numpy as np
import pytest

from cumulant.admixture import admixture_distance, admixture_level, agreement_report
from cumulant.admixture.summaries import mean_distance, mean_level

TAU = np.random.default_rng(0).dirichlet([0.5] * 4, size=(5, 7))


def test_pure_and_even_memberships():
    for k in (2, 3, 7):
        pure, even = np.eye(k)[:2], np.full((1, k), 1 / k)
        np.testing.assert_allclose(admixture_level(pure), 0.0, atol=1e-15)
        np.testing.assert_allclose(admixture_level(even), 1.0)
        assert admixture_distance(pure)[0, 1] == 1.0


def test_distance_is_a_metric_and_names_of_components_do_not_count():
    distance = admixture_distance(TAU)
    np.testing.assert_array_equal(distance, distance.swapaxes(1, 2))
    assert (distance[:, :, None, :] <= distance[:, :, :, None] + distance.swapaxes(1, 2)[:, None, :, :] + 1e-12).all()
    shuffled = TAU[..., [2, 0, 3, 1]]
    np.testing.assert_allclose(admixture_distance(shuffled), distance, atol=1e-15)
    np.testing.assert_allclose(admixture_level(shuffled), admixture_level(TAU), atol=1e-15)


def test_means_are_of_the_function():
    weights = np.arange(1.0, 6.0)
    share = weights / weights.sum()
    np.testing.assert_allclose(mean_distance(TAU, weights), np.tensordot(share, admixture_distance(TAU), axes=1))
    np.testing.assert_allclose(mean_level(TAU), admixture_level(TAU).mean(axis=0))
    switched = np.stack([np.eye(2), np.eye(2)[::-1]])  # the mean membership is even, each draw is pure
    assert mean_distance(switched)[0, 1] == 1.0
    assert mean_level(switched).max() == 0.0


def test_agreement_of_runs():
    runs = [(mean_distance(TAU[s : s + 1]), mean_level(TAU[s : s + 1])) for s in range(3)]
    report = agreement_report(runs)
    levels = np.array([level for _, level in runs])
    np.testing.assert_allclose(report.level_variance, levels.var(axis=0, ddof=1))
    gaps = {(i, j): np.abs(levels[i] - levels[j]).sum() for i in range(3) for j in range(i)}
    assert tuple(sorted(report.least_similar, reverse=True)) == max(gaps, key=gaps.get)
    assert report.largest_distance_variance == report.distance_variance.max() > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: admixture_level([[1.0], [1.0]]), "at least two components"),
        (lambda: admixture_distance([[0.5, 0.2]]), "sum to one"),
        (lambda: agreement_report([]), "runs must be at least two"),
        (lambda: agreement_report([(np.eye(2), np.ones(2)), (np.eye(3), np.ones(3))]), "same documents"),
        (lambda: mean_level(TAU, np.ones(3)), "weights must be 5 numbers"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
