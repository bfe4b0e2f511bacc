"""Newton's method, damped by a line search and shifted where the Hessian is not positive definite."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

from cumulant.optim.certify.optimality import Knowledge, knowledge
from cumulant.optim.problems.sparse_matrix import row_squares
from cumulant.optim.protocol import require_gradient
from cumulant.optim.solvers.first_order import FirstOrder
from cumulant.optim.solvers.line_search import Armijo, no_progress
from cumulant.pytrees import pytree


class NewtonState(NamedTuple):
    """The iterate with the value and gradient there, and what the last step was like."""

    x: Any
    value: Any
    gradient: Any
    shift: Any
    taken: Any
    stuck: Any  # whether the last line search decreased neither the value nor the gradient
    longest_row: Any  # for the bound on losses that are self-concordant
    known: Knowledge


def _hessian(problem, x):
    """The dense Hessian at a point, as a matrix on the flattened coordinates."""
    basis = jnp.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
    columns = jax.vmap(lambda v: problem.hessian_apply(x, v))(basis).reshape(x.size, x.size)
    return (columns + columns.T) / 2


def _decrement_bound(gradient, eigenvalues, longest_row):
    """The bound of `certify_self_concordance`, in the coordinates of the eigenvectors of the Hessian."""
    smallest = eigenvalues[0]
    fine = smallest > 0
    squared = jnp.sum(gradient**2 / jnp.where(fine, eigenvalues, 1.0))
    k2 = squared * longest_row**2 / jnp.where(fine, smallest, 1.0)
    k = jnp.sqrt(k2)
    near = jnp.clip(k, 0.0, 0.5)
    # (1 - k) log(1 - k) + k <= k^2 / 2 / (1 - k), which does not cancel.
    return jnp.where(fine & (k < 0.5), squared / 2 / (1 - near), jnp.inf)


@pytree
@dataclasses.dataclass(frozen=True)
class Newton(FirstOrder):
    """``x_next = x - t (hess f(x) + delta I)^-1 grad f(x)``, with ``t`` by Armijo's rule from one.

    On a strongly convex function with Lipschitz Hessian it converges from everywhere, and quadratically in the end,
    where ``t = 1`` is accepted (Boyd and Vandenberghe 2004, section 9.5.3). The shift ``delta`` (Levenberg 1944) is at
    least `shift`; where the matrix is not positive definite it is raised tenfold until it is, so that the direction is
    one of descent.

    The Hessian is dense: a step costs ``n p^2 + p^3 / 3``. The certificate is that of
    `cumulant.optim.certify.optimality`, which for the logistic loss needs no penalty: near the minimum it is half the
    squared Newton decrement.

    Parameters
    ----------
    shift : float
        ``delta``, zero by default.
    line_search : Armijo
        Each search starts from a full step.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0], [1.0, 1.0]], [1, -1, 1, -1])
    >>> result = optim.run(Newton(), problem, [0.0, 0.0], tol=1e-12)
    >>> result.status, result.work, result.x.round(6)
    ('converged', 4, array([ 1.540015, -0.715086]))
    """

    shift: Any = 0.0
    line_search: Any = dataclasses.field(default_factory=lambda: Armijo(alpha=0.25, warm=False))

    def __post_init__(self):
        if isinstance(self.shift, int | float) and not self.shift >= 0:
            raise ValueError(f"shift must not be negative; got {self.shift}")

    def init(self, problem, x0, rng):
        """The value and gradient at ``x0``."""
        require_gradient(self, problem)
        value, gradient = problem.value_and_gradient(x0)
        zero = jnp.zeros_like(value)
        constant = problem.self_concordance
        row = 0.0 if constant is None else constant * float(np.sqrt(row_squares(problem.A).max()))
        return NewtonState(x0, value, gradient, zero, zero, jnp.asarray(False), zero + row, knowledge(problem))

    def step(self, problem, state):
        """One damped step."""
        H, g = _hessian(problem, state.x), state.gradient.reshape(-1)
        scale = jnp.max(jnp.abs(jnp.diagonal(H)))
        least = jnp.where(scale > 0, scale, 1.0) * 16 * jnp.finfo(H.dtype).eps
        identity = jnp.eye(g.size, dtype=H.dtype)

        def factor(shift):
            return jnp.linalg.cholesky(H + shift * identity)

        def unfit(carry):
            shift, root = carry
            return ~jnp.all(jnp.isfinite(root)) & (shift < 1e30)

        def raised(carry):
            shift = jnp.maximum(carry[0] * 10, least)
            return shift, factor(shift)

        first = jnp.asarray(self.shift, dtype=H.dtype)
        shift, root = jax.lax.while_loop(unfit, raised, (first, factor(first)))
        direction = -cho_solve((root, True), g).reshape(state.x.shape)
        size, _ = self.line_search.search(
            problem, state.x, state.value, state.gradient, jnp.ones_like(state.value), direction
        )
        x = state.x + size * direction
        value, gradient = problem.value_and_gradient(x)
        return state._replace(
            x=x, value=value, gradient=gradient, shift=shift, taken=size, stuck=no_progress(state, value, gradient)
        )

    def measure(self, problem, state):
        """The value, and the bound from strong convexity or, without it, from the Newton decrement."""
        squared = jnp.vdot(state.gradient, state.gradient)
        mu = state.known.strong_convexity.astype(state.value.dtype)
        bound = jnp.where(mu > 0, squared / (2 * jnp.where(mu > 0, mu, 1.0)), jnp.inf)
        if problem.self_concordance is not None:
            decrement = jnp.linalg.eigh(_hessian(problem, state.x))
            along = decrement.eigenvectors.T @ state.gradient.reshape(-1)
            bound = jnp.minimum(bound, _decrement_bound(along, decrement.eigenvalues, state.longest_row))
        return {
            "value": state.value,
            "bound": bound,
            "residual": jnp.sqrt(squared),
            "stuck": state.stuck,
            "step_size": state.taken,
            "shift": state.shift,
        }
