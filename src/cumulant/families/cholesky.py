"""Positive definite matrices in batches, through their Cholesky factors and the inverses of these.

Matrices are ``(..., d, d)``. `factorise` gives ``L``, lower triangular with ``L L^T`` the matrix, and ``R = L^-1``;
both have NaN where the matrix is not positive definite. The functions are plain JAX, used inside compiled programs.

Batches are factored column by column, with the batch on the last axis: faster than a LAPACK call for each matrix, and
safe where two such batches in one program are not (on the CPU, batched LAPACK calls of jaxlib 0.10 that run at the same
time wait for each other's threads, for ever).
"""

import functools

import jax
import jax.numpy as jnp

from cumulant.families.rows import in_chunks
from cumulant.families.special import excess

LARGE = 40  # above this size the columns are a long program to compile, and LAPACK one matrix after the other is fast


def transpose(matrix):
    """The last two axes exchanged."""
    return jnp.swapaxes(matrix, -1, -2)


def diagonal(matrix):
    """The diagonals ``(..., d)``."""
    return jnp.diagonal(matrix, axis1=-2, axis2=-1)


def times(matrix, vector):
    """Matrices times vectors."""
    return (matrix @ vector[..., None])[..., 0]


# Factors --------------------------------------------------------------------------------------------------------------


@jax.custom_jvp
def factorise(matrix):
    """``(L, R)`` with ``L L^T = S`` and ``R = L^-1``, of symmetric matrices; the upper triangle is not read."""
    return _single(matrix) if matrix.ndim == 2 else _batch(matrix)


@factorise.defjvp
def _factorise_jvp(primals, tangents):
    """``dL = L Phi(R dS R^T)``, where ``Phi`` keeps the lower triangle and half the diagonal (Murray 2016, eq. 8)."""
    factor, inverse = factorise(primals[0])
    middle = inverse @ tangents[0] @ transpose(inverse)
    middle = jnp.tril(middle) - 0.5 * diagonal(middle)[..., None] * jnp.eye(middle.shape[-1], dtype=middle.dtype)
    return (factor, inverse), (factor @ middle, -middle @ inverse)


@jax.custom_batching.custom_vmap
def _single(matrix):
    factor = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)
    return factor, _solve_identity(factor)


def _solve_identity(factor):
    identity = jnp.eye(factor.shape[-1], dtype=factor.dtype)
    return jax.lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True)


@_single.def_vmap
def _single_vmap(axis_size, in_batched, matrix):
    return _batch(matrix), (True, True)


def _batch(matrix):
    size = matrix.shape[-1]
    flat = matrix.reshape(-1, size, size)
    factors = in_chunks(_by_columns, flat) if size <= LARGE else jax.lax.map(_single, flat)
    return jax.tree.map(lambda leaf: leaf.reshape(matrix.shape), factors)


def _by_columns(matrix):
    factors = factors_last(jnp.moveaxis(matrix, 0, -1))
    return tuple(jnp.moveaxis(factor, -1, 0) for factor in factors)


def inverse_of_lower(factor):
    """``L^-1`` of lower triangular matrices."""
    size = factor.shape[-1]
    flat = factor.reshape(-1, size, size)
    if size <= LARGE:
        inverse = in_chunks(lambda rows: jnp.moveaxis(_inverse(jnp.moveaxis(rows, 0, -1)), -1, 0), flat)
    else:
        inverse = jax.lax.map(_solve_identity, flat)
    return inverse.reshape(factor.shape)


# With the batch last, on matrices ``(rows, columns, *batch)``: every operation runs along the batch.


def factors_last(matrix):
    """``(L, R)``, by columns: the identity beneath the matrix turns into ``R^T`` as the matrix does into ``L``."""
    size, batch = len(matrix), matrix.shape[2:]
    beneath = jnp.zeros((0, size, *batch), dtype=matrix.dtype)
    columns, rows = [], []
    for j in range(size):
        scale = jax.lax.rsqrt(jnp.where(matrix[0, 0] > 0, matrix[0, 0], jnp.nan))
        beneath = jnp.concatenate([beneath, jnp.zeros_like(beneath, shape=(1, size - j, *batch)).at[0, 0].set(1.0)])
        column, row = matrix[:, 0] * scale, beneath[:, 0] * scale
        matrix = matrix[1:, 1:] - column[1:, None] * column[None, 1:]
        beneath = beneath[:, 1:] - row[:, None] * column[None, 1:]
        columns.append(jnp.concatenate([jnp.zeros_like(row, shape=(j, *batch)), column]))
        rows.append(jnp.concatenate([row, jnp.zeros_like(row, shape=(size - 1 - j, *batch))]))
    return jnp.stack(columns, axis=1), jnp.stack(rows)


def columns_last(matrix):
    """The columns of ``L``, each from its pivot on; a row ``b`` beneath the symmetric matrix gives ``L^-1 b``."""
    columns = []
    for _ in range(matrix.shape[1]):
        column = matrix[:, 0] * jax.lax.rsqrt(jnp.where(matrix[0, 0] > 0, matrix[0, 0], jnp.nan))
        columns.append(column)
        matrix = matrix[1:, 1:] - column[1:, None] * column[None, 1 : matrix.shape[1]]
    return columns


