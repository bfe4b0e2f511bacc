"""Column files: what is written is read back, whatever system wrote the file, and bad files are named with the line."""

import gzip
import io
import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cumulant.errors import FileFormatError
from cumulant.sequences.data.conll import read_conll, read_text, write_conll

TWO = [[("London", "JJ", "B-NP"), ("shares", "NNS", "I-NP")], [("At", "IN", "B-PP")]]


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "data.txt"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "London JJ B-NP\nshares NNS I-NP\n\nAt IN B-PP\n\n",
        "London JJ B-NP\nshares NNS I-NP\n\nAt IN B-PP",
        "London\tJJ\tB-NP\r\nshares\tNNS\tI-NP\r\n\r\nAt\tIN\tB-PP\r\n",
        "London JJ B-NP\rshares NNS I-NP\r\rAt IN B-PP\r",
        "\n\n  \t\nLondon  JJ \t B-NP \n shares NNS I-NP\n \n\n\nAt IN B-PP\n\n\n",
        "\ufeffLondon JJ B-NP\nshares NNS I-NP\n\nAt IN B-PP\n",
        "-DOCSTART- -X- O O\n\nLondon JJ B-NP\nshares NNS I-NP\n-DOCSTART- -X- -X- -X- O\nAt IN B-PP\n",
    ],
    ids=["plain", "no newline at the end", "tabs and CRLF", "CR", "blanks", "byte-order mark", "documents"],
)
def test_the_same_sentences_in_many_dresses(tmp_path, text):
    assert read_conll(write(tmp_path, text)) == TWO


def test_standard_input_and_gzip(tmp_path, monkeypatch):
    text = b"London JJ B-NP\nshares NNS I-NP\n\nAt IN B-PP\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert read_conll("-") == TWO
    path = tmp_path / "train.txt.gz"
    path.write_bytes(gzip.compress(text))
    assert read_conll(path) == read_conll(str(path)) == TWO
    path.write_bytes(gzip.compress(text)[:-12])
    with pytest.raises(FileFormatError, match=r"train\.txt\.gz is not a gzipped file, or is cut short"):
        read_conll(path)
    path.write_bytes(text)
    with pytest.raises(FileFormatError, match="not a gzipped file"):
        read_conll(path)


def test_columns_are_picked_by_number(tmp_path):
    path = write(tmp_path, "London JJ B-NP\nshares NNS I-NP\n")
    assert read_conll(path, columns=(0, -1)) == [[("London", "B-NP"), ("shares", "I-NP")]]
    assert read_conll(path, columns=[2]) == [[("B-NP",), ("I-NP",)]]
    with pytest.raises(ValueError, match=r"columns has 3; .*data\.txt has 3 columns, 0 to 2"):
        read_conll(path, columns=(0, 3))
    with pytest.raises(ValueError, match=r"columns has -4"):
        read_conll(path, columns=(-4,))
    for bad in ((), "0"):
        with pytest.raises(ValueError, match="columns must be one or more column numbers"):
            read_conll(path, columns=bad)


def test_a_number_sign_is_a_word_unless_comments_are_asked_for(tmp_path):
    path = write(tmp_path, "# # B-NP\n1.8 CD I-NP\n")  # a pound sterling sign in the CoNLL-2000 files
    assert read_conll(path) == [[("#", "#", "B-NP"), ("1.8", "CD", "I-NP")]]
    path = write(tmp_path, "# sent_id = 1\n# text = They buy\n1\tThey\n2\tbuy\n\n# sent_id = 2\n1\tI\n")
    assert read_conll(path, comment="#") == [[("1", "They"), ("2", "buy")], [("1", "I")]]
    with pytest.raises(ValueError, match="comment must be what comments begin with"):
        read_conll(path, comment="")


def test_only_spaces_and_tabs_are_blanks(tmp_path):
    words = [[("10\u00a0000", "CD"), ("a\u3000b", "NN"), ("c\x85d", "NN"), ("e\u2028f", "NN"), ("g\x0bh", "NN")]]
    path = tmp_path / "data.txt"
    write_conll(path, words)
    assert read_conll(path) == words


def test_a_given_separator_is_exact(tmp_path):
    path = write(tmp_path, "New York\t\tB-LOC\nis\tVBZ\tO\n")
    assert read_conll(path, separator="\t") == [[("New York", "", "B-LOC"), ("is", "VBZ", "O")]]
    with pytest.raises(FileFormatError, match=r"line 2: 2 columns .* has 3"):
        read_conll(write(tmp_path, "a\tb c\nd\te\n"))
    for bad in ("", "\n", 3):
        with pytest.raises(ValueError, match="separator must be a string"):
            read_conll(path, separator=bad)


