"""Topics of 395 items of Reuters: words of topics, held-out perplexity for each number of topics, speed."""

import importlib
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array

from cumulant.admixture import LDA
from cumulant.experiments._crf import folder
from cumulant.experiments.base import Claim, Report, experiment, verdict
from cumulant.plotting import COLOURS, figure, legend

TITLE = "Topics of Reuters news: words, held-out perplexity, speed"
SOURCE = "the example of the Python package lda (Reuters, K = 20); Griffiths and Steyvers (2004)"

# The first words of some topics that the documentation of the package prints, for K = 20 and another sampler.
_PRINTED = (
    ("elvis", "king", "fans", "presley"),
    ("yeltsin", "russian", "russia", "kremlin"),
    ("pope", "vatican", "paul", "surgery"),
    ("versace", "cunanan", "miami", "police"),
    ("charles", "prince", "diana", "royal"),
    ("mother", "teresa", "heart", "calcutta"),
)
_NOTES = (
    "Every tenth item is held out and its memberships are integrated out, by the left-to-right estimator. Priors are "
    "estimated, one number each, from 0.1. The chain with the larger mean of log p(z, w), of two, is taken. The "
    "vocabulary of the data was made from all items, held-out ones too. The error of a perplexity is that of the "
    "estimator, for these items and this fit; another choice of items, or another chain, changes more. A printed topic "
    "counts as found if three of its four words are among the ten first of one of ours."
)
LEFT_OUT = "There is nothing to run: set CUMULANT_DATA to the folder that holds text/reuters.npz."


class Fitted(NamedTuple):
    """A fit, the perplexity of held-out items with its standard error, R-hat, tokens a second of processor time."""

    model: Any
    perplexity: float
    error: float
    r_hat: float
    speed: float


@experiment
def run(quick: bool, rng: int) -> Report:
    """Numbers of topics from ten to fifty."""
    where = folder("text/reuters.npz")
    if where is None:
        return Report((), None, LEFT_OUT)
    with np.load(where / "text" / "reuters.npz", allow_pickle=False) as file:
        titles, words = file["titles"], file["vocab"]
        shape = len(titles), len(words)
        counts = coo_array((file["count"], (file["doc"], file["word"])), shape).tocsr()
    out = np.arange(len(titles)) % 10 == 0
    train, test = counts[~out], counts[out]
    sweeps = 60 if quick else 500
    found = {k: _fit(k, train, test, sweeps, rng) for k in ((10, 20) if quick else (10, 20, 30, 40, 50))}
    top = found[20].model.top_words(10, words)
    uniform = _unigram(train, test)
    others = "" if quick else _others(train, test, sweeps)
    claims = (_topics(top), _choice(found, uniform), _agreement(found, sweeps), _speed(found, train, others))
    return Report(claims, lambda: _draw(found, uniform), _NOTES)


def _fit(k: int, train: Any, test: Any, sweeps: int, rng: int) -> Fitted:
    model = LDA(k, n_sweeps=sweeps, burn_in=sweeps, n_chains=2, optimise_priors=True, random_state=int(rng), n_jobs=1)
    began = time.process_time()
    model.fit(train)
    seconds = time.process_time() - began
    held = model.log_likelihood(test)
    speed = 2 * 2 * sweeps * float(train.sum()) / seconds
    return Fitted(model, held.perplexity, held.perplexity * held.standard_error, model.result_.r_hat, speed)


def _unigram(train: Any, test: Any) -> float:
    """The perplexity of one distribution of words for all items, with one added to each count."""
    frequencies = np.asarray(train.sum(axis=0)).ravel() + 1.0
    seen = np.asarray(test.sum(axis=0)).ravel()
    return float(np.exp(-(seen @ np.log(frequencies / frequencies.sum())) / seen.sum()))


