"""The direction of the arrow from a table: log-odds by densities, Bayes errors (acceptance checks 5 and 13)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import dirichlet

from cumulant.causal import CategoricalSCM, bayes_error, direction_log_odds, sample_reference

TABLE = [[0.10, 0.15, 0.05], [0.20, 0.05, 0.05], [0.05, 0.05, 0.30]]
# Recomputed with one million tables each.
ERRORS = {2: 0.3860, 3: 0.2411, 4: 0.1335, 5: 0.0672, 6: 0.0309, 7: 0.0133, 8: 0.0053, 9: 0.0019, 10: 0.00072, 12: 8e-5}


def log_density(P, a, b):
    """Of a table under ``X -> Y``: Dirichlet densities, and the Jacobian by finite differences."""
    shape = P.shape

    def factors(free):
        table = np.append(free, 1 - free.sum()).reshape(shape)
        p = table.sum(1)
        return np.concatenate([p[:-1], (table / p[:, None])[:, :-1].ravel()])

    free, h = P.ravel()[:-1], 1e-6
    jacobian = np.array([(factors(free + h * e) - factors(free - h * e)) / (2 * h) for e in np.eye(free.size)])
    p = P.sum(1)
    rows = sum(dirichlet.logpdf(row / row.sum(), c) for row, c in zip(P, b, strict=True))
    return dirichlet.logpdf(p, a) + rows + np.linalg.slogdet(jacobian)[1]


def test_the_published_example():
    """Check 5: the guess is that Y causes X."""
    assert_allclose(direction_log_odds(TABLE), -0.0563418, rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 4), (3, 2)])
def test_log_odds_are_those_of_the_densities(shape):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(shape[0] * shape[1], 3.0)).reshape(shape)
    a, b = rng.uniform(0.5, 3, shape[0]), rng.uniform(0.5, 3, shape)
    c, d = rng.uniform(0.5, 3, shape[1]), rng.uniform(0.5, 3, shape[::-1])
    expected = log_density(P, a, b) - log_density(P.T, c, d)
    assert_allclose(direction_log_odds(P, (a, b), (c, d)), expected, rtol=1e-6, atol=1e-6)
    ones = [(np.ones(s[0]), np.ones(s)) for s in (shape, shape[::-1])]
    expected = log_density(P, *ones[0]) - log_density(P.T, *ones[1])
    assert_allclose(direction_log_odds(P), expected, rtol=1e-6, atol=1e-6)


def test_the_more_uniform_marginal_is_the_effect():
    models = sample_reference(5, 200, rng=0)
    p_x, p_y = models.log_cause, models.reverse().log_cause
    score = 5 * 4 * (-p_x.mean(-1) + p_y.mean(-1))
    assert_allclose(direction_log_odds(models), score, rtol=1e-10)


@pytest.mark.parametrize("K", ERRORS)
def test_the_table_of_bayes_errors(K):
    """Check 13: within three standard deviations of a million guesses, and our own error."""
    found = bayes_error(K, 40_000, rng=K)
    recomputed = np.sqrt(ERRORS[K] * (1 - ERRORS[K]) / 1e6)
    assert abs(found.error - ERRORS[K]) < 3 * np.hypot(recomputed, found.standard_error) + 5e-5 * (K < 7) + 5e-6
    assert found.standard_error < 0.05 * found.error


def test_rare_errors_and_their_standard_errors():
    """K = 14, eight tables in a million, from 2,000: plain means would nearly all be far below, with tiny errors."""
    found = np.array([bayes_error(14, 2000, rng=seed) for seed in range(40)])
    mean, spread = found[:, 0].mean(), found[:, 0].std(ddof=1)
    assert 0.7 < found[:, 1].mean() / spread < 1.4
    assert np.mean(np.abs(found[:, 0] - mean) < 2 * found[:, 1]) > 0.8
    assert abs(mean - 7.73e-6) < 4 * spread / np.sqrt(40)


def test_an_error_of_one_table_is_as_uncertain_as_it_is_large():
    """The squares of its losses are below the smallest float: the standard error is not zero for that."""
    found = bayes_error(200, 200, rng=0)
    assert 0 < found.error < 1e-150
    assert found.standard_error > 0.2 * found.error


def test_guesses_are_wrong_as_often_as_it_says():
    n = 100_000
    wrong = np.mean(direction_log_odds(sample_reference(3, n, rng=0)) < 0)
    found = bayes_error(3, n, rng=1)
    assert abs(wrong - found.error) < 4 * np.hypot(np.sqrt(wrong * (1 - wrong) / n), found.standard_error)
    assert found.standard_error < np.sqrt(wrong * (1 - wrong) / n)


def test_nothing_can_be_told_under_the_sparse_prior():
    assert bayes_error(4, 1000, rng=0, prior="sparse") == pytest.approx((0.5, 0.0), abs=1e-9)


def test_sparse_priors_of_tables_that_are_not_square():
    """``Dir(1 / K_y)`` against ``Dir(1 / K_x)`` over all cells."""
    models = sample_reference((2, 4), 3, "sparse", rng=0)
    cells = np.exp(models.log_joint).reshape(3, 8)
    expected = [dirichlet.logpdf(p, np.full(8, 1 / 4)) - dirichlet.logpdf(p, np.full(8, 1 / 2)) for p in cells]
    assert_allclose(direction_log_odds(models, "sparse"), expected, rtol=1e-8)


def test_a_pair_of_numbers_is_a_prior():
    """The general path gives the answer of the short one."""
    found, short = bayes_error(4, 20_000, rng=0, prior=(1.0, 1.0)), bayes_error(4, 20_000, rng=0)
    assert abs(found.error - short.error) < 4 * np.hypot(found.standard_error, short.standard_error)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: direction_log_odds([[0.5, 0.5], [0.0, 0.0]]), "table must be positive"),
        (lambda: direction_log_odds(TABLE, (np.ones(3), 1.0)), "give backward as well"),
        (lambda: direction_log_odds(TABLE, (1.0, np.ones((2, 3))), "dense"), r"prior: .*shapes \(3,\) and \(3, 3\)"),
        (lambda: direction_log_odds(TABLE, (0.0, 1.0)), "prior: concentrations must be positive"),
        (lambda: direction_log_odds(TABLE, "flat"), "prior: prior must be one of"),
        (lambda: bayes_error(1), "K must be a whole number of at least 2"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_models_and_tables_give_one_answer():
    assert direction_log_odds(CategoricalSCM.from_joint(TABLE)) == direction_log_odds(TABLE)
