"""Test settings: programs that JAX compiles are kept between runs, in `.jax_cache`."""

from pathlib import Path

import jax

jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parent / ".jax_cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
