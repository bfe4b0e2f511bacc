"""Gradient flows in other coordinates: mirror flows, and flows of re-parameterised problems.

``x = phi(z)`` and ``z' = -grad (f o phi)(z)`` give ``x' = -[d phi][d phi]^T grad f(x)``. Where that metric is the
inverse Hessian of an entropy, up to a constant change of time, the flow is a mirror flow, and its limit on an
under-determined problem is a Bregman projection: see `implicit_bias`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import CumulantError, DomainError, NotConvergedError
from cumulant.geometry import Burg, Entropy, Hypentropy, Power, Shannon
from cumulant.precision import float64, precise
from cumulant.pytrees import pytree

__all__ = [
    "Exponential",
    "Flow",
    "FlowEntropy",
    "Hadamard",
    "PositiveSemidefinite",
    "PowerMap",
    "Signed",
    "equivalent_entropy",
    "mirror_flow",
    "nesterov_flow",
    "reparametrised_flow",
]


@dataclass(frozen=True)
class Flow:
    """A solved flow: ``x[i]`` is the point at ``times[i]``; ``z`` are the coordinates it was integrated in.

    >>> Flow(np.array([0.0, 1.0]), np.array([[1.0], [0.5]]), np.array([[0.0], [-0.7]])).last
    array([0.5])
    """

    times: np.ndarray
    x: np.ndarray
    z: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """The point at the last time."""
        return self.x[-1]


class FlowEntropy(NamedTuple):
    """The flow of ``z`` at time ``t`` is the mirror flow of `entropy` at time ``time_factor * t``.

    >>> equivalent_entropy(PowerMap(2.0))
    FlowEntropy(entropy=Shannon(), time_factor=4.0)
    """

    entropy: Any
    time_factor: float


# The maps -------------------------------------------------------------------------------------------------------------


@pytree
@dataclass(frozen=True)
class PowerMap:
    """``x = z^b``, ``z > 0``: the mirror flow of `Power(2/b)`, ``b^2`` times faster (b = 2: Shannon).

    Peyré (2021, section 6.3).

    >>> PowerMap(2.0).start([4.0, 9.0])
    array([2., 3.])
    """

    b: float = 2.0

    def __post_init__(self):
        if isinstance(self.b, int | float) and not self.b > 0:
            raise ValueError(f"b, the exponent, must be positive; got {self.b}")

    @precise
    def point(self, z):
        """``z^b``."""
        return z**self.b

    def start(self, x0):
        """The ``z`` of a positive point."""
        return _positive(x0) ** (1 / self.b)


@pytree
@dataclass(frozen=True)
class Exponential:
    """``x = exp z``: the mirror flow of Burg's entropy.

    Peyré (2021, section 6.3).

    >>> equivalent_entropy(Exponential())
    FlowEntropy(entropy=Burg(), time_factor=1.0)
    """

    @precise
    def point(self, z):
        """``exp z``."""
        return jnp.exp(z)

    def start(self, x0):
        """The ``z`` of a positive point."""
        return np.log(_positive(x0))


@pytree
@dataclass(frozen=True)
class Signed:
    """``x = u^2 - v^2``, ``z = (u, v)``: the mirror flow of `Hypentropy(2 |u_0 v_0|)`, four times faster.

    ``u v`` is conserved.

    Woodworth et al. (2020); Peyré (2021, section 6.3).

    >>> Signed().point([[2.0, 1.0], [1.0, 3.0]])
    array([ 3., -8.])
    """

    @precise
    def point(self, z):
        """``u^2 - v^2``."""
        return z[0] ** 2 - z[1] ** 2


@pytree
@dataclass(frozen=True)
class Hadamard:
    """``x = u v``, ``z = (u, v)``: the mirror flow of `Hypentropy(|u_0^2 - v_0^2| / 2)`, twice as fast.

    ``u^2 - v^2`` is conserved.

    Peyré (2021, section 6.3).

    >>> Hadamard().point([[2.0, 1.0], [1.0, 3.0]])
    array([2., 3.])
    """

    @precise
    def point(self, z):
        """``u v``, entry by entry."""
        return z[0] * z[1]


@pytree
@dataclass(frozen=True)
class PositiveSemidefinite:
    """``X = Z Z^T``: ``X' = -(X S + S X)``, ``S = G + G^T``, ``G = grad f(X)``. Not a mirror flow in general.

    Gunasekar et al. (2017); Peyré (2021, section 6.3).

    >>> PositiveSemidefinite().point([[1.0], [2.0]])
    array([[1., 2.],
           [2., 4.]])
    """

    @precise
    def point(self, z):
        """``Z Z^T``."""
        return z @ z.T


def _positive(x0: Any) -> np.ndarray:
    x0 = np.asarray(x0, dtype=np.float64)
    if not np.all(x0 > 0):
        raise DomainError(f"x0 must be positive for this map; got {x0}")
    return x0


def equivalent_entropy(map: Any, z0: Any = None) -> FlowEntropy:
    """The entropy whose mirror flow is the gradient flow through a map, and how much faster the latter runs.

    ``Q = [d phi][d phi]^T`` is ``b^2 diag(x^(2 - 2/b))`` for powers, ``diag(x^2)`` for the exponential,
    ``4 diag(sqrt(x^2 + beta^2))`` with ``beta = 2 |u v|`` for ``u^2 - v^2``, and ``2 diag(sqrt(x^2 + beta^2))`` with
    ``beta = |u^2 - v^2| / 2`` for ``u v`` (Peyré 2021, section 6.3, with the constants restored).

    Parameters
    ----------
    map : PowerMap, Exponential, Signed, Hadamard
        `PositiveSemidefinite` is refused: its metric is not the Hessian of an entropy.
    z0 : array, optional
        The starting coordinates, for the maps whose entropy depends on them.

    Examples
    --------
    >>> equivalent_entropy(PowerMap(4.0))
    FlowEntropy(entropy=Power(alpha=0.5), time_factor=16.0)
    """
    if isinstance(map, PowerMap):
        entropy = Shannon() if map.b == 2 else Power(2 / map.b)
        return FlowEntropy(entropy, float(map.b) ** 2)
    if isinstance(map, Exponential):
        return FlowEntropy(Burg(), 1.0)
    if isinstance(map, Signed | Hadamard):
        if z0 is None:
            raise ValueError(f"z0 is needed: the entropy of {map} depends on the starting coordinates (u, v)")
        u, v = np.asarray(z0, dtype=np.float64)
        beta = 2 * np.abs(u * v) if isinstance(map, Signed) else np.abs(u**2 - v**2) / 2
        if not np.all(beta > 0):
            conserved = "u v" if isinstance(map, Signed) else "u^2 - v^2"
            raise DomainError(f"{conserved} must not vanish at the start: the hypentropy degenerates (beta = {beta})")
        return FlowEntropy(Hypentropy(beta), 4.0 if isinstance(map, Signed) else 2.0)
    if isinstance(map, PositiveSemidefinite):
        raise CumulantError("X = Z Z^T is not a mirror flow in general: its metric is not the Hessian of an entropy")
    raise TypeError(f"map must be one of the maps of optim.flows; got {type(map).__name__}")


# The flows ------------------------------------------------------------------------------------------------------------


def mirror_flow(
    problem: Any,
    entropy: Entropy,
    x0: Any,
    times: Any,
    *,
    method: str = "LSODA",
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> Flow:
    """The mirror flow ``x' = -[hess psi(x)]^-1 grad f(x)``, integrated in the dual: ``u' = -grad f(grad psi*(u))``.

    With the objective itself as entropy it is the Newton flow, along which ``grad f(x(t)) = exp(-t) grad f(x_0)``.

    Alvarez, Bolte and Brahic (2004); Peyré (2021, section 6.2).

    Parameters
    ----------
    problem
        With a `gradient`.
    entropy : Entropy
        Of vectors or matrices.
    x0 : array
        Inside the domain of the entropy.
    times : array
        Increasing, from 0 on; the flow is given at these.
    method, rtol, atol
        For `scipy.integrate.solve_ivp`; the stiff methods (``"LSODA"``, ``"BDF"``, ``"Radau"``) get an exact Jacobian.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.Quadratic([[1.0]], [0.0])
    >>> flow = mirror_flow(problem, Shannon(), [1.0], [0.0, 1.0, 2.0])
    >>> flow.x[:, 0].round(8)                                    # x' = -x^2, so x(t) = 1 / (1 + t)
    array([1.        , 0.5       , 0.33333333])
    """
    x0 = np.asarray(x0, dtype=np.float64)
    u0 = np.asarray(entropy.gradient(x0))
    if not (np.all(entropy.in_domain(x0)) and np.all(np.isfinite(u0))):
        raise DomainError(f"x0 must be inside the domain of {entropy}, off its boundary; got {x0}")
    times, u = _integrate(_mirror_field, (problem, entropy), u0, times, method, rtol, atol)
    return Flow(times, np.stack([np.asarray(entropy.conjugate_gradient(each)) for each in u]), u)


def reparametrised_flow(
    problem: Any, map: Any, z0: Any, times: Any, *, method: str = "LSODA", rtol: float = 1e-10, atol: float = 1e-12
) -> Flow:
    """The gradient flow ``z' = -grad (f o phi)(z)`` and its image ``x = phi(z)``; see `mirror_flow` for the settings.

    Small starting points make it slow and stiff (for ``x = z^b``, ``b > 2``, it leaves zero after a time of order
    ``x_0^(alpha - 1)``, ``alpha = 2/b``): `implicit_bias` computes the limit directly.

    Parameters
    ----------
    map : PowerMap, Exponential, Signed, Hadamard, PositiveSemidefinite
    z0 : array
        For `Signed` and `Hadamard`, ``u`` and ``v`` stacked on the first axis.

    Examples
    --------
    >>> from cumulant import optim
    >>> problem = optim.LeastSquares([[1.0, 2.0]], [2.0], reduction="sum")
    >>> flow = reparametrised_flow(problem, PowerMap(2.0), np.sqrt([0.3, 0.4]), [0.0, 0.05])
    >>> flow.last.round(8)
    array([0.34750843, 0.53672047])
    """
    z0 = np.asarray(z0, dtype=np.float64)
    if isinstance(map, Signed | Hadamard) and (z0.ndim < 1 or z0.shape[0] != 2):
        raise ValueError(f"z0 must hold u and v on its first axis for {map}; got shape {z0.shape}")
    if isinstance(map, PowerMap) and not np.all(z0 > 0):
        raise DomainError(f"z0 must be positive for {map}; got {z0}")
    times, z = _integrate(_descent_field, (problem, map), z0, times, method, rtol, atol)
    with float64():  # a map of your own in JAX would narrow its points otherwise
        return Flow(times, np.stack([np.asarray(map.point(each)) for each in z]), z)


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

    The equation is singular at zero; the solution starts at the time `start`, with ``x' = -(t / (r + 1)) grad f(x_0)``.

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
    times, x0 = _increasing(times), np.asarray(x0, dtype=np.float64)
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
        both[late] = _solve(slope, (start, times[-1]), early(start), times[late], method=method, rtol=rtol, atol=atol)
    return Flow(times, both[:, :size].reshape(-1, *shape), both[:, size:].reshape(-1, *shape))


def _mirror_field(setting, u):
    problem, entropy = setting
    return -problem.gradient(entropy.conjugate_gradient(u))


def _descent_field(setting, z):
    problem, map = setting
    return -jax.grad(lambda coordinates: problem.value(map.point(coordinates)))(z)


_STALLED = 2000  # evaluations without time advancing

_field = jax.jit(lambda field, setting, y: field(setting, y), static_argnums=0)
_jacobian = jax.jit(lambda field, setting, y: jax.jacfwd(lambda at: field(setting, at))(y), static_argnums=0)


def _increasing(times: Any) -> np.ndarray:
    times = np.asarray(times, dtype=np.float64)
    if times.ndim != 1 or times.size == 0 or times[0] < 0 or np.any(np.diff(times) <= 0):
        raise ValueError(f"times must be a list of increasing times, none negative; got {times}")
    return times


def _solve(slope, span, y0, times, **settings):
    """The solution at `times`, a row each."""
    from scipy.integrate import solve_ivp  # here, because it takes long to import and few need it

    solved = solve_ivp(slope, span, y0, t_eval=times, **settings)
    if not solved.success or not np.all(np.isfinite(solved.y)):
        raise NotConvergedError(f"the flow could not be integrated to time {span[1]:g}: {solved.message}")
    return solved.y.T


def _integrate(field, setting, y0, times, method, rtol, atol):
    times, shape, size = _increasing(times), y0.shape, y0.size

    furthest, stalled = 0.0, 0

    def slope(t, y):
        # LSODA does not give up by itself: neither on a number that is not finite, nor where time no longer advances.
        nonlocal furthest, stalled
        furthest, stalled = (t, 0) if t > furthest else (furthest, stalled + 1)
        with float64():
            change = np.asarray(_field(field, setting, y.reshape(shape))).reshape(-1)
        if stalled > _STALLED or not np.all(np.isfinite(change)):
            raise NotConvergedError(
                f"the flow could not be integrated to time {times[-1]:g}: it stops at time {furthest:g}"
            )
        return change

    def jacobian(_, y):
        with float64():
            return np.asarray(_jacobian(field, setting, y.reshape(shape))).reshape(size, size)

    stiff: dict[str, Any] = {"jac": jacobian} if method in ("LSODA", "BDF", "Radau") else {}
    end = max(times[-1], 1e-300)
    found = _solve(slope, (0.0, end), y0.reshape(-1), times, method=method, rtol=rtol, atol=atol, **stiff)
    return times, found.reshape(-1, *shape)
