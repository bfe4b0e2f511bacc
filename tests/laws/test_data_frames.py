"""Every estimator of tables takes a data frame: the numbers of the array, with the names of the columns kept."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from cumulant.glm import GLM, OnlineL1Logistic, OnlineLasso
from cumulant.graphical import IsingEstimator

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["a", "b", "c"], index=np.arange(100, 160))
BITS = pd.DataFrame(RNG.integers(0, 2, size=(60, 3)), columns=["a", "b", "c"])
TARGET = pd.Series(2.0 * NUMBERS["a"] + RNG.normal(size=60))
LABEL = pd.Series(np.where(TARGET > 0, "yes", "no"), index=NUMBERS.index)
CASES = {
    "normal": (GLM("normal"), NUMBERS, TARGET),
    "bernoulli": (GLM("bernoulli"), NUMBERS, LABEL),
    "bernoulli, categories": (GLM("bernoulli"), NUMBERS, LABEL.astype("category")),
    "categorical": (GLM("categorical"), NUMBERS, pd.Series(RNG.choice(["p", "q", "r"], 60))),
    "on-line Lasso": (OnlineLasso(random_state=0), NUMBERS, TARGET),
    "on-line logistic": (OnlineL1Logistic(random_state=0), NUMBERS, LABEL),
    "Ising": (IsingEstimator(), BITS, None),
    "Ising tree": (IsingEstimator("tree"), BITS.astype(bool), None),
}


def answers(model, X):
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.score_samples(X))


@pytest.mark.parametrize("name", CASES)
def test_a_frame_gives_the_answers_of_its_array(name):
    estimator, frame, y = CASES[name]
    model = clone(estimator).fit(frame, y)
    plain = clone(estimator).fit(frame.to_numpy(), None if y is None else np.asarray(y))
    assert_array_equal(answers(model, frame), answers(plain, frame.to_numpy()))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(plain, "feature_names_in_")
    with pytest.raises(ValueError, match="feature names"):
        answers(model, frame[["c", "b", "a"]])
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(answers(again, frame), answers(model, frame))


def test_weights_offsets_and_exposures_may_be_series():
    counts = pd.Series(RNG.poisson(1.0, 60), index=NUMBERS.index)
    ones, zeros = pd.Series(np.ones(60), index=NUMBERS.index), pd.Series(np.zeros(60))
    model = GLM("poisson").fit(NUMBERS, counts, sample_weight=ones, exposure=ones)
    assert_array_equal(model.coef_, GLM("poisson").fit(NUMBERS, counts, offset=zeros).coef_)


def test_batches_must_have_the_columns_of_the_first():
    for estimator in (GLM("normal"), OnlineLasso()):
        estimator.partial_fit(NUMBERS, TARGET).partial_fit(NUMBERS, TARGET)
        with pytest.raises(ValueError, match="feature names"):
            estimator.partial_fit(NUMBERS[["b", "a", "c"]], TARGET)
