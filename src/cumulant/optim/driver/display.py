"""The progress bar of a run: on a terminal only, and only once the run has lasted a moment."""

import math
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_PATIENCE = 1.0  # seconds before a bar appears, where the user did not ask for one


class Display:
    """Shows steps, value and certified distance of a run.

    `wanted` is None (if it lasts), a flag, a rich console, or the title of the bar, in place of `title`.
    """

    def __init__(self, wanted: bool | str | Console | None, title: str, total: int | None):
        self._wanted = wanted
        self._console: Console | None = None  # made late: most runs are over before there is anything to show
        self._patience = _PATIENCE if wanted is None else 0.0
        self._title, self._total = wanted if isinstance(wanted, str) else title, total
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._shown = -math.inf

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, steps: int, seconds: float, value: float, bound: float) -> None:
        """Show where the run is; at most ten times a second."""
        if self._wanted is False or seconds < self._patience or seconds - self._shown < 0.1:
            return
        if self._console is None:
            self._console = self._wanted if isinstance(self._wanted, Console) else Console(stderr=True)
        if not self._console.is_terminal:
            self._wanted = False
            return
        self._shown = seconds
        note = f"value {value:.6g}" + (f", within {bound:.2g}" if math.isfinite(bound) else "")
        if self._bar is None:
            self._bar = _bar_on(self._console)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total, note=note)
        self._bar.update(self._task, completed=steps, note=note, refresh=True)


def _bar_on(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        auto_refresh=False,
        transient=True,
    )
