"""Adaptation of categorical models: against the definition, bit for bit over threads (acceptance checks 7 to 10)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.causal import (
    CategoricalSCM,
    Distances,
    Trajectories,
    adapt_categorical,
    pool,
    sample_reference,
    tune,
)
from cumulant.causal import categorical_kernels as kernels
from tests.compiled import from_python
from tests.reference import causal as slow

SMALL = CategoricalSCM.from_probabilities([0.5, 0.5], [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])

gradient_step = from_python(kernels.gradient_step)
weigh_row = from_python(kernels.weigh_row)


def state(logits):
    """Logits, moments, weights, bases and totals of a mechanism."""
    logits = np.array(logits)
    found = logits, np.zeros_like(logits), np.empty_like(logits), np.empty(len(logits)), np.empty(len(logits))
    for row in range(len(logits)):
        weigh_row(row, logits, *found[2:])
    return found


def test_one_step_by_hand():
    """Check 7."""
    logits = SMALL.to_logit()
    cause, rows = state(logits.cause[None]), state(logits.effect)
    gradient_step(0, 0, 0.5, 0, *cause)
    gradient_step(0, 1, 0.5, 0, *rows)
    assert_allclose(cause[0], [[0.25, -0.25]], atol=1e-15)
    assert_allclose(rows[0][0], [-0.25, 0.25], atol=1e-15)
    assert np.array_equal(rows[0][1], logits.effect[1])


def test_logits_still_add_up_to_zero_after_a_thousand_steps():
    """Check 8, with steps of all sizes."""
    for step in (0.03, 1.0, 30.0):
        model = sample_reference(20, 1, "sparse", rng=0)[0]
        rows = state(model.to_logit().effect)
        x, y = model.sample(1000, rng=1)
        for t in range(1000):
            gradient_step(x[t], y[t], step, t, *rows)
        assert np.abs(rows[0].sum(axis=1)).max() < 1e-10
        assert np.isfinite(rows[0]).all()


def test_gradients_are_bounded():
    """Check 10, of the kernel's own steps along runs: at most 2 for two mechanisms and sqrt(2) for a table."""
    model = sample_reference(6, 1, "sparse", rng=0)[0]
    other = sample_reference(6, 1, "sparse", rng=2)[0]  # whose rows and values the model finds improbable
    logits, largest = model.to_logit(), np.zeros(2)
    cause, rows, whole = state(logits.cause[None]), state(logits.effect), state(model.joint_logit().reshape(1, -1))
    x, y = other.sample(400, rng=1)
    for t in range(400):
        before = [each[0].copy() for each in (cause, rows, whole)]
        for each, row, seen in ((cause, 0, x[t]), (rows, x[t], y[t]), (whole, 0, 6 * x[t] + y[t])):
            gradient_step(row, seen, 0.5, t, *each)
        moved = [np.sum((e[0] - b) ** 2) / 0.25 for e, b in zip((cause, rows, whole), before, strict=True)]
        largest = np.maximum(largest, [moved[0] + moved[1], moved[2]])
    assert np.all(largest <= np.array([4, 2]) * (1 + 1e-9))
    assert np.all(largest > [3.5, 1.4])  # most of what is allowed


@pytest.mark.parametrize("prior", ["dense", "sparse"])
@pytest.mark.parametrize("K", [2, 5, (3, 7), (20, 20)])
def test_the_kernel_follows_the_definition(K, prior):
    """And all models have the same divergence at the start (check 9)."""
    reference = sample_reference(K, 3, prior, rng=0)
    transfer = reference.intervene("effect", rng=1)
    steps, T = (0.1, 3.0, 300.0), 60
    found = adapt_categorical(reference, transfer, T, steps, rng=5, log_every=1)
    assert_allclose(found.kl[..., 0], np.broadcast_to(transfer.kl(reference), (3, 3, 3)), rtol=1e-11)
    for i in range(3):
        P, Q = reference.to_joint()[i], transfer.to_joint()[i]
        seen = slow.observations(Q, i, T, 5)
        for j, step in enumerate(steps):
            expected = (
                slow.adapt_pair(P, Q, seen, step)[0],
                slow.adapt_pair(P.T, Q.T, [(y, x) for x, y in seen], step)[0],
                slow.adapt_table(P, Q, seen, step)[0],
            )
            for kl, curve in zip(found.kl[:, j, i], expected, strict=True):
                assert_allclose(kl[1:], curve, rtol=1e-9, atol=1e-11 * step)


