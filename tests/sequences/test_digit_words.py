"""Words of digits: they follow their grammar, are made of the images of scikit-learn, and come back from a seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from cumulant.sequences.data import digit_words


def test_the_same_seed_makes_the_same_words():
    X, y = digit_words.make(20, rng=3)
    again_X, again_y = digit_words.make(20, rng=3)
    other_X, _ = digit_words.make(20, rng=4)
    assert all(np.array_equal(a, b) for a, b in zip(X, again_X, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(y, again_y, strict=True))
    assert not np.array_equal(X[0], other_X[0])


def test_shapes_and_ranges():
    X, y = digit_words.make(200, rng=0)
    lengths = {len(word) for word in y}
    assert lengths == {3, 4, 5, 6, 7, 8}
    for images, word in zip(X, y, strict=True):
        assert images.shape == (len(word), 64)
        assert images.min() >= 0
        assert images.max() <= 1


def test_the_grammar_is_a_markov_chain_and_the_words_follow_it():
    assert_allclose(digit_words.GRAMMAR.sum(axis=1), 1.0)
    assert_allclose(digit_words.START.sum(), 1.0)
    assert digit_words.GRAMMAR[9, 0] == digit_words.GRAMMAR.max()  # 0 comes after 9
    _, y = digit_words.make(4000, rng=5, noise=0.0)
    counts = np.zeros((10, 10))
    for word in y:
        np.add.at(counts, (word[:-1], word[1:]), 1)
    total = counts.sum(axis=1, keepdims=True)
    error = np.sqrt(digit_words.GRAMMAR * (1 - digit_words.GRAMMAR) / total)
    assert np.max(np.abs(counts / total - digit_words.GRAMMAR) / error) < 4.5  # the largest of a hundred
    first = np.bincount([word[0] for word in y], minlength=10)
    assert first[0] == 0
    assert np.max(np.abs(first[1:] / len(y) - 1 / 9)) < 4.5 * np.sqrt(8 / 81 / len(y))


def test_without_noise_the_images_are_those_of_scikit_learn_and_the_parts_are_apart():
    table = load_digits()
    known = {image.tobytes(): digit for image, digit in zip(table.data / 16.0, table.target, strict=True)}
    seen = {}
    for part in ("train", "test"):
        X, y = digit_words.make(400, rng=1, part=part, noise=0.0)
        images = [image.tobytes() for word in X for image in word]
        assert [known[image] for image in images] == np.concatenate(y).tolist()
        seen[part] = set(images)
    assert not seen["train"] & seen["test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be a positive whole number; got 0"),
        ({"n": 2.5}, "n must be a positive whole number; got 2.5"),
        ({"n": 3, "part": "dev"}, "part must be one of all, train, test; got 'dev'"),
        ({"n": 3, "noise": -1.0}, "noise must be finite and not negative"),
        ({"n": 3, "noise": np.nan}, "noise must be finite and not negative"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        digit_words.make(**arguments)
