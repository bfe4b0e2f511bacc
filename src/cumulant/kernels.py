"""The one decorator for compiled loops.

Kernels take flat arrays and know nothing of models, options or errors. They release the GIL, so that a thread pool over
fixed chunks uses every core, and are cached on disk where a directory can be written. `parallel=True` is never used:
its reductions change with the number of threads.

Compiling takes seconds, once per installation. What makes it longer: wrappers for callers that do not exist
(`called_by` says which do), slices, array expressions and NumPy functions inside of a kernel (each is a program of its
own, a loop is not), and arrays made inside of it rather than by the caller. A flag that chooses between two large
parts is better an argument that may be None: Numba compiles only the part that the type of the argument leaves.
"""

import functools
import gc
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numba
import numpy as np
from numba.core import event

try:
    from cumulant.kernel_compiler import KernelCompiler, PartCompiler
except (ImportError, AttributeError):  # a version of Numba that it does not know
    _COMPILERS: dict[str, Any] = {}
else:
    _COMPILERS = {"python": KernelCompiler, "both": KernelCompiler, "kernels": PartCompiler}

__all__ = ["InterpretedFirst", "cache_folder", "kernel"]

_PATIENCE = 1.0  # seconds of compiling before the terminal says so
_INTERPRETED = 0.1  # seconds of a process that a kernel may be interpreted


def kernel(
    function: Callable | None = None,
    *,
    called_by: Literal["python", "kernels", "both"] = "both",
    inline: bool = False,
    fastmath: bool | set[str] = False,
) -> Any:
    """Compile `function` with Numba: cached on disk, GIL released, strict arithmetic unless `fastmath` (all of
    it, or the named freedoms of LLVM) is asked for.

    `called_by` says who calls it. A kernel that only kernels call has no wrapper: calling it from Python ends the
    process. One that only Python calls is compiled once instead of twice. With `inline` its source is put into its
    callers, whose `fastmath` then holds for it too: for a few lines that are called at one or two places.

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
        return functools.partial(kernel, called_by=called_by, inline=inline, fastmath=fastmath)
    # NumPy's rule for division by zero: Python's would put a test for an exception into every loop, and keep it scalar.
    # What a kernel calls is put into it (LLVM's alwaysinline). Else each caller has a copy, optimised its own way, the
    # first that a process loads serves all of them, and the last bits depend on what the process did before. A kernel
    # that only Python calls is spared that: its wrapper would hold a second copy of everything.
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "inline": "always" if inline else "never",
        "forceinline": called_by != "python",
        "no_cpython_wrapper": called_by == "kernels",
        "no_cfunc_wrapper": True,
    }
    if _COMPILERS:
        options["pipeline_class"] = _COMPILERS[called_by]
        if called_by == "kernels":  # nothing that could be kept: its callers, which hold it, are
            return numba.njit(**options)(function)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no locator: neither __pycache__ nor the user's cache directory can be written
        return numba.njit(**options)(function)


class InterpretedFirst:
    """A kernel that Python interprets, with the kernels that it calls, for the first tenth of a second in a process.

    Compiling it takes longer than all the work that most programs have for it. The answers must be the same either way:
    whole numbers, and sums and products of floating-point numbers without `fastmath`. The first argument of a call says
    whether the work is so small that interpreting it takes milliseconds.

    >>> @kernel
    ... def total(values):
    ...     s = 0.0
    ...     for v in values:
    ...         s += v
    ...     return s
    >>> float(InterpretedFirst(total)(True, np.ones(3))), total.signatures
    (3.0, [])
    """

    def __init__(self, compiled: Any):
        self.compiled = compiled
        self._left = _INTERPRETED

    def __call__(self, small: bool, *arguments: Any) -> Any:
        """Its answer."""
        if not small or self._left < 0.0:
            return self.compiled(*arguments)
        began = time.thread_time()
        with np.errstate(over="ignore"):  # whole numbers wrap round, as they do in machine code
            answer = self._interpreted(*arguments)
        self._left -= time.thread_time() - began
        return answer

    @functools.cached_property
    def _interpreted(self) -> Callable:
        return _interpreted(self.compiled)


def _interpreted(compiled: Any) -> Callable:
    code, names = compiled.py_func.__code__, compiled.py_func.__globals__
    called = {name: names[name] for name in code.co_names if isinstance(names.get(name), type(compiled))}
    return types.FunctionType(code, names | {name: _interpreted(one) for name, one in called.items()})


def cache_folder(compiled: Any) -> Path | None:
    """Where a kernel is kept on disk; None where no folder can be written."""
    path = compiled.stats.cache_path
    return None if path is None else Path(path)


class _Compiling(event.Listener):
    """What happens while kernels are compiled: a terminal is told once that it has taken a second, and the garbage
    collector waits, as it would look through millions of new objects again and again, a tenth of the time.
    """

    def __init__(self):
        self._depth, self._spent, self._began = 0, 0.0, 0.0
        self._timer: threading.Timer | None = None
        self._told = self._collects = False

    def on_start(self, event):
        """Compiling begins, of a kernel or of what it calls."""
        self._depth += 1
        if self._depth > 1:
            return
        self._collects = gc.isenabled()
        gc.disable()
        compiled = event.data["dispatcher"]
        ours = compiled.__module__.split(".")[0] == __name__.split(".")[0]
        if ours and not self._told and sys.stderr is not None and sys.stderr.isatty():
            self._began = time.perf_counter()
            self._timer = threading.Timer(max(_PATIENCE - self._spent, 0.0), self._tell, (compiled,))
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event):
        """It ends."""
        self._depth -= 1
        if self._depth > 0:
            return
        if self._collects:
            gc.enable()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._spent += time.perf_counter() - self._began

    def _tell(self, compiled):
        self._told = True
        kept = "once per installation" if cache_folder(compiled) else "in every process, as no folder can be written"
        print(f"cumulant: compiling, {kept}", file=sys.stderr, flush=True)


_compiling = _Compiling()
event.register("numba:compile", _compiling)
