"""Kaufman's formula: the Ising model without fields on a torus, in closed form, with a bound on its rounding."""

import math
from typing import Any, NamedTuple

import numpy as np

from cumulant.certificates import Certificate, Interval, by_construction, check, issuer
from cumulant.errors import CertificateError, DomainError
from cumulant.graphical.messages.simple_bounds import check_simple_bounds
from cumulant.graphical.structure import Structure

_UNIT = 2.0**-53
_HOT = 1e-8  # couplings below which their squares are lost beside log 2


class Torus(NamedTuple):
    """Spins on ``torus(rows, columns)``: the coupling `across` joins neighbours in a row, `down` those in a column.

    A coupling may be negative where its direction has an even number of spins: turning every second spin along it
    changes the sign of the coupling and nothing else.
    """

    rows: int
    columns: int
    across: float
    down: float

    @property
    def solvable(self) -> bool:
        """Whether the formula applies: negative couplings only along even directions."""
        return (self.across >= 0 or self.columns % 2 == 0) and (self.down >= 0 or self.rows % 2 == 0)

    def log_partition(self) -> tuple[float, float]:
        """``log Z`` and a bound on its rounding error.

        Half the sum of four products over ``k = 1, 3, ...`` or ``k = 0, 2, ..., 2 columns - 2`` of ``2 cosh`` or
        ``2 sinh`` of ``rows gamma_k / 2``, times ``(2 sinh 2K)^(n/2)`` (Kaufman 1949, here with two
        couplings, ``L`` across and ``K`` down), where ``sinh^2(gamma_k / 2) = sinh^2(L - K*) + (sinh 2L / sinh 2K)
        sin^2(pi k / (2 columns))``, ``tanh K* = exp(-2K)`` and ``gamma_0 = 2 (L - K*)``. No term of this form cancels
        another, and everything is in logarithms, from the smallest to the largest number.

        >>> value, error = Torus(3, 3, 0.4, 0.4).log_partition()
        >>> round(value, 10), error < 1e-12
        (8.4564563736, True)
        """
        self._require()
        across, down = abs(self.across), abs(self.down)
        if max(across, down) < _HOT:  # log Z = n log 2 + n (K^2 + L^2) / 2 + ...
            value = self.rows * self.columns * math.log(2.0)
            return value, 4.0 * _UNIT * value
        if across == 0 or down == 0:
            return self._rings(across, down)
        s = _spectrum(self.rows, self.columns, across, down)
        half_n = 0.5 * self.rows * self.columns
        value = s.log_total - math.log(2.0) + half_n * s.log_sinh
        # A product of hyperbolic sines moves by no more than that of cosines, when an argument does.
        moved = 2.0 * sum(math.exp(log - s.log_total) * each for log, each in zip(s.log_cosh, s.doubt, strict=True))
        kept = abs(s.log_total) + half_n * (abs(s.log_sinh) + down + 1.0) + abs(value) + 1.0
        return value, 2.0 * (moved + 16.0 * _UNIT * kept)

    def bond_means(self) -> tuple[float, float]:
        """``E x_i x_j`` of neighbours across and down: the derivative of ``log Z``, divided by the number of bonds.

        >>> across, down = Torus(4, 4, 0.4, 0.4).bond_means()
        >>> bool(abs(across - down) < 1e-14), round(across, 6)
        (True, 0.689558)
        """
        self._require()
        found = []
        turned = Torus(self.columns, self.rows, self.down, self.across)
        for torus in (self, turned):  # the derivative by the coupling across is the one without cancellation
            size = _slope(torus.rows, torus.columns, abs(torus.across), abs(torus.down))
            found.append(math.copysign(1.0, torus.across) * size)
        return found[0], found[1]

    def _require(self) -> None:
        if not self.solvable:
            raise DomainError(
                f"Kaufman's formula takes a negative coupling along an even direction only; got {self.across:.4g} "
                f"across {self.columns} columns and {self.down:.4g} down {self.rows} rows"
            )

    def _rings(self, across: float, down: float) -> tuple[float, float]:
        """Without one of the couplings: rings that know nothing of each other."""
        length, count, coupling = (self.columns, self.rows, across) if down == 0 else (self.rows, self.columns, down)
        each = length * (coupling + math.log1p(math.exp(-2.0 * coupling)))
        value = count * (each + math.log1p(math.tanh(coupling) ** length))
        return value, 32.0 * _UNIT * (value + count * length)


