"""How far coefficients are from the minimiser: what the default gives, and the certificate of the distance."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import GammaRegressor, Lasso, LogisticRegression, PoissonRegressor, Ridge

from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.glm import GLM, GLMProblem, PrimalDual, certify_glm_distance, design_of, loss_of
from tests.glm.cases import FAMILIES, observations
from tests.reference import glm as reference

N = 300
X = np.random.default_rng(0).normal(size=(N, 5))
EXACT = {"tol": 1e-10, "max_iter": 10_000}
PEERS = {
    "bernoulli": LogisticRegression(C=1.0, **EXACT),
    "categorical": LogisticRegression(C=1.0, **EXACT),
    "normal": Ridge(alpha=1.0),
    "poisson": PoissonRegressor(alpha=1 / N, **EXACT),
    "gamma": GammaRegressor(alpha=1 / N, **EXACT),
}


SDCA = [(family, "sdca") for family in ("bernoulli", "normal", "gamma")]  # Poisson losses are not smooth: it is slow


@pytest.mark.parametrize(("family", "solver"), [*((family, "auto") for family in PEERS), *SDCA])
def test_coefficients_of_the_default_agree_with_scikit_learn_to_three_digits(family, solver):
    y = observations(family, X)
    peer = PEERS[family].fit(X, y)
    settings = {"solver": solver, "random_state": 0} if solver == "sdca" else {}
    model = GLM(family, **settings).fit(X, y)
    assert model.status_ == "converged"
    digits = 5e-4 * np.abs(peer.coef_).max()
    assert_allclose(model.coef_, peer.coef_, rtol=5e-4, atol=0.1 * digits)
    assert_allclose(model.intercept_, peer.intercept_, rtol=5e-4, atol=digits)


def test_so_do_those_of_the_lasso():
    y = observations("normal", X)
    peer = Lasso(alpha=0.05, tol=1e-12).fit(X, y)
    assert_allclose(GLM("normal", l1=0.05, l2=0.0).fit(X, y).coef_, peer.coef_, rtol=5e-4, atol=1e-6)


# The distance ---------------------------------------------------------------------------------------------------------


def problem_of(family, l2, l1=0.0, intercept=True, scales=1.0):
    y = observations(family, X)
    Z = X * scales
    weights = np.random.default_rng(1).random(N) + 0.1
    return GLMProblem(design_of(Z, intercept), loss_of(family, y), weights / weights.sum(), np.zeros(N), l1, l2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_distance_is_true_near_and_far(family, l2, intercept):
    problem = problem_of(family, l2, intercept=intercept)
    best, _ = reference.minimum(family, problem.design.X, problem.loss.y, l2, problem.weights, 0.0, intercept)
    rng, issued, tight = np.random.default_rng(0), 0, []
    for scale in np.geomspace(1e-5, 3.0, 40):
        x = best + scale * rng.normal(size=best.shape)
        distance = np.linalg.norm((x - best)[:5])
        try:
            certificate = certify_glm_distance(problem, x)
        except CertificateError:
            continue
        issued += 1
        assert certificate.upper >= distance - 1e-11  # what the reference itself may be off
        if scale < 1e-2:
            tight.append(certificate.upper / distance)
        certificate.verify(Subject(problem, x))
    assert issued >= 20
    assert np.median(tight) < 10


def test_the_distance_with_an_l1_penalty():
    problem = problem_of("bernoulli", 0.0, l1=0.02)
    y = problem.loss.y
    exact = GLM("bernoulli", l1=0.02, l2=0.0, tol=1e-13).fit(X, y, sample_weight=problem.weights)
    for tol in (1e-2, 1e-4, 1e-6):
        model = GLM("bernoulli", l1=0.02, l2=0.0, tol=tol).fit(X, y, sample_weight=problem.weights)
        certificate = model.certify_distance(X, y, sample_weight=problem.weights)
        assert np.linalg.norm(model.coef_ - exact.coef_) <= certificate.upper < 30 * np.sqrt(tol)


def exact_least_squares(A, y, weights, l2):
    """The minimiser for one or two columns in rational arithmetic; None where it is not unique."""
    columns = [[Fraction(v) for v in column] for column in A.T.tolist()]
    y, weights, l2, k = (
        [Fraction(v) for v in y.tolist()],
        [Fraction(v) for v in weights.tolist()],
        Fraction(l2),
        len(columns),
    )

    def inner(a, b):
        return sum(p * u * v for p, u, v in zip(weights, a, b, strict=True))

    gram = [[inner(a, b) + l2 * (a is b) for b in columns] for a in columns]
    right = [inner(a, y) for a in columns]
    if k == 1:
        return [right[0] / gram[0][0]] if gram[0][0] else None
    det = gram[0][0] * gram[1][1] - gram[0][1] * gram[1][0]
    if not det:
        return None
    return [
        (right[0] * gram[1][1] - right[1] * gram[0][1]) / det,
        (gram[0][0] * right[1] - gram[1][0] * right[0]) / det,
    ]


def test_rounding_does_not_deceive_the_distance():
    """Least squares of extreme scales, few rows, nearly collinear columns and lopsided weights, against fractions."""
    issued = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(1, 6)), int(rng.integers(1, 3))
        A = rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, k)
        if k == 2 and seed % 2:
            A[:, 1] = A[:, 0] * (1 + 10.0 ** -rng.integers(2, 14) * rng.normal(size=n))
        y = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9)
        weights = 10.0 ** rng.integers(-6, 7, n)
        weights = weights / weights.sum()
        l2 = float(rng.choice([0.0, 1e-12, 1e-3, 1e3]))
        problem = GLMProblem(design_of(A, False), loss_of("normal", y), weights, np.zeros(n), 0.0, l2)
        gram = A.T @ (weights[:, None] * A) + l2 * np.eye(k)
        x = np.linalg.lstsq(gram, A.T @ (weights * y), rcond=None)[0] * (1 + float(rng.choice([0.0, 1e-12, 1e-3])))
        truth = exact_least_squares(A, y, weights, l2)
        try:
            certificate = certify_glm_distance(problem, x)
        except CertificateError:
            continue
        issued += 1
        assert truth is not None
        squared = sum((Fraction(own) - exact) ** 2 for own, exact in zip(x.tolist(), truth, strict=True))
        assert squared <= Fraction(certificate.upper) ** 2, seed
    assert issued > 200


def test_one_logistic_column_against_many_digits():
    rng = np.random.default_rng(3)
    for scale, l2 in ((1.0, 0.01), (1e6, 1e-9), (1e-6, 1e-9), (30.0, 0.0)):
        a = scale * rng.normal(size=40)
        y = (rng.random(40) < 1 / (1 + np.exp(-a / scale))).astype(float)
        with mpmath.workdps(50):
            rows = [(mpmath.mpf(float(v)), mpmath.mpf(float(t))) for v, t in zip(a, y, strict=True)]

            def slope(w, rows=rows, l2=l2):
                return sum(v * (1 / (1 + mpmath.exp(-v * w)) - t) for v, t in rows) / 40 + l2 * w

            ends = mpmath.mpf(-20) / scale, mpmath.mpf(20) / scale
            truth = mpmath.findroot(slope, ends, solver="bisect", maxsteps=250, verify=False)
            assert abs(slope(truth)) < 1e-40 * scale
            for tol in (1e-3, 1e-8, 1e-15):
                model = GLM("bernoulli", l2=l2, tol=tol, fit_intercept=False).fit(a[:, None], y)
                distance = abs(mpmath.mpf(float(model.coef_[0, 0])) - truth)
                assert model.certify_distance(a[:, None], y).upper >= distance


def test_the_estimator_offers_it_and_it_survives_a_file(tmp_path):
    y = observations("poisson", X)
    exposure = np.random.default_rng(2).random(N) + 0.5
    model = GLM("poisson").fit(X, y, exposure=exposure)
    certificate = model.certify_distance(X, y, exposure=exposure)
    assert certificate.quantity == "|w - w*|"
    assert "strongly convex" in str(certificate)
    again = GLM.load(model.save(tmp_path / "model")).certify_distance(X, y, exposure=exposure)
    assert again == certificate
    problem = model._posed(X, y, None, None, exposure)
    certificate.verify(Subject(problem, PrimalDual(model._parameters(), model.dual_)))


@pytest.mark.parametrize(
    ("settings", "columns", "words"),
    [
        ({"family": "categorical", "l2": 0.0}, X, "several classes; use l2 > 0"),
        ({"family": "bernoulli", "l2": 0.0}, np.column_stack([X, X[:, 0]]), "linearly dependent"),
    ],
)
def test_refusals_are_sentences(settings, columns, words):
    y = observations(settings["family"], X)
    model = GLM(**settings).fit(columns, y)
    assert model.certificate_ is None
    assert words in model.refusal_
    with pytest.raises(CertificateError, match=words):
        model.certify_distance(columns, y)
