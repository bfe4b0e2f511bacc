"""The implicit function theorem: derivatives of roots, whatever found them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg, gmres

_DENSE = 1000  # unknowns up to which the linear system is written down and factorised
LINEAR_SOLVERS = ("auto", "dense", "iterative")


def root(equation: Callable, theta: Any, start: Any, solve: Callable, linear_solver: str, symmetric: bool) -> Any:
    """``x`` with ``F(x, theta) = 0``, with the derivative of the implicit function.

    `solve(theta, start)` returns the vector ``x`` and anything else of floats worth returning, which counts as
    constant. `start` is a pytree on which the answer is taken not to depend; its first leaf has the size of ``x``.

    ``dx = -[d_x F]^-1 d_theta F``: both modes, any order. Up to 1000 unknowns the matrix is factorised; beyond,
    conjugate gradients (GMRES where it is not symmetric) use products with it only.
    """
    dense = linear_solver == "dense" or (linear_solver == "auto" and jax.tree.leaves(start)[0].size <= _DENSE)

    # The start is an argument, though nothing depends on it: a rule must not close over values that are being traced.
    @jax.custom_jvp
    def found(theta, start):
        return solve(theta, start)

    @found.defjvp
    def _(primals, tangents):
        theta, start = primals
        x, rest = found(theta, start)
        change = -jax.jvp(lambda t: equation(x, t), (theta,), tangents[:1])[1]
        if dense:
            return (x, rest), (jnp.linalg.solve(jax.jacfwd(equation)(x, theta), change), _zeros(rest))

        def solver(matvec, b):
            tol = 10 * float(jnp.finfo(b.dtype).eps)
            if symmetric:
                return cg(matvec, b, tol=tol, maxiter=10 * b.size)[0]
            return gmres(matvec, b, tol=tol, restart=min(b.size, 50), maxiter=200)[0]

        # Wrapped once more: the start and the tolerance that `cg` and `gmres` derive from b have no transpose.
        linear = jax.linearize(lambda at: equation(at, theta), x)[1]
        move = jax.lax.custom_linear_solve(linear, change, solver, solver, symmetric=symmetric)
        return (x, rest), (move, _zeros(rest))

    return found(theta, start)


def _zeros(tree: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, tree)
