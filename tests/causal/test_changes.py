"""Which mechanism changed: exact evidence against sums over sequences, and recovery of simulated changes."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import CategoricalSCM, normal_changes, sample_normal_reference, sample_reference, table_changes
from cumulant.causal.changes import _evidence

NAMES = {("none", None), ("everything", None)} | {(kind, v) for kind in ("cause", "effect", "row") for v in (0, 1)}


def counts_of(model, n, rng):
    x, y = model.sample(n, rng=rng)
    return np.bincount(model.sizes[1] * x + y, minlength=np.prod(model.sizes)).reshape(model.sizes)


def test_evidence_is_a_probability_of_sequences():
    """It adds up to one over all sequences of four observations of three categories."""
    sequences = itertools.product(range(3), repeat=4)
    logs = [_evidence(np.bincount(s, minlength=3), 0.7) for s in sequences]
    assert_allclose(np.exp(logs).sum(), 1.0)
    draws = np.random.default_rng(0).dirichlet([0.7] * 3, 200_000)
    values = draws[:, 0] ** 2 * draws[:, 1]
    found = math.exp(_evidence(np.array([2, 1, 0]), 0.7))
    assert abs(values.mean() - found) < 4 * values.std() / np.sqrt(values.size)


def test_the_evidence_of_a_table_is_the_same_in_both_directions():
    """Theorem 4.C.1: the marginal and the rows have independent Dirichlet distributions, whichever way."""
    counts = np.random.default_rng(0).integers(0, 9, (3, 4))
    whole = _evidence(counts.ravel(), 0.5)
    for table in (counts, counts.T):
        rows, columns = table.shape
        by_parts = _evidence(table.sum(axis=1), 0.5 * columns) + _evidence(table, 0.5).sum()
        assert_allclose(by_parts, whole, rtol=1e-12)
        assert rows * columns == 12


@pytest.mark.parametrize("kind", ["cause", "effect", "single", "none"])
def test_simulated_changes_of_tables_are_found(kind):
    """Of 20 changes of each kind, nearly all; a change of the cause is never taken for one of the effect."""
    right = []
    for seed in range(20):
        model = sample_reference(5, 1, "dense", rng=seed)[0]
        after = model if kind == "none" else model.intervene(kind, rng=seed + 100)
        found = table_changes(counts_of(model, 3000, seed + 200), counts_of(after, 3000, seed + 300))
        assert {each[:2] for each in found} == NAMES
        assert_allclose(sum(each.probability for each in found), 1.0)
        assert [each.probability for each in found] == sorted((e.probability for e in found), reverse=True)
        expected = {"cause": ("cause", 0), "effect": ("effect", 1), "single": ("row", 1), "none": ("none", None)}[kind]
        right.append(found[0][:2] == expected)
    assert sum(right) >= 19


def test_exchanging_the_variables_exchanges_the_explanations():
    model = sample_reference(4, 1, "dense", rng=0)[0]
    before, after = counts_of(model, 500, 1), counts_of(model.intervene("cause", rng=3), 500, 2)
    found = {each[:2]: each.probability for each in table_changes(before, after)}
    turned = {each[:2]: each.probability for each in table_changes(before.T, after.T)}
    for (kind, variable), probability in found.items():
        assert_allclose(turned[kind, None if variable is None else 1 - variable], probability, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("kind", ["cause", "effect", "none"])
def test_simulated_changes_of_normal_models_are_found(kind):
    right = []
    for seed in range(20):
        model = sample_normal_reference(1, 1, seed)[0]
        after = model if kind == "none" else model.intervene(kind, rng=seed + 100)
        tables = [np.hstack(each.sample(1000, rng=seed + k)) for k, each in ((200, model), (300, after))]
        expected = {"cause": ("cause", 0), "effect": ("effect", 1), "none": ("none", None)}[kind]
        right.append(normal_changes(*tables)[0][:2] == expected)
    assert sum(right) >= 18


def cause_is_sure(changes):
    """Explanations by a change of a cause have a probability of 0.95 together: what a claim of direction needs."""
    return changes[0].kind != "none" and sum(each.probability for each in changes if each.kind == "cause") >= 0.95


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("K", [2, 4])
def test_a_change_of_the_effect_is_hardly_ever_taken_for_one_of_a_cause(K, n):
    wrong = 0
    for seed in range(150):
        model = sample_reference(K, 1, "dense" if seed % 2 else "sparse", rng=seed)[0]
        after = model.intervene("effect", rng=seed + 1000)
        wrong += cause_is_sure(table_changes(counts_of(model, n, seed + 2000), counts_of(after, n, seed + 3000)))
    assert wrong <= 3


@pytest.mark.parametrize("changed", ["rows", "everything"])
def test_other_changes_are_rarely_taken_for_one_of_a_cause(changed):
    """New rows for every cause, or a new table: in at most one of twenty, which is what 0.95 says."""
    wrong, n = 0, 150
    for seed in range(n):
        model, other = (sample_reference(3, 1, "dense" if seed % 2 else "sparse", rng=seed + k)[0] for k in (0, 5000))
        after = CategoricalSCM(model.log_cause, other.log_effect) if changed == "rows" else other
        wrong += cause_is_sure(table_changes(counts_of(model, 300, seed + 1), counts_of(after, 300, seed + 2)))
    assert wrong <= 0.05 * n


@pytest.mark.parametrize("n", [30, 300])
def test_normal_changes_of_the_effect_are_hardly_ever_taken_for_those_of_a_cause(n):
    wrong = 0
    for seed in range(150):
        model = sample_normal_reference(1, 1, seed)[0]
        tables = (
            model.sample(n, rng=seed + 2000),
            model.intervene("effect", rng=seed + 1000).sample(n, rng=seed + 3000),
        )
        wrong += cause_is_sure(normal_changes(*map(np.hstack, tables)))
    assert wrong <= 3


CLOUD = np.random.default_rng(0).normal(size=(30, 2))
LINE = CLOUD[:, :1] * [1.0, 2.0]


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_unit_of_measurement_does_not_matter(unit):
    expected = normal_changes(CLOUD, np.add(CLOUD[::-1], [3.0, 0.0]))
    found = normal_changes(unit * CLOUD, unit * (np.add(CLOUD[::-1], [3.0, 0.0])))
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    assert_allclose([each.probability for each in found], [each.probability for each in expected], rtol=1e-9)


def test_a_transfer_far_away_is_not_constant():
    assert normal_changes(CLOUD, CLOUD[::-1] + 1e9)[0].kind != "none"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: table_changes(np.zeros((2, 2)), np.ones((2, 2))), "reference must be a table of counts"),
        (lambda: table_changes(np.ones((2, 2)), np.ones((2, 3))), "transfer must have the shape of the reference"),
        (lambda: table_changes(np.ones((2, 2)), -np.ones((2, 2))), "transfer must be a table of counts"),
        (lambda: table_changes(np.ones((2, 2)), np.ones((2, 2)), 0.0), "pseudo_count must be positive"),
        (
            lambda: table_changes(np.ones((2, 2)), np.ones((2, 2)), 1e16),
            "pseudo_count must be between 1e-300 and 1e\\+09",
        ),
        (
            lambda: table_changes(np.full((2, 2), 1e15), np.ones((2, 2))),
            "reference must have at most 1e\\+09 observations",
        ),
        (lambda: normal_changes(np.ones((9, 3)), np.ones((9, 2))), "reference must have two columns"),
        (lambda: normal_changes(LINE * [1, 0], CLOUD), "reference must have columns that are not constant"),
        (lambda: normal_changes(CLOUD, LINE), "transfer must have columns that are not linear functions"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()
