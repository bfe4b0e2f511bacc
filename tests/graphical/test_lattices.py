"""Lattices of any dimension: their edges against networkx, and samplers on a cube against its exact means."""

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cumulant.graphical import Ising, grid, lattice, spin_glass, torus


@pytest.mark.parametrize(
    ("shape", "periodic"),
    [
        ((5,), False),
        ((5,), True),
        ((2, 3), False),
        ((3, 4), True),
        ((2, 3, 4), False),
        ((3, 4, 3), True),
        ((3, 3, 3, 3), True),
    ],
)
def test_edges_are_those_of_networkx(shape, periodic):
    graph = nx.grid_graph(shape[::-1], periodic=periodic)  # networkx has the first axis last
    number = np.arange(np.prod(shape)).reshape(shape)
    node = (lambda v: v[0] if isinstance(v, tuple) and len(v) == 1 else v) if len(shape) == 1 else (lambda v: v)
    expected = {tuple(sorted((int(number[node(a)]), int(number[node(b)])))) for a, b in graph.edges}
    edges = lattice(shape, periodic)
    assert len(edges) == len(expected)
    assert {tuple(sorted(e)) for e in edges.tolist()} == expected


def test_grids_and_tori_are_lattices_and_axes_may_differ():
    assert_array_equal(lattice((3, 4)), grid(3, 4))
    assert_array_equal(lattice((3, 4), periodic=True), torus(3, 4))
    tube = lattice((2, 3), periodic=(False, True))
    assert len(tube) == 3 + 6
    assert np.bincount(tube.ravel()).tolist() == [3] * 6


@pytest.mark.parametrize("method", ["systematic", "chromatic", "blocked", "swendsen_wang", "wolff", "mcmc"])
def test_samplers_work_in_three_dimensions(method):
    model = Ising(lattice((3, 3, 3), periodic=True), 0.15)
    exact = model.mean(method="elimination")[27:].mean()

    def agreement(x):
        return (x[:, model.edges[:, 0]] * x[:, model.edges[:, 1]]).mean(axis=1)

    draws = model.sample(1500, rng=1, method=method, burn_in=100)
    assert draws.r_hat(agreement) < 1.02
    assert abs(draws.mean(agreement) - exact) < 4 * draws.standard_error(agreement)


def test_perfect_draws_of_a_cube():
    model = Ising(lattice((3, 3, 3)), -0.2)  # without frustration: the cube is bipartite
    exact = model.mean(method="elimination")[27:].mean()
    x = model.sample(1500, rng=2, method="perfect")
    agreement = (x[:, model.edges[:, 0]] * x[:, model.edges[:, 1]]).mean(axis=1)
    assert abs(agreement.mean() - exact) < 4 * agreement.std() / np.sqrt(1500)


def test_a_frustrated_model_is_sampled_by_colours():
    glass = spin_glass(lattice((3, 3, 3), periodic=True), couplings=0.3, kind="signs", rng=0)
    assert glass.sample(10, rng=0, method="mcmc", burn_in=10).method == "chromatic"
    assert Ising(grid(4, 4), -0.3).sample(10, rng=0, method="mcmc", burn_in=10).method == "swendsen_wang"


def test_the_arguments_of_ising_and_spin_glass_have_the_same_names():
    assert np.abs(Ising(grid(2, 2), couplings=0.5, fields=0.2).theta).max() == 0.5
    glass = spin_glass(grid(2, 2), couplings=0.5, fields=0.0, kind="signs", rng=0)
    assert (np.abs(glass.couplings) == 0.5).all()
    with pytest.raises(ValueError, match=r"one number.*Ising\(edges, couplings, fields\)"):
        spin_glass(grid(2, 2), couplings=[1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("shape", "periodic", "message"),
    [
        ((0, 3), False, "shape must be a whole number of at least 1"),
        ((2.5, 3), False, "whole number"),
        ((2, 3), True, "at least 3 variables; axis 0 has 2"),
        ((3, 3), (True,), "one for each of 2 axes"),
    ],
)
def test_bad_shapes_are_refused(shape, periodic, message):
    with pytest.raises(ValueError, match=message):
        lattice(shape, periodic)