class _Spectrum(NamedTuple):
    """At ``k = 0, ..., 2 columns - 1``: ``u = rows gamma / 2`` and what else the sum is made of."""

    u: np.ndarray
    log_s: np.ndarray  # of sinh(gamma / 2)
    shift: float  # L - K*
    log_sinh: float  # log(2 sinh 2K)
    log_cosh: tuple[float, float]  # sums of log(2 cosh u) over odd and over even k
    log_sine: tuple[float, float]  # of log(2 sinh |u|)
    log_total: float
    doubt: tuple[float, float]  # how far rounding can have moved those sums

    @property
    def signs(self) -> tuple[float, ...]:
        return 1.0, 1.0, 1.0, float(np.sign(self.shift))


def _spectrum(rows: int, columns: int, across: float, down: float) -> _Spectrum:
    dual = 0.5 * (np.log1p(np.exp(-2 * down)) - np.log(-np.expm1(-2 * down)))  # K*
    log_sinh, log_sinh_across = _log_two_sinh(2 * down), _log_two_sinh(2 * across)
    shift = float(across - dual)
    k = np.arange(2 * columns)
    with np.errstate(divide="ignore"):
        log_sine_square = 2 * np.log(np.sin(np.pi * np.minimum(k, 2 * columns - k) / (2 * columns)))
        log_s = 0.5 * np.logaddexp(
            2 * (_log_two_sinh(abs(shift)) - np.log(2.0)), log_sinh_across - log_sinh + log_sine_square
        )
        gamma = 2 * np.where(log_s > 20, log_s + np.log(2.0), np.arcsinh(np.exp(np.minimum(log_s, 20.0))))
        gamma[0] = 2 * shift
        u = 0.5 * rows * gamma
        cosines = np.abs(u) + np.log1p(np.exp(-2 * np.abs(u)))
        sines = _log_two_sinh(np.abs(u))
    sizes = 1.0 + across + down + dual + abs(log_sinh) + abs(log_sinh_across) + np.abs(gamma)
    sizes[1:] += np.abs(log_sine_square[1:])
    doubt = 16.0 * _UNIT * (0.5 * rows * sizes + cosines)
    parts = [(cosines[p::2], sines[p::2], doubt[p::2]) for p in (1, 0)]
    log_cosh, log_sine = (tuple(math.fsum(part[i]) for part in parts) for i in (0, 1))
    logs = np.array([log_cosh[0], log_sine[0], log_cosh[1], log_sine[1]])
    signs = np.array([1.0, 1.0, 1.0, np.sign(shift)])
    top = logs.max()
    total = float(top + np.log((signs * np.exp(logs - top)).sum()))
    lost = tuple(math.fsum(part[2]) for part in parts)
    return _Spectrum(u, log_s, shift, float(log_sinh), log_cosh, log_sine, total, lost)  # type: ignore[arg-type]


