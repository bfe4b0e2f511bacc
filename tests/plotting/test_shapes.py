import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cumulant import Interval, families, plotting


@pytest.fixture
def ax():
    return plotting.figure()[1]


def test_a_band_has_the_colour_of_its_line(ax):
    ax.plot([0, 1], [0, 1])
    (line,) = ax.plot([0, 1], [1, 2])
    filled = plotting.band(ax, [0, 1], [0.5, 1.5], [1.5, 2.5])
    assert_allclose(
        filled.get_facecolor()[0][:3],
        plotting.band(ax, [0, 1], [0, 0], [1, 1], color=line.get_color()).get_facecolor()[0][:3],
    )


def test_a_band_of_uneven_vectors_is_refused(ax):
    with pytest.raises(ValueError, match="one length"):
        plotting.band(ax, [0, 1], [0, 1, 2], [1, 2, 3])


@pytest.mark.parametrize("bounds", [Interval(1.0, 3.0, 1.5), (1.0, 3.0)])
def test_an_interval_reaches_from_its_lower_to_its_upper_end(ax, bounds):
    container = plotting.interval(ax, 2.0, bounds)
    (segment,) = container.lines[2][0].get_segments()
    assert_allclose(segment, [[2.0, 1.0], [2.0, 3.0]])


def test_an_interval_upside_down_is_refused(ax):
    with pytest.raises(ValueError, match="lower <= upper"):
        plotting.interval(ax, 0.0, (2.0, 1.0))


def test_the_density_drawn_is_that_of_scipy():
    family = families.Gamma()
    data = stats.gamma(3.0, scale=0.5).rvs(200, random_state=0)
    ax = plotting.density(family, family.natural(shape=3.0, rate=2.0), data)
    x, y = ax.lines[0].get_data()
    assert_allclose(y, stats.gamma(3.0, scale=0.5).pdf(x), rtol=1e-10)
    assert (x > 0).all()
    assert_allclose(sum(bar.get_height() * bar.get_width() for bar in ax.patches), 1.0)


def test_counts_are_drawn_as_probabilities_and_the_histogram_once():
    family = families.Poisson()
    data = np.array([0, 1, 1, 2, 5])
    ax = plotting.density(family, family.natural(rate=2.0), data, label="two")
    plotting.density(family, family.natural(rate=3.0), data, ax=ax, label="three", color=plotting.COLOURS[2])
    assert [line.get_label() for line in ax.lines] == ["two", "three"]
    assert_allclose([bar.get_height() for bar in ax.patches], [0.2, 0.4, 0.2, 0.2])
    x, y = ax.lines[1].get_data()
    assert_allclose(x, np.arange(6))
    assert_allclose(y, stats.poisson(3.0).pmf(x), rtol=1e-10)


@pytest.mark.parametrize("data", [[], [1.0, np.nan], [[1.0, 2.0]]])
def test_data_that_cannot_be_drawn_are_refused(data):
    with pytest.raises(ValueError, match="data must be"):
        plotting.density(families.Poisson(), [0.0], data)


def test_families_of_vectors_are_refused():
    family = families.MultivariateNormal(2)
    with pytest.raises(ValueError, match="one-dimensional"):
        plotting.density(family, np.zeros(family.dim), [1.0])
