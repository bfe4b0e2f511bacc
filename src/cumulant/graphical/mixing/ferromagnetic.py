"""Ferromagnets in a field: the convex set on which the subgraphs world mixes in polynomial time, and the polynomial."""

import math
from dataclasses import dataclass

import numpy as np

from cumulant import checks
from cumulant.certificates import Assumption, by_construction, check
from cumulant.errors import DomainError
from cumulant.graphical.mixing.certificates import Mixing
from cumulant.sampling.chains import require_counts

_MOST_EDGES, _LEAST = 2046, 1e-75


def subgraphs_mixing(edges: int, least: float) -> Mixing:
    """How fast the chain of `SubgraphsWorld` mixes from the empty subgraph, with ``least = min_i tanh |h_i| > 0``.

    ``d(v) <= 2^(m/2) / 2 exp(-v / rho)`` with ``rho = 2 m^2 least^-4`` and ``m`` edges, whatever the couplings: that is
    ``tau(eps) <= rho (m/2 log 2 + log(1 / (2 eps)))``, a polynomial of degree 3 in the edges.

    The proof has the canonical paths of Jerrum and Sinclair (1993): from ``X`` to ``Y`` by turning the edges of ``X xor
    Y``, trail after trail. On the way at most two vertices have a parity that neither end accounts for, so that
    ``w(X) w(Y) <= least^-4 w(Z) w(X xor Y xor Z)`` at each step ``Z``; a path has at most ``m`` steps of probability
    ``1/2m``. By Sinclair (1992) the spectral gap is at least ``1 / rho``; the empty subgraph has probability at least
    ``2^-m``. The paper's own bound, through conductance, has ``least^-8``.

    Examples
    --------
    >>> subgraphs_mixing(5, math.tanh(0.5)).tau(0.01)
    6189
    """
    require_counts(edges=(edges, 0))
    if not 0 < checks.number("least", least) <= 1:
        raise ValueError(f"least must be above 0 and at most 1, a hyperbolic tangent of fields; got {least}")
    if edges > _MOST_EDGES or least < _LEAST:
        raise DomainError(
            f"the bound on the mixing time is no number for {edges} edges and least = {least:.3g}: it is for at most "
            f"{_MOST_EDGES} edges and tangents of at least {_LEAST:g}"
        )
    m = max(int(edges), 1)
    return Mixing(max(0.5 * 2.0 ** (m / 2), 1.0), -(least**4) / (2.0 * m * m) * (1.0 - 2.0**-48), norm="subgraphs")


@dataclass(frozen=True)
class Ferromagnetic:
    """Ising models with ``theta_ij >= 0`` and ``theta_i >= least_field > 0``: a convex set, for learning in it.

    Couplings may be as strong as they like: gradients come from the subgraphs world instead of Gibbs sampling, by
    `subgraphs_mixing`. The projection is a componentwise maximum.

    Examples
    --------
    >>> Ferromagnetic(0.5).mixing(5).tau(0.01)
    6189
    """

    least_field: float = 0.5

    def __post_init__(self):
        checks.positive("least_field", self.least_field)

    def mixing(self, edges: int) -> Mixing:
        """What holds for every member with as many edges."""
        return subgraphs_mixing(edges, math.tanh(self.least_field) * (1.0 - 2.0**-50))


@dataclass(frozen=True)
class FerromagneticSet:
    """The set in the parameters ``theta`` of an Ising model: fields, then couplings."""

    within: Ferromagnetic
    n: int
    n_edges: int

    def mixing(self) -> Mixing:
        """What holds for every member."""
        return self.within.mixing(self.n_edges)

    def reach(self) -> float:
        """There is no bound on members."""
        return math.inf

    @property
    def least(self) -> np.ndarray:
        """The smallest member: where runs start."""
        return np.concatenate([np.full(self.n, self.within.least_field), np.zeros(self.n_edges)])

    def project(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """The nearest member, exactly."""
        return np.maximum(theta, self.least), 0.0

    def check_inside(self, path: np.ndarray) -> Assumption:
        """That all of these are members."""
        least = float(np.min(path - self.least, initial=np.inf))
        return check(least >= 0, "every iterate lies in the set", "couplings and fields are no smaller than allowed")

    def sampling(self, path: np.ndarray) -> tuple[Mixing, tuple[Assumption, ...]]:
        """How fast chains mix at every iterate, and what that rests on."""
        m = self.n_edges
        return self.mixing(), (
            by_construction("the subgraphs world mixes", f"canonical paths: gap at least tanh(h)^4 / (2 m^2), m = {m}"),
            self.check_inside(path),
            by_construction("fresh independent chains from the empty subgraph in every iteration"),
        )
