"""`cumulant admix` on a small file."""

import json

import numpy as np
import pytest

from cumulant.cli.app import main

pytest.importorskip("matplotlib")


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    alleles = np.concatenate([rng.integers(0, 4, (8, 6, 2)), rng.integers(3, 8, (8, 6, 2))])
    np.savez(tmp_path / "cats.npz", alleles=alleles, population=["north"] * 8 + ["south"] * 8)
    return tmp_path / "cats.npz"


def call(*arguments):
    try:
        main([str(each) for each in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_fit_prints_memberships_and_draws_them(data, tmp_path, capsys):
    picture, fit = tmp_path / "bars.png", tmp_path / "fit.npz"
    assert call("admix", "fit", data, "-K", 2, "--plot", picture, "-o", fit, "--method", "mean_field") == 0
    text = capsys.readouterr().out
    assert "16 individuals, 6 loci" in text
    assert "north" in text
    assert "-log p(w) <=" in text
    assert picture.read_bytes()[1:4] == b"PNG"
    assert fit.exists()
    assert call("admix", "fit", data, "-K", 2, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert abs(plain["populations"]["north"][0] - plain["populations"]["south"][0]) > 0.5
    assert len(plain["memberships"]) == 16


def test_individuals_of_one_name_are_not_merged(tmp_path, capsys):
    rows = [f"{'tom' if i % 2 else 'ann'},{90 + 10 * (i // 35)},{91 + 10 * (i // 35)}" for i in range(70)]
    (tmp_path / "cats.csv").write_text("id,L1,L1\n" + "\n".join(rows) + "\n")
    arguments = ("admix", "fit", tmp_path / "cats.csv", "-K", 2, "--method", "mean_field")
    assert call(*arguments, "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["populations"] == {}
    assert [each["individual"] for each in plain["memberships"]] == ["ann", "tom"] * 35
    shares = np.array([each["memberships"] for each in plain["memberships"]])
    assert abs(shares[0] - shares[69]).max() > 0.5
    assert call(*arguments) == 0
    text = capsys.readouterr().out
    assert text.count("tom") + text.count("ann") == 60
    assert "and 10 more" in text


def test_tables_name_individuals_and_groups(tmp_path, capsys):
    """A file as population geneticists have them: names, several groupings, missing calls, a locus with one allele."""
    rng = np.random.default_rng(0)
    alleles = np.concatenate([rng.integers(90, 94, (8, 6, 2)), rng.integers(93, 98, (8, 6, 2))]).astype(np.int16)
    alleles[3, 2] = alleles[9, :4] = -1
    alleles[:, 5] = 120
    names = np.array([f"N{i}" for i in range(16)])
    path, table, heat = tmp_path / "cats.npz", tmp_path / "q.csv", tmp_path / "heat.png"
    np.savez(
        path, alleles=alleles, population=np.repeat(["P01", "P02", "P03", "P04"], 4), individuals=names,
        loci=[f"L{i}" for i in range(6)], region=np.repeat(["north", "south"], 8),
        population_levels=["P01", "P02", "P03", "P04"], population_xy=np.zeros((4, 2)),
    )  # fmt: skip
    arguments = ("admix", "fit", path, "-K", 2, "--method", "mean_field", "--table", table, "--distances", heat)
    assert call(*arguments, "--by", "region") == 0
    text = capsys.readouterr().out
    assert "south" in text
    assert "P01" not in text
    rows = [line.split(",") for line in table.read_text().splitlines()]
    assert rows[0] == ["individual", "population", "membership_1", "membership_2", "sd_1", "sd_2", "level"]
    assert [row[0] for row in rows[1:]] == list(names)
    assert {row[1] for row in rows[1:9]} == {"north"}
    assert abs(float(rows[1][2]) + float(rows[1][3]) - 1) < 2e-5
    assert heat.read_bytes()[1:4] == b"PNG"
    assert call(*arguments, "--by", "country") == 1
    assert "no array 'country'" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("id,L1,L1\n1,2,2\n")
    assert call("admix", "fit", tmp_path / "a.csv", "--by", "region") == 1
    assert "--by names an array of a .npz file" in capsys.readouterr().err


def test_choose_prints_the_evidence(data, capsys):
    assert call("admix", "choose", data, "-K", 2, "--temperatures", 50, "--particles", 10) == 0
    assert "<- largest" in capsys.readouterr().out


def test_refusals_are_one_line(tmp_path, capsys):
    assert call("admix", "fit", tmp_path / "none.npz") == 1
    assert "no such file" in capsys.readouterr().err
