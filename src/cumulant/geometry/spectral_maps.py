"""Functions of matrices through their eigenvalues or singular values, with derivatives that survive ties.

The derivative of ``F(X) = U f(lambda) U^T`` is ``dF[S] = U (Gamma o U^T S U) U^T`` with the secants
``Gamma_ij = (f(lambda_i) - f(lambda_j)) / (lambda_i - lambda_j)`` (Daleckii and Krein 1965): smooth where eigenvalues
cross, while those of the eigenvectors are not. So `f` comes with its `secant`, and JAX is told this rule.
"""

import functools

import jax
import jax.numpy as jnp


def transpose(matrix):
    """The last two axes exchanged."""
    return jnp.swapaxes(matrix, -2, -1)


def eigen(matrix):
    """Eigenvalues (ascending) and eigenvectors of the symmetric part."""
    return jnp.linalg.eigh((matrix + transpose(matrix)) / 2)


def congruence(basis, matrix):
    """``U M U^T`` for symmetric ``M``, exactly symmetric."""
    product = basis @ matrix @ transpose(basis)
    return (product + transpose(product)) / 2


def compose(basis, values):
    """``U diag(values) U^T``, exactly symmetric."""
    product = (basis * values[..., None, :]) @ transpose(basis)
    return (product + transpose(product)) / 2


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def spectral_map(function, secant, matrix, parameter):
    """``U f(lambda) U^T``, symmetric: `function(lambda, parameter)` with `secant(lambda_i, lambda_j, parameter)`."""
    values, basis = eigen(matrix)
    return compose(basis, function(values, parameter))


@spectral_map.defjvp
def _(function, secant, primals, tangents):
    matrix, parameter = primals
    d_matrix, d_parameter = tangents
    values, basis = eigen(matrix)
    answer, d_function = jax.jvp(lambda p: function(values, p), (parameter,), (d_parameter,))
    inner = transpose(basis) @ ((d_matrix + transpose(d_matrix)) / 2) @ basis
    inner = secant(values[..., :, None], values[..., None, :], _expand(parameter)) * inner
    return compose(basis, answer), congruence(basis, inner) + compose(basis, d_function)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def singular_map(function, secant, matrix, parameter):
    """``U f(sigma) V^T`` for rectangular matrices and odd `f`; arguments as in `spectral_map`."""
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    return (left * function(values, parameter)[..., None, :]) @ right


@singular_map.defjvp
def _(function, secant, primals, tangents):
    # The rule of `spectral_map` for [[0, X], [X^T, 0]], whose eigenvalues are +-sigma and, where X is not square, 0.
    matrix, parameter = primals
    d_matrix, d_parameter = tangents
    left, values, right = jnp.linalg.svd(matrix, full_matrices=False)
    answer, d_function = jax.jvp(lambda p: function(values, p), (parameter,), (d_parameter,))
    wide = _expand(parameter)
    inner = transpose(left) @ d_matrix @ transpose(right)
    even, odd = (inner + transpose(inner)) / 2, (inner - transpose(inner)) / 2
    column, row = values[..., :, None], values[..., None, :]
    inner = secant(column, row, wide) * even + secant(column, -row, wide) * odd
    out = left @ inner @ right + (left * d_function[..., None, :]) @ right
    rows, columns = matrix.shape[-2:]
    to_zero = secant(values, jnp.zeros_like(values), parameter)
    if rows > columns:
        beyond = d_matrix @ transpose(right)
        beyond = beyond - left @ (transpose(left) @ beyond)
        out = out + (beyond * to_zero[..., None, :]) @ right
    if columns > rows:
        beyond = transpose(left) @ d_matrix
        beyond = beyond - (beyond @ transpose(right)) @ right
        out = out + left @ (to_zero[..., :, None] * beyond)
    return (left * answer[..., None, :]) @ right, out


def _expand(parameter):
    """A batched parameter (one number a matrix, shape ``(..., 1)``) with the second axis that pairs need."""
    return parameter[..., None] if jnp.ndim(parameter) else parameter
