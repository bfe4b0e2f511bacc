"""`cumulant warm-up`: compile what first calls need, so that an image or a CI job does it once."""

import time
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

import cumulant
from cumulant import families, kernels
from cumulant.glm import GLM
from cumulant.graphical import Ising, grid
from cumulant.graphical.exact.order_kernels import cost_of_order
from cumulant.sequences import ChainCRF


def show(console: Console | None = None) -> None:
    """Make the first calls, and print how long each took and where the results are kept."""
    console = console or Console(soft_wrap=True)
    start = time.perf_counter()
    for name, call in _CALLS.items():
        before = time.perf_counter()
        call()
        console.print(f"{name:36s} {time.perf_counter() - before:6.1f} s")
    console.print(f"{'together':36s} {time.perf_counter() - start:6.1f} s")
    console.print(f"kernels are kept in: {_kernels() or 'no folder, as none can be written: set NUMBA_CACHE_DIR'}")
    programs = jax.config.values["jax_compilation_cache_dir"]
    console.print(f"JAX programs are kept in: {programs or 'no folder: set JAX_COMPILATION_CACHE_DIR'}")


def _kernels() -> str | None:
    folder, package = kernels.cache_folder(cost_of_order), Path(cumulant.__file__).parent
    if folder is None:
        return None
    return f"{package}, in __pycache__" if package in folder.parents else str(folder.parent)


def _exact_inference() -> None:
    model = Ising(grid(6, 6), 0.3, 0.1)
    model.log_partition()
    model.marginals()
    model.map()
    model.sample(2, rng=0)


def _tagging() -> None:
    words, tags = [[{"the": 1.0}, {"dog": 1.0}], [{"a": 1.0}, {"cat": 1.0}]], [["D", "N"], ["D", "N"]]
    ChainCRF().fit(words, tags).predict(words)


def _regression() -> None:
    X = np.random.default_rng(0).normal(size=(200, 5))
    for family, y in (("normal", X[:, 0]), ("bernoulli", X[:, 0] > 0.1), ("poisson", np.abs(X[:, 0]).round())):
        for l1 in (0.0, 0.01):
            GLM(family, l1=l1).fit(X, y)


def _estimate() -> None:
    families.Gamma().estimate(np.random.default_rng(0).gamma(2.0, size=200))


_CALLS = {
    "exact inference (graphical)": _exact_inference,
    "tagging (sequences.ChainCRF)": _tagging,
    "regression (glm.GLM)": _regression,
    "estimates (families)": _estimate,
}
