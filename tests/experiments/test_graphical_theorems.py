"""Graphical models: every claim of the experiment on theorems, made small, and what turns its verdict."""

import dataclasses

import pytest

from cumulant.experiments import _lattice_theorems as lattices
from cumulant.experiments import graphical_theorems as experiment
from cumulant.graphical import DensityOfStates, RegionGraph


def test_all_claims_hold_and_have_a_label(tmp_path):
    report = experiment.run(tmp_path, quick=True)
    assert {claim.statement: claim.verdict for claim in report.claims if claim.verdict.startswith("not")} == {}
    assert sum(claim.verdict == "corrected" for claim in report.claims) == 2
    assert all(claim.item for claim in report.claims)
    assert report.pictures[0].stat().st_size > 5_000


def two_more_ground_states(right):
    def wrong(model):
        found = right(model)
        return dataclasses.replace(found, counts=(found.counts[0] + 2, found.counts[1] - 2, *found.counts[2:]))

    return wrong


def counted_twice(right):
    def wrong(model):
        found = right(model)
        return dataclasses.replace(found, counting=tuple(2 * c for c in found.counting))

    return wrong


# What computes the claim, and what to break: an object, an attribute, and a function of the right one.
BROKEN = {
    "two ground states too many": (
        lambda: lattices.glasses()[1], lattices, "density_of_states", two_more_ground_states,
    ),
    "states of zero energy that are not there": (
        lambda: lattices.no_zero_energy(True), DensityOfStates, "count",
        lambda right: lambda self, energy: right(self, energy) + 2**40,
    ),
    "variables counted twice": (lambda: experiment._counting(0, 4), RegionGraph, "bethe", counted_twice),
    "a free energy that is off by a thousandth": (
        lambda: experiment._free_energy_by_messages(0, 8), experiment, "bethe_free_energy",
        lambda right: lambda *given: 1.001 * right(*given),
    ),
    "pruning that forgets the evidence": (
        lambda: experiment._pruned(0, 8), experiment, "prune", lambda right: lambda net, query, _: right(net, query),
    ),
    "a bound that is a little higher": (
        experiment._entropy_sign, experiment, "mean_field",
        lambda right: lambda model, tol: dataclasses.replace(right(model, tol=tol), bound=3.006),
    ),
    "a double loop of one loop": (
        lambda: experiment._convergent(0, 4), experiment, "double_loop",
        lambda right: lambda model, **how: right(model, **{**how, "max_loops": 1}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_verdict_turns_where_what_it_rests_on_is_broken(name, monkeypatch):
    claim, where, attribute, wrong = BROKEN[name]
    assert claim().verdict != "not reproduced"
    monkeypatch.setattr(where, attribute, wrong(getattr(where, attribute)))
    assert claim().verdict == "not reproduced"
