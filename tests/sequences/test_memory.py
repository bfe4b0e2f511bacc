"""Training at the size of a part-of-speech task, 38,219 sentences with 45 labels, fits into nine gibibytes."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

_TRAIN = """
import resource
import numpy as np
from scipy import sparse
from cumulant.sequences import ChainCRF, SequenceData
rng = np.random.default_rng(0)
n, labels, attributes, active = 38_219, 45, 190_000, 10
offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 48, size=n))])
tokens = int(offsets[-1])
columns = np.sort((attributes * rng.uniform(size=(tokens, active)) ** 3).astype(np.int32), axis=1)
features = sparse.csr_matrix(
    (np.ones(tokens * active), columns.ravel(), active * np.arange(tokens + 1)), shape=(tokens, attributes)
)
features.sum_duplicates()
data = SequenceData(features, offsets, rng.integers(0, labels, size=tokens))
crf = ChainCRF(marginals="float32", max_epochs=1).fit(data)
print(tokens, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, crf.memory_, crf.certificate_.upper)
"""


def test_a_part_of_speech_task_in_single_precision():
    out = subprocess.run([sys.executable, "-c", _TRAIN], capture_output=True, text=True, check=True).stdout
    tokens, peak, predicted, certified = out.split()
    assert int(tokens) > 900_000
    assert int(peak) * 1024 < 9 * 2**30  # all of the process, with its data
    assert int(predicted) < int(peak) * 1024
    assert float(certified) < float("inf")
