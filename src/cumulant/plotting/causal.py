"""Pictures of adaptation: divergences as observations come in, speed against initial distance, the ball of effects."""

from typing import Any

import numpy as np

from cumulant.plotting.shapes import band
from cumulant.plotting.style import COLOURS, INK, figure, legend, style

_COLOURS = {"causal": COLOURS[0], "anticausal": COLOURS[1], "joint": COLOURS[2]}


def adaptation(tuned: Any, *, until: int | None = None, ax: Any = None) -> Any:
    """Mean divergences of each model with its best step size, in bands from the 5th to the 95th percentile.

    A dashed line stands at the time at which step sizes were compared.

    Parameters
    ----------
    tuned : Tuned
        From `causal.tune`.
    until : int, optional
        The last time that is drawn.
    ax : matplotlib.axes.Axes, optional
    """
    keep = slice(None) if until is None else tuned.times <= until
    times = tuned.times[keep]
    with style():
        if ax is None:
            _, ax = figure()
        for model in tuned.models:
            curves = tuned.of(model)[:, keep]
            with np.errstate(invalid="ignore"):  # runs that blew up are infinite: their curves end
                low, high = np.quantile(curves, (0.05, 0.95), axis=0)
            ax.plot(times, curves.mean(axis=0), color=_COLOURS.get(model), label=model)
            band(ax, times, low, high)
        ax.axvline(tuned.budget, color=INK, linewidth=0.8, linestyle="--", label="budget")
        ax.set(xlabel="observations", ylabel="KL(transfer || model), in nats", ylim=(0, None))
        legend(ax)
    return ax


def distance_and_speed(tuned: Any, *, ax: Any = None) -> Any:
    """The divergence at the budget against the squared distance at the start: one point for each problem and model.

    The line is the least-squares fit of the logarithms over all points, with its share of the variance. Problems where
    nothing changed and runs that blew up have no place on logarithmic axes and are left out.

    Parameters
    ----------
    tuned : Tuned
        From `causal.tune`.
    ax : matplotlib.axes.Axes, optional
    """
    with style():
        if ax is None:
            _, ax = figure()
        found = []
        for model in tuned.models:
            x, y = getattr(tuned.distances, model), tuned.at_budget(model)
            shown = (x > 0) & (y > 0) & np.isfinite(x) & np.isfinite(y)
            x, y = x[shown], y[shown]
            ax.plot(x, y, "o", color=_COLOURS.get(model), label=model, alpha=0.5, markeredgewidth=0)
            found.append(np.log(np.stack([x, y])))
        x, y = np.concatenate(found, axis=1)
        if x.size and np.ptp(x) > 0 and np.ptp(y) > 0:
            slope, height = np.polyfit(x, y, 1)
            ends = np.array([x.min(), x.max()])
            share = np.corrcoef(x, y)[0, 1] ** 2
            ax.plot(np.exp(ends), np.exp(height + slope * ends), color=INK, linewidth=1.0, label=f"$r^2$ = {share:.2f}")
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="squared distance at the start",
            ylabel=f"KL after {tuned.budget} observations, in nats",
        )
        few_ticks(ax.xaxis)
        few_ticks(ax.yaxis)
        legend(ax)
    return ax


def few_ticks(axis: Any) -> None:
    """Numbers 1, 2 and 5 of each decade of a logarithmic axis; a few round ones where it is shorter than a decade."""
    from matplotlib import ticker

    low, high = axis.get_view_interval()
    short = high < 10 * low
    axis.set_major_locator(ticker.MaxNLocator(4) if short else ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def effect_ball(reference: Any, *, reach: float | None = None, ax: Any = None) -> Any:
    """New effects for which the causal model starts nearer to the transfer: a disc in the plane of three logits.

    Coordinates are those of logits that add up to zero, in an orthonormal basis. Colours show the difference of the
    squared distances, causal minus anticausal; it changes sign on the circle.

    Parameters
    ----------
    reference : CategoricalSCM
        One model whose effect has three values.
    reach : float, optional
        How far from the centre is drawn; two radii, and at least as far as the marginals, unless given.
    ax : matplotlib.axes.Axes, optional
    """
    from cumulant.causal import advantage_gap, effect_advantage_ball

    if reference.shape or reference.sizes[1] != 3:
        raise ValueError(
            f"reference must be one model with three effects; got shape {reference.shape} and {reference.sizes[1]}"
        )
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    ball = effect_advantage_ball(reference)
    radius = float(np.sqrt(ball.radius_squared))
    points = {
        "centre $c$": basis @ ball.centre,
        "marginal $s_Y$": basis @ reference.reverse().to_logit().cause,
        "mean of rows $m$": basis @ reference.to_logit().effect.mean(axis=0),
    }
    middle = points["centre $c$"]
    far = max(float(np.linalg.norm(each - middle)) for each in points.values())
    reach = max(2 * radius, 1.5 * far, 0.1) if reach is None else reach
    u, v = (middle[i] + np.linspace(-reach, reach, 201) for i in (0, 1))
    grid = np.stack(np.meshgrid(u, v), axis=-1) @ basis
    gap = advantage_gap(reference, grid)
    with style():
        if ax is None:
            _, ax = figure(width=5.4, height=4.4)
        limit = 3.0 * (reference.sizes[0] - 1) * radius**2 or float(np.abs(gap).max())
        picture = ax.pcolormesh(u, v, gap, cmap="RdBu_r", vmin=-limit, vmax=limit, shading="gouraud", rasterized=True)
        ax.figure.colorbar(picture, ax=ax, label="squared distance, causal minus anticausal", extend="max")
        turn = np.linspace(0, 2 * np.pi, 200)
        ax.plot(middle[0] + radius * np.cos(turn), middle[1] + radius * np.sin(turn), color=INK, linewidth=1.2)
        for marker, (name, point) in zip("osD", points.items(), strict=True):
            ax.plot(*point, marker, color=INK, markersize=5, label=name, fillstyle="none" if marker != "o" else "full")
        ax.set(
            aspect="equal",
            xlabel=r"$(s_1 - s_2) / \sqrt{2}$",
            ylabel=r"$(s_1 + s_2 - 2 s_3) / \sqrt{6}$",
        )
        ax.grid(False)
        legend(ax, loc="upper right", frameon=True, facecolor="white", framealpha=0.85)
    return ax
