"""Categorical cause-effect models: published numbers (acceptance checks 1 to 6, 9), identities, refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import (
    CategoricalSCM,
    advantage_gap,
    effect_advantage_ball,
    initial_distances,
    row_log_partitions,
    sample_reference,
)

SMALL = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
TABLE = CategoricalSCM.from_joint([[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]])
SIZES = [2, 3, 5, 20, (3, 7), (6, 2)]


def pair(reference, transfer):
    found = initial_distances(reference, transfer)
    return float(found.causal), float(found.anticausal)


def test_the_reverse_of_the_example():
    """Check 1."""
    backwards = SMALL.reverse()
    assert_allclose(backwards.to_probability().cause, [5 / 12, 7 / 12], rtol=1e-14)
    assert_allclose(backwards.to_probability().effect, [[0.6, 0.4], [3 / 7, 4 / 7]], rtol=1e-14)
    logits = backwards.to_logit()
    assert_allclose(logits.cause, [-0.168236, 0.168236], atol=5e-7)
    assert_allclose(logits.effect, [[0.202733, -0.202733], [-0.143841, 0.143841]], atol=5e-7)


@pytest.mark.parametrize("prior", ["dense", "sparse"])
@pytest.mark.parametrize("K", SIZES)
def test_reversing_twice_changes_nothing(K, prior):
    """Check 1: relative to the largest logarithm, which is in the hundreds for sparse models."""
    model = sample_reference(K, 50, prior, rng=0)
    again = model.reverse().reverse()
    scale = max(1.0, np.abs(model.log_effect).max())
    assert_allclose(again.log_cause, model.log_cause, atol=1e-12 * scale)
    assert_allclose(again.log_effect, model.log_effect, atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("target", "x0", "distances", "kl"),
    [
        ("cause", None, (0.960906, 1.942405), 0.192745),
        ("effect", None, (3.122945, 1.607544), 0.326163),
        ("single", 0, (0.960906, 0.713099), 0.0963724),
    ],
)
def test_two_by_two(target, x0, distances, kl):
    """Checks 2 to 4."""
    changed = SMALL.intervene(target, [0.8, 0.2], x0=x0)
    assert_allclose(pair(SMALL, changed), distances, atol=6e-7)
    assert_allclose(changed.kl(SMALL), kl, rtol=3e-6)


def test_the_ball_of_the_example():
    """Check 3."""
    ball = effect_advantage_ball(SMALL)
    assert_allclose(ball.centre, [-0.178337, 0.178337], atol=6e-7)
    assert_allclose(ball.radius_squared, 0.00357025, rtol=2e-6)
    assert_allclose(advantage_gap(SMALL, np.log([0.8, 0.2])), 1.515401, atol=6e-7)


@pytest.mark.parametrize(
    ("target", "x0", "distances", "kl"),
    [
        ("cause", None, (0.497025, 1.579963), 0.0880152),
        ("effect", None, (6.216642, 4.862028), 0.372610),
        ("single", 2, (2.687766, 2.572585), 0.204904),
    ],
)
def test_three_by_three(target, x0, distances, kl):
    """Check 5."""
    changed = TABLE.intervene(target, [0.2, 0.5, 0.3], x0=x0)
    assert_allclose(pair(TABLE, changed), distances, atol=6e-7)
    assert_allclose(changed.kl(TABLE), kl, rtol=3e-6)


def test_the_ball_of_three_by_three():
    """Check 5."""
    ball = effect_advantage_ball(TABLE)
    assert_allclose(ball.centre, [0.177595, -0.144583, -0.033012], atol=6e-7)
    assert_allclose(ball.radius_squared, 0.0896027, rtol=1e-6)
    assert_allclose(np.var(row_log_partitions(TABLE)), 0.0138103, rtol=4e-6)
    assert_allclose(np.var(row_log_partitions(TABLE.reverse())), 0.0122029, rtol=5e-6)


# Check 6, for tables that need not be square.
both_priors = pytest.mark.parametrize("prior", ["dense", "sparse"])
all_sizes = pytest.mark.parametrize("K", SIZES)


@both_priors
@all_sizes
def test_the_logits_of_the_other_direction(K, prior):
    """Lemmas 4.B.4 and 4.B.5, and (4.47)."""
    model = sample_reference(K, 20, prior, rng=1)
    logits, backward = model.to_logit(), model.reverse().to_logit()
    A = row_log_partitions(model)
    m, n = logits.effect.mean(axis=-2), backward.effect.mean(axis=-2)
    spread = logits.effect - m[:, None, :]
    moved = A - A.mean(axis=-1, keepdims=True)
    expected = logits.cause[:, :, None] + spread - moved[:, :, None]
    scale = 1e-12 * max(1.0, np.abs(expected).max())
    assert_allclose(np.swapaxes(backward.effect, -1, -2), expected, atol=scale)
    assert_allclose(np.swapaxes(backward.effect, -1, -2) - n[:, :, None], spread, atol=scale)
    assert_allclose(logits.cause - n, moved, atol=scale)
    B = row_log_partitions(model.reverse())
    assert_allclose(backward.cause - m, B - B.mean(axis=-1, keepdims=True), atol=scale)


@both_priors
@all_sizes
def test_distances_after_a_change_of_the_cause(K, prior):
    """Proposition 4.5.1 with equality: ``anti = K_y causal + |s_Y - s_Y*|^2``."""
    model = sample_reference(K, 20, prior, rng=2)
    changed = model.intervene("cause", rng=3)
    found = initial_distances(model, changed)
    moved = model.reverse().to_logit().cause - changed.reverse().to_logit().cause
    assert_allclose(found.anticausal, model.sizes[1] * found.causal + np.sum(moved**2, -1), rtol=1e-10)


@both_priors
@all_sizes
def test_distances_after_a_change_of_the_effect(K, prior):
    """Proposition 4.5.2: the difference of distances from the ball, and from its printed form where square."""
    model = sample_reference(K, 20, prior, rng=4)
    changed = model.intervene("effect", rng=5)
    found = initial_distances(model, changed)
    new = changed.reverse().to_logit().cause
    gap = found.causal - found.anticausal
    assert_allclose(advantage_gap(model, new), gap, atol=1e-10 * found.causal.max())
    k = model.sizes[0]
    m, n = model.to_logit().effect.mean(axis=-2), model.reverse().to_logit().effect.mean(axis=-2)
    s_x, s_y = model.to_logit().cause, model.reverse().to_logit().cause
    c, radius = effect_advantage_ball(model)
    assert np.all(radius >= np.sum((n - s_x) ** 2, -1) * model.sizes[1] / k * (1 - 1e-12))
    if model.sizes[0] == model.sizes[1]:
        printed = k * np.sum((n - s_x) ** 2, -1) + (k - 1) * np.sum(c**2, -1)
        printed += np.sum(s_y**2, -1) - k * np.sum(m**2, -1)
        assert_allclose((k - 1) * radius, printed, rtol=1e-9)


@both_priors
@all_sizes
def test_distances_after_a_change_of_one_row(K, prior):
    """(4.48)."""
    model = sample_reference(K, 20, prior, rng=6)
    changed = model.intervene("single", rng=7)
    found = initial_distances(model, changed)
    k, effects = model.sizes
    moved = np.sum((model.reverse().to_logit().cause - changed.reverse().to_logit().cause) ** 2, -1)
    rows = np.max((row_log_partitions(model) - row_log_partitions(changed)) ** 2, -1)
    expected = (k - 1) / k * (found.causal + effects * rows) + moved
    assert_allclose(found.anticausal, expected, rtol=1e-10)


@both_priors
@all_sizes
def test_divergences_do_not_depend_on_the_direction(K, prior):
    """Check 9."""
    model = sample_reference(K, 20, prior, rng=8)
    for target in ("cause", "effect", "single"):
        changed = model.intervene(target, rng=9)
        assert_allclose(changed.kl(model), changed.reverse().kl(model.reverse()), rtol=1e-11)
        p, q = changed.log_joint, model.log_joint
        assert_allclose(changed.kl(model), np.sum(np.exp(p) * (p - q), axis=(-2, -1)), rtol=1e-9)


def test_an_independent_reference_favours_the_anticausal_model():
    q = np.array([0.2, 0.3, 0.5])
    model = CategoricalSCM.from_joint(np.outer([0.1, 0.6, 0.3], q))
    ball = effect_advantage_ball(model)
    assert_allclose(ball.centre, model.reverse().to_logit().cause, atol=1e-15)
    assert float(ball.radius_squared) < 1e-30
    changed = model.intervene("effect", [0.6, 0.3, 0.1])
    moved = np.sum((changed.reverse().to_logit().cause - ball.centre) ** 2)
    found = initial_distances(model, changed)
    assert_allclose(found.causal, 3 * moved)
    assert_allclose(found.anticausal, moved)


def test_other_ways_to_the_same_model():
    model = sample_reference((3, 4), 5, rng=0)
    logits = model.to_logit()
    for other in (
        CategoricalSCM.from_joint(model.to_joint()),
        CategoricalSCM.from_logits(logits.cause + 3.0, logits.effect - 7.0),
        CategoricalSCM.from_log_joint(model.joint_logit()),
        CategoricalSCM.from_probabilities(*model.to_probability()),
    ):
        assert_allclose(other.log_joint, model.log_joint, atol=1e-13)
    for each in (logits.cause.sum(-1), logits.effect.sum(-1), model.joint_logit().sum((-2, -1))):
        assert_allclose(each, 0.0, atol=1e-12)
    assert model[2:4].shape == (2,)
    assert model[0].shape == ()


def test_logarithms_that_are_nearly_normalised_become_so():
    """One distribution in all directions: rows that add up to 1 + 1e-9 would be causes of another one."""
    loose = CategoricalSCM(SMALL.log_cause, np.add(SMALL.log_effect, [[1e-9], [-5e-9]]))
    assert_allclose(np.exp(loose.log_effect).sum(axis=-1), 1.0, rtol=1e-15)
    assert_allclose(loose.joint_logit(), SMALL.joint_logit(), atol=1e-15)


def test_interventions_replace_one_mechanism():
    model = sample_reference((4, 3), (6), rng=0)
    changed = model.intervene("cause", rng=1)
    assert np.array_equal(changed.log_effect, model.log_effect)
    changed = model.intervene("effect", rng=1)
    assert np.array_equal(changed.log_cause, model.log_cause)
    assert np.ptp(changed.log_effect, axis=-2).max() == 0.0
    changed = model.intervene("single", rng=1)
    rows = np.any(changed.log_effect != model.log_effect, axis=-1)
    assert np.array_equal(np.argmax(rows, axis=-1), np.argmax(model.log_cause, axis=-1))
    assert np.all(rows.sum(-1) == 1)
    rows = np.any(model.intervene("single", x0=[0, 1, 2, 3, 0, 1], rng=1).log_effect != model.log_effect, axis=-1)
    assert np.array_equal(np.argmax(rows, axis=-1), [0, 1, 2, 3, 0, 1])


@pytest.mark.parametrize("target", ["cause", "effect", "single"])
def test_one_seed_for_everything_does_not_undo_an_intervention(target):
    """The cause of a reference and the new one would be the same numbers, were they drawn from one stream."""
    model = sample_reference(4, 50, rng=0)
    changed = model.intervene(target, rng=0)
    assert changed.kl(model).min() > 1e-4
    assert np.array_equal(changed.log_joint, model.intervene(target, rng=0).log_joint)
    assert np.any(changed.log_joint != model.intervene(target, rng=1).log_joint)


def test_draws_have_the_frequencies_of_the_table():
    model = sample_reference((3, 4), 2, rng=0)
    n = 40_000
    x, y = model.sample(n, rng=1)
    assert x.shape == y.shape == (n, 2)
    for i, table in enumerate(model.to_joint()):
        counts = np.zeros((3, 4))
        np.add.at(counts, (x[:, i], y[:, i]), 1)
        assert np.all(np.abs(counts / n - table) < 4.5 * np.sqrt(table * (1 - table) / n))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CategoricalSCM.from_joint([[0.5, 0.0], [0.25, 0.25]]), "table must be positive.*index"),
        (lambda: CategoricalSCM.from_joint([[0.5, 0.5], [0.25, 0.25]]), "table must add up to one; got a sum of 1.5"),
        (lambda: CategoricalSCM.from_joint([0.5, 0.5]), "table must have at least 2 axes"),
        (lambda: CategoricalSCM.from_joint([[0.5, np.nan], [0.25, 0.25]]), "table must be finite"),
        (lambda: CategoricalSCM.from_joint([[1.0]]), "at least two values"),
        (lambda: CategoricalSCM.from_probabilities([0.5, 0.5], [[0.5, 0.5]]), r"log_cause must have shape"),
        (lambda: CategoricalSCM(np.zeros(2), np.zeros((2, 2))), "log_cause must be logarithms of probabilities"),
        (lambda: SMALL.intervene("both"), "target must be one of 'cause', 'effect', 'single'; got 'both'"),
        (lambda: SMALL.intervene("cause", [0.2, 0.3, 0.5]), r"value must have shape \(2,\)"),
        (lambda: SMALL.intervene("cause", [1.0, 0.0]), "value must be positive"),
        (lambda: SMALL.intervene("cause", [0.8, 0.2], x0=1), "x0 says whose row"),
        (lambda: SMALL.intervene("single", [0.8, 0.2], x0=2), "x0 must be a value of the cause, 0 to 1; got 2"),
        (lambda: SMALL.kl(TABLE), r"other must have \(2, 2\) values"),
        (
            lambda: initial_distances(sample_reference(3, 2, rng=0), sample_reference(3, 3, rng=0)),
            r"other must be one model or a batch of shape \(2,\); got a batch of shape \(3,\)",
        ),
        (lambda: advantage_gap(sample_reference(3, 2, rng=0), np.zeros((5, 3))), "got a batch of shape"),
        (lambda: SMALL[0], "not a batch"),
        (lambda: initial_distances(SMALL, SMALL.to_joint()), "models of one class; got CategoricalSCM and ndarray"),
        (lambda: initial_distances(SMALL, SMALL, space="natural"), "space must be one of 'logit'"),
        (lambda: advantage_gap(SMALL, [1.0, 2.0, 3.0]), "effect_logits must have 2 entries"),
        (lambda: sample_reference(1, 3), "K must be a whole number of at least 2; got 1"),
        (lambda: sample_reference(3, 3, "flat"), "prior must be one of 'dense', 'sparse'; got 'flat'"),
        (lambda: sample_reference(3, 3, (1.0, -1.0)), "a concentration of prior must be positive"),
    ],
)
def test_refusals(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()
