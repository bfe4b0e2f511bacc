"""`vi.fit` as users call it: the answer, the certificate, the verdict, and what bad targets get."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import files, optim
from cumulant import variational as vi
from cumulant.errors import CertificateError, DomainError
from cumulant.variational.regression import RegressionELBO
from tests.variational.test_parts import COV, MEAN


def logistic(n=200, d=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return vi.logistic_regression(X, (rng.random(n) < 1 / (1 + np.exp(-X @ rng.normal(size=d)))).astype(int), scale)


def funnel(z):
    return -(z[0] ** 2) / 18 - jnp.sum(z[1:] ** 2) * jnp.exp(-z[0]) / 2 - 4 * z[0]


def two_modes(z):
    return jnp.logaddexp(-jnp.sum((z - 4) ** 2) / 2, -jnp.sum((z + 4) ** 2) / 2)


def improper(z):
    return jnp.sum(z)


def nan_density(z):
    return jnp.log(jnp.sum(z) - 1.0)


class TestRegressions:
    def test_the_certificate_is_within_the_accuracy_and_verifies(self):
        found = vi.fit(logistic(), accuracy=1e-4)
        assert found.status == "converged"
        assert found.certificate.upper <= 1e-4
        assert found.certificate.verify(found.subject).upper <= 1e-4
        assert found.verdict == "trust"
        assert found.elbo in found.elbo_interval
        assert found.diagnostics.log_evidence >= found.elbo - 0.02

    def test_the_certificate_of_another_answer_does_not_pass(self):
        found = vi.fit(logistic(), accuracy=1e-4)
        moved = found.subject._replace(answer=found.subject.answer * 1.1)
        with pytest.raises(CertificateError):
            found.certificate.verify(moved)

    @pytest.mark.parametrize("seed", range(3))
    def test_stochastic_steps_find_the_same_gaussian(self, seed):
        target = logistic(seed=seed)
        exact, sampled = vi.fit(target, accuracy=1e-6), vi.fit(target, method="prox", accuracy=0.01, rng=seed)
        problem = RegressionELBO(target)
        excess = problem.value(problem.gaussian.pack(sampled.mean, sampled.scale)) + exact.elbo
        assert -1e-6 <= excess <= 0.01
        assert sampled.status == "accurate"
        assert excess <= sampled.certificate.verify(sampled.subject).upper + 1e-6

    def test_sampled_gradients_alone_are_no_certificate(self):
        found = vi.fit(vi.gaussian(MEAN, COV))
        assert found.certificate is None
        assert "no certificate" in found.refusal

    def test_counts(self):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(100, 3)) / 2
        target = vi.poisson_regression(X, rng.poisson(np.exp(X @ [0.5, -0.3, 1.0])))
        found = vi.fit(target)
        assert found.verdict == "trust"
        assert found.certificate.upper <= 0.01

    def test_one_row_one_column_and_columns_that_are_equal_or_zero(self):
        for X in ([[1.0]], [[1.0, 1.0]], [[0.0, 2.0]], [[1e-8, 1e2]]):
            found = vi.fit(vi.logistic_regression(X, [1]))
            assert found.certificate.upper <= 0.01


class TestAnyTarget:
    @pytest.mark.parametrize("family", ["full", "diagonal"])
    def test_a_gaussian(self, family):
        found = vi.fit(vi.gaussian(MEAN, COV), family, accuracy=1e-4)
        assert_allclose(found.mean, MEAN, atol=0.02)
        best = COV if family == "full" else np.diag(1 / np.diagonal(np.linalg.inv(COV)))
        assert_allclose(found.covariance, best, atol=0.03)
        if family == "full":
            assert abs(found.elbo) < 1e-3
            assert found.verdict == "trust"

    def test_where_no_gaussian_fits_the_verdict_says_so(self):
        found = vi.fit(vi.Target(funnel, 5), start=np.full(5, 0.1))
        assert found.verdict == "do not trust"

    def test_a_mode_that_was_missed_is_not_trusted(self):
        found = vi.fit(vi.Target(two_modes, 2), start=np.array([1.0, 1.0]))
        assert found.verdict != "trust"

    def test_names(self):
        target = vi.Target(lambda x: -jnp.sum(x["b"] ** 2) / 2 - x["a"] ** 2, {"a": (), "b": (2,)})
        draws = vi.fit(target).sample(500, rng=0)
        assert draws["b"].shape == (1, 500, 2)
        assert abs(draws["a"].std() - 0.5**0.5) < 0.1

    def test_the_same_seed_gives_the_same_answer(self):
        a, b = (vi.fit(vi.Target(funnel, 2), start=[0.1, 0.1], rng=7, max_steps=200) for _ in range(2))
        assert_allclose(a.mean, b.mean, rtol=1e-10)

    def test_estimated_objectives_are_not_certified(self):
        target, q = vi.gaussian(MEAN, COV), vi.FullRank(2)
        problem = vi.NegativeELBO(target, q, np.zeros((1, 2)))
        with pytest.raises(CertificateError, match="computed exactly"):
            optim.certify_optimality(problem, q.pack(0.0, 1.0))
        with pytest.raises(CertificateError, match="computed exactly"):
            optim.certify_optimality(vi.proximal_problem(target, q, np.zeros((1, 2))), q.pack(0.0, 1.0))


class TestBadInput:
    def test_densities(self):
        with pytest.raises(DomainError, match="start"):
            vi.fit(vi.Target(nan_density, 2))
        with pytest.raises(DomainError):
            vi.fit(vi.Target(improper, 2))

    def test_arguments(self):
        target = vi.gaussian(MEAN, COV)
        for settings, word in [
            ({"family": "round"}, "family"),
            ({"method": "hope"}, "method"),
            ({"accuracy": 0}, "accuracy"),
            ({"method": "quadrature"}, "quadrature"),
            ({"start": [1.0]}, "start"),
        ]:
            with pytest.raises(ValueError, match=word):
                vi.fit(target, **settings)
        with pytest.raises(TypeError, match="target"):
            vi.fit(funnel)


def test_printing_saving_and_densities(tmp_path):
    found = vi.fit(logistic())
    assert "trust" in str(found)
    assert "KL(q | p) - min KL" in str(found)
    saved = files.load(found.save(tmp_path / "fit"), "variational fit")
    assert_allclose(saved.arrays["mean"], found.mean)
    z = found.sample(4, rng=0).flat
    truth = -0.5 * np.sum(np.linalg.solve(found.scale, (z - found.mean).T) ** 2, axis=0)
    truth -= np.linalg.slogdet(found.scale)[1] + 2 * np.log(2 * np.pi)
    assert_allclose(found.log_prob(z), truth)
    with pytest.raises(ValueError, match="coordinates"):
        found.log_prob([1.0])
    with pytest.raises(ValueError, match="whole number"):
        found.sample(0)
