"""Families and their statistics in files: what `Statistics.save` and `StreamingMAP.save` share.

A family is written as the name of its class and its settings; its array constants are arrays of the file. Loading looks
the class up among those that are imported, so that a file can name a class but never run code.
"""

import dataclasses
from typing import Any

import numpy as np

from cumulant.errors import FileFormatError
from cumulant.families.base import Learnable


def describe(family: Learnable, prefix: str = "family") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The settings and the arrays that `restore` makes the family from."""
    settings: dict[str, Any] = {"class": _name(type(family))}
    arrays: dict[str, np.ndarray] = {}
    if not dataclasses.is_dataclass(family):
        own, arrays = family.description()
        return settings | own, {f"{prefix}.{name}": array for name, array in arrays.items()}
    for field in dataclasses.fields(family):
        value = getattr(family, field.name)
        if field.name == "parts":
            described = [describe(part, f"{prefix}.{i}") for i, part in enumerate(value)]
            settings["parts"] = [part for part, _ in described]
            arrays |= {name: array for _, part in described for name, array in part.items()}
        elif field.metadata.get("array"):
            arrays[f"{prefix}.{field.name}"] = np.asarray(value)
        else:
            settings[field.name] = value.item() if isinstance(value, np.generic) else value
    return settings, arrays


def restore(settings: dict[str, Any], arrays: dict[str, np.ndarray], prefix: str = "family") -> Any:
    """The family that `describe` described; `FileFormatError` if there is no such class or it refuses its settings."""
    settings = dict(settings)
    name = settings.pop("class", None)
    classes: dict[str | None, Any] = {_name(cls): cls for cls in _subclasses(Learnable)}
    if name not in classes:
        raise FileFormatError(f"the file holds statistics of {name}, a family that is not imported here")
    if "parts" in settings:
        settings["parts"] = tuple(restore(part, arrays, f"{prefix}.{i}") for i, part in enumerate(settings["parts"]))
    else:
        start = f"{prefix}."
        settings |= {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
    try:
        make: Any = classes[name] if dataclasses.is_dataclass(classes[name]) else classes[name].from_description
        return make(**settings)
    except (TypeError, ValueError) as problem:
        raise FileFormatError(f"the file describes a {name} that cannot be: {problem}") from problem


def _name(cls: type) -> str:
    return cls.__name__ if cls.__module__.startswith("cumulant.") else f"{cls.__module__}.{cls.__qualname__}"


def _subclasses(cls: type):
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
