"""Does a family describe the data? Quantiles against quantiles, and the probability integral transform."""

from typing import Any

import numpy as np
from scipy.special import betaincinv

from cumulant.families import ExponentialFamily, probability_transform
from cumulant.plotting.style import COLOURS, INK, figure, legend, style


def goodness_of_fit(
    family: ExponentialFamily,
    theta: Any,
    data: Any,
    *,
    axes: Any = None,
    label: str | None = None,
    color: str = COLOURS[0],
    rng: Any = 0,
) -> Any:
    """Two pictures of how well a member of a family of numbers describes data; returns their two axes.

    On the left each observation against the quantile of the member at its rank: the tails. On the right the probability
    integral transform of the data, sorted, minus what is expected of uniform numbers: the middle. The band holds each
    point with probability 95% where the member is the truth and was not fitted to these data; after a fit points lie
    closer to zero. Transforms of discrete families are randomised by `rng`.
    """
    values = np.sort(np.asarray(data, dtype=float))
    if values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"data must be a vector of at least two finite numbers; got shape {values.shape}")
    theta, n = np.asarray(theta, dtype=float), values.size
    rank = np.arange(1, n + 1)
    transforms = np.sort(probability_transform(family, theta, values, rng=rng))
    expected = rank / (n + 1)
    with style():
        if axes is None:
            _, axes = figure(1, 2)
            low, high = (betaincinv(rank, n + 1 - rank, share) - expected for share in (0.025, 0.975))
            axes[1].fill_between(expected, low, high, color=INK, alpha=0.1, linewidth=0, label="95% for each")
            axes[1].axhline(0.0, color=INK, linewidth=0.8)
            axes[0].axline((values[0], values[0]), slope=1.0, color=INK, linewidth=0.8)
            axes[0].set(xlabel="quantile of the fit", ylabel="observation")
            axes[1].set(xlabel="expected transform", ylabel="transform - expected")
        name = label or type(family).__name__
        quantiles = family.quantile((rank - 0.5) / n, theta)
        axes[0].plot(quantiles, values, ".", color=color, label=name)
        axes[1].plot(expected, transforms - expected, color=color, label=name)
        lowest, highest = axes[1].dataLim.intervaly
        axes[1].set_ylim(lowest - 0.05 * (highest - lowest), highest + 0.3 * (highest - lowest))  # room for the legend
        for ax, corner in zip(axes, ("upper left", "upper right"), strict=True):
            legend(ax, loc=corner)
    return axes
