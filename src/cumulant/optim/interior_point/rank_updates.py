"""Inverses and determinants after a change of rank one or two."""

import jax.numpy as jnp

from cumulant.precision import precise


@precise
def sherman_morrison(inverse, u, v):
    """``(A + u v^T)^-1`` from ``A^-1``: ``A^-1 - A^-1 u v^T A^-1 / (1 + v^T A^-1 u)`` (Sherman and Morrison 1950).

    The division is missing from equation 2.48 of Carbonetto (2009).

    >>> sherman_morrison([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [1.0, 0.0]).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    left, right = inverse @ u, v @ inverse
    return inverse - jnp.outer(left, right) / (1 + v @ left)


@precise
def rank_two_determinant(inverse, u1, u2, u3, u4):
    """``det(A + u1 u2^T + u3 u4^T) / det A`` from ``A^-1``, which need not be symmetric:
    ``(1 + u2^T A^-1 u1)(1 + u4^T A^-1 u3) - (u2^T A^-1 u3)(u4^T A^-1 u1)``.

    Equation 2.49 of Carbonetto (2009) is the special case of a symmetric ``A``.

    >>> rank_two_determinant([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0])
    np.float64(6.0)
    """
    first, second = inverse @ u1, inverse @ u3
    return (1 + u2 @ first) * (1 + u4 @ second) - (u2 @ second) * (u4 @ first)


def diagonal_plus_rank_one(diagonal, weight, right):
    """``(diag(d) + weight 1 1^T)^-1 right``, for positive ``d`` and ``weight``, in linear time."""
    inverse = jnp.broadcast_to(1 / diagonal, right.shape)
    scaled = inverse * right
    return scaled - inverse * (weight * jnp.sum(scaled) / (1 + weight * jnp.sum(inverse)))