def _others(train: Any, test: Any, sweeps: int) -> str:
    """Held-out perplexity of the topics of the package lda with K = 20, by our estimator, where it is installed."""
    try:
        other = importlib.import_module("lda")
    except ModuleNotFoundError:
        return "; the package lda is not installed here"
    from cumulant.admixture import Corpus, held_out_likelihood

    began = time.process_time()
    model = other.LDA(n_topics=20, n_iter=2 * sweeps, alpha=0.1, eta=0.1, random_state=0).fit(train.toarray())
    speed = 2 * sweeps * float(train.sum()) / (time.process_time() - began)
    held = held_out_likelihood(Corpus.from_counts(test), model.topic_word_, 0.1)
    return f"; the package lda with priors 0.1, K = 20: perplexity {held.perplexity:.0f}, {speed / 1e6:.1f} million"


def _topics(top: list[list[str]]) -> Claim:
    lines, found = [], 0
    for printed in _PRINTED:
        shared = [len(set(printed) & set(topic)) for topic in top]
        best = int(np.argmax(shared))
        found += shared[best] >= 3
        lines.append(f"{' '.join(printed)}: {shared[best]} of 4 in topic {best} ({' '.join(top[best][:8])})")
    return Claim(
        f"K = 20: the {len(_PRINTED)} topics on single subjects that the package prints are found",
        "; ".join(" ".join(printed) for printed in _PRINTED),
        f"{found} of {len(_PRINTED)}. " + "; ".join(lines),
        verdict(found == len(_PRINTED)),
        item="K = 20",
    )


def _choice(found: dict[int, Fitted], unigram: float) -> Claim:
    listed = ", ".join(f"K = {k} {each.perplexity:.0f} ± {each.error:.1f}" for k, each in found.items())
    best = min(found, key=lambda k: found[k].perplexity)
    return Claim(
        "every number of topics predicts held-out items better than one distribution of words does",
        "our question",
        f"held-out perplexity {listed}; one distribution {unigram:.0f}; best K = {best}",
        verdict(all(each.perplexity < unigram for each in found.values())),
        item="beyond the source",
    )


def _agreement(found: dict[int, Fitted], sweeps: int) -> Claim:
    hats = ", ".join(f"K = {k} {each.r_hat:.2f}" for k, each in found.items())
    return Claim(
        f"two chains of {2 * sweeps} sweeps from random starts agree on log p(z, w) (R-hat below 1.1 for every number "
        "of topics)",
        "our question",
        f"R-hat {hats}; where it is large the topics are those of the mode that one chain is in",
        verdict(max(each.r_hat for each in found.values()) < 1.1),
        item="beyond the source",
    )


def _speed(found: dict[int, Fitted], train: Any, others: str) -> Claim:
    listed = ", ".join(f"K = {k} {each.speed / 1e6:.1f}" for k, each in found.items())
    return Claim(
        "five million tokens a second at least, on one core, estimates of priors and means included",
        "our question",
        f"million tokens a second of processor time: {listed}; {float(train.sum()):.0f} tokens{others}",
        verdict(min(each.speed for each in found.values()) > 5e6),
        item="beyond the source",
    )


def _draw(found: dict[int, Fitted], unigram: float) -> Any:
    fig, (left, right) = figure(1, 2)
    numbers = list(found)
    left.errorbar(
        numbers, [each.perplexity for each in found.values()], yerr=[2 * each.error for each in found.values()],
        marker="o", color=COLOURS[0], label="held-out items",
    )  # fmt: skip
    left.axhline(unigram, color=COLOURS[1], linestyle="--", label="one distribution of words")
    left.set(xlabel="topics", ylabel="perplexity", ylim=(0, None))
    for k, each in found.items():
        for chain, values in enumerate(each.model.result_.log_joint):
            colour = COLOURS[numbers.index(k) % len(COLOURS)]
            right.plot(values / 1e3, color=colour, linewidth=1.0, label=None if chain else f"K = {k}")
    right.set(xlabel="draw", ylabel="log p(z, w) in thousands")
    legend(left)
    legend(right, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
