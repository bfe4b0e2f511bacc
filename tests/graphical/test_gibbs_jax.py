"""Chromatic Gibbs in JAX against enumeration and Kaufman's torus."""

import numpy as np
import pytest

from cumulant.errors import DomainError
from cumulant.graphical import ColouredGibbs, Ising, LatticeGibbs, Potts, UniformTorus, torus
from cumulant.graphical.exact.lattices import torus_log_partition
from cumulant.sampling import sample
from tests.graphical.test_sampling import SPINS, assert_drawn_from, probabilities, sweep_matrix


def test_coloured_chains_are_from_the_model():
    draws = sample(ColouredGibbs(), SPINS, 1, chains=20000, burn_in=40, rng=0)
    assert_drawn_from((draws.flat + 1) // 2, probabilities(SPINS).ravel(), (2,) * 4)
    assert (sample(ColouredGibbs(), SPINS, 1, chains=20000, burn_in=40, rng=0).values == draws.values).all()
    with pytest.raises(DomainError, match="Ising"):
        sample(ColouredGibbs(), Potts([(0, 1)], 1.0, n_states=2), 1)


def test_one_coloured_sweep_has_its_transition_matrix():
    draws = sample(ColouredGibbs(), SPINS, 1, chains=20000, burn_in=0, rng=1)
    uniform = np.full(16, 1 / 16) @ sweep_matrix(SPINS, "chromatic")
    assert_drawn_from((draws.flat + 1) // 2, uniform, (2,) * 4)


def test_the_lattice_has_the_energy_of_the_torus():
    K, step, edges = 0.3, 1e-5, torus(4, 6)

    def energy(x):
        return (x[:, edges[:, 0]] * x[:, edges[:, 1]]).mean(axis=1, dtype=float)

    draws = sample(LatticeGibbs(), UniformTorus(4, 6, K), 50, chains=400, burn_in=50, rng=0)
    exact = (torus_log_partition(4, 6, K + step) - torus_log_partition(4, 6, K - step)) / (96 * step)
    assert abs(draws.mean(energy) - exact) < 4 * draws.standard_error(energy)
    biased = sample(LatticeGibbs(), UniformTorus(4, 6, K, 0.2), 50, chains=400, burn_in=50, rng=1)
    mean = Ising(edges, K, 0.2).mean()[:24].mean()
    total = lambda x: x.mean(axis=1, dtype=float)  # noqa: E731
    assert abs(biased.mean(total) - mean) < 4 * biased.standard_error(total)
    with pytest.raises(ValueError, match="rows"):
        UniformTorus(5, 6, K)
