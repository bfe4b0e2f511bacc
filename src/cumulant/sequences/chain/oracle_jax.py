"""The oracles of linear chains for padded batches, on any device and with derivatives.

A batch is scores ``unary (..., T, K)`` of the labels of each node, and ``pair``: one matrix ``(K, K)`` for all, or one
for each pair of neighbours, ``(..., T - 1, K, K)``. Chain ``b`` has ``lengths[b]`` nodes, at least one; what stands
after them is padding, and takes no part in anything, whatever it is: NaN too. Without `lengths` all chains have ``T``
nodes. A score of minus infinity forbids a label or a step.

NumPy input is computed in float64 and returned as NumPy, JAX input in its own precision; all functions may be traced
(`jit`, `vmap`, `grad`). Messages are logarithms, normalised at each node, and marginals are products of conditional
probabilities, so that float32 keeps its digits on long chains.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cumulant.errors import DomainError
from cumulant.precision import any_tracer, precise, to_jax

__all__ = ["entropy", "log_partition", "marginals", "viterbi"]


def _oracle(function: Callable) -> Any:
    """Make a public function of one that returns its answer and the level of each chain, finite where it is possible.

    Shapes are checked always, values where they are known; the checks are part of the compiled program.
    """

    def bundle(unary, pair, lengths):
        answer, level = function(unary, pair, lengths)
        return answer, _verdict(unary, pair, lengths, level)

    compiled = precise(bundle)

    def call(unary, pair, lengths=None):
        unary, pair, lengths = _floating("unary", unary), _floating("pair", pair), to_jax(lengths, "lengths")
        _check_shapes(unary, pair, lengths)
        if any_tracer(unary, pair, lengths):
            return function(unary, pair, lengths)[0]
        answer, verdict = compiled(unary, pair, lengths)
        if not any_tracer(verdict):  # else these are constants of a program that is being traced
            _refuse(verdict, unary.shape[-2])
        return answer

    call.__name__, call.__qualname__ = function.__name__, function.__qualname__
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    return call


@_oracle
def log_partition(unary, pair, lengths=None):
    """``log Z``, the logarithm of the sum over labellings of ``exp(score)``, for each chain of the batch.

    Its gradient in the scores is the marginals, its Hessian their covariance; memory for the gradient is that of the
    scores, whatever the number of labels.

    >>> unary = np.array([[[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.5, -0.2], [0.0, 0.0], [0.0, 0.0]]])
    >>> log_partition(unary, [[0.4, -0.6], [0.2, 0.9]], [3, 1]).round(6)
    array([3.318088, 0.903186])
    """
    log_z = _filter(*_by_time(unary, pair, lengths))[2]
    return log_z, log_z


@_oracle
def marginals(unary, pair, lengths=None):
    """``(nodes, pairs, log_z)``: the probabilities of the labels of each node ``(..., T, K)`` and of each pair of
    neighbours ``(..., T - 1, K, K)``, zero in the padding, and the log-partition function.

    >>> unary = np.array([[[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.5, -0.2], [0.0, 0.0], [0.0, 0.0]]])
    >>> nodes, pairs, log_z = marginals(unary, [[0.4, -0.6], [0.2, 0.9]], [3, 1])
    >>> nodes[..., 0].round(4)
    array([[0.4019, 0.2291, 0.1401],
           [0.6682, 0.    , 0.    ]])
    """
    nodes, pairs, _, log_z = _smooth(unary, pair, lengths)
    return (nodes, pairs, log_z), log_z


@_oracle
def entropy(unary, pair, lengths=None):
    """The entropy of each chain of the batch, in nats.

    By the chain rule from the last node backwards: no term is negative, and none is a difference of large scores.

    >>> unary = np.array([[[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.5, -0.2], [0.0, 0.0], [0.0, 0.0]]])
    >>> entropy(unary, [[0.4, -0.6], [0.2, 0.9]], [3, 1]).round(6)
    array([1.519578, 0.635455])
    """
    _, _, nats, log_z = _smooth(unary, pair, lengths)
    return nats, log_z


@_oracle
def viterbi(unary, pair, lengths=None):
    """``(labels, score)``: the best labelling of each chain ``(..., T)``, with -1 in the padding, and its score.

    Of equal ones, the label of lower number wins at each step back.

    >>> unary = np.array([[[0.5, -0.2], [0.1, 0.3], [-1.0, 0.7]], [[0.5, -0.2], [0.0, 0.0], [0.0, 0.0]]])
    >>> labels, score = viterbi(unary, [[0.4, -0.6], [0.2, 0.9]], [3, 1])
    >>> labels
    array([[ 1,  1,  1],
           [ 0, -1, -1]], dtype=int32)
    >>> score.round(12)
    array([2.6, 0.5])
    """
    first, rest, pair, valid = _by_time(unary, pair, lengths)
    own = jnp.arange(first.shape[-1], dtype=jnp.int32)

    def forward(value, step):
        scores, matrix, here = step
        candidates = value[..., :, None] + _matrix(pair, matrix)
        best = jnp.max(candidates, axis=-2) + scores
        origin = jnp.argmax(candidates, axis=-2).astype(jnp.int32)
        here = here[..., None]
        return jnp.where(here, best, value), jnp.where(here, origin, own)

    last, origins = jax.lax.scan(forward, first, (rest, _edges(pair), valid[1:]))
    end = jnp.argmax(last, axis=-1).astype(jnp.int32)

    def back(label, origin):
        return jnp.take_along_axis(origin, label[..., None], axis=-1)[..., 0], label

    begin, labels = jax.lax.scan(back, end, origins, reverse=True)
    labels = jnp.where(valid, jnp.concatenate([begin[None], labels]), -1)
    score = jnp.max(last, axis=-1)
    return (jnp.moveaxis(labels, 0, -1), score), score


# Passes ---------------------------------------------------------------------------------------------------------------


def _by_time(unary, pair, lengths):
    """The first node's scores, those of the others with time first, the pair scores alike, and which nodes there are.

    Padding becomes zero before anything is computed: a NaN that is masked afterwards would still reach the gradient.
    """
    steps, dtype = unary.shape[-2], jnp.result_type(unary.dtype, pair.dtype)
    unary, pair = unary.astype(dtype), pair.astype(dtype)
    if lengths is None:
        valid = jnp.ones((steps, *unary.shape[:-2]), dtype=bool)
    else:
        times = jnp.arange(steps).reshape(steps, *(1,) * (unary.ndim - 2))
        valid = jnp.broadcast_to(times < jnp.asarray(lengths), (steps, *unary.shape[:-2]))
    unary = jnp.where(valid[..., None], jnp.moveaxis(unary, -2, 0), 0.0)
    if pair.ndim > 2:
        pair = jnp.where(valid[1:, ..., None, None], jnp.moveaxis(pair, -3, 0), 0.0)
    return unary[0], unary[1:], pair, valid


def _edges(pair):
    """What a scan runs over: the matrix of each pair of neighbours, or nothing where one serves all."""
    return None if pair.ndim == 2 else pair


def _matrix(pair, matrix):
    return pair if matrix is None else matrix


def _log_sum(values, axis):
    """``log sum exp``; minus infinity, with gradient zero, where all terms are."""
    highest = jax.lax.stop_gradient(jnp.max(values, axis=axis, keepdims=True))
    highest = jnp.where(jnp.isneginf(highest), 0.0, highest)
    total = jnp.sum(jnp.exp(values - highest), axis=axis)
    some = total > 0
    return jnp.where(some, jnp.log(jnp.where(some, total, 1.0)) + jnp.squeeze(highest, axis), -jnp.inf)


def _filter(first, rest, pair, valid):
    """The forward pass: log-probabilities of each node's label given the past, and the log-partition function."""

    def forward(carry, step):
        past, log_z = carry
        scores, matrix, here = step
        message = _log_sum(past[..., :, None] + _matrix(pair, matrix), -2) + scores
        moved, scale = _normalised(message)
        past = jnp.where(here[..., None], moved, past)
        return (past, jnp.where(here, log_z + scale, log_z)), past

    start = _normalised(first)
    # The inside of a step is computed again for the gradient: to keep it would take K times the memory.
    (last, log_z), others = jax.lax.scan(jax.checkpoint(forward), start, (rest, _edges(pair), valid[1:]))
    return jnp.concatenate([start[0][None], others]), last, log_z


