"""Data, reference optima and runs that the experiments on conditional random fields share.

The handwritten words are read from the folder that CUMULANT_DATA names (``ocr.npz``). The three text tasks of the
thesis need corpora under licence; what stands in for them is a hidden Markov model with a large vocabulary.
"""

import functools
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import optim
from cumulant.plotting import band, figure, legend
from cumulant.sequences import ChainProblem, SequenceData, SequenceDualAscent, SequenceLBFGS
from cumulant.sequences.chain.labelling_kernels import decode
from cumulant.sequences.chain.problem import token_arrays
from cumulant.sequences.solvers.sag import SequenceSAG

LEFT_OUT = "The handwritten words were left out: set CUMULANT_DATA to the folder that holds ocr.npz."
STAND_IN = "Sparse words: a hidden Markov model with 2000 words and window attributes, for corpora under licence."


@dataclass(eq=False)
class Task:
    """A training problem with ``l2 = 1/n`` on one thread, sequences held out, and the minimum of the objective."""

    name: str
    problem: ChainProblem
    test: SequenceData
    precision: float = 1e-11  # of the minimum, relative to the objective

    @property
    def optimum(self) -> float:
        """The minimum, certified to `precision`."""
        return self.best.value

    @functools.cached_property
    def best(self) -> Any:
        """The run of L-BFGS that finds it, with all cores. It starts where SAG has come near."""
        problem = ChainProblem(self.problem.data, self.problem.n_labels)
        near = optim.run(
            SequenceSAG(line_search="skip"), problem, np.zeros(problem.shape), tol=None, max_steps=10, rng=0
        )
        found = optim.run(SequenceLBFGS(), problem, near.x, tol=self.precision, max_steps=2000)
        assert found.status == "converged"
        return found

    def errors(self, w: np.ndarray) -> tuple[float, float]:
        """The part of held-out tokens, and of held-out sequences, that the best labelling gets wrong."""
        data, k = self.test, self.problem.n_labels
        tokens, attributes, longest = *data.features.shape, int(data.lengths.max())
        out, origin = np.empty(tokens, dtype=np.int64), np.zeros((longest, k), dtype=np.int32)
        room = np.empty((longest, k)), np.empty((2, k)), origin
        decode(w, attributes, self.problem.bias, *token_arrays(data), data.offsets, 0, len(data), out, *room)
        wrong = out != data.labels
        return float(wrong.mean()), float(np.mean([part.any() for part in data.split(wrong)]))


def folder(name: str = "ocr.npz") -> Path | None:
    """The folder with the data, if it holds this file."""
    given = os.environ.get("CUMULANT_DATA")
    return Path(given) if given and (Path(given) / name).exists() else None


@functools.cache
def ocr(words: int | None, held_out: int = 9) -> Task:
    """The first words of the handwritten data with a fold held out; or all of them, as in the thesis."""
    where = folder()
    assert where is not None
    with np.load(where / "ocr.npz") as file:
        pixels = np.unpackbits(file["x_bits"], axis=1).astype(np.float64)
        whole, fold = SequenceData(pixels, file["offsets"], file["y"]), file["fold"]
    training = np.flatnonzero(fold != held_out)
    precision = 1e-11 if words else 1e-7  # runs on all words do not come nearer than 1e-4
    return _task("handwritten words", whole[training[:words]], whole[fold == held_out], 26, precision)


@functools.cache
def sparse_words(sequences: int = 400) -> Task:
    """Sequences of a hidden Markov model: 9 states, 2000 words, attributes for the word and both its neighbours."""
    rng, k, v = np.random.default_rng(0), 9, 2000
    moves = rng.dirichlet(np.full(k, 0.5), size=k)
    first = rng.dirichlet(np.ones(k))
    words = np.array([np.arange(1, v + 1) ** -1.1 * np.exp(1.5 * rng.normal(size=v)) for _ in range(k)])
    words /= words.sum(axis=1, keepdims=True)
    attributes, labels, lengths = [], [], []
    for _ in range(600):
        length = int(rng.integers(5, 21))
        states, drawn = [], []
        for t in range(length):
            states.append(int(rng.choice(k, p=first if t == 0 else moves[states[-1]])))
            drawn.append(int(rng.choice(v, p=words[states[-1]])))
        before = [3 * v, *(v + word for word in drawn[:-1])]
        after = [*(2 * v + word for word in drawn[1:]), 3 * v + 1]
        attributes += list(zip(drawn, before, after, strict=True))
        labels += states
        lengths.append(length)
    from scipy import sparse

    tokens = len(labels)
    matrix = sparse.csr_matrix(
        (np.ones(3 * tokens), np.sort(np.array(attributes), axis=1).ravel(), 3 * np.arange(tokens + 1)),
        shape=(tokens, 3 * v + 2),
    )
    whole = SequenceData(matrix, np.concatenate([[0], np.cumsum(lengths)]), np.array(labels))
    return _task("sparse words", whole[:sequences], whole[400:], k)


