"""Shards of a problem: their sums are the whole, their rounds are those of blocks, and the dual does not fall."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cumulant.sequences import ChainMarginals, ChainProblem, SequenceData, SequenceDualAscent
from cumulant.sequences.cluster.shard import Shard
from cumulant.sequences.solvers.dual_ascent import assign_blocks
from tests.sequences.cases import joint_law, ragged


def shards_of(problem, n_shards, ascent=None, v=None, seed=0):
    """All shards in this process, with their first residuals."""
    shards = [
        Shard(
            ChainProblem(problem.data[members], problem.n_labels, problem.l2, problem.l1, problem.bias),
            SequenceDualAscent() if ascent is None else ascent, place, n_shards, problem.n_terms, seed,
        )
        for place, members in enumerate(assign_blocks(problem.data.lengths, n_shards))
    ]  # fmt: skip
    return shards, [shard.begin(v, 0) for shard in shards]


def in_order_of_shards(problem, n_shards):
    """The same problem with the sequences of the first shard first, and so on."""
    data = problem.data[np.concatenate(assign_blocks(problem.data.lengths, n_shards))]
    return ChainProblem(data, problem.n_labels, problem.l2, problem.l1, problem.bias)


def together(shards):
    """The marginals of all shards."""
    return ChainMarginals(np.concatenate([s.mu.nodes for s in shards]), np.concatenate([s.mu.pairs for s in shards]))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.data())
def test_sequences_are_dealt_evenly(lengths, data):
    n_shards = data.draw(st.integers(1, len(lengths)))
    shards = assign_blocks(lengths, n_shards)
    assert sorted(np.concatenate(shards)) == list(range(len(lengths)))
    sizes, tokens = [len(own) for own in shards], [sum(lengths[i] for i in own) for own in shards]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    assert max(tokens) - min(tokens) <= max(lengths)
    for own in shards:  # one of each n_shards that follow one another
        assert np.all(np.bincount(own // n_shards) <= 1)


def tiny_of_length(n, length, seed=0):
    rng = np.random.default_rng(seed)
    tokens = n * length
    data = SequenceData(rng.normal(size=(tokens, 4)), np.arange(0, tokens + 1, length), rng.integers(0, 3, size=tokens))
    return ChainProblem(data, 3)


@pytest.mark.parametrize(("bias", "scale"), [(True, 1.0), (False, 1.0), (True, 300.0)])
def test_marginals_at_weights_against_enumeration(bias, scale):
    """With large weights too, where the passes are made on logarithms."""
    rng = np.random.default_rng(0)
    problem = ChainProblem(ragged(rng, n=7, longest=5), 3, bias=bias)
    w = scale * rng.normal(size=problem.shape)
    mu, narrow = problem.conjugate_marginals(w), problem.conjugate_marginals(w, np.float32)
    assert narrow.pairs.dtype == np.float32
    assert np.array_equal(mu.pairs.astype(np.float32), narrow.pairs)
    assert_allclose(problem.block_gaps(mu, w), 0.0, atol=1e-12 * scale)
    for i in range(problem.n_terms):
        joint, labellings = joint_law(problem, w, i)
        first = problem.data.offsets[i]
        for t in range(labellings.shape[1]):
            for j in range(3):
                at = labellings[:, t] == j
                assert_allclose(mu.nodes[first + t, j], joint[at].sum(), atol=1e-12)
                for k in range(3 if t else 0):
                    both = joint[(labellings[:, t - 1] == k) & at].sum()
                    assert_allclose(mu.pairs[first - i + t - 1, k, j], both, atol=1e-12)


@pytest.mark.parametrize(("l1", "dtype"), [(0.0, "float64"), (0.02, "float64"), (0.0, "float32")])
def test_sums_over_shards_are_those_of_the_whole(l1, dtype):
    rng = np.random.default_rng(1)
    problem = ChainProblem(ragged(rng, n=25), 3, l2=0.05, l1=l1)
    shards, residuals = shards_of(problem, 4, SequenceDualAscent(dtype=dtype))
    problem = in_order_of_shards(problem, 4)
    v = sum(residuals) / problem.n_terms
    assert_allclose(v, problem.residual(together(shards)), atol=1e-15)
    for until in (2, 5):
        v = sum(shard.ascend(v, until)[0] for shard in shards) / problem.n_terms
    mu, w, n = together(shards), problem.weights_of(v), problem.n_terms
    assert_allclose(v, problem.residual(mu), rtol=1e-12, atol=1e-15)
    loss, entropy, gaps = np.sum([shard.measure(v) for shard in shards], axis=0) / n
    penalty = 0.5 * problem.l2 * np.sum(w**2) + l1 * np.abs(w).sum()
    assert_allclose(penalty + loss, problem.value(w), rtol=1e-13)
    assert_allclose(entropy - 0.5 * problem.l2 * np.sum(w**2), problem.dual(mu, w), rtol=1e-13)
    assert_allclose(gaps, np.mean(np.concatenate([shard.gaps for shard in shards])), rtol=1e-13)

    loss, loss_slack, entropy, _, residual, errors = (
        sum(part) / n for part in zip(*[shard.certify(v) for shard in shards], strict=True)
    )
    own = problem.weights_of(residual)
    assert_allclose(penalty + loss, problem.value(w), rtol=1e-13)
    assert_allclose(entropy - 0.5 * problem.l2 * np.sum(own**2), problem.dual(mu), rtol=1e-12)
    assert loss_slack >= 2**-52 * (np.mean(np.abs(problem.log_partitions(w))) + np.sum(np.abs(w * problem.gold)))
    assert np.all(errors >= 2**-52 * np.abs(residual))

    other = rng.normal(size=problem.shape)
    assert_allclose(sum(shard.loss(other) for shard in shards) / n + 0.5 * problem.l2 * np.sum(other**2)
                    + l1 * np.abs(other).sum(), problem.value(other), rtol=1e-13)  # fmt: skip
    slope = sum(shard.slope(other) for shard in shards) / n + problem.l2 * other
    assert_allclose(slope, problem.gradient(other), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("sampling", ["gap", "uniform", "importance", "gap-importance", "max"])
def test_a_round_of_shards_is_an_epoch_of_blocks(sampling):
    """Up to rounding: blocks add up changes of the weights, shards their residuals."""
    problem = tiny_of_length(30, 4)
    solver = SequenceDualAscent(sampling=sampling, n_blocks=3)
    shards, residuals = shards_of(problem, 3, solver, seed=7)
    state = solver.init(problem, None, 7)
    v, counters = sum(residuals) / problem.n_terms, np.zeros(3)
    for epoch in range(1, 9):
        state = solver._epoch(problem, state)
        answers = [shard.ascend(v, epoch) for shard in shards]
        v = sum(residual for residual, _ in answers) / problem.n_terms
        counters += sum(own for _, own in answers)
        assert_allclose(v / problem.l2, state.hidden, atol=1e-10)
    for shard, members in zip(shards, assign_blocks(problem.sizes, 3), strict=True):
        assert_allclose(shard.gaps, state.gaps[members], atol=1e-9)
    assert_allclose(counters, state.counters.sum(axis=0), rtol=1e-10)
    assert np.array_equal(counters[:2], state.counters.sum(axis=0)[:2])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5), st.sampled_from([1, 3]), st.sampled_from([0.0, 0.05]))
def test_the_sum_of_safe_steps_never_lowers_the_dual(seed, n_shards, local_epochs, l1):
    """Ma et al. 2015: each shard raises its own subproblem, and their sum bounds the dual from below."""
    rng = np.random.default_rng(seed)
    problem = ChainProblem(ragged(rng, n=6, attributes=2), 3, l2=10.0 ** rng.uniform(-3, 0), l1=l1)
    ascent = SequenceDualAscent(straightness=0.0, subprecision=1e-9)
    shards, residuals = shards_of(problem, n_shards, ascent, seed=seed % 1000)
    problem = in_order_of_shards(problem, n_shards)
    v, dual = sum(residuals) / problem.n_terms, -np.inf
    for round_ in range(1, 8):
        w = problem.weights_of(v)
        before, dual = dual, problem.dual(together(shards), w)
        assert dual >= before - 1e-12 * max(abs(dual), 1.0)
        assert problem.value(w) >= dual - 1e-12
        v = sum(shard.ascend(v, round_ * local_epochs)[0] for shard in shards) / problem.n_terms


def test_a_shard_asked_twice_ascends_once():
    problem = tiny_of_length(10, 3)
    (shard,), (residual,) = shards_of(problem, 1)
    first, counters = shard.ascend(residual / 10, 2)
    pairs = shard.mu.pairs.copy()
    again, none = shard.ascend(residual / 10, 2)
    assert np.array_equal(first, again)
    assert np.array_equal(pairs, shard.mu.pairs)
    assert counters[0] == 20
    assert np.all(none == 0)


def test_a_shard_that_begins_at_weights_has_their_marginals_and_no_gap():
    rng = np.random.default_rng(3)
    problem = ChainProblem(ragged(rng, n=12), 3)
    v = 0.1 * rng.normal(size=problem.shape)
    shards, residuals = shards_of(problem, 3, v=v)
    problem = in_order_of_shards(problem, 3)
    w, mu = problem.weights_of(v), together(shards)
    expected = problem.conjugate_marginals(w)
    assert_allclose(mu.pairs, expected.pairs, rtol=1e-13)
    # At such marginals the gradient is the distance of the two weights: grad P(w) = l2 (w - w(mu)).
    assert_allclose(problem.gradient(w), problem.l2 * w - sum(residuals) / problem.n_terms, atol=1e-13)
    assert_allclose(np.mean(problem.entropies(mu)) - problem.l2 * np.vdot(w, problem.weights_of(sum(residuals) / 12)),
                    problem.value(w) - 0.5 * problem.l2 * np.sum(w**2), rtol=1e-11)  # fmt: skip


def test_data_that_may_not_be_written_are_copied():
    problem = tiny_of_length(5, 3)
    problem.data.features.data.flags.writeable = False
    problem.data.offsets.flags.writeable = False
    (shard,), (residual,) = shards_of(problem, 1)
    object.__setattr__(shard, "problem", ChainProblem(problem.data, 3))
    shard.begin(None, 0)
    assert shard.problem.data.features.data.flags.writeable
    assert np.array_equal(shard.residual(), residual)
