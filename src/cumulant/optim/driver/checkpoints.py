"""Runs that survive their process: the whole position of a run in one file, written whole or not at all.

A checkpoint holds the solver's state (with whatever randomness it uses), the best recorded state and the trace. It is
tied to the problem, the solver, the starting point and the seed by their fingerprints: a checkpoint of anything else
is refused.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import checks, files
from cumulant.errors import FileFormatError

_KIND = "optimisation run"


@dataclass(frozen=True)
class Checkpoint:
    """Where, and how often, a run is saved.

    Parameters
    ----------
    path : path
        The file; it gets the suffix ``.npz`` if it has none. If it exists, the run is resumed.
    seconds : float
        The least time between two saves while the run goes on (0: after every compiled call or host step). It is
        saved once more when it ends, also by Ctrl-C or by the clock.

    Examples
    --------
    >>> Checkpoint("night", seconds=600).file.name
    'night.npz'
    """

    path: str | os.PathLike
    seconds: float = 60.0

    def __post_init__(self):
        if not checks.number("seconds", self.seconds) >= 0:
            raise ValueError(f"seconds, the time between two saves, must not be negative; got {self.seconds}")

    @property
    def file(self) -> Path:
        """The path with its suffix."""
        path = Path(self.path)
        return path if path.suffix else path.with_suffix(".npz")


@dataclass(frozen=True)
class Position:
    """All that is needed to resume a run as if it had never stopped."""

    state: list
    best: list
    trace: Mapping[str, np.ndarray]
    steps: int
    seconds: float
    scale: float
    patience: float
    still: float


_NUMBERS = ("steps", "seconds", "scale", "patience", "still")


def save(checkpoint: Checkpoint, position: Position, identity: Mapping[str, str]) -> None:
    """Write the position of the run that `identity` describes."""
    arrays: dict[str, Any] = {}
    generators = {}
    for group, leaves in (("state", position.state), ("best", position.best)):
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, np.random.Generator):
                generators[f"{group}/{i}"] = _plain(leaf.bit_generator.state)
            else:
                arrays[f"{group}/{i}"] = leaf
    arrays |= {f"trace/{name}": column for name, column in position.trace.items()}
    settings = {
        "identity": dict(identity),
        "generators": generators,
        "counts": {"state": len(position.state), "best": len(position.best)},
        **{name: getattr(position, name) for name in _NUMBERS},
    }
    files.save(checkpoint.file, _KIND, arrays, settings)


def load(checkpoint: Checkpoint, identity: Mapping[str, str]) -> Position | None:
    """The position in the file, or None if there is no file; a file of another run is refused."""
    path = checkpoint.file
    # A process killed in the middle of a write leaves its unfinished copy behind.
    for part in path.parent.glob(f".{path.name}.*.part"):
        part.unlink(missing_ok=True)
    if not path.exists():
        return None
    saved = files.load(path, _KIND)
    theirs = saved.settings["identity"]
    for what, mine in identity.items():
        if theirs.get(what) != mine:
            raise FileFormatError(
                f"{path} is the checkpoint of a run with another {what}: delete it, choose another path, or run "
                f"what it was made for ({what} {theirs.get(what)} there, {mine} here)"
            )
    generators, counts = saved.settings["generators"], saved.settings["counts"]

    def leaves(group: str) -> list:
        names = [f"{group}/{i}" for i in range(counts[group])]
        return [_generator(generators[name]) if name in generators else saved.arrays[name] for name in names]

    columns = {name.removeprefix("trace/"): array for name, array in saved.arrays.items() if name.startswith("trace/")}
    return Position(leaves("state"), leaves("best"), columns, **{name: saved.settings[name] for name in _NUMBERS})


def _plain(state: Any) -> Any:
    """The state of a bit generator as JSON can hold it."""
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items()}
    if isinstance(state, np.ndarray):
        return {"array": state.tolist(), "dtype": state.dtype.str}
    return state.item() if isinstance(state, np.generic) else state


def _generator(plain: Mapping[str, Any]) -> np.random.Generator:
    def back(value):
        if isinstance(value, dict) and set(value) == {"array", "dtype"}:
            return np.array(value["array"], dtype=value["dtype"])
        return {name: back(each) for name, each in value.items()} if isinstance(value, dict) else value

    known = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}
    if plain["bit_generator"] not in known:
        raise FileFormatError(f"the checkpoint uses an unknown bit generator, {plain['bit_generator']!r}")
    bits = getattr(np.random, plain["bit_generator"])()
    bits.state = back(plain)
    return np.random.Generator(bits)
