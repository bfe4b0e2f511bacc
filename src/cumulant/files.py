"""The one place that saves and loads: `.npz` with a JSON header, written whole or not at all, never a pickle.

A file holds named arrays and a header `{kind, format, version, settings, arrays}`. It is written under a temporary
name in the same folder, flushed to disk, and renamed: a process killed at any moment leaves the old file or the new
one.
"""

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cumulant._version import __version__
from cumulant.errors import FileFormatError

__all__ = ["Saved", "load", "save", "write_atomically"]

_HEADER = "__header__"
_FORMAT = 1


class Saved(NamedTuple):
    """What a file holds: its kind, its settings and its arrays, and the version of Cumulant that wrote it."""

    kind: str
    settings: dict[str, Any]
    arrays: dict[str, np.ndarray]
    version: str


def save(
    path: str | os.PathLike, kind: str, arrays: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> Path:
    """Write arrays and JSON-able settings to `path` (which gets the suffix `.npz` if it has none); returns the path.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(pathlib.Path(folder) / "model", "example", {"weights": [1.0, 2.0]}, {"l2": 0.1})
    ...     path.name, load(path, "example").settings
    ('model.npz', {'l2': 0.1})
    """
    path = Path(path)
    if not path.suffix:
        path = path.with_suffix(".npz")
    plain = {name: np.asarray(value) for name, value in arrays.items()}
    for name, value in plain.items():
        if value.dtype.hasobject:
            raise TypeError(f"array {name!r} of a {kind} holds Python objects, which would need a pickle")
        if name == _HEADER:
            raise ValueError(f"{_HEADER!r} is the name of the header: call the array something else")
    header = {
        "kind": kind,
        "format": _FORMAT,
        "version": __version__,
        "settings": dict(settings or {}),
        "arrays": sorted(plain),
    }
    text = json.dumps(header, allow_nan=True).encode()
    contents = {_HEADER: np.frombuffer(text, dtype=np.uint8), **plain}
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, **contents))
    return path


def write_atomically(path: str | os.PathLike, data: Any) -> None:
    """Write bytes, or what a function writes to the file it is given, under a temporary name; flush it, and rename."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as problem:  # it names the temporary file, of which the caller knows nothing
        raise type(problem)(problem.errno, problem.strerror, str(path)) from None
    try:
        os.chmod(temporary, _mode(path))
        with os.fdopen(handle, "wb") as file:
            data(file) if callable(data) else file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.replace(temporary, path)
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(path)) from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of the file that is there, or those of a new file: temporary ones are for the owner only."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def load(path: str | os.PathLike, kind: str | None = None) -> Saved:
    """Read a file written by `save`. With `kind` given, a file of another kind is refused.

    Raises `FileFormatError` for a foreign, truncated or corrupt file, and for one written in a newer format.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:  # a failing np.load closes nothing
            if not isinstance(archive, np.lib.npyio.NpzFile) or _HEADER not in archive.files:
                raise FileFormatError(f"{path} is not a Cumulant file: it has no header")
            header = json.loads(bytes(archive[_HEADER]).decode())
            arrays = {name: archive[name] for name in archive.files if name != _HEADER}
    except FileFormatError:
        raise
    except (
        ValueError,
        OSError,
        EOFError,
        KeyError,
        TypeError,
        zipfile.BadZipFile,
        zlib.error,
        RuntimeError,  # of zipfile: a compression it has not, or a flipped bit that says the file is encrypted
    ) as problem:
        reason = str(problem) if zipfile.is_zipfile(path) else "it is not a .npz archive"
        if "pickle" in reason:  # NumPy advises to load it without safeguards
            reason = "it holds Python objects, which are never loaded"
        raise FileFormatError(f"{path} cannot be read: it is corrupt or not a Cumulant file ({reason})") from problem
    if not isinstance(header, dict) or not {"kind", "format", "settings", "arrays"} <= header.keys():
        raise FileFormatError(f"{path} has a header that Cumulant did not write")
    if header["format"] > _FORMAT:
        raise FileFormatError(
            f"{path} was written by cumulant {header.get('version')}, in a newer format than {__version__} reads"
        )
    if sorted(arrays) != header["arrays"]:
        raise FileFormatError(
            f"{path} is corrupt: it should hold the arrays {header['arrays']} and holds {sorted(arrays)}"
        )
    if kind is not None and header["kind"] != kind:
        raise FileFormatError(f"{path} holds a {header['kind']}, not a {kind}")
    return Saved(header["kind"], header["settings"], arrays, header.get("version", ""))
