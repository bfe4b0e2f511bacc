"""Random data sets of all shapes and scales: every fit converges, and its certificate is true."""

import numpy as np
import pytest

from cumulant.glm import GLM
from tests.glm.cases import FAMILIES


def draw(family, seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 60)), int(rng.integers(1, 30))
    X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-3, 3, p) + rng.choice([0.0, 10.0]) * rng.normal(size=p)
    if rng.random() < 0.2:
        X[:, rng.integers(p)] = 1.0
    eta = np.clip(X @ (rng.normal(size=p) / np.maximum(np.abs(X).max(axis=0), 1e-9)), -3, 3)
    y = {
        "bernoulli": lambda: (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "normal": lambda: eta + rng.normal(size=n) * 10 ** rng.uniform(-3, 3),
        "gamma": lambda: rng.gamma(1.0, np.exp(eta)) + 1e-6,
    }[family]()
    if family == "bernoulli":
        y[:2] = [0, 1]
    weights = rng.random(n) + 0.01 if rng.random() < 0.5 else None
    return X, y, weights, 10 ** rng.uniform(-4, 1), bool(rng.random() < 0.7), rng


@pytest.mark.parametrize("family", FAMILIES)
def test_the_certificate_holds_on_random_data(family):
    for seed in range(60):
        X, y, weights, l2, intercept, rng = draw(family, seed)
        l1 = l2 * rng.random() if rng.random() < 0.3 else 0.0
        settings = {"l1": l1, "l2": l2, "fit_intercept": intercept, "max_iter": 1000}
        best = GLM(family, tol=1e-9, **settings).fit(X, y, sample_weight=weights)
        lower = best.objective_ - best.certificate_.upper
        for tol in (1e-1, 1e-3):
            model = GLM(family, tol=tol, **settings).fit(X, y, sample_weight=weights)
            assert model.status_ == "converged", (seed, tol)
            # the two intervals for the minimum have a point in common
            assert model.objective_ - model.certificate_.upper <= best.objective_ + 1e-12 * abs(best.objective_), seed
            assert lower <= model.objective_ + 1e-12 * abs(best.objective_), seed
