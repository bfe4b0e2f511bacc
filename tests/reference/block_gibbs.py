"""Random-scan block Gibbs and its weight by the book, on the symmetric matrices of couplings of small Ising models."""

import numpy as np


def log_f(x, fields, W):
    """The log-density up to a constant of states (m, n), each edge counted once."""
    return x @ fields + np.einsum("si,ij,sj->s", x, W, x) / 2


def block_conditional(x, block, fields, W):
    """``p(x_B | x_-B)`` for each state, by the sum over all states of the block."""
    total = np.zeros(len(x))
    for k in range(2 ** len(block)):
        other = x.copy()
        other[:, block] = [2 * ((k >> i) & 1) - 1 for i in range(len(block))]
        total += np.exp(log_f(other, fields, W))
    return np.exp(log_f(x, fields, W)) / total


def weights(x, blocks, old, new, backward):
    """``u`` at the states `x` for parameters (fields, W)."""
    ratio = np.exp(log_f(x, *new) - log_f(x, *old))
    if backward == "reversal":
        return ratio
    n = x.shape[1]
    mixture = sum(len(B) / n * block_conditional(x, B, *new) / block_conditional(x, B, *old) for B in blocks)
    return ratio / mixture


def transition(x, blocks, fields, W):
    """``K[s, s']`` over the given list of all states."""
    n, out = x.shape[1], np.zeros((len(x), len(x)))
    for B in blocks:
        rest = np.setdiff1d(np.arange(n), B)
        same = (x[:, None, rest] == x[None, :, rest]).all(axis=2)
        out += len(B) / n * same * block_conditional(x, B, fields, W)
    return out
