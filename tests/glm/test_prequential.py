"""Progressive evaluation: the table counts what a plain loop counts."""

import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB

from cumulant.experiments.spam_stream import small_stream
from cumulant.glm import ContingencyTable, OnlineL1Logistic, hashing, prequential


def test_the_published_table_adds_up():
    table = ContingencyTable(39384, 2438, 15, 50352, negative="ham", positive="spam")
    assert table.total == 92189
    assert table.kept + table.false_alarms == 39399
    assert "15  (0.02%)" in str(table)
    with pytest.raises(ValueError, match="does not know"):
        _ = table.accuracy


def test_it_counts_what_a_loop_counts():
    X, y = small_stream(4, rows=300)
    table = prequential(
        OnlineL1Logistic(), ((X[i : i + 70], y[i : i + 70]) for i in range(0, 300, 70)), 0.9, classes=[0, 1]
    )
    model, counts, wrong = OnlineL1Logistic(), np.zeros((2, 2), int), 0
    for i in range(300):
        p = model.predict_proba(X[i])[0, 1] if i else 0.5
        counts[int(p >= 0.9), int(y[i])] += 1
        wrong += (p > 0.5) != y[i]
        model.partial_fit(X[i], y[i : i + 1], classes=[0, 1])
    assert (table.kept, table.missed, table.false_alarms, table.caught) == tuple(counts.ravel())
    assert table.mistakes == wrong
    assert table.accuracy == 1 - wrong / 300
    assert table.curve[-1].tolist() == [300, wrong]
    assert np.all(np.diff(table.curve[:, 0]) > 0)
    assert np.all(np.diff(table.curve[:, 1]) >= 0)


def test_any_streaming_classifier_will_do():
    X, y = small_stream(5, rows=200)
    table = prequential(MultinomialNB(), (X, y), threshold=0.5)
    assert table.total == 200
    assert table.mistakes < 30


def test_texts_are_hashed():
    texts, labels = ["cheap pills", "lunch at noon"] * 30, ["spam", "ham"] * 30
    table = prequential(OnlineL1Logistic(), (texts, labels), vectorizer=hashing(2**10))
    assert (table.negative, table.positive, table.total) == ("ham", "spam", 60)
    assert table.mistakes <= 2
    row = hashing(2**10).transform(texts[:1])
    assert row.shape == (1, 1024)
    assert np.sum(row.data**2) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 1.0}, "threshold must be strictly between"),
        ({"classes": [0, 1, 2]}, "two labels"),
        ({"points": 0}, "points must be"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        prequential(OnlineL1Logistic(), (np.eye(2), [0, 1]), **arguments)
    with pytest.raises(ValueError, match="classes must be given"):
        prequential(OnlineL1Logistic(), iter([]))
    with pytest.raises(ValueError, match="same threshold"):
        ContingencyTable() + ContingencyTable(threshold=0.5)
