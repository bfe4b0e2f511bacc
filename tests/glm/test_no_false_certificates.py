"""No certificate is below the truth: random tiny problems, honest and degenerate and badly scaled, in 60 digits."""

import mpmath as mp
import numpy as np

from cumulant.errors import CertificateError
from cumulant.glm import (
    GLMProblem,
    PrimalDual,
    certify_glm_concordance,
    certify_glm_gap,
    design_of,
    loss_of,
)
from tests.reference.glm_exact import ExactGLM

FAMILIES = ("normal", "bernoulli", "poisson", "gamma", "categorical")


def scaled(rng, shape):
    """Numbers of one size, of sizes from 1e-12 to 1e12 by columns, or small whole numbers."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.integers(-2, 3, shape).astype(float)
    X = rng.normal(size=shape)
    if kind == 2:
        X = X * 10.0 ** rng.uniform(-12, 12, shape[1])
    if kind == 3:
        X = X * 10.0 ** rng.uniform(-12, 12)
    return X


def draw(rng):
    """A tiny data set of any family, with what may be wrong with one."""
    family = FAMILIES[rng.integers(len(FAMILIES))]
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    X = scaled(rng, (n, p))
    degenerate = rng.random()
    if degenerate < 0.1:
        X[:] = 0.0
    elif degenerate < 0.2:
        X[:] = X[:, :1]
    elif degenerate < 0.3:
        X = X.astype(np.float32).astype(np.float64)
    elif degenerate < 0.4:
        X[:, 0] = 1.0
    if family == "normal":
        y = rng.normal(size=n) * 10.0 ** rng.choice([0, 0, -8, 8, -100])
    elif family == "bernoulli":
        y = rng.integers(0, 2, n).astype(float)
    elif family == "poisson":
        y = rng.poisson(3.0, n) * 10.0 ** rng.choice([0, 0, 6])
    elif family == "gamma":
        y = rng.gamma(1.0, size=n) * 10.0 ** rng.choice([0, 0, -8, 8]) + 1e-12
    else:
        y = rng.integers(0, 3, n)
    kind = rng.integers(3)
    weights = np.ones(n) if kind == 0 else rng.random(n) + 0.1
    if kind == 2:
        weights = 10.0 ** rng.uniform(-6, 6, n)
    offset = rng.normal(size=(n, 3) if family == "categorical" else n) * rng.choice([0.0, 0.0, 1.0, 5.0])
    l1 = rng.choice([0.0, 1.0]) * 10.0 ** rng.uniform(-8, 2)
    l2 = rng.choice([0.0, 1.0, 1.0]) * 10.0 ** rng.uniform(-10, 2)
    return family, X, y, weights, offset, float(l1), float(l2), bool(rng.random() < 0.5)


def pose(case):
    family, X, y, weights, offset, l1, l2, intercept = case
    outputs = 3 if family == "categorical" else 1
    loss = loss_of(family, np.asarray(y), outputs)
    problem = GLMProblem(design_of(X, intercept), loss, weights / weights.sum(), offset, l1, l2)
    return problem, ExactGLM(family, X, y, weights, offset, l1, l2, intercept, outputs)


def points(problem, rng):
    """The start, random points, points near the minimum, with slopes from elsewhere for some."""
    from cumulant.glm.solvers.newton import GLMNewton
    from cumulant.glm.solvers.proximal_newton import GLMProximalNewton

    zero = np.zeros(problem.shape)
    norms = problem.design.column_norms.reshape(-1, *[1] * (zero.ndim - 1))
    yield zero, None
    yield rng.normal(size=problem.shape) / np.maximum(norms, 1e-30), None
    solver = GLMProximalNewton(1e-14) if problem.l1 else GLMNewton(1e-14)
    with np.errstate(all="ignore"):
        state = solver.init(problem, zero, None)
        for _ in range(12):
            state = solver.step(problem, state)
            if state.stuck:
                break
    if np.all(np.isfinite(state.x)):
        yield state.x, None
        yield state.x, state.dual
        yield state.x * (1 + 10.0 ** rng.uniform(-16, -1) * rng.normal(size=problem.shape)), None
        yield state.x + rng.normal(size=problem.shape) / np.maximum(norms, 1e-30) * 10.0 ** rng.uniform(-12, 0), None


def attempt(seed):
    """Certificates issued and refused for one random problem; fails if one is below the truth."""
    rng = np.random.default_rng(seed)
    case = draw(rng)
    problem, exact = pose(case)
    issued = refused = 0
    last = None
    tried = list(points(problem, rng))
    starts = [tried[2][0]] if len(tried) > 2 else []
    for x, slopes in tried:
        answer = x if slopes is None else PrimalDual(x, slopes)
        for issue in (certify_glm_gap, certify_glm_concordance):
            if issue is certify_glm_concordance and slopes is not None:
                continue
            try:
                certificate = issue(problem, answer)
            except CertificateError:
                refused += 1
                continue
            issued += 1
            if last is None or last[0] is not x:
                last = x, exact.gap(x, starts)
            assert mp.mpf(certificate.upper) >= last[1], (seed, issue.__name__, case, x, certificate, mp.nstr(last[1]))
            assert certificate.upper > 0
    return issued, refused


def test_issuers_on_random_problems():
    counts = np.array([attempt(seed) for seed in range(60)]).sum(axis=0)
    assert counts[0] > 150
