"""What an experiment is: a published figure or table, our run of it, and a verdict on each claim."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["Claim", "Experiment", "Report", "catalogue", "find", "names", "verdict"]

Verdict = Literal["reproduced", "corrected", "not reproduced"]


@dataclass(frozen=True)
class Claim:
    """One published claim, our number, and the verdict.

    `corrected` means that the claim is wrong as printed and holds in a corrected form, which `statement` gives.
    """

    statement: str
    published: str
    ours: str
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """What a run of an experiment found: a verdict on each claim, and the pictures it wrote."""

    claims: tuple[Claim, ...]
    pictures: tuple[Path, ...] = ()
    notes: str = ""


@dataclass(frozen=True)
class Experiment:
    """A published figure or table that can be run again: `run(output, quick, rng)` writes pictures below `output`.

    `output=None` draws nothing (matplotlib is then not needed); `quick=True` is a smaller version for the tests.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Report]


def verdict(holds: Any, *, corrected: bool = False) -> Verdict:
    """``"reproduced"`` (``"corrected"`` for a claim in its corrected form) where the check holds."""
    if not bool(holds):
        return "not reproduced"
    return "corrected" if corrected else "reproduced"


def names() -> list[str]:
    """The names of all experiments. Each public module of this package is one; its name has dashes for underscores."""
    found = (info.name for info in pkgutil.iter_modules(importlib.import_module("cumulant.experiments").__path__))
    return [name.replace("_", "-") for name in found if name != "base" and not name.startswith("_")]


def catalogue() -> dict[str, Experiment]:
    """Every experiment by name; this imports them all."""
    return {name: find(name) for name in names()}


def find(name: str) -> Experiment:
    """The experiment of that name, the only one imported; an unknown name is an error that lists the known ones."""
    if name not in names():
        raise ValueError(f"no experiment is called {name!r}; there are: {', '.join(names())}")
    module = importlib.import_module(f"cumulant.experiments.{name.replace('-', '_')}")
    return Experiment(name, module.TITLE, module.SOURCE, module.run)
