"""Compiled programs are kept between processes, without a setting of JAX that a user would see."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import jax
import pytest

from cumulant import programs

SCRIPT = """
import sys
import numpy as np
import jax
from cumulant import programs
from cumulant.families import Exponential

programs._SECONDS = 0.0  # on a fast machine, all of these programs may compile in less than the usual limit
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
assert Exponential().quantile(0.5, [-1.0]) == np.log(2.0)
print(programs.folder() is not None, sum("cache_hits" in event for event in events))
assert jax.config.jax_compilation_cache_dir == (sys.argv[1] if len(sys.argv) > 1 else None)
assert jax.config.jax_persistent_cache_min_compile_time_secs == 1.0
assert jax._src.compilation_cache._cache is None or len(sys.argv) > 1
"""


def run(cache, *args, **environment):
    """Run the script in a fresh process, warnings as errors; whether programs are kept, and how many were read."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    settings = {**kept, "CUMULANT_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *args], env=settings, capture_output=True, text=True, check=True
    )
    keeps, hits = done.stdout.split()
    return keeps == "True", int(hits)


def test_the_second_process_reads_what_the_first_compiled_and_damaged_entries_are_compiled_again(tmp_path):
    assert run(tmp_path) == (True, 0)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert entries
    kept, hits = run(tmp_path)
    assert kept
    assert hits == len(entries)
    for path in entries:
        path.write_bytes(path.read_bytes()[:100])
    assert run(tmp_path) == (True, 0)
    assert run(tmp_path) == (True, hits)  # whole again


def test_a_folder_of_the_users_own_has_precedence_and_off_is_off(tmp_path):
    own = tmp_path / "own"
    assert run(tmp_path / "ours", str(own), JAX_COMPILATION_CACHE_DIR=str(own))[0] is False
    assert not (tmp_path / "ours").exists()
    assert run("off") == (False, 0)
    (tmp_path / "file").write_text("not a folder")
    assert run(tmp_path / "file") == (False, 0)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CUMULANT_CACHE_DIR", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    yield programs.folder()
    jax.config.update("jax_compilation_cache_dir", before)


def test_jax_has_its_own_cache_again_when_the_last_thread_leaves(kept):
    from jax._src import compilation_cache

    before = compilation_cache._cache
    assert kept is not None
    barrier, seen = threading.Barrier(4, timeout=30), []

    def work(i):
        with programs.kept_on_disk():
            barrier.wait()
            seen.append(compilation_cache._cache._path)
            with programs.kept_on_disk():
                seen.append(compilation_cache._cache._path)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [kept] * 8
    assert compilation_cache._cache is before


def test_entries_are_whole_or_absent(tmp_path, monkeypatch):
    cache = programs._Folder(tmp_path)
    assert cache.get("key") is None
    cache.put("key", b"program")
    assert cache.get("key") == b"program"
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])
    assert cache.get("key") is None
    entry.write_bytes(b"")
    assert cache.get("key") is None
    programs._Folder(Path(tmp_path / "absent")).put("key", b"program")  # no error
    # The least recently used are deleted once there is too much.
    monkeypatch.setattr(programs, "_MOST_BYTES", 150)
    for i, age in enumerate((30, 20, 10)):
        cache.put(f"old{i}", bytes(40))
        os.utime(tmp_path / f"old{i}", (1e9 - age, 1e9 - age))
    fresh = programs._Folder(tmp_path)
    fresh.put("new", bytes(40))
    assert fresh.get("new") == bytes(40)
    assert fresh.get("old0") is None
