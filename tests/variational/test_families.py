"""Families, routes, estimators and minibatches of `fit`, against closed forms and quadrature."""

import resource

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from cumulant import optim, sampling
from cumulant import variational as vi
from cumulant.optim import schedules
from cumulant.variational.regression import RegressionELBO
from cumulant.variational.whitening import estimated_smoothness, scales_at
from tests.variational.test_fit import logistic
from tests.variational.test_parts import COV, MEAN, newton_mode


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


class TestLowRank:
    q = vi.LowRank(4, 2)

    def parameters(self, seed=0):
        rng = np.random.default_rng(seed)
        return self.q.pack(rng.normal(size=4), (rng.uniform(0.5, 2.0, size=4), rng.normal(size=(4, 2))))

    def test_determinants_solves_and_densities_are_those_of_the_dense_matrix(self, x64):
        w, u = self.parameters(), np.random.default_rng(1).normal(size=(5, 6))
        S = self.q.covariance(w)
        assert_allclose(S, np.diag(w[:, 1] ** 2) + w[:, 2:] @ w[:, 2:].T)
        assert_allclose(self.q.log_det(jnp.asarray(w)), np.linalg.slogdet(S)[1] / 2)
        z = self.q.place(w, u)
        assert_allclose(z, w[:, 0] + u @ self.q.factor(w).T)
        assert_allclose(self.q.solve_transposed(w, u), np.linalg.solve(S, (z - w[:, 0]).T).T)
        assert_allclose(self.q.log_prob(w, z), multivariate_normal(w[:, 0], S).logpdf(z))
        assert_allclose(self.q.log_prob_at(jnp.asarray(w), jnp.asarray(u)), self.q.log_prob(w, z))
        assert_allclose(self.q.deviations(w), np.sqrt(np.diagonal(S)))
        assert_allclose(np.sum(w**2), np.sum(w[:, 0] ** 2) + np.sum(self.q.factor(w) ** 2))

    def test_gradients_are_those_of_jax(self, x64):
        w, u = jnp.asarray(self.parameters()), jnp.asarray(np.random.default_rng(1).normal(size=(5, 6)))
        assert_allclose(self.q.log_det_gradient(w), jax.grad(self.q.log_det)(w), atol=1e-12)
        slope = jax.grad(lambda w: jnp.mean(jnp.sum(jnp.sin(self.q.place(w, u)), axis=1)))(w)
        assert_allclose(self.q.pull_back(jnp.cos(self.q.place(w, u)), u), slope, atol=1e-12)

    def test_bad_parameters_and_proximal_maps_are_refused(self):
        with pytest.raises(ValueError, match="rank"):
            vi.LowRank(3, 0)
        with pytest.raises(ValueError, match="positive"):
            self.q.pack(0.0, -1.0)
        with pytest.raises(ValueError, match="F must be"):
            self.q.pack(0.0, (1.0, np.zeros((2, 4))))
        with pytest.raises(ValueError, match="proximal map"):
            self.q.prox(self.parameters(), 0.1)


def half_quadratic(z, data):
    mean, precision = data
    return -(z - mean) @ precision @ (z - mean) / 2


def excess(found, mean, cov):
    """``KL(q | N(mean, cov))``."""
    P, S, off = np.linalg.inv(cov), found.covariance, found.mean - mean
    return (np.trace(P @ S) + off @ P @ off - len(mean) - np.linalg.slogdet(P @ S)[1]) / 2


