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
    assert abs(plain["memberships"]["north"][0] - plain["memberships"]["south"][0]) > 0.5


def test_choose_prints_the_evidence(data, capsys):
    assert call("admix", "choose", data, "-K", 2, "--temperatures", 50, "--particles", 10) == 0
    assert "<- largest" in capsys.readouterr().out


def test_refusals_are_one_line(tmp_path, capsys):
    assert call("admix", "fit", tmp_path / "none.npz") == 1
    assert "no such file" in capsys.readouterr().err
