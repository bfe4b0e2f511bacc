"""Tables of networks from data: counts by hand, Beta intervals, and data that do not fit."""

import collections
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cumulant.graphical import BayesNet

FRAME = pd.DataFrame({
    "rain": ["no", "no", "yes", "yes", "no", "yes"],
    "wet": pd.Categorical(["dry", "wet", "wet", "wet", "dry", "dry"], ["wet", "damp", "dry"]),
})  # fmt: skip


def test_tables_are_counts_with_pseudo_counts():
    fit = BayesNet.fit(FRAME, {"wet": ["rain"]}, prior=0.5)
    assert fit.net.states == {"rain": ("no", "yes"), "wet": ("wet", "damp", "dry")}  # categories keep their order
    seen = collections.Counter(zip(FRAME["rain"], FRAME["wet"], strict=True))
    for i, rain in enumerate(("no", "yes")):
        for j, wet in enumerate(("wet", "damp", "dry")):
            assert fit.counts["wet"][i, j] == seen[rain, wet]
            assert_allclose(fit.net.tables["wet"][i, j], (seen[rain, wet] + 0.5) / (3 + 1.5))
    likelihood = BayesNet.fit(FRAME, {"wet": ["rain"]}, prior=0)
    assert_allclose(likelihood.net.tables["wet"], [[1 / 3, 0, 2 / 3], [2 / 3, 0, 1 / 3]])
    bdeu = BayesNet.fit(FRAME, {"wet": ["rain"]}, prior={"rain": 6 / 2, "wet": 6 / 6})
    assert_allclose(bdeu.net.tables["rain"], [0.5, 0.5])


def test_intervals_are_those_of_the_beta_distribution_and_cover():
    fit = BayesNet.fit(FRAME, {"wet": ["rain"]})
    low, high = fit.interval("wet", 0.9)
    expected = stats.beta(2.0, 4.0).interval(0.9)  # one of three rows, three states
    assert_allclose([low[0, 0], high[0, 0]], expected, rtol=1e-10)
    rng, inside = np.random.default_rng(0), []
    for _ in range(500):  # a table drawn from the prior, then data: the interval holds with its probability
        p = rng.dirichlet(np.ones(3))
        drawn = BayesNet.fit(rng.choice(3, size=(40, 1), p=p), {}, states={0: [0, 1, 2]})
        low, high = drawn.interval(0, 0.8)
        inside.append((low[0] <= p[0]) & (p[0] <= high[0]))
    assert abs(np.mean(inside) - 0.8) < 4 * np.sqrt(0.8 * 0.2 / 500)


def test_the_network_of_many_draws_is_learnt():
    truth = BayesNet(
        {"a": [0.3, 0.7], "b": [[0.9, 0.1], [0.2, 0.8]], "c": np.random.default_rng(0).dirichlet(np.ones(3), (2, 2))},
        {"b": ["a"], "c": ["b", "a"]},
    )
    data = truth.sample(50_000, rng=1)
    fit = BayesNet.fit(pd.DataFrame(data, columns=list("abc")), truth.parents)
    assert fit.net.states is None  # whole numbers from 0 stay numbers
    for name, table in truth.tables.items():
        low, high = fit.interval(name, 0.9999)
        assert ((low <= table) & (table <= high)).all()
    assert truth.kl(fit.net) < 1e-3
    by_number = BayesNet.fit(data, {1: [0], 2: [1, 0]})
    assert_allclose(by_number.net.tables[2], fit.net.tables["c"])


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (FRAME, {"parents": {"wet": ["hose"]}}, "'hose' is missing"),
        (FRAME, {"parents": {"wet": "rain"}}, "the parents of 'wet' must be a list of names; got 'rain'"),
        (FRAME, {"prior": -1.0}, "prior must be finite numbers that are not negative"),
        (FRAME, {"prior": {"rain": 1.0}}, "prior has no entry for 'wet'"),
        (FRAME, {"prior": {"rain": [1.0, 2.0, 3.0], "wet": 1.0}}, r"prior of 'rain' .* shape \(2,\); got \(3,\)"),
        (FRAME, {"states": {"rain": ["no", "some"]}}, "column 'rain' has 'yes' in row 2, which is not one of"),
        (FRAME, {"states": {"snow": ["no"]}}, "'snow', which is not a column"),
        (FRAME[:1], {"prior": 0.0, "states": {"rain": ["no", "yes"]}}, "no row of data has {'rain': 'yes'}"),
        ({"rain": [0.3, 0.7], "wet": [0, 1]}, {}, "'rain' must hold states: strings or whole numbers"),
        ({"rain": ["no", None], "wet": ["a", "b"]}, {}, "column 'rain' has no value in row 1"),
        ({"rain": ["no"], "wet": ["a", "b"]}, {}, "one length"),
        (np.zeros(3), {}, r"got shape \(3,\)"),
        (np.zeros((0, 2), int), {"parents": {}}, "no rows"),
    ],
)
def test_data_that_do_not_fit_are_refused(data, options, words):
    with pytest.raises(ValueError, match=words):
        BayesNet.fit(data, **{"parents": {"wet": ["rain"]}, **options})


def test_intervals_need_a_prior_and_a_level():
    fit = BayesNet.fit(FRAME, {"wet": ["rain"]}, prior=0)
    with pytest.raises(ValueError, match="fit with prior > 0"):
        fit.interval("wet")
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1; got 95"):
        fit.interval("wet", 95)
    with pytest.raises(ValueError, match="'hose' is not a variable"):
        fit.interval("hose")


def test_the_example_of_a_whole_job_runs(capsys):
    path = Path(__file__).parents[2] / "examples" / "networks.py"
    runpy.run_path(str(path))["main"]()
    out = capsys.readouterr().out
    assert "right diagnoses: 0.9" in out
    body = path.read_text().split('"""Run the example."""')[1].split("\n\nif ")[0].strip().splitlines()
    assert len(body) < 25
