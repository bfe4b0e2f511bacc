"""Conditional random fields on chains and graphs: exact oracles, training with a certified duality gap, tagging.

`ChainCRF` is the estimator; `ChainProblem` is its objective with its dual, `DualAscent` the solver, `SequenceData` the
data as arrays; `TreeCRF`, `TreeProblem` and `GraphData` are the same for graphs, by junction trees. `sum_product`,
`viterbi` and their kin answer for one chain, `oracle_jax` for batches on any device.
"""

from cumulant.sequences.batch import LBFGS
from cumulant.sequences.chain_crf import ChainCRF
from cumulant.sequences.conll import read_conll, write_conll
from cumulant.sequences.crfsuite_text import read_crfsuite, write_crfsuite
from cumulant.sequences.data import SequenceData, Vocabulary
from cumulant.sequences.evaluation import chunk_scores, chunks, confusion, token_accuracy
from cumulant.sequences.exponentiated_gradient import OEG
from cumulant.sequences.graph_data import Factors, GraphData
from cumulant.sequences.junction_tree import JunctionTree
from cumulant.sequences.oracle import joint_log_prob, k_best, sample, sum_product, tree_entropy, tree_kl, viterbi
from cumulant.sequences.problem import ChainProblem, Marginals
from cumulant.sequences.radius import feature_radii
from cumulant.sequences.sdca import DualAscent
from cumulant.sequences.stochastic import SAG, SAGA, SGD, SVRG, GradientDescent
from cumulant.sequences.switching import Switching
from cumulant.sequences.templates import Template, template
from cumulant.sequences.tree_crf import TreeCRF
from cumulant.sequences.tree_problem import TreeInference, TreeMarginals, TreeProblem

__all__ = [
    "LBFGS",
    "OEG",
    "SAG",
    "SAGA",
    "SGD",
    "SVRG",
    "ChainCRF",
    "ChainProblem",
    "DualAscent",
    "Factors",
    "GradientDescent",
    "GraphData",
    "JunctionTree",
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
