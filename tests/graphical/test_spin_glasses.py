"""Exact sums over the states of square lattices, however cold: enumeration, 60 digits, published numbers."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.certificates import Certificate, Subject
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.graphical import (
    Ising,
    complete,
    density_of_states,
    grid,
    lattice,
    spin_glass,
    spin_glass_log_partition,
    torus,
    torus_log_partition,
)
from cumulant.graphical.exact import spin_glasses
from cumulant.graphical.exact.residues import primes_below, whole_numbers
from cumulant.graphical.exact.square_lattice import SquareLattice
from tests.graphical.test_acceptance import pattern, ring
from tests.reference.lattices import energies_of_all_states, torus_by_determinants

LATTICES = [
    ((3, 4), False), ((4, 3), (True, False)), ((3, 4), (True, False)), ((3, 4), (False, True)), ((3, 4), True),
    ((3, 3), True), ((2, 5), False), ((2, 5), (False, True)), ((1, 6), False), ((1, 5), (False, True)), ((5, 1), False),
]  # fmt: skip


def log_z_in_digits(model, beta=1.0):
    """``log Z`` over all states with 60 digits."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(-mpmath.mpf(beta) * e) for e in energies_of_all_states(model, mpmath.mpf)]
        return mpmath.log(mpmath.fsum(terms))


@pytest.mark.parametrize(("shape", "joined"), LATTICES)
def test_the_truth_is_in_the_interval_from_hot_to_cold(shape, joined):
    edges = lattice(shape, joined)
    rng = np.random.default_rng(len(edges))
    for scale in (1e-9, 0.3, 2.0, 30.0, 700.0):
        model = Ising(edges, scale * rng.normal(size=len(edges)))
        found = spin_glass_log_partition(model)
        with mpmath.workdps(60):
            truth = log_z_in_digits(model)
            assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)
        assert found.width <= 2e-13 * (len(edges) + np.abs(model.couplings).sum())
        model.verify(found)


def test_missing_bonds_ties_and_permuted_edges():
    rng = np.random.default_rng(7)
    for trial in range(12):
        edges = torus(4, 4) if trial % 2 else grid(4, 4)
        kept = rng.permutation(len(edges))[: rng.integers(5, len(edges))]
        couplings = rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0], kept.size) * rng.choice([0.5, 20.0])
        model = Ising(edges[kept][:, ::-1], couplings, np.zeros(16))
        found = spin_glass_log_partition(model)
        assert abs(found.estimate - model.log_partition(method="enumeration")) < 1e-11 * max(1.0, found.estimate)
        levels, counts = np.unique(energies_of_all_states(model), return_counts=True)
        states = density_of_states(model)
        assert_allclose(states.energies, levels, rtol=1e-14)
        assert states.counts == tuple(counts.tolist())


def test_couplings_beyond_the_range_of_numbers():
    """Energies of +-1 bonds are multiples of 4 here: the next level is e^-1200 and less."""
    model = Ising(ring(8, 8), 300.0 * pattern(128))
    found = spin_glass_log_partition(model)
    with mpmath.workdps(60):
        assert mpmath.mpf(found.lower) <= 300 * 98 + mpmath.log(784) <= mpmath.mpf(found.upper)
    with pytest.raises(TooWide, match="bound_log_partition"):
        spin_glass_log_partition(Ising(grid(3, 3), 1e8 * np.linspace(1, math.pi, 12)))
    huge = spin_glass_log_partition(Ising(grid(3, 3), 1e150))  # whole multiples of one number go at any size
    assert huge.lower <= 12e150 <= huge.upper


def test_couplings_of_one_bond_that_cancel():
    """The rounding of their sum was in no allowance: the truth was outside of the interval."""
    for parts in ([1e16, 3.0, -1e16], [1e9, 0.1, -1e9], [-1e16, 1e16, 1.0]):
        found = spin_glass_log_partition(Ising([(0, 1), (1, 0), (0, 1)], parts))
        with mpmath.workdps(60):
            truth = mpmath.log(4 * mpmath.cosh(mpmath.fsum(map(mpmath.mpf, parts))))
            assert mpmath.mpf(found.lower) <= truth <= mpmath.mpf(found.upper)


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (2, 2)])
def test_tori_of_two_rows_have_double_bonds(rows, columns):
    """From each site to the right and down, round the sides: `lattice` makes no such edges, but they may be given."""
    sites = np.arange(rows * columns).reshape(rows, columns)
    edges = np.concatenate([np.stack([sites, np.roll(sites, -1, k)], -1).reshape(-1, 2) for k in (1, 0)])
    edges = edges[edges[:, 0] != edges[:, 1]]
    for scale in (1e-8, 1.0, 1e4):
        model = Ising(edges, scale * np.random.default_rng(rows).normal(size=len(edges)), np.zeros(sites.size))
        found = spin_glass_log_partition(model)
        with mpmath.workdps(60):
            assert mpmath.mpf(found.lower) <= log_z_in_digits(model) <= mpmath.mpf(found.upper)
    signs = Ising(edges, pattern(len(edges)), np.zeros(sites.size))
    levels, counts = np.unique(energies_of_all_states(signs), return_counts=True)
    states = density_of_states(signs)
    assert_allclose(states.energies, levels)
    assert states.counts == tuple(counts.tolist())


