import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families.cholesky import correlation_pivots, factorise, inverse_of_lower, symmetric_part, trace_excess
from cumulant.families.multivariate_normal import MultivariateNormal
from cumulant.precision import precise
from tests.families import matrix_laws as laws


@pytest.mark.parametrize(("size", "batch"), [(1, (3,)), (2, (200,)), (5, (7, 30)), (10, ()), (45, (2,))])
def test_factors_against_numpy(size, batch):
    """One matrix, a few, many with a last chunk that is not full, and matrices too large for the recursion."""
    matrix = laws.positive_definite(np.random.default_rng(size), size, batch)
    factor, inverse = precise(factorise)(matrix)
    assert_allclose(factor, np.linalg.cholesky(matrix), rtol=1e-10, atol=1e-13)
    assert_allclose(inverse @ factor, np.broadcast_to(np.eye(size), matrix.shape), atol=1e-10)
    assert_allclose(precise(inverse_of_lower)(factor), inverse, rtol=1e-8, atol=1e-10)


def test_matrices_that_are_not_positive_definite_have_no_factor():
    good = laws.positive_definite(np.random.default_rng(0), 4, (3,))
    bad = good.copy()
    bad[1] = np.diag([1.0, 1.0, -1e-9, 1.0])
    for matrices in (bad, bad[1]):
        factor, _ = precise(factorise)(matrices)
        finite = np.all(np.isfinite(np.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
        assert np.array_equal(finite, [True, False, True] if matrices.ndim == 3 else False)


def test_ill_conditioned_matrices_are_factored_as_well_as_by_lapack():
    rng = np.random.default_rng(1)
    vectors = np.linalg.qr(rng.normal(size=(50, 10, 10)))[0]
    matrix = (vectors * np.logspace(0, -13, 10)) @ np.swapaxes(vectors, -1, -2)
    matrix = 0.5 * (matrix + np.swapaxes(matrix, -1, -2))
    factor, _ = precise(factorise)(matrix)
    assert np.max(np.abs(factor @ np.swapaxes(factor, -1, -2) - matrix)) < 4e-16


def test_derivatives_are_those_of_the_factors():
    """First and second derivatives, alone and under ``vmap``, against those of ``jnp.linalg``."""
    rng = np.random.default_rng(2)
    matrix, direction = laws.positive_definite(rng, 4), laws.positive_definite(rng, 4)

    def ours(t, s, h):
        factor, inverse = factorise(s + t * h)
        return jnp.sum(jnp.sin(factor)) + jnp.sum(jnp.cos(inverse))

    def theirs(t, s, h):
        factor = jnp.linalg.cholesky(s + t * h)
        return jnp.sum(jnp.sin(factor)) + jnp.sum(jnp.cos(jnp.linalg.inv(factor)))

    def derivatives(f):
        both = jax.vmap(jax.grad(f), (0, None, None))
        return lambda s, h: (jax.grad(f)(0.1, s, h), jax.hessian(f)(0.1, s, h), both(jnp.ones(2), s, h))

    got, expected = (laws.in_float64(derivatives(f), matrix, direction) for f in (ours, theirs))
    for value, wanted in zip(got, expected, strict=True):
        assert_allclose(value, wanted, rtol=1e-9)


def test_several_large_batches_in_one_program_do_not_wait_for_each_other():
    """Batched LAPACK calls that run at the same time would, for ever, on a machine with few cores (jaxlib 0.10)."""
    matrix = laws.positive_definite(np.random.default_rng(3), 5, (3000,))
    answers = precise(lambda s: [factorise(s + k * jnp.eye(5, dtype=s.dtype))[0][..., 0, 0] for k in range(4)])(matrix)
    assert_allclose(answers[3], np.sqrt(matrix[:, 0, 0] + 3), rtol=1e-12)


def test_the_excess_of_the_trace_over_the_log_determinant():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(3, 3))
    matrix = root + root.T
    excess = precise(trace_excess)
    for scale in (0.1, 1e-5, 1e-9, 1e-12):
        e = scale * np.linalg.eigvalsh(matrix)
        expected = np.sum(e - np.log1p(e)) if scale > 1e-2 else np.sum(e**2 / 2 - e**3 / 3)
        assert_allclose(excess(scale * matrix), expected, rtol=1e-8)


def test_pivots_of_the_correlation_matrix_are_unexplained_variances():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3)) * [1e-6, 1.0, 1e6]
    pivots = precise(correlation_pivots)(np.cov(x.T))
    for j in range(1, 3):
        design = np.column_stack([np.ones(100), x[:, :j] / np.std(x[:, :j], axis=0)])
        residual = x[:, j] - design @ np.linalg.lstsq(design, x[:, j], rcond=None)[0]
        assert_allclose(pivots[j], np.var(residual) / np.var(x[:, j]), rtol=1e-8)


def test_matrices_are_symmetric_up_to_rounding():
    part = precise(symmetric_part)
    matrix = np.array([[1e12, 1.0], [1.0, 1e-12]])
    assert np.array_equal(part(matrix), matrix)
    assert np.all(np.isfinite(part(matrix + 1e-9 * np.eye(2, k=1))))
    assert np.all(np.isnan(part(matrix + 1e-7 * np.eye(2, k=1))))


def test_large_batches_give_what_small_ones_give():
    """Chunks of rows, the last one filled up: the same as a few at a time."""
    rng = np.random.default_rng(6)
    family = MultivariateNormal(3)
    theta = family.natural(mean=rng.normal(size=(2, 501, 3)), covariance=laws.positive_definite(rng, 3, (2, 501)))
    few = theta[:, -50:]
    assert_allclose(family.kl(theta, theta[0, 0])[:, -50:], family.kl(few, theta[0, 0]), rtol=1e-12)
    assert_allclose(family.to_natural(family.to_mean(theta)), theta, rtol=1e-8, atol=1e-9)
    covariance = family.usual(theta)["covariance"]
    assert covariance.shape == (2, 501, 3, 3)
    assert_allclose(covariance[:, -50:], family.usual(few)["covariance"], rtol=1e-12)
