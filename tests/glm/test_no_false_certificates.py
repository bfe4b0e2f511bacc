"""No certificate is below the truth: random tiny problems, honest and degenerate and badly scaled, in 100 digits."""

import warnings

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

from cumulant.errors import CertificateError, CumulantError
from cumulant.glm import (
    GLM,
    GLMNewton,
    GLMProblem,
    GLMProximalNewton,
    OnlineL1Logistic,
    OnlineLasso,
    PrimalDual,
    certify_glm_concordance,
    certify_glm_gap,
    design_of,
    loss_of,
)
from tests.reference.glm_exact import ExactGLM

FAMILIES = ("normal", "bernoulli", "poisson", "gamma", "categorical")


def scaled(rng, shape):
    """Numbers of one size, of sizes from 1e-12 to 1e12 by columns, or small whole numbers."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(-2, 3, shape).astype(float)
    X = rng.normal(size=shape)
    if kind == 2:
        X = X * 10.0 ** rng.uniform(-12, 12, shape[1])
    if kind == 3:
        X = X * 10.0 ** rng.uniform(-12, 12)
    return X


def draw(rng):
    """A tiny data set of any family, with what may be wrong with one."""
    family = FAMILIES[rng.integers(len(FAMILIES))]
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    X = scaled(rng, (n, p))
    degenerate = rng.random()
    if degenerate < 0.1:
        X[:] = 0.0
    elif degenerate < 0.2:
        X[:] = X[:, :1]
    elif degenerate < 0.3:
        X = X.astype(np.float32).astype(np.float64)
    elif degenerate < 0.4:
        X[:, 0] = 1.0
    if family == "normal":
        y = rng.normal(size=n) * 10.0 ** rng.choice([0, 0, -8, 8, -100])
    elif family == "bernoulli":
        y = rng.integers(0, 2, n).astype(float)
    elif family == "poisson":
        y = rng.poisson(3.0, n) * 10.0 ** rng.choice([0, 0, 6])
    elif family == "gamma":
        y = rng.gamma(1.0, size=n) * 10.0 ** rng.choice([0, 0, -8, 8]) + 1e-12
    else:
        y = rng.integers(0, 3, n)
    kind = rng.integers(3)
    weights = np.ones(n) if kind == 0 else rng.random(n) + 0.1
    if kind == 2:
        weights = 10.0 ** rng.uniform(-6, 6, n)
    offset = rng.normal(size=(n, 3) if family == "categorical" else n) * rng.choice([0.0, 0.0, 1.0, 5.0])
    l1 = rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(-8, 2)
    l2 = rng.choice([0.0, 1.0, 1.0]) * 10.0 ** rng.uniform(-10, 2)
    return family, X, y, weights, offset, float(l1), float(l2), bool(rng.random() < 0.5)


def pose(case):
    family, X, y, weights, offset, l1, l2, intercept = case
    outputs = 3 if family == "categorical" else 1
    loss = loss_of(family, np.asarray(y), outputs)
    problem = GLMProblem(design_of(X, intercept), loss, weights / weights.sum(), offset, l1, l2)
    return problem, ExactGLM(family, X, y, weights, offset, l1, l2, intercept, outputs)


def points(problem, rng):
    """The start, random points, points near the minimum, with slopes from elsewhere for some."""
    zero = np.zeros(problem.shape)
    norms = problem.design.column_norms.reshape(-1, *[1] * (zero.ndim - 1))
    yield zero, None
    yield rng.normal(size=problem.shape) / np.maximum(norms, 1e-30), None
    solver = GLMProximalNewton(1e-14) if problem.l1 else GLMNewton(1e-14)
    with np.errstate(all="ignore"):
        state = solver.init(problem, zero, None)
        for _ in range(12):
            state = solver.step(problem, state)
            if state.stuck:
                break
    if np.all(np.isfinite(state.x)):
        yield state.x, None
        yield state.x, state.dual
        yield state.x * (1 + 10.0 ** rng.uniform(-16, -1) * rng.normal(size=problem.shape)), None
        yield state.x + rng.normal(size=problem.shape) / np.maximum(norms, 1e-30) * 10.0 ** rng.uniform(-12, 0), None


def attempt(seed):
    """Certificates issued and refused for one random problem; fails if one is below the truth."""
    rng = np.random.default_rng(seed)
    case = draw(rng)
    problem, exact = pose(case)
    issued = refused = 0
    last = None
    tried = list(points(problem, rng))
    starts = [tried[2][0]] if len(tried) > 2 else []
    for x, slopes in tried:
        answer = x if slopes is None else PrimalDual(x, slopes)
        for issue in (certify_glm_gap, certify_glm_concordance):
            if issue is certify_glm_concordance and slopes is not None:
                continue
            try:
                certificate = issue(problem, answer)
            except CertificateError:
                refused += 1
                continue
            issued += 1
            if certificate.upper >= 1.01 * problem.value(x):
                continue  # true of any point, since losses are not negative
            if last is None or last[0] is not x:
                last = x, exact.gap(x, starts)
            assert mp.mpf(certificate.upper) >= last[1], (seed, issue.__name__, case, x, certificate, mp.nstr(last[1]))
            assert certificate.upper > 0
    return issued, refused


def fit(case, rng):
    """A fitted estimator that claims something about the case, or None where it refuses the data."""
    family, X, y, weights, offset, l1, l2, intercept = case
    solver = "sdca" if l2 and family != "categorical" and rng.random() < 0.4 else "auto"
    steps = int(rng.choice([1, 2, 5, 200]))
    settings = {"fit_intercept": intercept, "tol": 10.0 ** rng.uniform(-13, -2), "max_iter": steps}
    model = GLM(family, l1, l2, solver=solver, random_state=0, **settings)
    X = sp.csr_matrix(X) if rng.random() < 0.2 else X.astype(np.float32) if rng.random() < 0.2 else X
    try:
        return model.fit(X, y, sample_weight=weights, offset=offset), X
    except (CumulantError, ValueError):  # one class, separated classes, objectives that overflow
        return None, X


def attempt_estimator(seed):
    """The same for what an estimator says of itself: also, never worse than no weights, and `verify` agrees."""
    rng = np.random.default_rng(seed)
    case = family, _, y, weights, offset, l1, l2, intercept = draw(rng)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model, X = fit(case, rng)
    if model is None or model.certificate_ is None:
        return 0, 1
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    outputs = len(model.classes_) if family == "categorical" else 1
    if outputs > 1:
        y = np.searchsorted(model.classes_, y)
    elif family == "bernoulli":
        y = (y == model.classes_[1]).astype(float)
    offset = np.asarray(offset).reshape(len(y), -1)[:, :outputs]
    exact = ExactGLM(family, dense, y, weights, offset, l1, l2, intercept, outputs)
    x = model._parameters()
    assert mp.mpf(model.certificate_.upper) >= exact.gap(x), (seed, case, model.certificate_)
    assert exact.value([mp.mpf(float(v)) for v in x.ravel()]) <= exact.value([mp.mpf(0)] * x.size) * (1 + mp.mpf(1e-12))
    return 1, 0


def test_issuers_on_random_problems():
    counts = np.array([attempt(seed) for seed in range(40)]).sum(axis=0)
    assert counts[0] > 150


def test_estimators_on_random_problems():
    counts = np.array([attempt_estimator(seed) for seed in range(60)]).sum(axis=0)
    assert counts[0] > 20


@pytest.mark.slow
def test_thousands_of_certificates():
    """More than 4,000 attempts, no certificate below the truth."""
    issued = np.array([attempt(seed) for seed in range(1000, 1600)]).sum(axis=0)
    fitted = np.array([attempt_estimator(seed) for seed in range(1000, 1800)]).sum(axis=0)
    print(f"issuers: {issued[0]} certificates, {issued[1]} refusals; fits: {fitted[0]} and {fitted[1]}")
    assert (issued + fitted).sum() > 4000
    assert issued[0] + fitted[0] > 3000


# Cases that were once wrong -----------------------------------------------------------------------------------------


def test_an_exact_fit_of_one_row_is_not_certified_as_zero():
    for scale in (1.0, 1e-100, 1e8):
        X, y = np.array([[3.0]]), np.array([1.7 * scale])
        model = GLM("normal", l2=0.3, fit_intercept=False, tol=1e-9).fit(X, y)
        exact = ExactGLM("normal", X, y, [1.0], [0.0], 0.0, 0.3, False)
        gap = exact.gap(model.coef_)
        assert mp.mpf(model.certificate_.upper) >= gap
        distance = abs(mp.mpf(float(model.coef_[0])) - mp.mpf(float(y[0])) * 3 / (9 + mp.mpf(0.3)))
        assert mp.mpf(model.certificate_.details["|w - w*|"]) >= distance


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 0.0), (0.0, 0.1), (0.1, 0.1)])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_of_a_million_beside_a_millionth(l1, l2, intercept):
    rng = np.random.default_rng(0)
    for _ in range(5):
        X, y = rng.normal(size=(4, 2)), rng.normal(size=4)
        weights = np.array([1e6, 1e-6, 1.0, 1e-6])
        model = GLM("normal", l1, l2, intercept, tol=1e-10).fit(X, y, sample_weight=weights)
        exact = ExactGLM("normal", X, y, weights, np.zeros(4), l1, l2, intercept)
        assert mp.mpf(model.certificate_.upper) >= exact.gap(model._parameters())


def test_the_conjugate_of_the_logistic_loss_keeps_small_shares():
    X, y, weights, l1 = np.array([[1.0], [1.0]]), np.array([1, 0]), [1, 948084705754300.8], 5.208288355225617e-18
    model = GLM("bernoulli", l1=l1, l2=0.0, fit_intercept=False, tol=1e-6).fit(X, y, sample_weight=weights)
    exact = ExactGLM("bernoulli", X, y, weights, np.zeros(2), l1, 0.0, False)
    starts = [model.coef_ + shift for shift in (-1.0, 1.0)]
    assert mp.mpf(model.certificate_.upper) >= exact.gap(model.coef_, starts)


def test_scores_that_cancel_are_certified_within_their_rounding():
    X, y = np.array([[1e16, 1.0, -1e16]]), np.zeros(1)
    problem = GLMProblem(design_of(X, False), loss_of("normal", y), np.ones(1), np.zeros(1), l1=1e-9)
    assert certify_glm_gap(problem, np.ones(3)).upper >= 0.5  # the true score is 1; in float64 it is 0


@pytest.mark.parametrize("family", ["normal", "poisson", "gamma", "bernoulli"])
def test_rounding_is_relative_to_what_is_added_up(family):
    """Columns and targets of 1e-8 and 1e8 are certified as well as those of size one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.normal(size=50)
    if family != "normal":
        y = (y > 0).astype(float) if family == "bernoulli" else rng.poisson(2.0, 50) + (family == "gamma") * 0.5
    for columns in (1e-8, 1.0, 1e8):
        targets = y * columns if family == "normal" else y
        for l1, l2 in ((0.0, 0.01 * columns**2), (0.01 * columns, 0.0)):
            if family == "normal" and l1:
                l1 = l1 * columns
            model = GLM(family, l1=l1, l2=l2, tol=1e-10).fit(columns * X, targets)
            assert model.status_ == "converged", (columns, l1, l2)
            assert model.certificate_.slack <= 1e-11 * model.objective_


