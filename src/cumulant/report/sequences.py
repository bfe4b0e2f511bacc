"""Chain models shown on words of handwritten digits: what neighbours add, and how near the optimum the fit is.

`sections` is the demonstration that `cumulant crf demo` runs; `words` is the short form in `cumulant demo`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant import plotting
from cumulant.plotting import sequences as pictures
from cumulant.report.fits import with_error
from cumulant.report.section import Section, Table
from cumulant.sequences import ChainCRF
from cumulant.sequences.data import digit_words

TITLE = "Chain CRFs: a demonstration"
LEAD = (
    "Words of handwritten digits are read with and without their grammar. The images ship with scikit-learn; the "
    "grammar is a Markov chain. Test words are made of images that training never saw."
)

_SHOWN = 6  # digits of a word in a picture, at most
_CHAIN, _ALONE = "chain CRF", "each digit alone"


class Study(NamedTuple):
    """A chain and a regression of single digits fitted to the same words, and what they say of the test words."""

    chain: ChainCRF
    alone: ChainCRF
    images: list[np.ndarray]
    digits: list[np.ndarray]
    marginals: dict[str, list[np.ndarray]]
    right: dict[str, list[np.ndarray]]
    n_train: int


def study(n_train: int = 400, n_test: int = 400, tol: float = 1e-6) -> Study:
    """Fit both models to `n_train` words and try them on `n_test` others.

    The regression of single digits is the same model on words of length 1, with the same penalty on the sum of losses.
    """
    X, y = digit_words.make(n_train, rng=0, part="train")
    X_test, y_test = digit_words.make(n_test, rng=1, part="test")
    ChainCRF(tol=1.0).fit(X[:2], y[:2])  # so that the seconds of the fits below are not those of the compiler
    chain = ChainCRF(solver="sdca", tol=tol, max_epochs=1000).fit(X, y)
    alone = ChainCRF(solver="sdca", tol=tol, max_epochs=1000).fit(_singly(X), _singly(y))
    cuts = np.cumsum([len(word) for word in y_test])[:-1]
    marginals = {
        _CHAIN: chain.predict_marginals(X_test),
        _ALONE: np.split(np.concatenate(alone.predict_marginals(_singly(X_test))), cuts),
    }
    said = {
        _CHAIN: [np.asarray(word) for word in chain.predict(X_test)],
        _ALONE: np.split(np.concatenate(alone.predict(_singly(X_test))), cuts),
    }
    right = {name: [guess == truth for guess, truth in zip(words, y_test, strict=True)] for name, words in said.items()}
    return Study(chain, alone, X_test, y_test, marginals, right, n_train)


def sections(output: Path) -> Iterator[Section]:
    """The sections of the page, one at a time; pictures are written below `output`."""
    found = study()
    yield reading(found, output)
    yield certified(found, output)
    yield grammar(found, output)


def words(output: Path) -> Section:
    """What neighbours add, in short. (Words made of the images of digits.)"""
    section = reading(study(n_train=200, n_test=200), output)
    return Section(
        "Words: labels that depend on their neighbours",
        section.paragraphs,
        section.tables,
        section.certificates,
        section.pictures,
    )


def reading(found: Study, output: Path) -> Section:
    """How well the words are read, with and without neighbours."""
    rows = [
        (name, accuracy(right), accuracy([np.array([word.all()]) for word in right]))
        for name, right in found.right.items()
    ]
    chosen = _telling(found)
    picture = pictures.word(
        found.images[chosen].reshape(-1, *digit_words.SHAPE),
        {name: of[chosen] for name, of in found.marginals.items()},
        classes=found.chain.classes_,
        truth=found.digits[chosen],
    )
    certificate = found.chain.certificate_
    return Section(
        "Reading words",
        [
            f"{found.n_train} words of three to eight digits, each an image of 8 by 8 pixels under heavy noise. After "
            "a digit comes most often the next one up, itself or the next one down. A chain CRF learns how digits look "
            "and how they follow each other. The regression of each digit alone is the same model on words of length "
            f"1. Both were tried on {len(found.digits)} words made of other images.",
            f"Training stopped at a certified gap: the objective, {found.chain.objective_:.4f} nats a word, is above "
            "the smallest possible one by no more than the certificate says.",
        ],
        [Table(("model", "digits read, %", "whole words read, %"), rows, "On the test words, ± standard error")],
        [] if certificate is None else [certificate],
        [
            (
                plotting.save(picture, output / "word.png"),
                f"Of the test words of at most {_SHOWN} digits, the one in which the chain mends most: its images, the "
                "true digits above, and the probability of each digit below, by the chain and by each image alone. The "
                "chain reads the most probable word, which need not have the most probable digit at every place.",
            )
        ],
    )


def certified(found: Study, output: Path) -> Section:
    """How the gap fell, for both solvers."""
    chain = found.chain
    X, y = digit_words.make(found.n_train, rng=0, part="train")
    other = ChainCRF(solver="lbfgs", tol=chain.tol, max_epochs=1000).fit(X, y)
    runs = {"dual ascent": chain, "L-BFGS": other}
    ax = None
    for name, crf in runs.items():
        ax = pictures.gap(crf.history_, ax=ax, label=name)
    assert ax is not None
    rows = [
        (
            name,
            f"{crf.history_[-1]['epoch']:.0f}",
            f"{crf.history_[-1]['seconds']:.2f}",
            f"{crf.objective_:.8f}",
            _upper(crf),
        )
        for name, crf in runs.items()
    ]
    return Section(
        "How near the optimum",
        [
            "The objective is convex and its dual is known, so that the distance to the optimum is bounded at any "
            "time, whatever the solver. Dual ascent visits one word at a time, and its bound is the duality gap "
            "P(w) − D(mu). L-BFGS computes the gradient over all words, and its bound is |gradient|² / (2 l2). The two "
            "solvers end at the same objective, to the sum of their bounds.",
        ],
        [Table(("solver", "passes over the words", "seconds", "objective P(w)", "P(w) − P* at most"), rows)],
        pictures=[
            (
                plotting.save(ax.figure, output / "gap.png"),
                "The bound on the distance to the optimum against seconds, compilation not counted.",
            )
        ],
    )


def grammar(found: Study, output: Path) -> Section:
    """The transitions that were learned, beside those that made the words."""
    chain = found.chain
    weights = chain.weights_[-len(chain.classes_) :]
    fig, (left, right) = plotting.figure(1, 2, width=9.6, height=4.0)
    pictures.transitions(weights, classes=chain.classes_, ax=left, title="weights that were learned")
    pictures.transitions(digit_words.GRAMMAR, ax=right, title="the grammar: probabilities", signed=False)
    best = [f"{j} to {k} ({weight:+.2f})" for j, k, weight in chain.transitions()[:5]]
    return Section(
        "The grammar it found",
        [
            "The weight of a pair of neighbouring digits. The five largest in absolute value: " + ", ".join(best) + ".",
        ],
        pictures=[
            (
                plotting.save(fig, output / "transitions.png"),
                "Left: the weights of transitions. Right: the probabilities that made the words.",
            )
        ],
    )


def accuracy(right: Sequence[np.ndarray]) -> str:
    """The percentage that is right, with its standard error over words, which are independent; tokens are not.

    >>> import numpy as np
    >>> accuracy([np.array([True, True]), np.array([True, False])] * 50)
    '75.0 ± 2.5'
    """
    hits, lengths = np.array([word.sum() for word in right]), np.array([len(word) for word in right])
    share = hits.sum() / lengths.sum()
    error = np.sqrt(np.sum((hits - share * lengths) ** 2)) / lengths.sum()
    return with_error(100 * float(share), 100 * float(error))


def _telling(found: Study) -> int:
    """The test word, short enough for a picture, in which the chain gains most over single digits."""
    gains = [
        int(chain.sum() - alone.sum()) if len(chain) <= _SHOWN else -len(chain)
        for chain, alone in zip(found.right[_CHAIN], found.right[_ALONE], strict=True)
    ]
    return int(np.argmax(gains))


def _upper(crf: ChainCRF) -> str:
    return "not certified" if crf.certificate_ is None else f"{crf.certificate_.upper:.2g}"


def _singly(sequences: Sequence[np.ndarray]) -> list[Any]:
    return [token[None] for sequence in sequences for token in sequence]
