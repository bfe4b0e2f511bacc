"""Nesterov's accelerated gradient method."""

import dataclasses

from cumulant.optim.problems.composite import Composite
from cumulant.optim.solvers.momentum import Accelerated
from cumulant.pytrees import pytree

__all__ = ["AcceleratedGradient"]


@pytree
@dataclasses.dataclass(frozen=True)
class AcceleratedGradient(Accelerated):
    """``x_{k+1} = y_k - s grad f(y_k)``, ``y_{k+1} = x_{k+1} + beta_k (x_{k+1} - x_k)``, from ``y_0 = x_0``.

    With ``f`` convex and ``L``-smooth, ``s <= 1/L`` and ``beta_k = k / (k + 3)``:
    ``f(x_k) - f* <= 2 |x_0 - x*|^2 / (s (k + 1)^2)`` (`rates.nesterov`; Nesterov 1983). With ``mu > 0`` and constant
    ``beta = (1 - sqrt(s mu)) / (1 + sqrt(s mu))``: ``f(x_k) - f* <= (1 - sqrt(s mu))^k (f(x_0) - f* + mu/2 |x_0 -
    x*|^2)`` (`rates.nesterov_strongly_convex`; Nesterov 2004, section 2.2). Small steps follow `nesterov_flow`.

    Parameters
    ----------
    step_size : str or float
        ``"1/L"``, or a number of at most that.
    momentum : str or float
        ``"nesterov"``, ``"strongly convex"``, or a constant in [0, 1). The gradient is taken at the extrapolated
        point; with the gradient at ``x_k`` instead it is `HeavyBall`.
    restart : bool
        Drop the momentum whenever the value would increase, and take that step again (O'Donoghue and Candès 2015).
        One more evaluation a step; linear convergence under strong convexity without knowing ``mu``, in practice.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Logistic([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0]], [1, -1, 1], l2=0.01)
    >>> result = optim.run(AcceleratedGradient(momentum="strongly convex"), problem, [0.0, 0.0], tol=1e-10)
    >>> result.status, result.x.round(4)
    ('converged', array([ 3.7643, -0.3728]))
    """

    def init(self, problem, x0, rng):
        """The point ``x0``, and the momentum if it is constant."""
        if isinstance(problem, Composite):
            raise TypeError("AcceleratedGradient is for smooth problems: use AcceleratedProximalGradient instead")
        return super().init(problem, x0, rng)
