"""What a user of CRFsuite expects: its penalties, features and answers, compared with CRFsuite itself."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.sequences import ChainCRF, write_conll

EXAMPLE = Path(__file__).parents[2] / "examples" / "taggers.py"
WORDS = ["the", "dog", "sees", "cat", "old", "likes", "a"]


def sentences(n, seed=0):
    """Tokens as sklearn-crfsuite takes them, and labels that depend on word and neighbour, with noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = rng.choice(WORDS, size=rng.integers(1, 6))
        X.append([{"word": str(word), "vowel": bool(word[0] in "aeo"), "length": 0.5 * len(word)} for word in words])
        y.append(
            [
                str(rng.choice(["A", "B", "C"], p=[0.6, 0.3, 0.1] if len(word) > 3 else [0.1, 0.3, 0.6]))
                for word in words
            ]
        )
    return X, y


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.0, 0.05), (0.3, 0.1)])
def test_c1_and_c2_are_the_penalties_of_the_guide(c1, c2, tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    X, y = sentences(60)
    n = len(X)
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params(
        {"c1": c1, "c2": c2, "feature.possible_states": True, "feature.possible_transitions": True,
         "max_iterations": 20_000, "epsilon": 1e-10, "delta": 1e-14, "linesearch": "StrongBacktracking"}
    )  # fmt: skip
    for tokens, labels in zip(X, y, strict=True):
        trainer.append(tokens, labels)
    trainer.train(str(tmp_path / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    peer = tagger.info()

    crf = ChainCRF(l1=c1 / n, l2=2 * c2 / n, bias=False, tol=1e-10, max_epochs=5000).fit(X, y)
    assert crf.status_ == "converged"
    ours = {(name.replace("word=", "word:"), label): weight for name, label, weight in crf.state_features()}
    assert set(peer.state_features) <= set(ours) | {
        key for key, weight in peer.state_features.items() if abs(weight) < 1e-3
    }
    for key, weight in ours.items():
        assert peer.state_features.get(key, 0.0) == pytest.approx(weight, abs=2e-3)
    for first, second, weight in crf.transitions():
        assert peer.transitions.get((first, second), 0.0) == pytest.approx(weight, abs=2e-3)
    for tokens, marginals in zip(X, crf.predict_marginals(X, as_dicts=True), strict=True):
        tagger.set(tokens)
        for t, token in enumerate(marginals):
            assert_allclose([tagger.marginal(label, t) for label in token], list(token.values()), atol=2e-3)


def test_the_example_does_the_whole_job_in_under_25_lines(monkeypatch, capsys, tmp_path):
    code = EXAMPLE.read_text().split('"""', 2)[2]
    assert sum(bool(line.strip()) and '"""' not in line for line in code.splitlines()) < 25
    monkeypatch.setattr(sys, "argv", ["taggers.py"])
    runpy.run_path(str(EXAMPLE))
    out = capsys.readouterr().out
    assert out.startswith("P(w) - P* <= ")
    (line,) = (line for line in out.splitlines() if "accuracy" in line)
    assert float(line.split("FB1:")[1]) > 60
    write_conll(tmp_path / "columns", [[("London", "NNP", "B-LOC"), ("sleeps", "VBZ", "O")]] * 4)
    monkeypatch.setattr(sys, "argv", ["taggers.py", str(tmp_path / "columns")])
    runpy.run_path(str(EXAMPLE))
    assert "FB1: 100.00" in capsys.readouterr().out
