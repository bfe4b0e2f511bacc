"""The estimator of categorical data: scikit-learn's checks, values of any kind, and agreement with what is beneath."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from cumulant.graphical import MCMC, FastMixing, PairwiseMRF, chow_liu
from cumulant.graphical.learning.estimators import MarkovNetworkEstimator
from cumulant.graphical.learning.fit import fit

EDGES = [(0, 1), (1, 2)]
NAMES = [np.array(["no", "yes"]), np.array([10, 20, 30]), np.array(["a", "b"])]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(2, 3)), rng.normal(size=(3, 2))]
    truth = PairwiseMRF([np.zeros(2), np.zeros(3), np.zeros(2)], EDGES, tables)
    return truth.sample(200, rng=1)


def test_scikit_learn_checks():
    results = check_estimator(MarkovNetworkEstimator(categories=2, l2=0.1), on_skip=None, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert len(results) > 30


def test_agrees_with_fit_and_keeps_the_values(data, tmp_path):
    named = np.stack([NAMES[v].astype(object)[data[:, v]] for v in range(3)], axis=1)
    model = MarkovNetworkEstimator(EDGES, method="exact", l2=0.1, random_state=0).fit(named)
    zero = PairwiseMRF([np.zeros(2), np.zeros(3), np.zeros(2)], EDGES, [np.zeros((2, 3)), np.zeros((3, 2))])
    expected = fit(data, zero, method="exact", l2=0.1)
    assert_array_equal(model.model_.theta, expected.model.theta)
    assert_allclose(model.score_samples(named), expected.model.log_prob(data))
    assert model.certificate_.upper < 1e-8
    loaded = MarkovNetworkEstimator.load(model.save(tmp_path / "named"))
    assert loaded.verify(named).bound == model.verify(named).bound == model.certificate_.bound
    assert_array_equal(loaded.sample(9), model.sample(9))
    drawn = model.sample(40)
    assert_array_equal(drawn, model.sample(40))
    assert [set(column) for column in drawn.T] == [set(values) for values in NAMES]
    with pytest.raises(ValueError, match="unknown categories"):
        model.score_samples([["maybe", 10, "a"]])
    more = MarkovNetworkEstimator(EDGES, categories=[[0, 1], [0, 1, 2, 3], [0, 1]]).fit(data)
    assert more.model_.cardinalities.tolist() == [2, 4, 2]
    tree = MarkovNetworkEstimator("tree", l2=1.0).fit(data)
    assert tree.model_ == chow_liu(data, smoothing=1.0)
    settings = {"mixing": FastMixing(0.5, "inf"), "l2": 1.0, "random_state": 0}
    certified = MarkovNetworkEstimator(EDGES, method=MCMC(eps=1.0), **settings)
    assert certified.fit(data).certificate_.kind == "with probability"
    assert certified.model_.mixing_time(norm="inf").upper > 0


def test_numbers_are_cut_at_quantiles(tmp_path):
    x = np.random.default_rng(2).normal(size=(300, 2))
    x[:, 1] += 2 * x[:, 0]
    model = MarkovNetworkEstimator("complete", method="exact", categories=3, l2=0.01, random_state=0).fit(x)
    states = np.stack([np.argsort(np.argsort(c)) // 100 for c in x.T], axis=1)  # thirds
    apart = fit(states, model.model_, method="exact", l2=0.01).model
    assert_allclose(model.score(x), apart.log_prob(states).mean(), atol=0.02)
    assert_allclose(model.categories_[0], [np.sort(x[:, 0])[k : k + 100].mean() for k in (0, 100, 200)], atol=0.01)
    assert np.corrcoef(model.sample(500).T)[0, 1] > 0.6
    loaded = MarkovNetworkEstimator.load(model.save(tmp_path / "bins"))
    assert loaded.score(x) == model.score(x)
    loaded.verify(x)
    flat = MarkovNetworkEstimator(categories=4).fit(np.ones((5, 2)))
    assert np.isfinite(flat.score(np.ones((5, 2))))


def test_refusals(data):
    with pytest.raises(ValueError, match="structure must be"):
        MarkovNetworkEstimator("star").fit(data)
    with pytest.raises(ValueError, match="method must be"):
        MarkovNetworkEstimator(method="em").fit(data)
    with pytest.raises(ValueError, match="categories"):
        MarkovNetworkEstimator(categories=0).fit(data)
    with pytest.raises(NotFittedError):
        MarkovNetworkEstimator().sample()
