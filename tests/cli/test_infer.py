import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.cli import main
from cumulant.graphical import grid, read_result, spin_glass, write_evidence, write_uai


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("infer")
    model = spin_glass(grid(3, 3), couplings=0.5, fields=0.5, rng=0).to_factor_graph()
    write_uai(folder / "model.uai", model)
    write_evidence(folder / "model.evid", {4: 1})
    return folder, model


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["infer", *map(str, arguments)])
    return stop.value.code


def test_log_z_is_printed_and_written(files, capsys):
    folder, model = files
    assert run(folder / "model.uai", "-o", folder / "out.PR") == 0
    text = capsys.readouterr().out
    assert f"log Z = {model.log_partition():.6g}" in text
    assert "by elimination" in text
    assert_allclose(read_result(folder / "out.PR"), model.log_partition(), rtol=1e-12)


def test_marginals_given_evidence_as_json_and_as_a_file(files, capsys):
    folder, model = files
    arguments = (folder / "model.uai", "-e", folder / "model.evid", "--marginals")
    assert run(*arguments, "--json", "-o", folder / "out.MAR") == 0
    found = json.loads(capsys.readouterr().out)
    given = model.given({4: 1})
    assert found["log_z"]["lower"] <= given.log_partition() <= found["log_z"]["upper"]
    assert found["evidence"] == 1
    for p, bounds, written in zip(given.marginals(), found["marginals"], read_result(folder / "out.MAR"), strict=True):
        assert_allclose(bounds["lower"], p, atol=1e-12)
        assert_allclose(bounds["upper"], p, atol=1e-12)
        assert_allclose(written, p, atol=1e-12)
    assert run(*arguments) == 0
    assert "p(x4): 0.0000  1.0000" in capsys.readouterr().out


def test_a_file_that_is_none_is_one_line_and_code_1(files, capsys):
    folder, _ = files
    (folder / "bad.uai").write_text("MARKOV 2 2")
    assert run(folder / "bad.uai") == 1
    assert "line 1" in capsys.readouterr().err
    assert run(folder / "missing.uai") == 1
    assert np.char.count(capsys.readouterr().err.strip(), "\n") == 0


def test_what_is_impossible_is_said_in_words(files, capsys):
    folder, _ = files
    (folder / "never.uai").write_text("MARKOV 1 2 1 1 0 2 0 1")
    write_evidence(folder / "never.evid", {0: 0})
    arguments = (folder / "never.uai", "-e", folder / "never.evid")
    assert run(*arguments, "--json", "-o", folder / "never.PR") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["log_z"]["lower"], found["log_z"]["upper"]) == ("-inf", "-inf")
    assert read_result(folder / "never.PR") == -np.inf
    assert run(*arguments, "--marginals") == 1
    assert "probability zero" in capsys.readouterr().err


def test_no_evidence_is_written_as_zero_and_never_as_an_empty_file(files, capsys):
    folder, _ = files
    (folder / "empty.evid").write_text("\n")
    assert run(folder / "model.uai", "-e", folder / "empty.evid") == 1
    assert "empty" in capsys.readouterr().err
    (folder / "none.evid").write_text("0\n")
    assert run(folder / "model.uai", "-e", folder / "none.evid", "--json") == 0
    assert json.loads(capsys.readouterr().out)["evidence"] == 0


def test_an_output_that_cannot_be_written_is_named(files, capsys):
    folder, _ = files
    assert run(folder / "model.uai", "-o", folder / "nowhere" / "out.PR") == 1
    assert "nowhere" in capsys.readouterr().err
    (folder / "taken").mkdir()
    assert run(folder / "model.uai", "-o", folder / "taken") == 1
    message = capsys.readouterr().err
    assert "taken" in message
    assert ".part" not in message
