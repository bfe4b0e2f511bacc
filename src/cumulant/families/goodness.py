"""Does a family describe the data? Probability integral transforms, and Anderson and Darling's distance."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import randomness
from cumulant.errors import DomainError
from cumulant.families._calling import observations, public_method
from cumulant.families.base import ExponentialFamily
from cumulant.families.statistics import fit_where_possible

_MOST_AT_ONCE = 200_000  # simulated observations


@dataclass(frozen=True)
class Goodness:
    """Anderson and Darling's distance of data from a fitted member, and how unusual it is.

    Attributes
    ----------
    distance : float
        ``A^2 = n int (F_n - F)^2 / (F (1 - F)) dF``. For a member that was not fitted to these data its mean is one;
        a fit makes it smaller, by how much depends on the family.
    p_value : float or None
        The share of data sets simulated from the fit, and fitted again, that are at least as far from their own fit:
        ``(1 + how many) / (1 + simulated)``. None without simulations: the distance alone is not a test.
    simulated : int
        How many data sets were simulated. Of counting families, some may have no estimate, and are left out.
    """

    distance: float
    p_value: float | None = None
    simulated: int = 0

    def __str__(self):
        if self.p_value is None:
            return f"Anderson-Darling distance {self.distance:.3g}"
        return f"Anderson-Darling distance {self.distance:.3g}, p = {self.p_value:.3g} ({self.simulated} simulations)"


def probability_transform(family: ExponentialFamily, theta: Any, x: Any, *, rng: Any = 0) -> np.ndarray:
    """The probability integral transform ``F(x)``: uniform between zero and one where the member is the truth.

    Of a discrete family, the transform is drawn uniformly between ``P(X < x)`` and ``P(X <= x)``, which makes it
    uniform too (Brockwell 2007); `rng` seeds these draws.

    >>> from cumulant.families import Exponential
    >>> probability_transform(Exponential(), [-1.0], [np.log(2.0)])
    array([0.5])
    """
    return np.exp(_log_transforms(family, np.asarray(theta, dtype=np.float64), x, randomness.generator(rng))[0])


def _log_transforms(family, theta, x, generator):
    """The logarithms of the transform and of one minus it, both accurate where they are small."""
    if family.event_shape:
        raise DomainError(f"{family} has no distribution function: its observations have shape {family.event_shape}")
    x = np.asarray(observations(x, ()), dtype=np.float64)
    lower, upper = _log_tails(family, x, theta)
    if not family.discrete:
        return lower, upper
    share = generator.uniform(size=x.shape)
    inside = family.log_prob(x, theta)
    # F(x-) + u p and S(x) + (1 - u) p
    below, _ = _log_tails(family, x - 1, theta)
    return np.logaddexp(below, np.log(share) + inside), np.logaddexp(upper, np.log1p(-share) + inside)


@public_method
def _log_tails(self, x, theta):
    """`log_cdf` and `log_survival` by one program, as most of it is in both."""
    return self._tails(x, theta)


def _distance(lower, upper):
    """``A^2`` of log transforms ``(n, *batch)``: ``-n - mean_i (2 i - 1) [log F(x_i) + log S(x_{n + 1 - i})]``."""
    n = len(lower)
    weights = (2 * np.arange(1, n + 1) - 1).reshape(-1, *[1] * (lower.ndim - 1))
    return -n - np.mean(weights * (np.sort(lower, axis=0) + np.sort(upper, axis=0)), axis=0)


def goodness_of_fit(
    family: ExponentialFamily, x: Any, theta: Any = None, *, simulations: int = 0, rng: Any = 0
) -> Goodness:
    """Anderson and Darling's distance between data and a member of a family of numbers.

    Parameters
    ----------
    family : ExponentialFamily
        A family of numbers, continuous or discrete.
    x : array (n,)
        The observations.
    theta : array, optional
        The member; without it, the maximum-likelihood estimate, and then every simulated data set is fitted again.
    simulations : int
        How many data sets to simulate for a p-value (a parametric bootstrap). 199 resolve five percent.
    rng : int or numpy.random.Generator
        Seeds the simulations, and the transform of discrete families.

    References
    ----------
    Anderson and Darling 1954, "A test of goodness of fit"; Stute, Gonzalez Manteiga and Presedo Quindimil 1993,
    "Bootstrap based goodness-of-fit tests".

    Examples
    --------
    >>> from cumulant.families import Exponential
    >>> x = Exponential().quantile((np.arange(100) + 0.5) / 100, [-1.0])
    >>> print(goodness_of_fit(Exponential(), x, [-1.0]))
    Anderson-Darling distance 0.0115
    """
    if simulations < 0:
        raise ValueError(f"simulations must not be negative; got {simulations}")
    generator = randomness.generator(rng)
    fitted = theta is None
    member = np.asarray(family.mle(x) if fitted else theta, dtype=np.float64)
    if member.ndim != 1 or np.ndim(x) != 1:
        raise DomainError(f"x must be one vector and theta one member; got shapes {np.shape(x)} and {member.shape}")
    found = float(_distance(*_log_transforms(family, member, x, generator)))
    if not simulations:
        return Goodness(found)
    n = len(x)
    chunk = max(1, min(simulations, _MOST_AT_ONCE // n))
    distances = []
    for start in range(0, simulations, chunk):
        # Every chunk has one shape, so that one program serves; what the last has too many is not used.
        draws = np.asarray(family.sample(np.tile(member, (chunk, 1)), n, rng=generator), dtype=np.float64)
        members = np.broadcast_to(member, (chunk, family.dim))
        fine = np.ones(chunk, bool)
        if fitted:
            members, fine = fit_where_possible(family.collect(draws))
        members = np.where(fine[:, None], members, member)
        values = _distance(*_log_transforms(family, members, draws, generator))
        distances.append(values[fine & (np.arange(start, start + chunk) < simulations)])
    distances = np.concatenate(distances)
    return Goodness(found, float((1 + np.sum(distances >= found)) / (1 + distances.size)), distances.size)