def test_densities_of_huge_energies_and_temperatures_that_are_no_numbers():
    states = density_of_states(Ising(grid(3, 3), 1e160))  # the squares of energies are beyond all numbers
    assert states.variance() == states.specific_heat() == 0.0
    assert_allclose(states.specific_heat(0.3e-160), density_of_states(Ising(grid(3, 3), 1.0)).specific_heat(0.3))
    for beta in (math.nan, math.inf, 1e200):
        with pytest.raises(ValueError, match="beta must be finite"):
            states.log_partition(beta)
    with pytest.raises(DomainError, match="add up to less"):
        density_of_states(Ising(grid(3, 3), 1e308))


def test_published_glasses_on_the_twelve_by_twelve_torus():
    random = np.random.default_rng(2024).choice([-1.0, 1.0], 288)
    published = {
        "pattern": (pattern(288), {1: 200.940785628, 2: 372.545749522, 10: 1780.465796916}, 176, 773005650),
        "random": (random, {1: 217.236845309, 2: 412.910528009, 10: 2028.227909838}, 202, 3744),
    }
    for couplings, values, ground, number in published.values():
        states = density_of_states(Ising(ring(12, 12), couplings))
        assert (states.ground_energy, states.n_ground_states) == (-ground, number)
        assert sum(states.counts) == 2**144
        for beta, expected in values.items():
            assert_allclose(states.log_partition(beta), expected, atol=5e-10)
            found = spin_glass_log_partition(Ising(ring(12, 12), beta * couplings))
            assert expected - 5e-10 <= found.upper
            assert found.lower <= expected + 5e-10
        assert_allclose(states.log_partition(30.0), 30 * ground + math.log(number), rtol=1e-14)


def test_both_ways_of_computing_agree(monkeypatch):
    model = Ising(ring(8, 8), 4.0 * pattern(128))
    by_levels = spin_glass_log_partition(model)
    monkeypatch.setattr(spin_glasses, "_points", lambda lattice, levels: math.inf)
    direct = spin_glass_log_partition(model)
    assert direct.lower <= by_levels.upper
    assert by_levels.lower <= direct.upper
    assert_allclose(direct.estimate, 398.664412335, atol=5e-10)


def test_ferromagnets_are_those_of_kaufman():
    for rows, columns, across, down in ((6, 9, 0.3, 0.7), (16, 16, 0.44, 0.44), (5, 7, 2.0, 0.1)):
        edges = torus(rows, columns)
        beside = edges[:, 0] // columns == edges[:, 1] // columns
        model = Ising(edges, np.where(beside, across, down))
        expected = torus_log_partition(rows, columns, (across, down))
        assert_allclose(spin_glass_log_partition(model).estimate, expected, rtol=1e-13)


def test_four_determinants_of_the_torus_agree_while_it_is_warm_and_fail_when_it_is_cold():
    """Kac and Ward's determinants in float64: what the whole numbers are there for."""
    for couplings in (0.8 * pattern(32), np.random.default_rng(1).normal(size=32)):
        model = Ising(ring(4, 4), couplings)
        found = spin_glass_log_partition(model).estimate
        assert_allclose(torus_by_determinants(4, 4, couplings), found, rtol=1e-12)
    errors = []
    for beta in (1.0, 4.0):
        exact = spin_glass_log_partition(Ising(ring(8, 8), beta * pattern(128))).estimate
        errors.append(abs(torus_by_determinants(8, 8, beta * pattern(128)) - exact))
    assert errors[0] < 1e-10
    assert not errors[1] < 1e-3


