"""On-line logistic regression with an l1 penalty: mistakes against two peers, and the cost of a row.

Every learner predicts a row and then learns it, once over the stream; what counts is the number of rows whose more
probable class was wrong, the mean over the seeds. `OnlineL1Logistic` runs with its defaults everywhere. Each peer runs
over a grid of its settings and counts with the best of them on each stream, chosen with hindsight:

* scikit-learn ``SGDClassifier(loss="log_loss", penalty="l1")``: ``optimal`` steps, three ``alpha``; six constant steps;
* Vowpal Wabbit ``--loss_function logistic --l1``: five learning rates of its adaptive updates, two ``--l1``.

Streams: Spambase standardised and as normalised logarithms, in three seeded orders; three seeded synthetic streams of
2,500 messages; and with ``CUMULANT_LARGE=1`` a synthetic stream of the published size, 92,189 messages and 823,470
words (the peers then have a smaller grid, and SGDClassifier, whose call costs the time of all features, learns 50 rows
after predicting 50). The cost of a row is measured against the number of features and of entries.
"""

import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import SGDClassifier

from benchmarks.timing import Row
from cumulant.experiments.spam_stream import large_stream, small_stream, spambase, unit_rows
from cumulant.glm import OnlineL1Logistic, prequential

_SEEDS = (0, 1, 2)
_SGD = [{"learning_rate": "optimal", "alpha": alpha} for alpha in (1e-6, 1e-5, 1e-4)] + [
    {"learning_rate": "constant", "eta0": eta, "alpha": 1e-6} for eta in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
]
_WABBIT = [(rate, l1) for rate in (0.5, 1.0, 2.0, 4.0, 8.0) for l1 in (1e-7, 1e-5)]


def run() -> list[Row]:
    cost()
    rows = []
    for name, streams in tasks().items():
        mine = [learn(X, y)[0] for X, y in streams]
        for peer, theirs in (("SGDClassifier l1", best_sgd(streams)), ("Vowpal Wabbit l1", best_wabbit(streams))):
            if theirs is not None:
                rows.append(row(name, peer, mine, *theirs))
    if os.environ.get("CUMULANT_LARGE"):
        rows += published_size()
    else:
        print("online_l1: the stream of the published size left out; set CUMULANT_LARGE=1")
    return rows


def row(name, peer, mine, theirs, settings) -> Row:
    """Mistakes, printed; as a row of the table the ratio theirs / ours, with bar 1."""
    ratios = np.array(theirs) / np.maximum(mine, 1)
    print(f"{name:34s} ours {np.mean(mine):8.1f} mistakes, {peer} {np.mean(theirs):8.1f} ({settings})", flush=True)
    ratio = float(np.mean(theirs) / max(np.mean(mine), 1e-9))
    # The table of all benchmarks has columns of times: mistakes stand there in thousands.
    found = Row(
        f"mistakes, {name}", peer, float(np.mean(mine)) / 1e3, float(np.mean(theirs)) / 1e3, ratio,
        (float(ratios.min()), float(ratios.max())), 1.0,
    )  # fmt: skip
    print(f"  ratio x{ratio:.3f} [{ratios.min():.2f}, {ratios.max():.2f}] {'reached' if found.reached else 'MISSED'}")
    return found


def tasks():
    found = {"synthetic, 2,500 messages": [small_stream(seed) for seed in _SEEDS]}
    folder = os.environ.get("CUMULANT_DATA")
    if folder and (Path(folder) / "spambase.npz").exists():
        found["Spambase, standardised"] = [spambase(seed, "standardised") for seed in _SEEDS]
        logarithms = [spambase(seed, "logarithms") for seed in _SEEDS]
        found["Spambase, logarithms"] = [(unit_rows(X), spam) for X, spam in logarithms]
    else:
        print("online_l1: Spambase left out; set CUMULANT_DATA to the folder with spambase.npz")
    return found


def learn(X, y):
    start = time.perf_counter()
    model = OnlineL1Logistic()
    table = prequential(model, (X, y))
    return table.mistakes, time.perf_counter() - start, table, model


def best_sgd(streams, grid=_SGD, batch=1):
    results = []
    for settings in grid:
        mistakes = []
        for X, y in streams:
            model = SGDClassifier(loss="log_loss", penalty="l1", random_state=0, **settings)
            mistakes.append(_sgd_mistakes(model, X, y, batch))
        results.append((float(np.mean(mistakes)), mistakes, settings))
    return min(results, key=lambda found: found[0])[1:]


