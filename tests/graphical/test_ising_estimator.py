"""The Ising estimator: scikit-learn's checks, the coding of data, and agreement with the functions beneath."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from cumulant.graphical import Ising, grid
from cumulant.graphical.learning.fit import fit
from cumulant.graphical.learning.ising_estimator import IsingEstimator


@pytest.fixture(scope="module")
def data():
    return Ising(grid(2, 2), [0.5, -0.4, 0.3, 0.2], [0.2, 0.0, 0.0, -0.1]).sample(300, rng=0)


def test_scikit_learn_checks():
    results = check_estimator(IsingEstimator(binarize=0.0), on_skip=None, on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    assert len(results) > 30


def test_agrees_with_fit_and_keeps_the_coding(data):
    bits = IsingEstimator(grid(2, 2), method="exact", l2=0.1, random_state=0).fit((data + 1) // 2)
    spins = IsingEstimator(grid(2, 2), method="exact", l2=0.1, random_state=0).fit(data)
    expected = fit(data, grid(2, 2), method="exact", l2=0.1)
    assert_allclose(bits.model_.theta, expected.model.theta)
    assert_allclose(spins.score_samples(data), expected.model.log_prob(data))
    assert_allclose(bits.score((data + 1) // 2), spins.score(data))
    assert set(np.unique(bits.sample(50))) == {0.0, 1.0}
    assert set(np.unique(spins.sample(50))) == {-1.0, 1.0}
    assert bits.certificate_.upper < 1e-8
    assert (bits.sample(5) == bits.sample(5)).all()


def test_certified_learning_and_trees(data):
    model = IsingEstimator(grid(2, 2), method="mcmc", l2=1.0, radius=0.3, norm="box", eps=0.5, random_state=0).fit(data)
    assert model.certificate_.upper <= 0.5
    assert model.model_.mixing_time(norm="inf").upper > 0
    tree = IsingEstimator("tree", l2=1.0).fit(np.ones((3, 4)))  # one value only: smoothing makes it possible
    assert len(tree.edges_) == 3
    assert tree.certificate_ is None


def test_refusals(data):
    with pytest.raises(ValueError, match="binarize"):
        IsingEstimator().fit(data + 0.5)
    with pytest.raises(ValueError, match="structure must be"):
        IsingEstimator("star").fit(data)
    with pytest.raises(ValueError, match="method must be"):
        IsingEstimator(method="em").fit(data)
    with pytest.raises(NotFittedError):
        IsingEstimator().sample()
