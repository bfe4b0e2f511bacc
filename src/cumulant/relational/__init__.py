"""People, an attribute and ties that influence each other: the contingently acyclic relational model.

`Network` is a population, `SmokersModel` the model with its fourteen probabilities: simulation, likelihood, and the
posterior of who decides independently. `fit_em` learns the probabilities, `loo_scores` predicts attributes and ties.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cumulant.relational.learning import EMResult, fit_em
    from cumulant.relational.model import SmokersModel
    from cumulant.relational.network import Latents, Network
    from cumulant.relational.parameters import RULES, Counts, Rule
    from cumulant.relational.posterior import Posterior
    from cumulant.relational.prediction import LeaveOneOut, loo_scores, predict_attribute, predict_tie
    from cumulant.relational.simulation import CompleteFit, fit_complete

__all__ = [
    "RULES",
    "CompleteFit",
    "Counts",
    "EMResult",
    "Latents",
    "LeaveOneOut",
    "Network",
    "Posterior",
    "Rule",
    "SmokersModel",
    "fit_complete",
    "fit_em",
    "loo_scores",
    "predict_attribute",
    "predict_tie",
]

_MODULES = {
    "learning": ("EMResult", "fit_em"),
    "model": ("SmokersModel",),
    "network": ("Latents", "Network"),
    "parameters": ("RULES", "Counts", "Rule"),
    "posterior": ("Posterior",),
    "prediction": ("LeaveOneOut", "loo_scores", "predict_attribute", "predict_tie"),
    "simulation": ("CompleteFit", "fit_complete"),
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
