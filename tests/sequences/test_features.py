"""Features as users of sklearn-crfsuite have them, wrong nesting, empty sequences, and the answers they ask for."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from cumulant.sequences import ChainCRF, ChainProblem, SequenceData, TreeCRF, Vocabulary

SENTENCES = [["The", "dog", "runs"], ["An", "dog"], ["The", "cat", "sleeps", "now"], ["Runs"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "A"], ["V"]]


def features(sentence, t):
    word = sentence[t]
    found = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word.istitle()": word.istitle(),
        "length": len(word),
        "ends": [word[-1], word[-2:]],
    }
    return found | ({"-1": {"lower": sentence[t - 1].lower(), "title": sentence[t - 1].istitle()}} if t else {})


def written_out(sentence, t):
    """The same with every name and weight written out."""
    word = sentence[t]
    found = {"bias": 1.0, f"word.lower()={word.lower()}": 1.0, "length": float(len(word))}
    found |= {"word.istitle()": 1.0} if word.istitle() else {}
    found |= {f"ends={word[-1]}": 1.0, f"ends={word[-2:]}": 1.0}
    if t:
        found |= {f"-1=lower={sentence[t - 1].lower()}": 1.0}
        found |= {"-1=title": 1.0} if sentence[t - 1].istitle() else {}
    return found


X = [[features(sentence, t) for t in range(len(sentence))] for sentence in SENTENCES]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF(tol=1e-6).fit(X, TAGS)


def test_the_first_lines_of_a_user_just_fit():
    crf = ChainCRF().fit([[{"word.lower()": "the", "cap": True}]], [["D"]])
    assert crf.predict([[{"word.lower()": "the", "cap": True}]]) == [["D"]]
    assert crf.vocabulary_.names == ["word.lower()=the", "cap"]


def test_features_mean_what_they_mean_written_out(crf):
    plain = [[written_out(sentence, t) for t in range(len(sentence))] for sentence in SENTENCES]
    same = ChainCRF(tol=1e-6).fit(plain, TAGS)
    order = [same.vocabulary_.names.index(name) for name in crf.vocabulary_.names]
    assert len(order) == len(same.vocabulary_.names)
    assert_allclose(crf.weights_, same.weights_[[*order, *range(len(order), len(same.weights_))]], atol=1e-4)
    assert crf.predict(X) == same.predict(plain) == TAGS
    assert crf.score(X, TAGS) == 1.0


def test_names_weights_flags_and_lists_have_their_values():
    tokens = [
        {"w": "the", "cap": True, "low": False, "n": 3, "x": np.float32(0.5), "s": ["a", "b"], "t": {"c"}},
        {"prev": {"w": "dog", "n": 2.0, "cap": np.True_}, "s": ("a",)},
        ["cap", "w=the", "cap"],
    ]
    vocabulary = Vocabulary.learn([tokens])
    expected = {"w=the": [1, 0, 1], "cap": [1, 0, 2], "n": [3, 0, 0], "x": [0.5, 0, 0], "s=a": [1, 1, 0]}
    expected |= {
        "s=b": [1, 0, 0],
        "t=c": [1, 0, 0],
        "prev=w=dog": [0, 1, 0],
        "prev=n": [0, 2, 0],
        "prev=cap": [0, 1, 0],
    }
    assert vocabulary.names == list(expected)
    assert_allclose(vocabulary.encode([tokens]).features.toarray().T, list(expected.values()))


ONE = X[0]  # a sentence that is not in a list
WRONG = {
    "nothing": (None, "X must be a list of sequences.* got NoneType None"),
    "a number": (3.5, "X must be a list of sequences.* got float 3.5"),
    "a string": ("the dog", "X must be a list of sequences.* got str 'the dog'"),
    "a mapping": ({"w": "the"}, "X must be a list of sequences.* got dict"),
    "a sentence of mappings": (ONE, "sequence 0 of X is dict .*one sequence is written"),
    "a sentence of lists": ([["the"], ["dog"]], r"token 0 of sequence 0 of X is str 'the': .*one sequence is written"),
    "strings": (["the dog", "a cat"], "sequence 0 of X is str 'the dog'"),
    "words": ([["the", "dog"]], "token 0 of sequence 0 of X is str 'the'"),
    "nothing in it": ([X[0], None], "sequence 1 of X is NoneType None"),
    "numbers in it": ([1, 2], "sequence 0 of X is int 1"),
    "a mapping of sequences": ([{0: X[0]}], "sequence 0 of X is dict"),
    "no token": ([[X[0][0], None]], "token 1 of sequence 0 of X is NoneType None"),
    "a number for a token": ([[X[0][0], 2]], "token 1 of sequence 0 of X is int 2"),
    "no value": ([[{"w": None}]], "attribute 'w' must be a number, a string.* got NoneType None"),
    "an array as value": ([[{"w": np.ones(2)}]], "attribute 'w' must be a number, a string.* got ndarray"),
    "numbers in a list": ([[{"w": ["a", 2]}]], "attribute names must be strings; got int 2"),
    "a number as name": ([[{1: 2.0}]], "attribute names must be strings; got int 1"),
    "one more list": ([[[{"w": "the"}]]], "attribute names must be strings; got dict"),
    "an array of one dimension": (np.ones(3), r"got an array of shape \(3,\)"),
    "an array of two": (np.ones((3, 2)), r"got an array of shape \(3, 2\)"),
    "an array of four": (np.ones((3, 2, 2, 2)), r"got an array of shape \(3, 2, 2, 2\)"),
    "a row as sequence": ([np.ones(3)], r"sequence 0 of X is an array of shape \(3,\)"),
    "infinity": ([[{"bias": np.inf}]], "attribute 'bias' of sequence 0 of X must be finite; got inf"),
    "too large": ([X[1], [{"bias": 1}, {"bias": 10**400}]], "attribute 'bias' of sequence 1 of X must be finite"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_nesting_is_refused_by_fit_and_by_predict(kind, crf):
    wrong, message = WRONG[kind]
    with pytest.raises((TypeError, ValueError), match=message):
        ChainCRF().fit(wrong, [["D"]])
    for answer in (crf.predict, crf.predict_marginals):
        with pytest.raises((TypeError, ValueError), match=message):
            answer(wrong)
    with pytest.raises((TypeError, ValueError), match=message):
        crf.score(wrong, [["D"]])


def test_rows_and_names_are_not_mixed(crf):
    arrays = ChainCRF().fit([np.eye(3), np.eye(3)[:1]], [[0, 1, 1], [0]])
    for wrong in (X, [np.eye(2)], [np.eye(3), [[1.0, 2.0, 3.0], [1.0]]], [np.eye(3), [["a", "b", "c"]]]):
        with pytest.raises(ValueError, match=r"sequence \d of X must have shape \(length, 3\) and hold numbers"):
            arrays.predict(wrong)
    with pytest.raises(TypeError, match="token 0 of sequence 0 of X is ndarray"):
        crf.predict([np.eye(3)])
    assert arrays.predict(np.eye(3)[None]) == [[0, 1, 1]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ("DNV", "y must be a list of labels for each sequence; got str 'DNV'"),
        (7, "y must be a list of labels for each sequence; got int 7"),
        (TAGS[:3], "each of the 4 sequences; got 3"),
        (["DNV", "DN", "DNVA", "V"], "those of sequence 0 are str 'DNV'"),
        ([*TAGS[:3], None], "those of sequence 3 are NoneType None"),
        ([*TAGS[:3], [["V"]]], "those of sequence 3 are list"),
        ([*TAGS[:2], ["D", "N"], ["V"]], "sequence 2 has 4 tokens and 2 labels"),
        ([*TAGS[:3], [1]], "some of the labels are strings and some are not"),
        ([*TAGS[:3], [None]], "some of the labels are strings and some are not"),
        ([[None, 2, 3], [1, 2], [1, 2, 3, 4], [1]], "which can be sorted; got labels of NoneType, int"),
        ([[1.0, 2.0, np.nan], [1, 2], [1, 2, 3, 4], [1]], "some of the labels are NaN or infinite"),
    ],
)  # fmt: skip
def test_wrong_labels_are_refused(y, message, crf):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        ChainCRF().fit(X, y)


def test_an_empty_sequence_has_an_empty_answer(crf):
    batch, y = [[], X[0], [], X[1], []], [[], TAGS[0], [], TAGS[1], []]
    assert crf.predict(batch) == y
    assert crf.predict([[]]) == [[]]
    assert crf.predict([]) == []
    tables = crf.predict_marginals(batch)
    assert [table.shape for table in tables] == [(0, 4), (3, 4), (0, 4), (2, 4), (0, 4)]
    assert_allclose(tables[3], crf.predict_marginals([X[1]])[0])
    assert crf.predict_marginals([[]], as_dicts=True) == [[]]
    assert crf.score(batch, y) == 1.0
    assert_allclose(crf.log_likelihood(batch, y)[1::2], crf.log_likelihood([X[0], X[1]], [TAGS[0], TAGS[1]]))
    assert crf.log_likelihood(batch, y)[::2].tolist() == [0.0, 0.0, 0.0]
    same = ChainCRF(tol=1e-6).fit([[], *X, []], [[], *TAGS, []])
    assert np.array_equal(same.weights_, crf.weights_)
    arrays = ChainCRF().fit([np.zeros((0, 3)), np.eye(3)], [[], [0, 1, 1]])
    assert arrays.predict([np.eye(3), np.zeros((0, 3)), []]) == [[0, 1, 1], [], []]
    for wrong in (lambda: ChainCRF().fit([[]], [[]]), lambda: ChainCRF().fit([], []), lambda: crf.model([])):
        with pytest.raises(ValueError, match="X has no tokens"):
            wrong()
    with pytest.raises(ValueError, match="sequence 1 has 0 tokens and 1 labels"):
        ChainCRF().fit([X[0], []], [TAGS[0], ["D"]])


def test_a_graph_without_nodes_has_an_empty_answer():
    star, nothing = (np.array([[1.0], [0.0], [0.0]]), [(0, 1), (0, 2)]), (np.zeros((0, 1)), [])
    y = ["hub", "leaf", "leaf"]
    crf = TreeCRF(tol=1e-6).fit([nothing, star], [[], y])
    assert crf.predict([star, nothing, ([], [])]) == [y, [], []]
    assert crf.predict([nothing]) == [[]]
    assert crf.predict_single(star) == y
    (table,) = crf.predict_marginals([star])
    assert crf.predict_marginals_single(star, as_dicts=True) == [
        {"hub": hub, "leaf": leaf} for hub, leaf in table.tolist()
    ]
    with pytest.raises(ValueError, match="at least one graph with a node"):
        TreeCRF().fit([nothing], [[]])


def test_one_sequence_and_marginals_as_dicts(crf):
    assert crf.predict_single(X[2]) == TAGS[2]
    assert crf.predict_single([]) == []
    tables, dicts = crf.predict_marginals(X), crf.predict_marginals(X, as_dicts=True)
    for table, tokens in zip(tables, dicts, strict=True):
        for row, token in zip(table, tokens, strict=True):
            assert token == dict(zip(["A", "D", "N", "V"], row, strict=True))
            assert {type(label) for label in token} == {str}
            assert {type(share) for share in token.values()} == {float}
    assert crf.predict_marginals_single(X[1], as_dicts=True) == dicts[1]
    assert_allclose(crf.predict_marginals_single(X[1]), tables[1])
    with pytest.raises(TypeError, match="attribute names must be strings; got dict"):
        crf.predict_single(X)  # all of them
    data = SequenceData(np.eye(2), [0, 1, 2])
    with pytest.raises(ValueError, match=r"x must be one sequence or graph.* got 2"):
        ChainCRF().fit(data, [["a"], ["b"]]).predict_single(data)


def test_labels_among_the_weights_are_plain_strings(crf):
    for first, second, weight in crf.transitions():
        assert (type(first), type(second), type(weight)) == (str, str, float)
    assert {type(label) for _, label, _ in crf.state_features()} == {str}
    assert ("word.lower()=dog", "N") in {(name, label) for name, label, _ in crf.state_features()[:20]}


@pytest.mark.parametrize("estimator", [ChainCRF, TreeCRF])
def test_a_fit_that_ends_far_from_its_tolerance_warns(estimator):
    graphs = [(np.eye(3), [(0, 1), (1, 2)])] * 2
    data, y = (graphs if estimator is TreeCRF else [rows for rows, _ in graphs]), [["a", "b", "a"], ["a", "a", "b"]]
    with pytest.warns(
        ConvergenceWarning, match=rf"{estimator.__name__} stopped after 1 epochs .*raise max_epochs or tol"
    ):
        assert estimator(tol=1e-9, max_epochs=1).fit(data, y).status_ == "max_steps"
    assert estimator(tol=1e-3).fit(data, y).status_ == "converged"  # and is silent


@pytest.mark.parametrize("estimator", [ChainCRF, TreeCRF])
def test_settings_are_checked(estimator):
    data = [(np.eye(3), [(0, 1)])] if estimator is TreeCRF else [np.eye(3)]
    for name, value in [
        ("bias", 2), ("bias", None), ("tol", "small"), ("tol", -1.0), ("l2", "1"), ("l2", 0.0), ("l1", None),
        ("l1", -1.0), ("max_epochs", 2.5), ("max_epochs", True), ("max_epochs", 0), ("n_blocks", 0), ("n_blocks", 1.5),
        ("n_jobs", 0), ("nonuniformity", 2.0), ("nonuniformity", "no"), ("sampling", "luck"), ("marginals", "float16"),
        ("time_limit", 0), ("time_limit", "soon"), ("solver", "magic"),
        ("max_table" if estimator is TreeCRF else "min_count", -1),
    ]:  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
            estimator(**{name: value}).fit(data, [["a", "b", "a"]])
    with pytest.raises(TypeError, match="bias must be True or False; got 2"):
        ChainProblem(SequenceData(np.eye(3), [0, 3], [0, 1, 0]), 2, bias=2)
