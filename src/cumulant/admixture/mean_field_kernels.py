"""Compiled mean field of an admixture: responsibilities of components for words, and what they add up to."""

import math

from cumulant.kernels import kernel
from cumulant.math_kernels import fast_exp


@kernel(called_by="python")
def responsibilities(indptr, words, counts, log_members, log_frequencies, score, of_documents, of_words):
    """Add the expected counts of components to `of_documents` ``(D, K)`` and `of_words` ``(W, K)``; returns
    ``sum count log sum_k exp(log_members_dk + log_frequencies_jk)``.

    Documents are the rows of a sparse matrix `indptr`, `words`, `counts`.
    """
    n_components = log_members.shape[1]
    value = 0.0
    for d in range(indptr.size - 1):
        for e in range(indptr[d], indptr[d + 1]):
            j = words[e]
            top = log_members[d, 0] + log_frequencies[j, 0]
            for k in range(n_components):
                score[k] = log_members[d, k] + log_frequencies[j, k]
                top = max(top, score[k])
            total = 0.0
            for k in range(n_components):
                score[k] = fast_exp(score[k] - top)
                total += score[k]
            value += counts[e] * (top + math.log(total))
            share = counts[e] / total
            for k in range(n_components):
                of_documents[d, k] += share * score[k]
                of_words[j, k] += share * score[k]
    return value
