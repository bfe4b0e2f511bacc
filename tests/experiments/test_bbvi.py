"""The experiments on variational inference, in their quick form: no claim fails that the size allows to judge."""

import pytest

from cumulant.experiments.base import find


def failed(name):
    return [claim.statement for claim in find(name).run(quick=True).claims if claim.verdict == "not reproduced"]


def test_the_structure_that_the_theorems_rest_on():
    assert [claim for claim in failed("bbvi-structure") if "costs" not in claim] == []  # small matrices, and a clock


@pytest.mark.slow
def test_the_noise_of_gradients_is_below_its_bounds():
    assert failed("bbvi-noise") == []


@pytest.mark.slow
def test_distances_are_below_the_bounds_of_the_theorems():
    assert failed("bbvi-rates") == []


@pytest.mark.slow
def test_steps_of_all_sizes_run():
    (claim,) = find("bbvi-steps").run(quick=True).claims
    assert "step sizes" in claim.ours
