"""Pictures of adaptation: what is drawn where."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import causal
from cumulant.plotting import causal as pictures
from cumulant.plotting import save


@pytest.fixture(scope="module")
def tuned():
    reference = causal.sample_reference(4, 12, rng=0)
    return causal.tune(causal.adapt_categorical(reference, reference.intervene("cause", rng=1), 60, rng=2), 20)


def test_curves_are_means_in_bands_up_to_a_time(tuned, tmp_path):
    ax = pictures.adaptation(tuned, until=40)
    lines = {line.get_label(): line for line in ax.lines}
    for model in tuned.models:
        assert_allclose(lines[model].get_xdata(), [0, 10, 20, 30, 40])
        assert_allclose(lines[model].get_ydata(), tuned.mean(model)[:5])
    assert len(ax.collections) == 3
    assert ax.lines[-1].get_xdata()[0] == 20
    assert save(ax.figure, tmp_path / "curves").stat().st_size > 5_000


def test_points_and_the_line_through_them(tuned):
    ax = pictures.distance_and_speed(tuned)
    causal_points = ax.lines[0]
    assert_allclose(causal_points.get_xdata(), tuned.distances.causal)
    assert_allclose(causal_points.get_ydata(), tuned.at_budget("causal"))
    assert ax.lines[3].get_label().startswith("$r^2$ = 0.")
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_points_without_a_logarithm_are_left_out(tuned):
    kl = tuned.kl.copy()
    kl[0, :3] = [[np.inf], [0.0], [1.0]]
    distances = tuned.distances._replace(causal=np.where(np.arange(12) == 2, 0.0, tuned.distances.causal))
    odd = dataclasses.replace(tuned, kl=kl, distances=distances)
    ax = pictures.distance_and_speed(odd)
    assert ax.lines[0].get_xdata().size == 9
    assert ax.lines[3].get_label().startswith("$r^2$ = 0.")
    pictures.adaptation(odd).figure.canvas.draw()


def test_the_difference_changes_sign_on_the_circle(tmp_path):
    model = causal.CategoricalSCM.from_joint([[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]])
    ax = pictures.effect_ball(model)
    x, y = ax.lines[0].get_data()
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    on = np.stack([x, y], axis=-1)
    centre = on.mean(axis=0)
    assert_allclose(causal.advantage_gap(model, on @ basis), 0.0, atol=1e-12)
    assert np.all(causal.advantage_gap(model, (centre + 0.9 * (on - centre)) @ basis) < 0)
    assert save(ax.figure, tmp_path / "ball").stat().st_size > 5_000


def test_refusals():
    with pytest.raises(ValueError, match="one model with three effects; got shape \\(2,\\) and 3"):
        pictures.effect_ball(causal.sample_reference(3, 2, rng=0))
