"""Regressions with an l1 penalty against skglm, to a relative gap of one in a million.

Both sides minimise the mean loss ``+ l1 |w|_1 + l2/2 |w|^2``, without an intercept, at shares of the penalty from which
zero is the solution. skglm gets its data by columns, as it likes them, and runs over a grid of tolerances: it counts
at the loosest one that is within 1e-6 of the optimum, relative to it, which it does not know itself. Ours is `GLM`
with ``tol=1e-6``: it has to certify the gap. Compilation is not counted. Where no tolerance gets skglm there, the row
says so and is left out.

* dense: 1,000 x 10,000, 100 weights are not zero;
* sparse: 20,000 x 100,000 with a density of 0.001, 1,000 weights are not zero;
* correlated: 500 x 3,000, neighbouring columns with a correlation of 0.9; as Lasso, elastic net, logistic and Poisson;
* scales: 800 x 2,000, columns from 0.01 to 10;
* factors: 200 x 5,000, ten common factors;
* more rows than columns: 5,000 x 1,000, one common factor; as Lasso and logistic;
* words: 10,000 x 50,000, 80 entries a row, columns by a power law; as Lasso and logistic.
"""

import os
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from benchmarks.timing import Row, seconds
from cumulant.glm import GLM

_REPEATS, _TOL = 5, 1e-6
_GRID = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_BAR = 0.5  # within twice its time
_PATIENCE = 5.0  # seconds after which a fit of the peer is given up


def run() -> list[Row]:
    try:
        import skglm
    except ImportError:
        print("lasso: left out; install skglm")
        return []
    tasks = [
        ("dense", "normal", dense, (10, 50), 1.0),
        ("sparse", "normal", sparse, (10, 50), 1.0),
        ("correlated", "normal", correlated, (3, 30, 200), 1.0),
        ("correlated, elastic net", "normal", correlated, (30, 200), 0.9),
        ("correlated", "bernoulli", correlated, (5, 50), 1.0),
        ("correlated", "poisson", correlated, (5, 50), 1.0),
        ("scales", "normal", scales, (10, 100), 1.0),
        ("factors", "normal", factors, (10, 100), 1.0),
        ("more rows", "normal", more_rows, (10, 200), 1.0),
        ("more rows", "bernoulli", more_rows, (10,), 1.0),
        ("words", "normal", words, (20, 100), 1.0),
        ("words", "bernoulli", words, (30,), 1.0),
    ]
    only, rows = os.environ.get("CUMULANT_ONLY", ""), []
    for name, family, make, shares, ratio in tasks:
        if only in f"{family} {name}":
            X, y = observed(family, *make())
            rows += [compare(skglm, name, family, X, y, share, ratio) for share in shares]
    return [row for row in rows if row is not None]


def dense(n=1000, p=10_000):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, p)), np.zeros(p)
    w[rng.choice(p, 100, replace=False)] = rng.standard_normal(100)
    return X, X @ w + rng.standard_normal(n)


def sparse(n=20_000, p=100_000, density=1e-3):
    rng = np.random.default_rng(0)
    count, w = int(n * p * density), np.zeros(p)
    entries = rng.standard_normal(count), (rng.integers(0, n, count), rng.integers(0, p, count))
    X = sp.csr_matrix(entries, shape=(n, p))
    w[rng.choice(p, 1000, replace=False)] = rng.standard_normal(1000)
    scores = X @ w
    return X, scores + 0.1 * scores.std() * rng.standard_normal(n)


def correlated(n=500, p=3000):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.9**2) * X[:, j]
    return X, linear(rng, X, 50)


def scales(n=800, p=2000):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p)) * np.exp(rng.uniform(np.log(0.01), np.log(10.0), p))
    return X, linear(rng, X, 40)


def factors(n=200, p=5000):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((n, 10)) @ rng.standard_normal((10, p)) + rng.standard_normal((n, p))
    return X, linear(rng, X, 20)


def more_rows(n=5000, p=1000):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, linear(rng, X, 60)


