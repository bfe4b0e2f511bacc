"""Curvature learnt from noisy gradients: one number (Barzilai and Borwein) or a matrix (BFGS), both damped."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from cumulant import checks
from cumulant.precision import any_tracer, precise


class DampedBFGS(NamedTuple):
    """The new matrix, its inverse (None where it was not given) and the damping ``t`` that was used.

    Powell (1978).

    >>> damped_bfgs([[1.0]], [1.0], [3.0])                          # the secant: B dx = dy
    DampedBFGS(B=array([[3.]]), Binv=None, t=np.float64(1.0))
    """

    B: Any
    Binv: Any
    t: Any


@precise
def _bb(beta, dx, dy, step):
    squared = jnp.vdot(dx, dx)
    moved = squared >= 1e-30
    new = beta - step * (beta - jnp.vdot(dx, dy) / jnp.where(moved, squared, 1.0))
    return jnp.where(moved & (new >= 1e-8) & (new >= 1e-3 * beta), new, beta)


def damped_bb(beta: Any, dx: Any, dy: Any, step: Any) -> Any:
    """``beta - step (beta - <dx, dy> / <dx, dx>)``: a running average of the curvature along the path.

    ``beta I`` stands for the Hessian. This is stochastic approximation of the minimiser of ``|beta dx - dy|^2``, with
    steps that its own Newton scaling makes free of units (Carbonetto 2009, equations 2.44 and 2.45). Where the new
    value would be tiny (below 1e-8, or a thousandth of the old one), or ``dx`` is zero, the old one is kept. Meant for
    convex objectives.

    Parameters
    ----------
    beta : float
        Positive.
    dx, dy : array
        The *realised* displacement and the difference of the gradients of the objective, without barrier terms.
    step : float
        In (0, 1]; the step sizes of the run itself, say.

    Examples
    --------
    >>> damped_bb(1.0, [1.0, 0.0], [5.0, 2.0], 0.1)
    np.float64(1.4)
    >>> damped_bb(1.0, [1.0, 0.0], [-100.0, 0.0], 0.1)
    np.float64(1.0)
    """
    checks.positive("beta", beta)
    if not any_tracer(dx, dy):
        dx, dy = checks.real_array("dx", dx), checks.real_array("dy", dy)
        if dx.shape != dy.shape:
            raise ValueError(f"dx and dy must have the same shape; got {dx.shape} and {dy.shape}")
    return _bb(beta, dx, dy, step)


@precise
def _bfgs(B, dx, dy, gamma, t_max, Binv):
    Bs = B @ dx
    sBs, sy = jnp.vdot(dx, Bs), jnp.vdot(dx, dy)
    moved = jnp.vdot(dx, dx) >= 1e-30
    sBs = jnp.where(moved, sBs, 1.0)
    damp = sy < gamma * sBs
    t = jnp.where(damp, (1 - gamma) * sBs / jnp.where(damp, sBs - sy, 1.0), 1.0)
    t = jnp.where(moved, jnp.minimum(t, t_max), 0.0)
    dyd = t * dy + (1 - t) * Bs
    along = jnp.where(moved, jnp.vdot(dyd, dx), 1.0)
    new = B + jnp.where(moved, jnp.outer(dyd, dyd) / along - jnp.outer(Bs, Bs) / sBs, 0.0)
    inverse = None
    if Binv is not None:
        half = Binv - jnp.outer(dx, dyd @ Binv) / along
        inverse = half - jnp.outer(half @ dyd, dx) / along + jnp.outer(dx, dx) / along
        inverse = jnp.where(moved, (inverse + inverse.T) / 2, Binv)
    return (new + new.T) / 2, inverse, t


def damped_bfgs(B: Any, dx: Any, dy: Any, gamma: Any = 0.75, t_max: Any = 1.0, Binv: Any = None) -> DampedBFGS:
    """The BFGS update with the gradient difference drawn back towards ``B dx``, so that ``B`` stays positive definite.

    With ``dyd = t dy + (1 - t) B dx``: ``B_new = B + dyd dyd^T / <dyd, dx> - B dx dx^T B / <dx, B dx>`` (Powell 1978;
    Carbonetto 2009, equation 2.46 with the sign of the last term put right). ``t = 1`` where ``<dx, dy> >= gamma <dx, B
    dx>``, else ``(1 - gamma) <dx, B dx> / (<dx, B dx> - <dx, dy>)``, and never above `t_max`.

    Guaranteed, for any ``dy``: ``det B_new / det B = 1 - t (1 - <dx, dy> / <dx, B dx>) >= gamma``, with equality where
    damping is active and the cap is not; ``B_new dx = dyd``.

    Parameters
    ----------
    B : array (n, n)
        Symmetric positive definite.
    dx, dy : array (n,)
        Realised displacement and difference of gradients, as noisy as they come.
    gamma : float
        Strictly between 0 and 1. Values from 0.75 to 0.9 suit noisy gradients; 0.2 is Powell's, for exact ones.
    t_max : float
        A cap that falls along the run, such as the step sizes, averages the noise out.
    Binv : array (n, n), optional
        The inverse of `B`; then its update is returned too, at the cost of a few products.

    Examples
    --------
    >>> import numpy as np
    >>> new = damped_bfgs([[2.0, 0.3], [0.3, 1.0]], [1.0, 0.5], [-0.2, 0.3], gamma=0.8)
    >>> round(float(new.t), 8), round(float(np.linalg.det(new.B)) / 1.91, 12)
    (0.19615385, 0.8)
    """
    checks.fraction("gamma", gamma)
    if not any_tracer(B, dx, dy):
        B, dx, dy = (checks.real_array(name, each) for name, each in (("B", B), ("dx", dx), ("dy", dy)))
        if dx.ndim != 1 or dy.shape != dx.shape or B.shape != (dx.size, dx.size):
            raise ValueError(f"B, dx and dy must have shapes (n, n), (n,), (n,); got {B.shape}, {dx.shape}, {dy.shape}")
    return DampedBFGS(*_bfgs(B, dx, dy, gamma, t_max, Binv))
