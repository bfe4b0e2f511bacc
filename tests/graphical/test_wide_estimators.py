"""Estimators of wide models and of data with missing values: what a user does after `fit`."""

import io
import itertools
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from cumulant.errors import CertificateError, TooWide
from cumulant.graphical import (
    Ising,
    IsingEstimator,
    MarkovNetworkEstimator,
    PairwiseMRF,
    complete,
    grid,
    normaliser,
    random_regular,
    sparse_structure,
    spin_glass,
)
from cumulant.graphical.learning.fit import fit, learning_problem
from cumulant.graphical.learning.missing_values import marginalised_likelihood
from cumulant.sampling.draws import Draws


@pytest.fixture(scope="module")
def wide():
    """An estimator whose graph no exact method can take: a random graph of 90 spins with 6 neighbours each."""
    edges = random_regular(90, 6, rng=0)
    x = np.asarray(Ising(edges, 0.1).sample(100, rng=0, method="mcmc", burn_in=200, thin=5))
    return IsingEstimator(edges, random_state=0).fit(x), x


def test_a_wide_model_is_scored_and_says_how(wide):
    model, x = wide
    with pytest.raises(TooWide):
        model.model_.log_partition()
    scores, known = model.score_samples(x[:5]), model.normaliser_
    assert known.method in ("interval", "annealed")
    assert known.value in known.interval
    assert 0 < known.error < 1.0
    assert known.interval.certificate.kind == "deterministic"
    assert_allclose(scores, model.model_.family.score(x[:5], model.model_.theta) - known.value)
    assert_allclose(model.score(x[:5]), scores.mean())
    assert model.normaliser_ is known  # computed once
    assert "log Z" in str(known)
    assert "proved" in str(known)


def test_a_wide_model_is_drawn_by_chains_with_their_diagnostics(wide):
    model, _ = wide
    found = model.sample(30)
    assert found.shape == (30, 90)
    assert set(np.unique(found)) <= {-1.0, 1.0}
    assert isinstance(model.draws_, Draws)
    assert model.draws_.r_hat().max() < 1.1
    assert (model.sample(30) == found).all()  # the same seed
    with pytest.raises(TooWide, match="method='mcmc'"):
        model.sample(3, method="exact")
    by_name = model.sample(8, method="systematic", chains=2, burn_in=50)
    assert by_name.shape == (8, 90)
    assert model.draws_.method == "systematic"


def test_chains_that_have_not_met_are_reported():
    x = Ising(grid(3, 3), 0.3).sample(50, rng=0)
    model = IsingEstimator(grid(3, 3), random_state=0).fit(x)
    model.model_ = Ising(complete(9), 2.0)  # all up or all down, and single-spin updates never leave either
    with pytest.warns(UserWarning, match="have not mixed: R-hat"):
        model.sample(400, method="systematic", chains=4, burn_in=50)


def test_the_three_ways_to_log_z_agree(monkeypatch):
    model = spin_glass(grid(8, 8), couplings=0.6, fields=0.3, rng=0)
    exact = normaliser(model)
    assert (exact.method, exact.error) == ("exact", 0.0)
    assert str(exact).endswith("exact")

    def refuse(*_, **__):
        raise TooWide("too wide")

    monkeypatch.setattr(Ising, "log_partition", refuse)
    proved = normaliser(model)
    assert proved.method == "interval"
    assert abs(proved.value - exact.value) <= proved.error
    monkeypatch.setattr("cumulant.graphical.learning.normaliser._NARROW", -1.0)
    estimated = normaliser(model)
    assert estimated.method == "annealed"
    assert abs(estimated.value - exact.value) < 4 * estimated.error + proved.error


# Missing values -------------------------------------------------------------------------------------------------------


def test_conditionals_of_known_values_by_enumeration():
    rng = np.random.default_rng(0)
    model = Ising(complete(4), rng.normal(size=6), rng.normal(size=4))
    x = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    p = np.exp(model.log_prob(x))
    data = rng.choice([-1.0, 1.0, np.nan], (25, 4))

    def probability(row):
        return p[((x == row) | np.isnan(row)).all(axis=1)].sum()

    expected = 0.0
    for row in data:
        for i in np.flatnonzero(~np.isnan(row)):
            without = row.copy()
            without[i] = np.nan
            expected -= np.log(probability(row) / probability(without)) / len(data)
    objective, left_out = marginalised_likelihood(model.family, data)
    value, gradient = objective(np.asarray(model.theta))
    assert left_out == 0.0
    assert_allclose(value, expected, rtol=1e-12)
    for k in range(10):
        step = np.zeros(10)
        step[k] = 1e-6
        slope = (objective(model.theta + step)[0] - objective(model.theta - step)[0]) / 2e-6
        assert_allclose(gradient[k], slope, atol=1e-7)


