"""Figure 3.12 for simulated populations with mutation rate 5: many alleles."""

from cumulant.experiments._population_study import SOURCE, study
from cumulant.experiments.base import Report, experiment

TITLE = "Population structure, mutation rate 5: variance over trials for every number of populations"

__all__ = ["SOURCE", "TITLE", "run"]


@experiment
def run(quick: bool, rng: int) -> Report:
    """From two to six populations."""
    return study(5.0, quick, rng)
