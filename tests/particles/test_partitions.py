"""Partitions that get finer."""

import numpy as np
import pytest

from cumulant import graphical, particles
from cumulant.graphical import complete, grid, random_regular, torus
from cumulant.particles.conditional.partitions import _Cut, refinements


def sizes(edges, n, how="halve"):
    return [len(blocks) for blocks in refinements(how, n, edges)]


def test_the_grid_is_halved_in_rectangles_and_the_complete_graph_by_number():
    assert sizes(grid(12, 12), 144) == [2, 4, 8, 16, 32, 64, 112, 144]
    assert sizes(complete(26), 26) == [2, 4, 8, 16, 26]
    halves = particles.halve([range(26)], complete(26))
    assert [block.tolist() for block in halves] == [list(range(13)), list(range(13, 26))]
    for blocks in refinements("halve", 144, grid(12, 12)):
        for block in blocks:
            rows, columns = np.divmod(block, 12)
            assert (np.ptp(rows) + 1) * (np.ptp(columns) + 1) == block.size


@pytest.mark.parametrize("how", ["halve", "split_largest", "peel"])
@pytest.mark.parametrize("name", ["grid", "torus", "complete", "regular", "star", "chain", "loose"])
def test_every_sequence_refines_and_its_blocks_are_connected(how, name):
    edges, n = {
        "grid": (grid(3, 5), 15),
        "torus": (torus(4, 4), 16),
        "complete": (complete(9), 9),
        "regular": (random_regular(20, 3, rng=0), 20),
        "star": (np.array([(0, i) for i in range(1, 8)]), 8),
        "chain": (grid(1, 7), 7),
        "loose": (np.array([(0, 1), (1, 2), (4, 5)]), 7),
    }[name]
    found = refinements(how, n, edges)
    assert len(found[-1]) == n
    if how != "halve":
        assert len(found) == n - 1
    elif name not in ("star", "loose"):
        assert len(found) <= np.ceil(np.log2(n)) + 2
    whole = _Cut(edges).pieces(np.arange(n))[0]
    for old, new in zip(((np.arange(n),), *found), found, strict=False):
        particles.check_refinement(old, new)
        if whole == 1:
            assert all(_Cut(edges).pieces(block)[0] == 1 for block in new)


def test_what_does_not_refine_is_refused():
    with pytest.raises(ValueError, match=r"block 1, \[1, 2\], has spins of 2 old blocks"):
        particles.check_refinement([[0, 1], [2, 3]], [[0], [1, 2], [3]])
    for wrong in ([[0, 1], [1, 2, 3]], [[0, 1]], [[0, 1], [2, 4]]):
        with pytest.raises(ValueError, match="new must have each of the 4 spins of old exactly once"):
            particles.check_refinement([[0, 1, 2, 3]], wrong)
    with pytest.raises(ValueError, match="must split a block at every step"):
        refinements(lambda blocks, edges: blocks, 4, grid(2, 2))
    with pytest.raises(ValueError, match="partition must be one of 'halve', 'split_largest', 'peel'; got 'half'"):
        refinements("half", 4, grid(2, 2))
    with pytest.raises(ValueError, match="none of them empty"):
        refinements(lambda blocks, edges: [[0, 1, 2, 3], []], 4, grid(2, 2))


def test_a_block_that_is_not_connected_gets_a_warning():
    model = graphical.Ising(grid(1, 4), 0.3, 0.1)

    def odd_and_even(blocks, edges):
        return [[0, 2], [1, 3]] if len(blocks) == 1 else [[0], [1], [2], [3]]

    with pytest.warns(UserWarning, match=r"block 0, \[0, 2\], is not connected"):
        result = particles.conditional_mean_field(model, 500, temperatures=5, partition=odd_and_even, rng=0)
    assert abs(result.log_partition() - model.log_partition()) < 0.1
