"""Two documents of three words, small enough for sums over all components of all tokens."""

import itertools

import numpy as np

from cumulant.admixture import AdmixtureModel, Corpus

CORPUS = Corpus.from_counts([[2, 1, 0], [0, 1, 2]])
MODEL = AdmixtureModel(CORPUS, 2, membership_prior=0.7, allele_prior=0.5)
LOG_EVIDENCE = -7.584499878471
ASSIGNMENTS = np.array(list(itertools.product(range(2), repeat=6)))
SAME = {(0, 1): 0.850949817, (0, 3): 0.386224189, (0, 5): 0.285017275}  # P(z_i = z_j | w)
