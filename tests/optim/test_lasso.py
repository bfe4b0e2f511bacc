"""The Lasso by proximal gradients: published numbers, scikit-learn, the limit of small penalties."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from cumulant import optim

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
Y = np.array([1.0, 2.0, 3.0])
PROBLEM = optim.Composite(optim.LeastSquares(A, Y, reduction="sum"), optim.L1(1.0))
SMALL = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])


def test_the_published_solution():
    result = optim.lasso(A, Y, 1.0, tol=1e-13)
    np.testing.assert_allclose(result.x, [0.0, 0.48214286], atol=1e-8)
    assert result.value == pytest.approx(0.491071428571, abs=1e-12)
    residual = Y - A @ result.x
    np.testing.assert_allclose(A.T @ residual, [0.78571429, 1.0], atol=1e-6)
    dual = (Y @ Y - np.sum((Y - residual) ** 2)) / 2  # the residual is dual feasible
    assert dual == pytest.approx(0.491071428571, abs=1e-6)
    assert optim.lambda_max(PROBLEM.smooth) == 28.0
    assert PROBLEM.smoothness == pytest.approx(90.735494912734, abs=1e-11)


def test_the_first_iterates_and_any_step_below_two():
    found = []
    optim.run(optim.ProximalGradient(), PROBLEM, [0.0, 0.0], max_steps=10, tol=None, every=1, callback=found.append)
    np.testing.assert_allclose(found[0].x, [0.23144195, 0.29756822], atol=1e-8)
    np.testing.assert_allclose(found[9].x, [0.21247402, 0.31254233], atol=1e-8)
    bold = optim.ProximalGradient(1.99 / 90.735494912734)
    result = optim.run(bold, PROBLEM, [0.0, 0.0], max_steps=100_000, tol=1e-13)
    assert result.status == "converged"
    np.testing.assert_allclose(result.x, [0.0, 0.48214286], atol=1e-6)


def test_ista_never_goes_up_with_steps_of_at_most_one_over_L():
    trace = optim.run(optim.ProximalGradient(), PROBLEM, [3.0, -2.0], max_steps=300, tol=None, every=1).trace
    assert np.all(np.diff(trace.value) <= 1e-13)


def test_it_agrees_with_scikit_learn_dense_and_sparse():
    from sklearn.linear_model import Lasso

    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 8)) * (rng.uniform(size=(40, 8)) < 0.6)
    targets = data @ np.array([1.0, -2.0, 0, 0, 0.5, 0, 0, 0]) + 0.1 * rng.normal(size=40)
    peer = Lasso(alpha=2.0 / 40, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(data, targets)
    for matrix in (data, sparse.csc_array(data)):
        result = optim.lasso(matrix, targets, 2.0, tol=1e-12)
        assert result.status == "converged"
        np.testing.assert_allclose(result.x, peer.coef_, atol=1e-6)
    slow = optim.lasso(data, targets, 2.0, method="ista", tol=1e-12)
    np.testing.assert_allclose(slow.x, peer.coef_, atol=1e-6)
    assert slow.work >= result.work


def test_the_limit_of_small_penalties_is_the_least_l1_norm():
    y = np.ones(2)
    least = linprog(np.ones(6), A_eq=np.hstack([SMALL, -SMALL]), b_eq=y, bounds=(0, None))
    np.testing.assert_allclose(least.x[:3] - least.x[3:], [0, 1 / 3, 2 / 3], atol=1e-9)
    result = optim.lasso(SMALL, y, 1e-4, tol=1e-13, max_steps=200_000)
    np.testing.assert_allclose(result.x, [0.0, 0.33336667, 0.66653333], atol=1e-7)
    residual = np.linalg.norm(SMALL @ result.x - y)
    assert residual == pytest.approx(1e-4, abs=1e-6)
    assert residual <= optim.rates.penalised_residual(1e-4, least.fun)
    assert np.sum(np.abs(result.x)) <= least.fun
    np.testing.assert_allclose(optim.pinv_solution(SMALL, y), [-0.11764706, 0.41176471, 0.58823529], atol=1e-8)


def test_a_path_is_many_solutions_in_the_order_asked_for():
    rng = np.random.default_rng(6)
    data, targets = rng.normal(size=(10, 20)), rng.normal(size=10)
    lams = [0.5, 4.0, 2.0]
    path = optim.lasso_path(data, targets, lams, tol=1e-10)
    for lam, result in zip(lams, path, strict=True):
        alone = optim.lasso(data, targets, lam, tol=1e-10)
        assert result.value == pytest.approx(alone.value, abs=1e-8)
        assert result.certificate.upper < 1e-8
    assert path[2].work <= optim.lasso(data, targets, 2.0, tol=1e-10).work + 50  # a warm start does not cost


def test_paths_of_other_penalties_tend_to_the_solutions_of_least_penalty():
    """The group Lasso and the elastic net on ``A x = y`` as ``lam -> 0``, against what the equations leave free."""
    smooth = optim.LeastSquares(SMALL, np.ones(2), reduction="sum")
    lams = np.array([1e-3, 1e-1, 1e-2])
    start, null = np.linalg.lstsq(SMALL, np.ones(2), rcond=None)[0], np.linalg.svd(SMALL)[2][-1]
    for penalty in (lambda lam: optim.GroupLasso([0, 0, 1], lam), lambda lam: optim.ElasticNet(0.5 * lam, 0.5 * lam)):
        path = optim.penalised_path(smooth, penalty, lams, tol=1e-12)
        R = penalty(1.0)
        line = start + np.linspace(-3, 3, 60_001)[:, None] * null  # all solutions of A x = y near the least
        values = np.array([float(R.value(x)) for x in line[::20]])
        rough = 20 * int(np.argmin(values))
        near = line[max(rough - 40, 0) : rough + 40]
        least = near[int(np.argmin([float(R.value(x)) for x in near]))]
        for lam, result in zip(lams, path, strict=True):
            residual = float(np.linalg.norm(SMALL @ result.x - 1))
            assert 0 < residual <= optim.rates.penalised_residual(lam, float(R.value(least)))
            assert R.value(result.x) <= R.value(least) + 1e-9
            assert result.certificate.upper < 1e-9
        np.testing.assert_allclose(path[0].x, least, atol=3e-3)
    with pytest.raises(TypeError, match="penalty must be a function of"):
        optim.penalised_path(smooth, optim.L1(1.0), lams)
    with pytest.raises(ValueError, match="x0 is needed"):
        optim.penalised_path(optim.Objective(lambda x, data: x @ x, smoothness=2.0), optim.L1, lams)


def test_an_orthogonal_design_is_solved_by_one_threshold():
    y = np.array([2.0, -0.3, -1.5])
    np.testing.assert_array_equal(optim.soft_threshold(y, 0.5), [1.5, 0.0, -1.0])
    result = optim.lasso(np.eye(3), y, 0.5)
    np.testing.assert_allclose(result.x, [1.5, 0.0, -1.0], atol=1e-12)


def test_from_lambda_max_on_the_solution_is_zero():
    np.testing.assert_array_equal(optim.lasso(A, Y, 28.0).x, 0.0)
    assert np.any(optim.lasso(A, Y, 27.0).x != 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optim.lasso(A, Y, -1.0), "lam must be finite and not negative"),
        (lambda: optim.lasso(A, Y, 1.0, method="lars"), "method must be one of 'fista', 'ista'"),
        (lambda: optim.ridge(A, Y, 0.0), "lam must be positive and finite; got 0.0"),
        (lambda: optim.ridge(A, Y, 1.0, method="qr"), "method must be one of 'auto'"),
        (lambda: optim.ridge_path(A, Y, [1.0, -1.0]), "lams must be positive; got -1"),
        (lambda: optim.ridge_path(A, Y[:2], [1.0]), "one row for each entry of y"),
        (lambda: optim.pinv_solution(A, Y[:2]), "one row for each entry of y"),
        (lambda: optim.pca(A, 3), "m, the number of axes, must be between 1 and 2; got 3"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
