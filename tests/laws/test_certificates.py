"""Every public class that carries a certificate: it verifies through the one call, and a tampered one does not."""

import importlib
import pkgutil
from dataclasses import replace

import numpy as np
import pytest

import cumulant
from cumulant import admixture, families, graphical, optim, particles, relational, variational
from cumulant.certificates import Assumption, Certificate, Interval, Subject
from cumulant.errors import CertificateError
from cumulant.families import risk
from cumulant.geometry import Euclidean
from cumulant.glm import GLM, OnlineL1Logistic, OnlineLasso
from cumulant.graphical.learning.estimators import IsingEstimator, MarkovNetworkEstimator
from cumulant.layers.approximation import step_network
from cumulant.sequences import ChainCRF, TreeCRF

RNG = np.random.default_rng(0)
A, Y = RNG.normal(size=(30, 3)), RNG.normal(size=30)
LABELS = np.where(A[:, 0] + 0.5 * RNG.normal(size=30) > 0, 1, 0)
GRID = graphical.Ising(graphical.grid(3, 3), 0.4, 0.1)
SPINS = GRID.sample(200, rng=0)
WORDS = [[{"w": 1.0, "a": 0.5}, {"v": 1.0}, {"w": 1.0}], [{"v": 1.0}, {"a": 1.0}]]
TAGS = [["N", "V", "N"], ["V", "N"]]
STAR = (np.array([[1.0], [0.0], [0.0]]), [(0, 1), (0, 2)])


def carried(result):
    """The certificate of a result and what it speaks of."""
    return result.certificate, result.subject


RESULTS = {
    "Result": lambda: carried(
        optim.run(optim.GradientDescent(), optim.LeastSquares(A, Y, l2=0.1), np.zeros(3), tol=1e-8)
    ),
    "RidgeSolution": lambda: carried(optim.ridge(A, Y, 1.0)),
    "ImplicitBias": lambda: carried(optim.implicit_bias(A[:2], Y[:2], np.zeros(3), Euclidean())),
    "Risk": lambda: carried(risk.expected_kl(families.NormalKnownMean(), [-0.5], 10)),
    "StepNetwork": lambda: carried(step_network(np.sin, 0.0, 3.0, 20, lipschitz=1.0)),
    "MiniBucket": lambda: carried(graphical.mini_bucket_bound(GRID, i_bound=2)),
    "TreeReweighted": lambda: carried(graphical.tree_reweighted(GRID)),
    "Propagation": lambda: carried(graphical.belief_propagation(graphical.Ising([(0, 1), (1, 2)], 0.5))),
    "MaxProduct": lambda: carried(graphical.max_product(graphical.Ising([(0, 1), (1, 2)], 0.5, 0.2))),
    "MeanField": lambda: carried(graphical.mean_field(GRID)),
    "Projection": lambda: carried(graphical.project(graphical.Ising(graphical.grid(3, 3), 1.0), 0.5)),
    "MeanFieldFit": lambda: carried(
        admixture.mean_field(
            admixture.AdmixtureModel(admixture.Corpus.from_counts([[2, 1, 0], [0, 1, 2]]), 2), n_starts=2
        )
    ),
    "GaussianFit": lambda: carried(variational.fit(variational.logistic_regression(A, LABELS))),
    "DivergenceBound": lambda: carried(
        variational.bound_divergence(variational.fit(variational.logistic_regression(A, LABELS)), n=500)
    ),
    "Fit": lambda: carried(graphical.fit(SPINS, graphical.grid(3, 3), method="exact", l2=0.1)),
    "SparseStructure": lambda: carried(graphical.sparse_structure(SPINS, l1=0.2)),
    "ParticleResult": lambda: carried(particles.anneal(GRID, 50, 10, n_islands=4, rng=0)),
    "VariationalResult": lambda: carried(particles.variational_smc(GRID, 50, 10, finish=5, pilot=True, rng=0)),
    "EMResult": lambda: carried(
        relational.fit_em([relational.SmokersModel().sample(4, 0)], e_step="exact", max_iter=3, rng=0)
    ),
    "Interval": lambda: (lambda interval: (interval.certificate, Subject(GRID, interval)))(
        graphical.bound_log_partition(GRID, exact=False, max_memory=512, max_work=20)
    ),
}

