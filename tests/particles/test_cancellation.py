"""Terms of 1e12 that cancel: adding them is wrong by 1e-4, and what is claimed of ``log Z`` must allow for that.

All weights of these models are the same, so that nothing but rounding lies between an estimate and the truth.
"""

import numpy as np
import pytest

from cumulant import graphical, particles

LARGE, N = 2.0**40, 8  # beside LARGE a number is rounded to a multiple of 2^-12
SMALL = (2**13 + 0.55) * 2**-12  # upwards, by 1.1e-4
SETTINGS = {"n_particles": 20_000, "ess_threshold": 0.0, "rng": 0, "n_jobs": 1}


def cancelling_tables():
    """Variables 0 to 7 with three tables each whose large entries cancel; given 8, so do two of pairs."""
    pair = np.array([[LARGE, -LARGE], [LARGE, -LARGE]])
    tables = [((i,), [each, each]) for i in range(N) for each in (LARGE, SMALL, -LARGE)]
    tables += [((i, N), each) for i in range(N) for each in (pair, -pair)]
    return graphical.FactorGraph([2] * (N + 1), tables).given({N: 0})


def frustrated_spins():
    """Spins 0 to 7 in frustrated triangles: 8 and 10 are alike, and pull them in opposite directions."""
    edges, couplings = [(N, N + 1), (N, N + 2)], [-LARGE, LARGE]
    for i in range(N):
        edges += [(i, N), (i, N + 1), (i, N + 2)]
        couplings += [LARGE, SMALL, -LARGE]
    return graphical.Ising(edges, couplings, np.zeros(N + 3)).given({N: 1, N + 1: 1, N + 2: 1})


TABLES, SPINS = N * (SMALL + np.log(2)), N * np.log(2 * np.cosh(SMALL))  # log Z


@pytest.mark.parametrize(
    ("make", "truth", "method", "settings"),
    [
        (cancelling_tables, TABLES, particles.anneal, {"temperatures": 1}),
        (frustrated_spins, SPINS, particles.anneal, {"temperatures": 1}),
        (frustrated_spins, SPINS, particles.hot_coupling, {"steps_per_group": 1}),
        (frustrated_spins, SPINS, particles.conditional_mean_field, {"temperatures": 1, "pilot": True}),
    ],
    ids=["tables", "spins", "hot coupling", "mean field"],
)
def test_rounding_of_terms_that_cancel_is_allowed_for(make, truth, method, settings):
    result = method(make(), **settings, **SETTINGS)
    assert result.log_partition() - truth > 5e-4  # or the claims were true by luck
    assert result.log_partition_error < 1e-9
    assert truth in result.interval(0.95)
    assert result.certificate.lower < truth
    assert result.certificate.verify(result.subject).lower < truth


def test_rounding_of_particles_in_jax_is_allowed_for():
    bond = 1e-3  # so that weights are not all the same, and a spread is seen
    model = frustrated_spins()
    edges, couplings = [*model.edges.tolist(), (0, 1)], [*model.couplings, bond]
    joined = graphical.Ising(edges, couplings, np.zeros(N + 3)).given(model.evidence)
    truth = SPINS + np.log(np.cosh(bond) + np.sinh(bond) * np.tanh(SMALL) ** 2)
    result = particles.anneal(joined, 1000, 1, sampler=graphical.ColouredGibbs(), rng=0)
    assert result.log_partition_error < 1e-4
    assert result.log_partition() - truth > 5e-4
    assert truth in result.interval(0.95)
