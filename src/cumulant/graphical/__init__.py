"""Graphs and the distributions that factorise over them.

Here: discrete models (`FactorGraph`, `Ising`, `Potts`, `PairwiseMRF`, `BoltzmannMachine`) with exact inference by
elimination, UAI and BIF files; maximal cliques, the test whether a table factorises over a graph, exact Bayesian
networks (`BayesNet`), structural causal models (`SCM`), interventions by `do`, and the back-door adjustment.
"""

from cumulant.graphical.backdoor import Backdoor, backdoor_adjustment, backdoor_criterion
from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.bif import read_bif
from cumulant.graphical.causal_independence import CausalFactorGraph, CausalIndependence, noisy_or
from cumulant.graphical.discrete_family import DiscreteFamily
from cumulant.graphical.discrete_model import DiscreteModel
from cumulant.graphical.elimination import Cost
from cumulant.graphical.factor_graph import FactorGraph
from cumulant.graphical.factorisation import Factorisation, factorises
from cumulant.graphical.graphs import maximal_cliques
from cumulant.graphical.lattices import complete, grid, random_regular, spin_glass, torus
from cumulant.graphical.orders import Order, elimination_order
from cumulant.graphical.pairwise import BoltzmannMachine, Ising, PairwiseMRF, Potts
from cumulant.graphical.scm import SCM, Mechanism
from cumulant.graphical.structure import Structure
from cumulant.graphical.uai import read_evidence, read_result, read_uai, write_evidence, write_result, write_uai

__all__ = [
    "SCM",
    "Backdoor",
    "BayesNet",
    "BoltzmannMachine",
    "CausalFactorGraph",
    "CausalIndependence",
    "Cost",
    "DiscreteFamily",
    "DiscreteModel",
    "FactorGraph",
    "Factorisation",
    "Ising",
    "Mechanism",
    "Order",
    "PairwiseMRF",
    "Potts",
    "Structure",
    "backdoor_adjustment",
    "backdoor_criterion",
    "complete",
    "elimination_order",
    "factorises",
    "grid",
    "maximal_cliques",
    "noisy_or",
    "random_regular",
    "read_bif",
    "read_evidence",
    "read_result",
    "read_uai",
    "spin_glass",
    "torus",
    "write_evidence",
    "write_result",
    "write_uai",
]
