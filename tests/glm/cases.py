"""Data for the tests: one set per family, with weights and offsets."""

import numpy as np
import scipy.sparse as sp

FAMILIES = ("bernoulli", "poisson", "normal", "gamma")


def features(n=200, p=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * np.geomspace(1.0, 0.1, p)


def observations(family, X, seed=1):
    rng = np.random.default_rng(seed)
    eta = X @ rng.normal(size=X.shape[1]) + 0.3
    if family == "bernoulli":
        return (rng.random(len(X)) < 1 / (1 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(0.5 * eta)).astype(float)
    if family == "normal":
        return eta + rng.normal(size=len(X))
    if family == "gamma":
        return rng.gamma(2.0, np.exp(0.5 * eta) / 2.0)
    return np.argmax(np.outer(eta, [1.0, -1.0, 0.2]) + rng.gumbel(size=(len(X), 3)), axis=1)


def sparse_features(n=400, p=800, density=0.02, seed=0):
    rng = np.random.default_rng(seed)
    return sp.random(n, p, density, format="csr", random_state=seed, data_rvs=rng.standard_normal)
