"""The error of one run: what groups of lineages, nearly independent populations, say of ``Z``."""

import dataclasses
import math

import numpy as np

GROUPS = (48, 24, 12, 6)  # numbers of groups
MEMBERS = 5  # that each group must have kept


@dataclasses.dataclass(frozen=True, eq=False)
class Lineages:
    """The group that the first ancestor of each particle is in, and what each group says of ``Z``: see `Outcome`.

    `log_scale` of a group is the logarithm of the product of (weight of its members) / (share of its members after
    resampling) over all resamplings, and of one over its first share. `fewest` is the smallest number of members that
    a group had, or of effective ones before a resampling: copies of a few particles say no more than these few.
    """

    group: np.ndarray
    log_scale: np.ndarray
    fewest: float
    resampled: bool = False

    @classmethod
    def of(cls, n: int, count: int) -> "Lineages":
        """Of particles that have not been resampled: groups of neighbours, as even as can be."""
        group = np.arange(n) * count // n
        sizes = np.bincount(group, minlength=count)
        return cls(group, -np.log(np.maximum(sizes, 1) / n), int(sizes.min()))

    def after(self, weights: np.ndarray, chosen: np.ndarray) -> "Lineages":
        """After a resampling of particles with these weights."""
        group, count = self.group[chosen], self.log_scale.size
        sizes = np.bincount(group, minlength=count)
        before, squares = (np.bincount(self.group, weights=w, minlength=count) for w in (weights, weights**2))
        effective = np.divide(before**2, squares, out=np.zeros(count), where=squares > 0)
        fewest = min(self.fewest, float(effective.min()), int(sizes.min()))
        if fewest < MEMBERS:
            return dataclasses.replace(self, group=group, fewest=fewest, resampled=True)
        return Lineages(group, self.log_scale + np.log(before) - np.log(sizes / group.size), fewest, True)

    def estimates(self, weights: np.ndarray) -> np.ndarray:
        """What the groups say of ``Z``, relative to the estimate of all."""
        return np.bincount(self.group, weights=weights, minlength=self.log_scale.size) * np.exp(self.log_scale)


def relative_variance(weights: np.ndarray, lineages: list[Lineages]) -> tuple[float, int]:
    """Of ``exp(log_z)``, and its degrees of freedom: from the particles where they are independent, else from the
    finest groups that always had enough members.
    """
    values = weights * weights.size
    if lineages[0].resampled:
        values = next((each.estimates(weights) for each in lineages if each.fewest >= MEMBERS), np.zeros(0))
    if values.size < 2 or values.mean() == 0:
        return math.inf, 1
    counted = float(values.sum() ** 2 / np.sum(values**2))
    return float(values.var(ddof=1) / values.size / values.mean() ** 2), max(1, int(counted) - 1)