@functools.cache
def chunking(sentences: int) -> Task:
    """The first sentences of the chunking data, with the attributes that occur in them; 200 others held out."""
    data = conll()
    assert data is not None
    train, test = data[:sentences], data[-200:]
    known = np.unique(train.features.indices)
    return _task(
        "chunking",
        SequenceData(train.features[:, known], train.offsets, train.labels),
        SequenceData(test.features[:, known], test.offsets, test.labels),
        int(data.labels.max()) + 1,
    )


def conll() -> SequenceData | None:
    """The sentences of CoNLL-2000 at hand, if any."""
    where = folder("conll2000_chunking.npz")
    if where is None:
        return None
    with np.load(where / "conll2000_chunking.npz") as file:
        return SequenceData.from_attributes(file["x"], file["offsets"], file["y"])


def _task(name, train, test, labels, precision=1e-11):
    return Task(name, ChainProblem(train, labels, n_jobs=1), test, precision)


def tasks(quick: bool = False, whole: bool = False) -> list[Task]:
    """The sparse task, and 1000 handwritten words where they are at hand; small ones for the tests.

    With `whole`, chunking and all 6,202 words.
    """
    found = [sparse_words(60 if quick else 400)]
    if whole and folder("conll2000_chunking.npz") is not None:
        found.append(chunking(30 if quick else 250))
    if folder() is not None:
        found.append(ocr(60 if quick else None if whole else 1000))
    return found


def notes(*more: str) -> str:
    """What the reader has to know of the data."""
    return " ".join([STAND_IN, *([] if folder() is not None else [LEFT_OUT]), *more])


def dual_ascent(sampling: str = "gap", nonuniformity: float = 0.8, **settings: Any) -> SequenceDualAscent:
    """The algorithm as the thesis runs it: one block, Newton's line search at every update, an epoch a step."""
    fixed = {
        "straightness": 0.0,
        "start": ("mixture", 0.01),
        "max_epochs": 1,
    }  # of a step: the first is always made, no other
    return SequenceDualAscent(sampling, nonuniformity, **(fixed | settings))


def draw_decades(curves: dict[str, dict[str, np.ndarray]], styles: Iterable[str] = "-------", **options: Any) -> Any:
    """For each task, the mean over seeds of `decades` by epoch with the range, a line for each name."""
    fig, axes = figure(1, len(curves), squeeze=False)
    for ax, (task, found) in zip(axes[0], curves.items(), strict=True):
        for style, (name, values) in zip(styles, found.items(), strict=False):
            epochs = np.arange(values.shape[1])
            ax.plot(epochs, values.mean(axis=0), style, label=name)
            band(ax, epochs, values.min(axis=0), values.max(axis=0))
        ax.set(xlabel="epochs", title=task)
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, loc="lower left", **options)
    axes[0, 0].set_ylabel("$\\log_{10}\\,(P(w) - P^*)$")
    return fig


def follow(
    solver: Any, problem: ChainProblem, epochs: int, seed: int, look: Callable[[np.ndarray], dict] | None = None
) -> dict[str, np.ndarray]:
    """What the solver measures before and after each epoch, with the processor time of the epochs alone.

    Processor time: other work on the machine would otherwise decide who is first.
    """
    state = solver.init(problem, np.zeros(problem.shape), seed)
    rows, seconds = [], 0.0
    for epoch in range(epochs + 1):
        if epoch:
            begin = time.thread_time()
            state = solver.step(problem, state)
            seconds += time.thread_time() - begin
        row = solver.measure(problem, state) | {"epoch": float(epoch), "seconds": seconds}
        rows.append(row | (look(solver.solution(problem, state)) if look else {}))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def many(
    runs: dict[Any, Any], task: Task, epochs: int, seeds: range, look: Callable[[np.ndarray], dict] | None = None
) -> dict[Any, dict[str, np.ndarray]]:
    """`follow` every solver from every seed, side by side: columns ``(seeds, epochs + 1)`` for each."""
    for solver in runs.values():  # compiled before anything is timed
        follow(solver, ChainProblem(task.problem.data[:2], task.problem.n_labels, n_jobs=1), 1, 0)
    jobs = [(name, seed) for name in runs for seed in seeds]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda job: follow(runs[job[0]], task.problem, epochs, job[1], look), jobs))
    out = {}
    for name in runs:
        own = [columns for (which, _), columns in zip(jobs, found, strict=True) if which == name]
        out[name] = {column: np.array([columns[column] for columns in own]) for column in own[0]}
    return out


def decades(values: np.ndarray, task: Task) -> np.ndarray:
    """``log10(P(w) - P*)``, down to the rounding of the optimum."""
    return np.log10(np.maximum(values - task.optimum, 1e-12))