def _normalised(message):
    scale = _log_sum(message, -1)
    return message - jnp.where(jnp.isneginf(scale), 0.0, scale)[..., None], scale


def _smooth(unary, pair, lengths):
    """Marginals, entropy and log-partition function, from the last node backwards.

    ``P(y_t = j | y_{t+1} = k)`` does not depend on what comes later: it is the forward message times the step, divided
    by its sum over ``j``. Times the marginal of ``y_{t+1}`` it is the marginal of the pair.
    """
    first, rest, pair, valid = _by_time(unary, pair, lengths)
    past, last, log_z = _filter(first, rest, pair, valid)
    final = jnp.exp(last)

    def backward(node, step):
        message, matrix, here = step
        terms = message[..., :, None] + _matrix(pair, matrix)
        total = _log_sum(terms, -2)[..., None, :]
        conditional = terms - jnp.where(jnp.isneginf(total), 0.0, total)
        share = jnp.exp(conditional)
        pairs = share * node[..., None, :]
        surprise = -jnp.sum(jnp.where(pairs > 0, pairs * _finite(conditional), 0.0), axis=(-2, -1))
        here = here[..., None]
        before = jnp.where(here, jnp.sum(pairs, axis=-1), node)
        return before, (
            jnp.where(here, node, 0.0),
            jnp.where(here[..., None], pairs, 0.0),
            jnp.where(here[..., 0], surprise, 0.0),
        )

    begin, (nodes, pairs, surprise) = jax.lax.scan(
        jax.checkpoint(backward), final, (past[:-1], _edges(pair), valid[1:]), reverse=True
    )
    nodes = jnp.concatenate([begin[None], nodes])
    entropy = jnp.sum(surprise, axis=0) - jnp.sum(jnp.where(final > 0, final * _finite(last), 0.0), axis=-1)
    return jnp.moveaxis(nodes, 0, -2), jnp.moveaxis(pairs, 0, -3), entropy, log_z


