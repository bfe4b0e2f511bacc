"""What the experiments on conditional mean field share: repeated runs on one spin glass, and their picture."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant import particles
from cumulant.plotting import COLOURS, figure
from cumulant.plotting import particles as pictures

SOURCE = "Carbonetto (2009), thesis, chapter 4"
Method = Callable[[int], particles.ParticleResult]


@dataclass(frozen=True)
class Runs:
    """Runs of one method on one model: errors of ``log Z``, mean errors of the means, and where the trace went."""

    log_z: np.ndarray
    means: np.ndarray
    traces: np.ndarray
    seconds: float

    def __str__(self):
        return f"{_spread(self.log_z, '+.2f')} / {_spread(self.means, '.3f')} ({self.seconds:.1f} s)"


def repeat(method: Method, truth: tuple[float, np.ndarray], n: int, rng: int) -> Runs:
    """`n` runs with seeds from ``100 + rng`` on, against the exact ``log Z`` and means; seconds of CPU for each."""
    began = time.process_time()
    results = [method(100 + rng + k) for k in range(n)]
    return Runs(
        np.array([result.log_partition() - truth[0] for result in results]),
        np.array([np.abs(result.mean() - truth[1]).mean() for result in results]),
        np.array([result.trace["log_z"] - truth[0] for result in results]),
        (time.process_time() - began) / n,
    )


def compared(one: Runs, other: Runs) -> tuple[float, float]:
    """The ratio of median errors of the means, and a factor within which chance keeps it (twice its standard error)."""
    ratio = float(np.median(one.means) / np.median(other.means))
    noise = np.sqrt(sum(np.var(np.log(each.means), ddof=1) / each.means.size for each in (one, other)))
    return ratio, float(np.exp(2 * 1.25 * noise))


def text(found: Mapping[str, Runs]) -> str:
    """Every method with the median and the range of both errors."""
    return "; ".join(f"{name}: {runs}" for name, runs in found.items())


def stages(runs: Runs, n: int) -> np.ndarray:
    """The median over runs of the absolute error of ``log Z``, at the start and after each of `n` refinements."""
    steps = np.linspace(0, runs.traces.shape[1] - 1, n + 1).astype(int)
    return np.median(np.abs(runs.traces[:, steps]), axis=0)


def draw(
    found: Mapping[str, Runs], traced: tuple[str, ...], lines: Mapping[str, tuple[float, float]], title: str
) -> Any:
    """Errors of ``log Z`` step by step, and of the means at the end; `lines` are answers without sampling."""
    fig, (left, right) = figure(1, 2, width=11.0)
    colours = dict(zip(found, COLOURS, strict=False))
    for name in traced:
        colour, traces = colours[name], found[name].traces
        steps = np.arange(traces.shape[1])
        for trace in traces:
            left.plot(steps, trace, color=colour, linewidth=0.5, alpha=0.5)
        left.plot([], [], color=colour, label=name)
    left.axhline(0.0, color="0.3", linewidth=0.9)
    shown = {name: value for name, (value, _) in lines.items() if abs(value) < 20}
    for style, (name, value) in zip(("--", ":", "-."), shown.items(), strict=False):
        left.axhline(value, color="0.4", linestyle=style, linewidth=0.9, label=name)
    left.set_yscale("symlog", linthresh=1.0)
    left.set(xlabel="step", ylabel="error of log Z (nats)", title=title)
    left.legend(fontsize="small", frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17))
    errors = {name: runs.means for name, runs in found.items()}
    pictures.mean_errors(
        errors, lines={name: value for name, (_, value) in lines.items()}, colours=list(colours.values()), ax=right
    )
    return fig


def _spread(values: np.ndarray, form: str) -> str:
    return f"{np.median(values):{form}} ({values.min():{form}} to {values.max():{form}})"
