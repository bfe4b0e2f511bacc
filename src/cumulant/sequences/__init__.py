"""Conditional random fields on chains and graphs: exact oracles, training with a certified duality gap, tagging.

`ChainCRF` is the estimator, and `crf.model(x)` the distribution of the labels of one sequence; `ChainProblem` is the
objective with its dual, `SequenceDualAscent` the solver, `SequenceData` the data as arrays. `TreeCRF`, `TreeProblem`
and `GraphData` are the same for graphs, by junction trees. `sum_product`, `viterbi` and others answer for one chain,
`oracle_jax` for batches on any device.
"""

from cumulant.sequences.block_search import BlockSearch, block_search
from cumulant.sequences.chain.exact_radius import exact_radii
from cumulant.sequences.chain.model import ChainModel
from cumulant.sequences.chain.oracle import joint_log_prob, k_best, sample, sum_product, tree_entropy, tree_kl, viterbi
from cumulant.sequences.chain.problem import ChainMarginals, ChainProblem
from cumulant.sequences.chain.radius import feature_radii
from cumulant.sequences.chain_crf import ChainCRF
from cumulant.sequences.data.conll import read_conll, write_conll
from cumulant.sequences.data.crfsuite_text import read_crfsuite, write_crfsuite
from cumulant.sequences.data.graph_data import Factors, GraphData
from cumulant.sequences.data.sequence_data import SequenceData
from cumulant.sequences.data.templates import Template, template
from cumulant.sequences.data.vocabulary import Vocabulary
from cumulant.sequences.evaluation import chunk_scores, chunks, confusion, token_accuracy
from cumulant.sequences.solvers.dual_ascent import SequenceDualAscent
from cumulant.sequences.solvers.exponentiated_gradient import SequenceExponentiatedGradient
from cumulant.sequences.solvers.gradient_descent import SequenceGradientDescent
from cumulant.sequences.solvers.lbfgs import SequenceLBFGS
from cumulant.sequences.solvers.sag import SequenceSAG
from cumulant.sequences.solvers.sgd import SequenceSGD
from cumulant.sequences.solvers.switching import SequenceSwitching
from cumulant.sequences.solvers.variance_reduced import SequenceSAGA, SequenceSVRG
from cumulant.sequences.tree.problem import TreeInference, TreeMarginals, TreeProblem
from cumulant.sequences.tree_crf import TreeCRF

__all__ = [
    "BlockSearch",
    "ChainCRF",
    "ChainMarginals",
    "ChainModel",
    "ChainProblem",
    "Factors",
    "GraphData",
    "SequenceData",
    "SequenceDualAscent",
    "SequenceExponentiatedGradient",
    "SequenceGradientDescent",
    "SequenceLBFGS",
    "SequenceSAG",
    "SequenceSAGA",
    "SequenceSGD",
    "SequenceSVRG",
    "SequenceSwitching",
    "Template",
    "TreeCRF",
    "TreeInference",
    "TreeMarginals",
    "TreeProblem",
    "Vocabulary",
    "block_search",
    "chunk_scores",
    "chunks",
    "confusion",
    "exact_radii",
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
