"""Accelerated proximal gradient descent (FISTA)."""

import dataclasses

from cumulant.optim.solvers.momentum import Accelerated
from cumulant.pytrees import pytree

__all__ = ["AcceleratedProximalGradient"]


@pytree
@dataclasses.dataclass(frozen=True)
class AcceleratedProximalGradient(Accelerated):
    """``x_{k+1} = prox_{s R}(y_k - s grad f(y_k))``, ``y_{k+1} = x_{k+1} + beta_k (x_{k+1} - x_k)``, ``F = f + R``.

    With ``f`` convex and ``L``-smooth, ``s <= 1/L`` and ``beta_k = k / (k + 3)``:
    ``F(x_k) - F* <= 2 |x_0 - x*|^2 / (s (k + 1)^2)`` (`rates.fista`; Beck and Teboulle 2009, theorem 4.4, whose proof
    asks of ``t_k = (k + 1) / 2`` only that ``t_k^2 - t_k <= t_{k-1}^2``). The value may go up between; `restart` is
    what makes it go down, and fast where the solution is a strict minimum.

    The certificate is the smallest of the bounds in `cumulant.optim.certify.optimality`: on the Lasso the duality gap.

    Parameters
    ----------
    step_size, momentum, restart
        As for `AcceleratedGradient`; ``mu`` is that of the smooth part.

    Examples
    --------
    >>> from cumulant import optim
    >>> smooth = optim.LeastSquares([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [1.0, 2.0, 3.0], reduction="sum")
    >>> problem = optim.Composite(smooth, optim.L1(1.0))
    >>> result = optim.run(AcceleratedProximalGradient(restart=True), problem, [0.0, 0.0], tol=1e-10, max_steps=10_000)
    >>> result.status, result.x.round(6)
    ('converged', array([0.      , 0.482143]))
    """
