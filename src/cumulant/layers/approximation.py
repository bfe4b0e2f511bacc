"""What one hidden layer can represent: a network built to approximate a function, and Barron's bound."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln

from cumulant import checks
from cumulant.certificates import Certificate, Subject, assume, by_construction, check, issuer, rounding
from cumulant.layers.activations import activation as named

_SATURATED = 50.0  # widths of a transition by which the first unit is moved out of the interval


@dataclass(frozen=True)
class StepNetwork:
    """``h(t) = sum_k u_k rho(w t + z_k)``, and how far it can be from the function it was built for.

    Cybenko (1989); Peyré (2021, section 9.3).

    >>> network = step_network(lambda t: t, 0.0, 1.0, 4, lipschitz=1.0)
    >>> network(0.125).round(6), round(network.certificate.bound, 6)
    (np.float64(0.125), 0.125)
    """

    slope: float
    biases: np.ndarray
    outer: np.ndarray
    activation: str
    subject: Subject | None = None
    certificate: Certificate | None = None

    def __call__(self, t: Any) -> np.ndarray:
        """``h(t)``, in float64."""
        inside = self.slope * np.asarray(t, dtype=np.float64)[..., None] + self.biases
        tail = named(self.activation).tail
        assert tail is not None  # `step_network` refuses the others
        return tail(-inside) @ self.outer


def step_network(
    function: Callable[[Any], Any],
    start: float,
    end: float,
    units: int,
    *,
    lipschitz: float,
    width: float | None = None,
    activation: str = "sigmoid",
) -> StepNetwork:
    """A network of ``q`` units within about ``lambda h / 2`` of a Lipschitz function, ``h = (end - start) / q``.

    It is the step function with the values ``d_k = f((t_k + t_{k+1}) / 2)`` on the cells of a grid, its jumps
    ``u_k = d_k - d_{k-1}`` made by units ``rho((t - t_k) / width)`` (Peyré 2021, section 9.3). In the transition at
    ``t_k`` the network is a mean of the two values, with more weight on the nearer one, so that the error of a step is
    not exceeded there either; what the tails of the other units add is in the bound:

        ``|h - f| <= lambda h / 2 + 2 lambda h sum_{j >= 0} rho(-(j + 1/2) h / width) + |d_0| rho(-50)``.

    Parameters
    ----------
    function : callable
        ``f``, of an array.
    start, end : float
        The interval.
    units : int
        ``q``.
    lipschitz : float
        A constant ``lambda`` with ``|f(s) - f(t)| <= lambda |s - t|``; your word is taken for it.
    width : float, optional
        Of a transition; ``h / 50`` by default.
    activation : str
        ``"sigmoid"`` or ``"atan"``.

    Examples
    --------
    >>> network = step_network(lambda t: np.sin(2 * np.pi * t), 0.0, 1.0, 10, lipschitz=2 * np.pi)
    >>> grid = np.linspace(0, 1, 4001)
    >>> error = np.max(np.abs(network(grid) - np.sin(2 * np.pi * grid)))
    >>> print(error.round(6), round(network.certificate.bound, 6))
    0.309017 0.314159
    """
    checks.takes("function", function, "x")
    start, end = float(checks.number("start", start)), float(checks.number("end", end))
    if not (np.isfinite(start) and np.isfinite(end) and start < end):
        raise ValueError(f"start must be below end; got {start} and {end}")
    checks.whole("units", units)
    checks.not_negative("lipschitz", lipschitz)
    tail = named(activation).tail
    if tail is None:
        raise ValueError(f"activation must be 'sigmoid' or 'atan', which rise from 0 to 1; got {activation!r}")
    cell = (end - start) / units
    width = cell / 50 if width is None else float(width)
    if not (np.isfinite(width) and width > 0):
        raise ValueError(f"width must be positive; got {width}")
    grid = start + cell * np.arange(units)
    levels = checks.real_array("what function returns", function(grid + cell / 2), finite=False)
    if levels.shape != grid.shape or not np.all(np.isfinite(levels)):
        raise ValueError("function must return one finite number for each entry of an array")
    grid[0] -= _SATURATED * width  # the first unit is to be one on the whole interval
    network = StepNetwork(1 / width, -grid / width, np.diff(levels, prepend=0.0), activation)
    subject = Subject(StepTarget(function, start, end, lipschitz), network)
    return replace(network, subject=subject, certificate=certify_step_network(*subject))


class StepTarget(NamedTuple):
    """The function that a `StepNetwork` approximates on an interval, and its Lipschitz constant."""

    function: Callable[[Any], Any]
    start: float
    end: float
    lipschitz: float


@issuer
def certify_step_network(given: StepTarget, answer: StepNetwork) -> Certificate:
    """How far the network is from the function on the interval, as it is evaluated in float64; see `step_network`.

    Where the transitions lie is known within the rounding of ``w t + z_k`` and of the grid, a distance ``e``: it adds
    ``lambda e``, and shortens the tails. A Lipschitz constant that neighbouring levels contradict is refused.
    """
    function, start, end, lipschitz = given
    slope, biases, outer = answer.slope, answer.biases, answer.outer
    units, width = outer.size, 1 / slope
    cell, size = (end - start) / units, max(abs(start), abs(end))
    grid = start + cell * np.arange(units)
    levels = np.asarray(function(grid + cell / 2), dtype=np.float64)
    tail = named(answer.activation).tail
    assert tail is not None  # `step_network` refuses the others
    unit = 2.0**-53
    offset = float(np.max(np.abs(biases[1:] / slope + grid[1:]), initial=0.0))
    offset += unit * (16 * size + width * (4 * slope * size + 2 * float(np.max(np.abs(biases)))))
    resolved = check(offset < cell / 4, "float64 resolves the grid", f"offsets of {offset:.3g}, cells of {cell:.3g}")
    jump, largest = float(np.max(np.abs(np.diff(levels)), initial=0.0)), float(np.max(np.abs(levels)))
    consistent = check(
        jump <= lipschitz * (cell + 2 * offset) * (1 + 1e-12) + 64 * unit * largest,
        "no two neighbouring levels contradict the Lipschitz constant",
        f"a jump of {jump:.6g} over {cell:.6g}, lambda = {lipschitz:g}",
    )
    far = float(np.sum(tail(((np.arange(units) + 0.5) * cell - offset) / width)))
    first = float(tail(slope * start + biases[0] - offset / width))
    return Certificate(
        "sup |h - f|",
        lipschitz * cell / 2 + 2 * lipschitz * cell * far + abs(levels[0]) * first,
        "step functions through a sigmoidal unit for each jump, Cybenko 1989; Peyré 2021, section 9.3",
        (
            assume("the function is Lipschitz on the interval", f"lambda = {lipschitz:g}"),
            consistent,
            resolved,
            assume("the rounding of the function is within the slack", "the function is yours"),
            by_construction("the unit is monotone, and symmetric about 1/2"),
        ),
        slack=lipschitz * offset * (1 + 4 * far)
        + float(np.max(np.abs(np.cumsum(outer) - levels)))
        + rounding(outer, terms=units + 64.0)
        + 64 * unit * largest
        + 64 * unit * lipschitz * cell,
        details={"cell": cell, "width of a transition": width},
    )


def barron_bound(constant: float, radius: float, units: int) -> float:
    """``(2 r C_f)^2 / q``: some network of ``q`` sigmoidal units and a constant has this mean squared error on a ball.

    ``(1 / vol B_r) int_{B_r} |f - f_q|^2 <= (2 r C_f)^2 / q`` (Barron 1993, theorem 1). The rate does not depend on the
    dimension; the constant does. The constant term ``f(0)``, missing in the course notes, is needed.

    >>> round(barron_bound(gaussian_barron_constant(2), 1.0, 100), 6)
    0.062832
    """
    for name, value in (("constant", constant), ("radius", radius)):
        checks.not_negative(name, value)
    checks.whole("units", units)
    return (2.0 * radius * constant) ** 2 / units


def barron_constant(fourier: Callable[[float], float], dimension: int) -> float:
    """``C_f = (2 pi)^-p int |w| |fhat(w)| dw`` of a radial function, ``fhat(w) = int f(x) exp(-i <x, w>) dx``.

    `fourier` takes ``|w|``. Without the factor ``(2 pi)^-p``, as in print, the bound is true and far looser.

    Barron (1993, theorem 1).

    >>> gauss = lambda w: 2 * np.pi * np.exp(-(w**2) / 2)          # of exp(-|x|^2 / 2) in the plane
    >>> round(barron_constant(gauss, 2), 6), round(gaussian_barron_constant(2), 6)
    (1.253314, 1.253314)
    """
    p = dimension
    if not isinstance(p, int) or p < 1:
        raise ValueError(f"dimension must be a whole number of at least 1; got {dimension!r}")
    log_sphere = np.log(2) + p / 2 * np.log(np.pi) - gammaln(p / 2) - p * np.log(2 * np.pi)
    value, _ = quad(lambda w: w**p * abs(fourier(w)), 0, np.inf, epsabs=0, epsrel=1e-10, limit=200)
    return float(np.exp(log_sphere) * value)


def gaussian_barron_constant(dimension: int, width: float = 1.0) -> float:
    """``C_f`` of ``exp(-|x|^2 / (2 s^2))``: ``E |N(0, I_p)| / s = sqrt(2) Gamma((p+1)/2) / Gamma(p/2) / s``.

    Barron (1993, section IX).

    >>> [round(gaussian_barron_constant(p), 6) for p in (1, 2, 10)]
    [0.797885, 1.253314, 3.084328]
    """
    checks.whole("dimension", dimension)
    checks.positive("width", width)
    return float(np.sqrt(2) * np.exp(gammaln((dimension + 1) / 2) - gammaln(dimension / 2))) / width
