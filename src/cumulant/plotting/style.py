"""The house style, applied to the figure at hand and to nothing else."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cumulant import checks
from cumulant.files import write_atomically

# Told apart by every kind of colour vision (Okabe and Ito 2008), the darkest first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d")
INK, GRID = "#262626", "#dddddd"

_SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "errorbar.capsize": 3,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "savefig.dpi": 150,
    "svg.hashsalt": "cumulant",  # the same picture is the same file
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 9,
    "ytick.color": INK,
    "ytick.labelsize": 9,
}


def matplotlib() -> Any:
    """The matplotlib package; where it is missing, an error that says how to install it."""
    try:
        import matplotlib as package
    except ModuleNotFoundError as problem:
        if problem.name != "matplotlib":
            raise
        message = 'pictures need matplotlib, which is not installed: pip install "cumulant[plot]"'
        raise ModuleNotFoundError(message, name="matplotlib") from None
    return package


@contextmanager
def style() -> Iterator[None]:
    """A context with the house style on. matplotlib's own settings are back as they were when it ends."""
    package = matplotlib()
    from cycler import cycler

    # What is in the cycle stays with the axes, and so outlives the context.
    cycle = cycler(color=COLOURS)
    for name in ("linewidth", "markersize"):
        cycle += cycler(name, [_SETTINGS[f"lines.{name}"]] * len(COLOURS))
    settings = {**package.rcParamsDefault, **_SETTINGS, "axes.prop_cycle": cycle}
    del settings["backend"]  # the user's window system is none of our business
    with package.rc_context(settings):
        yield


def figure(
    rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None, **options: Any
) -> tuple[Any, Any]:
    """A figure and its axes (one, or an array of them) in the house style.

    Parameters
    ----------
    rows, columns : int
        How many axes.
    width, height : float, optional
        Of the whole figure, in inches; without them each axes gets about 4.6 by 3.2.
    **options
        For `matplotlib.figure.Figure.subplots`: ``sharex``, ``sharey``, ``squeeze``...

    Returns
    -------
    figure : matplotlib.figure.Figure
        Laid out by itself (constrained layout), not known to pyplot: nothing has to be closed.
    axes : matplotlib.axes.Axes or array of them

    Examples
    --------
    >>> fig, ax = figure()
    >>> line, = ax.plot([0, 1], [0, 1])
    >>> line.get_color() == COLOURS[0]
    True
    """
    for name, count in (("rows", rows), ("columns", columns)):
        checks.whole(name, count)
    for name, inches in (("width", width), ("height", height)):
        if inches is not None:
            checks.positive(f"{name}, in inches,", inches)
    size = (width or (0.6 + 4.6 * columns), height or (0.2 + 3.2 * rows))
    with style():
        from matplotlib.figure import Figure

        fig = Figure(figsize=size, layout="constrained")
        axes = fig.subplots(rows, columns, **options)
        # Ticks are made when they are first drawn: their look is pinned on the axes, where it outlives the context.
        for each in fig.axes:
            each.tick_params(which="both", colors=INK, labelsize=_SETTINGS["xtick.labelsize"])
            each.grid(True, color=GRID, linewidth=_SETTINGS["grid.linewidth"])
    return fig, axes


def legend(ax: Any, **options: Any) -> Any:
    """The legend of an axes, in the house style."""
    with style():
        return ax.legend(**options)


def save(fig: Any, path: str | os.PathLike) -> Path:
    """Write a figure to `path`, whole or not at all; the suffix says the format and is ``.png`` where there is none.

    Missing folders are made. The same figure gives the same bytes (no date is written into it).
    """
    path = Path(path)
    if not path.suffix:
        path = path.with_suffix(".png")
    kind = path.suffix[1:].lower()
    known = fig.canvas.get_supported_filetypes()
    if kind not in known:
        raise ValueError(f"no picture format is called {path.suffix!r}; there are: {', '.join(sorted(known))}")
    dateless = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with style():
        fig.savefig(buffer, format=kind, metadata=dateless.get(kind))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getbuffer())
    return path
