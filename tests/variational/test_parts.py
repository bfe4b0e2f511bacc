"""Approximations, estimators, targets: section 6 of the theory, check by check, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import families, geometry
from cumulant import variational as vi

MEAN, COV = np.array([1.0, -1.0]), np.array([[1.0, 0.3], [0.3, 0.5]])
FAMILIES = [vi.FullRank(3), vi.FullRank(3, "symmetric"), vi.Diagonal(3), vi.Isotropic(3)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def random_w(q, rng, spread=1.0):
    d = q.dim
    mean = spread * rng.normal(size=d)
    if isinstance(q, vi.Isotropic):
        return q.pack(mean, rng.uniform(0.5, 2.0))
    if isinstance(q, vi.Diagonal):
        return q.pack(mean, rng.uniform(0.5, 2.0, size=d))
    A = rng.normal(size=(d, d))
    S = A @ A.T + 0.3 * np.eye(d)
    return q.pack(mean, np.linalg.cholesky(S) if q.kind == "triangular" else S)


def best_fit(q, mean, cov):
    """The Gaussian of a full-rank family that is the target itself."""
    values, vectors = np.linalg.eigh(cov)
    root = (vectors * np.sqrt(values)) @ vectors.T
    return q.pack(mean, np.linalg.cholesky(cov) if q.kind == "triangular" else (root + root.T) / 2)


def problem_for(q, target):
    return vi.NegativeELBO(target, q, np.zeros((1, q.dim)))


@pytest.mark.parametrize("q", FAMILIES, ids=str)
class TestGaussians:
    def test_the_layout_is_an_isometry(self, q, rng):
        w = random_w(q, rng)
        assert_allclose(np.sum(w**2), np.sum(q.mean(w) ** 2) + np.sum(q.factor(w) ** 2), rtol=1e-12)

    def test_gradients_are_those_of_jax_projected_on_the_structure(self, q, rng, x64):
        """For `pull_back` by directional derivatives along the structure, of which the layout is a basis."""
        w, u = jnp.asarray(random_w(q, rng)), jnp.asarray(rng.normal(size=(5, q.dim)))
        B = jnp.asarray(rng.normal(size=(q.dim, q.dim)))

        def phi(w):
            z = q.place(self.structured(q, w), u)
            return jnp.mean(jnp.sin(z @ B).sum(axis=1))

        z = q.place(w, u)
        g = jax.vmap(jax.grad(lambda z: jnp.sin(z @ B).sum()))(z)
        assert_allclose(q.pull_back(g, u), jax.grad(phi)(w), atol=1e-12)
        assert_allclose(q.log_det_gradient(w), jax.grad(lambda w: q.log_det(self.structured(q, w)))(w), atol=1e-11)

    @staticmethod
    def structured(q, w):
        if not isinstance(q, vi.FullRank):
            return w
        C = w[:, 1:]
        return jnp.concatenate([w[:, :1], jnp.tril(C) if q.kind == "triangular" else (C + C.T) / 2], axis=1)

    def test_log_densities_are_those_of_the_normal_family(self, q, rng):
        w, u = random_w(q, rng), rng.normal(size=(4, q.dim))
        normal = families.MultivariateNormal(q.dim)
        theta = normal.natural(mean=q.mean(w), covariance=np.asarray(q.covariance(w)))
        assert_allclose(q.log_prob_at(w, u), normal.log_prob(np.asarray(q.place(w, u)), theta), rtol=1e-5)
        assert_allclose(q.negative_entropy(w), -normal.entropy(theta), rtol=1e-6)

    def test_the_proximal_map_solves_its_problem(self, q, rng, x64):
        w = jnp.asarray(random_w(q, rng))
        v = q.prox(w, 0.3)
        assert_allclose((w - v) / 0.3, -q.log_det_gradient(v), atol=1e-10)

    def test_maps_do_not_expand(self, q, rng, x64):
        for _ in range(20):
            v, w = (jnp.asarray(random_w(q, rng)) for _ in range(2))
            apart = float(jnp.linalg.norm(v - w))
            assert float(jnp.linalg.norm(q.prox(v, 0.3) - q.prox(w, 0.3))) <= apart * (1 + 1e-12)
            if q.convex_floor:
                a, b = q.project(v, 0.8), q.project(w, 0.8)
                assert float(jnp.linalg.norm(a - b)) <= apart * (1 + 1e-12)
                assert_allclose(q.project(a, 0.8), a, atol=1e-12)
                assert float(np.linalg.svd(np.asarray(q.factor(a)))[1].min()) >= 0.8 - 1e-12


def test_numbers_of_the_proximal_map_and_the_projection():
    """Checks 1 to 4."""
    C = np.array([[1.0, 0.0], [-0.7, -0.5]])
    assert_allclose(
        geometry.proximal.negative_log([-2.0, -0.1, 0.0, 0.5, 3.0], 0.3),
        [0.1401754, 0.5, 0.5477226, 0.8520797, 3.0968719],
        atol=5e-8,
    )
    w = np.concatenate([np.zeros((2, 1)), C], axis=1)
    assert_allclose(np.asarray(vi.FullRank(2).prox(w, 0.25))[:, 1:], [[1.2071068, 0], [-0.7, 0.3090170]], atol=1e-7)
    w = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, -0.5]])
    got = np.asarray(vi.FullRank(2, "symmetric").project(jnp.asarray(w), 0.5))[:, 1:]
    assert_allclose(got, [[1.3, 0.4], [0.4, 0.7]], atol=1e-6)


def test_above_a_floor_triangular_factors_are_not_convex_and_symmetric_ones_are_projected_on():
    """Check 18: so the projected route refuses triangular factors."""
    A, B = np.array([[4.0, 0.0], [-4.0, 3.0]]), 2 * np.eye(2)
    least = [np.linalg.svd(M)[1].min() for M in (A, B, (A + B) / 2)]
    assert_allclose(least, [1.9696, 2.0, 1.8954], atol=1e-4)
    with pytest.raises(ValueError, match="symmetric"):
        vi.FullRank(2).project(np.ones((2, 3)), 0.1)


@pytest.mark.parametrize("kind", ["triangular", "symmetric"])
class TestEstimators:
    def test_they_are_unbiased_on_a_gaussian(self, kind, x64):
        """Check 6, with antithetic pairs; within five standard errors of 40,000 draws."""
        q, target = vi.FullRank(2, kind), vi.gaussian(MEAN, COV)
        w = random_w(q, np.random.default_rng(5))
        P = np.linalg.inv(COV)
        energy = np.concatenate(
            [(P @ (q.mean(w) - MEAN))[:, None], np.asarray(q._structured(jnp.asarray(P @ w[:, 1:])))], 1
        )
        full = energy - np.asarray(q.log_det_gradient(jnp.asarray(w)))
        u = jax.random.normal(jax.random.key(0), (40_000, 2))
        problem = problem_for(q, target)
        for estimator, truth in [
            (vi.EnergyGradient(), energy),
            (vi.EntropyGradient(), full),
            (vi.StickingTheLanding(), full),
            (vi.ScoreGradient(), full),
        ]:
            each = np.asarray(jax.vmap(lambda v, e=estimator: e.at(problem, jnp.asarray(w), v[None]))(u))
            error = each.mean(axis=0) - truth
            assert np.all(np.abs(error) <= 5 * each.std(axis=0) / 200 + 1e-12), type(estimator).__name__

    def test_sticking_the_landing_has_no_noise_at_the_target(self, kind, x64):
        """Check 7."""
        q, target = vi.FullRank(2, kind), vi.gaussian(MEAN, COV)
        w = jnp.asarray(best_fit(q, MEAN, COV))
        u = jax.random.normal(jax.random.key(1), (50, 2))
        each = jax.vmap(lambda v: vi.StickingTheLanding().at(problem_for(q, target), w, v[None]))(u)
        assert float(jnp.max(jnp.abs(each))) < 1e-13

    def test_differentiating_the_density_too_gives_the_entropy_estimator(self, kind, rng, x64):
        """Check 8: for every draw."""
        q, target = vi.FullRank(2, kind), vi.gaussian(MEAN, COV)
        w, u = jnp.asarray(random_w(q, rng)), jnp.asarray(rng.normal(size=(1, 2)))

        def live(w):
            w = TestGaussians.structured(q, w)
            return (q.log_prob_at(w, u) - jax.vmap(target.at)(q.place(w, u)))[0]

        assert_allclose(vi.EntropyGradient().at(problem_for(q, target), w, u), jax.grad(live)(w), atol=1e-11)

    def test_their_noise_is_within_its_bounds(self, kind, x64):
        """Check 9: theorems 1 to 4 on a logistic regression, means over 4,000 draws at 10 points."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 4))
        target = vi.logistic_regression(X, (rng.random(30) < 0.5).astype(int))
        q, d, M = vi.FullRank(4, kind), 4, target.smoothness
        mode = newton_mode(target, 4)
        best, zero = fitted(q, target), q.pack(mode, 1.0)
        zero[:, 1:] = 0.0
        apart = float(np.sum((best - zero) ** 2))
        assert apart <= d / target.strong_convexity
        assert np.linalg.svd(best[:, 1:])[1].min() >= M**-0.5  # check 10
        problem, u = problem_for(q, target), jax.random.normal(jax.random.key(3), (4000, 4))
        for k in range(10):
            w = random_w(q, np.random.default_rng(k))
            C = w[:, 1:]
            if kind == "symmetric":
                w = np.asarray(q.project(jnp.asarray(w), M**-0.5))
            elif np.linalg.svd(C)[1].min() < M**-0.5:
                continue
            squared = float(np.sum((w - best) ** 2))
            for estimator in (vi.EnergyGradient(), vi.EntropyGradient(), vi.StickingTheLanding()):
                each = jax.vmap(lambda v, e=estimator, w=w: e.at(problem, jnp.asarray(w), v[None]))(u)
                moment = float(jnp.mean(jnp.sum(each**2, axis=(1, 2))))
                a, b = estimator.second_moment(d, M, apart)
                assert 0 < moment <= a * squared + b, type(estimator).__name__
            first = M**2 * ((d + 1) * np.sum((w[:, 0] - mode) ** 2) + (d + 3) * np.sum(w[:, 1:] ** 2))
            each = jax.vmap(lambda v, w=w: vi.EnergyGradient().at(problem, jnp.asarray(w), v[None]))(u)
            assert float(jnp.mean(jnp.sum(each**2, axis=(1, 2)))) <= first


