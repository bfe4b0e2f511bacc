"""Chunks and scores against conlleval: special cases by hand, tables it printed, its definition by enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumulant.sequences.evaluation import (
    Chunk,
    ChunkCounts,
    ChunkScores,
    chunk_scores,
    chunks,
    confusion,
    token_accuracy,
)

SCHEMES = {"IOB1": "BI", "IOB2": "BI", "IOE1": "IE", "IOE2": "IE", "IOBES": "BIES"}


@pytest.mark.parametrize(
    ("labels", "scheme", "expected"),
    [
        ("O O", "IOB2", []),
        ("", "IOB2", []),
        ("B-NP I-NP O", "IOB2", ["NP 0 2"]),
        ("B-NP B-NP", "IOB2", ["NP 0 1", "NP 1 2"]),
        ("O I-NP I-NP", "IOB2", ["NP 1 3"]),  # I after O begins a chunk
        ("I-NP", "IOB2", ["NP 0 1"]),
        ("B-NP I-VP I-VP", "IOB2", ["NP 0 1", "VP 1 3"]),  # I of another type begins a chunk
        ("I-NP I-VP I-NP", "IOB2", ["NP 0 1", "VP 1 2", "NP 2 3"]),
        ("B-NP O I-NP", "IOB2", ["NP 0 1", "NP 2 3"]),
        ("I-NP I-NP B-NP I-NP", "IOB1", ["NP 0 2", "NP 2 4"]),
        ("I-NP E-NP I-NP O", "IOE1", ["NP 0 2", "NP 2 3"]),
        ("I-NP E-NP E-NP", "IOE2", ["NP 0 2", "NP 2 3"]),
        ("E-NP E-VP", "IOE2", ["NP 0 1", "VP 1 2"]),
        ("I-NP I-NP O", "IOE2", ["NP 0 2"]),  # never closed, a chunk nevertheless
        ("B-NP I-NP E-NP S-NP S-NP O", "IOBES", ["NP 0 3", "NP 3 4", "NP 4 5"]),
        ("B-NP E-NP B-NP", "IOBES", ["NP 0 2", "NP 2 3"]),
        ("S-NP I-NP E-NP", "IOBES", ["NP 0 1", "NP 1 3"]),
        ("B-NP I-VP E-VP", "IOBES", ["NP 0 1", "VP 1 3"]),
        ("B-NP-SBJ I-NP-SBJ I-NP", "IOB2", ["NP-SBJ 0 2", "NP 2 3"]),  # the type may have hyphens
        ("B I O I", "IOB2", [" 0 2", " 3 4"]),  # and may be missing
    ],
)
def test_special_cases(labels, scheme, expected):
    found = [f"{chunk.type} {chunk.start} {chunk.end}" for chunk in chunks(labels.split(), scheme)]
    assert found == expected


def test_labels_outside_the_scheme_are_refused():
    with pytest.raises(ValueError, match="scheme must be one of 'IOB1', 'IOB2', 'IOE1', 'IOE2', 'IOBES'; got 'BIO'"):
        chunks(["O"], "BIO")
    with pytest.raises(ValueError, match="scheme must be one of"):
        chunk_scores([["O"]], [["O"]], scheme="iob2")
    for label in ("NN", "E-NP", "", "-NP", "BI-NP", "O-NP"):
        message = f"must be of the scheme IOB2, which has O, B-type, I-type; got '{label}'"
        with pytest.raises(ValueError, match=f"labels {message}"):
            chunks(["O", label])
        with pytest.raises(ValueError, match=f"y_pred {message}"):
            chunk_scores([["O"]], [[label]])
    with pytest.raises(TypeError, match="labels must be a sequence of labels; got the string 'B-NP'"):
        chunks("B-NP")


def test_scores_by_hand():
    y_true = [["B-NP", "I-NP", "B-VP", "B-NP"], ["O", "B-PP", "O"]]
    y_pred = [["B-NP", "I-NP", "I-VP", "I-VP"], ["B-PP", "I-PP", "B-NP"]]
    # True: NP 0-1, VP 2, NP 3; PP 1. Predicted: NP 0-1, VP 2-3; PP 0-1, NP 2. Only the first NP is right.
    scores = chunk_scores(y_true, y_pred)
    assert scores.counts == (4, 4, 1)
    assert scores.by_type == {"NP": (2, 2, 1), "PP": (1, 1, 0), "VP": (1, 1, 0)}
    assert list(scores.by_type) == ["NP", "PP", "VP"]
    assert (scores.precision, scores.recall, scores.f1) == (0.25, 0.25, 0.25)
    assert scores.accuracy == 2 / 7
    assert scores.by_type["NP"].f1 == 0.5
    assert scores.by_type["PP"].f1 == 0.0


def test_the_example_of_the_shared_task():
    """The sample output on the page of the CoNLL-2000 shared task; its percentages determine these counts."""
    by_type = {
        "ADJP": ChunkCounts(6, 1, 0),
        "ADVP": ChunkCounts(8, 11, 5),
        "NP": ChunkCounts(262, 317, 206),
        "PP": ChunkCounts(90, 107, 89),
        "SBAR": ChunkCounts(6, 3, 2),
        "VP": ChunkCounts(87, 100, 69),
    }
    total = ChunkCounts(*np.sum(list(by_type.values()), axis=0).tolist())
    assert total == (459, 539, 371)
    assert str(ChunkScores(total, by_type, 961, 838)) == SHARED_TASK


SHARED_TASK = """\
processed 961 tokens with 459 phrases; found: 539 phrases; correct: 371.
accuracy:  87.20%; precision:  68.83%; recall:  80.83%; FB1:  74.35
             ADJP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
             ADVP: precision:  45.45%; recall:  62.50%; FB1:  52.63  11
               NP: precision:  64.98%; recall:  78.63%; FB1:  71.16  317
               PP: precision:  83.18%; recall:  98.89%; FB1:  90.36  107
             SBAR: precision:  66.67%; recall:  33.33%; FB1:  44.44  3
               VP: precision:  69.00%; recall:  79.31%; FB1:  73.80  100"""


def test_a_table_that_conlleval_printed():
    """The answer of conlleval (version of 2004) to the same labels, with types that one side lacks."""
    y_true = [["B-NP", "I-NP", "O", "I-VP", "B-PP"], ["I-NP", "B-NP", "I-VP", "I-NP-SBJ", "O", "O"], ["B-PP", "O"]]
    y_pred = [["B-NP", "I-NP", "O", "B-VP", "I-VP"], ["B-NP", "I-NP", "I-VP", "B-NP-SBJ", "B-ADJP", "O"], ["O", "I-PP"]]
    assert str(chunk_scores(y_true, y_pred)) == CONLLEVAL


CONLLEVAL = """\
processed 13 tokens with 8 phrases; found: 7 phrases; correct: 3.
accuracy:  38.46%; precision:  42.86%; recall:  37.50%; FB1:  40.00
             ADJP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
               NP: precision:  50.00%; recall:  33.33%; FB1:  40.00  2
           NP-SBJ: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
               PP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
               VP: precision:  50.00%; recall:  50.00%; FB1:  50.00  2"""


def test_nothing_found_and_nothing_to_find():
    nothing = chunk_scores([["O", "O"]], [["O", "O"]])
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.accuracy) == (0.0, 0.0, 0.0, 1.0)
    assert nothing.by_type == {}
    missed = chunk_scores([["B-NP", "O"]], [["O", "O"]])
    assert missed.by_type == {"NP": (1, 0, 0)}
    assert (missed.precision, missed.recall, missed.f1) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("function", [token_accuracy, chunk_scores, confusion])
def test_sequences_that_do_not_belong_together_are_refused(function):
    with pytest.raises(ValueError, match="y_true has 1 sequences and y_pred has 2"):
        function([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="sequence 1 has 2 labels in y_true and 1 in y_pred"):
        function([["O"], ["O", "O"]], [["O"], ["O"]])
    for empty in ([], [[]]):
        with pytest.raises(ValueError, match="have no tokens: there is nothing to compare"):
            function(empty, empty)
    with pytest.raises(TypeError, match="y_true must be a list of sequences of labels; sequence 0 is 'O'"):
        function(["O", "O"], ["O", "O"])
    with pytest.raises(TypeError, match="y_pred must be a list of sequences of labels; sequence 0 is 3"):
        function([["O"]], [3])
    with pytest.raises(TypeError, match="the labels of y_pred must be strings; label 1 of sequence 0 is 3"):
        function([["O", "O"]], [["O", 3]])


def test_arrays_tuples_and_generators_are_sequences_too():
    y_true = (np.array(labels) for labels in (["B-NP", "O"], ["O"]))
    assert token_accuracy(y_true, [("B-NP", "O"), ("B-NP",)]) == 2 / 3
    labels, matrix = confusion([np.array(["b", "a"])], [["a", "a"]])
    assert labels == ["a", "b"]
    assert all(type(label) is str for label in labels)
    np.testing.assert_array_equal(matrix, [[1, 0], [1, 0]])


def test_the_table_of_a_confusion():
    table = confusion([["B-NP", "O", "O"]], [["B-NP", "B-NP", "O"]])
    assert str(table) == (
        "true \\ predicted  B-NP  O\n"
        "            B-NP     1  0\n"
        "               O     1  1"
    )  # fmt: skip


def labelled(scheme, types=("NP", "VP", "X-Y")):
    return st.sampled_from(["O", *(f"{prefix}-{type_}" for prefix in SCHEMES[scheme] for type_ in types)])


# The pairs of prefixes between which conlleval ends a chunk, and begins one, when both tokens have the same type.
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
BEGINS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}


def spans(labels):
    """Every (type, start, end) that begins at a beginning, ends at the next end, and has neither within."""
    tokens = [("O", ""), *((label + "-").split("-", 1) for label in labels), ("O", "")]
    tokens = [(prefix, type_.removesuffix("-")) for prefix, type_ in tokens]

    def begins(t):  # between tokens t - 1 and t
        (before, type_before), (prefix, type_) = tokens[t - 1], tokens[t]
        return before + prefix in BEGINS or (prefix != "O" and type_ != type_before)

    def ends(t):
        (before, type_before), (prefix, type_) = tokens[t - 1], tokens[t]
        return before + prefix in ENDS or (before != "O" and type_ != type_before)

    found = []
    for start in range(1, len(labels) + 1):
        for end in range(start + 1, len(labels) + 2):
            if begins(start) and ends(end) and not any(begins(t) or ends(t) for t in range(start + 1, end)):
                found.append(Chunk(tokens[start][1], start - 1, end - 1))
    return found


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOE1", "IOE2"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_rules_of_conlleval_by_enumeration(scheme, data):
    pairs = st.lists(st.tuples(labelled(scheme), labelled(scheme)), max_size=8)
    corpus = data.draw(st.lists(pairs, min_size=1, max_size=4).filter(any))
    y_true = [[label for label, _ in sequence] for sequence in corpus]
    y_pred = [[guess for _, guess in sequence] for sequence in corpus]
    there = [(i, chunk) for i, labels in enumerate(y_true) for chunk in spans(labels)]
    said = [(i, chunk) for i, labels in enumerate(y_pred) for chunk in spans(labels)]
    for y, expected in ((y_true, there), (y_pred, said)):
        assert [(i, chunk) for i, labels in enumerate(y) for chunk in chunks(labels, scheme)] == expected
    scores = chunk_scores(y_true, y_pred, scheme)
    right = [chunk for chunk in said if chunk in there]
    assert scores.counts == (len(there), len(said), len(right))
    for type_ in {chunk.type for _, chunk in there + said}:
        counts = [sum(chunk.type == type_ for _, chunk in found) for found in (there, said, right)]
        assert scores.by_type[type_] == tuple(counts)
    labels, matrix = confusion(y_true, y_pred)
    flat = [pair for sequence in corpus for pair in sequence]
    expected = [[sum(pair == (a, b) for pair in flat) for b in labels] for a in labels]
    assert labels == sorted({label for pair in flat for label in pair})
    np.testing.assert_array_equal(matrix, expected)
    assert token_accuracy(y_true, y_pred) == scores.accuracy == np.trace(matrix) / matrix.sum()


def encoded(segments, scheme):
    """Labels for segments (type or None, length), by the definition of the scheme."""
    labels = []
    for i, (type_, length) in enumerate(segments):
        if type_ is None:
            labels += ["O"] * length
            continue
        prefixes = ["I"] * length
        follows = i > 0 and segments[i - 1][0] == type_
        precedes = i + 1 < len(segments) and segments[i + 1][0] == type_
        if scheme in ("IOB2", "IOBES") or (scheme == "IOB1" and follows):
            prefixes[0] = "B"
        if scheme in ("IOE2", "IOBES") or (scheme == "IOE1" and precedes):
            prefixes[-1] = "E"
        if scheme == "IOBES" and length == 1:
            prefixes = ["S"]
        labels += [f"{prefix}-{type_}" for prefix in prefixes]
    return labels


@pytest.mark.parametrize("scheme", SCHEMES)
@settings(max_examples=100, deadline=None)
@given(segments=st.lists(st.tuples(st.sampled_from([None, "NP", "VP"]), st.integers(1, 3)), max_size=6))
def test_every_scheme_gives_back_the_chunks_it_was_made_from(scheme, segments):
    ends = np.cumsum([length for _, length in segments], dtype=int).tolist()
    expected = [Chunk(t, end - n, end) for (t, n), end in zip(segments, ends, strict=True) if t is not None]
    assert chunks(encoded(segments, scheme), scheme) == expected
