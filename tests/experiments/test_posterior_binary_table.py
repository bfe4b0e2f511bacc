"""Digits on 4 x 4 blocks: conditional laws against elimination, scores against closed forms, and the quick version."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.experiments import posterior_binary_table as experiment
from cumulant.graphical import Ising, spin_glass


def test_posteriors_are_those_of_elimination():
    model = spin_glass(experiment.EDGES, couplings=0.5, fields=0.5, rng=0)
    law = np.exp(model.log_prob(experiment._all_states()))
    x = model.sample(1, rng=1)[0]
    given = model.given({v: int(x[v]) for v in range(8)})
    assert_allclose(experiment._posterior(law, x), given.marginals()[8:, 1], atol=1e-12)
    held, _, half = experiment._scores(law, law, x[None])
    assert_allclose(held, model.log_prob(x), atol=1e-12)
    assert_allclose(half, given.log_prob(x), atol=1e-12)


def test_scores_of_independent_pixels_are_sums():
    train, test = experiment._digits(np.random.default_rng(0))
    assert (train.shape, test.shape) == ((1000, 16), (797, 16))
    h = np.random.default_rng(1).normal(size=16)
    law = np.exp(Ising(experiment.EDGES, 0.0, h).log_prob(experiment._all_states()))
    each = h * test - np.logaddexp(h, -h)
    held, kl, half = experiment._scores(law, law, test)
    assert_allclose([held, kl, half], [each.sum(axis=1).mean(), 0.0, each[:, 8:].sum(axis=1).mean()], atol=1e-10)


def test_the_claims_are_judged():
    table = {name: (-5.0 - k, 0.1 * k, -2.0 - k) for k, name in enumerate(experiment.NAMES)}
    claims = experiment._claims((1.0, 0.9, 0.5, 1e6), table, [0.02, 0.001])
    assert [claim.verdict == "reproduced" for claim in claims] == [True, False, True, True, True, True]
    assert "likelihood -5.0000, likelihood in the set -6.0000" in claims[2].ours


@pytest.mark.slow
def test_the_quick_version_runs(tmp_path):
    report = experiment.run(tmp_path, quick=True, rng=0)
    assert report.claims[0].verdict == "reproduced"
    assert report.pictures[0].stat().st_size > 5_000