def test_moments_of_the_energy_and_the_specific_heat():
    couplings = pattern(32)
    states = density_of_states(Ising(ring(4, 4), couplings))
    for beta in (0.2, 0.8, 3.0):
        model = Ising(ring(4, 4), beta * couplings)
        mean, covariance = model.mean()[16:], model.covariance()[16:, 16:]
        assert_allclose(states.log_partition(beta), model.log_partition(), rtol=1e-13)
        assert_allclose(states.mean_energy(beta), -(mean @ couplings), rtol=1e-11)
        variance = couplings @ covariance @ couplings
        assert_allclose(states.variance(beta), variance, rtol=1e-9)
        assert_allclose(states.specific_heat(beta), beta**2 * variance / 16, rtol=1e-9)
        assert_allclose(states.entropy(beta), model.entropy(), rtol=1e-11)
    assert states.specific_heat(0.0) == 0.0
    assert_allclose(states.entropy(60.0), math.log(states.n_ground_states), rtol=1e-12)
    mirrored = density_of_states(Ising(ring(4, 4), -couplings))
    assert_allclose(states.log_partition(-0.7), mirrored.log_partition(0.7), rtol=1e-14)


def test_the_specific_heat_is_the_slope_of_the_mean_energy_by_the_temperature():
    states = density_of_states(Ising(torus(8, 8), 1.0))
    for T in (1.0, 2.269, 4.0):
        h = 1e-5
        slope = (states.mean_energy(1 / (T + h)) - states.mean_energy(1 / (T - h))) / (2 * h) / 64
        assert_allclose(states.specific_heat(1 / T), slope, rtol=1e-6)
    at = np.linspace(1.8, 2.8, 101)
    peak = at[np.argmax([states.specific_heat(1 / T) for T in at])]
    critical = 2 / math.log(1 + math.sqrt(2))
    assert abs(peak / critical - 1 - 0.3603 / 8) < 0.01  # 0.3603 / L, to first order (Ferdinand and Fisher 1969)


def test_energies_of_zero():
    """Of glasses of 6 x 6: none with an odd number of negative bonds, else as the local limit theorem says."""
    for seed, share in ((0, 0.1884703), (2, 0.1888478), (1, 0.0), (3, 0.0)):
        couplings = np.random.default_rng(seed).choice([-1.0, 1.0], 72)
        states = density_of_states(Ising(ring(6, 6), couplings))
        assert_allclose(states.count(0.0) / 2**36, share, atol=5e-8)


def test_a_claim_that_is_wrong_does_not_verify():
    model = spin_glass(torus(5, 5), rng=0)
    found = spin_glass_log_partition(model)
    certificate = found.certificate
    assert Certificate.from_json(certificate.to_json()).verify(Subject(model, found)).bound == certificate.bound
    with pytest.raises(CertificateError):
        certificate.verify(Subject(Ising(model.edges, 1.01 * model.couplings), found))


def test_lattices_are_found_by_their_edges():
    for shape, joined in LATTICES:
        found = SquareLattice.of(Ising(lattice(shape, joined), 0.5))
        assert found is not None
        assert found.right.size == shape[0] * shape[1]
        assert np.count_nonzero(found.couplings) == len(lattice(shape, joined))
    assert SquareLattice.of(Ising(complete(5), 0.5)) is None
    assert SquareLattice.of(Ising(lattice((3, 3, 3)), 0.5)) is None
    wide = SquareLattice.of(Ising(grid(3, 50), 0.5))
    assert wide is not None
    assert wide.shape == (50, 3)


def test_refusals():
    for function in (spin_glass_log_partition, density_of_states):
        with pytest.raises(DomainError, match="fields"):
            function(Ising(grid(3, 3), 0.5, 0.1))
        with pytest.raises(DomainError, match="square lattice"):
            function(Ising(complete(6), 0.5))
        with pytest.raises(TypeError, match="Ising"):
            function(grid(3, 3))
    with pytest.raises(DomainError, match="whole multiples"):
        density_of_states(Ising(grid(3, 3), np.random.default_rng(0).normal(size=12)))


def test_spins_without_bonds():
    model = Ising([], [], np.zeros(5))
    assert density_of_states(model).counts == (32,)
    assert_allclose(spin_glass_log_partition(model).estimate, 5 * math.log(2), rtol=1e-14)


def test_primes_and_residues():
    primes = primes_below(300)
    assert len(set(primes.tolist())) == 300
    for p in primes[:3].tolist():
        assert all(p % k for k in itertools.chain([2], range(3, 46341, 2)))
    rng = np.random.default_rng(0)
    numbers = [int.from_bytes(rng.bytes(40), "little") for _ in range(5)]
    residues = np.array([[number % p for number in numbers] for p in primes[:12].tolist()])
    assert whole_numbers(residues, primes[:12].tolist())[0] == numbers
