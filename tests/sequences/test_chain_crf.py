"""The estimator: what it accepts, what it answers, what it refuses, and that it comes back from a file."""

import os
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks

from cumulant.errors import FileFormatError
from cumulant.sequences import ChainCRF, ChainProblem, SequenceData
from tests.sequences.cases import TINY, TINY_OPTIMUM, assert_verifies, ragged

WORDS = [["the", "dog", "runs"], ["a", "dog"], ["the", "cat", "sleeps", "now"], ["runs"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "A"], ["V"]]


def names(sentence):
    return [[f"w={word}", f"s={word[-1]}"] for word in sentence]


def values(sentence):
    return [{f"w={word}": 1.0, f"s={word[-1]}": 1.0} for word in sentence]


def matrix():
    columns = {}
    for sentence in WORDS:
        for token in names(sentence):
            for name in token:
                columns.setdefault(name, len(columns))
    dense = [np.array([[float(c in token) for c in columns] for token in names(s)]) for s in WORDS]
    return dense, np.cumsum([0] + [len(s) for s in WORDS])


def test_every_kind_of_input_gives_the_same_model():
    dense, offsets = matrix()
    inputs = {
        "names": [names(s) for s in WORDS],
        "values": [values(s) for s in WORDS],
        "arrays": dense,
        "lists of numbers": [array.tolist() for array in dense],
        "sparse": SequenceData(sparse.csr_matrix(np.concatenate(dense)), offsets),
    }
    models = {kind: ChainCRF(tol=1e-8).fit(X, TAGS) for kind, X in inputs.items()}
    expected = models["names"]
    for kind, model in models.items():
        assert_allclose(model.weights_, expected.weights_, rtol=1e-12, err_msg=kind)
        assert model.predict(inputs[kind]) == TAGS
        assert model.score(inputs[kind], TAGS) == 1.0


def test_the_tiny_optimum_with_both_solvers():
    for solver in ("sdca", "lbfgs", "auto"):
        crf = ChainCRF(solver=solver, tol=1e-10, max_epochs=1000).fit(TINY)
        assert crf.status_ == "converged"
        assert_allclose(crf.objective_, TINY_OPTIMUM, rtol=1e-9)
        assert crf.certificate_.upper <= 2e-10
        assert crf.objective_ - TINY_OPTIMUM <= crf.certificate_.upper
        seconds = [row["seconds"] for row in crf.history_]
        assert seconds == sorted(seconds)
        assert crf.history_[-1]["gap"] <= 1e-10 * crf.objective_


@pytest.mark.parametrize("solver", ["oeg", "sag", "sag-nus", "saga", "svrg", "gd"])
def test_every_rival_reaches_the_optimum(solver):
    crf = ChainCRF(solver=solver, tol=1e-6, max_epochs=5000).fit(TINY)
    assert crf.status_ == "converged"
    assert crf.objective_ - TINY_OPTIMUM <= crf.certificate_.upper <= 2e-6
    assert crf.history_[-1]["oracle_calls"] >= 3


def test_sequences_of_length_one_are_multinomial_logistic_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = rng.integers(0, 3, size=60)
    crf = ChainCRF(tol=1e-11, max_epochs=2000, solver="lbfgs").fit([row[None] for row in x], [[label] for label in y])
    # With a single node the three biases are three equal columns of ones.
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(np.column_stack([x, np.ones((60, 3))]), y)
    probabilities = np.concatenate(crf.predict_marginals([row[None] for row in x]))
    assert_allclose(probabilities, peer.predict_proba(np.column_stack([x, np.ones((60, 3))])), atol=1e-5)


def test_likelihoods_and_marginals_against_the_problem():
    rng = np.random.default_rng(1)
    data = ragged(rng, n=20)
    crf = ChainCRF(tol=1e-6).fit(data)
    problem = ChainProblem(data, 3)
    log_likelihood = crf.log_likelihood(data)
    assert_allclose(
        -log_likelihood.mean() + 0.5 / 20 * np.sum(crf.weights_**2), problem.value(crf.weights_), rtol=1e-12
    )
    for marginals, length in zip(crf.predict_marginals(data), data.lengths, strict=True):
        assert marginals.shape == (length, 3)
        assert_allclose(marginals.sum(axis=1), 1.0, rtol=1e-12)


