"""Sinkhorn's iterations as a recurrent layer: a fixed number of them, differentiated step by step."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from cumulant import checks
from cumulant.errors import DomainError
from cumulant.layers.sinkhorn import Sinkhorn, _dual_value, _shapes, _values
from cumulant.precision import any_tracer, precise


def sinkhorn_unrolled(cost: Any, a: Any, b: Any, epsilon: Any, n_steps: int = 100, *, mode: str = "log") -> Sinkhorn:
    """What `n_steps` pairs of updates of Sinkhorn's iteration give, differentiable by back-propagation through them.

    ``u <- a / (K v)`` and then ``v <- b / (K^T u)`` with ``K = exp(-C / eps)``, from ``v = 1``; ``P = diag(u) K
    diag(v)``, ``f = eps log u``, ``g = eps log v``. The derivatives are those of the iterates, not of their limit: the
    backward pass of one half step ``u = a / (K v)`` is ``z_v = -K^T (z_u o a / (K v)^2)`` and ``z_a = z_u / (K v)``
    (Peyré 2021, section 10.7, on the two half steps: done at once they do not converge). As the iteration converges,
    linearly, so do its derivatives (Pauwels and Vaiter 2023), and the memory grows with the steps. `sinkhorn` computes
    the limit and its derivatives without keeping a step; this is what to compare it with, or a layer of fixed depth.

    Parameters
    ----------
    cost : array of shape (n, m)
    a, b : arrays of shape (n,) and (m,)
        Positive, with the same sum.
    epsilon : float
    n_steps : int
        Pairs of updates.
    mode : str
        ``"log"``, on ``f`` and ``g`` by log-sum-exp; ``"plain"``, on ``u`` and ``v``, refused where ``exp(-C / eps)``
        has a row or a column of zeros, as it has for small ``epsilon``.

    Returns
    -------
    Sinkhorn
        `violation` says how far the row sums are from `a`; nothing is refused because of it. Its certificates hold
        whatever the number of steps.

    Examples
    --------
    >>> cost, a, b = [[0.0, 1.0], [1.0, 0.5], [2.0, 0.0]], np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.4])
    >>> sinkhorn_unrolled(cost, a, b, 0.5, 100, mode="plain").plan.round(8)
    array([[0.19646347, 0.00353653],
           [0.36722616, 0.13277384],
           [0.03631037, 0.26368963]])
    >>> gradient = jax.grad(lambda a: sinkhorn_unrolled(jnp.array(cost), a, b, 0.5).value)(jnp.array(a))
    >>> print((gradient - gradient.mean()).round(3))                        # eps log u, centred
    [-0.823  0.49   0.333]
    """
    checks.whole("n_steps", n_steps)
    checks.choice("mode", mode, ("log", "plain"))
    _shapes(cost, a, b)
    if np.ndim(cost) != 2 or np.ndim(a) != 1 or np.ndim(b) != 1 or np.ndim(epsilon):
        raise ValueError("cost, a, b and epsilon must be one problem, without batch axes: use jax.vmap")
    if not any_tracer(cost, a, b, epsilon):
        _values(cost, a, b, epsilon, None)
    found = _iterate(cost, a, b, epsilon, n_steps, mode)
    if mode == "plain" and not any_tracer(found.value) and not np.isfinite(found.value):
        raise DomainError(
            f"exp(-cost / epsilon) has underflown at epsilon = {float(epsilon):g}: no scaling has these sums; "
            "use mode='log'"
        )
    return found


@precise(static=("n_steps", "mode"))
def _iterate(cost, a, b, epsilon, n_steps, mode):
    cost, a, b, epsilon = (jnp.asarray(each, jnp.result_type(each, float)) for each in (cost, a, b, epsilon))

    def in_logs(g, _):
        f = epsilon * (jnp.log(a) - logsumexp((g[None, :] - cost) / epsilon, axis=1))
        return epsilon * (jnp.log(b) - logsumexp((f[:, None] - cost) / epsilon, axis=0)), f

    kernel = jnp.exp(-cost / epsilon)

    def plain(v, _):
        u = a / (kernel @ v)
        return b / (kernel.T @ u), u

    if mode == "log":
        g, fs = jax.lax.scan(in_logs, jnp.zeros_like(b), length=n_steps)
        f = fs[-1]
        plan = jnp.exp((f[:, None] + g[None, :] - cost) / epsilon)
    else:
        v, us = jax.lax.scan(plain, jnp.ones_like(b), length=n_steps)
        plan = us[-1][:, None] * kernel * v[None, :]
        f, g = epsilon * jnp.log(us[-1]), epsilon * jnp.log(v)
    shift = (f.sum() - g.sum()) / (f.size + g.size)
    f, g = f - shift, g + shift
    violation = jnp.sum(jnp.abs(plan.sum(axis=1) - a))
    value = _dual_value(cost, a, b, epsilon, f, g)
    return Sinkhorn(value, plan, f, g, violation, jnp.asarray(n_steps), cost, a, b, epsilon)
