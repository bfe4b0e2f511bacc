"""Ridge regression by every formula, its limit, and the axes of the data."""

import numpy as np
import pytest
from scipy import sparse

from cumulant import optim

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
Y = np.array([1.0, 2.0, 3.0])
CLOUD = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0]])


@pytest.mark.parametrize("method", ["auto", "primal", "dual", "svd", "cg"])
def test_every_formula_gives_the_published_solution(method):
    solution = optim.ridge(A, Y, 1.0, method=method)
    np.testing.assert_allclose(solution.x, [0.18965517, 0.34482759], atol=1e-8)
    assert solution.certificate.upper <= 1e-10
    assert solution.certificate.verify(solution.subject)
    assert solution.method in str(solution)


def test_it_agrees_with_scikit_learn_on_wide_tall_and_sparse_data():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    for shape in ((30, 8), (8, 30)):
        data = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.5)
        targets = rng.normal(size=shape[0])
        peer = Ridge(alpha=0.3, fit_intercept=False).fit(data, targets).coef_
        auto = optim.ridge(data, targets, 0.3)
        assert auto.method == ("primal" if shape[0] >= shape[1] else "dual")
        np.testing.assert_allclose(auto.x, peer, atol=1e-9)
        thin = optim.ridge(sparse.csr_array(data), targets, 0.3)
        assert thin.method == "cg"
        np.testing.assert_allclose(thin.x, peer, atol=1e-5)
        path = optim.ridge_path(data, targets, [0.3, 3.0])
        np.testing.assert_allclose(path[0], peer, atol=1e-9)
        np.testing.assert_allclose(path[1], optim.ridge(data, targets, 3.0).x, atol=1e-9)


def test_the_limit_is_the_pseudo_inverse_at_the_rate_of_the_smallest_singular_value():
    rng = np.random.default_rng(1)
    low = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 6))  # of rank three
    y = rng.normal(size=10)
    limit = optim.pinv_solution(low, y)
    np.testing.assert_allclose(limit, np.linalg.pinv(low) @ y, atol=1e-10)
    smallest = np.linalg.svd(low, compute_uv=False)[2]
    lams = np.array([1e-1, 1e-3, 1e-5])
    distance = np.linalg.norm(optim.ridge_path(low, y, lams) - limit, axis=1)
    bound = optim.rates.ridge_distance(lams, smallest, np.linalg.norm(limit))
    assert np.all(distance <= bound * (1 + 1e-9))
    assert distance[2] > 1e-4 * bound[2]  # of the order of the bound, not of rounding


def test_a_relative_cutoff_decides_what_counts_as_zero():
    almost = np.diag([1.0, 1e-9])
    np.testing.assert_allclose(optim.pinv_solution(almost, [1.0, 1.0]), [1.0, 1e9])
    np.testing.assert_allclose(optim.pinv_solution(almost, [1.0, 1.0], cutoff=1e-6), [1.0, 0.0])
    np.testing.assert_allclose(optim.pinv_solution(1e-30 * np.eye(2), [1.0, 2.0]), [1e30, 2e30])


def test_the_axes_of_a_cloud_and_of_the_level_sets():
    cloud, level = optim.pca(CLOUD), optim.level_axes(CLOUD)
    np.testing.assert_allclose(cloud.variances, [11.65532587, 0.03217413], atol=1e-8)
    np.testing.assert_allclose(np.abs(cloud.axes[0]), [0.65376434, 0.75669821], atol=1e-8)
    np.testing.assert_allclose(cloud.half_widths, [3.41398973, 0.17937149], atol=1e-8)
    np.testing.assert_allclose(level.half_widths, [0.29291242, 5.57502188], atol=1e-8)
    np.testing.assert_allclose(cloud.half_widths * level.half_widths, 1.0, rtol=1e-12)
    scores = cloud.scores[:, 0] * np.sign(cloud.axes[0, 0])
    np.testing.assert_allclose(scores, [-4.42056222, -1.59963711, 1.22128800, 4.79891132], atol=1e-8)
    # Its condition number is that of gradient descent on the centred regression.
    problem = optim.LeastSquares(CLOUD - CLOUD.mean(axis=0), np.zeros(4))
    assert problem.smoothness == pytest.approx(cloud.variances[0], rel=1e-12)
    assert problem.strong_convexity == pytest.approx(cloud.variances[1], rel=1e-9)
    # A point of the level set at the end of each axis.
    for axis, width in zip(level.axes, level.half_widths, strict=True):
        assert problem.value(axis * width) == pytest.approx(0.5, rel=1e-9)


def test_projecting_on_the_axes_agrees_with_scikit_learn():
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(2)
    for shape in ((20, 5), (4, 6)):
        points = rng.normal(size=shape) @ np.diag(np.arange(1.0, shape[1] + 1))
        peer = PCA(2).fit(points)
        mine = optim.pca(points, 2)
        n = shape[0]
        np.testing.assert_allclose(mine.variances, peer.explained_variance_ * (n - 1) / n, rtol=1e-9)
        np.testing.assert_allclose(mine.project(points), peer.inverse_transform(peer.transform(points)), atol=1e-9)
    assert np.isinf(optim.level_axes(np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])).half_widths[1]) or (
        optim.level_axes(np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])).half_widths[1] > 1e7
    )
