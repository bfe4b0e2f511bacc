"""Which mechanism changed: exact evidence against sums over sequences, and recovery of simulated changes."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import (
    CategoricalSCM,
    initial_distances,
    log_dirichlet,
    normal_changes,
    sample_normal_reference,
    sample_reference,
    table_changes,
)
from cumulant.causal.changes import explain, log_evidence, turned
from cumulant.causal.table_posterior import draw_tables

NAMES = {("none", None), ("everything", None)} | {(kind, v) for kind in ("cause", "effect", "row") for v in (0, 1)}


def counts_of(model, n, rng):
    x, y = model.sample(n, rng=rng)
    return np.bincount(model.sizes[1] * x + y, minlength=np.prod(model.sizes)).reshape(model.sizes)


def test_evidence_is_a_probability_of_sequences():
    """It adds up to one over all sequences of four observations of three categories."""
    sequences = itertools.product(range(3), repeat=4)
    logs = [log_evidence(np.bincount(s, minlength=3), 0.7) for s in sequences]
    assert_allclose(np.exp(logs).sum(), 1.0)
    draws = np.random.default_rng(0).dirichlet([0.7] * 3, 200_000)
    values = draws[:, 0] ** 2 * draws[:, 1]
    found = math.exp(log_evidence(np.array([2, 1, 0]), 0.7))
    assert abs(values.mean() - found) < 4 * values.std() / np.sqrt(values.size)


BEFORE, AFTER, AMONG = np.array([[2.0, 1.0], [0.0, 2.0]]), np.array([[0.0, 3.0], [1.0, 1.0]]), (0.5, 2.0)


def from_the_prior(each, n, rng):
    """Tables before and after a change, as `table_changes` says that they come about; in the order of the variables."""
    a = np.repeat(AMONG, n // 2)
    cause = rng.dirichlet(np.ones(2), n)
    rows = rng.beta(a[:, None], a[:, None], (n, 2))
    rows = np.stack([rows, 1 - rows], axis=-1)
    start = cause[:, :, None] * rows
    new, other = rng.dirichlet(np.ones(2), n), rng.beta(a[:, None], a[:, None], (n, 2))
    if each.kind == "none":
        end = start
    elif each.kind == "everything":
        end = new[:, :, None] * np.stack([other, 1 - other], axis=-1)
    elif each.kind == "cause":
        end = new[:, :, None] * rows
    elif each.kind == "effect":
        end = cause[:, :, None] * new[:, None, :]
    else:
        rows = rows.copy()
        rows[:, each.place] = new
        end = cause[:, :, None] * rows
    return [np.swapaxes(t, 1, 2) if each.cause else t for t in (start, end)]


def test_evidence_and_draws_are_those_of_the_prior():
    """Against draws of the prior, weighted by likelihood: the evidence of explanations, posterior means of tables."""
    names, scores = explain(BEFORE, AFTER, AMONG)
    rng, n, total, means = np.random.default_rng(0), 200_000, 0.0, 0.0
    assert len(names) == len(set(names)) == 12
    for each, score in zip(names, scores, strict=True):
        tables = from_the_prior(each, n, rng)
        likelihood, both = (np.prod(t**c, axis=(1, 2)) for t, c in zip(tables, (BEFORE, AFTER), strict=True))
        joint = likelihood * both
        prior = {"none": 1 / 2, "everything": 1 / 2, "row": 1 / 2}.get(each.kind, 1.0)
        found = prior * joint.mean() / likelihood.mean()
        spread = np.hypot(joint.std() / joint.mean(), likelihood.std() / likelihood.mean())
        assert abs(np.exp(score) - found) < 4.5 * found * spread / np.sqrt(n), each
        total += found
        means = means + found * np.array([np.average(t, axis=0, weights=joint) for t in tables])
    drawn = np.exp(draw_tables([BEFORE, AFTER], AMONG, 40_000, rng))
    assert_allclose(drawn.mean(axis=1), means / total, atol=0.004)


@pytest.mark.parametrize("flip", [False, True])
def test_draws_of_several_transfers_share_the_reference(flip):
    """Changes with either variable as the cause: tables near the true ones, and mechanisms that were kept."""
    n, model = 400_000, sample_reference(3, 1, "dense", rng=1)[0]
    true = [
        model,
        model.intervene("cause", rng=2),
        model.intervene("effect", rng=3),
        model.intervene("single", x0=1, rng=4),
        model,
        model.reverse().intervene("cause", rng=5).reverse(),
        sample_reference(3, 1, "dense", rng=6)[0],
    ]
    counts = [turned(counts_of(each, n, 10 + i), flip).astype(float) for i, each in enumerate(true)]
    drawn = [turned(each, flip) for each in draw_tables(counts, (0.5, 1.0), 5, np.random.default_rng(0))]
    for logs, each in zip(drawn, true, strict=True):
        assert_allclose(np.exp(logs), np.broadcast_to(each.to_joint(), (5, 3, 3)), atol=0.01)
    tables = [CategoricalSCM.from_log_joint(each) for each in drawn]
    start, by_cause, by_effect, by_row, same, backwards, _ = tables
    assert_allclose(by_cause.log_effect, start.log_effect, atol=1e-12)
    assert_allclose(by_effect.log_cause, start.log_cause, atol=1e-12)
    assert_allclose(by_row.log_effect[:, [0, 2]], start.log_effect[:, [0, 2]], atol=1e-12)
    assert_allclose(same.log_joint, start.log_joint, atol=1e-12)
    assert_allclose(backwards.reverse().log_effect, start.reverse().log_effect, atol=1e-12)


def test_intervals_of_draws_hold_what_they_should():
    """Tables of the prior, 40 rows of 9 cells: the log ratio of distances is in the 0.9 interval in 0.9 of them."""
    rng, runs, draws, K, a = np.random.default_rng(1), 300, 99, 3, (0.25, 1.0)
    nothing = np.zeros((K, K))

    def model(cause, rows):
        return log_dirichlet(cause + 1, (), rng)[:, None] + log_dirichlet(rows + rng.choice(a), (), rng)

    def ratio(start, end):
        start, end = (CategoricalSCM.from_log_joint(each) for each in (start, end))
        distances = initial_distances(start, end)
        return np.log(distances.anticausal + 1e-9) - np.log(distances.causal + 1e-9)

    ranks = []
    for _ in range(runs):
        # As the reference says nothing of the direction, its table is drawn again, given its rows, for an explanation.
        first = np.exp(turned(model(np.zeros(K), np.zeros((K, K))), rng.integers(2)))
        before = rng.multinomial(40, first.ravel() / first.sum()).reshape(K, K).astype(float)
        assert_allclose(np.exp(explain(before, nothing, a)[1]).sum(), 8.0)  # explanations, equally probable
        start, end = draw_tables([before, nothing], a, 1, rng)
        after = rng.multinomial(40, np.exp(end).ravel() / np.exp(end).sum()).reshape(K, K).astype(float)
        found = ratio(*draw_tables([before, after], a, draws, rng))
        ranks.append(np.sum(found < ratio(start, end)[0]) + rng.uniform() * np.sum(found == ratio(start, end)[0]))
    ranks = np.array(ranks) / draws
    held = np.mean((ranks > 0.05) & (ranks < 0.95))
    assert abs(held - 0.9) < 3 * np.sqrt(0.9 * 0.1 / runs)
    assert abs(ranks.mean() - 0.5) < 3 / np.sqrt(12 * runs)


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
            "pseudo_count must be between 0.001 and 1e\\+09",
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