class TestFamiliesOfFit:
    def test_isotropic(self):
        found = vi.fit(vi.gaussian(MEAN, COV), "isotropic", accuracy=1e-4)
        assert_allclose(found.mean, MEAN, atol=0.03)
        assert_allclose(found.covariance, np.eye(2) * 2 / np.trace(np.linalg.inv(COV)), atol=0.02)

    def test_low_rank_of_a_target_of_low_rank(self):
        rng = np.random.default_rng(0)
        mean, F = rng.normal(size=8), rng.normal(size=(8, 2))
        cov = np.diag(rng.uniform(0.3, 1.0, size=8)) + F @ F.T
        target = vi.Target(half_quadratic, 8, (mean, np.linalg.inv(cov)))
        found = vi.fit(target, vi.LowRank(8, 2), accuracy=1e-3)
        assert found.status == "accurate"
        assert excess(found, mean, cov) < 0.05
        assert found.scale.shape == (8, 8)
        assert found.sample(3, rng=0).flat.shape == (3, 8)
        assert np.isfinite(found.log_prob(mean))

    @pytest.mark.parametrize("estimator", ["entropy", "stl"])
    def test_projected_steps(self, estimator):
        target = logistic()
        exact = vi.fit(target, accuracy=1e-6)
        found = vi.fit(target, method="proj", estimator=estimator, accuracy=0.02)
        problem = RegressionELBO(target)
        assert problem.value(problem.gaussian.pack(found.mean, found.scale)) + exact.elbo <= 0.02
        assert found.certificate.verify(found.subject).upper == found.certificate.upper
        assert "projected" in str(found)
        assert "not bounded" in str(found)

    def test_a_solver_with_its_own_schedule_and_average(self):
        solver = optim.RobbinsMonro(schedules.Switching(0.05, 1.0), vi.EnergyGradient(8), average=True)
        found = vi.fit(vi.gaussian(MEAN, COV), method=solver, max_steps=400, accuracy=0.05)
        assert excess(found, MEAN, COV) < 0.1

    def test_what_would_count_the_entropy_twice_or_not_at_all_is_refused(self):
        target = vi.gaussian(MEAN, COV)
        for settings, word in [
            ({"method": "prox", "estimator": "stl"}, "twice"),
            ({"method": "prox", "estimator": "entropy"}, "twice"),
            ({"method": "proj", "estimator": "energy"}, "leave the entropy out"),
            ({"method": "prox", "family": "low_rank"}, "proximal map"),
            ({"estimator": "score"}, "estimator must be one of"),
            ({"family": vi.LowRank(3, 1)}, "coordinates of the target"),
            ({"method": optim.RobbinsMonro(0.1, vi.EnergyGradient()), "estimator": "stl"}, "not both"),
        ]:
            with pytest.raises(ValueError, match=word):
                vi.fit(target, **settings)


def spiked(z, data):
    """A Gaussian with covariance ``diag(s^2) + F F^T``, by Woodbury's identity."""
    s, F, K, mean = data
    x = (z - mean) / s
    along = (F / s[:, None]).T @ x
    return -(x @ x - along @ jnp.linalg.solve(K, along)) / 2


def spiked_target(d, rank, seed=0):
    rng = np.random.default_rng(seed)
    s, F = rng.uniform(0.5, 2.0, size=d), rng.normal(size=(d, rank)) * 0.3
    thin = F / s[:, None]
    return vi.Target(spiked, d, (s, F, np.eye(rank) + thin.T @ thin, rng.normal(size=d))), s, F


def test_hundreds_of_coordinates_without_a_matrix():
    """Above 300 coordinates nothing of the size of a covariance is formed on the way."""
    target, s, F = spiked_target(400, 2)
    found = vi.fit(target, vi.LowRank(400, 2), accuracy=0.5)
    truth = np.sqrt(s**2 + np.sum(F**2, axis=1))
    assert found.status == "accurate"
    assert np.max(np.abs(found.mean - target.data[3]) / truth) < 0.1
    assert np.max(np.abs(np.log(found.deviations / truth))) < 0.1


@pytest.mark.slow
def test_a_hundred_thousand_coordinates():
    target, s, F = spiked_target(100_000, 3)
    found = vi.fit(target, vi.LowRank(100_000, 3), accuracy=5.0, max_steps=400)
    truth = np.sqrt(s**2 + np.sum(F**2, axis=1))
    assert np.median(np.abs(np.log(found.deviations / truth))) < 0.05
    assert np.median(np.abs(found.mean - target.data[3]) / truth) < 0.05
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2e6  # kB
    with pytest.raises(ValueError, match="not formed"):
        _ = found.covariance


