"""Figures 3.13 and 3.14 with fewer components than populations: where chains merge different pairs of them."""

from cumulant.experiments._population_agreement import SOURCE, agreement
from cumulant.experiments.base import Report, experiment

TITLE = "Population structure, K = 3 for four populations: agreement of trials by chains, annealing, particles"

__all__ = ["SOURCE", "TITLE", "run"]


@experiment
def run(quick: bool, rng: int) -> Report:
    """Mutation rate 2."""
    return agreement("admixture-agreement", 3, 2.0, quick, rng)
