"""Cause-effect models, interventions, and how fast each direction adapts to a change (Le Priol 2021, chapter 4)."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cumulant.causal.adaptation import adapt_categorical
    from cumulant.causal.categorical import CategoricalSCM, Mechanisms
    from cumulant.causal.categorical_prior import sample_reference
    from cumulant.causal.certify import Schedule, adaptation_bound, certify_adaptation
    from cumulant.causal.changes import Change, normal_changes, table_changes
    from cumulant.causal.direction import BayesError, bayes_error, direction_log_odds
    from cumulant.causal.dirichlet import DirichletFactors, dirichlet_factorize, log_dirichlet
    from cumulant.causal.discretise import Bins
    from cumulant.causal.distances import Distances, initial_distances
    from cumulant.causal.effect_ball import EffectBall, advantage_gap, effect_advantage_ball, row_log_partitions
    from cumulant.causal.estimator import AdaptationSpeed
    from cumulant.causal.expected_radius import expected_squared_radius, log_partition_variance
    from cumulant.causal.normal_adaptation import adapt_normal
    from cumulant.causal.normal_divergence import normal_kl
    from cumulant.causal.normal_model import NormalSCM
    from cumulant.causal.normal_reference import sample_normal_reference
    from cumulant.causal.trajectories import Trajectories, Tuned, pool, tune

# Categorical models first; normal models and the estimator after them.
_MODULES = {
    "adaptation": ("adapt_categorical",),
    "categorical": ("CategoricalSCM", "Mechanisms"),
    "categorical_prior": ("sample_reference",),
    "certify": ("Schedule", "adaptation_bound", "certify_adaptation"),
    "changes": ("Change", "normal_changes", "table_changes"),
    "direction": ("BayesError", "bayes_error", "direction_log_odds"),
    "dirichlet": ("DirichletFactors", "dirichlet_factorize", "log_dirichlet"),
    "discretise": ("Bins",),
    "distances": ("Distances", "initial_distances"),
    "effect_ball": ("EffectBall", "advantage_gap", "effect_advantage_ball", "row_log_partitions"),
    "estimator": ("AdaptationSpeed",),
    "expected_radius": ("expected_squared_radius", "log_partition_variance"),
    "normal_adaptation": ("adapt_normal",),
    "normal_divergence": ("normal_kl",),
    "normal_model": ("NormalSCM",),
    "normal_reference": ("sample_normal_reference",),
    "trajectories": ("Trajectories", "Tuned", "pool", "tune"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AdaptationSpeed",
    "BayesError",
    "Bins",
    "CategoricalSCM",
    "Change",
    "DirichletFactors",
    "Distances",
    "EffectBall",
    "Mechanisms",
    "NormalSCM",
    "Schedule",
    "Trajectories",
    "Tuned",
    "adapt_categorical",
    "adapt_normal",
    "adaptation_bound",
    "advantage_gap",
    "bayes_error",
    "certify_adaptation",
    "direction_log_odds",
    "dirichlet_factorize",
    "effect_advantage_ball",
    "expected_squared_radius",
    "initial_distances",
    "log_dirichlet",
    "log_partition_variance",
    "normal_changes",
    "normal_kl",
    "pool",
    "row_log_partitions",
    "sample_normal_reference",
    "sample_reference",
    "table_changes",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Modules are imported when a name of theirs is asked for: JAX and SciPy take seconds."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
