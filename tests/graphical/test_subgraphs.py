"""The subgraphs world against enumeration: identities, detailed balance, and the way back to spins."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError
from cumulant.graphical.samplers.subgraphs import SubgraphsWorld
from cumulant.graphical.samplers.subgraphs_kernels import acceptance
from tests.graphical.test_sampling import assert_drawn_from, probabilities
from tests.reference.gibbs import spins_of_subgraph

EDGES = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])
WORLD = SubgraphsWorld(EDGES, [0.3, 0.8, 0.5, 0.1, 0.9], [-0.4, -0.2, -0.7, -0.3])
ALL = np.array(list(itertools.product((0, 1), repeat=5)), dtype=np.uint8)


def law():
    weights = np.exp(WORLD.log_weight(ALL))
    return weights / weights.sum()


def test_the_identities_hold_to_rounding():
    p = law()
    log_sum = np.log(np.exp(WORLD.log_weight(ALL)).sum())
    assert_allclose(WORLD.log_constant + log_sum, WORLD.model.log_partition(method="enumeration"), rtol=1e-13)
    beta, field = WORLD.model.couplings, WORLD.model.fields
    pairs = np.tanh(beta) + (p @ ALL) * 2 / np.sinh(2 * beta)
    single = np.tanh(field) + (p @ WORLD.odd(ALL)) * 2 / np.sinh(2 * field)
    assert_allclose(np.concatenate([single, pairs]), WORLD.model.mean(method="enumeration"), rtol=1e-12)


def test_the_chain_is_in_detailed_balance_and_has_its_transition_matrix():
    p, m = law(), len(EDGES)
    matrix = np.zeros((32, 32))
    edge_weights, site_weights = np.tanh(WORLD.model.couplings), np.tanh(np.abs(WORLD.model.fields))
    for a, present in enumerate(ALL):
        odd = WORLD.odd(present).astype(np.uint8)
        for e in range(m):
            other = present.copy()
            other[e] ^= 1
            ratio = acceptance(e, present, odd, EDGES, edge_weights, site_weights)
            matrix[a, int("".join(map(str, other)), 2)] = min(1.0, ratio) / (2 * m)
        matrix[a, a] = 1.0 - matrix[a].sum()
    assert_allclose(p[:, None] * matrix, (p[:, None] * matrix).T, atol=1e-15)
    assert_allclose(p @ matrix, p, atol=1e-14)
    draws = WORLD.sample(1, rng=0, chains=4000, burn_in=1)
    assert_drawn_from(draws.flat, np.linalg.matrix_power(matrix, 2 * m)[0], (2,) * m)
    assert (
        WORLD.sample(3, rng=0, chains=5, n_jobs=1).values == WORLD.sample(3, rng=0, chains=5, n_jobs=2).values
    ).all()


def test_subgraphs_turn_into_spins_of_the_model():
    p, exact = law(), probabilities(WORLD.model).ravel()
    weights = np.tanh(WORLD.model.couplings), np.tanh(np.abs(WORLD.model.fields))
    mixture = sum(q * spins_of_subgraph(4, EDGES, *weights, present) for q, present in zip(p, ALL, strict=True))
    assert_allclose(mixture[::-1], exact, atol=1e-12)  # the field is negative: all spins are turned
    drawn = ALL[np.random.default_rng(4).choice(32, size=20000, p=p)]
    assert_drawn_from((WORLD.to_spins(drawn, rng=5) + 1) // 2, exact, (2,) * 4)


def test_the_gradient_is_estimated_and_small_couplings_come_from_spins():
    world = SubgraphsWorld(EDGES, [0.3, 0.8, 0.0, 0.01, 0.9], [0.4, 0.2, 0.7, 0.3])
    draws = world.sample(4000, rng=1, chains=4, burn_in=100)
    assert_allclose(world.grad_log_partition(draws), world.model.mean(method="enumeration"), atol=0.06)
    for wrong in ((-0.1, 0.2), (0.1, 0.0), (0.1, [0.1, 0.1, -0.1, 0.1])):
        with pytest.raises(DomainError):
            SubgraphsWorld(EDGES, *wrong)
    with pytest.raises(ValueError, match="0 and 1"):
        WORLD.log_weight([2, 0, 0, 0, 0])
