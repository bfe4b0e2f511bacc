"""Figures 3.13 and 3.14 with as many components as populations."""

from cumulant.experiments._population_agreement import SOURCE, agreement
from cumulant.experiments.base import Report, experiment

TITLE = "Population structure, K = 4 for four populations: agreement of trials by chains, annealing, particles"

__all__ = ["SOURCE", "TITLE", "run"]


@experiment
def run(quick: bool, rng: int) -> Report:
    """Mutation rate 1/2."""
    return agreement("admixture-agreement-four", 4, 0.5, quick, rng)
