import pytest
from rich.console import Console

from cumulant import families
from cumulant.cli import main
from cumulant.cli.families import cumulant_formula, rows, show


def test_every_family_has_a_complete_row():
    table = rows()
    assert [row.name for row in table] == sorted(type(family).__name__ for family in families.all_families())
    for row in table:
        assert row.support, row.name
        assert row.dim >= 1, row.name
        assert row.parameters, row.name
        assert row.cumulant, row.name


def test_the_formula_is_read_off_the_docstring():
    assert cumulant_formula(families.Poisson()) == "exp(theta)"


def test_the_table_is_printed(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["families"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "Poisson" in out
    assert "Exponential families" in out


def test_what_is_known_is_told_from_what_is_estimated():
    parameters = {row.name: row.parameters for row in rows()}
    assert parameters["Gamma"] == "shape, rate"
    assert parameters["GammaKnownShape"] == "rate (shape known)"


@pytest.mark.parametrize("width", [80, 160])
def test_nothing_is_cut_off(width, capsys):
    show(Console(width=width))
    words = " ".join(capsys.readouterr().out.split())
    assert "…" not in words
    for row in rows():
        assert row.name in words
