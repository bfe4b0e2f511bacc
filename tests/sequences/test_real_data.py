"""The two real data sets, where they are: published optima, CRFsuite's objective, test errors, memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cumulant import optim
from cumulant.sequences import ChainCRF, ChainProblem, SequenceData, SequenceDualAscent, SequenceLBFGS

FOLDER = Path(os.environ.get("CUMULANT_DATA", "no data"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FOLDER / "ocr.npz").exists(), reason="set CUMULANT_DATA to the folder with ocr.npz"),
]


def letters(held_out):
    with np.load(FOLDER / "ocr.npz") as file:
        pixels = np.unpackbits(file["x_bits"], axis=1).astype(np.float64)
        data = SequenceData(pixels, file["offsets"], file["y"])
        return data[file["fold"] != held_out], data[file["fold"] == held_out]


def chunking():
    with np.load(FOLDER / "conll2000_chunking.npz") as file:
        return SequenceData.from_attributes(file["x"], file["offsets"], file["y"])


def test_handwritten_words_reach_the_published_optimum_and_error():
    train, test = letters(held_out=9)
    assert len(train) == 6202
    assert train.features.shape == (47_010, 128)
    crf = ChainCRF(tol=1e-7, max_epochs=300).fit(train)
    assert crf.status_ == "converged"
    assert abs(crf.objective_ - 2.4264555734) < 1e-6
    assert crf.objective_ - 2.4264555734 <= crf.certificate_.upper
    assert 1 - crf.score(test) == pytest.approx(0.1289, abs=2e-3)
    words = np.mean([a == b.tolist() for a, b in zip(crf.predict(test), test.split(test.labels), strict=True)])
    assert 1 - words == pytest.approx(0.443, abs=5e-3)


@pytest.mark.parametrize(("bias", "optimum"), [(False, 1.28127), (True, 1.26979)])
def test_chunking_reaches_the_objective_of_crfsuite(bias, optimum):
    crf = ChainCRF(bias=bias, tol=1e-5).fit(chunking())
    assert crf.status_ == "converged"
    assert len(crf.classes_) == 19
    assert crf.weights_.shape[0] - 3 * bias - 19 == 45_259
    assert crf.objective_ == pytest.approx(optimum, rel=1e-4)


def test_both_solvers_agree_on_a_thousand_words():
    train, test = letters(held_out=9)
    train = train[:1000]
    problem = ChainProblem(train, 26)  # all letters, though many do not occur: the published optimum has them
    for solver in (SequenceDualAscent(), SequenceLBFGS()):
        result = optim.run(solver, problem, np.zeros(problem.shape), tol=1e-9, max_steps=3000, rng=0)
        assert result.value == pytest.approx(0.8551148420, abs=1e-7)
    ascent = ChainCRF(solver="sdca", tol=1e-7, max_epochs=500).fit(train)
    descent = ChainCRF(solver="lbfgs", tol=1e-5, max_epochs=3000).fit(train)
    assert ascent.objective_ == pytest.approx(descent.objective_, abs=1e-5)
    assert np.mean(np.concatenate(ascent.predict(test)) == np.concatenate(descent.predict(test))) > 0.995


_MEMORY = """
import resource, sys
import numpy as np
from cumulant.sequences import ChainCRF, SequenceData
with np.load(sys.argv[1]) as file:
    data = SequenceData(np.unpackbits(file["x_bits"], axis=1), file["offsets"], file["y"])[file["fold"] != 9]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
crf = ChainCRF(max_epochs=2).fit(data)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, crf.memory_)
"""


def test_training_on_the_words_stays_below_half_a_gibibyte():
    out = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(FOLDER / "ocr.npz")], capture_output=True, text=True, check=True
    ).stdout
    before, peak, predicted = map(int, out.split())
    assert (peak - before) * 1024 < 0.5 * 2**30
    assert predicted < 0.5 * 2**30