def _sgd_mistakes(model, X, y, batch):
    wrong = 0
    for i in range(0, len(y), batch):
        rows, labels = X[i : i + batch], y[i : i + batch]
        # Scores from the arrays themselves: `predict` checks its input, which would be most of the time.
        scores = np.asarray(rows @ model.coef_[0]) + model.intercept_[0] if i else np.zeros(len(labels))
        wrong += int(np.sum((scores > 0) != labels))
        model.partial_fit(rows, labels, classes=[False, True])
    return wrong


def best_wabbit(streams, grid=_WABBIT, bits=18):
    try:
        import vowpalwabbit
    except ModuleNotFoundError:
        print("online_l1: Vowpal Wabbit left out; pip install vowpalwabbit")
        return None
    texts = [lines(X, y) for X, y in streams]
    results = []
    for rate, l1 in grid:
        arguments = f"--loss_function logistic --quiet -b {bits} -l {rate} --l1 {l1}"
        mistakes = []
        for text, (_, y) in zip(texts, streams, strict=True):
            learner, wrong = vowpalwabbit.Workspace(arguments), 0
            for line, label in zip(text, y, strict=True):
                example = learner.example(line)
                learner.learn(example)  # the prediction it keeps is that from before the update
                wrong += (example.get_simplelabel_prediction() > 0) != label
                learner.finish_example(example)
            learner.finish()
            mistakes.append(int(wrong))
        results.append((float(np.mean(mistakes)), mistakes, f"-l {rate} --l1 {l1}"))
    return min(results, key=lambda found: found[0])[1:]


def lines(X, y):
    spans = zip(X.indptr[:-1], X.indptr[1:], y, strict=True)
    entries = [f"{j}:{v:.8g}" for j, v in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    return [f"{1 if label else -1} | " + " ".join(entries[a:b]) for a, b, label in spans]


def published_size() -> list[Row]:
    X, y = large_stream(0)
    print(
        f"published size: {X.shape[0]} messages, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} distinct words a message"
    )
    learn(X[:10], y[:10])
    mistakes, seconds, table, model = learn(X, y)
    print(table)
    print(
        f"  {seconds:.1f} s end to end, {model._state.n_bytes / 1e6:.0f} MB of state, {model.diagnostics()}", flush=True
    )
    pruned = model.prune(0.43, X)
    print(f"  pruning 43 %: {pruned}")
    found, name = [], "published size"
    wabbit = best_wabbit([(X, y)], [(rate, 1e-7) for rate in (0.5, 2.0, 8.0)], bits=20)
    if wabbit is not None:
        found.append(row(name, "Vowpal Wabbit l1", [mistakes], *wabbit))
    if os.environ["CUMULANT_LARGE"] != "wabbit":
        sgd = best_sgd([(X, y)], [_SGD[1], _SGD[7]], batch=50)
        found.append(row(name, "SGDClassifier l1", [mistakes], *sgd))
    return found


def cost():
    """Microseconds a row, by the number of features and of entries, early (steps and blocks that see all) and later."""
    rng = np.random.default_rng(0)
    print("cost of a row: features, entries -> rows 1-2,000 and rows 8,001-10,000, in microseconds")
    for features, entries in ((10_000, 100), (100_000, 100), (1_000_000, 100), (100_000, 30), (100_000, 300)):
        n = 10_000
        columns = rng.integers(0, features, (n, entries))
        columns.sort(axis=1)
        X = sp.csr_matrix(
            (np.full(n * entries, entries**-0.5), columns.ravel(), np.arange(0, n * entries + 1, entries))
        )
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(n, features))
        X.sum_duplicates()
        y = rng.random(n) < 0.5
        model, times = OnlineL1Logistic(), []
        model.partial_fit(X[:1], y[:1], classes=[False, True])
        for first in range(0, n, 2000):
            part = X[first : first + 2000], y[first : first + 2000]
            start = time.perf_counter()
            model.partial_fit(*part)
            times.append((time.perf_counter() - start) / 2000)
        print(f"  {features:9,d} {entries:4d} -> {1e6 * times[0]:8.1f} {1e6 * times[-1]:8.1f}", flush=True)


if __name__ == "__main__":
    run()
