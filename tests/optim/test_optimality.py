"""Certificates of composite problems and of logistic regression: above the true gap, and small in the end."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim.certify.self_concordance import certify_self_concordance

RNG = np.random.default_rng(11)
A = RNG.normal(size=(15, 8))
Y = RNG.normal(size=15)
FLAT = A[:6]  # more unknowns than equations: no strong convexity
SIGNS = np.sign(Y)
GROUPS = np.array([0, 0, 1, 1, 1, 2, 2, 3])


def group_norms(x):
    return sum(cp.norm(x[np.flatnonzero(g == GROUPS)]) for g in range(4))


# name: the penalty, and how cvxpy writes it: (value, constraints)
PENALTIES = {
    "l1": (optim.L1(0.7), lambda x: (0.7 * cp.norm1(x), [])),
    "weighted l1": (optim.L1(np.linspace(0.2, 1.6, 8)), lambda x: (np.linspace(0.2, 1.6, 8) @ cp.abs(x), [])),
    "elastic net": (optim.ElasticNet(0.5, 0.3), lambda x: (0.5 * cp.norm1(x) + 0.15 * cp.sum_squares(x), [])),
    "group": (optim.GroupLasso(GROUPS, 0.8), lambda x: (0.8 * group_norms(x), [])),
    "box": (optim.Box(-0.1, 0.2), lambda x: (0, [x >= -0.1, x <= 0.2])),
    "simplex": (optim.Simplex(0.5), lambda x: (0, [x >= 0, cp.sum(x) == 0.5])),
    "l1 ball": (optim.L1Ball(0.5), lambda x: (0, [cp.norm1(x) <= 0.5])),
    "l2 ball": (optim.L2Ball(0.3), None),
}


def solved(matrix, targets, write):
    if write is None:  # on the sphere the solution is a ridge solution, whose norm falls with the penalty
        ridge = lambda lam: np.linalg.solve(matrix.T @ matrix + lam * np.eye(8), matrix.T @ targets)  # noqa: E731
        x = ridge(brentq(lambda lam: np.linalg.norm(ridge(lam)) - 0.3, 1e-6, 1e3, xtol=1e-14))
        return np.sum((matrix @ x - targets) ** 2) / 2
    x = cp.Variable(8)
    penalty, constraints = write(x)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(matrix @ x - targets) / 2 + penalty), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


@pytest.mark.parametrize("name", PENALTIES)
def test_the_certificate_of_a_penalised_problem_is_above_the_gap_and_goes_to_zero(name):
    penalty, write = PENALTIES[name]
    problem = optim.Composite(optim.LeastSquares(FLAT, Y[:6], reduction="sum"), penalty)
    best = solved(FLAT, Y[:6], write)
    solver = optim.AcceleratedProximalGradient(restart=True)
    seen = []
    result = optim.run(
        solver, problem, np.full(8, 0.3), tol=1e-9, max_steps=20_000, callback=lambda s: seen.append((s.x, s.bound))
    )
    assert result.status == "converged"
    assert result.value == pytest.approx(best, abs=1e-7)
    for x, bound in seen:
        gap = float(problem.value(x)) - best
        assert gap <= optim.certify_optimality(problem, x).upper + 1e-8  # what the peer's own tolerance leaves open
        assert gap <= bound + 1e-8
    fresh = result.certificate.verify(result.subject)
    assert fresh.bound == pytest.approx(result.certificate.bound, abs=1e-12)
    with pytest.raises(CertificateError, match=r"does not hold|not shown"):
        result.certificate.verify(Subject(problem, seen[0][0] * 0.9))


def test_strong_convexity_helps_where_there_is_some():
    problem = optim.Composite(optim.LeastSquares(A, Y, reduction="sum"), optim.L1(0.7))
    best = solved(A, Y, PENALTIES["l1"][1])
    x = optim.run(optim.ProximalGradient(), problem, np.zeros(8), max_steps=60, tol=None).x
    certificate = optim.certify_optimality(problem, x)
    assert problem.value(x) - best <= certificate.upper + 1e-9
    assert certificate.upper < 1e-3


def test_strong_convexity_is_exact_along_the_flattest_direction_and_above_the_gap_elsewhere():
    # Separable quadratics: sum c x^2 / 2 - b x + w |x|, minimised at soft(b, w) / c.
    rng = np.random.default_rng(2)
    for _ in range(40):
        c, b = np.sort(10.0 ** rng.uniform(-2, 2, size=4)), rng.normal(size=4) * 3
        best = np.sign(b) * np.maximum(np.abs(b) - 0.5, 0) / c
        problem = optim.Composite(optim.Quadratic(np.diag(c), b), optim.L1(0.5))

        def gap(x, c=c, b=b, best=best):  # by hand, without the cancellation of two values
            moved = c * (x - best) ** 2 / 2 + (c * best - b) * (x - best)
            return np.sum(moved + 0.5 * (np.abs(x) - np.abs(best)))

        x = best + rng.normal(size=4) * 10.0 ** rng.uniform(-4, 0)
        certificate = optim.certify_optimality(problem, x)
        assert gap(x) <= certificate.upper
        assert "strong convexity" in certificate.theorem
        flat = best + np.array([0.3, 0.0, 0.0, 0.0])
        assert optim.certify_optimality(problem, flat).bound == pytest.approx(gap(flat), rel=1e-9)


def logistic_reference(matrix, signs, weight, ridge=0.0):
    x = cp.Variable(matrix.shape[1])
    loss = cp.sum(cp.logistic(-cp.multiply(signs, matrix @ x))) / len(signs)
    problem = cp.Problem(cp.Minimize(loss + weight * cp.norm1(x) + ridge / 2 * cp.sum_squares(x)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value, x.value


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_l1_logistic_regression_has_a_duality_gap(thin):
    smooth = optim.Logistic(sparse.csr_array(A) if thin else A, SIGNS)
    weight = 0.1 * optim.lambda_max(smooth)
    best, at = logistic_reference(A, SIGNS, weight)
    problem = optim.Composite(smooth, optim.L1(weight))
    result = optim.run(optim.AcceleratedProximalGradient(restart=True), problem, np.zeros(8), tol=1e-10, max_steps=5000)
    assert result.status == "converged"
    assert "duality" in result.certificate.theorem
    assert result.value == pytest.approx(best, abs=1e-8)
    np.testing.assert_allclose(result.x, at, atol=1e-3)


def test_a_run_in_float32_has_a_certificate_in_float64():
    matrix, targets = jnp.asarray(FLAT, jnp.float32), jnp.asarray(Y[:6], jnp.float32)
    for penalty in (optim.Simplex(0.5), optim.L1(0.7)):
        problem = optim.Composite(optim.LeastSquares(matrix, targets, reduction="sum"), penalty)
        solver = optim.AcceleratedProximalGradient(restart=True)
        result = optim.run(solver, problem, jnp.zeros(8, jnp.float32), tol=1e-4, max_steps=2000)
        assert result.status == "converged"
        assert result.x.dtype == jnp.float32
        result.certificate.verify(result.subject)


def test_lambda_max_is_where_zero_becomes_the_solution():
    for smooth in (optim.Logistic(A, SIGNS), optim.LeastSquares(A, Y)):
        edge = optim.lambda_max(smooth)
        above = optim.certify_optimality(optim.Composite(smooth, optim.L1(edge * 1.0001)), np.zeros(8))
        below = optim.certify_optimality(optim.Composite(smooth, optim.L1(edge * 0.9)), np.zeros(8))
        assert above.upper < 1e-12
        assert below.upper > 1e-6


def test_a_multinomial_regression_with_an_l1_penalty_has_a_duality_gap():
    classes = np.argmax(A[:, :3] + RNG.gumbel(size=(15, 3)), axis=1)
    smooth = optim.MultinomialLogistic(A, classes)
    problem = optim.Composite(smooth, optim.L1(0.2 * optim.lambda_max(smooth)))
    result = optim.run(
        optim.AcceleratedProximalGradient(restart=True), problem, np.zeros((8, 3)), tol=1e-9, max_steps=10_000
    )
    assert result.status == "converged"
    W = cp.Variable((8, 3))
    scores = A @ W
    loss = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(np.eye(3)[classes], scores))
    reference = cp.Problem(cp.Minimize(loss / 15 + 0.2 * optim.lambda_max(smooth) * cp.sum(cp.abs(W))))
    reference.solve(solver="CLARABEL")
    assert result.value == pytest.approx(reference.value, abs=1e-6)


def test_the_bound_without_strong_convexity_or_a_penalty_holds_along_a_run():
    # Logistic regression without l2, on data that overlap.
    rng = np.random.default_rng(1)
    data = rng.normal(size=(40, 3))
    signs = np.where(data @ [1.0, -0.5, 0.2] + rng.logistic(size=40) > 0, 1.0, -1.0)
    problem = optim.Logistic(data, signs)
    best = optim.run(optim.Newton(), problem, np.zeros(3), tol=1e-15).x
    gaps = []
    for scale in (1.0, 0.3, 0.1, 1e-2, 1e-3):
        x = best + scale * np.array([0.5, -0.3, 0.4])
        try:
            certificate = certify_self_concordance(problem, x)
        except CertificateError:
            continue
        gap = float(problem.value(x) - problem.value(best))
        gaps.append(gap / certificate.upper)
        assert gap <= certificate.upper
        assert certificate.verify(Subject(problem, x)).bound == pytest.approx(certificate.bound, rel=1e-9)
    assert len(gaps) >= 3
    assert gaps[-1] > 0.99  # half the squared decrement is what is left of the bound near the minimum


def newton_in_numpy(data, signs, l2):
    x = np.zeros(data.shape[1])
    for _ in range(100):
        chance = 1 / (1 + np.exp(np.clip(signs * (data @ x), -700, 700)))
        g = -data.T @ (signs * chance) / len(signs) + l2 * x
        H = (data.T * (chance * (1 - chance))) @ data / len(signs) + l2 * np.eye(x.size)
        direction, t = -np.linalg.solve(H, g), 1.0
        value = lambda z: np.mean(np.logaddexp(0, -signs * (data @ z))) + l2 * z @ z / 2  # noqa: E731
        while value(x + t * direction) > value(x) + 0.25 * t * g @ direction + 1e-16 and t > 1e-12:
            t /= 2
        x = x + t * direction
    return x, np.sqrt(np.diagonal(np.linalg.inv(H)))


def test_the_bound_from_the_decrement_holds_in_exact_arithmetic_on_random_data():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 50
    rng = np.random.default_rng(0)
    given, worst = 0, 0.0
    for trial in range(60):
        data = rng.normal(size=(15, 3)) * 10.0 ** rng.uniform(-3, 3) * 10.0 ** rng.uniform(-1, 1, size=3)
        plane = 3 * rng.normal(size=3) / np.linalg.norm(data, axis=0)
        signs = np.where(data @ plane + rng.logistic(size=15) > 0, 1.0, -1.0)
        l2 = 0.0 if trial % 2 else 1e-3
        problem = optim.Logistic(data, signs, l2=l2)
        if l2 == 0 and optim.is_separable(data, signs):
            with pytest.raises(CertificateError, match="separated"):
                certify_self_concordance(problem, rng.normal(size=3))
            continue
        best, widths = newton_in_numpy(data, signs, l2)
        x = best + widths * rng.normal(size=3) * 10.0 ** rng.uniform(-6, 0)
        try:
            certificate = certify_self_concordance(problem, x)
        except CertificateError:
            continue

        def exact(at, data=data, signs=signs, l2=l2):
            rows = [mpmath.fsum(mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(r, at, strict=True)) for r in data]
            losses = [mpmath.log1p(mpmath.exp(-s * m)) for s, m in zip(signs, rows, strict=True)]
            return mpmath.fsum(losses) / 15 + mpmath.mpf(l2) * mpmath.fsum(mpmath.mpf(b) ** 2 for b in at) / 2

        gap = float(exact(x) - exact(best))
        assert gap <= certificate.upper
        given, worst = given + 1, max(worst, gap / certificate.upper)
    assert given >= 20
    assert worst > 0.999


def test_it_is_refused_where_nothing_is_known():
    steep = optim.Composite(optim.LeastSquares(FLAT, Y[:6]), optim.NonNegative())
    with pytest.raises(CertificateError, match="not shown that the objective is strongly convex"):
        optim.certify_optimality(optim.Composite(optim.Objective(crooked), optim.L1(1.0)), np.ones(3))
    with pytest.raises(CertificateError, match="x is in the set"):
        optim.certify_optimality(steep, -np.ones(8))


def crooked(x, data):
    return jnp.sum(jnp.sin(x) * x**2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.L1(-1.0), ValueError, "weight of L1 must be finite and not negative"),
        (lambda: optim.ElasticNet(1.0, 0.0), ValueError, "l2 of ElasticNet must be finite and positive"),
        (lambda: optim.Simplex(0.0), ValueError, "radius of Simplex must be finite and positive"),
        (lambda: optim.Box(1.0, 0.0), ValueError, "lower of Box must not be above upper"),
        (lambda: optim.GroupLasso([0, -1]), ValueError, "labels of GroupLasso"),
        (lambda: optim.GroupLasso([0, 2], [1.0, 1.0]), ValueError, "an entry for each group; got 2"),
        (
            lambda: optim.Composite(optim.Composite(optim.LeastSquares(A, Y), optim.L1(1.0)), optim.L1(1.0)),
            TypeError,
            "add up the penalties",
        ),
        (lambda: optim.Composite(optim.LeastSquares(A, Y), optim.Armijo()), TypeError, "penalty must have the methods"),
    ],
)
def test_bad_settings_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_no_point_is_better_than_the_certificate_allows_whatever_the_scale():
    # F(x) - F(z) <= F(x) - F* for every z: here z is scikit-learn's solution, and the sums are of long doubles.
    from sklearn.linear_model import Lasso

    rng = np.random.default_rng(9)
    closest = 0.0
    for _ in range(60):
        data = rng.normal(size=(6, 8)) * 10.0 ** rng.uniform(-3, 3, size=8) * 10.0 ** rng.uniform(-3, 3)
        targets = rng.normal(size=6) * 10.0 ** rng.uniform(-3, 3)
        weight = 10.0 ** rng.uniform(-2, -0.1) * np.max(np.abs(data.T @ targets))
        z = Lasso(alpha=weight / 6, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(data, targets).coef_
        x = z * (1 + 10.0 ** rng.uniform(-12, 0) * rng.normal(size=8))
        problem = optim.Composite(optim.LeastSquares(data, targets, reduction="sum"), optim.L1(weight))

        def exact(at, data=data, targets=targets, weight=weight):
            residual = data.astype(np.longdouble) @ at - targets
            return np.sum(residual**2) / 2 + weight * np.sum(np.abs(at.astype(np.longdouble)))

        gap, upper = float(exact(x) - exact(z)), optim.certify_optimality(problem, x).upper
        assert gap <= upper
        closest = max(closest, gap / upper)
    assert closest > 0.01  # the certificates are not idle
