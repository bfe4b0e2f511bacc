"""Errors, areas and their intervals against closed forms, scikit-learn and slow versions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, roc_auc_score

from cumulant.relational import evaluation


def _scores(rng, n=60):
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    return y, np.round(y + rng.normal(0, 1.5, n), 1)  # with ties


def _slow_delong(y, s):
    """Every yes against every no."""
    yes, no = s[y == 1], s[y == 0]
    wins = (yes[:, None] > no[None]) + 0.5 * (yes[:, None] == no[None])
    return wins.mean(), np.var(wins.mean(1), ddof=1) / yes.size + np.var(wins.mean(0), ddof=1) / no.size


@pytest.mark.parametrize("seed", range(5))
def test_area_and_its_variance(seed):
    y, s = _scores(np.random.default_rng(seed))
    area, variance = _slow_delong(y, s)
    found, covariance = evaluation._delong(y.astype(bool), s[None])
    assert_allclose(found[0], area)
    assert_allclose(found[0], roc_auc_score(y, s))
    assert_allclose(covariance[0, 0], variance)
    assert_allclose(evaluation._areas(y.astype(bool), s[None]), area)
    interval = evaluation.auc(y, s)
    assert interval.lower < area < interval.upper


def test_the_interval_covers():
    """Two normal distributions a unit apart: the area is Phi(1 / sqrt 2)."""
    rng, truth, hits, runs = np.random.default_rng(0), 0.7602499389, 0, 400
    for _ in range(runs):
        y = np.repeat([0, 1], 40)
        found = evaluation.auc(y, y + rng.normal(size=80))
        hits += found.lower <= truth <= found.upper
    assert abs(hits / runs - 0.9) < 4 * np.sqrt(0.09 / runs)


def test_one_area_says_nothing_of_its_variance():
    assert evaluation.auc([0, 0, 1, 1], [1, 2, 3, 4]) == (1.0, 0.0, 1.0)


def test_the_bootstrap_of_a_difference_has_the_size_of_delong():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    a, b = y + rng.normal(size=400), y + rng.normal(0, 1.5, size=400)
    found = evaluation.auc_difference(y, a, b, rng=3)
    areas, covariance = evaluation._delong(y.astype(bool), np.stack([a, b]))
    assert_allclose(found.value, areas[0] - areas[1])
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert_allclose(found.upper - found.lower, 2 * 1.6449 * error, rtol=0.1)
    same = evaluation.auc_difference(y, a, a, rng=3)
    assert (same.value, same.lower, same.upper) == (0.0, 0.0, 0.0)


def test_groups_are_drawn_whole():
    """Each query ten times over: the interval is that of the single queries, not narrower."""
    rng = np.random.default_rng(2)
    y, a, b = rng.integers(0, 2, 100), rng.normal(size=100), rng.normal(size=100)
    single = evaluation.auc_difference(y, a + y, b + y, draws=1000, rng=0)
    many = [np.repeat(x, 10) for x in (y, a + y, b + y)]
    grouped = evaluation.auc_difference(*many, groups=np.repeat(np.arange(100), 10), draws=1000, rng=0)
    assert_allclose(grouped, single, atol=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "settings"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0.2, 0.1, 0.9, 0.8], {}),  # both areas are 1 in every draw
        ([0.1, 0.9, 0.2, 0.8], [0.2, 0.1, 0.9, 0.8], {"groups": [7, 7, 7, 7]}),
        ([0.1, 0.9, 0.2, 0.8], [0.2, 0.1, 0.9, 0.8], {"draws": 1}),
        ([0.1, 0.9, 0.2, 0.8], [0.2, 0.1, 0.9, 0.8], {"draws": 100, "level": 0.999}),
    ],
    ids=["no spread", "one group", "one draw", "few draws"],
)
def test_draws_that_say_nothing_of_the_ends_make_no_narrow_interval(first, second, settings):
    found = evaluation.auc_difference([0, 0, 1, 1], first, second, **settings)
    assert (found.lower, found.upper) == (-1.0, 1.0)


def test_evaluate():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    p = np.clip(0.5 + 0.3 * (2 * y - 1) + rng.normal(0, 0.3, 200), 0.01, 0.99)
    found = evaluation.evaluate(y, p)
    assert_allclose(found.log_loss, log_loss(y, p))
    assert_allclose(found.error.value, np.mean((p > 0.5) != y))
    assert_allclose(found.auc.value, roc_auc_score(y, p))
    assert found.base_error == min(y.mean(), 1 - y.mean())
    assert evaluation.evaluate([1, 1], [0.5, 0.9]).auc is None
    assert evaluation.evaluate([1, 0], [0.0, 0.5]).log_loss == np.inf  # what happened was called impossible
    assert_allclose(evaluation.evaluate([1, 0], [1.0, 0.0]).log_loss, 0.0)


def test_mean_interval():
    found = evaluation.mean_interval([1.0, 2.0, 4.0])
    assert_allclose(found, [7 / 3, 7 / 3 - 2.9199856 * np.sqrt(7 / 9), 7 / 3 + 2.9199856 * np.sqrt(7 / 9)], rtol=1e-6)
    assert evaluation.mean_interval([1.0]).upper == np.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evaluation.auc([1, 1], [0.1, 0.2]), "must hold both yes and no"),
        (lambda: evaluation.auc_difference([0, 0], [0.1, 0.2], [0.1, 0.2]), "must hold both yes and no"),
        (lambda: evaluation.auc([0, 2], [0.1, 0.2]), "labels must be 0 or 1; got 2"),
        (lambda: evaluation.auc([0, 1], [0.1, np.nan]), "scores must be finite"),
        (lambda: evaluation.evaluate([0, 1], [0.1, 1.2]), "between 0 and 1; got 1.2"),
        (lambda: evaluation.error_rate([0, 1], [0.1]), "one entry for each of the 2 labels"),
        (lambda: evaluation.error_rate([], []), "at least one query"),
        (lambda: evaluation.auc_difference([0, 1], [1, 2], [1, 2], groups=[1]), "groups must have one entry"),
        (lambda: evaluation.auc([0, 1], [0.1, 0.2], level=90), "level must be strictly between 0 and 1"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