def test_complete_data_have_the_pseudo_likelihood():
    rng = np.random.default_rng(1)
    model = PairwiseMRF(
        [[0.0] * 2, [0.0] * 3, [0.0] * 2], [(0, 1), (1, 2)], [rng.normal(size=(2, 3)), np.zeros((3, 2))]
    )
    x = model.sample(40, rng=0)
    plain = learning_problem(x, model, objective="pseudo_likelihood", l2=0.1)
    value, gradient = marginalised_likelihood(model.family, x.astype(float))[0](np.asarray(model.theta))
    expected = plain._unpenalised(np.asarray(model.theta))
    assert_allclose(value, expected[0], rtol=1e-12)
    assert_allclose(gradient, expected[1], atol=1e-14)


def test_missing_values_are_summed_over_and_the_truth_is_found():
    truth = Ising(grid(3, 3), 0.5, 0.3)
    x = truth.sample(4000, rng=0).astype(float)
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    found = fit(x, grid(3, 3), method="pseudo_likelihood", l2=1e-6)
    assert np.abs(found.model.theta - truth.theta).max() < 0.12  # about four standard errors
    assert found.certificate is None
    assert "not convex" in found.refusal
    with pytest.raises(ValueError, match="pseudo_likelihood"):
        fit(x, grid(3, 3), method="exact")


def test_an_estimator_takes_missing_values_from_fit_to_score(tmp_path):
    truth = Ising(grid(3, 3), 0.6)
    x = (truth.sample(1500, rng=0) + 1.0) / 2
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    model = IsingEstimator(random_state=0).fit(x)
    assert sorted(map(tuple, model.edges_.tolist())) == sorted(map(tuple, grid(3, 3).tolist()))
    scores = model.score_samples(x[:20])
    states = np.array(list(itertools.product([-1.0, 1.0], repeat=9)))
    p = np.exp(model.model_.log_prob(states))
    for row, score in zip(2 * x[:20] - 1, scores, strict=True):
        assert_allclose(score, np.log(p[((states == row) | np.isnan(row)).all(axis=1)].sum()), rtol=1e-9)
    assert model.score_samples(np.full((1, 9), np.nan)) == 0.0
    assert set(np.unique(model.sample(20))) == {0.0, 1.0}
    assert IsingEstimator.load(model.save(tmp_path / "model")).score(x[:5]) == model.score(x[:5])
    with pytest.raises(CertificateError, match="not convex"):
        model.verify(x)
    with pytest.raises(ValueError, match="complete data"):
        IsingEstimator("tree").fit(x)


def test_categories_may_be_missing():
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], 400)
    warm = np.where(rng.random(400) < 0.9, colour == "red", rng.random(400) < 0.5)
    X = np.stack([colour, np.where(warm, "warm", "cold")], axis=1).astype(object)
    X[rng.random(X.shape) < 0.1] = None
    model = MarkovNetworkEstimator(random_state=0).fit(X)
    assert [list(values) for values in model.categories_] == [["blue", "green", "red"], ["cold", "warm"]]
    assert model.edges_.tolist() == [[0, 1]]
    red = model.score_samples([["red", "warm"], ["red", None], ["red", "cold"]])
    assert red[0] > red[2]
    assert_allclose(np.exp(red[1]), np.exp(red[0]) + np.exp(red[2]))
    numbers = np.where(rng.random((300, 2)) < 0.1, np.nan, rng.normal(size=(300, 2)))
    assert np.isfinite(MarkovNetworkEstimator(categories=3).fit(numbers).score(numbers))
    with pytest.raises(ValueError, match="no value that is known"):
        MarkovNetworkEstimator(categories=2).fit(np.array([[1.0, np.nan], [2.0, np.nan]]))


# Long fits ------------------------------------------------------------------------------------------------------------


def test_a_long_fit_shows_a_bar_and_ends_by_the_clock():
    x = np.random.default_rng(0).choice([-1, 1], (1500, 80))
    x[:, 1:] = np.where(np.random.default_rng(1).random((1500, 79)) < 0.7, x[:, :-1], x[:, 1:])
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    sparse_structure(x, progress=console, time_limit=3.0)
    assert "Structure: penalties" in console.file.getvalue()
    began = time.process_time()
    model = IsingEstimator(time_limit=0.2).fit(x)
    assert time.process_time() - began < 20.0
    assert model.status_ == "time_limit"
    assert np.isfinite(model.score(x))
