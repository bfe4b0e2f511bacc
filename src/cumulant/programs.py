"""Programs compiled by JAX, kept on disk between processes.

JAX keeps compiled programs on disk where it is told a folder (``JAX_COMPILATION_CACHE_DIR``), for all programs of the
process. Here they are kept for the programs of this library alone: while one of them may be compiled (`kept_on_disk`),
JAX looks them up in a folder of ours, and no setting of JAX changes. A user's own folder has precedence.

The folder is ``cumulant/jax-...`` below the user's cache folder, named after the versions and the machine, so that no
program is loaded that was compiled for another. ``CUMULANT_CACHE_DIR`` puts it elsewhere; ``CUMULANT_CACHE_DIR=off``
keeps nothing. Entries carry a checksum and are renamed into place: whatever several processes write at once, or a
killed one leaves behind, is a program compiled again. Where the folder cannot be written, nothing is kept.
"""

import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import jax

try:  # not public: where a version of JAX has moved them, programs are not kept
    from jax._src import compilation_cache, config
    from jax._src.compilation_cache_interface import CacheInterface

    _SHORTEST = config.persistent_cache_min_compile_time_secs
    _SUPPORTED = hasattr(compilation_cache, "_cache") and hasattr(compilation_cache, "_get_cache")
except (ImportError, AttributeError):
    compilation_cache: Any = None
    CacheInterface, _SUPPORTED = object, False

__all__ = ["folder", "kept_on_disk"]

_SECONDS = 0.05  # programs that compile in less are not kept
_MOST_BYTES = 512 * 2**20
_CHECKSUM = 32


class _Folder(CacheInterface):  # type: ignore[misc, valid-type]
    """What JAX asks of a cache: `get` and `put`. No failure of the file system is an error."""

    def __init__(self, path: Path):
        self._path = path
        self._pruned = False

    def get(self, key: str) -> bytes | None:
        path = self._path / key
        try:
            entry = path.read_bytes()
            if hashlib.sha256(entry[_CHECKSUM:]).digest() != entry[:_CHECKSUM]:
                return None
            os.utime(path)  # the least recently used are deleted first
        except OSError:
            return None
        return entry[_CHECKSUM:]

    def put(self, key: str, value: bytes) -> None:
        try:
            handle, temporary = tempfile.mkstemp(dir=self._path, prefix=".", suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(value).digest() + value)
                os.replace(temporary, self._path / key)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            if not self._pruned:
                self._pruned = True
                self._prune()
        except OSError:
            return

    def _prune(self) -> None:
        """Once in a process: delete what was not used for longest, where there is too much."""
        entries = sorted(((each.stat(), each) for each in self._path.iterdir()), key=lambda pair: -pair[0].st_mtime)
        total = 0
        for status, path in entries:
            total += status.st_size
            if total > _MOST_BYTES:
                path.unlink(missing_ok=True)


def folder() -> Path | None:
    """Where programs are kept; None where they are not.

    >>> import os
    >>> os.environ.get("JAX_COMPILATION_CACHE_DIR") is None or folder() is None
    True
    """
    settings: Any = jax.config
    if not _SUPPORTED or settings.jax_compilation_cache_dir or not settings.jax_enable_compilation_cache:
        return None
    cache = _cache(os.environ.get("CUMULANT_CACHE_DIR", ""))
    return None if cache is None else cache._path


@functools.cache
def _cache(setting: str) -> Any:
    if setting.lower() == "off":
        return None
    path = (Path(setting) if setting else _user_cache() / "cumulant") / f"jax-{_machine()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return _Folder(path)
    except OSError:
        return None


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _machine() -> str:
    """A name for the versions of JAX and the instructions of the processor, for which programs are compiled."""
    words = [
        jax.__version__,
        importlib.metadata.version("jaxlib"),
        sys.platform,
        platform.machine(),
        platform.processor(),
    ]
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            words += [line for line in file if line.startswith(("flags", "Features"))][:1]
    except OSError:
        pass
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


class kept_on_disk:  # noqa: N801
    """A context in which programs that JAX compiles are kept in `folder`.

    Other threads may compile meanwhile: what they do is kept too, and is right for them as well. When the last thread
    leaves, JAX has the cache it had before.
    """

    _lock = threading.Lock()
    _inside = 0
    _before: Any = None

    def __enter__(self):
        self._shortest = None
        if folder() is None:
            return
        cls = kept_on_disk
        with cls._lock:
            if cls._inside == 0:
                cls._before = compilation_cache._cache
                compilation_cache._cache = _cache(os.environ.get("CUMULANT_CACHE_DIR", ""))
            cls._inside += 1
        self._shortest = _SHORTEST(_SECONDS)
        self._shortest.__enter__()

    def __exit__(self, *problem):
        if self._shortest is None:
            return
        self._shortest.__exit__(*problem)
        cls = kept_on_disk
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0:
                compilation_cache._cache, cls._before = cls._before, None
