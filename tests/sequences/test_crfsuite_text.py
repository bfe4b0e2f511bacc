"""CRFsuite's text format: an exact round trip, the reading of CRFsuite itself, and refusals that name the line."""

import io
import math
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cumulant.errors import FileFormatError
from cumulant.sequences.data.crfsuite_text import read_crfsuite, write_crfsuite

QUICK = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, text):
    path = tmp_path / "data.crfsuite"
    path.write_bytes(text.encode())
    return read_crfsuite(path)


def test_the_format_by_example(tmp_path):
    X, y = read(
        tmp_path,
        "B-NP\tw[0]=An\tpos[0]=DT\t__BOS__\n"
        "I-NP\tw[0]=10\\:30\tlength:5\tscore:-2.5e-3\n"
        "\n\n"
        "O\n"
        "\\:\tpath=C\\:\\\\x\\y\ttrailing:\n",
    )
    assert X == [
        [{"w[0]=An": 1.0, "pos[0]=DT": 1.0, "__BOS__": 1.0}, {"w[0]=10:30": 1.0, "length": 5.0, "score": -0.0025}],
        [{}, {"path=C:\\x\\y": 1.0, "trailing": 1.0}],
    ]
    assert y == [["B-NP", "I-NP"], ["O", ":"]]


def test_line_ends_tabs_and_repeated_attributes(tmp_path):
    expected = ([[{"a": 3.0, "b": 1.0}, {"c": 1.0}]], [["x", "y"]])
    assert read(tmp_path, "x\ta\tb\ta:2\r\ny\tc\r\n\r\n") == expected
    assert read(tmp_path, "x\ta\t\tb\t\ta\ta\t\ny\tc") == expected, "several tabs count as one"
    assert read(tmp_path, "\ufeffx\ta:3\tb\ny\tc\n") == expected
    assert read(tmp_path, "x\t#a\n#\tb\n") == ([[{"#a": 1.0}, {"b": 1.0}]], [["x", "#"]]), "there are no comments"


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\ta:2\n")))
    assert read_crfsuite("-") == ([[{"a": 2.0}]], [["x"]])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x\ta:x", r"line 3: the attribute 'a:x' must have a finite number after its colon; it has 'x'"),
        ("x\ta:nan", "it has 'nan'"),
        ("x\ta:-inf", "it has '-inf'"),
        ("x\ta:1e999", "it has '1e999'"),
        ("x\ta:1_000", "it has '1_000'"),
        ("x\ta:\u0663", "must have a finite number"),
        ("x\ta:1:2", r"line 3: the attribute 'a:1:2' has two colons"),
        ("x\t:2", "the attribute ':2' has no name"),
        ("\tw=a", "line 3: the line begins with a tab or a blank: its label is missing"),
        ("\t", "its label is missing"),
        (" \ta", "its label is missing"),
        (":\tw=:", r"the label ':' has a colon, and CRFsuite would lose it: write it as '\\:'"),
        ("@bos\ta", "line 3: '@bos' is a declaration that CRFsuite does not know"),
        ("@weight:2", "sequences cannot have weights other than 1; this one declares 2"),
        ("@weight:x", "the declaration @weight must have a finite number"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    with pytest.raises(FileFormatError, match=message):
        read(tmp_path, f"x\ta\n\n{line}\n")


def test_a_weight_of_one_changes_nothing(tmp_path):
    assert read(tmp_path, "@weight:1.0\nx\ta\n") == ([[{"a": 1.0}]], [["x"]])


def test_an_empty_file_and_a_wrong_encoding(tmp_path):
    for text in ("", "\n\n"):
        with pytest.raises(FileFormatError, match=r"data\.crfsuite holds no token"):
            read(tmp_path, text)
    path = tmp_path / "latin.crfsuite"
    path.write_bytes("x\ta\nx\tcafé\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="line 2: byte 0xe9 is not text in utf-8"):
        read_crfsuite(path)
    assert read_crfsuite(path, encoding="latin-1")[0] == [[{"a": 1.0}, {"café": 1.0}]]


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([], [], ValueError, "nothing to write"),
        ([[{}]], [], ValueError, "X has 1 sequences and y has 0"),
        ([[{}], [{}, {}]], [["a"], ["a"]], ValueError, "sequence 1 has 2 tokens in X and 1 labels in y"),
        ([[]], [[]], ValueError, "sequence 0 has no token"),
        ([[{"a": math.nan}]], [["x"]], ValueError, "attribute 'a' of token 0 of sequence 0 must have a finite number"),
        ([[{"a": -math.inf}]], [["x"]], ValueError, "finite number as its value; got -inf"),
        ([[{"a": "1"}]], [["x"]], ValueError, "finite number as its value; got '1'"),
        ([[{"a": None}]], [["x"]], ValueError, "finite number as its value; got None"),
        ([[{"a": 10**400}]], [["x"]], ValueError, "finite number"),
        ([[{"": 1.0}]], [["x"]], ValueError, "is empty or holds a tab"),
        ([[{"a\tb": 1.0}]], [["x"]], ValueError, "holds a tab or the end of a line"),
        ([[["a\n"]]], [["x"]], ValueError, "holds a tab or the end of a line"),
        ([[["a\r"]]], [["x"]], ValueError, "holds a tab or the end of a line"),
        ([[{3: 1.0}]], [["x"]], TypeError, "the attributes of token 0 of sequence 0 must be strings; got 3"),
        ([["abc"]], [["x"]], TypeError, "must be a mapping or a list of names; got the string 'abc'"),
        ([[{}]], [[""]], ValueError, "the label of token 0 of sequence 0 is '': it may not be blank or begin with '@'"),
        ([[{}]], [["@"]], ValueError, "may not be blank or begin with '@'"),
        ([[{}]], [["a\tb"]], ValueError, "the label .* holds a tab"),
        ([[{}]], [[1]], TypeError, "the label of token 0 of sequence 0 must be a string; got 1"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(tmp_path, X, y, error, message):
    with pytest.raises(error, match=message):
        write_crfsuite(tmp_path / "out.crfsuite", X, y)
    assert os.listdir(tmp_path) == []


def test_names_alone_and_numbers_of_other_kinds(tmp_path):
    path = tmp_path / "out.crfsuite"
    X = [[("a", "b", "a"), {"c": 2, "d": np.float32(0.1), "e": True, "f": np.int64(-3)}]]
    write_crfsuite(path, X, [["x", np.str_("y")]])
    assert read_crfsuite(path) == (
        [[{"a": 2.0, "b": 1.0}, {"c": 2.0, "d": float(np.float32(0.1)), "e": 1.0, "f": -3.0}]],
        [["x", "y"]],
    )


name = st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=["Cs"]), min_size=1, max_size=6)
awkward = st.text(st.sampled_from(list("\\:#@ a=é\u2028\ufeff|")), min_size=1, max_size=6)
number = st.floats(allow_nan=False, allow_infinity=False) | st.just(1.0)
item = st.dictionaries(name | awkward, number, max_size=4)
label = (name | awkward).filter(lambda text: text.strip() and not text.startswith("@"))
corpus = st.lists(st.lists(st.tuples(item, label), min_size=1, max_size=4), min_size=1, max_size=4)


@QUICK
@given(corpus)
def test_what_is_written_is_read_back(tmp_path, sequences):
    X = [[attributes for attributes, _ in sequence] for sequence in sequences]
    y = [[tag for _, tag in sequence] for sequence in sequences]
    path = tmp_path / "out.crfsuite"
    write_crfsuite(path, X, y)
    back, labels = read_crfsuite(path)
    assert (back, labels) == (X, y)
    # In order, and to the sign of zero.
    assert [[list(map(repr, a.items())) for a in s] for s in back] == [
        [list(map(repr, a.items())) for a in s] for s in X
    ]


def by_characters(line):
    """The label and the sums of values of a line, read by characters as CRFsuite does; None where it goes wrong."""
    fields, at = [], 0
    while at < len(line):
        if line[at] == "\t":
            at += 1
            continue
        parts = [""]
        while at < len(line) and line[at] != "\t":
            if line[at] == ":":
                parts.append("")
            elif line[at] == "\\" and line[at + 1 : at + 2] in ("\\", ":"):
                at += 1
                parts[-1] += line[at]
            else:
                parts[-1] += line[at]
            at += 1
        fields.append(parts)
    if line.startswith("\t") or len(fields[0]) > 1:
        return None
    sums = {}
    for attribute, *values in fields[1:]:
        value = values[0] if values else ""
        if not attribute or len(values) > 1 or (value and not value.isdigit()):
            return None
        sums[attribute] = sums.get(attribute, 0.0) + float(value or 1)
    return fields[0][0], sums


@QUICK
@given(st.lists(st.text(st.sampled_from(list("aaa\\:\t2")), min_size=1, max_size=14), min_size=1, max_size=3))
def test_a_file_is_read_as_crfsuite_does_or_refused_where_that_goes_wrong(tmp_path, lines):
    expected = [by_characters(line) for line in lines]
    text = "\n".join(lines)
    if None in expected:
        with pytest.raises(FileFormatError, match=f"line {expected.index(None) + 1}: "):
            read(tmp_path, text)
    else:
        assert read(tmp_path, text) == ([[sums for _, sums in expected]], [[tag for tag, _ in expected]])