def _finite(logs):
    """Minus infinity replaced by 0, where it is multiplied by a zero: the product, and its gradient, would be NaN."""
    return jnp.where(jnp.isneginf(logs), 0.0, logs)


# Checks of arguments --------------------------------------------------------------------------------------------------


def _floating(name, value):
    value = to_jax(value, name)
    if isinstance(value, jax.Array):
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
    return np.asarray(value, dtype=np.float64)


def _check_shapes(unary, pair, lengths):
    if unary.ndim < 2 or 0 in unary.shape[-2:]:
        raise ValueError(f"unary must have shape (..., nodes, labels), at least one of each; got {unary.shape}")
    steps, labels = unary.shape[-2:]
    each = (*unary.shape[:-2], steps - 1, labels, labels)
    if pair.shape not in ((labels, labels), each):
        raise ValueError(
            f"pair must have shape {(labels, labels)}, or {each} for scores of each pair of neighbours, beside "
            f"unary of shape {unary.shape}; got {pair.shape}"
        )
    if lengths is None:
        return
    lengths = lengths if isinstance(lengths, jax.Array) else np.asarray(lengths)
    if lengths.shape != unary.shape[:-2] or lengths.dtype.kind not in "iu":
        raise ValueError(
            f"lengths must be whole numbers of shape {unary.shape[:-2]}; got {lengths.dtype} of shape {lengths.shape}"
        )


def _verdict(unary, pair, lengths, level):
    """Whether lengths, scores of nodes and of pairs are what they should be, and which chains are not possible."""
    first, rest, pair, _ = _by_time(unary, pair, lengths)
    inside = True if lengths is None else jnp.all((lengths >= 1) & (lengths <= unary.shape[-2]))
    nodes, pairs = jnp.all(first < jnp.inf) & jnp.all(rest < jnp.inf), jnp.all(pair < jnp.inf)
    return inside, nodes, pairs, jnp.any(jnp.isneginf(level)), jnp.all(jnp.isfinite(level))


def _refuse(verdict, steps):
    inside, nodes, pairs, impossible, finite = verdict
    if not inside:
        raise ValueError(f"lengths must be from 1 to {steps}, the number of nodes of unary; some are not")
    for name, fine in (("unary", nodes), ("pair", pairs)):
        if not fine:
            raise ValueError(f"{name} must be numbers or minus infinity; it holds NaN or infinity outside the padding")
    if impossible:
        raise DomainError("unary and pair forbid every labelling of some chain: each has a score of minus infinity")
    if not finite:
        raise ValueError("unary and pair must add up to a finite score for every chain; some overflow")
