"""Three analyses of stochastic mirror descent, and which of the properties of table 5.1 each has: all are computed."""

from dataclasses import dataclass

import numpy as np

from cumulant.families.gamma_type import GammaType
from cumulant.families.normal import NormalKnownMean
from cumulant.families.risk.diagnostics import gap_constant, smd_assumption_gamma
from cumulant.families.risk.quadrature import gamma_blocks
from cumulant.families.special import excess_numpy

_RATIOS = np.geomspace(1e-3, 1e2, 61)  # iterates over the truth
_SHRINK = 1e-3  # a constant that grows on the way to a step this much shorter is unbounded


@dataclass(frozen=True)
class Analysis:
    """An analysis of stochastic mirror descent and what it gives (a row of table 5.1 of Le Priol 2021).

    Attributes
    ----------
    name, equation : str
    constant : float
        The supremum of its constant over iterates and over the step sizes that its rate needs.
    holds : bool
        Whether that constant is finite.
    vanishes : bool
        Whether its bound goes to zero with the step size, so that steps of the order ``1/n`` give a rate of ``1/n``.
    on_objective : bool
        Whether it bounds an average of ``f(theta_n) - f*``, the risk.
    last_iterate : bool
        Whether it bounds the last iterate: in the reverse divergence ``KL(p_{theta_n} || p_{theta*})``, or in ``f``.
    """

    name: str
    equation: str
    constant: float
    holds: bool
    vanishes: bool
    on_objective: bool
    last_iterate: bool


def smd_analyses(family: GammaType | None = None, gamma: float = 0.1) -> tuple[Analysis, ...]:
    """Table 5.1 of Le Priol (2021): what three analyses of mirror descent need, and give, for a gamma-type family.

    Every entry is computed. *holds*: the supremum of the constant over iterates is its limit at ``mu = 0``. A rate of
    ``1/n`` needs steps that go to zero, and hence a constant that is bounded over all steps up to `gamma`: that of
    (5.31) is ``alpha / (alpha - 1) / gamma^2`` at ``mu = 0`` for ``alpha > 1``, and unbounded.

    An analysis is an inequality on one step, with noise ``N = gamma^2 C`` (for the gap ``gamma C``), ``C`` the constant
    at that iterate and step, ``F = f - f*`` and ``D`` the reverse divergence. *vanishes*: ``N / gamma``, where a
    recursion ``X' <= (1 - gamma) X + N`` ends, goes to zero with the step. *on the objective*: ``gamma E F' <= (1 -
    gamma) D - E D' + N``, which bounds an average of ``F``. *last iterate*: ``E X' <= (1 - gamma) X + N`` for ``X = F``
    or ``X = D``. Both are checked by quadrature at every iterate and step of a grid, wherever ``C`` is finite; steps go
    up to 0.9, under (5.33) to 1/2, as that theorem asks.

    The table as printed has "no" for the last iterate under (5.31) and for ``f`` under (5.33): there is more than was
    claimed. Under (5.31) both follow from ``(1 - gamma) D - E D' + S = (1 - gamma) E Breg(mu; mu') + gamma E F'``,
    where ``S <= N`` is the symmetrised divergence; see `optim.rates.smd_variance`.

    Examples
    --------
    >>> [(a.name, a.holds, a.vanishes, a.on_objective, a.last_iterate) for a in smd_analyses()]
    [('variance', False, True, True, True), ('optimum', False, True, True, True), ('gap', True, False, False, True)]
    """
    family = NormalKnownMean() if family is None else family
    alpha = family.alpha
    gap = gap_constant(family, np.array([-1.0]))

    def constant(kind, ratio, step):
        return (
            np.broadcast_to(gap, np.shape(ratio)) if kind == "gap" else smd_assumption_gamma(kind, ratio, step, alpha)
        )

    rows = []
    for kind, equation, largest in (("variance", "(5.31)", 0.9), ("optimum", "(5.33)", 0.5), ("gap", "(5.35)", 0.9)):
        power = 1 if kind == "gap" else 2
        first, later = (float(constant(kind, 0.0, step)) for step in (gamma, gamma * _SHRINK))
        worst = first if later <= 2 * first < np.inf else np.inf
        noise = [step ** (power - 1) * float(constant(kind, 1.0, step)) for step in (gamma, gamma * _SHRINK)]
        average, last = True, {"F": True, "D": True}
        for step in (gamma, gamma * _SHRINK, largest):
            F, D, new_F, new_D = _one_step(_RATIOS, step, alpha)
            allowed = step**power * constant(kind, _RATIOS, step) + 1e-12 * (1 + F + D)
            average &= bool(np.all(step * new_F <= (1 - step) * D - new_D + allowed))
            last["F"] &= bool(np.all(new_F <= (1 - step) * F + allowed))
            last["D"] &= bool(np.all(new_D <= (1 - step) * D + allowed))
        vanishes = noise[1] < 0.1 * noise[0]
        rows.append(
            Analysis(kind, equation, worst, bool(np.isfinite(worst)), vanishes, average, last["F"] or last["D"])
        )
    return tuple(rows)


def _one_step(ratio, gamma, alpha):
    """``F = alpha phi(mu*/mu)`` and ``D = alpha phi(mu/mu*)`` at iterates, and their means after a step."""
    start = (1 - gamma) * ratio
    F, D = alpha * excess_numpy(1 / ratio - 1), alpha * excess_numpy(ratio - 1)
    new_F, new_D = np.empty(ratio.size), np.empty(ratio.size)
    for index, t, mass in gamma_blocks(np.full(ratio.size, alpha), alpha * start / gamma):
        moved = start[index, None] + gamma * np.exp(t)
        new_F[index] = alpha * np.sum(mass * excess_numpy(1 / moved - 1), axis=1)
        new_D[index] = alpha * np.sum(mass * excess_numpy(moved - 1), axis=1)
    return F, D, new_F, new_D