def test_a_line_with_another_number_of_columns_is_named(tmp_path):
    path = write(tmp_path, "\nLondon JJ B-NP\nshares NNS I-NP\n\nAt IN\n")
    with pytest.raises(
        FileFormatError, match=r"data\.txt, line 5: 2 columns \('At IN'\) where the first token, on line 2, has 3"
    ):
        read_conll(path)
    with pytest.raises(FileFormatError, match=r"line 2: 1 column \('b'\) where .* has 2"):
        read_conll(write(tmp_path, "a O\nb\n"))


@pytest.mark.parametrize("text", ["", "\n\n", " \t \r\n", "-DOCSTART- -X- O O\n\n"])
def test_a_file_without_tokens_is_refused(tmp_path, text):
    with pytest.raises(FileFormatError, match=r"data\.txt holds no token"):
        read_conll(write(tmp_path, text))


def test_the_encoding_is_checked(tmp_path):
    path = write(tmp_path, "un O\ncafé O\n", "latin-1")
    with pytest.raises(FileFormatError, match=r"line 2: byte 0xe9 is not text in utf-8; .*encoding='latin-1'"):
        read_conll(path)
    assert read_conll(path, encoding="latin-1") == [[("un", "O"), ("café", "O")]]
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        read_conll(path, encoding="klingon")
    with pytest.raises(ValueError, match="encoding must be one that Python knows"):
        write_conll(path, TWO, encoding="klingon")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"line 3 has '—', which cannot be written in latin-1; nothing was written"):
        write_conll(path, [[("a", "O")], [("—", "O")]], encoding="latin-1")
    assert path.read_bytes() == before


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nothing\.txt"):
        read_conll(tmp_path / "nothing.txt")


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([], ValueError, "no sentences to write"),
        ([[("a", "O")], []], ValueError, "sentence 1 has no token"),
        ([[("a", "O"), ("b",)]], ValueError, "token 1 of sentence 0 has 1 column, the first one 2"),
        ([[("a", "O"), ("New York", "O")]], ValueError, "token 1 of sentence 0 is .*cannot be read back"),
        ([[("a\tb", "O")]], ValueError, "cannot be read back with spaces and tabs"),
        ([[("a", "")]], ValueError, "cannot be read back"),
        ([[("a\n", "O")]], ValueError, "cannot be read back"),
        ([[("a\r", "O")]], ValueError, "cannot be read back"),
        ([[("-DOCSTART-", "O")]], ValueError, "cannot be read back"),
        ([["ab", "cd"]], TypeError, "token 0 of sentence 0 must be a sequence of strings; got 'ab'"),
        ([[("a", 3)]], TypeError, "must be a sequence of strings"),
        ([[()]], ValueError, "cannot be read back"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, sentences, error, message):
    with pytest.raises(error, match=message):
        write_conll(tmp_path / "out.txt", sentences)
    assert os.listdir(tmp_path) == []


def test_a_separator_within_a_column_is_refused(tmp_path):
    write_conll(tmp_path / "out.txt", [[("New York", "", "O")]], separator="\t")
    assert read_conll(tmp_path / "out.txt", separator="\t") == [[("New York", "", "O")]]
    with pytest.raises(ValueError, match=r"cannot be read back with '\\t' as separator"):
        write_conll(tmp_path / "out.txt", [[("New\tYork", "O")]], separator="\t")
    with pytest.raises(ValueError, match="cannot be read back"):
        write_conll(tmp_path / "out.txt", [[("-DOCSTART- 1", "O")]], separator="\t")
    with pytest.raises(ValueError, match="cannot be read back"):
        write_conll(tmp_path / "out.txt", [[("", " ")]], separator="\t")


column = st.text(st.characters(exclude_characters=" \t\r\n", exclude_categories=["Cs"]), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 3).flatmap(lambda k: st.lists(st.lists(st.tuples(*[column] * k), min_size=1), min_size=1)))
def test_what_is_written_is_read_back(tmp_path, sentences):
    path = tmp_path / "out.txt"
    write_conll(path, sentences)
    assert read_conll(path) == sentences
    write_conll(path, sentences, separator="\t", encoding="utf-16")
    assert read_conll(path, separator="\t", encoding="utf-16") == sentences
    assert "\r" not in read_text(path, "utf-16")
