"""Regressions with an l2 penalty against every solver of scikit-learn, to a given relative sub-optimality.

Both sides minimise the same function (``l2 = 1/n``, that is ``C = 1``). Each solver of scikit-learn runs over a grid of
tolerances and counts at the loosest one that reaches the target; the best of them is the peer. Ours is `GLM` with its
defaults and ``tol`` at the target, which it must certify. liblinear penalises the intercept, so that it minimises
another function: the comparison is without an intercept. Compilation is not counted and is reported.

* sparse: 50,000 x 20,000 with a density of 0.001;
* badly scaled: dense, 100,000 x 50, columns from 1 to 0.01;
* correlated: dense, 5,000 x 500, neighbouring columns with a correlation of 0.9;
* many rows: sparse, 200,000 x 2,000 with a density of 0.005;
* tiny: 200 x 10;
* digits: ten classes, the 8 x 8 pictures that come with scikit-learn;
* counts: Poisson, dense, 20,000 x 100;
* Spambase, standardised: `spambase.npz` in the folder named by CUMULANT_DATA.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, xlogy
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from benchmarks.timing import Row, seconds
from cumulant.glm import GLM

_REPEATS = 5
_BAR = 1 / 1.1  # at most 1.1 times the time of the best of them
_PATIENCE = 20.0  # seconds after which a solver of the peer is given up for a task
_GRIDS = {
    "lbfgs": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "newton-cg": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "newton-cholesky": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "liblinear": (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "sag": (1e-1, 1e-2, 1e-3, 1e-4),
    "saga": (1e-1, 1e-2, 1e-3, 1e-4),
}


_COUNTS = {"lbfgs": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6), "newton-cholesky": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)}


def run() -> list[Row]:
    tasks = {
        "sparse 50,000 x 20,000": (sparse, 1e-4, "bernoulli"),
        "dense, badly scaled": (badly_scaled, 1e-4, "bernoulli"),
        "dense, correlated": (correlated, 1e-4, "bernoulli"),
        "sparse 200,000 x 2,000": (lambda: sparse(200_000, 2_000, 5e-3), 1e-4, "bernoulli"),
        "tiny": (tiny, 1e-4, "bernoulli"),
        "digits": (digits, 1e-4, "categorical"),
        "counts": (counts, 1e-4, "poisson"),
    }
    folder = os.environ.get("CUMULANT_DATA")
    if folder and (Path(folder) / "spambase.npz").exists():
        tasks["Spambase"] = (lambda: spambase(folder), 1e-6, "bernoulli")
    else:
        print("glm: Spambase left out; set CUMULANT_DATA to the folder with spambase.npz")
    only = os.environ.get("CUMULANT_ONLY", "")
    return [compare(name, *make(), tol, family) for name, (make, tol, family) in tasks.items() if only in name]


def labels(rng, scores):
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(int)


def sparse(n=50_000, p=20_000, density=1e-3):
    rng = np.random.default_rng(0)
    count = int(n * p * density)
    entries = rng.standard_normal(count), (rng.integers(0, n, count), rng.integers(0, p, count))
    X = sp.csr_matrix(entries, shape=(n, p))
    return X, labels(rng, X @ rng.standard_normal(p) / 2)


def badly_scaled(n=100_000, p=50):
    rng = np.random.default_rng(0)
    scales = np.geomspace(1.0, 0.01, p)
    X = rng.standard_normal((n, p)) * scales
    return X, labels(rng, X @ (rng.standard_normal(p) / scales) / 3)


def spambase(folder):
    with np.load(Path(folder) / "spambase.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(int)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def correlated(n=5_000, p=500):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    return X, labels(rng, X @ rng.standard_normal(p) / 10)


def tiny(n=200, p=10):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    return X, labels(rng, X[:, 0])


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16.0, y


def counts(n=20_000, p=100):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * np.geomspace(1.0, 0.1, p)
    return X, rng.poisson(np.exp(X @ rng.standard_normal(p) / 5)).astype(float)


def objective(family, X, y, w) -> float:
    penalty, eta = 0.5 / len(y) * float(np.sum(w * w)), X @ w.T
    if family == "bernoulli":
        return float(np.mean(np.logaddexp(0.0, -(2 * y - 1) * eta.ravel()))) + penalty
    if family == "categorical":
        return float(np.mean(logsumexp(eta, axis=1) - eta[np.arange(len(y)), y])) + penalty
    return float(np.mean(np.exp(eta) - y * eta + xlogy(y, y) - y)) + penalty


def peer_of(family, solver, tolerance, n):
    if family == "poisson":
        return PoissonRegressor(alpha=1 / n, solver=solver, tol=tolerance, fit_intercept=False, max_iter=10_000)
    return LogisticRegression(C=1.0, solver=solver, tol=tolerance, fit_intercept=False, max_iter=10_000)


def compare(name, X, y, tol, family) -> Row:
    exact = GLM(family, l2=1 / len(y), tol=1e-10, fit_intercept=False)
    first = seconds(lambda: exact.fit(X, y))
    optimum = exact.objective_
    target = optimum * (1 + tol)
    print(f"{name}: first call {first:.2f} s; optimum {optimum:.10g}, certified to {exact.certificate_.upper:.1g}")
    peer, tolerance = best_peer(family, X, y, target)
    model = GLM(family, l2=1 / len(y), tol=tol, fit_intercept=False)
    theirs = peer_of(family, peer, tolerance, len(y))
    mine, its = [], []
    for _ in range(_REPEATS):
        mine.append(seconds(lambda: model.fit(X, y)))
        its.append(seconds(lambda: theirs.fit(X, y)))
    assert objective(family, X, y, model.coef_) <= target
    assert objective(family, X, y, theirs.coef_) <= target
    assert model.certificate_.upper <= tol * model.objective_
    ratios = np.array(its) / np.array(mine)
    row = Row(
        f"{family}, {name}", f"scikit-learn {peer} {tolerance:g}", float(np.median(mine)), float(np.median(its)),
        float(np.median(ratios)), (float(ratios.min()), float(ratios.max())), _BAR,
    )  # fmt: skip
    print(row, flush=True)
    return row


def best_peer(family, X, y, target):
    """The solver and the tolerance of scikit-learn that reach the target first, the faster of two runs each."""
    best = (np.inf, "", 0.0)
    for solver, grid in (_COUNTS if family == "poisson" else _GRIDS).items():
        if (solver == "newton-cholesky" and X.shape[1] > 2000) or (solver == "liblinear" and family == "categorical"):
            continue  # a Hessian of this size alone takes longer than the others need; liblinear has two classes
        for tolerance in grid:
            model = peer_of(family, solver, tolerance, len(y))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                took = seconds(lambda model=model: model.fit(X, y))
                if took < 1.0:
                    took = min(took, seconds(lambda model=model: model.fit(X, y)))
            if objective(family, X, y, model.coef_) <= target:
                print(f"  {solver:16s} tol {tolerance:g}: {1e3 * took:.1f} ms", flush=True)
                best = min(best, (took, solver, tolerance))
                break
            if took > min(_PATIENCE, 5 * best[0]):
                break
    return best[1], best[2]
