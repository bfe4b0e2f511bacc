"""The tables of "Coming from scikit-learn" are true, and its example runs."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
    SGDRegressor,
    lasso_path,
)
from sklearn.utils.class_weight import compute_sample_weight

from cumulant.glm import GLM, OnlineL1Logistic, OnlineLasso
from tests.glm.cases import observations

ROOT = Path(__file__).parents[2]
X = np.random.default_rng(0).normal(size=(200, 4))
N, EXACT = 200, {"tol": 1e-10, "max_iter": 20_000}
ROWS = {
    "two classes": ("bernoulli", LogisticRegression(C=0.3, **EXACT), GLM("bernoulli", l2=1 / (0.3 * N))),
    "several classes": ("categorical", LogisticRegression(C=0.3, **EXACT), GLM("categorical", l2=1 / (0.3 * N))),
    "elastic net": (
        "bernoulli",
        LogisticRegression(C=0.3, l1_ratio=0.4, solver="saga", **EXACT),
        GLM("bernoulli", l1=0.4 / (0.3 * N), l2=0.6 / (0.3 * N)),
    ),
    "no penalty": ("bernoulli", LogisticRegression(C=np.inf, **EXACT), GLM("bernoulli", l2=0.0)),
    "least squares": ("normal", LinearRegression(), GLM("normal", l2=0.0)),
    "ridge": ("normal", Ridge(alpha=7.0), GLM("normal", l2=7.0 / N)),
    "lasso": ("normal", Lasso(alpha=0.1, tol=1e-12), GLM("normal", l1=0.1, l2=0.0)),
    "elastic net of numbers": (
        "normal",
        ElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12),
        GLM("normal", l1=0.1 * 0.3, l2=0.1 * (1 - 0.3)),
    ),
    "counts": ("poisson", PoissonRegressor(alpha=0.2, **EXACT), GLM("poisson", l2=0.2)),
    "gamma": ("gamma", GammaRegressor(alpha=0.2, **EXACT), GLM("gamma", l2=0.2)),
}


@pytest.mark.parametrize("name", ROWS)
def test_both_columns_of_the_table_are_the_same_model(name):
    family, peer, ours = ROWS[name]
    y = observations(family, X)
    peer.fit(X, y)
    ours.fit(X, y)
    assert ours.coef_.shape == peer.coef_.shape
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-3, atol=2e-5)
    assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-3, atol=1e-4)
    assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-3)


def test_the_default_is_c_of_one():
    y = observations("bernoulli", X)
    assert_allclose(GLM("bernoulli").fit(X, y).coef_, LogisticRegression(**EXACT).fit(X, y).coef_, rtol=5e-4)


def test_balanced_classes():
    y = (X[:, 0] + 0.5 * X[:, 1] > 0.9).astype(int)
    peer = LogisticRegression(class_weight="balanced", **EXACT).fit(X, y)
    ours = GLM("bernoulli").fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert_allclose(ours.coef_, peer.coef_, rtol=5e-4)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_stochastic_gradients_minimise_the_same_objective(penalty):
    y = observations("bernoulli", X)
    peer = SGDClassifier("log_loss", penalty=penalty, alpha=0.02, max_iter=3000, tol=None, random_state=0)
    ours = GLM("bernoulli", l2=0.02) if penalty == "l2" else GLM("bernoulli", l1=0.02, l2=0.0)
    assert_allclose(ours.fit(X, y).coef_, peer.fit(X, y).coef_, atol=0.02)


def test_online_learners_minimise_the_same_objective():
    y, labels = observations("normal", X), observations("bernoulli", X)
    peer = SGDRegressor(penalty="l1", alpha=0.1, max_iter=3000, tol=None, random_state=0).fit(X, y)
    lasso = OnlineLasso(l1=0.1, passes=200, random_state=0).fit(X, y)
    assert_allclose(lasso.coef_, peer.coef_, atol=0.03)
    model = OnlineL1Logistic(l1=0.02, step_delay=10.0, passes=200, random_state=0).fit(X, labels)
    assert_allclose(model.coef_, GLM("bernoulli", l1=0.02, l2=0.0).fit(X, labels).coef_, atol=0.02)


def test_the_path():
    y = observations("normal", X)
    penalties, coefs, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=[0.5, 0.1], tol=1e-12)
    assert_allclose(GLM("normal", l2=0.0).path(X, y, penalties).coef, coefs.T, atol=1e-4)


def test_the_example_runs(capsys):
    lines = (ROOT / "examples" / "regressions.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith(("#", '"""'))]
    assert len(code) < 25
    runpy.run_path(str(ROOT / "examples" / "regressions.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "tumours are classified correctly" in printed
    assert "mean texture" in printed
    assert "|w - w*| <=" in printed
