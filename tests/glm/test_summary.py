"""The table of coefficients against R's printed ones, closed forms and repeated rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri, softmax
from scipy.stats import t as student

from cumulant import families
from cumulant.errors import CertificateError, NoEstimateError
from cumulant.glm import GLM
from tests.glm.cases import features, observations

SPEED = [
    4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16, 17,
    17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25
]  # fmt: skip
DISTANCE = [
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40,
    32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85
]  # fmt: skip
WEIGHT = [
    2.620, 2.875, 2.320, 3.215, 3.440, 3.460, 3.570, 3.190, 3.150, 3.440, 3.440, 4.070, 3.730, 3.780, 5.250, 5.424,
    5.345, 2.200, 1.615, 1.835, 2.465, 3.520, 3.435, 3.840, 3.845, 1.935, 2.140, 1.513, 3.170, 2.770, 3.570, 2.780
]  # fmt: skip
MANUAL = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]


def column(values):
    return np.array(values, dtype=float)[:, None]


# Tables that R prints -------------------------------------------------------------------------------------------------


def test_stopping_distances_of_cars():
    # summary(lm(dist ~ speed, cars))
    X, y = column(SPEED), np.array(DISTANCE, dtype=float)
    table = GLM("normal", l2=0.0).fit(X, y).summary(X, y)
    assert table.terms == ("(intercept)", "x0")
    assert_allclose(table.coef, [-17.5791, 3.9324], atol=5e-5)
    assert_allclose(table.error, [6.7584, 0.4155], atol=5e-5)
    assert_allclose(table.statistic, [-2.601, 9.464], atol=5e-4)
    assert_allclose(table.p_value, [0.0123, 1.49e-12], rtol=5e-3)
    assert_allclose(table.facts["dispersion"], 15.38**2, rtol=5e-4)
    assert table.facts["residual degrees of freedom"] == 48
    # confint(lm(dist ~ speed, cars))
    assert_allclose(table.lower, [-31.167850, 3.096964], atol=5e-6)
    assert_allclose(table.upper, [-3.990340, 4.767853], atol=5e-6)
    assert list(table.columns) == ["coef", "std err", "t", "p", "2.5 %", "97.5 %"]


def test_manual_transmissions():
    # summary(glm(am ~ wt, binomial, mtcars))
    X, y = column(WEIGHT), np.array(MANUAL)
    table = GLM("bernoulli", l2=0.0).fit(X, y).summary(X, y)
    assert_allclose(table.coef, [12.040, -4.024], atol=5e-4)
    assert_allclose(table.error, [4.510, 1.436], rtol=5e-4)  # R takes the weights of the step before the last
    assert_allclose(table.statistic, [2.670, -2.801], atol=5e-4)
    assert_allclose(table.p_value, [0.00759, 0.00509], atol=5e-6)
    assert_allclose(table.facts["deviance"], 19.176, atol=5e-4)


def test_a_randomised_controlled_trial():
    # Dobson (1990, page 93), the example of R's help page of glm: glm(counts ~ outcome + treatment, poisson())
    counts = np.array([18.0, 17, 15, 20, 10, 20, 25, 13, 12])
    outcome, treatment = np.tile([0, 1, 2], 3), np.repeat([0, 1, 2], 3)
    X = np.column_stack([outcome == 1, outcome == 2, treatment == 1, treatment == 2]).astype(float)
    table = GLM("poisson", l2=0.0).fit(X, counts).summary(X, counts)
    assert_allclose(table.coef, [3.045, -0.4543, -0.2930, 0.0, 0.0], atol=5e-4)
    assert_allclose(table.error, [0.1709, 0.2022, 0.1927, 0.2, 0.2], atol=5e-5)
    assert_allclose(table.p_value[1:], [0.0246, 0.1285, 1.0, 1.0], atol=5e-5)
    assert_allclose(table.facts["deviance"], 5.1291, atol=5e-5)
    assert table.facts["residual degrees of freedom"] == 4


# Closed forms ---------------------------------------------------------------------------------------------------------


def test_a_rate_with_exposure():
    rng = np.random.default_rng(0)
    exposure, X = rng.random(50) + 0.5, np.ones((50, 1))
    counts = rng.poisson(3 * exposure).astype(float)
    for given in ({"exposure": exposure}, {"offset": np.log(exposure)}):
        model = GLM("poisson", l2=0.0, fit_intercept=False).fit(X, counts, **given)
        table = model.summary(X, counts, **given, level=0.9)
        assert_allclose(table.coef, np.log(counts.sum() / exposure.sum()), rtol=1e-7)
        assert_allclose(table.error, counts.sum() ** -0.5, rtol=1e-7)
        assert_allclose(table.upper - table.lower, 2 * ndtri(0.95) * counts.sum() ** -0.5, rtol=1e-7)


def test_the_mean_of_gamma_observations():
    y = np.random.default_rng(0).gamma(2.0, 1.5, 40)
    model = GLM("gamma", l2=0.0, fit_intercept=False).fit(np.ones((40, 1)), y)
    table = model.summary(np.ones((40, 1)), y)
    dispersion = np.sum((y / y.mean() - 1) ** 2) / 39
    assert_allclose(table.coef, np.log(y.mean()), rtol=1e-7)
    assert_allclose(table.error, np.sqrt(dispersion / 40), rtol=1e-6)
    assert_allclose(table.facts["dispersion"], dispersion, rtol=1e-6)
    assert_allclose(table.upper - table.coef, student.ppf(0.975, 39) * table.error, rtol=1e-9)


def test_family_objects_have_a_known_dispersion():
    X, y = column(np.arange(40) < 15), np.random.default_rng(0).exponential(2.0, 40)
    table = GLM(families.Exponential(), l2=0.0).fit(X, y).summary(X, y)
    one, two = y[15:].mean(), y[:15].mean()  # the parameters are minus the rates of the two groups
    assert_allclose(table.coef, [-1 / one, 1 / one - 1 / two], rtol=1e-6)
    assert_allclose(table.error, [1 / (5 * one), np.hypot(1 / (5 * one), 15**-0.5 / two)], rtol=1e-6)
    known = GLM(families.NormalKnownVariance(4.0), l2=0.0).fit(X, y).summary(X, y)
    assert_allclose(known.coef, [one / 4, (two - one) / 4], rtol=1e-6)  # the mean over the variance
    assert_allclose(known.error, [0.1, np.hypot(0.1, 60**-0.5)], rtol=1e-6)
    assert table.names == known.names == ("std err", "z")
    assert table.facts["family"] == "Exponential"


@pytest.mark.parametrize("family", ["bernoulli", "normal", "poisson", "gamma", "categorical"])
def test_weights_count_repetitions(family):
    X = features(n=60, p=2)
    y = observations(family, X)
    weights = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    a = GLM(family, l2=0.0, tol=1e-12).fit(X, y, sample_weight=weights).summary(X, y, sample_weight=weights)
    b = GLM(family, l2=0.0, tol=1e-12).fit(X[rows], y[rows]).summary(X[rows], y[rows])
    for name in ("coef", "error", "statistic", "p_value", "lower", "upper"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-5, atol=1e-8)
    assert a.facts["observations"] == len(rows)
    assert_allclose(a.facts["dispersion"], b.facts["dispersion"], rtol=1e-8)


def test_precisions_as_weights():
    # Weighted least squares: the covariance is s^2 (X^T V X)^-1, s^2 from as many rows as there are.
    X, v = features(n=60, p=2), np.random.default_rng(0).random(60) + 0.2
    y = observations("normal", X)
    w = v / v.mean()
    table = GLM("normal", l2=0.0).fit(X, y, sample_weight=w).summary(X, y, sample_weight=w)
    Z = np.column_stack([np.ones(60), X])
    inverse = np.linalg.inv(Z.T @ (v[:, None] * Z))
    coef = inverse @ Z.T @ (v * y)
    scale = np.sum(v * (y - Z @ coef) ** 2) / 57
    assert_allclose(table.coef, coef, rtol=1e-6)
    assert_allclose(table.error, np.sqrt(scale * np.diagonal(inverse)), rtol=1e-6)


def test_several_classes_against_the_information_of_the_reduced_model():
    X = features(n=200, p=2)
    y = np.array(["a", "b", "c"])[observations("categorical", X)]
    model = GLM("categorical", l2=0.0).fit(X, y)
    table = model.summary(X, y)
    Z = np.column_stack([np.ones(200), X])
    beta = table.coef.reshape(2, 3)  # class a has none
    p = softmax(np.column_stack([np.zeros(200), Z @ beta.T]), axis=1)[:, 1:]
    assert_allclose(Z.T @ (p - np.column_stack([y == "b", y == "c"])), 0, atol=1e-3)  # the likelihood equations
    information = np.zeros((6, 6))
    for row, q in zip(Z, p, strict=True):
        information += np.kron(np.diag(q) - np.outer(q, q), np.outer(row, row))
    assert_allclose(table.error, np.sqrt(np.diagonal(np.linalg.inv(information))), rtol=1e-6)
    assert table.classes == ("b", "b", "b", "c", "c", "c")
    assert table.terms == ("(intercept)", "x0", "x1") * 2
    assert table.facts["residual degrees of freedom"] == 194
    assert "differences from those of class a" in str(table)
    with pytest.raises(NoEstimateError, match="differences of their coefficients"):
        model.standard_errors(X, y)


def test_two_classes_are_a_bernoulli():
    X = features(n=100, p=2)
    y = observations("bernoulli", X)
    a, b = (GLM(family, l2=0.0, tol=1e-12).fit(X, y).summary(X, y) for family in ("categorical", "bernoulli"))
    assert_allclose(a.coef, b.coef, rtol=1e-5)
    assert_allclose(a.error, b.error, rtol=1e-5)


# What it is as an object ----------------------------------------------------------------------------------------------


def test_text_html_and_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"speed & more": SPEED})
    table = GLM("normal", l2=0.0).fit(frame, DISTANCE).summary(frame, DISTANCE)
    lines = str(table).splitlines()
    assert lines[0].startswith("family normal, observations 50, residual degrees of freedom 48, dispersion 236.5")
    assert lines[1].split() == ["coef", "std", "err", "t", "p", "2.5", "%", "97.5", "%"]
    assert lines[3].split() == ["speed", "&", "more", "3.932", "0.4155", "9.464", "1.49e-12", "3.097", "4.768"]
    assert "certified" in lines[-1]
    assert repr(table) == str(table)
    html = table._repr_html_()
    assert "<th>speed &amp; more</th><td>3.932</td>" in html
    found = table.to_frame()
    assert found.index.tolist() == ["(intercept)", "speed & more"]
    assert_array_equal(found["std err"].to_numpy(), table.error)
    X = features(n=60, p=2)
    y = observations("categorical", X)
    classes = GLM("categorical", l2=0.0).fit(X, y).summary(X, y)
    assert classes.to_frame().loc[("1", "x0"), "coef"] == classes.coef[1]
    assert "<th>1</th><th>(intercept)</th>" in classes._repr_html_()


def test_an_l2_penalty_is_a_prior_and_there_are_no_tests():
    X = features(n=100, p=3)
    y = observations("normal", X)
    model = GLM("normal", l2=0.1, fit_intercept=False).fit(X, y)
    table = model.summary(X, y)
    assert table.statistic is None
    assert table.p_value is None
    assert list(table.columns) == ["coef", "posterior sd", "2.5 %", "97.5 %"]
    assert "Gaussian prior" in str(table)
    assert "l2=0 for standard errors" in str(table)
    variance = np.sum((y - X @ model.coef_) ** 2) / 97
    assert_allclose(table.error**2, np.diagonal(variance * np.linalg.inv(X.T @ X + 10 * np.eye(3))), rtol=1e-6)


def test_what_is_refused():
    X = features(n=50, p=3)
    y = observations("normal", X)
    with pytest.raises(CertificateError, match=r"l1 = 0\.1.*not a differentiable"):
        GLM("normal", l1=0.1).fit(X, y).summary(X, y)
    model = GLM("normal", l2=0.0).fit(X, y)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1; got 95"):
        model.summary(X, y, level=95)
    with pytest.raises(NoEstimateError, match="4 observations for 4 parameters"):
        GLM("normal", l2=0.0).fit(X[:4], y[:4]).summary(X[:4], y[:4])
    twice = np.column_stack([X, X[:, 0]])
    with pytest.raises(NoEstimateError, match="linearly dependent"):
        GLM("normal", l2=0.0).fit(twice, y).summary(twice, y)
