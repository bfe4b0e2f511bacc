"""Transfer matrices of grids, cylinders and tori against enumeration, and elimination where it fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, TooWide
from cumulant.graphical import (
    BoltzmannMachine,
    Ising,
    complete,
    grid,
    lattice,
    torus,
    transfer_matrix,
    transfer_matrix_means,
)
from tests.graphical.test_spin_glasses import LATTICES


@pytest.mark.parametrize(("shape", "joined"), LATTICES)
def test_all_states(shape, joined):
    edges = lattice(shape, joined)
    n = int(np.prod(shape))
    rng = np.random.default_rng(n)
    for scale in (0.3, 3.0, 400.0, 1e100):  # means were infinite in the last
        model = Ising(edges, scale * rng.normal(size=len(edges)), scale * rng.normal(size=n))
        order = rng.permutation(len(edges))
        mixed = Ising(edges[order][:, ::-1], model.couplings[order], model.fields)
        expected = model.log_partition(method="enumeration")
        assert_allclose(transfer_matrix(mixed, *shape), expected, rtol=1e-13)
        value, means = transfer_matrix_means(mixed, *shape)
        assert_allclose(value, expected, rtol=1e-13)
        assert means.shape == shape
        assert_allclose(means.ravel(), model.mean(method="enumeration")[:n], atol=1e-9)


def test_a_torus_that_is_wider_than_long_and_one_that_is_longer_than_wide():
    rng = np.random.default_rng(0)
    for shape in ((4, 9), (9, 4)):
        edges = torus(*shape)
        model = Ising(edges, rng.normal(size=72), rng.normal(size=36))
        value, means = transfer_matrix_means(model, *shape)
        assert_allclose(value, model.log_partition(method="elimination"), rtol=1e-13)
        assert_allclose(means.ravel(), model.mean(method="elimination")[:36], atol=1e-11)


def test_refusals():
    with pytest.raises(TooWide, match="bound_log_partition"):
        transfer_matrix(Ising(torus(13, 13), 0.1, 0.1), 13, 13)
    with pytest.raises(TooWide, match="2\\^17"):
        transfer_matrix_means(Ising(grid(17, 17), 0.1, 0.1), 17, 17)
    with pytest.raises(ValueError, match="not those of a grid or torus"):
        transfer_matrix(Ising(complete(6), 0.1), 2, 3)
    with pytest.raises(ValueError, match=r"2 \* 4 spins"):
        transfer_matrix(Ising(grid(2, 3), 0.1), 2, 4)
    with pytest.raises(TypeError, match="an Ising model; got BoltzmannMachine"):  # it got the answer of spins -1 and 1
        transfer_matrix(BoltzmannMachine(grid(2, 3), 0.1), 2, 3)
    with pytest.raises(DomainError, match="add up to less"):  # NaN
        transfer_matrix_means(Ising(grid(2, 3), 1e308), 2, 3)
    frozen = Ising(grid(2, 3), 1e20, 0.3)  # means were NaN, and with 1e13 wrong in the third digit
    assert transfer_matrix(frozen, 2, 3) == pytest.approx(7e20)
    with pytest.raises(DomainError, match="too few digits of the means"):
        transfer_matrix_means(frozen, 2, 3)
    with pytest.raises(ValueError, match="rows must be a whole number"):
        transfer_matrix(Ising(grid(2, 3), 0.1), 2.0, 3)