def newton_mode(target, d):
    z = np.zeros(d)
    for _ in range(50):
        H = np.asarray(jax.hessian(target.at)(jnp.asarray(z)))
        z = z - np.linalg.solve(H, np.asarray(target.gradient(z)))
    return z


def fitted(q, target):
    """The best Gaussian by many deterministic gradient steps on a sample average of 4,000 fixed antithetic draws."""
    half = np.random.default_rng(9).normal(size=(2000, q.dim))
    u = jnp.asarray(np.concatenate([half, -half]))
    problem, estimator = problem_for(q, target), vi.EnergyGradient()
    size = 1 / target.smoothness

    def step(w, _):
        return q.prox(w - size * estimator.at(problem, w, u), size), None

    w0 = jnp.asarray(q.pack(newton_mode(target, q.dim), 0.5))
    return np.asarray(jax.jit(lambda w: jax.lax.scan(step, w, None, length=600)[0])(w0))


def test_the_gaussian_moment_identity(x64):
    """Check 5: lemma 29, and theorem 1 with equality for a round quadratic."""
    rng = np.random.default_rng(2)
    d = 3
    A, b = rng.normal(size=(d, d)), rng.normal(size=d)
    u = rng.normal(size=(400_000, d))
    each = (1 + np.sum(u**2, axis=1)) * np.sum((u @ A.T + b) ** 2, axis=1)
    truth = (d + 1) * b @ b + (d + 3) * np.sum(A**2)
    assert abs(each.mean() - truth) <= 5 * each.std() / np.sqrt(len(u))


