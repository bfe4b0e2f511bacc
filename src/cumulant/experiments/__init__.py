"""Published figures and tables, run again: one file each, `cumulant reproduce NAME`.

A module here defines `TITLE`, `SOURCE` and a function of `quick` and `rng` that returns a `Report`: `base.experiment`
makes `run(output=None, quick=False, rng=0)` of it, which also writes the pictures.
"""

from cumulant.experiments.base import Claim, Experiment, Report, catalogue, find

__all__ = ["Claim", "Experiment", "Report", "catalogue", "find"]
