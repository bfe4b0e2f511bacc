"""Seconds until the first answer of a new installation, where nothing has been compiled yet.

Each call is a process of its own: first with empty folders for what Numba and JAX compile, then again with what the
first left there. Counted is the CPU time of the whole process, imports too, on one core; `bar` is what is promised for
an empty folder.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from benchmarks.timing import Row

_GRID = "from cumulant.graphical import Ising, grid\nmodel = Ising(grid(6, 6), 0.3, 0.1)\n"
_CALLS = {  # name: (code, seconds promised)
    "log_partition of a 6x6 grid": (_GRID + "model.log_partition()", 8.0),
    "marginals of a 6x6 grid": (_GRID + "model.marginals()", 8.0),
    "ChainCRF.fit": (
        "from cumulant.sequences import ChainCRF\n"
        "ChainCRF().fit([[{'the': 1.0}, {'dog': 1.0}], [{'a': 1.0}, {'cat': 1.0}]], [['D', 'N'], ['D', 'N']])",
        8.0,
    ),
    "GLM.fit": (
        "import numpy as np\nfrom cumulant.glm import GLM\n"
        "X = np.random.default_rng(0).normal(size=(200, 5))\nGLM().fit(X, X[:, 0])",
        3.0,
    ),
    "Gamma.estimate": (
        "import numpy as np\nfrom cumulant import families\n"
        "families.Gamma().estimate(np.random.default_rng(0).gamma(2.0, size=200))",
        3.0,
    ),
}
_WARM = 3.0  # seconds promised for the second process


@dataclass(frozen=True)
class Spent:
    """What a process took, in seconds."""

    cpu: float
    wall: float


def run() -> list[Row]:
    rows = []
    for name, (code, promised) in _CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = spent(code, folder), spent(code, folder)
        rows += [_row(f"{name}, nothing compiled", cold, promised), _row(f"{name}, compiled before", warm, _WARM)]
    return rows


def spent(code: str, folder: str) -> Spent:
    """The time of a new process that keeps what it compiles in `folder`."""
    places = {"NUMBA_CACHE_DIR": "numba", "JAX_COMPILATION_CACHE_DIR": "jax", "XDG_CACHE_HOME": "home"}
    environment = os.environ | {name: os.path.join(folder, place) for name, place in places.items()}
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Spent(cpu, time.perf_counter() - start)


def _row(name: str, found: Spent, promised: float) -> Row:
    ratio = promised / found.cpu
    row = Row(name, f"promised; {found.wall:.1f} s by the clock", found.cpu, promised, ratio, (ratio, ratio), 1.0)
    print(row, flush=True)
    return row
