"""The differential equation that accelerated gradient descent follows."""

from typing import Any

import numpy as np

from cumulant.errors import NotConvergedError
from cumulant.optim.analysis.flows import Flow

__all__ = ["nesterov_flow"]


def nesterov_flow(
    problem: Any,
    x0: Any,
    times: Any,
    *,
    friction: float = 3.0,
    start: float = 1e-6,
    method: str = "DOP853",
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Flow:
    """``x'' + (r / t) x' + grad f(x) = 0`` from rest at ``x_0``: the limit of small steps ``s``, at ``t = k sqrt s``.

    With ``f`` convex and ``r >= 3``: ``f(x(t)) - f* <= (r - 1)^2 |x_0 - x*|^2 / (2 t^2)``, which is ``2 |x_0 - x*|^2 /
    t^2`` for ``r = 3`` (`rates.nesterov_flow`; Su, Boyd and Candès 2016, theorems 3 and 5). On a quadratic with
    eigenvalue ``lambda``, ``x(t) = x_0 2 J_1(sqrt(lambda) t) / (sqrt(lambda) t)``: it decays no faster than ``t^-3/2``,
    while the discrete method with a fixed step is linear in the end.

    The equation is singular at zero; it is taken up at the time `start`, with ``x' = -(t / (r + 1)) grad f(x_0)``.

    Parameters
    ----------
    problem
        With a `gradient`.
    x0 : array
    times : array
        Increasing; the flow is given at these.
    friction : float
        ``r``.
    method, rtol, atol
        For `scipy.integrate.solve_ivp`.

    Returns
    -------
    Flow
        ``x``, and in ``z`` the velocities.

    Examples
    --------
    >>> from cumulant import optim
    >>> flow = nesterov_flow(optim.Quadratic([[1.0]], [0.0]), [1.0], [0.0, 1.0, 5.0])
    >>> flow.x[:, 0].round(6)
    array([ 1.      ,  0.880101, -0.131032])
    """
    from scipy.integrate import solve_ivp  # here, because it takes long to import and few need it

    times, x0 = np.asarray(times, dtype=np.float64), np.asarray(x0, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or times[0] < 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"times must be a list of increasing times, none negative; got {times}")
    if not friction > 0:
        raise ValueError(f"friction must be positive; got {friction}")
    if not start > 0:
        raise ValueError(f"start must be positive: the equation is singular at zero; got {start}")
    shape, size = x0.shape, x0.size
    pull = np.asarray(problem.gradient(x0), dtype=np.float64).reshape(-1)

    def slope(t, both):
        x, velocity = both[:size], both[size:]
        force = np.asarray(problem.gradient(x.reshape(shape))).reshape(-1)
        return np.concatenate([velocity, -friction / t * velocity - force])

    def early(t):  # the first terms of the series of x, exact to the order of t^4
        return np.concatenate([x0.reshape(-1) - t**2 / (2 * (friction + 1)) * pull, -t / (friction + 1) * pull])

    both = np.stack([early(t) for t in times])
    late = times > start
    if np.any(late):
        solved = solve_ivp(
            slope, (start, times[-1]), early(start), method=method, t_eval=times[late], rtol=rtol, atol=atol
        )
        if not solved.success or not np.all(np.isfinite(solved.y)):
            raise NotConvergedError(f"the flow could not be integrated to time {times[-1]:g}: {solved.message}")
        both[late] = solved.y.T
    return Flow(times, both[:, :size].reshape(-1, *shape), both[:, size:].reshape(-1, *shape))
