"""A spam filter that learns as it reads: `python examples/spam_stream.py`.

A synthetic stream of messages; each is classified, then learned. The table, the mistakes as they came, the effect of
removing 43 % of the weights, and a filter saved in the middle of the stream that goes on as if nothing had happened.
"""

import tempfile
from pathlib import Path

import numpy as np

from cumulant.experiments.spam_stream import small_stream
from cumulant.glm import OnlineL1Logistic, prequential


def main() -> None:
    """Run the example."""
    X, spam = small_stream(seed=7)
    labels = np.where(spam, "spam", "ham")
    model = OnlineL1Logistic()
    first = prequential(model, (X[:1500], labels[:1500]))
    with tempfile.TemporaryDirectory() as folder:
        path = model.save(Path(folder) / "filter")
        model = OnlineL1Logistic.load(path)
    table = first + prequential(model, (X[1500:], labels[1500:]))
    print(table)
    for seen, wrong in table.curve[:: len(table.curve) // 8]:
        print(f"{seen:6d} messages, {wrong} mistakes")
    print(model.prune(0.43, X))
    print(model.certify(X, labels))


if __name__ == "__main__":
    main()
