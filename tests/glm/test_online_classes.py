"""On-line learners of several classes: each is the learner of one class against the rest, and files stay small."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

from cumulant import files
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, FileFormatError
from cumulant.glm import OnlineL1Logistic, OnlineLasso, hashing

X, Y = load_iris(return_X_y=True)
X, NAMES = (X - X.mean(axis=0)) / X.std(axis=0), np.array(["setosa", "versicolor", "virginica"])[Y]
ORDER = np.random.default_rng(0).permutation(len(Y))


def test_it_is_a_scikit_learn_classifier_of_several_classes():
    reason = "rows are learned one by one, in an order that depends on their number"
    expected = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    model = OnlineL1Logistic(passes=20, random_state=0)
    results = check_estimator(model, on_skip=None, on_fail=None, expected_failed_checks=expected)
    assert [(r["check_name"], str(r["exception"])) for r in results if r["status"] == "failed"] == []
    assert model.__sklearn_tags__().classifier_tags.multi_class


def test_each_class_is_the_learner_of_that_class_against_the_rest_bit_for_bit():
    model = OnlineL1Logistic(l1=1e-3)
    for rows in np.array_split(ORDER, 4):
        model.partial_fit(X[rows], NAMES[rows], classes=np.unique(NAMES))
    for k, name in enumerate(model.classes_):
        alone = OnlineL1Logistic(l1=1e-3).partial_fit(X[ORDER], NAMES[ORDER] == name, classes=[False, True])
        assert_array_equal(model.coef_[k], alone.coef_[0])
        assert model.intercept_[k] == alone.intercept_[0]
        assert model.diagnostics()[name] == alone.diagnostics()
    shares = 1 / (1 + np.exp(-model.decision_function(X)))
    assert_allclose(model.predict_proba(X), shares / shares.sum(axis=1, keepdims=True), rtol=1e-12)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-10)
    assert_array_equal(model.predict(X), model.classes_[np.argmax(shares, axis=1)])


def test_a_fit_is_that_of_scikit_learns_one_against_the_rest():
    ours = OnlineL1Logistic(l1=1e-2, passes=30, step_delay=10.0, random_state=0).fit(X, NAMES)
    peer = OneVsRestClassifier(OnlineL1Logistic(l1=1e-2, passes=30, step_delay=10.0, random_state=0)).fit(X, NAMES)
    assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=1e-10)
    gap = sum(each.certificate_.upper for each in peer.estimators_)
    assert_allclose(ours.certificate_.upper, gap, rtol=1e-9)
    assert ours.verify(X, NAMES).upper == ours.certificate_.upper
    with pytest.raises(CertificateError, match="does not hold"):
        ours.verify(X, NAMES[::-1])
    progress = OnlineL1Logistic().progressive(X[ORDER], NAMES[ORDER], classes=np.unique(NAMES))
    assert progress.shape == (150, 3)
    assert_allclose(progress.sum(axis=1), 1)


def test_pruning_and_paths_of_several_classes():
    model = OnlineL1Logistic(l1=1e-2, passes=30, random_state=0).fit(X, NAMES)
    assert model.prune(0.5, X).removed == 6
    assert np.count_nonzero(model.coef_) == 6
    path = OnlineL1Logistic(passes=30, random_state=0).regularization_path(X, NAMES, [0.1, 0.01])
    assert path.coef.shape == (2, 3, 4)
    assert path.intercept.shape == (2, 3)
    for certificate, subject in zip(path.certificates, path.subjects, strict=True):
        assert isinstance(subject, Subject)
        assert certificate.verify(subject).upper == certificate.upper


def test_several_classes_are_resumed_from_a_checkpoint(tmp_path):
    settings = {"passes": 6, "random_state": 0}
    whole = OnlineL1Logistic(1e-3, **settings).fit(X, NAMES)
    stopped = OnlineL1Logistic(1e-3, **settings, checkpoint=tmp_path / "fit", callback=lambda s: s.step >= 2)
    assert stopped.fit(X, NAMES).status_ == "stopped"
    again = OnlineL1Logistic(1e-3, **settings, checkpoint=tmp_path / "fit", callback=lambda s: False).fit(X, NAMES)
    assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: OnlineL1Logistic().partial_fit(X, NAMES), "classes must be given in the first call"),
        (
            lambda: OnlineL1Logistic().partial_fit(X, NAMES, classes=["setosa", "virginica"]),
            "label 'versicolor' is not",
        ),
        (lambda: OnlineL1Logistic().fit(X, X[:, 0]), "Unknown label type: continuous"),
        (lambda: OnlineL1Logistic().fit(X, Y, (Y != 1).astype(float)), "at least one row of each class"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Files ----------------------------------------------------------------------------------------------------------------


def states_of(model):
    return [array for state in model._states for array in state.arrays().values()]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize(
    "settings", [{}, {"curvature": "diagonal"}, {"deferral": 0.0, "formulation": "split"}], ids=str
)
def test_a_file_is_as_large_as_the_features_that_occurred_and_the_same_state(settings, classes, tmp_path):
    rng = np.random.default_rng(0)
    columns, seen = (2**18, 500) if settings.get("deferral") != 0.0 else (2**12, 100)
    used = rng.choice(columns, seen, replace=False)
    entries = rng.random(3000), (rng.integers(0, 300, 3000), used[rng.integers(0, seen, 3000)])
    rows, y = sp.csr_matrix(entries, shape=(300, columns)), rng.integers(0, classes, 300)
    model = OnlineL1Logistic(**settings).partial_fit(rows[:200], y[:200], classes=range(classes))
    path = model.save(tmp_path / "model")
    learners = classes if classes > 2 else 1
    nonzero = np.count_nonzero(model.coef_)
    assert nonzero <= seen * learners
    assert path.stat().st_size < 60 * nonzero + learners * (3 * 8 * 4097 + 8000)
    again = OnlineL1Logistic.load(path)
    for own, read in zip(states_of(model), states_of(again), strict=True):
        if own.shape != (3, 4097):  # of the block so far, what is behind the position was left from earlier ones
            assert_array_equal(own, read)
    for each in (model, again):
        each.partial_fit(rows[200:], y[200:])
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.decision_function(rows), model.decision_function(rows))
    assert again.save(tmp_path / "again").read_bytes() == model.save(tmp_path / "model").read_bytes()


def test_a_spam_filter_of_a_million_columns_is_a_small_file(tmp_path):
    texts = [f"word{i % 700} cheap{i % 97} noon{i % 31}" for i in range(1500)]
    model = OnlineL1Logistic().partial_fit(hashing().transform(texts), np.arange(1500) % 2, classes=[0, 1])
    assert model.n_features_in_ == 2**20
    assert model.save(tmp_path / "filter").stat().st_size < 200_000  # 46 MB if every column were stored


def test_pruned_weights_stay_zero_in_a_file(tmp_path):
    digits, y = load_digits(return_X_y=True)
    model = OnlineL1Logistic(l1=1e-3, passes=1, random_state=0).fit(digits / 16.0, y)
    model.prune(0.4)
    again = OnlineL1Logistic.load(model.save(tmp_path / "pruned"))
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.predict(digits / 16.0), model.predict(digits / 16.0))
    for each in (model, again):  # learning continues from the interior point
        each.partial_fit(digits[:50] / 16.0, y[:50])
    assert_array_equal(again.coef_, model.coef_)


def test_files_that_do_not_fit_are_refused(tmp_path):
    model = OnlineLasso().partial_fit(sp.csr_matrix(np.eye(6)[:, :4]), np.arange(6.0))
    path = model.save(tmp_path / "model")
    saved = files.load(path)
    changes = {
        "0.last": saved.arrays["0.last"][:-1],
        "0.s0": saved.arrays["0.s0"].astype(np.float32),
        "0.differing": saved.arrays["0.differing"] + 3,
        "0.history": saved.arrays["0.history"][:2],
        "0.features": np.asarray(0),
    }
    for name, array in changes.items():
        files.save(path, saved.kind, saved.arrays | {name: array}, saved.settings)
        with pytest.raises(FileFormatError, match=f"{name[2:]} must (be|have)|numbers of features"):
            OnlineLasso.load(path)
