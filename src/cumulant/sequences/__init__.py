"""Conditional random fields on chains and graphs: exact oracles, training with a certified duality gap, tagging.

`ChainCRF` is the estimator; `ChainProblem` is its objective with its dual, `DualAscent` the solver, `SequenceData` the
data as arrays; `TreeCRF`, `TreeProblem` and `GraphData` are the same for graphs, by junction trees. `sum_product`,
`viterbi` and their kin answer for one chain, `oracle_jax` for batches on any device.
"""

from cumulant.sequences.chain.model import ChainModel
from cumulant.sequences.chain.oracle import joint_log_prob, k_best, sample, sum_product, tree_entropy, tree_kl, viterbi
from cumulant.sequences.chain.problem import ChainProblem, Marginals
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.chain_crf import ChainCRF
from cumulant.sequences.data.conll import read_conll, write_conll
from cumulant.sequences.data.crfsuite_text import read_crfsuite, write_crfsuite
from cumulant.sequences.data.graph_data import Factors, GraphData
from cumulant.sequences.data.sequence_data import SequenceData, Vocabulary
from cumulant.sequences.data.templates import Template, template
from cumulant.sequences.evaluation import chunk_scores, chunks, confusion, token_accuracy
from cumulant.sequences.solvers.dual_ascent import DualAscent
from cumulant.sequences.solvers.exponentiated_gradient import OEG
from cumulant.sequences.solvers.lbfgs import LBFGS
from cumulant.sequences.solvers.stochastic import SAG, SAGA, SGD, SVRG, GradientDescent
from cumulant.sequences.solvers.switching import Switching
from cumulant.sequences.tree.problem import TreeInference, TreeMarginals, TreeProblem
from cumulant.sequences.tree_crf import TreeCRF

__all__ = [
    "LBFGS",
    "OEG",
    "SAG",
    "SAGA",
    "SGD",
    "SVRG",
    "ChainCRF",
    "ChainModel",
    "ChainProblem",
    "DualAscent",
    "Factors",
    "GradientDescent",
    "GraphData",
    "Marginals",
    "SequenceData",
    "Switching",
    "Template",
    "TreeCRF",
    "TreeInference",
    "TreeMarginals",
    "TreeProblem",
    "Vocabulary",
    "chunk_scores",
    "chunks",
    "confusion",
    "feature_radii",
    "joint_log_prob",
    "k_best",
    "read_conll",
    "read_crfsuite",
    "sample",
    "sum_product",
    "template",
    "token_accuracy",
    "tree_entropy",
    "tree_kl",
    "viterbi",
    "write_conll",
    "write_crfsuite",
]