ESTIMATORS = {
    "Admixture": (admixture.Admixture(2, method="mean_field", random_state=0), (np.arange(40).reshape(5, 4, 2) % 3,)),
    "GLM": (GLM("bernoulli", l2=0.1), (A, LABELS)),
    "OnlineLasso": (OnlineLasso(l1=0.05, random_state=0), (A, Y)),
    "OnlineL1Logistic": (OnlineL1Logistic(l1=0.05, random_state=0), (A, LABELS)),
    "IsingEstimator": (IsingEstimator(graphical.grid(3, 3), method="exact", l2=0.1), (SPINS,)),
    "MarkovNetworkEstimator": (
        MarkovNetworkEstimator(graphical.grid(3, 3), method="exact", l2=0.1),
        ((SPINS + 1) // 2,),
    ),
    "ChainCRF": (ChainCRF(l2=0.1, random_state=0), (WORDS, TAGS)),
    "TreeCRF": (TreeCRF(l2=0.1, random_state=0), ([STAR], [["hub", "leaf", "leaf"]])),
}


def classes():
    """Public classes of the library whose annotations, or those of their bases, name a certificate; for a base, its
    subclasses stand.
    """
    found = set()
    for module in pkgutil.walk_packages(cumulant.__path__, "cumulant."):
        if ".experiments" in module.name or ".cli" in module.name:
            continue
        for name, cls in vars(importlib.import_module(module.name)).items():
            own = isinstance(cls, type) and cls.__module__ == module.name and not name.startswith("_")
            if own and not cls.__subclasses__():
                named = {annotation for base in cls.__mro__ for annotation in vars(base).get("__annotations__", {})}
                if named & {"certificate", "certificate_"}:
                    found.add(name)
    return found


def test_no_public_class_with_a_certificate_is_missing_here():
    known = set(RESULTS) | set(ESTIMATORS)
    bases = {base.__name__ for estimator, _ in ESTIMATORS.values() for base in type(estimator).__mro__}
    assert classes() <= known | bases


def assert_honest(certificate, subject):
    assert isinstance(certificate, Certificate)
    fresh = certificate.verify(subject)
    assert fresh.upper <= certificate.upper + max(certificate.slack, fresh.slack)
    assert Certificate.from_json(certificate.to_json()).verify(subject).bound == fresh.bound
    tampered = [
        replace(certificate, quantity="something else"),
        replace(certificate, theorem="no theorem"),
        replace(certificate, assumptions=(*certificate.assumptions, Assumption("luck", "checked"))),
        replace(certificate, recipe="cumulant.nowhere:nothing"),
    ]
    width = abs(fresh.upper) + 1.0
    if isinstance(certificate.bound, Interval):
        low, high = certificate.bound.lower, certificate.bound.upper
        tampered.append(replace(certificate, bound=Interval(low + width, high + width), slack=0.0))
        tampered.append(replace(certificate, bound=Interval(low - width, low - width / 2), slack=0.0))
    else:
        tampered.append(replace(certificate, bound=fresh.upper - width, slack=0.0))
    for lie in tampered:
        with pytest.raises(CertificateError):
            lie.verify(subject)


@pytest.mark.parametrize("name", RESULTS)
def test_results_verify_from_their_subject_and_tampered_ones_do_not(name):
    assert_honest(*RESULTS[name]())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_verify_from_the_data_also_after_loading(name, tmp_path):
    estimator, data = ESTIMATORS[name]
    estimator.fit(*data)
    assert isinstance(estimator.certificate_, Certificate)
    fresh = estimator.verify(*data)
    assert fresh.upper <= estimator.certificate_.upper + estimator.certificate_.slack
    estimator.save(tmp_path / "model.npz")
    loaded = type(estimator).load(tmp_path / "model.npz")
    again = loaded.verify(*data)
    assert again.quantity == loaded.certificate_.quantity