def _log_two_sinh(x: Any) -> Any:
    """``log(2 sinh x)`` of ``x >= 0``, from the smallest to the largest; -inf at zero."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-2 * x))


def _slope(rows: int, columns: int, across: float, down: float) -> float:
    """The derivative of ``log Z`` by the coupling across, for one bond."""
    if across == 0:
        return 0.0
    if down == 0:
        t = math.tanh(across)
        return (t + t ** (columns - 1)) / (1.0 + t**columns)
    s = _spectrum(rows, columns, across, down)
    u, log_s, shift = s.u[1:], s.log_s[1:], abs(s.shift)
    share = np.exp(2 * (_log_two_sinh(shift) - np.log(2.0) - log_s))  # of sinh^2(L - K*) in sinh^2(gamma / 2)
    near = share / np.tanh(s.shift) if shift > 0 else np.zeros_like(share)
    rest = -np.expm1(2 * (_log_two_sinh(shift) - np.log(2.0) - log_s)) if shift > 0 else np.ones_like(share)
    # gamma_0 = 2 (L - K*) has the derivative 2; each of the others the same by its own sum.
    change = np.concatenate([[2.0], 2 * (near + rest / np.tanh(2 * across)) / np.sqrt(1 + np.exp(-2 * log_s))])
    by_cosh = 0.5 * rows * np.tanh(s.u) * change
    by_sinh = 0.5 * rows * np.concatenate([[0.0], change[1:] / np.tanh(u)])
    without = math.fsum(_log_two_sinh(s.u[2::2]))  # log of the product of 2 sinh u at even k, but for k = 0
    first = float(np.logaddexp(s.u[0], -s.u[0]))  # log 2 cosh u_0, the derivative of 2 sinh u_0
    terms = [
        math.exp(s.log_cosh[0] - s.log_total) * math.fsum(by_cosh[1::2]),
        math.exp(s.log_sine[0] - s.log_total) * math.fsum(by_sinh[1::2]),
        math.exp(s.log_cosh[1] - s.log_total) * math.fsum(by_cosh[0::2]),
        s.signs[3] * math.exp(s.log_sine[1] - s.log_total) * math.fsum(by_sinh[0::2]),
        math.exp(without + first - s.log_total) * rows,
    ]
    return min(math.fsum(terms) / (rows * columns), 1.0)


# Models ---------------------------------------------------------------------------------------------------------------


def torus_columns(structure: Structure, edges: np.ndarray) -> int:
    """How many columns the torus has whose edges these are, spins numbered along its rows; 0 where there is none."""
    n = structure.n_variables
    if "torus" not in structure.plans:
        found = 0
        if n >= 9 and len(edges) == 2 * n:
            codes = np.sort(edges.min(axis=1) * n + edges.max(axis=1))
            widths = (c for c in range(3, n // 3 + 1) if n % c == 0)
            found = next((c for c in widths if np.array_equal(codes, _torus_codes(n, c))), 0)
        structure.plans["torus"] = found
    return structure.plans["torus"]


def _torus_codes(n: int, columns: int) -> np.ndarray:
    number = np.arange(n).reshape(-1, columns)
    found = []
    for axis in (0, 1):
        other = np.roll(number, -1, axis=axis)
        found.append((np.minimum(number, other) * n + np.maximum(number, other)).ravel())
    return np.sort(np.concatenate(found))


def torus_of(model: Any) -> Torus | None:
    """The torus that an Ising model is, where Kaufman's formula applies to it: one coupling in each direction, no
    fields and no evidence; else None.
    """
    if model.evidence or np.any(model.fields):
        return None
    edges, couplings = model.edges, model.couplings
    columns = torus_columns(model.structure, edges)
    if columns == 0:
        return None
    beside = edges[:, 0] // columns == edges[:, 1] // columns
    across, down = couplings[beside], couplings[~beside]
    if np.ptp(across) > 0 or np.ptp(down) > 0:
        return None
    torus = Torus(model.n_variables // columns, columns, float(across[0]), float(down[0]))
    return torus if torus.solvable else None


def torus_answer(model: Any, torus: Torus) -> tuple[float, list[np.ndarray], np.ndarray]:
    """``log Z``, the marginals (of one spin: one half) and the tables of all factors, as elimination gives them."""
    value, n = torus.log_partition()[0], model.n_variables
    beside = model.edges[:, 0] // torus.columns == model.edges[:, 1] // torus.columns
    means = np.where(beside, *torus.bond_means())
    tables = 0.25 * (1.0 + means[:, None] * np.array([1.0, -1.0, -1.0, 1.0]))
    return value, [np.full(2, 0.5)] * n, np.concatenate([np.full(2 * n, 0.5), tables.ravel()])


def bound_torus(model: Any) -> Interval:
    """``log Z`` of a model that `torus_of` knows, within its rounding, and the certificate."""
    certificate = certify_torus(model, None)
    bound = certificate.bound
    assert isinstance(bound, Interval)
    return Interval(bound.lower, bound.upper, bound.estimate, certificate)


@issuer
def certify_torus(model: Any, interval: Interval | None) -> Certificate:
    """An interval for ``log Z`` by the formula: all of it follows from the model, whatever `interval` was claimed."""
    torus = torus_of(model)
    if torus is None:
        raise CertificateError("Kaufman's formula does not apply to this model", "the model is a torus without fields")
    value, error = torus.log_partition()
    structure, theta, _ = model.restricted()
    lower, upper = float(np.nextafter(value - error, -np.inf)), float(np.nextafter(value + error, np.inf))
    shape = f"{torus.rows} x {torus.columns}, couplings {torus.across:.6g} across and {torus.down:.6g} down"
    return Certificate(
        "log Z",
        Interval(lower, upper, value),
        "Kaufman's formula for the torus without fields (Kaufman 1949)",
        (
            check(True, "the model is a torus with one coupling in each direction and no fields", shape),
            by_construction("rounding stays within the allowance", f"{error:.2g}, included"),
            check_simple_bounds(structure, theta, lower, upper),
        ),
    )
