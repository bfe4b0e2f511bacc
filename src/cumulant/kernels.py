"""The one decorator for compiled loops.

Kernels take flat arrays and know nothing of models, options or errors. They release the GIL, so that a thread pool over
fixed chunks uses every core, and are cached on disk where a directory can be written. `parallel=True` is never used:
its reductions change with the number of threads.
"""

import functools
from collections.abc import Callable
from typing import Any

import numba

__all__ = ["kernel"]


def kernel(function: Callable | None = None, *, inline: bool = False, fastmath: bool | set[str] = False) -> Any:
    """Compile `function` with Numba: cached on disk, GIL released, strict arithmetic unless `fastmath` (all of
    it, or the named freedoms of LLVM) is asked for.

    >>> @kernel
    ... def total(values):
    ...     s = 0.0
    ...     for v in values:
    ...         s += v
    ...     return s
    >>> import numpy as np
    >>> total(np.ones(3))
    3.0
    """
    if function is None:
        return functools.partial(kernel, inline=inline, fastmath=fastmath)
    # NumPy's rule for division by zero: Python's would put a test for an exception into every loop, and keep it scalar.
    # What a kernel calls is put into it (LLVM's alwaysinline). Else each caller has a copy, optimised its own way, the
    # first that a process loads serves all of them, and the last bits depend on what the process did before.
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "inline": "always" if inline else "never",
        "forceinline": True,
    }
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no locator: neither __pycache__ nor the user's cache directory can be written
        return numba.njit(**options)(function)
