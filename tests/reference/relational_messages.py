"""The E-step by messages in plain NumPy: every message of the factor graph is an entry of an array, all change at once.

Arrays: `pair` [x, y, z_x] sent to ``z_x`` by the factor of a pair, `habit` [x, z_x] by that of the attribute, `gate`
[x, y, z_y] to ``z_y`` by the gate of the friend ``y`` of ``x``; as logarithms.
"""

from typing import NamedTuple

import numpy as np


class Beliefs(NamedTuple):
    """What messages say at their end."""

    log_likelihood: float
    independence: np.ndarray
    successes: np.ndarray
    trials: np.ndarray
    sweeps: int
    change: float


def e_step(theta, network, ordered=False, damping=0.0, max_sweeps=200, tol=1e-9):
    """Sum-product with flooding, from uniform messages."""
    theta, s, ties = np.asarray(theta), network.attribute.astype(int), network.ties
    n, index = s.size, np.arange(s.size)
    log_prior = np.log([1 - theta[0], theta[0]])
    rule = np.empty((n, n, 2, 2), int)
    rule[..., 1, 1], rule[..., 0, 0] = 1 + s[:, None] + s[None, :], 6
    rule[..., 1, 0], rule[..., 0, 1] = (4 + s)[:, None], (4 + s)[None, :]
    tables = np.where(ties[..., None, None], theta[rule], 1 - theta[rule])
    tables[index, index] = 1.0
    own = np.where(s == 1, theta[7], 1 - theta[7])
    others = np.where(s[:, None, None] == 1, theta[10:].reshape(2, 2), 1 - theta[10:].reshape(2, 2))  # [x, a, b]
    strength = np.where(s == 1, theta[8], theta[9])[None, :] * ties
    is_open = ties & (index[None, :] < index[:, None]) if ordered else np.zeros((n, n), bool)
    smoking = s[None, :] == 1
    pair, habit, gate = np.zeros((n, n, 2)), np.zeros((n, 2)), np.zeros((n, n, 2))
    sweeps, change = 0, np.inf
    while True:
        total = log_prior + pair.sum(axis=1) + habit + gate.sum(axis=0)
        to_pair, to_habit = _normalised(total[:, None] - pair), _normalised(total - habit)
        to_gate = np.where(is_open, 1.0, _normalised(total[None] - gate)[..., 1])
        swayed = strength * to_gate
        none = np.log1p(-swayed)
        no = [np.exp((none * ~smoking).sum(axis=1)), np.exp((none * smoking).sum(axis=1))]  # no gate of a kind is open
        p_a, p_b = np.stack([no[1], 1 - no[1]], axis=1), np.stack([no[0], 1 - no[0]], axis=1)
        mixture = np.einsum("xab,xa,xb->x", others, p_a, p_b)
        alone = (to_habit[:, 1] * own)[:, None]
        to_a = alone + to_habit[:, :1] * np.einsum("xab,xb->xa", others, p_b)
        to_b = alone + to_habit[:, :1] * np.einsum("xab,xa->xb", others, p_a)
        said = np.where(smoking[..., None], to_a[:, None], to_b[:, None])  # of the OR that a gate belongs to
        rest = np.where(smoking, no[1][:, None], no[0][:, None]) / (1 - swayed)
        shut, opened = said[..., 0] * rest + said[..., 1] * (1 - rest), said[..., 1]
        if sweeps == max_sweeps or change <= tol:
            break
        new_pair = np.einsum("xyuv,yxv->xyu", tables, to_pair)
        new_gate = np.stack([shut, (1 - strength) * shut + strength * opened], axis=-1)
        new_gate[~ties | is_open] = 1.0
        change = 0.0
        fresh = []
        for old, new in ((pair, new_pair), (habit, np.stack([mixture, own], axis=1)), (gate, new_gate)):
            new = np.log(new / new.sum(axis=-1, keepdims=True))
            old = old - np.log(np.exp(old).sum(axis=-1, keepdims=True))
            change = max(change, np.abs(np.exp(new) - np.exp(old)).max())
            fresh.append((1 - damping) * new + damping * old)
        pair, habit, gate = fresh
        sweeps += 1
    # log Z = sum over factors - sum over (variable, factor) + sum over variables, whatever the scale of messages
    upper, gates = np.triu_indices(n, 1), ties & ~is_open
    joint = tables * to_pair[:, :, :, None] * to_pair.transpose(1, 0, 2)[:, :, None, :]
    mass = joint.sum(axis=(2, 3))
    value = np.log(mass[upper]).sum() + np.log(to_habit[:, 1] * own + to_habit[:, 0] * mixture).sum()
    both_pair = np.log((to_pair * np.exp(pair)).sum(axis=-1))
    both_gate = np.log(np.where(gates, (1 - to_gate) * np.exp(gate[..., 0]) + to_gate * np.exp(gate[..., 1]), 1.0))
    value -= both_pair.sum() - np.trace(both_pair) + both_gate.sum()
    value -= np.log((to_habit * np.exp(habit)).sum(axis=-1)).sum()
    value += np.logaddexp.reduce(
        log_prior + _off_diagonal(pair).sum(axis=1) + habit + (gate * gates[..., None]).sum(0), axis=1
    ).sum()
    belief = _normalised(total)[:, 1]
    successes, trials = np.zeros(14), np.zeros(14)
    successes[0], trials[0] = belief.sum(), n
    beliefs = (joint / mass[..., None, None])[upper]
    np.add.at(trials, rule[upper], beliefs)
    np.add.at(successes, rule[upper], beliefs * ties[upper][:, None, None])
    successes[7], trials[7] = (belief * s).sum(), belief.sum()
    able = np.where(is_open, 1.0, belief[None, :])
    sway = swayed * opened / (swayed * opened + (1 - swayed) * shut)
    for k, kind in ((8, smoking), (9, ~smoking)):
        trials[k], successes[k] = (able * (ties & kind)).sum(), (sway * (ties & kind)).sum()
    cells = (1 - belief)[:, None, None] * others * p_a[:, :, None] * p_b[:, None, :] / mixture[:, None, None]
    trials[10:], successes[10:] = cells.sum(axis=0).ravel(), (cells * s[:, None, None]).sum(axis=0).ravel()
    return Beliefs(float(value), belief, successes, trials, sweeps, change)


def _normalised(logs):
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def _off_diagonal(pair):
    out = pair.copy()
    out[np.arange(len(pair)), np.arange(len(pair))] = 0.0
    return out