class TestRows:
    def data(self, n=40, d=3, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        return X, (rng.random(n) < 1 / (1 + np.exp(-X @ np.ones(d)))).astype(int)

    def test_gradients_by_rows_are_unbiased_and_their_noise_is_within_its_bound(self, x64):
        """The mean over 20,000 draws within five standard errors; theorem 1 term by term."""
        X, y = self.data()
        n, d = X.shape
        target = vi.logistic_regression(X, y)
        q = vi.FullRank(d)
        problem = vi.NegativeELBO(target, q, np.zeros((1, d)))
        exact = vi.fit(target, accuracy=1e-8)
        best = q.pack(exact.mean, exact.scale)
        w = jnp.asarray(best + np.tril(np.random.default_rng(1).normal(size=best.shape) * 0.1, 1))
        keys = jax.random.split(jax.random.key(0), 20_000)
        by_rows = jax.jit(jax.vmap(lambda k: vi.EnergyGradient(rows=1)(problem, w, 0, k)))(keys)
        whole = jax.jit(jax.vmap(lambda k: vi.EnergyGradient()(problem, w, 0, k)))(keys)
        apart = jnp.mean(by_rows - whole, axis=0)
        error = jnp.sqrt((jnp.var(by_rows, axis=0) + jnp.var(whole, axis=0)) / len(keys))
        assert bool(jnp.all(jnp.abs(apart) <= 5 * error + 1e-12))
        signs = np.where(y > 0, 1.0, -1.0)
        squares = np.sum(X**2, axis=1)
        # The stationary point of a term with its share of the prior: n t x, with t = sign sigmoid(-n t sign |x|^2).
        t = np.zeros(n)
        for _ in range(200):
            t = 0.9 * t + 0.1 / (1 + np.exp(n * t * squares))
        z = n * (signs * t)[:, None] * X
        distances = np.sum((best[:, 0] - z) ** 2, axis=1) + np.sum(best[:, 1:] ** 2)
        a, b = vi.subsampled_second_moment(d, squares / 4 + 1 / n, distances)
        moment = float(jnp.mean(jnp.sum(by_rows**2, axis=(1, 2))))
        assert moment <= a * float(np.sum((np.asarray(w) - best) ** 2)) + b

    def test_a_fit_by_rows_agrees_with_quadrature(self):
        X, y = self.data(n=400)
        target = vi.logistic_regression(X, y)
        exact = vi.fit(target, accuracy=1e-6)
        gradients = vi.EnergyGradient(batch=16, antithetic=True, standardised=True, rows=100)
        found = vi.fit(target, method="prox", estimator=gradients, accuracy=0.05)
        problem = RegressionELBO(target)
        assert problem.value(problem.gaussian.pack(found.mean, found.scale)) + exact.elbo <= 0.05

    def test_a_sum_over_rows_is_the_whole_density(self):
        X, y = self.data()
        signs = np.where(y > 0, 1.0, -1.0)
        target = vi.sum_target(row_likelihood, X.shape[1], {"x": X, "sign": signs}, normal_prior)
        known = vi.logistic_regression(X, y)
        z = np.array([0.3, -1.0, 0.5])
        assert_allclose(target.gradient(z), known.gradient(z), rtol=1e-12)
        with jax.enable_x64(True):
            rows = jnp.arange(len(y))
            assert_allclose(target.at_rows(jnp.asarray(z), rows), target.at(jnp.asarray(z)))
            assert_allclose(known.at_rows(jnp.asarray(z), rows), known.at(jnp.asarray(z)))
        with pytest.raises(ValueError, match="same number of rows"):
            vi.sum_target(row_likelihood, 3, {"x": X, "sign": signs[:-1]}, normal_prior)
        with pytest.raises(TypeError, match="sum over rows"):
            vi.fit(vi.gaussian(MEAN, COV), estimator=vi.EnergyGradient(rows=3))
        with pytest.raises(ValueError, match="rows"):
            vi.EnergyGradient(rows=0)


def row_likelihood(z, row):
    return -jax.nn.softplus(-row["sign"] * jnp.dot(row["x"], z))


def normal_prior(z):
    return -jnp.dot(z, z) / 2


class TestUnknownConstants:
    def test_power_iteration_and_diagonals(self):
        rng = np.random.default_rng(0)
        A = rng.normal(size=(6, 6))
        P = A @ A.T + np.eye(6)
        target = vi.Target(half_quadratic, 6, (np.zeros(6), P))
        assert_allclose(estimated_smoothness(target, np.zeros((2, 6)), rng), np.linalg.eigvalsh(P)[-1], rtol=0.05)
        diagonal = vi.Target(half_quadratic, 6, (np.zeros(6), np.diag(np.diagonal(P))))
        assert_allclose(scales_at(diagonal, np.zeros(6), rng), np.diagonal(P) ** -0.5, rtol=1e-9)

    def test_a_hierarchy_without_a_mode_ends_with_a_verdict(self):
        """Eight schools with centred effects: the density grows without bound as their scale goes to zero."""
        data = (
            np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
            np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
        )
        shapes = {"theta": (8,), "mu": (), "tau": ()}
        found = vi.fit(sampling.constrained(centred_schools, shapes, {"tau": "positive"}, data), max_steps=2000)
        assert found.verdict == "do not trust"


def centred_schools(x, data):
    y, sigma = data
    likelihood = -jnp.sum((y - x["theta"]) ** 2 / sigma**2) / 2
    effects = -jnp.sum((x["theta"] - x["mu"]) ** 2) / (2 * x["tau"] ** 2) - 8 * jnp.log(x["tau"])
    return likelihood + effects - x["mu"] ** 2 / 50 - jnp.log1p((x["tau"] / 5) ** 2)


def test_newton_finds_the_mode_that_a_plan_starts_from():
    target = logistic()
    ahead = vi.plan(target, accuracy=1.0)
    assert_allclose(ahead.start[:, 0], newton_mode(target, 4), atol=1e-6)
