"""Mixing times of random-scan Gibbs sampling that are proved, from the norm of the dependency matrix."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from cumulant import checks
from cumulant.certificates import Certificate, by_construction, check, issuer
from cumulant.errors import CertificateError
from cumulant.graphical.mixing.dependency import dependency_matrix
from cumulant.graphical.mixing.perron import spectral_norm

NORMS = ("spectral", "one", "inf", "degree")


class NotFastMixing(CertificateError):  # noqa: N818  (the word of the field)
    """The norm of the dependency matrix is not below one: nothing is proved about how fast the chain mixes.

    `kappa` is the norm.
    """

    def __init__(self, message: str, kappa: float):
        super().__init__(message, assumption="the norm of the dependency matrix is below 1")
        self.kappa = kappa


@dataclass(frozen=True)
class Mixing:
    """A bound ``d(v) <= constant * rate^v`` on the distance to stationarity after ``v`` steps from the worst start.

    ``d(v)`` is in total variation. The rate is kept as its logarithm, which is negative.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> bound = gibbs_mixing(dependency_matrix(Ising(grid(4, 4), 0.2), "tanh"), "degree")
    >>> round(bound.rate, 6), bound.tau(0.01)
    (0.98693, 561)
    """

    constant: float
    log_rate: float
    kappa: float | None = None
    norm: str = ""

    def __post_init__(self):
        checks.positive("constant", self.constant)
        if not (self.log_rate < 0 and math.isfinite(self.log_rate)):
            raise ValueError(f"log_rate must be negative and finite; got {self.log_rate}")

    @property
    def rate(self) -> float:
        """``alpha`` in ``C alpha^v``."""
        return math.exp(self.log_rate)

    def distance(self, v: Any) -> Any:
        """The bound on the total variation after `v` steps, at most 1."""
        return np.minimum(1.0, np.exp(math.log(self.constant) + self.log_rate * np.asarray(v, dtype=np.float64)))[()]

    def tau(self, eps: float = 0.01) -> int:
        """Steps after which the distance is at most `eps`."""
        eps = open_unit(eps, "eps")
        return max(0, math.ceil(math.log(self.constant / eps) / -self.log_rate * (1.0 + 2.0**-50)))


def mixing_from_tau(a: float, b: float) -> Mixing:
    """``C = exp(a / b)`` and ``alpha = exp(-1 / b)`` from a mixing time ``tau(eps) <= ceil(a + b log(1 / eps))``.

    >>> bound = mixing_from_tau(40.0, 20.0)
    >>> round(bound.constant, 6), round(bound.rate, 6)
    (7.389056, 0.951229)
    """
    if not (math.isfinite(checks.number("a", a)) and math.isfinite(checks.number("b", b)) and b > 0):
        raise ValueError(f"a must be finite and b positive and finite; got a = {a}, b = {b}")
    return Mixing(math.exp(a / b), -1.0 / b)


def dependency_norm(R: Any, norm: str = "spectral") -> float:
    """An upper bound, tight to about 1e-5, on the norm of a dependency matrix.

    ``"spectral"`` (proved by Collatz and Wielandt's quotient), ``"one"`` (largest sum of a column), ``"inf"`` (of a
    row), or ``"degree"``: the largest entry times the largest number of entries in a row, which is never below
    ``"inf"`` and for spins with ``|J| <= b`` is the familiar ``degree * tanh b``.
    """
    checks.choice("norm", norm, NORMS)
    R = csr_array(R if issparse(R) else checks.real_array("R", R, ndim=2))
    if R.ndim != 2 or R.shape[0] != R.shape[1]:
        raise ValueError(f"R must be a square matrix; got shape {R.shape}")
    if not (np.isfinite(R.data) & (R.data >= 0)).all():
        raise ValueError("R must have finite entries that are not negative: it holds influences")
    if R.nnz == 0:
        return 0.0
    if norm == "spectral":
        return spectral_norm(R).upper
    most = int(np.bincount(R.indices).max() if norm == "one" else np.diff(R.indptr).max())
    slack = 1.0 + (most + 8.0) * 2.0**-52  # the rounding of the sum
    if norm == "degree":
        return float(R.data.max()) * most * slack
    return float(R.sum(axis=0 if norm == "one" else 1).max()) * slack


def gibbs_mixing(R: Any, norm: str = "spectral", *, n_sites: int | None = None) -> Mixing:
    """The mixing of Gibbs sampling that updates one site, chosen uniformly, in each step.

    With ``kappa = norm(R) < 1``: ``d(v) <= N exp(-v (1 - kappa) / N)``, that is
    ``tau(eps) <= ceil(N log(N / eps) / (1 - kappa))``. One step is one update of one site, not a sweep, and the theorem
    says nothing about scans in a fixed order.

    Parameters
    ----------
    R : array of shape (n, n)
        Influences, as `dependency_matrix` gives them.
    norm : str
        ``"spectral"``, ``"one"``, ``"inf"`` or ``"degree"``: any of them proves it.
    n_sites : int, optional
        How many sites the sampler chooses from, those among which `R` has influences at least; its side without it.

    Raises
    ------
    NotFastMixing
        Where the norm is 1 or more.

    References
    ----------
    Hayes (2006), theorem 6; Dyer, Goldberg and Jerrum (2009), theorem 6; Domke (2015), equation 4.
    """
    kappa = dependency_norm(R, norm)
    n = int(np.shape(R)[0]) if n_sites is None else checks.whole("n_sites", n_sites, _linked(R))
    if not kappa < 1.0:
        raise NotFastMixing(
            f"not fast-mixing: the {norm} norm of the dependency matrix is {kappa:.6g}, and it must be below 1",
            kappa,
        )
    n = max(n, 1)
    return Mixing(float(n), -(1.0 - kappa) / n, kappa, norm)


def _linked(R: Any) -> int:
    """How many sites influence another or are influenced."""
    ends = csr_array(R).nonzero()
    return int(np.unique(np.concatenate(ends)).size)


@issuer
def certify_mixing_time(model: Any, eps: float, *, norm: str | None = None, bound: str = "oscillation") -> Certificate:
    """A certificate of the mixing time: random-scan Gibbs sampling of `model` is within `eps` after that many updates.

    ``tau(eps) = min{v : sup over starts of |distribution after v steps - model|_TV <= eps}``. The count is of
    single-site updates. Where the norm of the dependency matrix is 1 or more it is refused: see `project` for the
    nearest model that mixes fast. ``certificate.verify(Subject(model, eps))`` issues the shortest that is proved.

    Parameters
    ----------
    model : DiscreteModel
        Pairwise and without impossible states; with evidence, the chain moves the other variables.
    eps : float
        Total variation, strictly between 0 and 1.
    norm : str, optional
        See `gibbs_mixing`; without it, the one that proves the shortest time.
    bound : str
        See `dependency_matrix`.

    Examples
    --------
    >>> from cumulant.graphical import Ising, grid
    >>> print(certify_mixing_time(Ising(grid(4, 4), 0.2), 0.01, norm="inf"))
    tau(0.01), single-site updates of random-scan Gibbs <= 561  [deterministic]
      by path coupling in a norm of the dependency matrix: Hayes 2006, theorem 6; Dyer, Goldberg and Jerrum 2009
      kappa = 0.789501, rate = 0.98693, sites = 16, eps = 0.01
      ✓ a norm of the dependency matrix is below 1 (checked: inf norm, kappa = 0.789501)
      = each step updates one site, chosen uniformly (by construction)
    """
    eps = open_unit(eps, "eps")
    sites = model.restricted()[0].n_variables
    R = dependency_matrix(model, bound)
    found = gibbs_mixing(R, _smallest(R) if norm is None else norm, n_sites=sites)
    kappa = found.kappa or 0.0
    return Certificate(
        f"tau({eps:g}), single-site updates of random-scan Gibbs",
        float(found.tau(eps)),
        "path coupling in a norm of the dependency matrix: Hayes 2006, theorem 6; Dyer, Goldberg and Jerrum 2009",
        (
            check(kappa < 1, "a norm of the dependency matrix is below 1", f"{found.norm} norm, kappa = {kappa:.6g}"),
            by_construction("each step updates one site, chosen uniformly"),
        ),
        details={"kappa": kappa, "rate": found.rate, "sites": sites, "eps": eps},
    )


def _smallest(R: csr_array) -> str:
    """The norm that is smallest; `NotFastMixing` where none is below one."""
    norms = {norm: dependency_norm(R, norm) for norm in NORMS}
    best = min(norms, key=norms.__getitem__)
    if not norms[best] < 1.0:
        told = ", ".join(f"{name} {kappa:.4g}" for name, kappa in norms.items())
        raise NotFastMixing(
            f"not fast-mixing: no norm of the dependency matrix is below 1 ({told}); that the chain is slow is not "
            "proved either",
            norms[best],
        )
    return best


def open_unit(value: float, name: str) -> float:
    """A number strictly between 0 and 1, or an error that names it."""
    return float(checks.fraction(name, value))
