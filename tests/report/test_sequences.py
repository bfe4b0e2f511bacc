"""The demonstration of chain CRFs: its numbers come out by another way, its certificate holds, its page is there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from cumulant.cli import main
from cumulant.report import sequences
from cumulant.sequences.data import digit_words

N = 60


@pytest.fixture(scope="module")
def found():
    return sequences.study(n_train=N, n_test=40)


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_the_model_of_single_digits_is_multinomial_regression(found):
    X, y = digit_words.make(N, rng=0, part="train")
    x, digits = np.concatenate(X), np.concatenate(y)
    ones = [np.ones((len(a), 3)) for a in (x, np.concatenate(found.images))]  # with one node the biases are three
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(np.column_stack([x, ones[0]]), digits)
    ours = np.concatenate(found.marginals["each digit alone"])
    expected = peer.predict_proba(np.column_stack([np.concatenate(found.images), ones[1]]))
    assert_allclose(ours, expected, atol=2e-3)  # ours stops at a gap of one in a million
    right = np.concatenate(found.right["each digit alone"])
    clear = np.diff(np.sort(expected, axis=1)[:, -2:]).ravel() > 0.01  # where the peer's first choice stands out
    agree = (expected.argmax(axis=1) == np.concatenate(found.digits)) == right
    assert agree[clear].all()
    assert clear.mean() > 0.9


def test_the_chain_reads_better_and_is_certified(found):
    chain = found.chain
    assert np.concatenate(found.right["chain CRF"]).mean() == pytest.approx(chain.score(found.images, found.digits))
    assert np.concatenate(found.right["chain CRF"]).mean() > np.concatenate(found.right["each digit alone"]).mean()
    assert chain.certificate_.upper <= 1e-6 * chain.objective_


def test_the_word_that_is_shown_is_one_where_neighbours_help_most(found, tmp_path):
    section = sequences.reading(found, tmp_path)
    chain, alone = found.right["chain CRF"], found.right["each digit alone"]
    gains = [a.sum() - b.sum() for a, b in zip(chain, alone, strict=True) if len(a) <= 6]
    chosen = sequences._telling(found)
    assert len(chain[chosen]) <= 6
    assert chain[chosen].sum() - alone[chosen].sum() == max(gains) > 0
    (picture, caption), = section.pictures  # fmt: skip
    assert is_picture(picture)
    assert "mends most" in caption
    share = float(section.tables[0].rows[0][1].split(" ± ")[0])
    assert share == pytest.approx(100 * np.concatenate(found.right["chain CRF"]).mean(), abs=0.06)
    assert section.certificates == [found.chain.certificate_]


def test_both_solvers_end_at_one_objective_within_their_bounds(found, tmp_path):
    section = sequences.certified(found, tmp_path)
    (_, _, _, first, first_bound), (_, _, _, second, second_bound) = section.tables[0].rows
    assert abs(float(first) - float(second)) <= float(first_bound) + float(second_bound)
    assert is_picture(section.pictures[0][0])


def test_the_transitions_learned_are_those_of_the_grammar(found, tmp_path):
    section = sequences.grammar(found, tmp_path)
    assert is_picture(section.pictures[0][0])
    weights = found.chain.weights_[-10:]
    frequent = digit_words.GRAMMAR > 0.1
    assert weights[frequent].mean() > 0 > weights[~frequent].mean()


def test_a_standard_error_counts_words_and_not_tokens():
    rng = np.random.default_rng(0)
    # Whole words are right or wrong together: the error is that of 400 words.
    right = [np.full(4, rng.random() < 0.75) for _ in range(400)]
    share, error = map(float, sequences.accuracy(right).split(" ± "))
    assert share == pytest.approx(100 * np.concatenate(right).mean(), abs=0.06)
    assert error == pytest.approx(100 * np.sqrt(share / 100 * (1 - share / 100) / 400), abs=0.06)


@pytest.mark.slow
def test_the_command_prints_the_certificate_and_writes_the_page(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["crf", "demo", "--output", str(tmp_path / "out")])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for words in ("Reading words", "P(w) - P* <=", "each digit alone", "L-BFGS", "index.html"):
        assert words in out
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 3
