import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from cumulant import plotting
from cumulant.cli import main, reproduce
from cumulant.cli.ledger import FIELDS, Run, page, read, write
from cumulant.experiments import Claim, Experiment, Report
from cumulant.experiments.base import verdict

CLAIMS = (
    Claim("the rate is 1/n | for all [n]", "1.00", "0.98", "reproduced"),
    Claim("the constant is *two*, not four", "4", "2.0", "corrected"),
    Claim("it is monotone", "yes", "no", "not reproduced"),
)


class Recorder:
    """Experiments that note how they were called."""

    def __init__(self):
        self.calls = []

    def works(self, output=None, quick=False, rng=0):
        self.calls.append(("works", output, quick, rng))
        pictures = () if output is None else (plotting.save(plotting.figure()[0], output / "curve.png"),)
        return Report(CLAIMS, notes="Run on one core.", pictures=pictures)

    def fails(self, output=None, quick=False, rng=0):
        self.calls.append(("fails", output, quick, rng))
        raise ZeroDivisionError("division by zero")


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder()
    found = {
        "works": Experiment("works", "A figure [that] works", "Author 2020, figure 1", recorder.works),
        "fails": Experiment("fails", "A table that fails", "Author 2021, table 2", recorder.fails),
    }
    monkeypatch.setattr(reproduce, "catalogue", lambda: found)
    monkeypatch.setattr(reproduce, "find", found.__getitem__)
    monkeypatch.setattr(reproduce, "Console", lambda: Console(width=150))
    return recorder


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", *map(str, arguments)])
    return stop.value.code


@pytest.mark.parametrize("arguments", [(), ("--list",), ("works", "--list")])
def test_the_list_runs_nothing(recorder, capsys, arguments):
    assert run(*arguments) == 0
    out = capsys.readouterr().out
    for words in ("works", "A figure [that] works", "Author 2021, table 2"):
        assert words in out
    assert recorder.calls == []


def test_one_experiment_prints_claims_and_writes_pictures_and_ledger(recorder, capsys, tmp_path):
    assert run("works", "--output", tmp_path, "--quick", "--seed", 5) == 0
    assert recorder.calls == [("works", tmp_path / "works", True, 5)]
    out = capsys.readouterr().out
    for words in ("published", "ours", "verdict", "0.98", "corrected", "not reproduced", "Run on one core.", "[n]"):
        assert words in out
    assert (tmp_path / "works" / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "ledger.md").read_text().startswith("# Reproduction ledger")
    ledger = read(tmp_path / "ledger.json")
    assert {entry["command"] for entry in ledger["entries"]} == {"cumulant reproduce works --quick --seed 5"}


def test_without_pictures_no_folder_is_given_or_made(recorder, tmp_path):
    assert run("works", "--no-pictures", "--output", tmp_path / "out", "--ledger", tmp_path / "ledger.json") == 0
    assert recorder.calls == [("works", None, False, 0)]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ledger.json", "ledger.md"]


def test_one_experiment_replaces_its_own_entries_in_a_ledger(recorder, tmp_path):
    path = tmp_path / "ledger.json"
    other = Experiment("other", "Another", "Somebody (1999)", recorder.works)
    write(path, [Run(other, Report((Claim("a", "1", "1", "true, not tight", item="Lemma 2"),)), 1.0)])
    before = read(path)["entries"]
    for _ in range(2):
        assert run("works", "--no-pictures", "--ledger", path, "--output", tmp_path) == 0
    text = path.with_suffix(".md").read_text()
    assert "2 experiments, 4 claims: 1 reproduced, 1 corrected, 1 true, not tight, 1 not reproduced." in text
    assert text.count("`works`. ") == 1
    assert before == read(path)["entries"][:1]
    assert [entry["id"] for entry in read(path)["entries"]] == ["other/lemma-2", "works/1", "works/2", "works/3"]


@pytest.mark.parametrize("wrong", ["{}", "not json", '{"experiments": {}, "entries": [{"experiment": "a"}]}'])
def test_a_file_that_is_no_ledger_is_refused_and_left_as_it_is(recorder, capsys, tmp_path, wrong):
    path = tmp_path / "ledger.json"
    path.write_text(wrong)
    assert run("works", "--no-pictures", "--ledger", path, "--output", tmp_path) == 1
    assert "is not a ledger" in capsys.readouterr().err
    assert path.read_text() == wrong


def test_all_goes_on_after_a_failure_and_ends_with_exit_code_one(recorder, capsys, tmp_path):
    assert run("--all", "--output", tmp_path, "--ledger", tmp_path / "page.json") == 1
    assert [call[0] for call in recorder.calls] == ["works", "fails"]
    assert "1 of 2 experiments failed: fails" in capsys.readouterr().err
    text = (tmp_path / "page.md").read_text()
    assert "ZeroDivisionError" in text
    assert "1 experiment failed to run" in text


def test_a_named_experiment_that_has_a_bug_shows_it(recorder, tmp_path):
    with pytest.raises(ZeroDivisionError):
        main(["reproduce", "fails", "--output", str(tmp_path)])


def test_a_name_and_all_together_are_refused(recorder, capsys):
    assert run("works", "--all") == 2
    assert "not both" in capsys.readouterr().err


def test_an_unknown_experiment_is_refused_in_one_line(capsys, tmp_path):
    assert run("no-such-thing", "--output", tmp_path) == 1
    assert re.fullmatch(r"error: no experiment is called 'no-such-thing'; .*\n", capsys.readouterr().err)


def test_the_ledger_has_an_entry_for_each_claim_and_a_table_for_each_experiment(recorder, tmp_path):
    claims = (*CLAIMS, Claim("it is small", "0.1", "0.2", "true, not tight", item="Eq. (4.48)", spread="0.1 to 0.3"))
    write(tmp_path / "ledger.json", [Run(reproduce.catalogue()["works"], Report(claims, notes="a_b"), 3.21)])
    ledger = read(tmp_path / "ledger.json")
    assert all(set(FIELDS) <= set(entry) for entry in ledger["entries"])
    last = ledger["entries"][-1]
    assert (last["id"], last["spread"], last["seconds"]) == ("works/eq.-4.48", "0.1 to 0.3", 3.2)
    text = (tmp_path / "ledger.md").read_text()
    assert text == page(ledger)
    assert "1 experiment, 4 claims: 1 reproduced, 1 corrected, 1 true, not tight, 1 not reproduced." in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[2] == r"| the rate is 1/n \| for all \[n\] | 1.00 | 0.98 | reproduced |"
    assert rows[3] == r"| the constant is \*two\*, not four | 4 | 2.0 | **corrected** |"
    assert rows[5] == "| Eq. (4.48): it is small | 0.1 | 0.2 (0.1 to 0.3) | **true, not tight** |"
    assert len(rows) == 6
    assert "3.2" not in text  # how long it took is not part of the finding
    assert text.endswith("a\\_b\n")


def test_one_experiment_imports_one_experiment():
    """In a process of its own, since other tests import the others."""
    program = (
        "import sys\nfrom cumulant.experiments import find\nfind('map-fig-5-2')\n"
        "print(*sorted(name for name in sys.modules if name.startswith('cumulant.experiments.')))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["cumulant.experiments.base", "cumulant.experiments.map_fig_5_2"]


def test_the_verdict_on_a_claim():
    assert [verdict(True), verdict(np.False_), verdict(True, corrected=True)] == [
        "reproduced",
        "not reproduced",
        "corrected",
    ]
