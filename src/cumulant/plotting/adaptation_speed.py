"""Two directions that adapt to changes: curves of a fitted `AdaptationSpeed`, and speed against initial distance."""

from typing import Any

import numpy as np

from cumulant.plotting.shapes import band
from cumulant.plotting.style import COLOURS, INK, figure, legend, style


def adaptation_speed(model: Any, *, until: int | None = None, axes: Any = None) -> Any:
    """Two pictures of a fitted `causal.AdaptationSpeed`; returns their axes.

    On the left the mean divergence of each direction over transfers and draws, in a band from the 5th to the 95th
    percentile; a dashed line stands where directions are compared. On the right, for each transfer, the divergence
    there against the initial squared distance with its interval: the direction that starts nearer should be the faster.

    Parameters
    ----------
    model : AdaptationSpeed
        After `fit` or `load`.
    until : int, optional
        The last time that is drawn.
    axes : pair of matplotlib.axes.Axes, optional
    """
    if not hasattr(model, "kl_"):
        raise ValueError("model must be a fitted AdaptationSpeed; got one that is not fitted")
    first, second = model.names_
    labels = {"causal": f"{first} → {second}", "anticausal": f"{second} → {first}", "joint": "table"}
    keep = slice(None) if until is None else model.times_ <= until
    place = int(np.flatnonzero(model.times_ == model.budget_)[0])
    with style():
        if axes is None:
            _, axes = figure(1, 2)
        left, right = axes
        for name, curves, colour in zip(model.models_, model.kl_, COLOURS, strict=False):
            flat = curves.reshape(-1, curves.shape[-1])[:, keep]
            with np.errstate(invalid="ignore"):  # runs that blew up are infinite: their curves end
                low, high = np.quantile(flat, (0.05, 0.95), axis=0)
            left.plot(model.times_[keep], flat.mean(axis=0), color=colour, label=labels[name])
            band(left, model.times_[keep], low, high, color=colour)
        left.axvline(model.budget_, color=INK, linewidth=0.8, linestyle="--", label="budget")
        left.set(xlabel="observations", ylabel="KL(transfer || model), in nats", ylim=(0, None))
        for j, name in enumerate(("causal", "anticausal")):
            distance, bounds = model.distances_[:, j], model.distance_intervals_[:, j]
            reach = np.maximum(np.stack([distance - bounds[:, 0], bounds[:, 1] - distance]), 0.0)
            speed = model.kl_[j, :, :, place].mean(axis=-1)
            right.errorbar(distance, speed, xerr=reach, fmt="o", color=COLOURS[j], label=labels[name])
        right.set(xlabel="squared distance at the start", ylabel=f"KL after {model.budget_} observations, in nats")
        right.margins(0.1)
        for ax in (left, right):
            legend(ax)
    return axes