def test_a_common_shift_of_a_batch_in_numpy_gives_the_same():
    """The program that the benchmark runs against."""
    reference = sample_reference(4, 6, rng=0)
    transfer = reference.intervene("cause", rng=1)
    found = adapt_categorical(reference, transfer, 30, (0.3, 3.0), rng=2)
    seen = np.array([slow.observations(Q, i, 30, 2) for i, Q in enumerate(transfer.to_joint())])
    expected = slow.adapt_batch(reference.to_joint(), transfer.to_joint(), seen, (0.3, 3.0), found.times.tolist())
    assert_allclose(found.kl, expected, rtol=1e-10)


def test_the_same_seed_gives_the_same_answer_at_any_number_of_threads():
    reference = sample_reference(7, 70, rng=0)
    transfer = reference.intervene("cause", rng=1)
    runs = [adapt_categorical(reference, transfer, 50, (0.1, 1.0), rng=3, n_jobs=jobs).kl for jobs in (1, 2, 5)]
    assert all(np.array_equal(runs[0], each) for each in runs)
    part = adapt_categorical(reference, transfer, 50, 1.0, rng=3, models=("joint", "causal"), times=[0, 50])
    assert np.array_equal(part.of("causal")[0], runs[0][0, 1][:, [0, -1]])
    assert not np.array_equal(runs[0], adapt_categorical(reference, transfer, 50, (0.1, 1.0), rng=4).kl)


def test_runs_are_averaged():
    """Those of problem i are what a batch of copies gives at the places of problem i."""
    reference = sample_reference(3, 4, rng=0)
    transfer = reference.intervene("effect", rng=1)
    found = adapt_categorical(reference, transfer, 30, (0.3, 1.0), rng=5, n_runs=6)
    copies = np.repeat(np.arange(4), 6)
    runs = adapt_categorical(reference[copies], transfer[copies], 30, (0.3, 1.0), rng=5)
    assert_allclose(found.kl, runs.kl.reshape(3, 2, 4, 6, -1).mean(axis=3), rtol=1e-12)
    assert found.distances.causal.shape == (4,)


def test_observations_are_those_of_the_transfer_distribution():
    """Nothing moves on average where the reference is the transfer, and a long run finds the transfer."""
    reference = sample_reference(3, 400, rng=0)
    transfer = reference.intervene("effect", rng=1)
    found = adapt_categorical(reference, transfer, 20_000, 0.05, rng=2, times=[0, 20_000])
    assert np.all(found.kl[..., 0, 1] < 0.01 * found.kl[..., 0, 0].mean())


def test_tiny_cells_are_drawn_with_their_probability():
    table = np.array([[0.9, 0.0999], [0.00009, 0.00001]])
    n, T = 50, 4000
    ends = np.broadcast_to(np.cumsum(table.ravel()), (n, 4)).copy()
    cells = np.empty((n, T), np.int32)
    kernels.draw_cells(ends, 0, 7, cells)
    share = np.bincount(cells.ravel(), minlength=4) / (n * T)
    assert np.all(np.abs(share - table.ravel()) < 4.5 * np.sqrt(table.ravel() / (n * T)))


def test_step_sizes_of_their_own():
    reference = sample_reference(4, 8, rng=0)
    transfer = reference.intervene("cause", rng=1)
    steps = np.linspace(0.1, 2.0, 8)
    own = adapt_categorical(reference, transfer, 20, steps[None], rng=2)
    common = adapt_categorical(reference, transfer, 20, steps, rng=2)
    at = np.arange(8)
    assert np.array_equal(own.kl[:, 0], common.kl[:, at, at])


