"""Chain CRFs against CRFsuite: training to a given sub-optimality, our own certificate, and tagging.

Both sides minimise the same function (``l2 = 1/n``, CRFsuite's ``c2 = 1/2``, all states and transitions possible).
CRFsuite runs L-BFGS, its default, in one process; its time begins with its first iteration, so that generating features
is not counted. Ours is `ChainCRF` with its defaults; evaluations of the objective are counted, compilation is not and
is reported. The data are a folder with `conll2000_chunking.npz` and `ocr.npz`, named by CUMULANT_DATA.
"""

import os
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import Row
from cumulant.sequences import ChainCRF, SequenceData

# The minima, found by L-BFGS to a gradient norm that certifies these digits.
_TASKS = {
    "CoNLL-2000": {"optimum": 1.2812693, "bars": (4.0, 3.0), "certificate": 2.0, "iterations": 90},
    "OCR": {"optimum": 2.4264555734, "bars": (2.0, 1.5), "certificate": None, "iterations": 170},
}
_REPEATS = 3


def run() -> list[Row]:
    folder = os.environ.get("CUMULANT_DATA")
    if not folder or not (Path(folder) / "ocr.npz").exists():
        print("sequences: left out; set CUMULANT_DATA to the folder with conll2000_chunking.npz and ocr.npz")
        return []
    try:
        import pycrfsuite  # noqa: F401
    except ImportError:
        print("sequences: left out; python-crfsuite is not installed: pip install 'cumulant[bench]'")
        return []
    rows = []
    for name, (data, bias) in {"CoNLL-2000": (conll(folder), False), "OCR": (ocr(folder), True)}.items():
        rows += training(name, data, bias)
        rows += tagging(name, data, bias)
    return rows


def conll(folder) -> SequenceData:
    with np.load(Path(folder) / "conll2000_chunking.npz") as file:
        return SequenceData.from_attributes(file["x"], file["offsets"], file["y"])


def ocr(folder) -> SequenceData:
    with np.load(Path(folder) / "ocr.npz") as file:
        pixels = np.unpackbits(file["x_bits"], axis=1).astype(np.float64)
        whole = SequenceData(pixels, file["offsets"], file["y"])
        return whole[file["fold"] != 9]


def training(name, data, bias) -> list[Row]:
    task = _TASKS[name]
    warm = time.perf_counter()
    ChainCRF(bias=bias, tol=1.0).fit(data[:50])
    print(f"{name}: {data}; compilation {time.perf_counter() - warm:.1f} s, not counted", flush=True)
    reached: dict[str, list[tuple[float, float]]] = {"1 %": [], "0.1 %": [], "certificate 1 %": []}
    for _ in range(_REPEATS):
        ours = ChainCRF(bias=bias, tol=8e-4, max_epochs=200).fit(data).history_
        theirs = crfsuite(data, bias, task["iterations"])
        for text, share in (("1 %", 0.01), ("0.1 %", 0.001)):
            target = task["optimum"] * (1 + share)
            reached[text].append((first(ours, lambda r, t=target: r["primal"] <= t), when(theirs, target)))
        certified = first(ours, lambda r: r["gap"] <= 0.01 * r["primal"])
        reached["certificate 1 %"].append((certified, when(theirs, task["optimum"] * 1.01)))
    bars = {"1 %": task["bars"][0], "0.1 %": task["bars"][1], "certificate 1 %": task["certificate"] or 1.0}
    return [row(f"{name}, training to {text}", "CRFsuite", times, bars[text]) for text, times in reached.items()]


def first(history, reached) -> float:
    return next((r["seconds"] for r in history if reached(r)), np.inf)


def when(rows, target) -> float:
    return next((seconds for seconds, value in rows if value <= target), np.inf)


def row(name, peer, times, bar) -> Row:
    mine, its = np.array(times).T
    ratios = its / mine
    line = Row(
        name, peer, float(np.median(mine)), float(np.median(its)), float(np.median(ratios)),
        (float(ratios.min()), float(ratios.max())), bar,
    )  # fmt: skip
    print(line, flush=True)
    return line


def attributes(data, bias):
    """The tokens of each sequence as CRFsuite takes them, with the three biases as attributes of their own."""
    matrix = data.features
    for first_token, last in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        sequence = []
        for t in range(first_token, last):
            token = {str(j): 1.0 for j in matrix.indices[matrix.indptr[t] : matrix.indptr[t + 1]]}
            if bias:
                token |= {"bias": 1.0, **({"first": 1.0} if t == first_token else {})}
                token |= {"last": 1.0} if t == last - 1 else {}
            sequence.append(token)
        yield sequence


def crfsuite(data, bias, iterations, model=None):
    """``(seconds, objective)`` after each iteration of CRFsuite."""
    import pycrfsuite

    rows: list[tuple[float, float]] = []

    class Trainer(pycrfsuite.BaseTrainer):
        def message(self, message):
            if "Loss:" in message:
                rows.append((time.perf_counter(), float(message.split("Loss:")[1].split()[0]) / len(data)))

    trainer = Trainer()
    trainer.select("lbfgs")
    trainer.set_params(
        {
            "c1": 0.0, "c2": 0.5, "feature.possible_states": 1, "feature.possible_transitions": 1,
            "max_iterations": iterations, "epsilon": 1e-9, "delta": 1e-9,
        }
    )  # fmt: skip
    for tokens, labels in zip(attributes(data, bias), data.split(data.labels), strict=True):
        trainer.append(pycrfsuite.ItemSequence(tokens), [str(label) for label in labels])
    trainer.train(str(model or "bench-output.crfsuite"))
    if model is None:
        Path("bench-output.crfsuite").unlink()
    times = np.array([seconds for seconds, _ in rows])
    start = times[0] - np.median(np.diff(times))  # the first iteration is counted, generating features is not
    return [(seconds - start, value) for seconds, value in rows]


def tagging(name, data, bias) -> list[Row]:
    """Viterbi on the training sequences; both sides get their features ready-made."""
    import pycrfsuite

    path = Path("bench-output.crfsuite")
    crfsuite(data, bias, 10, model=path)
    crf = ChainCRF(bias=bias, tol=1e-2, n_jobs=2).fit(data)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    items = [pycrfsuite.ItemSequence(tokens) for tokens in attributes(data, bias)]
    unlabelled = SequenceData(data.features, data.offsets)
    crf.predict(unlabelled)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        crf.predict(unlabelled)
        middle = time.perf_counter()
        for item in items:
            tagger.tag(item)
        times.append((middle - start, time.perf_counter() - middle))
    path.unlink()
    return [row(f"{name}, tagging with two threads", "CRFsuite", times, 3.0)]
