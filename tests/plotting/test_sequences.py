"""What is drawn is what was given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.plotting import save, sequences

RNG = np.random.default_rng(0)
IMAGES = RNG.random((3, 8, 8))
CHAIN, ALONE = RNG.dirichlet(np.ones(4), size=3), RNG.dirichlet(np.ones(4), size=3)


def test_a_word_has_its_images_and_under_each_the_probabilities(tmp_path):
    fig = sequences.word(IMAGES, {"chain": CHAIN, "alone": ALONE}, classes="abcd", truth=[1, 2, 3])
    above, below = fig.axes[:3], fig.axes[3:]
    for t in range(3):
        assert_allclose(above[t].images[0].get_array(), IMAGES[t])
        assert above[t].get_title() == str(t + 1)
        heights = [bar.get_height() for bar in below[t].patches]
        assert_allclose(heights, np.concatenate([CHAIN[t], ALONE[t]]))
        assert [tick.get_text() for tick in below[t].get_xticklabels()] == list("abcd")
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["chain", "alone"]
    assert save(fig, tmp_path / "word.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("images", "marginals", "message"),
    [
        (IMAGES[0], {"chain": CHAIN}, "images must have shape"),
        (IMAGES, {}, "at least one model"),
        (IMAGES, {"chain": CHAIN[:2]}, r"marginals\['chain'\] must have shape \(3, 4\); got \(2, 4\)"),
        (IMAGES, {"chain": CHAIN, "alone": ALONE[:, :3]}, r"marginals\['alone'\] must have shape"),
    ],
)
def test_a_word_that_does_not_fit_together_is_refused(images, marginals, message):
    with pytest.raises(ValueError, match=message):
        sequences.word(images, marginals)


def test_the_gap_of_each_record_is_drawn_but_zero_is_not():
    history = [{"seconds": 0.1, "gap": 2.0}, {"seconds": 0.2, "gap": 0.02}, {"seconds": 0.3, "gap": 0.0}]
    ax = sequences.gap(history, label="one")
    sequences.gap(history[:2], ax=ax, label="two")
    assert_allclose(ax.lines[0].get_xydata(), [[0.1, 2.0], [0.2, 0.02]])
    assert [line.get_label() for line in ax.lines] == ["one", "two"]
    assert ax.get_yscale() == "log"
    with pytest.raises(ValueError, match="at least one record"):
        sequences.gap([])


def test_transitions_are_coloured_on_a_scale_around_zero():
    matrix = np.array([[1.0, -3.0], [0.5, 0.0]])
    ax = sequences.transitions(matrix, classes=["B-NP", "O"], title="weights")
    (image,) = ax.images
    assert_allclose(image.get_array(), matrix)
    assert image.get_clim() == (-3.0, 3.0)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["B-NP", "O"]
    assert sequences.transitions(np.abs(matrix), signed=False).images[0].get_clim() == (0.0, 3.0)
    assert sequences.transitions(np.zeros((2, 2))).images[0].get_clim() == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("matrix", "classes", "message"),
    [
        (np.ones((2, 3)), None, "matrix must be square and finite"),
        ([[np.nan]], None, "matrix must be square and finite"),
        (np.ones((2, 2)), ["a"], "classes must be 2 labels"),
    ],
)
def test_what_is_no_matrix_of_transitions_is_refused(matrix, classes, message):
    with pytest.raises(ValueError, match=message):
        sequences.transitions(matrix, classes=classes)
