"""Linear-chain conditional random fields: exact oracles, training with a certified duality gap, tagging.

`ChainCRF` is the estimator; `ChainProblem` is its objective with its dual, `DualAscent` the solver, `SequenceData` the
data as arrays.
"""

from cumulant.sequences.batch import LBFGS
from cumulant.sequences.chain_crf import ChainCRF
from cumulant.sequences.data import SequenceData, Vocabulary
from cumulant.sequences.problem import ChainProblem, Marginals
from cumulant.sequences.sdca import DualAscent

__all__ = ["LBFGS", "ChainCRF", "ChainProblem", "DualAscent", "Marginals", "SequenceData", "Vocabulary"]