def test_what_never_occurs_is_dropped_and_what_is_new_is_ignored():
    x = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    data = SequenceData(x, [0, 2, 3], ["b", "a", "b"])
    crf = ChainCRF(tol=1e-8).fit(data)
    assert crf.weights_.shape == (2 + 3 + 2, 2)
    assert crf.classes_.tolist() == ["a", "b"]
    other = x.copy()
    other[:, 1] = 7.0
    assert crf.predict(SequenceData(other, [0, 2, 3])) == crf.predict(data)
    named = ChainCRF(min_count=2, tol=1e-8).fit([names(s) for s in WORDS], TAGS)
    assert "w=cat" not in named.vocabulary_.names
    assert named.predict([[["w=unicorn"]]])[0][0] in named.classes_
    with pytest.raises(ValueError, match="label 'X' did not occur in training"):
        named.score([names(WORDS[1])], [["X", "N"]])
    with pytest.raises(ValueError, match="label 'X' did not occur in training"):
        named.log_likelihood([names(WORDS[1])], [["X", "N"]])


def test_weights_by_name_are_sorted():
    crf = ChainCRF(tol=1e-6).fit([names(s) for s in WORDS], TAGS)
    features, transitions = crf.state_features(), crf.transitions()
    sizes = [abs(weight) for _, _, weight in features]
    assert sizes == sorted(sizes, reverse=True)
    assert ("w=dog", "N") in {(name, label) for name, label, _ in features[:20]}
    assert transitions[0][:2] in {("D", "N"), ("N", "V")}
    assert len(transitions) == 16


def test_a_model_comes_back_from_its_file(tmp_path):
    X = [names(s) for s in WORDS]
    crf = ChainCRF(tol=1e-6, l1=0.01).fit(X, TAGS)
    path = crf.save(tmp_path / "model")
    loaded = ChainCRF.load(path)
    assert loaded.predict(X) == crf.predict(X)
    assert np.array_equal(loaded.weights_, crf.weights_)
    assert loaded.get_params() == crf.get_params()
    assert (loaded.certificate_, loaded.history_, loaded.status_) == (
        crf.weights_certificate_,
        crf.history_,
        crf.status_,
    )
    assert os.listdir(tmp_path) == ["model.npz"]
    assert_verifies(crf, loaded, X, TAGS)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError):
        ChainCRF.load(path)


def test_it_clones_and_does_not_touch_what_it_is_given():
    crf = ChainCRF(l2=0.5, tol=1e-4, random_state=3)
    copy = clone(crf)
    assert copy.get_params() == crf.get_params()
    data = ragged(np.random.default_rng(2))
    before = data.features.copy()
    crf.fit(data)
    assert (data.features != before).nnz == 0
    with pytest.raises(NotFittedError):
        copy.predict(data)


@pytest.mark.parametrize(
    "name",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
    ],
)
def test_what_scikit_learn_asks_of_every_estimator(name):
    """Those of its checks that do not fit a table of numbers, which sequences are not."""
    getattr(estimator_checks, name)("ChainCRF", ChainCRF())


def test_it_pickles_and_fits_again():
    """What scikit-learn's other checks would ask, on sequences."""
    X = [names(s) for s in WORDS]
    crf = ChainCRF().fit(X, TAGS)
    copy = pickle.loads(pickle.dumps(crf))
    assert copy.predict(X) == crf.predict(X)
    assert copy.certificate_ == crf.certificate_
    before = crf.weights_.copy()
    assert crf.fit(X, TAGS) is crf
    assert np.array_equal(crf.weights_, before)


@pytest.mark.filterwarnings("ignore:ChainCRF stopped after 10 epochs")
def test_the_same_seed_gives_the_same_model_whatever_the_threads():
    data = ragged(np.random.default_rng(3), n=50)
    one = ChainCRF(n_jobs=1, n_blocks=2, random_state=1, max_epochs=10, tol=1e-12).fit(data)
    two = ChainCRF(n_jobs=2, n_blocks=2, random_state=1, max_epochs=10, tol=1e-12).fit(data)
    other = ChainCRF(n_jobs=2, n_blocks=2, random_state=2, max_epochs=10, tol=1e-12).fit(data)
    assert np.array_equal(one.weights_, two.weights_)
    assert not np.array_equal(one.weights_, other.weights_)


def test_l1_makes_weights_zero_and_is_certified():
    data = ragged(np.random.default_rng(4), n=40, attributes=8)
    crf = ChainCRF(l1=0.05, tol=1e-8, max_epochs=2000).fit(data)
    assert crf.status_ == "converged"
    assert np.mean(crf.weights_ == 0) > 0.3
    problem = ChainProblem(data, 3, l1=0.05)
    rng = np.random.default_rng(5)
    for _ in range(50):  # no direction goes down by more than the certificate allows
        w = crf.weights_ + 10.0 ** rng.uniform(-6, -1) * rng.normal(size=crf.weights_.shape)
        assert problem.value(w) >= crf.objective_ - crf.certificate_.upper


def test_limits_are_kept_and_said():
    data = ragged(np.random.default_rng(6), n=40)
    with pytest.warns(ConvergenceWarning, match="raise max_epochs"):
        short = ChainCRF(tol=1e-12, max_epochs=3).fit(data)
    assert short.status_ == "max_steps"
    assert short.history_[-1]["epoch"] <= 3
    timed = ChainCRF(tol=1e-15, max_epochs=10**6, time_limit=0.3).fit(data)
    assert timed.status_ in ("time_limit", "rounding", "converged")
    assert timed.certificate_.upper < np.inf


