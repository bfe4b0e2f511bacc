"""The Ising estimator: scikit-learn's checks, the coding of data, and agreement with the functions beneath."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from cumulant.errors import CertificateError, FileFormatError
from cumulant.graphical import MCMC, FastMixing, Ising, grid
from cumulant.graphical.learning.estimators import IsingEstimator
from cumulant.graphical.learning.fit import fit


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
    within = FastMixing(0.3, "box")
    model = IsingEstimator(grid(2, 2), method=MCMC(eps=0.5), l2=1.0, mixing=within, random_state=0).fit(data)
    assert model.certificate_.upper <= 0.5
    assert model.status_ == "converged"
    assert model.model_.mixing_time(norm="inf").upper > 0
    tree = IsingEstimator("tree", l2=1.0).fit(np.ones((3, 4)))  # one value only: smoothing makes it possible
    assert len(tree.edges_) == 3
    assert tree.certificate_ is None


@pytest.mark.parametrize("method", ["exact", "pseudo_likelihood", MCMC(eps=1.0, smoothness=3.0)], ids=str)
def test_the_certificate_is_verified_from_the_data_also_after_a_file(data, method, tmp_path):
    within = FastMixing(0.3, "box") if isinstance(method, MCMC) else None
    bits = (data + 1) // 2
    model = IsingEstimator(grid(2, 2), method=method, l2=1.0, mixing=within, random_state=0).fit(bits)
    loaded = IsingEstimator.load(model.save(tmp_path / "model"))
    for each in (model, loaded):
        assert each.verify(bits).bound == model.certificate_.bound
        if not isinstance(method, MCMC):  # the bound of a plan does not depend on the data
            with pytest.raises(CertificateError):
                each.verify(bits[:100])
        each.model_ = Ising(grid(2, 2), 0.9, np.zeros(4))
        with pytest.raises(CertificateError):
            each.verify(bits)
    assert loaded.get_params() == {**model.get_params(), "structure": grid(2, 2).tolist()}
    loaded = IsingEstimator.load(tmp_path / "model.npz")
    assert_allclose(loaded.score_samples(bits), IsingEstimator.load(tmp_path / "model.npz").score_samples(bits))
    assert (loaded.model_.theta == loaded._found.model.theta).all()
    assert set(np.unique(loaded.sample(20))) == {0.0, 1.0}


def test_a_run_can_be_ended_shown_and_resumed(data, tmp_path):
    tree = IsingEstimator("tree", l2=1.0).fit(data)
    with pytest.raises(CertificateError, match="closed form"):
        tree.verify(data)
    assert IsingEstimator.load(tree.save(tmp_path / "tree")).model_ == tree.model_
    with pytest.raises(FileFormatError, match="Ising"):
        IsingEstimator.load(tree.model_.save(tmp_path / "other"))
    settings = {"l2": 1.0, "mixing": FastMixing(0.3, "box"), "random_state": 0}
    steps = []
    whole = IsingEstimator(grid(2, 2), method=MCMC(eps=1.0), callback=lambda s: steps.append(s.step), **settings)
    whole.fit(data)
    assert steps == list(range(1, whole._found.plan.iterations + 1))
    part = IsingEstimator(
        grid(2, 2), method=MCMC(eps=1.0), callback=lambda s: s.step == 3, checkpoint=tmp_path / "run", **settings
    ).fit(data)
    assert part.status_ == "stopped"
    assert len(part._found.path) == 4
    assert part.certificate_.upper > whole.certificate_.upper
    part.verify(data)
    part.set_params(callback=None).fit(data)
    assert part.status_ == "converged"
    assert (part.model_.theta == whole.model_.theta).all()


def test_refusals(data):
    with pytest.raises(ValueError, match="binarize"):
        IsingEstimator().fit(data + 0.5)
    with pytest.raises(ValueError, match="structure must be"):
        IsingEstimator("star").fit(data)
    with pytest.raises(ValueError, match="method must be"):
        IsingEstimator(method="em").fit(data)
    with pytest.raises(NotFittedError):
        IsingEstimator().sample()
