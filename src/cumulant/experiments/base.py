"""What an experiment is: a published figure or table, our run of it, and a verdict on each claim."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cumulant.plotting import legend, save

Verdict = Literal["reproduced", "corrected", "true, not tight", "not reproduced"]


@dataclass(frozen=True)
class Claim:
    """One published claim, our number, and the verdict.

    `corrected` means that the claim is wrong as printed and holds in a corrected form, which `statement` gives; `true,
    not tight` that it holds, and a better one holds too. `item` is the source's own label ("Theorem 5.2", "(4.48)",
    "Figure 3.5"), `spread` how much our number varies (over seeds, problems, runs).
    """

    statement: str
    published: str
    ours: str
    verdict: Verdict
    item: str = ""
    spread: str = ""


@dataclass(frozen=True)
class Report:
    """What a run of an experiment found: a verdict on each claim, how to draw it, and the pictures that were written.

    `draw` returns a figure, or several by name.
    """

    claims: Sequence[Claim]
    draw: Callable[[], Any] | None = None
    notes: str = ""
    pictures: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A published figure or table that can be run again: `run(output, quick, rng)` writes pictures below `output`.

    `output=None` draws nothing (matplotlib is then not needed); `quick=True` is a smaller version for the tests.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Report]


def experiment(body: Callable[[bool, Any], Report]) -> Callable[..., Report]:
    """Decorator: ``run(output=None, quick=False, rng=0)`` from a function of `quick` and `rng`.

    Where there is an `output`, the figure of the report is drawn and written there, under the name of the experiment.
    In a figure without a legend, all axes with labelled curves get one.
    """

    @functools.wraps(body)
    def run(output: Any = None, quick: bool = False, rng: Any = 0) -> Report:
        report = body(quick, rng)
        report = replace(report, claims=tuple(report.claims))
        if output is None or report.draw is None:
            return report
        drawn = report.draw()
        if not isinstance(drawn, dict):
            drawn = {_name(body.__module__.rpartition(".")[2]): drawn}
        for figure in drawn.values():
            if not figure.legends and all(ax.get_legend() is None for ax in figure.axes):
                for ax in figure.axes:
                    if ax.get_legend_handles_labels()[0]:
                        legend(ax)
        pictures = tuple(save(figure, Path(output) / f"{name}.png") for name, figure in drawn.items())
        return replace(report, pictures=pictures)

    return run


def verdict(holds: Any, *, corrected: bool = False, loose: bool = False) -> Verdict:
    """``"reproduced"`` where the check holds; ``"corrected"`` for a claim that is false as printed, in the form that
    holds; ``"true, not tight"`` for one that holds and can be improved.
    """
    if not bool(holds):
        return "not reproduced"
    return "corrected" if corrected else "true, not tight" if loose else "reproduced"


def claim(
    item: str,
    statement: str,
    published: str,
    ours: str,
    holds: Any,
    *,
    corrected: bool = False,
    loose: bool = False,
    spread: str = "",
) -> Claim:
    """A claim with the verdict of its check.

    >>> claim("Proposition 1", "tangents are below", "stated", "in 10 of 10", True).verdict
    'reproduced'
    """
    return Claim(statement, published, ours, verdict(holds, corrected=corrected, loose=loose), item, spread)


def listed(values: Any, form: str | None = None) -> str:
    """Numbers with commas between them, each after its name where they have names.

    Without a format, three decimals, and the order of magnitude from 100 on.

    >>> listed([0.5, 1e4]), listed({"SGD": 0.25, "SAG": 0.125}, ".2f")
    ('0.500, 1e+04', 'SGD 0.25, SAG 0.12')
    """
    named = values.items() if isinstance(values, dict) else (("", value) for value in values)
    return ", ".join(f"{name} {value:{form or ('.3f' if value < 100 else '.0e')}}".lstrip() for name, value in named)


def _name(module: str) -> str:
    return module.replace("_", "-")


def names() -> list[str]:
    """The names of all experiments. Each public module of this package is one; its name has dashes for underscores."""
    found = (info.name for info in pkgutil.iter_modules(importlib.import_module("cumulant.experiments").__path__))
    return [_name(name) for name in found if name != "base" and not name.startswith("_")]


def catalogue() -> dict[str, Experiment]:
    """Every experiment by name; this imports them all."""
    return {name: find(name) for name in names()}


def find(name: str) -> Experiment:
    """The experiment of that name, the only one imported; an unknown name is an error that lists the known ones."""
    if name not in names():
        raise ValueError(f"no experiment is called {name!r}; there are: {', '.join(names())}")
    module = importlib.import_module(f"cumulant.experiments.{name.replace('-', '_')}")
    return Experiment(name, module.TITLE, module.SOURCE, module.run)