def _inverse(factor):
    if len(factor) == 1:
        return 1 / factor
    half = len(factor) // 2
    first, last = _inverse(factor[:half, :half]), _inverse(factor[half:, half:])
    corner = -product_last(last, product_last(factor[half:, :half], first))
    above = jnp.zeros((len(first), len(last), *first.shape[2:]), dtype=first.dtype)
    return jnp.concatenate([jnp.concatenate([first, above], axis=1), jnp.concatenate([corner, last], axis=1)])


def product_last(left, right):
    """The matrix product."""
    return jnp.einsum("ik...,kj...->ij...", left, right)


# What follows from them -----------------------------------------------------------------------------------------------


def log_det(factor):
    """The log determinant of ``L L^T``."""
    return 2 * jnp.sum(jnp.log(diagonal(factor)), axis=-1)


def gram(matrix):
    """``G^T G``, exactly symmetric. Of ``R``, it is the inverse of the matrix."""
    product = transpose(matrix) @ matrix
    return 0.5 * (product + transpose(product))


def positive_definite(matrix):
    """Whether symmetric matrices are positive definite, as far as rounding can tell."""
    return jnp.all(jnp.isfinite(diagonal(factorise(matrix)[0])), axis=-1)


def symmetric_part(matrix):
    """``(S + S^T) / 2``, or NaN where the two halves differ by more than rounding of their own size could explain."""
    transposed = transpose(matrix)
    spread = jnp.sqrt(jnp.abs(diagonal(matrix)))
    allowed = jnp.sqrt(jnp.finfo(matrix.dtype).eps) * spread[..., :, None] * spread[..., None, :]
    fine = jnp.all(jnp.abs(matrix - transposed) <= allowed, axis=(-2, -1), keepdims=True)
    return jnp.where(fine, 0.5 * (matrix + transposed), jnp.nan)


def whiten(inverse, matrix):
    """``R S R^T`` for symmetric ``S``."""
    return inverse @ matrix @ transpose(inverse)


def trace_excess(matrix, factor=None):
    """``trace E - log det(I + E) >= 0`` of symmetric ``E``; accurate where it is small, ``|E|^2 / 2``.

    `factor` is that of ``I + E``, if known. Its squared pivots are ``1 + E_kk - c_k``, where ``c_k`` is the sum of
    squares left of the pivot. So the excess is ``sum_k [p_k - log(1 + p_k)] + c_k`` with ``p_k = E_kk - c_k``: no
    leading terms cancel.
    """
    if factor is None:
        factor, _ = factorise(matrix + jnp.eye(matrix.shape[-1], dtype=matrix.dtype))
    left = jnp.sum(jnp.tril(factor, -1) ** 2, axis=-1)
    return jnp.sum(excess(diagonal(matrix) - left) + left, axis=-1)


_FAR = 1e-4


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def near_or_far(near, far, theta, other):
    """A divergence of members, by ``far(theta, other)`` where ``near(theta, other)`` has lost digits.

    `near` works with the change of a matrix ``P``, relative to it, and also gives the squared pivots ``(..., d)`` of
    ``I + E``. Where one is small, the other matrix is far smaller than ``P`` in some direction, and forgotten in the
    change.
    """
    value, doubtful = _near(near, theta, other)
    return jax.lax.cond(jnp.any(doubtful), lambda: jnp.where(doubtful, far(theta, other), value), lambda: value)


def _near(near, theta, other):
    value, pivots = near(theta, other)
    return value, ~jnp.all(pivots > _FAR, axis=-1)  # NaN is doubtful too


@near_or_far.defjvp
def _near_or_far_jvp(near, far, primals, tangents):
    doubtful = _near(near, *primals)[1]

    def both(theta, other):
        safe = jnp.where(doubtful[..., None], theta, other)  # a NaN that is not chosen has a derivative all the same
        return jnp.where(doubtful, far(theta, other), near(theta, safe)[0])

    return jax.lax.cond(
        jnp.any(doubtful),
        lambda: jax.jvp(both, primals, tangents),
        lambda: jax.jvp(lambda *members: near(*members)[0], primals, tangents),
    )


def far_excess(factor, inverse, other_factor, weight=1.0):
    """``trace M - d - log det M`` of ``M = weight P^-1 P'``, from the factors of ``P`` and ``P'``: for far matrices."""
    size = factor.shape[-1]
    trace = weight * jnp.sum((inverse @ other_factor) ** 2, axis=(-2, -1))
    return trace - size * (1 + jnp.log(weight)) + (log_det(factor) - log_det(other_factor))


def correlation_pivots(covariance):
    """For each column, the part of its variance that the columns before it do not explain; NaN where there is none.

    Free of scale, between 0 and 1: the squared pivots of the Cholesky factor of the correlation matrix.
    """
    spread = jnp.sqrt(diagonal(covariance))
    correlation = covariance / (spread[..., :, None] * spread[..., None, :])
    return diagonal(factorise(correlation)[0]) ** 2
