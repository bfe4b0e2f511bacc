"""Corpora in the formats of LDA-C and UCI, and files that are not."""

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cumulant.admixture import read_ldac, read_uci
from cumulant.errors import FileFormatError

COUNTS = np.random.default_rng(0).poisson(0.7, size=(6, 5))
WORDS = "cat\ndog\nbond\nstock\nfish\n"


def as_ldac(counts):
    rows = [[f"{j}:{n}" for j, n in enumerate(row) if n] for row in counts]
    return "".join(f"{' '.join([str(len(row)), *row])}\n" for row in rows)


def as_uci(counts):
    lines = [f"{d + 1} {j + 1} {counts[d, j]}" for d, j in np.argwhere(counts)]
    return "\n".join([*map(str, counts.shape), str(len(lines)), *lines])


@pytest.mark.parametrize(("read", "write"), [(read_ldac, as_ldac), (read_uci, as_uci)], ids=["ldac", "uci"])
def test_a_corpus_is_read_back(read, write, tmp_path):
    path, names = tmp_path / "corpus.txt.gz", tmp_path / "words.txt"
    path.write_bytes(gzip.compress(write(COUNTS).encode()))
    names.write_text(WORDS)
    corpus = read(path, names)
    assert_array_equal(corpus.counts().toarray(), COUNTS)
    assert corpus.words == tuple(WORDS.split())
    names.write_text("cat\ndog\n")
    with pytest.raises(FileFormatError, match="has 2 words"):
        read(path, names)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_ldac, "2 0:1\n", "line 1: 2 different words are announced and 1 follow"),
        (read_ldac, "0\n1 3\n", "line 2: '3' is not of the form word:count"),
        (read_ldac, "1 0:-2\n", "line 1: '-2' is not a whole number"),
        (read_uci, "2\n3\n", "must begin with three lines"),
        (read_uci, "2\n3\n2\n1 1 1\n", "announces 2 entries and has 1"),
        (read_uci, "2\n3\n1\n1 4 1\n", "line 4: there are 2 documents and 3 words"),
        (read_uci, "2\n3\n1\n1 4\n", "line 4: '1 4' is not of the form document word count"),
        (read_uci, "2\n3\n1\n1 1 x\n", "line 4: 'x' is not a whole number"),
    ],
)
def test_other_files_are_refused(read, text, words, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=words):
        read(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_ldac(tmp_path / "nothing.dat")
