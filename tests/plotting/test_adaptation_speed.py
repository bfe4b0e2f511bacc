"""Pictures of a fitted comparison of two directions: what is drawn are its numbers."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import AdaptationSpeed, sample_reference
from cumulant.plotting.adaptation_speed import adaptation_speed


@pytest.fixture(scope="module")
def fitted():
    model = sample_reference(3, 1, "dense", rng=0)[0]
    tables = [
        np.stack(each.sample(500, rng=k), axis=1) for k, each in enumerate((model, model.intervene("cause", rng=1)))
    ]
    return AdaptationSpeed(n_draws=20, random_state=0).fit(tables[0], [tables[1], tables[1]])


def test_curves_and_distances(fitted):
    left, right = adaptation_speed(fitted, until=60)
    for line, curves in zip(left.lines, fitted.kl_, strict=False):
        keep = fitted.times_ <= 60
        assert_allclose(line.get_xdata(), fitted.times_[keep])
        assert_allclose(line.get_ydata(), curves.mean(axis=(0, 1))[keep])
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["X → Y", "Y → X"]
    points = [container.lines[0] for container in right.containers]
    for j, each in enumerate(points):
        assert_allclose(each.get_xdata(), fitted.distances_[:, j])


def test_runs_that_blew_up_have_no_place(fitted):
    diverged = copy.copy(fitted)
    diverged.kl_ = np.where(fitted.times_ > 40, np.inf, fitted.kl_)
    left, _ = adaptation_speed(diverged)
    left.figure.canvas.draw()
    assert left.get_ylim()[1] < 10 * fitted.kl_.max()


def test_it_must_be_fitted():
    with pytest.raises(ValueError, match="not fitted"):
        adaptation_speed(AdaptationSpeed())
