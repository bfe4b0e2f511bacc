"""Graphs and the distributions that factorise over them.

Here: maximal cliques, the test whether a table factorises over a graph, exact Bayesian networks (`BayesNet`),
structural causal models (`SCM`), interventions by `do`, and the back-door adjustment.
"""

from cumulant.graphical.backdoor import Backdoor, backdoor_adjustment, backdoor_criterion
from cumulant.graphical.bayes_net import BayesNet
from cumulant.graphical.factorisation import Factorisation, factorises
from cumulant.graphical.graphs import maximal_cliques
from cumulant.graphical.scm import SCM, Mechanism

__all__ = [
    "SCM",
    "Backdoor",
    "BayesNet",
    "Factorisation",
    "Mechanism",
    "backdoor_adjustment",
    "backdoor_criterion",
    "factorises",
    "maximal_cliques",
]
