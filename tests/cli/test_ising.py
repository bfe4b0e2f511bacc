"""`cumulant ising` on small files: what it writes against the library and closed forms, and what it refuses."""

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant import files
from cumulant.cli import main
from cumulant.graphical import Ising, chow_liu, complete, fit, grid, write_uai


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["ising", *map(str, arguments)])
    return stop.value.code


def refused(capsys, *arguments):
    """The one line that a refusal is."""
    assert run(*arguments) == 1
    text = capsys.readouterr().err.strip()
    assert text.startswith("error: ")
    assert "\n" not in text
    return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ising")
    truth = Ising(grid(2, 2), [0.5, -0.3, 0.2, 0.4], [0.1, 0.0, -0.2, 0.0])
    x = truth.sample(400, rng=0)
    np.savetxt(folder / "spins.csv", x, "%d", ",")
    np.savetxt(folder / "named.csv", (x + 1) // 2, "%d", ";", header="a;b;c;d", comments="")
    np.savez(folder / "data.npz", data=x > 0)
    truth.save(folder / "truth.npz")
    (folder / "edges.csv").write_text("from,to\n0,1\n2,3\n0,2\n1,3\n")
    return folder, truth, x


def test_fit_is_the_library_s_and_says_its_certificate(folder, capsys):
    folder, _, x = folder
    ours = fit(x, Ising(grid(2, 2), 0.0, np.zeros(4)), method="exact", l2=0.05)
    for data, structure in (("spins.csv", "grid:2x2"), ("named.csv", folder / "edges.csv"), ("data.npz", "grid:2x2")):
        arguments = (folder / data, "-s", structure, "--method", "exact", "--l2", "0.05", "-o", folder / "m.npz")
        assert run("fit", *arguments) == 0
        found = Ising.load(folder / "m.npz")
        assert_array_equal(found.edges, grid(2, 2))
        assert_allclose(found.theta, ours.model.theta, atol=1e-6)
        text = capsys.readouterr().out
        assert "400 observations of 4 variables" in text
        assert "by strong convexity" in text
        likelihood = float(re.search(r"mean log-likelihood (-[\d.]+)", text)[1])
        assert_allclose(likelihood, np.mean(found.log_prob(x, method="enumeration")), atol=1e-6)
        assert ("│ a " in text) == (data == "named.csv")


def test_fit_of_a_tree_and_of_all_pairs(folder, capsys):
    folder, _, x = folder
    assert run("fit", folder / "spins.csv", "-s", "chow-liu", "--l2", "1", "-o", folder / "tree.npz") == 0
    assert "no tree has a larger likelihood" in capsys.readouterr().out
    assert Ising.load(folder / "tree.npz") == chow_liu(x, smoothing=1.0)
    assert run("fit", folder / "spins.csv", "-s", "complete", "-o", folder / "all.uai") == 0
    assert "6 couplings" in capsys.readouterr().out
    assert run("fit", folder / "spins.csv", "-o", folder / "few.npz") == 0
    assert "of 6 pairs at l1" in capsys.readouterr().out
    assert run("mixing", folder / "all.uai") == 0
    assert "tau(0.01)" in capsys.readouterr().out


def test_fit_by_sampling_stays_in_its_set(folder, capsys):
    folder, _, _ = folder
    arguments = ("-s", "grid:2x2", "--method", "mcmc", "--mixing", "box:0.25", "--l2", "1", "--eps", "1", "--seed", "3")
    for name in ("first", "second"):
        assert run("fit", folder / "spins.csv", *arguments, "-o", folder / f"{name}.npz") == 0
    text = capsys.readouterr().out
    assert "|theta - theta*| <= " in text
    assert "with probability at least 1 - 0.1" in text
    model = Ising.load(folder / "first.npz")
    assert np.abs(model.couplings).max() <= 0.25
    assert model == Ising.load(folder / "second.npz")


def test_draws_are_worth_what_is_said_and_can_be_fitted(folder, capsys):
    folder, truth, _ = folder
    chains = ("-n", 500, "--method", "random", "--chains", 2, "--burn-in", 50)
    assert run("sample", folder / "truth.npz", *chains, "-o", folder / "draws.npz") == 0
    text = capsys.readouterr().out
    assert float(re.search(r"largest of a variable ([\d.]+)", text)[1]) < 1.05
    assert 50 < float(re.search(r"smallest of a variable (\d+)", text)[1]) <= 3000
    needed = min(truth.mixing_time(0.01, norm=norm).upper for norm in ("spectral", "one", "inf"))
    assert f"proved: {needed:.0f} updates" in text
    with np.load(folder / "draws.npz") as saved:
        assert saved["values"].shape == (2, 500, 4)
        assert set(np.unique(saved["values"])) == {-1, 1}
    assert run("sample", folder / "truth.npz", "-n", 300, "--zero-one", "-o", folder / "draws.csv") == 0
    assert "300 independent draws" in capsys.readouterr().out
    table = np.loadtxt(folder / "draws.csv", delimiter=",", skiprows=1)
    assert_array_equal(2 * table - 1, truth.sample(300, rng=0))
    for draws in ("draws.npz", "draws.csv"):
        assert run("fit", folder / draws, "-o", folder / "again.npz") == 0


def test_bounds_and_mixing_times(folder, capsys):
    folder, truth, _ = folder
    write_uai(folder / "truth.uai", truth)
    for name in ("truth.npz", "truth.uai"):
        assert run("bound", folder / name, "--time", 1) == 0
        assert f"log Z = {truth.log_partition():.6g}" in capsys.readouterr().out
    assert run("mixing", folder / "truth.npz", "--eps", 0.05, "--norm", "inf") == 0
    assert f"<= {truth.mixing_time(0.05, norm='inf').upper:g} " in capsys.readouterr().out
    Ising(grid(3, 3), 1.0).save(folder / "strong.npz")
    text = refused(capsys, "mixing", folder / "strong.npz")
    assert f"spectral {np.sqrt(8) * np.tanh(1):.4g}" in text  # 2 sqrt 2 is the norm of the 3 x 3 grid


def test_json_is_one_line_that_says_what_the_text_says(folder, capsys):
    folder, truth, x = folder

    def answer(*arguments):
        assert run(*arguments, "--json") == 0
        said = capsys.readouterr()
        assert said.err == ""
        assert said.out.count("\n") == 1
        return json.loads(said.out)

    sampled = ("--method", "mcmc", "--mixing", "box:0.25", "--l2", "1", "--eps", "1", "--seed", "3")
    found = answer("fit", folder / "named.csv", "-s", "grid:2x2", *sampled, "-o", folder / "json.npz")
    model = Ising.load(folder / "json.npz")
    assert_array_equal(found["couplings"], model.couplings)
    assert found["names"] == ["a", "b", "c", "d"]
    assert 0 < found["certificate"]["bound"] <= 1
    assert found["certificate"]["delta"] == 0.1
    assert_allclose(found["mean_log_likelihood"], np.mean(model.log_prob(x, method="enumeration")))
    assert found["objective"] is None
    tree = answer("fit", folder / "spins.csv", "-s", "chow-liu", "-o", folder / "json.uai")
    assert tree["certificate"] is None
    assert "closed form" in tree["refusal"]
    chains = ("-n", 100, "--method", "random", "--chains", 2, "--burn-in", 50)
    drawn = answer("sample", folder / "truth.npz", *chains)
    assert drawn["output"] is None
    assert drawn["r_hat_energy"] < 1.2
    needed = min(truth.mixing_time(0.01, norm=norm).upper for norm in ("spectral", "one", "inf"))
    assert drawn["updates_proved_to_be_enough"] == needed
    log_z = answer("bound", folder / "truth.npz", "--time", 1)["log_z"]
    assert log_z["lower"] <= truth.log_partition() <= log_z["upper"]
    assert answer("mixing", folder / "truth.npz")["bound"] == needed


def test_data_that_are_none_are_one_sentence(folder, capsys):
    folder, _, _ = folder
    bad = {
        "1,0\n1,2\n": "line 2, column 2: data must be 0 and 1, or -1 and +1; got 2",
        "1,0\n-1,1\n": "line 1, column 2: .* got 0 beside -1",
        "a,b\n1,nan\n": "line 2, column 2: nan",
        "1,0\n1\n": "line 2: 1 columns, where line 1 has 2",
        "1,0\n\n1,x\n": "line 3, column 2: 'x' is no number",
        "1,0\n1,\n": "line 2, column 2: an empty cell",
        "a,b\n": "a header and no rows",
        "": "is empty",
    }
    for text, said in bad.items():
        (folder / "bad.csv").write_text(text)
        assert re.search(said.replace("+", r"\+"), refused(capsys, "fit", folder / "bad.csv", "-o", folder / "no.npz"))
    np.savez(folder / "two.npz", a=np.ones((2, 2)), b=np.ones(3))
    assert "none of them called" in refused(capsys, "fit", folder / "two.npz", "-o", folder / "no.npz")
    (folder / "bad.npz").write_bytes(b"PK\x03\x04 not really")
    assert "cannot be read" in refused(capsys, "fit", folder / "bad.npz", "-o", folder / "no.npz")
    (folder / "latin.csv").write_bytes(b"caf\xe9,b\n1,0\n")
    assert "not text in UTF-8" in refused(capsys, "fit", folder / "latin.csv", "-o", folder / "no.npz")
    (folder / "constant.csv").write_text("1,0\n1,1\n")
    tree = ("-s", "chow-liu", "--l2", 0, "-o", folder / "no.npz")
    assert "(here: --l2 1)" in refused(capsys, "fit", folder / "constant.csv", *tree)
    assert "is a folder" in refused(capsys, "fit", folder, "-o", folder / "no.npz")
    assert "no such file" in refused(capsys, "fit", folder / "missing.csv", "-o", folder / "no.npz")
    assert not (folder / "no.npz").exists()


def test_options_that_do_not_fit_are_one_sentence(folder, capsys):
    folder, _, _ = folder
    (folder / "far.csv").write_text("0,1\n0,9\n")
    bad = {
        ("-s", "ring"): "--structure must be sparse, complete, chow-liu",
        ("-s", "grid:3x3"): "has 9 variables and the data have 4",
        ("-s", folder / "far.csv"): "line 2, column 2: variables are whole numbers from 0 to 3; got 9",
        ("-s", folder / "spins.csv"): "two columns",
        ("-s", "chow-liu", "--method", "exact"): "closed form",
        ("--mixing", "frobenius:1", "--method", "mcmc"): "--mixing must be none, or a norm",
        ("--mixing", "box", "--method", "mcmc"): "a colon is missing",
        ("--mixing", "box:0.1"): "needs --method mcmc or exact",
        ("--method", "mcmc"): "needs --mixing",
        ("--method", "mcmc", "--mixing", "box:0.1", "--l2", "0"): "add --no-fields",
        ("--method", "mcmc", "--mixing", "spectral:0.9", "--eps", "0.001"): "need .* updates, more than",
    }
    for options, said in bad.items():
        assert re.search(said, refused(capsys, "fit", folder / "spins.csv", *options, "-o", folder / "no.npz")), options
    assert "must end in" in refused(capsys, "fit", folder / "spins.csv", "-o", folder / "no.txt")
    Ising(complete(40), 0.1).save(folder / "wide.npz")
    assert "chains need no tables" in refused(capsys, "sample", folder / "wide.npz")
    assert "no folder" in refused(capsys, "sample", folder / "truth.npz", "-o", folder / "no" / "draws.csv")
    assert "not a Cumulant file" in refused(capsys, "bound", folder / "data.npz")
    files.save(folder / "other.npz", "draws", {"values": np.ones(3)})
    assert "holds a draws, not a discrete model" in refused(capsys, "sample", folder / "other.npz")
