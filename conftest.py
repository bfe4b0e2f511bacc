"""Test settings: programs that JAX compiles are kept in `.jax_cache`; BLAS has one thread; Ctrl-C is heard."""

import gc
import os
import signal
import sys
from pathlib import Path

# Compiling is what the tests cost. What one worker has compiled the others read, and so do the processes that tests
# start: hence variables of the environment, set before JAX is loaded. Small programs too: nine in ten
# compile in less than a tenth of a second, and two files of tests took 27 CPU seconds again without them, 12 with them.
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(__file__).parent / ".jax_cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# Where in the source each operation comes from is a tenth of the time, and of no use: programs stay what they are.
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"

import jax
import scipy.linalg  # noqa: F401  (so that its BLAS is there to be limited)
from threadpoolctl import threadpool_limits

# A plug-in may have loaded JAX before.
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_traceback_in_locations_limit", 0)

# Tests run on every core already: on top of that the threads of BLAS would only wait for each other.
threadpool_limits(1, user_api="blas")

# Shells start background jobs with Ctrl-C ignored; the tests of interrupted runs, and their children, are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)


_MAPS = Path("/proc/self/maps")
_MOST_MAPS = 40_000  # the kernel allows 65,530 to a process; a compiled program has 3 to 170, a file of tests 17,000


def pytest_runtest_teardown(item, nextitem):
    """Forget Ctrl-C, so that another test has a first one; between files, compiled programs if there are many."""
    interruption = sys.modules.get("cumulant.optim.driver.interruption")
    if interruption is not None:
        interruption.LastInterruption.forget()
    moves_on = nextitem is None or nextitem.fspath != item.fspath
    if moves_on and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


def pytest_collection_finish():
    """What has been imported and collected stays: the garbage collector need not look at it over and over."""
    gc.collect()
    gc.freeze()
