"""Published figures and tables, run again: one file each, `cumulant reproduce NAME`.

A module here defines `TITLE`, `SOURCE` and `run(output=None, quick=False, rng=0) -> Report`.
"""

from cumulant.experiments.base import Claim, Experiment, Report, catalogue, find

__all__ = ["Claim", "Experiment", "Report", "catalogue", "find"]
