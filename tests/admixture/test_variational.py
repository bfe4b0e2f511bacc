"""Variational particles of an admixture on a corpus whose evidence is known."""

import numpy as np
import pytest

from cumulant import particles
from cumulant.admixture import AdmixtureFamily, AdmixtureModel, Corpus, variational_evidence
from tests.admixture.tiny import LOG_EVIDENCE, MODEL

TWO_LOCI = AdmixtureModel(Corpus.from_genotypes([[[0, 1], [2, 0]], [[1, 1], [1, -1]]], n_alleles=[2, 3]), 2, 0.7, 0.5)


def test_the_parts_of_the_family_belong_together():
    family = AdmixtureFamily(TWO_LOCI)
    assert particles.check_family(family, n=2000) < 5
    x_A, _ = family.begin(5, np.random.default_rng(0))
    theta, vector = np.random.default_rng(1).uniform(0.2, 1.0, (2, family.dim))
    for closed, which, rest in (
        (family.block_values, 0, (theta,)),
        (family.block_means, 1, (theta,)),
        (family.block_products, 2, (theta, vector)),
    ):
        np.testing.assert_allclose(closed(x_A, *rest), family._call(which, x_A, *rest), rtol=1e-8)


@pytest.mark.parametrize("safeguard", ["joint-quadratic", "exact"])
def test_the_bound_and_the_finish_find_the_evidence(safeguard):
    result = variational_evidence(MODEL, 2000, 100, finish=20, safeguard=safeguard, rng=0)
    bound = result.log_partition("bound") - MODEL.log_constant
    assert bound == pytest.approx(LOG_EVIDENCE, abs=0.03)
    assert result.log_partition() - MODEL.log_constant == pytest.approx(LOG_EVIDENCE, abs=0.03)
    assert (np.array(result.path[0]) >= 0).all()
    phi, gamma = result.theta[0, -2:]
    assert phi - gamma == pytest.approx(1.0, abs=0.05)
