"""People, an attribute and ties that influence each other: the contingently acyclic relational model.

`SocialInfluence` is the estimator, for graphs of networkx. Beneath it `Network` is a population, `SmokersModel` the
model with its fourteen probabilities: simulation, likelihood, and the posterior of who decides independently; `fit_em`
learns the probabilities, `sample_parameters` draws from their posterior, `loo_scores` predicts attributes and ties.
`Program` is the language that such models are written in. `MarkovLogic` is the log-linear model to compare with,
`evaluate` and `auc_difference` how.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cumulant.relational.annealing import sample_parameters
    from cumulant.relational.estimator import SocialInfluence
    from cumulant.relational.evaluation import (
        Estimate,
        Evaluation,
        auc,
        auc_difference,
        error_rate,
        evaluate,
        mean_interval,
    )
    from cumulant.relational.graphs import graph_from_tables, network_from_graph
    from cumulant.relational.ground_program import GroundProgram, World
    from cumulant.relational.learning import EMResult, fit_em
    from cumulant.relational.markov_logic import MarkovLogic
    from cumulant.relational.model import SmokersModel
    from cumulant.relational.network import Latents, Network
    from cumulant.relational.parameters import RULES, Counts, Rule, frequency_prior
    from cumulant.relational.posterior import Posterior
    from cumulant.relational.prediction import LeaveOneOut, loo_scores, predict_attribute, predict_tie
    from cumulant.relational.program import Program
    from cumulant.relational.program_acyclicity import Acyclicity
    from cumulant.relational.program_syntax import ProgramError
    from cumulant.relational.simulation import CompleteFit, fit_complete
    from cumulant.relational.smokers_program import smokers_program
    from cumulant.relational.temporal import TemporalProcess

__all__ = [
    "RULES",
    "Acyclicity",
    "CompleteFit",
    "Counts",
    "EMResult",
    "Estimate",
    "Evaluation",
    "GroundProgram",
    "Latents",
    "LeaveOneOut",
    "MarkovLogic",
    "Network",
    "Posterior",
    "Program",
    "ProgramError",
    "Rule",
    "SmokersModel",
    "SocialInfluence",
    "TemporalProcess",
    "World",
    "auc",
    "auc_difference",
    "error_rate",
    "evaluate",
    "fit_complete",
    "fit_em",
    "frequency_prior",
    "graph_from_tables",
    "loo_scores",
    "mean_interval",
    "network_from_graph",
    "predict_attribute",
    "predict_tie",
    "sample_parameters",
    "smokers_program",
]

_MODULES = {
    "estimator": ("SocialInfluence",),
    "evaluation": ("Estimate", "Evaluation", "auc", "auc_difference", "error_rate", "evaluate", "mean_interval"),
    "graphs": ("graph_from_tables", "network_from_graph"),
    "ground_program": ("GroundProgram", "World"),
    "learning": ("EMResult", "fit_em"),
    "markov_logic": ("MarkovLogic",),
    "model": ("SmokersModel",),
    "network": ("Latents", "Network"),
    "annealing": ("sample_parameters",),
    "parameters": ("RULES", "Counts", "Rule", "frequency_prior"),
    "posterior": ("Posterior",),
    "prediction": ("LeaveOneOut", "loo_scores", "predict_attribute", "predict_tie"),
    "program": ("Program",),
    "program_acyclicity": ("Acyclicity",),
    "program_syntax": ("ProgramError",),
    "simulation": ("CompleteFit", "fit_complete"),
    "smokers_program": ("smokers_program",),
    "temporal": ("TemporalProcess",),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Modules are imported when a name of theirs is asked for."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