@jax.jit
def hessians(target, points):
    return -jax.vmap(jax.hessian(target.at))(points)


class TestTargets:
    def test_constants_of_regressions(self):
        """Checks 11 and 12."""
        X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        linear = vi.linear_regression(X, np.zeros(3), noise_scale=0.5**0.5)
        assert_allclose([linear.strong_convexity, linear.smoothness], [3.0, 13.0], rtol=1e-13)
        ten = vi.hierarchical_logistic(np.zeros((10, 1)), [0, 1] * 5, np.arange(10))
        assert_allclose([ten.strong_convexity, ten.smoothness], [0.0839202, 11.9160798], atol=1e-7)

    @pytest.mark.parametrize("seed", range(5))
    def test_constants_bound_the_hessian(self, seed, x64):
        rng = np.random.default_rng(seed)
        n, d = 12, 2
        X, y = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2), rng.integers(0, 2, size=n)
        S = rng.normal(size=(d, d))
        S = S @ S.T + 0.1 * np.eye(d)
        S = (S + S.T) / 2
        targets = [
            vi.gaussian(rng.normal(size=d), S),
            vi.linear_regression(X, rng.normal(size=n), 0.7, S),
            vi.logistic_regression(X, y, prior_scale=[0.5, 2.0]),
            vi.hierarchical_logistic(X, y, rng.integers(0, 3, size=n), 1.5, S),
        ]
        for target in targets:
            for H in hessians(target, rng.normal(size=(5, target.dim))):
                values = np.linalg.eigvalsh(H)
                tolerance = 1e-12 * values[-1]
                assert target.strong_convexity - tolerance <= values[0] <= values[-1] <= target.smoothness + tolerance

    def test_the_best_gaussian_of_a_linear_regression_is_its_posterior(self, x64):
        """Check 22, by the stationarity of the exact posterior."""
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(8, 3)), rng.normal(size=8)
        target = vi.linear_regression(X, y, 0.5, 2.0)
        P = np.eye(3) / 4 + X.T @ X / 0.25
        q = vi.FullRank(3)
        w = q.pack(np.linalg.solve(P, X.T @ y / 0.25), np.linalg.cholesky(np.linalg.inv(P)))
        u = jax.random.normal(jax.random.key(0), (20, 3))
        assert float(jnp.max(jnp.abs(vi.StickingTheLanding().at(problem_for(q, target), jnp.asarray(w), u)))) < 1e-11

    def test_bad_data_is_refused(self):
        with pytest.raises(ValueError, match="y must hold 0 and 1"):
            vi.logistic_regression([[1.0]], [2])
        with pytest.raises(ValueError, match="one for each row"):
            vi.logistic_regression([[1.0]], [1, 0])
        with pytest.raises(ValueError, match="X must be a finite matrix"):
            vi.linear_regression([[np.nan]], [1.0])
        with pytest.raises(ValueError, match="noise_scale"):
            vi.linear_regression([[1.0]], [1.0], noise_scale=0)
        with pytest.raises(ValueError, match="prior_scale"):
            vi.logistic_regression([[1.0]], [1], prior_scale=-1)
        with pytest.raises(ValueError, match="symmetric"):
            vi.gaussian([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]])
        with pytest.raises(Exception, match="positive definite"):
            vi.gaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
        with pytest.raises(ValueError, match="groups"):
            vi.hierarchical_logistic([[1.0]], [1], [0, 1])


def test_constants_of_the_noise():
    """Check 13."""
    M = 2.7817378
    assert_allclose(vi.EnergyGradient().second_moment(2, M, 1.5), [77.38065, 116.070975], atol=1e-4)
    assert_allclose(vi.EntropyGradient().second_moment(2, M, 1.5)[0], 154.76130, atol=1e-4)
    assert_allclose(vi.StickingTheLanding().second_moment(2, M, 1.5, 0.0), [309.52260, 0.0], atol=1e-4)
