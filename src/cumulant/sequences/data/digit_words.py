"""Words of handwritten digits that follow a grammar: labelled sequences of images, made from a seed.

The images are the 1797 digits of 8 by 8 pixels that ship with scikit-learn, blurred by noise so that one alone is hard
to read. The grammar is a Markov chain: a word begins with one of 1 to 9, and a digit is followed by the next one up
with probability 0.51, by itself or the next one down with 0.21 each, and by each of the other seven with 0.01, where 0
comes after 9.
"""

import functools
from typing import Any

import numpy as np

from cumulant import randomness

__all__ = ["GRAMMAR", "SHAPE", "START", "make"]

SHAPE = (8, 8)
"""Pixels of an image: a token has ``8 * 8`` numbers from 0 to 1."""

START = np.array([0.0] + [1 / 9] * 9)
"""The probability of each digit to be the first of a word."""

GRAMMAR = 0.01 + 0.5 * np.roll(np.eye(10), 1, axis=1) + 0.2 * np.eye(10) + 0.2 * np.roll(np.eye(10), -1, axis=1)
"""``GRAMMAR[j, k]`` is the probability of ``k`` after ``j``."""

_LENGTHS = (3, 8)
_PARTS = ("all", "train", "test")


def make(
    n: int, rng: Any = None, *, part: str = "all", noise: float = 0.3
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """`n` words of three to eight digits, as images ``X`` and digits ``y``.

    Parameters
    ----------
    n : int
        How many words.
    rng : int, numpy.random.Generator or None
        The same seed makes the same words.
    part : str
        Which images are used: ``"all"``, ``"train"`` (two thirds of each digit) or ``"test"`` (the others).
    noise : float
        The standard deviation of what is added to each pixel, which is then cut to the range from 0 to 1.

    Returns
    -------
    X : list of arrays (length, 64)
    y : list of arrays (length,)
        Whole numbers from 0 to 9.

    Examples
    --------
    >>> X, y = make(3, rng=0)
    >>> [word.tolist() for word in y]
    [[1, 0, 9, 9, 8, 9, 4, 5], [8, 0, 9, 0, 2, 1], [3, 3, 2, 1, 2, 3]]
    >>> X[0].shape
    (8, 64)
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a positive whole number; got {n!r}")
    if part not in _PARTS:
        raise ValueError(f"part must be one of {', '.join(_PARTS)}; got {part!r}")
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be finite and not negative; got {noise}")
    generator = randomness.generator(rng)
    lengths = generator.integers(_LENGTHS[0], _LENGTHS[1], size=n, endpoint=True)
    digits = _walks(n, generator)
    y = [word[:length] for word, length in zip(digits, lengths, strict=True)]
    return [_images(word, part, noise, generator) for word in y], y


def _walks(n: int, generator: np.random.Generator) -> np.ndarray:
    """`n` walks of the greatest length, by inversion of the cumulative probabilities."""
    uniform = generator.random((n, _LENGTHS[1]))
    digits = np.empty(uniform.shape, dtype=np.int64)
    for t in range(_LENGTHS[1]):
        row = START[None] if t == 0 else GRAMMAR[digits[:, t - 1]]
        digits[:, t] = (uniform[:, t, None] >= np.cumsum(row, axis=1)[:, :-1]).sum(axis=1)
    return digits


def _images(word: np.ndarray, part: str, noise: float, generator: np.random.Generator) -> np.ndarray:
    pictures = [_part(images, part) for images in _pictures()]
    clean = np.stack([pictures[digit][generator.integers(len(pictures[digit]))] for digit in word])
    return np.clip(clean + noise * generator.standard_normal(clean.shape), 0.0, 1.0)


def _part(images: np.ndarray, part: str) -> np.ndarray:
    cut = len(images) * 2 // 3
    return {"all": images, "train": images[:cut], "test": images[cut:]}[part]


@functools.cache
def _pictures() -> list[np.ndarray]:
    """The images of each digit, in the order of the data set."""
    from sklearn.datasets import load_digits

    table: Any = load_digits()
    return [table.data[table.target == digit] / 16.0 for digit in range(10)]