def words(n=10_000, p=50_000, per_row=80):
    rng = np.random.default_rng(4)
    columns = np.minimum(rng.pareto(0.7, n * per_row), 1e9).astype(np.int64) % p
    X = sp.csr_matrix((np.ones(n * per_row), (np.repeat(np.arange(n), per_row), columns)), shape=(n, p))
    X.data = np.log1p(X.data)
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X, w = sp.csr_matrix(sp.diags(1 / lengths) @ X), np.zeros(p)
    w[rng.choice(3000, 200, replace=False)] = 3 * rng.standard_normal(200)
    scores = X @ w
    return X, scores + 0.3 * scores.std() * rng.standard_normal(n)


def linear(rng, X, count):
    w = np.zeros(X.shape[1])
    w[rng.choice(len(w), count, replace=False)] = rng.standard_normal(count)
    return X @ w + rng.standard_normal(len(X))


def observed(family, X, y):
    """The observations of a family from numbers: labels and counts with those as scores, on a common scale."""
    rng, scores = np.random.default_rng(9), y / y.std()
    if family == "bernoulli":
        return X, (rng.random(len(y)) < 1 / (1 + np.exp(-1.5 * scores))).astype(int)
    return X, rng.poisson(np.exp(np.minimum(scores, 4.0))).astype(float) if family == "poisson" else y


def objective(family, X, y, w, l1, l2) -> float:
    eta, penalty = X @ w, l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
    if family == "normal":
        return 0.5 * float(np.mean((y - eta) ** 2)) + penalty
    if family == "bernoulli":
        return float(np.mean(np.logaddexp(0.0, -(2 * y - 1) * eta))) + penalty
    return float(np.mean(np.exp(eta) - y * eta + xlogy(y, y) - y)) + penalty


def peer_of(skglm, family, alpha, ratio, tolerance):
    settings = {"fit_intercept": False, "tol": tolerance}
    if family == "normal":
        if ratio == 1:
            return skglm.Lasso(alpha=alpha, max_iter=200, **settings)
        return skglm.ElasticNet(alpha=alpha, l1_ratio=ratio, max_iter=200, **settings)
    if family == "bernoulli":
        return skglm.SparseLogisticRegression(alpha=alpha, max_iter=50, **settings)
    from skglm.datafits import Poisson
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    return skglm.GeneralizedLinearEstimator(Poisson(), L1(alpha), ProxNewton(max_iter=50, **settings))


def compare(skglm, name, family, X, y, share, ratio) -> Row | None:
    at_zero = {"normal": -y, "bernoulli": 0.5 - y, "poisson": 1.0 - y}[family]
    alpha = float(np.abs(X.T @ at_zero).max()) / len(y) / share / ratio
    l1, l2, name = ratio * alpha, (1 - ratio) * alpha, f"{family}, {name}, 1/{share} of the largest l1"
    exact = GLM(family, l1=l1, l2=l2, tol=1e-9, fit_intercept=False).fit(X, y)
    target = exact.objective_ * (1 + _TOL)
    model = GLM(family, l1=l1, l2=l2, tol=_TOL, fit_intercept=False)
    columns = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer_of(skglm, family, alpha, ratio, 0.1).fit(columns, y)  # compiles
        for tolerance in _GRID:
            theirs = peer_of(skglm, family, alpha, ratio, tolerance)
            took = seconds(lambda theirs=theirs: theirs.fit(columns, y))
            if objective(family, X, y, theirs.coef_.ravel(), l1, l2) <= target:
                break
            if took > _PATIENCE:  # unless it was compiling
                took = seconds(lambda theirs=theirs: theirs.fit(columns, y))
            if took > _PATIENCE:
                print(f"{name}: skglm has not reached 1e-6 with tol {tolerance:g} after {took:.1f} s", flush=True)
                return None
        else:
            print(f"{name}: skglm does not reach 1e-6 at any tolerance", flush=True)
            return None
        mine, its = [], []
        for _ in range(_REPEATS):
            mine.append(seconds(lambda: model.fit(X, y)))
            its.append(seconds(lambda: theirs.fit(columns, y)))
    assert objective(family, X, y, model.coef_.ravel(), l1, l2) <= target
    assert model.certificate_ is not None
    assert model.certificate_.upper <= _TOL * model.objective_
    ratios = np.array(its) / np.array(mine)
    row = Row(
        name, f"skglm {tolerance:g}", float(np.median(mine)), float(np.median(its)), float(np.median(ratios)),
        (float(ratios.min()), float(ratios.max())), _BAR,
    )  # fmt: skip
    print(row, flush=True)
    return row
