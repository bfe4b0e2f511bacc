"""Dependency matrices against enumeration, mixing certificates against the transition matrix itself."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError
from cumulant.graphical import (
    BoltzmannMachine,
    FactorGraph,
    Ising,
    PairwiseMRF,
    Potts,
    complete,
    grid,
    random_regular,
    spin_glass,
)
from cumulant.graphical.mixing.certificates import Mixing, NotFastMixing, dependency_norm, gibbs_mixing, mixing_from_tau
from cumulant.graphical.mixing.dependency import dependency_matrix
from cumulant.graphical.mixing.perron import perron_root, spectral_norm
from tests.reference.mixing import transition_matrix, worst_distances

BOUNDS = ("oscillation", "tanh", "linear")


def true_influence(table, fields=None):
    """How far the law of the first variable moves when the second changes, by enumeration."""
    p = np.exp(table + (0.0 if fields is None else fields[:, None]))
    p /= p.sum(axis=0)
    return max(0.5 * np.abs(p[:, b] - p[:, c]).sum() for b in range(p.shape[1]) for c in range(p.shape[1]))


def test_bounds_on_influence_hold_and_are_ordered():
    rng = np.random.default_rng(0)
    best = 0.0
    for _ in range(60):
        q = rng.integers(2, 5, 2)
        table, fields = rng.normal(size=q) * rng.choice([0.3, 2.0]), 3 * rng.normal(size=q[0])
        model = PairwiseMRF([np.zeros(q[0]), np.zeros(q[1])], [(1, 0)], [table.T])
        R = {bound: dependency_matrix(model, bound).toarray() for bound in BOUNDS}
        truth = max(true_influence(table, fields), true_influence(table))
        assert truth <= R["oscillation"][0, 1] * (1 + 1e-12)
        assert (R["oscillation"] <= R["tanh"] + 1e-15).all()
        assert (R["tanh"] <= R["linear"]).all()
        # Unary terms moved into the table change the linear bound and not the oscillation.
        moved = PairwiseMRF([np.zeros(q[0]), np.zeros(q[1])], [(0, 1)], [table + fields[:, None]])
        assert_allclose(dependency_matrix(moved).toarray(), R["oscillation"], atol=1e-12)
        best = max(best, truth / R["oscillation"][0, 1])
    assert best > 0.9


def test_the_oscillation_bound_is_attained():
    t = 0.7
    worst = true_influence(np.array([[t, -t], [-t, t]]))
    assert_allclose(dependency_matrix(Ising([(0, 1)], t)).toarray()[0, 1], worst, rtol=1e-12)
    assert_allclose(dependency_matrix(Ising([(0, 1)], t)).toarray()[0, 1], math.tanh(t), rtol=1e-12)


def test_models_of_the_same_law_have_the_same_oscillation_bound():
    weights, edges = np.array([0.8, -1.2]), [(0, 1), (2, 1)]
    machine, spins = BoltzmannMachine(edges, weights, np.zeros(3)), Ising(edges, weights / 4, np.zeros(3))
    assert_allclose(dependency_matrix(machine).toarray(), dependency_matrix(spins).toarray(), atol=1e-14)
    doubled = Ising([(0, 1), (1, 0)], [0.5, -0.2], np.zeros(2))
    assert_allclose(dependency_matrix(doubled, "linear").toarray(), [[0, 0.3], [0.3, 0]], atol=1e-15)
    assert_allclose(dependency_matrix(Potts([(0, 1)], 1.0, n_states=3)).toarray()[0, 1], math.tanh(0.5), rtol=1e-12)


def test_evidence_takes_variables_out():
    model = Ising(grid(2, 2), 0.3).given({0: 1})
    R = dependency_matrix(model, "linear").toarray()
    assert R[0].sum() == R[:, 0].sum() == 0
    assert R[1, 3] == 0.3
    assert model.mixing_time().details["sites"] == 3


@pytest.mark.parametrize("seed", range(3))
def test_the_chain_is_never_slower_than_certified(seed):
    rng = np.random.default_rng(seed)
    edges = grid(2, 3) if seed else np.array([(i, j) for i in range(6) for j in range(i)])
    scale = 0.4 if seed else 0.15
    model = Ising(edges, rng.uniform(-scale, scale, len(edges)), rng.normal(size=6))
    P, stationary = transition_matrix(6, lambda x: float(model.family.score(np.array(x), model.theta)))
    d = worst_distances(P, stationary, 400)
    proved = 0
    for bound in BOUNDS:
        R = dependency_matrix(model, bound)
        for norm in ("spectral", "one", "inf", "degree"):
            if dependency_norm(R, norm) >= 1:
                continue
            proved += 1
            mixing = gibbs_mixing(R, norm)
            assert (d <= mixing.distance(np.arange(401)) + 1e-12).all()
            for eps in (0.25, 0.01):
                assert np.argmax(d <= eps) <= mixing.tau(eps)
    assert proved >= 6
    certificate = model.mixing_time(0.05)
    assert np.argmax(d <= 0.05) <= certificate.upper
    assert certificate.verify(Subject(model, 0.05)).upper <= certificate.upper
    with pytest.raises(CertificateError, match="quantity"):
        certificate.verify(Subject(model, 0.01))
    weaker = Ising(edges, 1.2 * model.couplings, model.fields)
    assert dependency_norm(dependency_matrix(weaker)) >= 1 or weaker.mixing_time(0.05).upper > certificate.upper


def test_ten_spins_by_powers_of_the_transition_matrix():
    """1,024 states: ``d(v)`` at powers of two and at the certified time itself, from the matrix and nothing else."""
    rng = np.random.default_rng(4)
    for edges, couplings in ((grid(2, 5), 0.3), (complete(10), rng.uniform(-0.15, 0.15, 45))):
        model = Ising(edges, couplings, 0.5 * rng.normal(size=10))
        states = np.array(list(itertools.product((-1, 1), repeat=10)))
        score = dict(zip(map(tuple, states.tolist()), model.family.score(states, model.theta).tolist(), strict=True))
        P, stationary = transition_matrix(10, score.__getitem__)
        certificate = model.mixing_time(0.01)
        mixing = gibbs_mixing(dependency_matrix(model), "spectral")
        assert mixing.tau(0.01) == certificate.upper

        def distance(power, stationary=stationary):
            return 0.5 * np.abs(power - stationary).sum(axis=1).max()

        certified = int(certificate.upper)
        power, at_certified = P, np.eye(len(P))
        for k in range(certified.bit_length()):
            d = distance(power)
            assert d <= mixing.distance(2**k) + 1e-12
            assert d > 0.01 or 2**k > certified / 20  # the bound is loose, but not idle
            at_certified = at_certified @ power if certified >> k & 1 else at_certified
            power = power @ power
        assert distance(at_certified) <= 0.01


def test_constants_of_the_four_by_four_grid():
    kappa = 4 * math.tanh(0.2)
    mixing = mixing_from_tau(16 * math.log(16) / (1 - kappa), 16 / (1 - kappa))
    assert_allclose(mixing.constant, 16)
    assert_allclose(mixing.rate, 0.98692999, atol=5e-9)
    assert_allclose(1 / (1 - mixing.rate), 76.51106, atol=5e-6)
    assert_allclose(-1 / mixing.log_rate, 76.00996, atol=5e-6)
    direct = gibbs_mixing(dependency_matrix(Ising(grid(4, 4), 0.2), "tanh"), "degree")
    assert (direct.tau(0.01), direct.tau(0.25)) == (561, 317)
    assert_allclose(direct.log_rate, mixing.log_rate)
    assert_allclose(spectral_norm(dependency_matrix(Ising(grid(4, 4), 1.0), "linear")).upper, 1 + math.sqrt(5))


def test_refusals_name_the_norm():
    with pytest.raises(NotFastMixing, match=r"spectral norm of the dependency matrix is 1\.49") as refused:
        Ising(grid(4, 4), 0.5).mixing_time()
    assert refused.value.kappa > 1
    with pytest.raises(DomainError, match="at most two variables"):
        FactorGraph([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))]).mixing_time()
    with pytest.raises(DomainError, match="impossible"):
        FactorGraph([2, 2], [((0, 1), [[0.0, -np.inf], [0.0, 0.0]])]).mixing_time()
    model = Ising([(0, 1)], 0.1)
    for wrong in ({"eps": 0.0}, {"norm": "frobenius"}, {"bound": "best"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            model.mixing_time(**wrong)
    with pytest.raises(ValueError, match="not negative"):
        gibbs_mixing(np.array([[0.0, -0.1], [0.1, 0.0]]))
    chain = 0.4 * np.eye(3, k=1) + 0.4 * np.eye(3, k=-1)
    for few in (0, 2, 2.5):  # fewer sites than influence each other would be chosen from too often
        with pytest.raises(ValueError, match="n_sites must be a whole number of at least 3"):
            gibbs_mixing(chain, n_sites=few)
    assert gibbs_mixing(chain, n_sites=6).tau(0.1) > 2 * gibbs_mixing(chain).tau(0.1)
    with pytest.raises(ValueError, match="log_rate"):
        Mixing(1.0, 0.1)


def test_perron_root_lies_between_its_bounds():
    rng = np.random.default_rng(0)
    for n, density in ((1, 1.0), (30, 0.2), (60, 0.02), (450, 0.01)):  # the last goes through the sparse branch
        dense = np.triu(rng.random((n, n)) * (rng.random((n, n)) < density))
        found, truth = perron_root(dense + dense.T), np.linalg.eigvalsh(dense + dense.T)[-1]
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-4 * found.upper
        found, truth = spectral_norm(dense), np.linalg.norm(dense, 2)
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-4 * found.upper
    assert perron_root(np.zeros((3, 3))).upper == 0


def test_a_sparse_graph_of_many_nodes():
    model = spin_glass(random_regular(3000, 4, rng=0), couplings=0.15, rng=0)
    found = spectral_norm(dependency_matrix(model))
    assert found.width <= 1e-4 * found.upper
    assert model.mixing_time().upper < 3000 * math.log(3000 / 0.01) / (1 - found.upper) + 1
    with pytest.raises(NotFastMixing):
        model.mixing_time(norm="inf")
