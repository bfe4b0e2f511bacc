"""Weights, offsets and exposure go through scikit-learn's cross-validation to the fit and to the score."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cumulant.glm import GLM, OnlineL1Logistic
from tests.glm.cases import features

X = features(n=90, p=3)
EXPOSURE = np.random.default_rng(0).random(90) * 5 + 0.1
COUNTS = np.random.default_rng(1).poisson(EXPOSURE * np.exp(0.5 * X[:, 0])).astype(float)
WEIGHTS = np.random.default_rng(2).random(90) + 0.1


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("given", [{"exposure": EXPOSURE}, {"offset": np.log(EXPOSURE)}, {"sample_weight": WEIGHTS}])
def test_cross_val_score_is_the_loop_written_out(given):
    requests = dict.fromkeys(given, True)
    model = GLM("poisson", l2=0.01).set_fit_request(**requests).set_score_request(**requests)
    scores = cross_val_score(model, X, COUNTS, params=given, cv=KFold(3))
    for score, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        own, other = ({name: values[rows] for name, values in given.items()} for rows in (train, test))
        fold = GLM("poisson", l2=0.01).fit(X[train], COUNTS[train], **own)
        assert_allclose(score, fold.score(X[test], COUNTS[test], **other), rtol=1e-12)


def test_a_grid_search_fits_with_the_exposure():
    model = GLM("poisson").set_fit_request(exposure=True).set_score_request(exposure=True)
    search = GridSearchCV(model, {"l2": [0.01, 1.0]}, cv=KFold(3)).fit(X, COUNTS, exposure=EXPOSURE)
    alone = GLM("poisson", **search.best_params_).fit(X, COUNTS, exposure=EXPOSURE)
    assert_allclose(search.best_estimator_.coef_, alone.coef_, rtol=1e-12)
    search.best_estimator_.verify(X, COUNTS, exposure=EXPOSURE)


def test_a_pipeline_passes_it_on():
    model = GLM("poisson").set_fit_request(exposure=True).set_score_request(exposure=True)
    scores = cross_val_score(make_pipeline(StandardScaler(), model), X, COUNTS, params={"exposure": EXPOSURE}, cv=3)
    assert np.all(np.isfinite(scores))


def test_what_is_not_asked_for_is_refused():
    with pytest.raises(ValueError, match="exposure"):
        cross_val_score(GLM("poisson"), X, COUNTS, params={"exposure": EXPOSURE})


def test_weights_of_an_online_learner():
    model = OnlineL1Logistic(random_state=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    y = np.where(COUNTS > 2, 1, 0)
    scores = cross_val_score(model, X, y, params={"sample_weight": WEIGHTS}, cv=KFold(3))
    train, test = next(iter(KFold(3).split(X)))
    fold = OnlineL1Logistic(random_state=0).fit(X[train], y[train], WEIGHTS[train])
    assert scores[0] == fold.score(X[test], y[test], WEIGHTS[test])