class TestTuning:
    def curves(self, kl):
        kl = np.asarray(kl, float)
        return Trajectories(
            ("causal",), np.arange(1.0, kl.shape[1] + 1), np.arange(kl.shape[-1]), kl, Distances(*np.ones((3, 2)))
        )

    def test_a_step_that_diverges_is_not_chosen(self):
        """The rule: the last mean above twice the first."""
        found = tune(self.curves([[[[1, 0.2, 2.5], [1, 0.2, 2.5]], [[1, 0.5, 0.4], [1, 0.7, 0.3]]]]), 1)
        assert found.discarded.tolist() == [[True, False]]
        assert found.step_sizes.tolist() == [2.0]
        assert_allclose(found.mean("causal"), [1, 0.6, 0.35])
        assert found.at_budget("causal").tolist() == [0.5, 0.7]

    def test_one_problem_that_blows_up(self):
        kl = [[[[1, 0.2, 0.1], [1, 0.2, 2.9]], [[1, 0.5, 0.4], [1, 0.7, 0.3]]]]
        assert tune(self.curves(kl), 1).chosen.tolist() == [0]
        assert tune(self.curves(kl), 1, diverged="any").chosen.tolist() == [1]
        kl[0][0][1][2] = np.nan
        assert tune(self.curves(kl), 1).chosen.tolist() == [1]

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"time 7 was not kept; there are 0, 1, 2"):
            tune(self.curves(np.ones((1, 1, 2, 3))), 7)
        with pytest.raises(ValueError, match="every step size diverges for the causal model"):
            tune(self.curves([[[[1, 2, 3], [1, 2, 3]]]]), 1)
        with pytest.raises(ValueError, match="model must be one of 'causal'; got 'joint'"):
            self.curves(np.ones((1, 1, 2, 3))).of("joint")


def test_pooled_curves_are_means_over_groups():
    """Algorithm 5."""
    reference = sample_reference(3, 8, rng=0)
    runs = [
        adapt_categorical(reference, reference.intervene(target, rng=1), 20, (0.3, 1.0), rng=2)
        for target in ("cause", "effect")
    ]
    pooled = pool(runs, 4)
    assert pooled.kl.shape == (3, 2, 4, 3)
    expected = 0.25 * sum(each.kl[:, :, i] for each in runs for i in (2, 3))
    assert_allclose(pooled.kl[:, :, 1], expected)
    assert_allclose(pooled.distances.joint[1], 0.25 * sum(each.distances.joint[i] for each in runs for i in (2, 3)))
    with pytest.raises(ValueError, match="groups must divide the number of problems, 8; got 3"):
        pool(runs, 3)
    with pytest.raises(ValueError, match="same step sizes"):
        pool([runs[0], adapt_categorical(reference, reference.intervene("cause", rng=1), 20, 0.1, rng=2)], 2)


def test_the_largest_step_overflows_nowhere():
    reference = sample_reference(5, 20, "sparse", rng=0)
    found = adapt_categorical(reference, reference.intervene("effect", rng=1), 1000, 1e100, rng=2)
    assert np.all(np.isfinite(found.kl))
    assert np.all(found.kl[..., -1] > 1e90)


def test_no_models_cannot_adapt():
    empty = sample_reference(3, 2, rng=0)[:0]
    with pytest.raises(ValueError, match="reference must hold at least one model; got an empty batch"):
        adapt_categorical(empty, empty, 5)


@pytest.mark.parametrize(
    ("arguments", "settings", "words"),
    [
        ((sample_reference(3, 2, rng=0), 5), {}, r"same shape; got \(2, 2\) and \(2, 3, 3\)"),
        ((SMALL.to_joint(), 5), {}, "transfer must be a CategoricalSCM; got ndarray"),
        ((SMALL, 0), {}, "T must be a whole number of at least 1; got 0"),
        ((SMALL, 5, -1.0), {}, r"step_sizes must be positive, of shape \(n_steps,\) or \(n_steps, 1\)"),
        ((SMALL, 5, np.ones((2, 3))), {}, "step_sizes must be positive"),
        ((SMALL, 5, [1.0, 1e308]), {}, r"step_sizes must be at most 1e\+100"),
        ((SMALL, 5), {"models": "both"}, "each of models must be one of 'causal', 'anticausal', 'joint'; got 'both'"),
        ((SMALL, 5), {"times": [3, 9]}, "times must be between 0 and T = 5; got 3 to 9"),
        ((SMALL, 5), {"times": [3, 3]}, "times must be increasing"),
        ((SMALL, 5), {"log_every": 0}, "log_every must be a whole number"),
        ((SMALL, 5), {"rng": 1.5}, "rng must be an int"),
    ],
)
def test_refusals(arguments, settings, words):
    with pytest.raises((TypeError, ValueError), match=words):
        adapt_categorical(SMALL, *arguments, **settings)
