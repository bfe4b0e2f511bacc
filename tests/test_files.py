"""Saving and loading: whole or not at all, never a pickle, and clear about what it was given."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cumulant import files
from cumulant.errors import FileFormatError


def test_what_is_saved_is_loaded(tmp_path):
    arrays = {"weights": np.arange(6.0).reshape(2, 3), "labels": np.array(["a", "bc"]), "counts": np.arange(3)}
    path = files.save(tmp_path / "model", "chain", arrays, {"l2": 0.1, "names": ["x"], "limit": float("inf")})
    assert path.name == "model.npz"
    saved = files.load(path, "chain")
    assert saved.kind == "chain"
    assert saved.settings == {"l2": 0.1, "names": ["x"], "limit": float("inf")}
    for name, value in arrays.items():
        np.testing.assert_array_equal(saved.arrays[name], value)
        assert saved.arrays[name].dtype == value.dtype
    assert os.listdir(tmp_path) == ["model.npz"], "no temporary file is left"


def test_objects_are_refused_because_they_would_need_a_pickle(tmp_path):
    with pytest.raises(TypeError, match="would need a pickle"):
        files.save(tmp_path / "m", "chain", {"bad": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="name of the header"):
        files.save(tmp_path / "m", "chain", {"__header__": np.ones(1)})
    with pytest.raises(TypeError):
        files.save(tmp_path / "m", "chain", {}, {"bad": object()})
    assert os.listdir(tmp_path) == []


def test_a_file_of_another_kind_or_version_is_refused(tmp_path):
    path = files.save(tmp_path / "m", "chain", {})
    with pytest.raises(FileFormatError, match="holds a chain, not a grid"):
        files.load(path, "grid")
    header = json.dumps({"kind": "chain", "format": 99, "settings": {}, "arrays": [], "version": "9.0"}).encode()
    np.savez(path, __header__=np.frombuffer(header, dtype=np.uint8))
    with pytest.raises(FileFormatError, match=r"written by cumulant 9\.0, in a newer format"):
        files.load(path)
    np.savez(path, __header__=np.frombuffer(b'{"a": 1}', dtype=np.uint8))
    with pytest.raises(FileFormatError, match="a header that Cumulant did not write"):
        files.load(path)


def test_foreign_missing_and_corrupt_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nothing\.npz"):
        files.load(tmp_path / "nothing.npz")
    foreign = tmp_path / "foreign.npz"
    np.savez(foreign, a=np.ones(2))
    with pytest.raises(FileFormatError, match="no header"):
        files.load(foreign)
    single = tmp_path / "single.npy"
    np.save(single, np.ones(2))
    with pytest.raises(FileFormatError, match="not a Cumulant file"):
        files.load(single)
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, a=np.array([{}], dtype=object), __header__=np.frombuffer(b"{}", dtype=np.uint8))
    with pytest.raises(FileFormatError):
        files.load(pickled)


def test_no_truncation_or_flipped_byte_goes_unnoticed_or_crashes(tmp_path):
    path = files.save(tmp_path / "m", "chain", {"a": np.arange(50.0)}, {"x": 1})
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileFormatError):
            files.load(path)
    rng = np.random.default_rng(0)
    unharmed = 0
    for _ in range(200):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(broken))
        try:
            saved = files.load(path)
        except FileFormatError:
            continue
        # A flip in the padding or the time stamps of the archive harms nothing; the arrays carry a checksum.
        assert saved.settings == {"x": 1}
        np.testing.assert_array_equal(saved.arrays["a"], np.arange(50.0))
        unharmed += 1
    assert unharmed < 100


def test_a_process_killed_while_writing_leaves_a_loadable_file(tmp_path):
    path = tmp_path / "m.npz"
    files.save(path, "counter", {"a": np.full(200_000, -1.0)}, {"i": -1})
    code = (
        "import sys, numpy as np\nfrom cumulant import files\n"
        "print('ready', flush=True)\n"
        "for i in range(10**9): files.save(sys.argv[1], 'counter', {'a': np.full(200_000, float(i))}, {'i': i})"
    )
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05 + 0.2 * rng.uniform())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        saved = files.load(path, "counter")
        assert np.all(saved.arrays["a"] == saved.settings["i"])
        seen.add(saved.settings["i"])
    assert max(seen) > 0, "the children did write"


def test_a_file_gets_the_permissions_of_any_new_file_and_keeps_those_it_had(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    path = files.save(tmp_path / "m", "chain", {})
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    files.save(path, "chain", {})
    assert path.stat().st_mode & 0o777 == 0o600
