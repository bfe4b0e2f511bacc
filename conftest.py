"""Test settings: programs that JAX compiles are kept in `.jax_cache`; BLAS has one thread; Ctrl-C is heard."""

import signal
from pathlib import Path

import jax
import scipy.linalg  # noqa: F401  (so that its BLAS is there to be limited)
from threadpoolctl import threadpool_limits

jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# Tests run on every core already: on top of that the threads of BLAS would only wait for each other.
threadpool_limits(1, user_api="blas")

# Shells start background jobs with Ctrl-C ignored; the tests of interrupted runs, and their children, are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)
