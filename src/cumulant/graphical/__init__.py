"""Graphs and the distributions that factorise over them.

Here: Bayesian networks asked by name (`BayesNet`); discrete models (`FactorGraph`, `Ising`, `Potts`, `PairwiseMRF`,
`BoltzmannMachine`) with exact inference by elimination, intervals for ``log Z``, messages and mean field, samplers,
mixing-time certificates and learning in fast-mixing sets; UAI and BIF files; structural causal models (`SCM`),
interventions by `do`, and the back-door adjustment; maximal cliques, and the test whether a table factorises over a
graph.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cumulant.graphical.backdoor import Backdoor, backdoor_adjustment, backdoor_criterion
    from cumulant.graphical.bayes_net import BayesNet
    from cumulant.graphical.bif import read_bif, write_bif
    from cumulant.graphical.bounds.log_partition import bound_log_partition, bound_marginals
    from cumulant.graphical.bounds.mini_bucket import MiniBucket, mini_bucket_bound
    from cumulant.graphical.causal_independence import CausalFactorGraph, CausalIndependence, noisy_or
    from cumulant.graphical.discrete_family import DiscreteFamily
    from cumulant.graphical.discrete_model import DiscreteModel
    from cumulant.graphical.exact.elimination import Cost
    from cumulant.graphical.exact.junction_tree import JunctionTree
    from cumulant.graphical.exact.lattices import (
        kac_ward,
        torus_log_partition,
        transfer_matrix,
        transfer_matrix_means,
    )
    from cumulant.graphical.exact.orders import Order, elimination_order
    from cumulant.graphical.exact.spin_glasses import DensityOfStates, density_of_states, spin_glass_log_partition
    from cumulant.graphical.factor_graph import FactorGraph
    from cumulant.graphical.factorisation import Factorisation, factorises
    from cumulant.graphical.graphs import maximal_cliques
    from cumulant.graphical.lattices import complete, grid, lattice, random_regular, spin_glass, torus
    from cumulant.graphical.learning.chow_liu import chow_liu
    from cumulant.graphical.learning.continuity import (
        distance_from_gap,
        gap_from_distance,
        log_partition_change_bound,
        mean_change_bound,
        total_variation_bound,
    )
    from cumulant.graphical.learning.curvature import Curvature, largest_curvature
    from cumulant.graphical.learning.estimators import IsingEstimator, MarkovNetworkEstimator
    from cumulant.graphical.learning.fit import fit, learning_problem
    from cumulant.graphical.learning.mcmc import replay
    from cumulant.graphical.learning.methods import (
        MCMC,
        CompositeLikelihood,
        ContrastiveDivergence,
        MaximumLikelihood,
        PersistentChains,
        PseudoLikelihood,
    )
    from cumulant.graphical.learning.normaliser import Normaliser, normaliser
    from cumulant.graphical.learning.planner import (
        SamplingPlan,
        bound_convex,
        bound_strongly_convex,
        gradient_error_bound,
        lipschitz,
        lower_bound_work_convex,
        lower_bound_work_strongly_convex,
        plan_convex,
        plan_strongly_convex,
        total_error_bound,
    )
    from cumulant.graphical.learning.problem import Fit, LearningProblem, SampledRun
    from cumulant.graphical.learning.sparse_structure import SparseStructure, sparse_structure
    from cumulant.graphical.messages.bethe import bethe_free_energy, region_free_energy
    from cumulant.graphical.messages.double_loop import double_loop
    from cumulant.graphical.messages.generalised import generalised_belief_propagation
    from cumulant.graphical.messages.loopy import MaxProduct, Propagation, belief_propagation, max_product
    from cumulant.graphical.messages.mean_field import MeanField, mean_field
    from cumulant.graphical.messages.region_graph import RegionGraph, plaquettes
    from cumulant.graphical.messages.structured_mean_field import structured_mean_field
    from cumulant.graphical.messages.tree_reweighted import TreeReweighted, tree_reweighted
    from cumulant.graphical.mixing.certificates import (
        Mixing,
        NotFastMixing,
        certify_mixing_time,
        dependency_norm,
        gibbs_mixing,
        mixing_from_tau,
    )
    from cumulant.graphical.mixing.dependency import dependency_matrix
    from cumulant.graphical.mixing.fast_mixing import FastMixing
    from cumulant.graphical.mixing.ferromagnetic import Ferromagnetic, subgraphs_mixing
    from cumulant.graphical.mixing.kl_projection import KLProjection, project_kl
    from cumulant.graphical.mixing.perron import perron_root, spectral_norm
    from cumulant.graphical.mixing.projections import (
        Projection,
        project,
        project_box,
        project_couplings,
        project_tables,
    )
    from cumulant.graphical.mixing.sampled_projection import SampledProjection, project_reverse_kl
    from cumulant.graphical.net_fit import NetFit
    from cumulant.graphical.pairwise import BoltzmannMachine, Ising, PairwiseMRF, Potts
    from cumulant.graphical.pruning import prune
    from cumulant.graphical.samplers.annealed import annealed_importance_sampling
    from cumulant.graphical.samplers.blocked import acyclic_blocks
    from cumulant.graphical.samplers.chains import Gibbs, MultiSpin, SwendsenWang, Wolff
    from cumulant.graphical.samplers.colouring import Neighbours, colouring
    from cumulant.graphical.samplers.coupling import ferromagnetic_signs
    from cumulant.graphical.samplers.gibbs import random_scan
    from cumulant.graphical.samplers.gibbs_jax import ColouredGibbs, LatticeGibbs, UniformTorus
    from cumulant.graphical.samplers.subgraphs import EdgeFlips, SubgraphsWorld
    from cumulant.graphical.scm import SCM, Mechanism
    from cumulant.graphical.structure import Structure
    from cumulant.graphical.uai import read_evidence, read_result, read_uai, write_evidence, write_result, write_uai

__all__ = [
    "MCMC",
    "SCM",
    "Backdoor",
    "BayesNet",
    "BoltzmannMachine",
    "CausalFactorGraph",
    "CausalIndependence",
    "ColouredGibbs",
    "CompositeLikelihood",
    "ContrastiveDivergence",
    "Cost",
    "Curvature",
    "DensityOfStates",
    "DiscreteFamily",
    "DiscreteModel",
    "EdgeFlips",
    "FactorGraph",
    "Factorisation",
    "FastMixing",
    "Ferromagnetic",
    "Fit",
    "Gibbs",
    "Ising",
    "IsingEstimator",
    "JunctionTree",
    "KLProjection",
    "LatticeGibbs",
    "LearningProblem",
    "MarkovNetworkEstimator",
    "MaxProduct",
    "MaximumLikelihood",
    "MeanField",
    "Mechanism",
    "MiniBucket",
    "Mixing",
    "MultiSpin",
    "Neighbours",
    "NetFit",
    "Normaliser",
    "NotFastMixing",
    "Order",
    "PairwiseMRF",
    "PersistentChains",
    "Potts",
    "Projection",
    "Propagation",
    "PseudoLikelihood",
    "RegionGraph",
    "SampledProjection",
    "SampledRun",
    "SamplingPlan",
    "SparseStructure",
    "Structure",
    "SubgraphsWorld",
    "SwendsenWang",
    "TreeReweighted",
    "UniformTorus",
    "Wolff",
    "acyclic_blocks",
    "annealed_importance_sampling",
    "backdoor_adjustment",
    "backdoor_criterion",
    "belief_propagation",
    "bethe_free_energy",
    "bound_convex",
    "bound_log_partition",
    "bound_marginals",
    "bound_strongly_convex",
    "certify_mixing_time",
    "chow_liu",
    "colouring",
    "complete",
    "density_of_states",
    "dependency_matrix",
    "dependency_norm",
    "distance_from_gap",
    "double_loop",
    "elimination_order",
    "factorises",
    "ferromagnetic_signs",
    "fit",
    "gap_from_distance",
    "generalised_belief_propagation",
    "gibbs_mixing",
    "gradient_error_bound",
    "grid",
    "kac_ward",
    "largest_curvature",
    "lattice",
    "learning_problem",
    "lipschitz",
    "log_partition_change_bound",
    "lower_bound_work_convex",
    "lower_bound_work_strongly_convex",
    "max_product",
    "maximal_cliques",
    "mean_change_bound",
    "mean_field",
    "mini_bucket_bound",
    "mixing_from_tau",
    "noisy_or",
    "normaliser",
    "perron_root",
    "plan_convex",
    "plan_strongly_convex",
    "plaquettes",
    "project",
    "project_box",
    "project_couplings",
    "project_kl",
    "project_reverse_kl",
    "project_tables",
    "prune",
    "random_regular",
    "random_scan",
    "read_bif",
    "read_evidence",
    "read_result",
    "read_uai",
    "region_free_energy",
    "replay",
    "sparse_structure",
    "spectral_norm",
    "spin_glass",
    "spin_glass_log_partition",
    "structured_mean_field",
    "subgraphs_mixing",
    "torus",
    "torus_log_partition",
    "total_error_bound",
    "total_variation_bound",
    "transfer_matrix",
    "transfer_matrix_means",
    "tree_reweighted",
    "write_bif",
    "write_evidence",
    "write_result",
    "write_uai",
]


_MODULES = {
    "backdoor": ("Backdoor", "backdoor_adjustment", "backdoor_criterion"),
    "bayes_net": ("BayesNet",),
    "bif": ("read_bif", "write_bif"),
    "bounds.log_partition": ("bound_log_partition", "bound_marginals"),
    "bounds.mini_bucket": ("MiniBucket", "mini_bucket_bound"),
    "causal_independence": ("CausalFactorGraph", "CausalIndependence", "noisy_or"),
    "discrete_family": ("DiscreteFamily",),
    "discrete_model": ("DiscreteModel",),
    "exact.elimination": ("Cost",),
    "exact.junction_tree": ("JunctionTree",),
    "exact.lattices": ("kac_ward", "torus_log_partition", "transfer_matrix", "transfer_matrix_means"),
    "exact.orders": ("Order", "elimination_order"),
    "exact.spin_glasses": ("DensityOfStates", "density_of_states", "spin_glass_log_partition"),
    "factor_graph": ("FactorGraph",),
    "factorisation": ("Factorisation", "factorises"),
    "graphs": ("maximal_cliques",),
    "lattices": ("complete", "grid", "lattice", "random_regular", "spin_glass", "torus"),
    "learning.chow_liu": ("chow_liu",),
    "learning.continuity": (
        "distance_from_gap",
        "gap_from_distance",
        "log_partition_change_bound",
        "mean_change_bound",
        "total_variation_bound",
    ),
    "learning.curvature": ("Curvature", "largest_curvature"),
    "learning.estimators": ("IsingEstimator", "MarkovNetworkEstimator"),
    "learning.fit": ("fit", "learning_problem"),
    "learning.mcmc": ("replay",),
    "learning.methods": (
        "MCMC",
        "CompositeLikelihood",
        "ContrastiveDivergence",
        "MaximumLikelihood",
        "PersistentChains",
        "PseudoLikelihood",
    ),
    "learning.normaliser": ("Normaliser", "normaliser"),
    "learning.planner": (
        "SamplingPlan",
        "bound_convex",
        "bound_strongly_convex",
        "gradient_error_bound",
        "lipschitz",
        "lower_bound_work_convex",
        "lower_bound_work_strongly_convex",
        "plan_convex",
        "plan_strongly_convex",
        "total_error_bound",
    ),
    "learning.problem": ("Fit", "LearningProblem", "SampledRun"),
    "learning.sparse_structure": ("SparseStructure", "sparse_structure"),
    "messages.bethe": ("bethe_free_energy", "region_free_energy"),
    "messages.double_loop": ("double_loop",),
    "messages.generalised": ("generalised_belief_propagation",),
    "messages.loopy": ("MaxProduct", "Propagation", "belief_propagation", "max_product"),
    "messages.mean_field": ("MeanField", "mean_field"),
    "messages.region_graph": ("RegionGraph", "plaquettes"),
    "messages.structured_mean_field": ("structured_mean_field",),
    "messages.tree_reweighted": ("TreeReweighted", "tree_reweighted"),
    "mixing.certificates": (
        "Mixing",
        "NotFastMixing",
        "certify_mixing_time",
        "dependency_norm",
        "gibbs_mixing",
        "mixing_from_tau",
    ),
    "mixing.dependency": ("dependency_matrix",),
    "mixing.fast_mixing": ("FastMixing",),
    "mixing.ferromagnetic": ("Ferromagnetic", "subgraphs_mixing"),
    "mixing.kl_projection": ("KLProjection", "project_kl"),
    "mixing.perron": ("perron_root", "spectral_norm"),
    "mixing.projections": ("Projection", "project", "project_box", "project_couplings", "project_tables"),
    "mixing.sampled_projection": ("SampledProjection", "project_reverse_kl"),
    "net_fit": ("NetFit",),
    "pairwise": ("BoltzmannMachine", "Ising", "PairwiseMRF", "Potts"),
    "pruning": ("prune",),
    "samplers.annealed": ("annealed_importance_sampling",),
    "samplers.blocked": ("acyclic_blocks",),
    "samplers.chains": ("Gibbs", "MultiSpin", "SwendsenWang", "Wolff"),
    "samplers.colouring": ("Neighbours", "colouring"),
    "samplers.coupling": ("ferromagnetic_signs",),
    "samplers.gibbs": ("random_scan",),
    "samplers.gibbs_jax": ("ColouredGibbs", "LatticeGibbs", "UniformTorus"),
    "samplers.subgraphs": ("EdgeFlips", "SubgraphsWorld"),
    "scm": ("SCM", "Mechanism"),
    "structure": ("Structure",),
    "uai": ("read_evidence", "read_result", "read_uai", "write_evidence", "write_result", "write_uai"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Modules are imported when a name of theirs is asked for: JAX, scikit-learn and `optim` take seconds."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
