"""The one loop: `run` with its engines, trace, checkpoints, progress bar and result."""
