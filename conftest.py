"""Test settings: programs that JAX compiles are kept between runs, in `.jax_cache`; Ctrl-C is heard."""

import signal
from pathlib import Path

import jax

jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# Shells start background jobs with Ctrl-C ignored; the tests of interrupted runs, and their children, are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)
