"""The demonstration of Markov random fields: its numbers come out by another way."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.report import graphical
from cumulant.sampling import Draws


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def log_z(shape, coupling, fields):
    """By rows: a transfer matrix over all states of a row, in plain NumPy."""
    rows, columns = shape
    states = np.array(list(itertools.product([-1, 1], repeat=rows)))
    inner = coupling * (states[:, :-1] * states[:, 1:]).sum(axis=1)
    across = np.exp(coupling * states @ states.T)
    fields = np.broadcast_to(fields, shape)
    total, vector = 0.0, np.ones(len(states))
    for j in range(columns):
        vector = (vector if j == 0 else across @ vector) * np.exp(inner + states @ fields[:, j])
        total, vector = total + np.log(vector.max()), vector / vector.max()
    return total + np.log(vector.sum())


def test_the_evidence_is_a_difference_of_two_log_partition_functions(tmp_path, monkeypatch):
    found = graphical.restore(couplings=(0.3, 0.5), height=8, digits=(13, 14))
    p = graphical._FLIPPED
    h = 0.5 * np.log((1 - p) / p)
    fields = h * np.where(found.seen, 1, -1)
    expected = [
        log_z(found.ink.shape, j, fields) - log_z(found.ink.shape, j, 0.0) - found.ink.size * np.log(np.cosh(h))
        for j in (0.3, 0.5)
    ]
    assert_allclose(found.evidence, expected, rtol=1e-9)
    # A probability is half the derivative of log Z by its field, and a half.
    step = np.zeros(found.ink.shape)
    step[3, 7] = 1e-4
    slope = (
        log_z(found.ink.shape, found.best, fields + step) - log_z(found.ink.shape, found.best, fields - step)
    ) / 2e-4
    assert found.probability[3, 7] == pytest.approx(0.5 + 0.5 * slope, abs=1e-6)
    monkeypatch.setattr(graphical, "restore", lambda: found)
    section = graphical.noise(tmp_path)
    assert is_picture(section.pictures[0][0])
    wrong = 100 * np.mean((found.probability > 0.5) != found.ink)
    assert section.tables[0].rows[1][1] == f"{wrong:.1f}"


def test_the_interval_closes_around_the_exact_value(tmp_path, monkeypatch):
    found = graphical.squeeze(side=8, memory=2**12, work=(2, 10))
    fields, couplings = found.model.fields.reshape(8, 8), found.model.couplings
    # The exact value by a transfer matrix that takes every coupling by its own edge.
    states = np.array(list(itertools.product([-1, 1], repeat=8)))
    of = {tuple(edge): j for edge, j in zip(found.model.edges.tolist(), couplings, strict=True)}
    total, vector = 0.0, np.ones(len(states))
    for i in range(8):
        inside = sum(of[8 * i + j, 8 * i + j + 1] * states[:, j] * states[:, j + 1] for j in range(7))
        if i:
            down = np.array([of[8 * i - 8 + j, 8 * i + j] for j in range(8)])
            vector = np.exp((states * down) @ states.T) @ vector
        vector = vector * np.exp(inside + states @ fields[i])
        total, vector = total + np.log(vector.max()), vector / vector.max()
    assert found.exact == pytest.approx(total + np.log(vector.sum()), rel=1e-10)
    assert all(found.exact in each for each in found.intervals)
    assert found.intervals[1].width <= found.intervals[0].width
    assert found.naive <= found.exact
    monkeypatch.setattr(graphical, "squeeze", lambda: found)
    section = graphical.glass(tmp_path)
    assert is_picture(section.pictures[0][0])
    assert [row[-1] for row in section.tables[0].rows] == ["yes", "yes"]


def test_the_energy_of_a_small_torus_by_enumeration():
    x = np.array(list(itertools.product([-1, 1], repeat=9))).reshape(-1, 3, 3)
    agreement = (x * np.roll(x, 1, axis=1) + x * np.roll(x, 1, axis=2)).sum(axis=(1, 2))
    weights = np.exp(0.4 * agreement)
    expected = weights @ agreement / weights.sum() / 18
    assert graphical.torus_energy(3, 0.4) == pytest.approx(expected, abs=1e-6)


def test_chains_that_agree_have_a_small_r_hat_and_others_have_not(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    model, found = graphical.critical_chains(side=4, draws=200)
    good = found["clusters"]
    stuck = Draws(np.repeat(rng.choice([-1, 1], (4, 1, 16), p=[0.2, 0.8]), 200, axis=1).astype(np.int8), "stuck")
    stuck.values[:, ::7, 0] *= -1
    monkeypatch.setattr(graphical, "critical_chains", lambda: (model, {"single spins": stuck, "clusters": good}))
    section = graphical.magnet(tmp_path)
    (_, bad, *_), (_, fine, _, agreement, off) = section.tables[0].rows
    assert float(bad) > 1.5
    assert float(fine) < 1.1
    assert float(off) < 4
    mean, error = map(float, agreement.split(" ± "))
    assert abs(mean - graphical.torus_energy(4, graphical.CRITICAL)) < 4 * error
    assert is_picture(section.pictures[0][0])
