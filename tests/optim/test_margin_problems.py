"""Classification losses: published numbers, finite differences, conjugates, sparse data, scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from cumulant import optim

A = np.array([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]])
SIGNS = np.array([1.0, -1.0, 1.0])
X = np.array([0.3, -0.2])
RNG = np.random.default_rng(3)
WIDE = RNG.normal(size=(20, 5)) * (RNG.uniform(size=(20, 5)) < 0.5)
LABELS = np.where(RNG.uniform(size=20) < 0.5, -1.0, 1.0)
LOSSES = [optim.LogisticLoss(), optim.SquaredHingeLoss(), optim.SmoothedHingeLoss(0.4)]


def test_logistic_numbers():
    problem = optim.Logistic(A, SIGNS, reduction="sum")
    assert problem.value(X) == pytest.approx(1.790794067892, abs=1e-11)
    np.testing.assert_allclose(problem.gradient(X), [-1.13298274, -0.43591978], atol=1e-8)
    hessian = np.column_stack([problem.hessian_apply(X, e) for e in np.eye(2)])
    np.testing.assert_allclose(hessian, [[0.55026113, 0.25737301], [0.25737301, 1.30006674]], atol=1e-8)
    assert problem.smoothness == pytest.approx(1.388193909433, abs=1e-11)
    np.testing.assert_allclose(problem.term_smoothness, np.sum(A**2, axis=1) / 4)


def test_the_mean_is_the_sum_over_n_in_all_its_constants():
    mean, total = (optim.Logistic(A, SIGNS, reduction=r) for r in ("mean", "sum"))
    assert mean.value(X) == pytest.approx(total.value(X) / 3, rel=1e-14)
    assert mean.smoothness == pytest.approx(total.smoothness / 3, rel=1e-14)
    penalised = optim.Logistic(A, SIGNS, l2=0.5)
    assert penalised.smoothness == pytest.approx(mean.smoothness + 0.5, rel=1e-14)
    assert penalised.strong_convexity == 0.5
    # The terms add up to the whole: f = weight * sum f_i, each with its share of l2.
    both = optim.Logistic(A, SIGNS, l2=0.5, reduction="sum")
    assert np.sum(both.term_smoothness) == pytest.approx(np.sum(A**2) / 4 + 0.5)
    assert np.mean(penalised.term_smoothness) == pytest.approx(np.sum(A**2) / 12 + 0.5)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_slopes_curvatures_and_conjugates_are_those_of_the_loss(loss):
    margins = np.array([-3.0, -0.5, 0.3, 0.75, 0.9, 2.0])
    with jax.enable_x64(True):
        value = lambda m: float(loss.value(jnp.asarray(m)))  # noqa: E731
        slopes, curvatures = np.asarray(loss.slope(jnp.asarray(margins))), np.asarray(loss.curvature(margins))
        for m, slope, curvature in zip(margins, slopes, curvatures, strict=True):
            h = 1e-5
            assert slope == pytest.approx((value(m + h) - value(m - h)) / (2 * h), abs=1e-9)
            bend = (float(loss.slope(jnp.asarray(m + h))) - float(loss.slope(jnp.asarray(m - h)))) / (2 * h)
            assert curvature == pytest.approx(bend, abs=1e-9)
            assert curvature <= loss.largest_curvature
        for u in (-0.9, -0.3, -0.01):
            best = minimize_scalar(lambda m, u=u: value(m) - u * m, bracket=(-1.0, 1.0), tol=1e-12)
            assert float(loss.conjugate(jnp.asarray(u))) == pytest.approx(-best.fun, abs=1e-9)
        assert float(loss.conjugate(jnp.asarray(0.1))) == np.inf


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_gradients_by_finite_differences_and_fenchel_young(loss):
    problem = optim.MarginLoss(WIDE, LABELS, loss, l2=0.2)
    x = RNG.normal(size=5) / 3
    value, gradient = problem.value_and_gradient(x)
    h = 1e-6
    numeric = [(problem.value(x + h * e) - problem.value(x - h * e)) / (2 * h) for e in np.eye(5)]
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)
    np.testing.assert_allclose(problem.gradient(x), gradient, rtol=1e-12)
    numeric = [(problem.gradient(x + h * e) - problem.gradient(x - h * e)) / (2 * h) for e in np.eye(5)]
    hessian = np.column_stack([problem.hessian_apply(x, e) for e in np.eye(5)])
    if isinstance(loss, optim.LogisticLoss):
        np.testing.assert_allclose(hessian, numeric, atol=1e-8)
        assert np.linalg.eigvalsh(hessian)[-1] <= problem.smoothness
    # F(z) + F*(theta) = <z, theta> at theta = grad F(z).
    theta = problem.slopes(x)
    assert value - 0.1 * x @ x + problem.conjugate(theta) == pytest.approx(theta @ (WIDE @ x), abs=1e-12)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_data_give_the_same_problem(make):
    for dense, thin in (
        (optim.Logistic(WIDE, LABELS, l2=0.1), optim.Logistic(make(WIDE), LABELS, l2=0.1)),
        (optim.LeastSquares(WIDE, LABELS), optim.LeastSquares(make(WIDE), LABELS)),
    ):
        x = np.arange(5.0) / 5
        assert thin.value(x) == pytest.approx(dense.value(x), rel=1e-14)
        np.testing.assert_allclose(thin.gradient(x), dense.gradient(x), atol=1e-15)
        np.testing.assert_allclose(thin.hessian_apply(x, x), dense.hessian_apply(x, x), atol=1e-15)
        assert thin.smoothness == pytest.approx(dense.smoothness, rel=1e-12)
        assert thin.strong_convexity == pytest.approx(dense.strong_convexity, rel=1e-9)
        np.testing.assert_allclose(thin.term_smoothness, dense.term_smoothness)
        assert thin.gradient_rounding(x) == pytest.approx(dense.gradient_rounding(x), rel=1e-12)


def test_a_matrix_too_large_to_write_out_gets_an_upper_bound(monkeypatch):
    from cumulant.optim.problems import sparse_matrix

    monkeypatch.setattr(sparse_matrix, "_DENSE", 10)
    thin = optim.LeastSquares(sparse.csr_array(WIDE), LABELS, l2=0.3, reduction="sum")
    exact = np.linalg.norm(WIDE, 2) ** 2 + 0.3
    assert exact <= thin.smoothness <= 1.3 * exact
    assert thin.strong_convexity == 0.3


def test_rounding_of_the_gradient_is_within_its_bound():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 40
    x = np.array([30.0, -17.0, 4.0, 1e-3, 8.0])
    problem = optim.Logistic(WIDE, LABELS, l2=0.1)
    exact = []
    slopes = []
    for row, sign in zip(WIDE, LABELS, strict=True):
        margin = sign * sum((mpmath.mpf(a) * mpmath.mpf(b) for a, b in zip(row, x, strict=True)), mpmath.mpf(0))
        slopes.append(-sign / (1 + mpmath.exp(margin)) / 20)
    for j in range(5):
        total = sum((mpmath.mpf(WIDE[i, j]) * slopes[i] for i in range(20)), mpmath.mpf(0))
        exact.append(total + mpmath.mpf(0.1) * mpmath.mpf(x[j]))
    error = np.linalg.norm([float(mpmath.mpf(g) - e) for g, e in zip(problem.gradient(x), exact, strict=True)])
    assert 0 < error <= problem.gradient_rounding(x)


def test_logistic_regression_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    data = np.random.default_rng(0).normal(size=(60, 4))
    signs = np.where(data @ [1.0, -1.0, 0.5, 0.0] + np.random.default_rng(1).normal(size=60) > 0, 1.0, -1.0)
    peer = LogisticRegression(C=1 / (60 * 0.05), fit_intercept=False, tol=1e-10, max_iter=1000).fit(data, signs)
    result = optim.run(optim.Newton(), optim.Logistic(data, signs, l2=0.05), np.zeros(4), tol=1e-14)
    assert result.status == "converged"
    np.testing.assert_allclose(result.x, peer.coef_[0], atol=1e-6)


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(4)
    data = rng.normal(size=(50, 3))
    return data, np.argmax(data @ rng.normal(size=(3, 3)) + rng.gumbel(size=(50, 3)), axis=1)


def test_multinomial_regression(three_classes):
    from sklearn.linear_model import LogisticRegression

    data, classes = three_classes
    problem = optim.MultinomialLogistic(data, classes, l2=0.02)
    W = np.random.default_rng(5).normal(size=(3, 3))
    value, gradient = problem.value_and_gradient(W)
    scores = data @ W
    direct = np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(50), classes]) + 0.01 * np.sum(W**2)
    assert value == pytest.approx(direct, rel=1e-13)
    basis = np.eye(9).reshape(9, 3, 3)
    h = 1e-6
    numeric = np.array([(problem.value(W + h * e) - problem.value(W - h * e)) / (2 * h) for e in basis])
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-8)
    V = np.random.default_rng(6).normal(size=(3, 3))
    bent = (problem.gradient(W + h * V) - problem.gradient(W - h * V)) / (2 * h)
    np.testing.assert_allclose(problem.hessian_apply(W, V), bent, atol=1e-8)
    assert np.sum(V * problem.hessian_apply(W, V)) <= problem.smoothness * np.sum(V**2)
    theta = problem.slopes(W)
    assert direct - 0.01 * np.sum(W**2) + problem.conjugate(theta) == pytest.approx(np.sum(theta * scores), abs=1e-12)
    result = optim.run(optim.Newton(), problem, np.zeros((3, 3)), tol=1e-12)
    assert result.status == "converged"
    peer = LogisticRegression(C=1 / (50 * 0.02), fit_intercept=False, tol=1e-10, max_iter=1000).fit(data, classes)
    np.testing.assert_allclose(result.x.T, peer.coef_, atol=1e-6)


def test_multinomial_regression_with_sparse_data(three_classes):
    data, classes = three_classes
    thin = optim.MultinomialLogistic(sparse.csr_array(data), classes)
    dense = optim.MultinomialLogistic(data, classes)
    W = np.ones((3, 3)) * np.arange(3)
    np.testing.assert_allclose(thin.gradient(W), dense.gradient(W), atol=1e-14)


def test_separable_data_are_recognised():
    rng = np.random.default_rng(2)
    data = rng.normal(size=(30, 4))
    signs = np.sign(data @ [1.0, 2.0, -1.0, 0.5])
    assert optim.is_separable(data, signs)
    assert optim.is_separable(sparse.csr_array(data), signs)
    direction = optim.separating_direction(data, signs)
    assert np.all(signs * (data @ direction) >= -1e-9)
    flipped = signs.copy()
    flipped[np.argmax(np.abs(data @ [1.0, 2.0, -1.0, 0.5]))] *= -1  # the surest point, on the other side
    assert not optim.is_separable(data, flipped)
    assert optim.separating_direction(data, flipped) is None
    # Quasi-complete: one coordinate separates all the points that have it, the others overlap.
    quasi = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert optim.is_separable(quasi, [1, -1, 1])
    # Independent columns do not help.
    assert np.linalg.matrix_rank(data) == 4


def test_a_logistic_loss_without_a_minimiser_is_refused_a_certificate():
    problem = optim.Logistic([[1.0], [2.0], [-1.0]], [1, 1, -1])
    result = optim.run(optim.Newton(), problem, [0.0], max_steps=15)
    assert result.certificate is None
    assert "not shown that a minimiser exists" in result.refusal
    assert "separated" in result.refusal


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.Logistic(A, [0, 1, 1]), ValueError, "y must hold the signs .* got 0: for classes 0 and 1"),
        (lambda: optim.Logistic(A, [1, -1]), ValueError, "one row for each entry of y"),
        (lambda: optim.Logistic(A, SIGNS, l2=-1.0), ValueError, "l2 must be finite and not negative"),
        (lambda: optim.Logistic(A, SIGNS, reduction="max"), ValueError, "reduction must be"),
        (lambda: optim.Logistic(np.zeros((0, 2)), []), ValueError, "A must not be empty"),
        (lambda: optim.Logistic(sparse.csr_array(A * np.nan), SIGNS), ValueError, "A must be finite"),
        (lambda: optim.MultinomialLogistic(A, [0.5, 1, 2]), ValueError, "y must hold class numbers"),
        (lambda: optim.MultinomialLogistic(A, [0, 1, 2], n_classes=2), ValueError, "n_classes must be at least 2"),
        (lambda: optim.SmoothedHingeLoss(0.0), ValueError, "width of the smoothed hinge must be positive"),
        (lambda: optim.is_separable(A, [1, 2, 3]), ValueError, "y must hold one sign"),
    ],
)
def test_bad_data_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
