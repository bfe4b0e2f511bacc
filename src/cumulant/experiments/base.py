"""What an experiment is: a published figure or table, our run of it, and a verdict on each claim."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Claim", "Experiment", "Report", "catalogue", "find"]

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


def catalogue() -> dict[str, Experiment]:
    """Every experiment by name. Each module of this package with a `run` is one; its name has dashes for
    underscores.
    """
    package = importlib.import_module("cumulant.experiments")
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        if info.name == "base" or info.name.startswith("_"):
            continue
        module = importlib.import_module(f"cumulant.experiments.{info.name}")
        name = info.name.replace("_", "-")
        found[name] = Experiment(name, module.TITLE, module.SOURCE, module.run)
    return found


def find(name: str) -> Experiment:
    """The experiment of that name; an unknown name is an error that lists the known ones."""
    known = catalogue()
    if name not in known:
        raise ValueError(f"no experiment is called {name!r}; there are: {', '.join(known)}")
    return known[name]
