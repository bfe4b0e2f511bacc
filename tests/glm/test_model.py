"""`GLM` against scikit-learn, against enumeration of bad input, and against itself."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet, GammaRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.utils.estimator_checks import check_estimator

from cumulant import families
from cumulant.errors import CertificateError, DomainError, NoEstimateError
from cumulant.glm import GLM
from tests.glm.cases import FAMILIES, features, observations, sparse_features
from tests.reference import glm as reference

X = features()
N = len(X)
WEIGHTS = np.random.default_rng(9).integers(1, 4, N).astype(float)


@pytest.mark.parametrize("family", ["bernoulli", "categorical", "normal", "poisson", "gamma"])
def test_it_is_a_scikit_learn_estimator(family):
    failed = [r for r in check_estimator(GLM(family), on_skip=None, on_fail=None) if r["status"] == "failed"]
    assert [(r["check_name"], str(r["exception"])) for r in failed] == []


def test_dual_ascent_is_one_too():
    # Which rows are drawn depends on how many there are: repeated rows and weights then agree as far as `tol` says.
    reason = "draws rows at random"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    model = GLM("normal", solver="sdca", l2=1.0, max_iter=2000)
    results = check_estimator(model, on_skip=None, on_fail=None, expected_failed_checks=expected)
    assert [(r["check_name"], str(r["exception"])) for r in results if r["status"] == "failed"] == []


# Against scikit-learn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [1.0, 0.01])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_regression(l2, intercept):
    y = observations("bernoulli", X)
    peer = LogisticRegression(C=1 / (WEIGHTS.sum() * l2), fit_intercept=intercept, tol=1e-12, max_iter=10000)
    peer.fit(X, y, sample_weight=WEIGHTS)
    ours = GLM("bernoulli", l2=l2, fit_intercept=intercept, tol=1e-12).fit(X, y, sample_weight=WEIGHTS)
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-5, atol=1e-7)
    assert_allclose(ours.intercept_, peer.intercept_, atol=1e-6)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-7)
    assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), atol=1e-10)
    assert np.array_equal(ours.predict(X), peer.predict(X))
    assert ours.score(X, y) == peer.score(X, y)


def test_multinomial_regression():
    y = np.array(["a", "b", "c"])[observations("categorical", X)]
    peer = LogisticRegression(C=1 / (N * 0.02), tol=1e-12, max_iter=10000).fit(X, y)
    ours = GLM("categorical", l2=0.02, tol=1e-11).fit(X, y)
    assert ours.status_ == "converged"
    assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
    assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), atol=1e-10)
    assert np.array_equal(ours.predict(X), peer.predict(X))


@pytest.mark.parametrize(
    ("family", "make"),
    [
        ("poisson", lambda l2: PoissonRegressor(alpha=l2, tol=1e-10, max_iter=10000)),
        ("gamma", lambda l2: GammaRegressor(alpha=l2, tol=1e-10, max_iter=10000)),
        ("normal", lambda l2: Ridge(alpha=l2 * WEIGHTS.sum())),
    ],
)
def test_regressors(family, make):
    y = observations(family, X)
    peer = make(0.1).fit(X, y, sample_weight=WEIGHTS)
    ours = GLM(family, l2=0.1, tol=1e-12).fit(X, y, sample_weight=WEIGHTS)
    assert_allclose(ours.coef_, peer.coef_, rtol=1e-5, atol=1e-6)
    assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-5)
    assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-5)
    assert_allclose(ours.score(X, y), peer.score(X, y), rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_elastic_net(sparse):
    features_ = sparse_features() if sparse else X
    rng = np.random.default_rng(0)
    y = np.asarray(features_ @ rng.normal(size=features_.shape[1])).ravel() + 1 + rng.normal(size=features_.shape[0])
    peer = ElasticNet(alpha=0.03, l1_ratio=2 / 3, tol=1e-12, max_iter=100000).fit(features_, y)
    ours = GLM("normal", l1=0.02, l2=0.01, tol=1e-10).fit(features_, y)
    assert ours.status_ == "converged"
    assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5)
    assert np.any(ours.coef_ == 0)


def test_lasso_logistic_regression():
    y = observations("bernoulli", X)
    peer = LogisticRegression(l1_ratio=1.0, C=1 / (N * 0.03), solver="saga", tol=1e-10, max_iter=100000).fit(X, y)
    ours = GLM("bernoulli", l1=0.03, l2=0.0, tol=1e-10).fit(X, y)
    assert ours.certificate_.upper <= 1e-10 * ours.objective_
    assert_allclose(ours.coef_, peer.coef_, atol=1e-5)


# Certificates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_the_certificate_is_what_was_asked_for_and_true(family):
    y = observations(family, X)
    offset = 0.2 * np.cos(np.arange(N))
    for tol in (1e-2, 1e-4, 1e-8):
        model = GLM(family, l2=0.003, tol=tol).fit(X, y, sample_weight=WEIGHTS, offset=offset)
        _, best = reference.minimum(family, X, y, 0.003, WEIGHTS, offset)
        value = reference.objective(family, X, y, model.coef_.ravel(), model.intercept_, 0.003, WEIGHTS, offset)
        assert_allclose(model.objective_, value, rtol=1e-12)
        assert value - best <= model.certificate_.upper <= tol * value
        assert model.status_ == "converged"


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma", "normal"])
def test_without_a_penalty_the_certificate_comes_from_self_concordance(family):
    y = observations(family, X)
    model = GLM(family, l2=0.0, tol=1e-8).fit(X, y)
    _, best = reference.minimum(family, X, y, 0.0)
    assert "self-concordance" in model.certificate_.theorem
    assert model.objective_ - best <= model.certificate_.upper <= 1e-8 * model.objective_


def test_more_features_than_rows():
    A = sparse_features()
    y = (np.asarray(A.sum(axis=1)).ravel() > 0).astype(int)
    for matrix in (A, A.toarray()):
        for intercept in (True, False):
            model = GLM("bernoulli", l2=1e-3, tol=1e-6, fit_intercept=intercept).fit(matrix, y)
            assert model.status_ == "converged"
            peer = LogisticRegression(C=1 / (len(y) * 1e-3), tol=1e-10, max_iter=5000, fit_intercept=intercept)
            peer.fit(matrix, y)
            w, b = peer.coef_.ravel(), peer.intercept_
            best = reference.objective("bernoulli", A, y, w, b, 1e-3)
            assert -1e-6 * best <= model.objective_ - best <= model.certificate_.upper


def test_many_rows_begin_with_a_part_of_them():
    Z = features(n=30000)
    y = observations("bernoulli", Z)
    order = np.argsort(y, kind="stable")  # sorted by class
    a, b = (GLM("bernoulli", tol=1e-10).fit(Z[o], y[o]) for o in (order, np.arange(len(y))))
    assert_allclose(a.coef_, b.coef_, rtol=1e-6)
    assert len(b.history_) <= 4


def test_categorical_with_many_parameters():
    A = sparse_features(p=300)
    y = np.random.default_rng(0).integers(0, 3, A.shape[0])
    model = GLM("categorical", l2=1e-2, tol=1e-6).fit(A, y)
    assert model.status_ == "converged"
    peer = LogisticRegression(C=1 / (len(y) * 1e-2), tol=1e-10, max_iter=5000).fit(A, y)
    assert_allclose(model.coef_, peer.coef_, atol=2e-2 * np.abs(peer.coef_).max())


# Offsets, names, other families ---------------------------------------------------------------------------------------


def test_exposure_is_an_offset():
    exposure = np.random.default_rng(0).random(N) + 0.5
    y = np.random.default_rng(1).poisson(exposure * np.exp(0.5 * X[:, 0])).astype(float)
    a = GLM("poisson", tol=1e-10).fit(X, y, exposure=exposure)
    b = GLM("poisson", tol=1e-10).fit(X, y, offset=np.log(exposure))
    assert_allclose(a.coef_, b.coef_)
    # rates with exposures as weights have the same likelihood
    c = GLM("poisson", l2=1 / exposure.sum() * N / N, tol=1e-12).fit(X, y / exposure, sample_weight=exposure)
    d = GLM("poisson", l2=1 / N, tol=1e-12).fit(X, y, exposure=exposure)
    assert_allclose(c.coef_, d.coef_, rtol=1e-6)
    assert_allclose(a.predict(X, exposure=exposure), exposure * a.predict(X))


def test_names_of_features():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    model = GLM().fit(frame, X[:, 0])
    assert model.get_feature_names_out().tolist() == list(frame.columns)


def test_names_without_a_data_frame():
    model = GLM().fit(X, X[:, 0])
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in range(X.shape[1])]
    assert model.get_feature_names_out([*"abcdef"]).tolist() == [*"abcdef"]


def test_a_binomial_is_that_many_bernoullis():
    rng = np.random.default_rng(0)
    counts = rng.binomial(5, 1 / (1 + np.exp(-X[:, 0])))
    model = GLM(families.Binomial(5), l2=0.05, tol=1e-12).fit(X, counts)
    twice, labels = np.repeat(X, 5, axis=0), np.concatenate([[1] * c + [0] * (5 - c) for c in counts])
    single = GLM("bernoulli", l2=0.01, tol=1e-12).fit(twice, labels)
    assert_allclose(model.coef_, single.coef_.ravel(), rtol=1e-6)
    assert_allclose(model.predict(X), 5 * single.predict_proba(X)[:, 1], rtol=1e-6)


@pytest.mark.parametrize("family", [families.Exponential(), families.NegativeBinomial(2.0), families.Geometric()])
def test_families_on_a_half_line_stay_in_their_domain(family):
    rng = np.random.default_rng(0)
    Z = 0.2 * rng.random((300, 2))
    theta = -0.5 - Z @ [1.0, 2.0]
    y = np.asarray(family.sample(theta[:, None], 1, rng=0))[0].astype(float)
    model = GLM(family, l2=1e-3, tol=1e-11).fit(Z, y)
    assert model.status_ == "converged"
    eta = Z @ model.coef_ + model.intercept_
    mean = np.asarray(family.to_mean(eta[:, None]))[:, 0]
    assert_allclose(Z.T @ (mean - y) / 300, -1e-3 * model.coef_, atol=1e-6)  # the likelihood equation
    assert_allclose(np.mean(mean - y), 0, atol=1e-6)
    with pytest.raises(DomainError, match="natural parameters"):
        model.predict(np.array([[1e6, 1e6], [-1e6, -1e6]]))


# Standard errors ------------------------------------------------------------------------------------------------------


def test_standard_errors_of_least_squares():
    y = observations("normal", X)
    model = GLM("normal", l2=0.0, tol=1e-10).fit(X, y)
    errors = model.standard_errors(X, y)
    Z = np.column_stack([X, np.ones(N)])
    v = np.linalg.lstsq(Z, y, rcond=None)[0]
    variance = np.sum((y - Z @ v) ** 2) / (N - Z.shape[1])
    expected = np.sqrt(variance * np.diagonal(np.linalg.inv(Z.T @ Z)))
    assert_allclose(np.append(errors.coef, errors.intercept), expected, rtol=1e-6)


def test_standard_errors_of_logistic_regression_are_the_spread_of_estimates():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 2))
    eta = Z @ [1.0, -0.5] + 0.2
    estimates, errors = [], []
    for _ in range(300):
        y = (rng.random(400) < 1 / (1 + np.exp(-eta))).astype(int)
        model = GLM("bernoulli", l2=0.0, tol=1e-6).fit(Z, y)
        estimates.append(np.append(model.coef_, model.intercept_))
        found = model.standard_errors(Z, y)
        errors.append(np.append(found.coef, found.intercept))
    spread = np.std(estimates, axis=0)
    assert_allclose(np.mean(errors, axis=0), spread, rtol=4 / np.sqrt(2 * 300))  # four standard errors of the spread


def test_standard_errors_are_refused_where_they_mean_nothing():
    y = observations("normal", X)
    with pytest.raises(CertificateError, match="l1 penalty"):
        GLM("normal", l1=0.1).fit(X, y).standard_errors(X, y)
    twice = np.column_stack([X, X[:, 0]])
    with pytest.raises(NoEstimateError, match="linearly dependent"):
        GLM("normal", l2=0.0).fit(twice, y).standard_errors(twice, y)


# Streams --------------------------------------------------------------------------------------------------------------


def test_a_stream_of_normal_batches_is_one_ridge_regression():
    y = observations("normal", X)
    stream = GLM("normal", l2=0.1)
    for rows in np.array_split(np.arange(N), 7):
        stream.partial_fit(X[rows], y[rows])
    whole = GLM("normal", l2=0.1, tol=1e-12).fit(X, y)
    assert_allclose(stream.coef_, whole.coef_, rtol=1e-6)
    assert_allclose(stream.intercept_, whole.intercept_, rtol=1e-6)
    assert stream.certificate_ is None
    assert "gone" in stream.refusal_


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "gamma", "categorical"])
def test_a_stream_comes_near_to_the_fit_on_all_rows(family):
    Z = features(n=4000)
    y = observations(family, Z)
    stream, whole = GLM(family, l2=1e-3), GLM(family, l2=1e-3).fit(Z, y)
    for rows in np.array_split(np.arange(len(y)), 10):
        arguments = {"classes": np.unique(y)} if family in ("bernoulli", "categorical") else {}
        stream.partial_fit(Z[rows], y[rows], **arguments)
    single = GLM(family, l2=1e-3).fit(Z[:400], y[:400])
    near, far = (np.abs(model.coef_ - whole.coef_).max() for model in (stream, single))
    assert near < 0.35 * far
    assert stream.status_ == "max_steps"


def test_what_a_stream_refuses():
    y = observations("bernoulli", X)
    with pytest.raises(ValueError, match="classes must be given"):
        GLM("bernoulli").partial_fit(X, y)
    model = GLM("bernoulli").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"label 7\.0 is not among"):
        model.partial_fit(X, np.full(N, 7.0))
    with pytest.raises(ValueError, match="the same in every call"):
        model.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="0 sample"):
        model.partial_fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="l1 must be 0"):
        GLM("normal", l1=0.1).partial_fit(X, y)
    one_class = GLM("bernoulli", l2=0.1).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    assert np.all(np.isfinite(one_class.partial_fit(X, y).coef_))


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "tied"), [(1.0, 0), (0.0, 3)], ids=["complete separation", "quasi-complete separation"]
)
def test_separable_data_without_a_penalty_have_no_minimiser(gap, tied):
    y = (X[:, 0] > 0).astype(int)
    Z = X.copy()
    Z[:, 0] += gap * np.sign(Z[:, 0])
    if tied:  # both classes on the separating plane
        Z[:2, 0] = 0.0
        y[:2] = [0, 1]
    with pytest.raises(NoEstimateError, match="no maximum"):
        GLM("bernoulli", l2=0.0).fit(Z, y)
    assert GLM("bernoulli", l2=1e-3).fit(Z, y).status_ == "converged"


def test_counts_of_zero_can_separate_too():
    y = np.where(X[:, 0] > 0, 3.0, 0.0)
    Z = np.column_stack([X[:, 0] <= 0, X[:, 1]]).astype(float)
    with pytest.raises(NoEstimateError, match="no maximum"):
        GLM("poisson", l2=0.0).fit(Z, y)


def test_separable_classes_without_a_penalty():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    Z = X[:, :2] * np.array([10.0, 1.0])
    with pytest.raises(NoEstimateError, match="no maximum"):
        GLM("categorical", l2=0.0).fit(Z, y)


def test_constant_and_empty_columns_do_no_harm():
    y = observations("bernoulli", X)
    Z = np.column_stack([X, np.ones(N), np.zeros(N)])
    for l2 in (0.0, 0.01):
        model, plain = (GLM("bernoulli", l2=l2, tol=1e-9).fit(A, y) for A in (Z, X))
        assert_allclose(model.predict_proba(Z), plain.predict_proba(X), atol=1e-5)


def test_a_perfect_fit():
    w = np.arange(1.0, 7.0)
    model = GLM("normal", l2=0.0).fit(X, X @ w + 3)
    assert_allclose(model.coef_, w, rtol=1e-9)
    assert_allclose(model.intercept_, 3, rtol=1e-9)
    assert model.score(X, X @ w + 3) > 1 - 1e-12


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"family": "cauchy"}, "family must be one of"),
        ({"family": "binomial"}, "number of trials"),
        ({"l2": -1.0}, "l2 must be a number, at least 0"),
        ({"l1": None}, "l1 must be a number"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"solver": "magic"}, "solver must be one of"),
        ({"solver": "newton", "l1": 0.1}, "does not take an l1"),
        ({"solver": "prox-newton"}, "for l1 > 0"),
        ({"sampling": "all"}, "sampling must be one of"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"solver": "sdca", "l2": 0.0}, "needs l2 > 0"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        GLM(**settings).fit(X, X[:, 0])


def test_bad_data():
    y = observations("bernoulli", X)
    broken = X.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GLM("bernoulli").fit(broken, y)
    with pytest.raises(ValueError, match="one class only"):
        GLM("bernoulli").fit(X, np.ones(N))
    with pytest.raises(ValueError, match="one class only"):
        GLM("bernoulli").fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match=r"non-zero|positive sum"):
        GLM("normal").fit(X, y, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="offset or exposure must have shape"):
        GLM("normal").fit(X, y, offset=np.zeros(3))
    with pytest.raises(ValueError, match="exposure must be positive"):
        GLM("poisson").fit(X, y, exposure=np.zeros(N))
    with pytest.raises(ValueError, match="log link"):
        GLM("normal").fit(X, y, exposure=np.ones(N))
    with pytest.raises(ValueError, match="positive for the gamma"):
        GLM("gamma").fit(X, y)
    for family in ("bernoulli", "poisson"):
        model = GLM(family).fit(X, y)
        with pytest.raises(ValueError, match=f"y must have an entry for each of the {N} rows of X"):
            model.score(X, y[:-1])
        assert model.score(X, y.astype(object)) == model.score(X, y)  # a column of a data frame


def test_a_family_on_a_half_line_needs_an_intercept():
    with pytest.raises(ValueError, match=r"fit_intercept must be True for family=Exponential\(\)"):
        GLM(families.Exponential(), fit_intercept=False).fit(X, X[:, 0] ** 2 + 0.1)


def test_too_few_steps_are_said():
    y = observations("bernoulli", X)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = GLM("bernoulli", l2=1e-4, tol=1e-10, max_iter=2).fit(X, y)
    assert model.status_ == "max_steps"
    _, best = reference.minimum("bernoulli", X, y, 1e-4)
    assert model.objective_ - best <= model.certificate_.upper


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads():
    A = sparse_features(n=3000, p=900, density=0.1)
    y = (np.asarray(A[:, :50].sum(axis=1)).ravel() > 0).astype(int)
    for solver in ("auto", "sdca"):
        a, b = (
            GLM("bernoulli", l2=0.01, solver=solver, n_jobs=jobs, random_state=3, tol=1e-3).fit(A, y) for jobs in (1, 2)
        )
        assert np.array_equal(a.coef_, b.coef_)


def test_a_fitted_model_survives_a_pickle():
    y = observations("poisson", X)
    model = GLM("poisson").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(sp.csr_matrix(X)), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("solver", ["newton", "prox-newton", "sdca"])
def test_verify_issues_the_certificate_again_from_the_data(solver, tmp_path):
    X, y = features(n=60), observations("poisson", features(n=60))
    rng = np.random.default_rng(0)
    weights, exposure = rng.random(60) * (rng.random(60) < 0.8), rng.random(60) + 0.5
    model = GLM("poisson", l1=0.01 * (solver != "newton"), l2=0.1, tol=1e-6, solver=solver, random_state=0)
    data = {"sample_weight": weights, "exposure": exposure}
    model.fit(X, y, **data)
    for found in (model, GLM.load(model.save(tmp_path / "model"))):
        fresh = found.verify(X, y, **data)
        assert fresh.bound <= found.certificate_.upper
        assert fresh.recipe == found.certificate_.recipe
        with pytest.raises(CertificateError, match="does not hold"):
            found.verify(X, y + 1, **data)
        with pytest.raises(CertificateError, match="dual slope for each row"):
            found.verify(X[:-1], y[:-1], weights[:-1], exposure=exposure[:-1])
        found.coef_ = found.coef_ + 0.1
        with pytest.raises(CertificateError, match="does not hold"):
            found.verify(X, y, **data)


@pytest.mark.parametrize("family", ["bernoulli", "categorical", "normal"])
def test_verify_without_a_penalty_and_for_classifiers(family, tmp_path):
    X = features(n=80)
    y = observations(family, X)
    y = np.array(["a", "b", "c"])[y.astype(int)] if family != "normal" else y
    model = GLM(family, l2=0.0 if family != "categorical" else 0.1, tol=1e-6).fit(X, y)
    model.verify(X, y)
    GLM.load(model.save(tmp_path / "model")).verify(X, y)
    stream = GLM(family, l2=0.1).partial_fit(X, y, classes=np.unique(y) if family != "normal" else None)
    with pytest.raises(CertificateError, match="rows of earlier batches are gone"):
        stream.verify(X, y)


@pytest.mark.parametrize("settings", [{}, {"l1": 0.01}, {"solver": "sdca", "tol": 1e-9}], ids=str)
def test_a_fit_is_interrupted_by_a_callback_and_resumed_from_a_checkpoint(settings, tmp_path):
    X = features(n=300, p=80, seed=3)
    y = observations("bernoulli", X)
    settings = {"l2": 1e-3, "tol": 1e-8, "random_state": 0} | settings
    whole = GLM("bernoulli", **settings).fit(X, y)
    seen = []
    first = GLM("bernoulli", **settings, checkpoint=tmp_path / "fit", callback=lambda s: seen.append(s.step) or True)
    assert first.fit(X, y).status_ == "stopped"
    assert seen == [1]
    first.verify(X, y)
    second = GLM("bernoulli", **settings, checkpoint=tmp_path / "fit").fit(X, y)
    assert second.status_ == whole.status_ == "converged"
    assert_array_equal(second.coef_, whole.coef_)
    assert second.n_iter_ == whole.n_iter_
