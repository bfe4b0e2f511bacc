"""The best prior mean and the landscape of risks over priors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from cumulant.errors import DomainError
from cumulant.families import risk


def test_published_minimisers():
    found = risk.best_prior_mean(np.array([[1], [5], [10]]), [0.01, 0.1, 1, 10, 100], 0.5)
    published = [
        [74.64, 8.213, 1.603, 1.0245, 1.0004],
        [208.6, 21.55, 2.866, 1.0991, 1.0018],
        [276.3, 28.35, 3.565, 1.1598, 1.0035],
    ]
    assert_allclose(found, published, rtol=3e-4)


@pytest.mark.parametrize(("n", "n0", "alpha"), [(1, 0.3, 0.5), (4, 2.0, 0.05), (30, 1.0, 2.0)])
def test_the_minimiser_minimises(n, n0, alpha):
    best = risk.best_prior_mean(n, n0, alpha)
    search = minimize_scalar(lambda u: risk.risk_map_gamma(n, n0, np.exp(u), alpha), bounds=(-3, 6), method="bounded",
                             options={"xatol": 1e-9})  # fmt: skip
    assert_allclose(best, np.exp(search.x), rtol=1e-6)
    assert risk.risk_map_gamma(n, n0, best, alpha) <= search.fun * (1 + 1e-13)


def test_the_minimiser_at_its_ends():
    assert_allclose(risk.best_prior_mean(0, [0.1, 1.0, 10.0], 0.5), 1.0, rtol=1e-12)
    # For many observations it tends to 1 + 2/(alpha n0): twice to four times the rule of thumb.
    alpha, n0 = np.array([0.5, 1.0, 3.0]), 0.7
    assert_allclose(risk.best_prior_mean(1e6, n0, alpha), 1 + 2 / (alpha * n0), rtol=1e-4)


def test_the_rule_of_thumb_is_near_but_not_at_the_bottom_of_the_valley():
    landscape = risk.risk_landscape([1, 5, 10], np.geomspace(1e-2, 1e2, 41), np.geomspace(1e-2, 1e2, 41))
    on_rule = risk.risk_map_gamma(landscape.n[:, None], landscape.n0, landscape.rule, 0.5)
    excess = on_rule / landscape.best_risk - 1
    assert np.all(excess >= -1e-12)
    assert excess.max() < 0.55
    assert np.all(landscape.best_risk[:, :, None] <= landscape.risk * (1 + 1e-12))
    # n = 5: at n0 = 1 the rule costs .04596 against .03864, at n0 = 10 nothing to four digits.
    at = risk.risk_landscape([5], [1.0, 10.0], [1.0])
    assert_allclose(risk.risk_map_gamma(5, at.n0, at.rule, 0.5)[0], 0.04596, rtol=1e-4)
    assert_allclose(at.best_risk[0, 0], 0.03864, rtol=2e-4)
    assert_allclose(risk.risk_map_gamma(5, 10.0, at.rule[1], 0.5), at.best_risk[0, 1], rtol=1e-4)


def test_a_prior_of_no_strength_has_no_best_mean():
    with pytest.raises(DomainError, match="n0 must be finite and positive"):
        risk.best_prior_mean(3, 0.0, 0.5)
    with pytest.raises(DomainError, match="n0 must be finite and positive"):
        risk.prior_mean_rule(0.0)