def test_a_development_set_stops_training_and_keeps_the_best():
    rng = np.random.default_rng(7)
    train, dev = ragged(rng, n=60), ragged(rng, n=30)
    crf = ChainCRF(tol=1e-10, max_epochs=200).fit(train, X_dev=dev, y_dev=dev.labels)
    scores = [row["dev_accuracy"] for row in crf.history_]
    assert crf.status_ == "stopped"
    assert crf.score(dev) == pytest.approx(max(scores))
    assert crf.certificate_.upper >= 0


def test_bad_input_is_refused_with_a_reason():
    X = [names(s) for s in WORDS]
    for bad, message in [
        (lambda: ChainCRF().fit([], []), "list of sequences"),
        (lambda: ChainCRF().fit(X, TAGS[:-1]), "each of the 4 sequences; got 3"),
        (lambda: ChainCRF().fit(X, [*TAGS[:-1], ["V", "V"]]), "sequence 3 has 1 tokens and 2 labels"),
        (lambda: ChainCRF().fit(X), "y must be given"),
        (lambda: ChainCRF().fit([[{"a": np.nan}]], [["x"]]), "finite"),
        (
            lambda: ChainCRF().fit([np.ones((2, 3)), np.ones((2, 2))], [[0, 1], [0, 1]]),
            "sequence 1 of X must have shape",
        ),
        (lambda: ChainCRF(solver="magic").fit(X, TAGS), "solver must be one of"),
        (lambda: ChainCRF(tol=0.0).fit(X, TAGS), "tol must be positive"),
        (lambda: ChainCRF(solver="lbfgs", l1=1.0).fit(X, TAGS), "does not take an l1 penalty"),
        (lambda: ChainCRF(l2=-1.0).fit(X, TAGS), "l2 must be positive"),
        (lambda: ChainCRF(n_jobs=0).fit(X, TAGS), "n_jobs"),
    ]:
        with pytest.raises(ValueError, match=message):
            bad()


def test_one_label_and_no_attributes_are_fine():
    crf = ChainCRF().fit([[["a"], ["b"]]], [["x", "x"]])
    assert crf.predict([[["a"]]]) == [["x"]]
    assert crf.certificate_.upper < 1e-9
    crf = ChainCRF(tol=1e-8).fit([[[], []], [[]]], [["x", "y"], ["y"]])
    assert crf.predict([[[]]]) == [["y"]]


def test_what_does_not_fit_in_memory_is_refused_before_training(monkeypatch):
    from cumulant.sequences import estimator

    monkeypatch.setattr(estimator, "free_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match=r"training needs about .* GiB .* solver='lbfgs'"):
        ChainCRF(solver="sdca").fit(ragged(np.random.default_rng(8), n=50))
    monkeypatch.setattr(estimator, "free_memory", lambda: 500_000)
    crf = ChainCRF(tol=1e-6).fit(ragged(np.random.default_rng(8), n=200, labels=12))
    assert crf.status_ == "converged"
    assert "strong convexity" in crf.certificate_.theorem  # that of L-BFGS


def test_single_precision_says_what_it_cannot_certify():
    data = ragged(np.random.default_rng(9), n=60)
    coarse = ChainCRF(marginals="float32", tol=1e-3).fit(data)
    assert coarse.status_ == "converged"
    assert coarse.certificate_.upper <= 2e-3 * coarse.objective_
    finer = ChainCRF(marginals="float32", tol=1e-9, max_epochs=300).fit(data)
    exact = ChainCRF(tol=1e-10, max_epochs=1000).fit(data)
    assert finer.objective_ - exact.objective_ <= finer.certificate_.upper
    assert finer.status_ != "converged" or finer.certificate_.upper <= 2e-9 * finer.objective_


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_training_that_a_callback_ended_is_resumed_from_its_checkpoint(tmp_path, solver):
    data = ragged(np.random.default_rng(9), n=30)
    settings = {"solver": solver, "tol": 1e-8, "max_epochs": 300}
    whole = ChainCRF(**settings).fit(data)
    path = tmp_path / "run.npz"
    early = ChainCRF(**settings, checkpoint=path, callback=lambda snapshot: snapshot.step >= 3).fit(data)
    assert early.status_ == "stopped"
    resumed = ChainCRF(**settings, checkpoint=path).fit(data)
    assert resumed.status_ == whole.status_ == "converged"
    assert np.array_equal(resumed.weights_, whole.weights_)
    assert resumed.verify(data).upper <= resumed.certificate_.upper + resumed.certificate_.slack
