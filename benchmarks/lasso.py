"""The Lasso against skglm, to a relative gap of one in a million.

Both sides minimise ``|y - X w|^2 / (2 n) + l1 |w|_1``, without an intercept, at a tenth and a fiftieth of the penalty
from which zero is the solution. skglm gets its data by columns, as it likes them, and runs over a grid of tolerances:
it counts at the loosest one that is within 1e-6 of the optimum, relative to it, which it does not know itself. Ours
is `GLM` with ``tol=1e-6``: it has to certify the gap. Compilation is not counted.

* dense: 1,000 x 10,000, 100 weights are not zero;
* sparse: 20,000 x 100,000 with a density of 0.001, 1,000 weights are not zero.
"""

import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.timing import Row, seconds
from cumulant.glm import GLM

_REPEATS, _TOL = 5, 1e-6
_GRID = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
_BAR = 0.5  # within twice its time


def run() -> list[Row]:
    try:
        import skglm
    except ImportError:
        print("lasso: left out; install skglm")
        return []
    rows = []
    for name, make in (("dense 1,000 x 10,000", dense), ("sparse 20,000 x 100,000", sparse)):
        X, y = make()
        top = float(np.abs(X.T @ y).max()) / len(y)
        rows += [compare(skglm, f"{name}, l1 = {share} of the largest", X, y, share * top) for share in (0.1, 0.02)]
    return rows


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


def compare(skglm, name, X, y, l1) -> Row:
    def objective(w):
        return 0.5 * float(np.mean((y - X @ w) ** 2)) + l1 * float(np.abs(w).sum())

    exact = GLM("normal", l1=l1, l2=0.0, tol=1e-10, fit_intercept=False).fit(X, y)
    target = exact.objective_ * (1 + _TOL)
    model = GLM("normal", l1=l1, l2=0.0, tol=_TOL, fit_intercept=False)
    columns = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tolerance in _GRID:
            theirs = skglm.Lasso(alpha=l1, fit_intercept=False, tol=tolerance, max_iter=200)
            if objective(theirs.fit(columns, y).coef_) <= target:
                break
        else:
            raise AssertionError(f"skglm did not reach {target}")
        mine, its = [], []
        for _ in range(_REPEATS):
            mine.append(seconds(lambda: model.fit(X, y)))
            its.append(seconds(lambda: theirs.fit(columns, y)))
    assert model.certificate_ is not None
    assert model.certificate_.upper <= _TOL * model.objective_
    ratios = np.array(its) / np.array(mine)
    row = Row(
        f"Lasso, {name}", f"skglm {tolerance:g}", float(np.median(mine)), float(np.median(its)),
        float(np.median(ratios)), (float(ratios.min()), float(ratios.max())), _BAR,
    )  # fmt: skip
    print(row, flush=True)
    return row
