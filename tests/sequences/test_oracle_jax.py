"""The batched oracles against enumeration and those of one chain; padding, gradients, precision."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.errors import DomainError
from cumulant.sequences.chain import oracle
from cumulant.sequences.chain.oracle_jax import entropy, log_partition, marginals, viterbi
from tests.reference import chains

STEPS, LABELS = 4, 3
LENGTHS = np.array([1, 2, 3, 4, 4, 2])


def batch(seed=0, each=False, scale=1.5, steps=STEPS, lengths=LENGTHS):
    rng = np.random.default_rng(seed)
    shape = (len(lengths), steps - 1, LABELS, LABELS) if each else (LABELS, LABELS)
    return rng.normal(scale=scale, size=(len(lengths), steps, LABELS)), rng.normal(scale=scale, size=shape)


def one(unary, pair, lengths, b):
    """Chain ``b`` alone, without padding."""
    return unary[b, : lengths[b]], pair if pair.ndim == 2 else pair[b, : lengths[b] - 1]


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])
def test_against_enumeration(each, scale):
    unary, pair = batch(0, each, scale)
    nodes, pairs, log_z = marginals(unary, pair, LENGTHS)
    labels, scores = viterbi(unary, pair, LENGTHS)
    nats = entropy(unary, pair, LENGTHS)
    assert_array_equal(log_partition(unary, pair, LENGTHS), log_z)
    for b, length in enumerate(LENGTHS):
        alone = one(unary, pair, LENGTHS, b)
        p, expected = chains.joint(*alone)
        expected_nodes, expected_pairs = chains.marginals_of(p, length, LABELS)
        assert_allclose(log_z[b], expected, rtol=1e-13, atol=1e-13)
        assert_allclose(nodes[b, :length], expected_nodes, rtol=1e-11, atol=1e-300)
        assert_allclose(pairs[b, : length - 1], expected_pairs, rtol=1e-11, atol=1e-300)
        assert_allclose(nats[b], chains.entropy(p), rtol=1e-10, atol=1e-13)
        every = chains.scores_of_all(*alone)
        assert_array_equal(labels[b, :length], chains.labellings(length, LABELS)[np.argmax(every)])
        assert_allclose(scores[b], every.max(), rtol=1e-13)
        assert np.all(nodes[b, length:] == 0)
        assert np.all(pairs[b, length - 1 :] == 0)
        assert np.all(labels[b, length:] == -1)


@pytest.mark.parametrize("each", [False, True])
def test_padding_takes_no_part_whatever_it_is(each):
    unary, pair = batch(1, each)
    inside = np.arange(STEPS) < LENGTHS[:, None]
    rubbish, rubbish_pair = np.where(inside[..., None], unary, np.nan), pair
    if each:
        rubbish_pair = np.where(inside[:, 1:, None, None], pair, np.nan)
    for ask in (log_partition, marginals, entropy, viterbi):
        for a, b in zip(
            jax.tree.leaves(ask(unary, pair, LENGTHS)),
            jax.tree.leaves(ask(rubbish, rubbish_pair, LENGTHS)),
            strict=True,
        ):
            assert_array_equal(a, b)
    for ask in (log_partition, entropy):
        slopes = jax.jit(jax.grad(lambda u, p, ask=ask: ask(u, p, LENGTHS).sum(), argnums=(0, 1)))
        with jax.enable_x64(True):
            clean = slopes(jnp.asarray(unary), jnp.asarray(pair))
            dirty = slopes(jnp.asarray(rubbish), jnp.asarray(rubbish_pair))
            for a, b in zip(clean, dirty, strict=True):
                assert_array_equal(np.asarray(a), np.asarray(b))
                assert np.all(np.isfinite(np.asarray(b)))
            assert np.all(np.asarray(dirty[0])[~inside] == 0)


@pytest.mark.parametrize("each", [False, True])
def test_the_gradient_of_the_log_partition_function_is_the_marginals(each):
    unary, pair = batch(2, each)
    nodes, pairs, _ = marginals(unary, pair, LENGTHS)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(lambda u, p: log_partition(u, p, LENGTHS).sum(), argnums=(0, 1)))
        of_unary, of_pair = map(np.asarray, slopes(jnp.asarray(unary), jnp.asarray(pair)))
    assert_allclose(of_unary, nodes, rtol=1e-12, atol=1e-15)
    assert_allclose(of_pair, pairs if each else pairs.sum(axis=(0, 1)), rtol=1e-12, atol=1e-15)


def test_the_hessian_is_the_covariance():
    unary, pair = batch(3, lengths=np.array([3]))
    unary, pair = unary[0, :3], pair
    p, _ = chains.joint(unary, pair)
    indicators = np.array([np.eye(LABELS)[y].ravel() for y in chains.labellings(3, LABELS)])
    mean = p @ indicators
    with jax.enable_x64(True):
        hessian = np.asarray(jax.jit(jax.hessian(lambda u: log_partition(u, pair)))(jnp.asarray(unary))).reshape(9, 9)
    assert_allclose(hessian, (indicators * p[:, None]).T @ indicators - np.outer(mean, mean), atol=1e-12)


def test_the_gradient_of_the_entropy_by_finite_differences():
    unary, pair = batch(4)
    rng = np.random.default_rng(0)
    along, along_pair, h = rng.normal(size=unary.shape), rng.normal(size=pair.shape), 1e-5
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(lambda u, p: entropy(u, p, LENGTHS).sum(), argnums=(0, 1)))
        of_unary, of_pair = slopes(jnp.asarray(unary), jnp.asarray(pair))
        slope = float(np.sum(np.asarray(of_unary) * along) + np.sum(np.asarray(of_pair) * along_pair))
    up = entropy(unary + h * along, pair + h * along_pair, LENGTHS).sum()
    down = entropy(unary - h * along, pair - h * along_pair, LENGTHS).sum()
    assert_allclose(slope, (up - down) / (2 * h), rtol=1e-7)


def test_forbidden_labels_and_steps_have_no_weight_and_no_gradient():
    unary, pair = batch(5)
    unary[:, 1, 2], unary[3, 0, 1], pair[0, 1], pair[1, 1] = -np.inf, -np.inf, -np.inf, -np.inf
    nodes, pairs, log_z = marginals(unary, pair, LENGTHS)
    for b, length in enumerate(LENGTHS):
        p, expected = chains.joint(*one(unary, pair, LENGTHS, b))
        assert_allclose(log_z[b], expected, rtol=1e-13)
        assert_allclose(nodes[b, :length], chains.marginals_of(p, length, LABELS)[0], rtol=1e-11)
        assert_allclose(entropy(unary, pair, LENGTHS)[b], chains.entropy(p), rtol=1e-11, atol=1e-14)
    with jax.enable_x64(True):
        arguments = jnp.asarray(unary), jnp.asarray(pair)
        slopes = jax.jit(jax.grad(lambda u, p: log_partition(u, p, LENGTHS).sum(), argnums=(0, 1)))(*arguments)
        assert_allclose(np.asarray(slopes[0]), nodes, rtol=1e-11, atol=1e-15)
        assert_allclose(np.asarray(slopes[1]), pairs.sum(axis=(0, 1)), rtol=1e-11, atol=1e-15)
        for slope in jax.jit(jax.grad(lambda u, p: entropy(u, p, LENGTHS).sum(), argnums=(0, 1)))(*arguments):
            assert np.all(np.isfinite(np.asarray(slope)))


def test_float32_stays_close_on_long_chains_with_large_scores():
    """Marginals are products of conditional probabilities: no error of the size of log Z gets into them."""
    lengths = np.array([300, 177])
    unary, pair = batch(6, scale=20.0, steps=300, lengths=lengths)
    unary, pair = unary.astype(np.float32), pair.astype(np.float32)
    wide, narrow = marginals(unary, pair, lengths), marginals(jnp.asarray(unary), jnp.asarray(pair), lengths)
    assert wide[0].dtype == np.float64
    assert narrow[0].dtype == jnp.float32
    assert wide[2].min() > 1000
    assert_allclose(np.asarray(narrow[0]), wide[0], atol=2e-4)
    assert_allclose(np.asarray(narrow[0]).sum(axis=-1), np.arange(300) < lengths[:, None], atol=3e-5)
    assert_allclose(np.asarray(narrow[2]), wide[2], rtol=1e-5)
    assert_allclose(
        np.asarray(entropy(jnp.asarray(unary), jnp.asarray(pair), lengths)), entropy(unary, pair, lengths), rtol=1e-3
    )


def test_as_those_of_one_chain():
    """At lengths that cannot be enumerated, and with scores of ten thousand."""
    lengths = np.array([300, 177])
    for scale in (2.0, 1e4):
        unary, pair = batch(7, scale=scale, steps=300, lengths=lengths)
        nodes, pairs, log_z = marginals(unary, pair, lengths)
        nats, (labels, scores) = entropy(unary, pair, lengths), viterbi(unary, pair, lengths)
        for b, length in enumerate(lengths):
            alone = one(unary, pair, lengths, b)
            expected = oracle.sum_product(*alone)
            assert_allclose(nodes[b, :length], expected[0], rtol=1e-7, atol=1e-12)
            assert_allclose(pairs[b, : length - 1], expected[1], rtol=1e-7, atol=1e-12)
            assert_allclose(log_z[b], expected[2], rtol=1e-12)
            assert_allclose(nats[b], oracle.tree_entropy(*expected[:2]), rtol=1e-9, atol=1e-9)
            best, score = oracle.viterbi(*alone)
            assert_array_equal(labels[b, :length], best)
            assert_allclose(scores[b], score, rtol=1e-12)


@pytest.mark.parametrize("ask", [log_partition, marginals, entropy, viterbi])
def test_under_jit_and_vmap(ask):
    unary, pair = batch(8)
    expected = ask(unary, pair, LENGTHS)
    with jax.enable_x64(True):
        arguments = jnp.asarray(unary), jnp.asarray(pair), jnp.asarray(LENGTHS)
        jitted = jax.jit(ask)(*arguments)
        mapped = jax.jit(jax.vmap(ask, in_axes=(0, None, 0)))(*arguments)
        for a, b, c in zip(*map(jax.tree.leaves, (expected, jitted, mapped)), strict=True):
            assert_allclose(np.asarray(b), a, rtol=1e-13)
            assert_allclose(np.asarray(c), a, rtol=1e-13)


def test_more_batch_axes_and_no_lengths():
    unary, pair = batch(9, each=True)
    log_z = log_partition(unary, pair)
    expected = [chains.joint(unary[b], pair[b])[1] for b in range(6)]
    assert_allclose(log_z, expected, rtol=1e-13)
    folded = log_partition(unary.reshape(2, 3, STEPS, LABELS), pair.reshape(2, 3, STEPS - 1, LABELS, LABELS))
    assert_allclose(folded, log_z.reshape(2, 3), rtol=1e-13)
    nodes, pairs, single = marginals(unary[:, :1], batch(9)[1])
    assert pairs.shape == (6, 0, LABELS, LABELS)
    assert_allclose(nodes[:, 0], np.exp(unary[:, 0] - single[:, None]), rtol=1e-12)


def test_names_of_labels_and_direction_do_not_matter():
    unary, pair = batch(10)
    log_z = log_partition(unary, pair)
    for order in itertools.permutations(range(LABELS)):
        assert_allclose(log_partition(unary[..., order], pair[order, :][:, order]), log_z, rtol=1e-13)
    assert_allclose(log_partition(unary[:, ::-1], pair.T), log_z, rtol=1e-13)


@pytest.mark.parametrize("wrap", [np.asarray, jnp.asarray])
def test_bad_input_is_refused(wrap):
    unary, pair = map(wrap, batch(11))
    with pytest.raises(ValueError, match="lengths must be from 1 to 4"):
        log_partition(unary, pair, [1, 2, 3, 4, 5, 1])
    with pytest.raises(ValueError, match="lengths must be from 1 to 4"):
        viterbi(unary, pair, [1, 2, 3, 4, 0, 1])
    with pytest.raises(ValueError, match=r"lengths must be whole numbers of shape \(6,\); got float64"):
        entropy(unary, pair, np.ones(6))
    with pytest.raises(ValueError, match=r"lengths must be whole numbers of shape \(6,\); got .* of shape \(2,\)"):
        entropy(unary, pair, [1, 2])
    with pytest.raises(ValueError, match=r"pair must have shape \(3, 3\), or \(6, 3, 3, 3\)"):
        log_partition(unary, pair[:2])
    with pytest.raises(ValueError, match="unary must have shape"):
        log_partition(unary[0, 0], pair)
    with pytest.raises(ValueError, match="unary must be numbers or minus infinity"):
        log_partition(unary * np.nan, pair)
    with pytest.raises(ValueError, match="pair must be numbers or minus infinity"):
        marginals(unary, pair + np.inf)
    for ask in (log_partition, marginals, entropy, viterbi):
        with pytest.raises(DomainError, match="forbid every labelling of some chain"):
            ask(unary, pair - np.inf, [1, 1, 1, 1, 1, 2])
    with pytest.raises(ValueError, match="finite score"):
        log_partition(unary * 0 + (1e308 if wrap is np.asarray else 3e38), pair)
    with pytest.raises(TypeError, match="unary must be an array of real numbers"):
        log_partition([["a"]], pair)
