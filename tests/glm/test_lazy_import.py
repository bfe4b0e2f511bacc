"""Importing the package loads nothing heavy; the names are there when they are asked for."""

import subprocess
import sys

from cumulant import glm

HEAVY = ("jax", "numba", "sklearn", "scipy", "pandas", "numpy")


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_the_package_loads_nothing_heavy():
    loaded = python("import sys, cumulant.glm; print(*sorted(m for m in sys.modules if '.' not in m))").split()
    assert not set(HEAVY) & set(loaded)


def test_every_public_name_is_there():
    assert set(glm.__all__) == set(glm._NAMES)
    assert set(glm.__all__) <= set(dir(glm))
    for name in glm.__all__:
        assert getattr(glm, name).__name__ == name


def test_a_name_that_is_not_there():
    assert not hasattr(glm, "GLMM")
