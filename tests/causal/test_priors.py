"""Random models: draws in log space, the symmetry of the sparse prior, expected radii (acceptance checks 12, 14)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, polygamma

from cumulant.causal import (
    CategoricalSCM,
    direction_log_odds,
    dirichlet_factorize,
    effect_advantage_ball,
    expected_squared_radius,
    initial_distances,
    log_dirichlet,
    log_partition_variance,
    row_log_partitions,
    sample_reference,
)


def near(values, expected, errors=4.5):
    """The mean of independent values is the expected one, within that many standard errors."""
    values = np.asarray(values, float)
    assert abs(values.mean() - expected) < errors * values.std(ddof=1) / np.sqrt(len(values)), (values.mean(), expected)


@pytest.mark.parametrize("a", [1 / 20, 0.5, 1.0, 7.0])
def test_logarithms_of_dirichlet_draws_have_the_moments_of_the_family(a):
    K, n = 6, 40_000
    logs = log_dirichlet(np.full(K, a), n, rng=0)
    assert_allclose(np.exp(logs).sum(-1), 1.0, rtol=1e-12)
    near(logs[:, 0], digamma(a) - digamma(K * a))
    near((logs[:, 1] - (digamma(a) - digamma(K * a))) ** 2, polygamma(1, a) - polygamma(1, K * a))
    near(np.exp(2 * logs[:, 2]), (a + 1) / (K * (K * a + 1)))


def test_a_dirichlet_table_is_a_marginal_and_independent_rows():
    """Theorem 4.C.1: moments of a table drawn whole and of one drawn by its factors."""
    gamma = np.array([[0.3, 1.2, 0.7], [2.0, 0.1, 0.5]])
    alpha, rows = dirichlet_factorize(gamma)
    assert_allclose(alpha, [2.2, 2.6])
    n = 60_000
    whole = log_dirichlet(gamma.ravel(), n, rng=0).reshape(n, 2, 3)
    built = CategoricalSCM(log_dirichlet(alpha, n, rng=1), log_dirichlet(rows, n, rng=2)).log_joint
    total = gamma.sum()
    for tables in (whole, built):
        for i in range(2):
            for j in range(3):
                near(np.exp(tables[:, i, j]), gamma[i, j] / total)
                near(tables[:, i, j], digamma(gamma[i, j]) - digamma(total))
        product = tables[:, 0, 0] * tables[:, 1, 1]
        means = [digamma(gamma[0, 0]) - digamma(total), digamma(gamma[1, 1]) - digamma(total)]
        near(product, means[0] * means[1] - polygamma(1, total))


def test_the_variance_of_log_partitions():
    """Check 12."""
    assert_allclose(log_partition_variance(1.0, 20), 0.0309759, rtol=2e-6)
    assert_allclose(log_partition_variance(1 / 20, 20), 18.4317, rtol=2e-6)
    for prior, expected in (("dense", 0.0309759), ("sparse", 18.4317)):
        A = row_log_partitions(sample_reference(20, 4000, prior, rng=0))
        assert abs(A.var() / expected - 1) < 0.02


def test_the_expected_radius():
    """Check 12: 388.04 under the sparse prior; a lower bound under the dense one, whose mean is 0.692."""
    assert_allclose(expected_squared_radius(20, "sparse"), 388.04, atol=0.005)
    radii = {prior: effect_advantage_ball(sample_reference(20, 6000, prior, rng=1))[1] for prior in ("dense", "sparse")}
    assert abs(radii["sparse"].mean() / 388.04 - 1) < 0.02
    near(radii["sparse"], expected_squared_radius(20, "sparse"))
    assert expected_squared_radius(20, "dense") < radii["dense"].mean()
    assert abs(radii["dense"].mean() - 0.692) < 0.015
    assert_allclose(expected_squared_radius(20, "dense", method="document"), 2.67, atol=0.005)
    assert_allclose(expected_squared_radius(20, "sparse", method="document"), 434.4, atol=0.05)


def test_radii_against_deviations():
    """Figure 4.7 b, K = 20: means, 5th and 95th percentiles, and how often the causal model is nearer."""
    for prior, radii, deviations, share in (
        ("dense", (0.69, 0.37, 1.11), (33, 14.5, 62), 0.0),
        ("sparse", (391, 209, 627), (454, 232, 751), 0.37),
    ):
        model = sample_reference(20, 6000, prior, rng=1)
        centre, radius = effect_advantage_ball(model)
        new = model.intervene("effect", rng=5).reverse().to_logit().cause
        deviation = np.sum((new - centre) ** 2, axis=-1)
        for values, expected in ((radius, radii), (deviation, deviations)):
            assert_allclose([values.mean(), *np.quantile(values, (0.05, 0.95))], expected, rtol=0.05)
        assert abs(np.mean(deviation < radius) - share) <= 4 * np.sqrt(share * (1 - share) / 6000)


def test_the_mean_of_the_first_term_under_the_dense_prior():
    K, models = 6, sample_reference(6, 20_000, "dense", rng=3)
    A = row_log_partitions(models)
    near(K * K / (K - 1) * A.var(axis=-1), expected_squared_radius(K, "dense"))


def test_the_sparse_prior_is_symmetric():
    """Check 14: ``p_Y ~ Dir(1)``, columns ``Dir(1 / K)``, and no evidence of a direction in any table."""
    K, n = 8, 20_000
    models = sample_reference(K, n, "sparse", rng=0)
    p_y = np.exp(models.reverse().log_cause)
    near(np.sum(p_y**2, -1), 2 / (K + 1))
    columns = np.exp(models.reverse().log_effect[:, 0])
    near(np.sum(columns**2, -1), (1 / K + 1) / 2)
    assert_allclose(direction_log_odds(models, "sparse"), 0.0, atol=1e-9)
    near(direction_log_odds(models, "dense"), 0.0)


def test_the_divergence_explodes_with_the_number_of_values():
    """Appendix 4.C.3: mean initial divergences of effect interventions under the sparse prior."""
    for K, expected in ((5, 3.47), (10, 7.97), (20, 17.4), (40, 36.9)):
        models = sample_reference(K, 400, "sparse", rng=K)
        near(models.intervene("effect", rng=0).kl(models), expected)


def test_dense_distances_of_the_study():
    models = sample_reference(20, 2000, "dense", rng=0)
    found = initial_distances(models, models.intervene("cause", rng=1))
    for each, expected in zip(found, (61.6, 1234, 1232), strict=True):
        assert abs(each.mean() / expected - 1) < 0.05
