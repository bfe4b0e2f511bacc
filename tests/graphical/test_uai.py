"""UAI files: the provided problems, round trips, and files that are broken on purpose."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import FileFormatError
from cumulant.graphical import (
    FactorGraph,
    read_evidence,
    read_result,
    read_uai,
    write_evidence,
    write_result,
    write_uai,
)
from tests.graphical.models import random_model

_SMALL = "MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 0.1 0.9\n 1.0 0.0\n\n6\n 1 2 3\n 4 5 6\n"


def problems():
    folder = os.environ.get("CUMULANT_DATA")
    path = Path(folder) / "uai" if folder else None
    return sorted(path.glob("*.uai")) if path and path.is_dir() else []


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.uai"
    path.write_text(_SMALL)
    return path


@pytest.mark.skipif(not problems(), reason="set CUMULANT_DATA to the folder that has uai/")
@pytest.mark.parametrize("path", problems(), ids=lambda path: path.stem)
def test_provided_problems(path):
    answers = json.loads(path.with_suffix(".json").read_text())
    model = read_uai(path)
    evidence = path.with_suffix(".uai.evid")
    for kind, suffix in ((model, ""), (read_uai(path, evidence) if evidence.exists() else None, "_given_evidence")):
        if kind is not None:
            assert_allclose(kind.log_partition(), answers[f"log_partition{suffix}"], rtol=1e-8, atol=1e-8)
            found = np.concatenate(kind.marginals())
            assert_allclose(found, np.concatenate(answers[f"marginals{suffix}"]), atol=1e-7)


def test_a_file_is_read_with_the_last_variable_fastest(small):
    model = read_uai(small)
    assert_allclose(np.exp(model.factors[1][1]), [[1, 2, 3], [4, 5, 6]])
    assert_allclose(model.log_partition(), np.log(0.1 * 6 + 0.9 * 15 + 1.0 * 6))


def test_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "marked.uai"
    path.write_bytes(b"\xef\xbb\xbfMARKOV\n1\n2\n1\n1 0\n2\n1.0 3.0\n")
    assert_allclose(read_uai(path).log_partition(), np.log(4.0))


def test_models_survive_writing_and_reading(tmp_path):
    for seed in range(30):
        model = random_model(seed)
        write_uai(tmp_path / "model.uai", model)
        again = read_uai(tmp_path / "model.uai")
        assert again.structure == model.structure
        assert_allclose(again.theta, model.theta, rtol=1e-14, atol=1e-14)


def test_bayes_needs_conditional_distributions(tmp_path):
    net = FactorGraph.from_tables([2, 2], [((0,), [0.3, 0.7]), ((0, 1), [[0.2, 0.8], [0.5, 0.5]])])
    write_uai(tmp_path / "net.uai", net, "BAYES")
    assert (tmp_path / "net.uai").read_text().startswith("BAYES\n2\n2 2\n2\n1 0\n2 0 1\n")
    with pytest.raises(ValueError, match="sum to one"):
        write_uai(tmp_path / "x.uai", FactorGraph([2], [((0,), [0.0, 1.0])]), "BAYES")


def test_evidence_in_both_forms(tmp_path):
    path = tmp_path / "e"
    for text, expected in (
        ("2 0 1 3 0", {0: 1, 3: 0}), ("1\n2 0 1 3 0", {0: 1, 3: 0}), ("1 6 0", {6: 0}), ("0", {}), ("1\n0", {}),
    ):  # fmt: skip
        path.write_text(text)
        assert read_evidence(path) == expected
    with pytest.raises(ValueError, match="numbered from 0; got -1 for variable 2"):
        write_evidence(path, {2: -1})  # a spin
    write_evidence(path, {3: 0, 0: 1})
    assert read_evidence(path, [2, 2, 2, 2]) == {0: 1, 3: 0}
    for text, message in (
        ("2 0 1", "2 pairs"), ("1 0 x", "line 1"), ("1\n1\n0 5", "line 3: variable 0 has no state 5"),
        ("1 9 0", "no variable 9"), ("2 0 1\n0 0", "two states"), ("", "the file is empty"), (" \n\n", "0 where"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(FileFormatError, match=message):
            read_evidence(path, [2, 2])


def test_logarithms_that_a_file_cannot_hold_are_refused(tmp_path):
    for log in (710.0, -709.0, -2000.0):
        with pytest.raises(ValueError, match="not a number in a UAI file"):
            write_uai(tmp_path / "x.uai", FactorGraph([2], [((0,), [0.0, log])]))
    write_uai(tmp_path / "x.uai", FactorGraph([2], [((0,), [-708.0, -np.inf])]))
    assert_allclose(read_uai(tmp_path / "x.uai").theta, [-708.0, -np.inf], rtol=1e-15)
    for word, message in (("1e-400", "too small"), ("0.0e5", None), ("-0", None)):
        (tmp_path / "x.uai").write_text(f"MARKOV 1 2 1 1 0 2 {word} 1")
        if message is None:
            assert read_uai(tmp_path / "x.uai").theta[0] == -np.inf
        else:
            with pytest.raises(FileFormatError, match=message):
                read_uai(tmp_path / "x.uai")


def test_results(tmp_path):
    write_result(tmp_path / "r.PR", np.log(10.0) * 3)
    assert (tmp_path / "r.PR").read_text().startswith("PR\n3.0")
    assert_allclose(read_result(tmp_path / "r.PR"), 3 * np.log(10.0))
    write_result(tmp_path / "r.MAR", [np.array([0.25, 0.75]), np.array([1.0])])
    assert (tmp_path / "r.MAR").read_text() == "MAR\n2 2 0.25 0.75 1 1.0\n"
    for found, expected in zip(read_result(tmp_path / "r.MAR"), ([0.25, 0.75], [1.0]), strict=True):
        assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("MARKOV", "MARKUP", "line 1: the first word"),
        ("2 2 3", "2 2 x", "line 3: the number of states of variable 2 must be a whole number"),
        ("2 2 3", "2 0 3", "line 3: the number of states of variable 1 must be from 1"),
        ("2 1 2", "2 1 3", "line 6: a variable of factor 1 must be from 0 to 2"),
        ("2 1 2", "2 1 1", "line 6: factor 1 names a variable twice"),
        ("\n4\n", "\n5\n", "line 8: factor 0 over .* must have 4 entries; got 5"),
        ("0.9", "-0.9", "line 9: an entry of factor 0 must not be negative"),
        ("0.9", "nan", "line 9: an entry of factor 0 must be a finite number"),
        (" 4 5 6\n", " 4 5\n", "line 14: the file ends where an entry of factor 1"),
        (" 4 5 6\n", " 4 5 6 7\n", "line 14: the file should end here"),
        ("MARKOV\n3", "MARKOV\n99999999999", "line 2: the number of variables is 99999999999, more than"),
        ("2 2 3\n2\n", "2 2 3\n888888888\n", "line 4: the number of factors is 888888888, more than"),
        ("2 2 3", "2 2000000000 2000000000", "entries"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(small, old, new, message):
    assert old in _SMALL
    small.write_text(_SMALL.replace(old, new, 1))
    with pytest.raises(FileFormatError, match=message):
        read_uai(small)


def test_what_is_no_plain_file_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="not a plain file"):
        read_uai("/dev/zero" if os.path.exists("/dev/zero") else tmp_path)
    with pytest.raises(FileNotFoundError):
        read_uai(tmp_path / "nowhere.uai")


def test_one_line_of_a_million_words_is_read(tmp_path):
    path = tmp_path / "long.uai"
    n = 300_000
    path.write_text(f"MARKOV 1 {n} 1 1 0 {n} " + "1 " * n)
    assert_allclose(read_uai(path).log_partition(), np.log(n))


def test_every_truncation_is_refused(small):
    for end in range(len(_SMALL.rstrip())):
        small.write_text(_SMALL[:end])
        if _SMALL[:end].split() == _SMALL.split():
            continue
        with pytest.raises(FileFormatError, match=r"small\.uai, line"):
            read_uai(small)


def test_fuzzed_files_are_read_or_refused_and_nothing_else(small):
    rng = np.random.default_rng(0)
    original = np.frombuffer(_SMALL.encode(), dtype=np.uint8)
    alphabet = np.frombuffer(b"0123456789 .-+eE\nxMAB\x00\xff", dtype=np.uint8)
    refused = []
    for _ in range(700):
        data = original.copy()
        for _ in range(int(rng.integers(1, 5))):
            at = int(rng.integers(data.size))
            kind = rng.integers(3)
            letter = rng.choice(alphabet)
            data = np.delete(data, at) if kind == 0 else np.insert(data, at, letter) if kind == 1 else data
            if kind == 2:
                data[at] = letter
        small.write_bytes(data.tobytes())
        try:
            model = read_uai(small)
        except FileFormatError as problem:
            refused.append(str(problem))
        else:
            assert model.theta.size <= 100
    assert len(refused) > 250
    assert all("line" in message for message in refused)