def test_a_fit_that_ends_early_is_not_worse_than_none():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 300)), rng.integers(0, 2, 400)
    null = GLM("bernoulli", l1=10.0, l2=0.1).fit(X, y).objective_
    for l2 in (1e-5, 1e-8):
        with pytest.warns(UserWarning, match="max_steps"):
            model = GLM("bernoulli", solver="sdca", l2=l2, max_iter=1, random_state=0).fit(X, y)
        assert model.objective_ <= null
        assert model.certificate_.upper >= 0
        model.verify(X, y)


def test_dual_ascent_on_badly_scaled_counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1e-6, 1.0, 1e6]
    y = rng.poisson(3.0, 30) * 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GLM("poisson", solver="sdca", l2=1e-4, max_iter=20, random_state=0).fit(X, y)
    assert np.isfinite(model.objective_)
    assert model.objective_ <= GLM("poisson", l1=1e12, l2=1.0).fit(X, y).objective_ * (1 + 1e-12)


@pytest.mark.parametrize("family", ["normal", "bernoulli", "poisson", "gamma", "categorical"])
def test_every_point_of_a_path_is_certified_truly(family):
    rng = np.random.default_rng(3)
    for intercept in (True, False):
        X = rng.normal(size=(6, 2)) * [1.0, 1e-4]
        y = {
            "normal": rng.normal(size=6), "bernoulli": np.array([0, 1, 0, 1, 1, 0]), "poisson": rng.poisson(2.0, 6),
            "gamma": rng.gamma(1.0, size=6), "categorical": np.array([0, 1, 2, 0, 1, 2]),
        }[family]  # fmt: skip
        weights = 10.0 ** rng.uniform(-3, 3, 6)
        outputs = 3 if family == "categorical" else 1
        for l2, order in ((0.0, [0.3, 0.05, 0.005]), (0.01, [0.005, 0.3])):
            model = GLM(family, l2=l2, fit_intercept=intercept, tol=1e-6, max_iter=500)
            path = model.path(X, y, order, sample_weight=weights)
            for l1, certificate, subject in zip(order, path.certificates, path.subjects, strict=True):
                exact = ExactGLM(family, X, y, weights, np.zeros((6, outputs)), l1, l2, intercept, outputs)
                assert mp.mpf(certificate.upper) >= exact.gap(subject.answer.x)
                certificate.verify(subject)


@pytest.mark.parametrize("weighted", [False, True])
def test_online_learners_are_certified_truly(weighted):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(8, 2))
    weights = 10.0 ** rng.uniform(-3, 3, 8) if weighted else np.ones(8)
    for kind, family in ((OnlineLasso, "normal"), (OnlineL1Logistic, "bernoulli")):
        y = rng.normal(size=8) if family == "normal" else np.array([0.0, 1.0] * 4)
        model = kind(0.05, passes=50, random_state=0).fit(X, y, weights)
        exact = ExactGLM(family, X, y, weights, np.zeros(8), 0.05, 0.0, True)
        x = np.append(model.coef_.ravel(), model.intercept_)
        assert mp.mpf(model.certificate_.upper) >= exact.gap(x)
        assert model.verify(X, y, weights).upper == model.certificate_.upper
