"""The subgraphs world: its proved rate against enumerated chains, and learning by it against exact learning."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError
from cumulant.graphical import MCMC, Ferromagnetic, Ising, SamplingPlan, complete, fit, replay, subgraphs_mixing
from cumulant.graphical.samplers.subgraphs import SubgraphsWorld

CYCLE = [(0, 1), (1, 2), (2, 3), (3, 0)]
GRAPHS = [[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], complete(4).tolist(), [(0, 1), (0, 2), (0, 3), (0, 4)], [(0, 1)]]


def chain(world):
    """The transition matrix over all subgraphs, and the distribution, from the weights of the definition."""
    m = len(world.edges)
    states = np.array(list(itertools.product((0, 1), repeat=m)), dtype=np.uint8)
    log_w = world.log_weight(states)
    p = np.exp(log_w - log_w.max())
    matrix, code = np.zeros((2**m, 2**m)), 2 ** np.arange(m)[::-1]
    for a, present in enumerate(states):
        for e in range(m):
            other = present.copy()
            other[e] ^= 1
            b = int(other @ code)
            matrix[a, b] = min(1.0, p[b] / p[a]) / (2 * m) if p[a] > 0 else 0.0
        matrix[a, a] = 1.0 - matrix[a].sum()
    return matrix, p / p.sum()


@pytest.mark.parametrize("edges", GRAPHS, ids=["square with diagonal", "complete", "star", "edge"])
def test_the_proved_rate_is_above_that_of_enumerated_chains(edges):
    rng = np.random.default_rng(len(edges))
    for field in (0.1, 0.4, 1.5):
        n = int(np.max(edges)) + 1
        world = SubgraphsWorld(edges, rng.uniform(0.05, 2.0, len(edges)), field * rng.uniform(1.0, 1.5, n))
        matrix, p = chain(world)
        root = np.sqrt(p)
        values = np.linalg.eigvalsh(root[:, None] * matrix / root)
        gap, mixing = 1.0 - values[-2], world.mixing
        assert values[0] > -1e-12  # lazy
        assert gap >= -mixing.log_rate * (1 - 1e-9)
        law = np.zeros(len(p))
        law[0] = 1.0
        for v in range(0, 2000, 100):
            assert 0.5 * np.abs(law - p).sum() <= mixing.distance(v) + 1e-13
            law = law @ np.linalg.matrix_power(matrix, 100)


def test_the_rate_is_that_of_the_smallest_field():
    """With two small fields the rate of the larger ones would be false."""
    world = SubgraphsWorld(complete(4), 1.5, [0.02, 1.0, 1.0, 0.02])
    matrix, p = chain(world)
    root = np.sqrt(p)
    gap = 1.0 - np.linalg.eigvalsh(root[:, None] * matrix / root)[-2]
    assert -world.mixing.log_rate <= gap < -subgraphs_mixing(6, np.tanh(1.0)).log_rate


def test_ferromagnets_are_learnt_by_the_subgraphs_world():
    truth = Ising(CYCLE, [0.6, 1.2, 0.4, 0.9], [0.8, 0.9, 1.0, 0.9])  # no fast-mixing set holds it
    x = truth.sample(300, rng=0)
    settings = {"mixing": Ferromagnetic(0.6), "l2": 1.0}
    exact = fit(x, truth, method="exact", **settings)
    assert exact.certificate.upper < 1e-8
    found = fit(x, truth, method=MCMC(eps=0.8), rng=0, **settings)
    assert found.status == "converged"
    distance = np.linalg.norm(found.model.theta - exact.model.theta)
    assert distance <= found.certificate.upper <= 0.8 < found.problem.distance_from_start()  # more than the start says
    assert distance < 0.1
    assert (found.model.couplings >= 0).all()
    assert (found.model.fields >= 0.6).all()
    assert_allclose(found.path[0], [0.6] * 4 + [0.0] * 4)
    assert replay(found).certificate == found.certificate
    found.certificate.verify(found.subject)
    outside = dataclasses.replace(found, path=found.path - 1e-6)
    with pytest.raises(CertificateError):
        found.certificate.verify(Subject(found.problem, outside))


def test_the_start_of_a_ferromagnet_is_where_spins_are_independent():
    from cumulant.graphical import learning_problem

    x = Ising(CYCLE, 0.5, 0.5).sample(50, rng=0)
    problem = learning_problem(x, Ising(CYCLE, 0.0, np.zeros(4)), mixing=Ferromagnetic(0.7), l2=0.5)
    value, gradient = problem.at_start()
    exact_value, exact_gradient = problem.value_and_gradient(problem.fast_set.least)
    assert_allclose(value, exact_value, rtol=1e-12)
    assert_allclose(gradient, exact_gradient, atol=1e-12)
    best = fit(x, Ising(CYCLE, 0.0, np.zeros(4)), method="exact", mixing=Ferromagnetic(0.7), l2=0.5).model.theta
    assert np.linalg.norm(best - problem.fast_set.least) <= problem.distance_from_start()


def test_what_is_refused():
    x = np.ones((4, 4), int)
    with pytest.raises(ValueError, match="fields=True"):
        fit(x, CYCLE, mixing=Ferromagnetic(), l2=1.0, fields=False)
    with pytest.raises(ValueError, match="starts='data'"):
        fit(x, CYCLE, method=MCMC(starts="data"), mixing=Ferromagnetic(), l2=1.0)
    with pytest.raises(CertificateError, match="give l2 > 0"):
        fit(x, CYCLE, method=MCMC(plan=SamplingPlan(1, 1, 1)), mixing=Ferromagnetic())
    with pytest.raises(ValueError, match="least_field"):
        Ferromagnetic(0.0)
    for edges, least in ((3000, 0.5), (5, 1e-90)):
        with pytest.raises(DomainError, match="no number"):
            subgraphs_mixing(edges, least)
