"""No certificate of a regression is false: random regressions of every scale against extended precision.

Claims at a point ``w``: the objective and its gradient are within their errors, ``mu`` is not above the smallest
eigenvalue of the Hessian's lower bound, the excess over any other Gaussian is within the bound, and the distance from
it within the radius. What cannot be certified must be refused, not certified wrongly.
"""

import dataclasses
import warnings

import mpmath as mp
import numpy as np
import pytest

from cumulant import optim
from cumulant import variational as vi
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, CumulantError
from cumulant.variational.regression import NaturalGradient, RegressionELBO, certify_regression
from cumulant.variational.targets import checked_strong_convexity

REFUSALS = (CumulantError, ValueError, np.linalg.LinAlgError)


def magnitude(rng, *size):
    """Mostly of order one, now and then anything from 1e-12 to 1e12."""
    reach = rng.choice([0.5, 3.0, 12.0], p=[0.5, 0.3, 0.2])
    return 10.0 ** rng.uniform(-reach, reach, size=size)


def random_target(rng):
    n, d = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    X = rng.normal(size=(n, d)) * magnitude(rng, d)
    if rng.random() < 0.3:
        X[:, -1] = X[:, 0] * (1 + rng.choice([0.0, 1e-9, 1e-14]) * rng.normal(size=n))
    if rng.random() < 0.1:
        X[...] = 0.0
    prior = float(magnitude(rng)) if rng.random() < 0.7 else magnitude(rng, d)
    if d == 2 and rng.random() < 0.2:
        angle = rng.uniform(0, np.pi)
        Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        prior = (Q * magnitude(rng, 2)) @ Q.T
        prior = (prior + prior.T) / 2
    kind = rng.choice(["normal", "bernoulli", "poisson"])
    if kind == "normal":
        return vi.linear_regression(X, rng.normal(size=n) * magnitude(rng, n), float(magnitude(rng)), prior)
    if kind == "bernoulli":
        return vi.logistic_regression(X, rng.integers(0, 2, size=n), prior)
    return vi.poisson_regression(X, rng.poisson(magnitude(rng).clip(1e-3, 1e6), size=n), prior)


def random_points(rng, problem):
    """The start of a fit, some of its steps, points around its end and far from it; the end comes first."""
    d, X = problem.target.dim, problem.target.data[0]
    widest = max(float(np.sqrt(np.max(np.sum(X**2, axis=1)))), 1e-12)
    start = problem.gaussian.pack(0.0, min(1 / widest, 1.0) * float(10.0 ** rng.uniform(-1, 1)))
    try:
        ends = [
            optim.run(NaturalGradient(), problem, start, tol=tol, max_steps=k).x for tol, k in ((1e-14, 60), (None, 2))
        ]
    except REFUSALS:
        ends = [start]
    yield from ends
    near = ends[0]
    wide = near * (1 + 10.0 ** rng.uniform(-8, 0) * rng.normal(size=near.shape))
    C = np.tril(rng.normal(size=(d, d))) * min(10 / widest, 1e6) * 10.0 ** rng.uniform(-6, 0)
    C[np.arange(d), np.arange(d)] = np.abs(np.diagonal(C)) + 1e-12
    far = np.concatenate([rng.normal(size=(d, 1)) * magnitude(rng), C], axis=1)
    for w in (wide, far):
        w[:, 1:] = np.tril(w[:, 1:])
        if np.all(np.diagonal(w[:, 1:]) > 0) and np.max(np.abs(X @ w[:, 1:])) < 300:
            yield w


def truth(target, w):
    """``f(w)`` and its gradient, ``C`` lower triangular, to many digits."""
    X, y, P, constant, noise = target.data
    n, d = X.shape
    number = np.vectorize(mp.mpf, otypes=[object])
    X, y, P, m, C = (number(np.asarray(v, dtype=float)) for v in (X, y, P, w[:, 0], w[:, 1:]))
    value = sum(m[i] * P[i, j] * m[j] for i in range(d) for j in range(d)) / 2
    value += sum(P[i, j] * sum(C[i] * C[j]) for i in range(d) for j in range(d)) / 2
    value -= mp.mpf(constant) + d * (1 + mp.log(2 * mp.pi)) / 2 + sum(mp.log(C[i, i]) for i in range(d))
    slope, curvature = P @ m, P.copy()
    for i in range(n):
        mean, spread = X[i] @ m, X[i] @ C
        loss = expected_loss(target.likelihood, y[i], mp.mpf(float(noise)), mean, mp.sqrt(sum(spread**2)))
        value += loss[0]
        slope = slope + loss[1] * X[i]
        curvature = curvature + loss[2] * np.outer(X[i], X[i])
    inner = curvature @ C
    gradient = np.array([[slope[i], *(inner[i, j] if j <= i else mp.mpf(0) for j in range(d))] for i in range(d)])
    for i in range(d):
        gradient[i, i + 1] -= 1 / C[i, i]
    return value, gradient


def expected_loss(likelihood, y, noise, mean, scale):
    """``E psi``, ``E psi'`` and ``E psi''`` under a normal score."""
    if likelihood == "normal":
        return ((mean - y) ** 2 + scale**2) / noise**2 / 2, (mean - y) / noise**2, 1 / noise**2
    if likelihood == "poisson":
        rate = mp.exp(mean + scale**2 / 2)
        return rate - y * mean, rate - y, rate
    if scale < mp.mpf(10) ** -25 * (1 + abs(mean)):
        share = 1 / (1 + mp.exp(y * mean))
        return mp.log1p(mp.exp(-y * mean)), -y * share, share * (1 - share)
    cuts = {mp.mpf(k) for k in (-13, -8, -4, -2, 0, 2, 4, 8, 13)}
    cuts |= {c for k in (-64, -16, -4, 0, 4, 16, 64) if -13 < (c := (k - y * mean) / scale) < 13}
    cuts = sorted(cuts)

    def expect(g):
        with mp.workdps(30):
            return mp.quad(lambda u: g(y * mean + scale * u) * mp.npdf(u), cuts, method="gauss-legendre")

    return (
        expect(lambda s: mp.log1p(mp.exp(-s)) if s > -100 else -s),
        -y * expect(lambda s: 1 / (1 + mp.exp(s))),
        expect(lambda s: 1 / (2 + mp.exp(s) + mp.exp(-s))),
    )


def norm(v):
    return mp.sqrt(sum(x * x for x in np.ravel(v)))


def assert_honest(seed):
    """Returns whether anything was certified."""
    rng = np.random.default_rng([7, seed])
    try:
        target = random_target(rng)
    except REFUSALS:
        return False
    problem, certified, best = RegressionELBO(target), False, None
    for w in random_points(rng, problem):
        try:
            found = problem.evaluate(w)
        except REFUSALS:
            continue
        if not (np.isfinite(found.value_error) and np.isfinite(found.error)):
            with pytest.raises(CertificateError):
                certify_regression(problem, w)
            continue
        value, gradient = truth(target, w)
        assert abs(found.value - value) <= found.value_error, "value"
        assert norm(found.gradient - gradient) <= found.error, "gradient"
        best = (value, w) if best is None or value < best[0] else best
        try:
            certificate = certify_regression(problem, w)
        except CertificateError:
            continue
        certified = True
        mu = mp.mpf(checked_strong_convexity(target))
        X, y, P, _, noise = target.data
        H = mp.matrix(P.tolist())
        if target.likelihood == "normal":
            rows = mp.matrix(X.tolist())
            H = H + rows.T * rows / mp.mpf(float(noise)) ** 2
        assert mu <= min(mp.eigsy(H, eigvals_only=True)), "mu"
        assert norm(gradient) ** 2 / (2 * mu) <= certificate.upper, "bound"
        assert value - best[0] <= certificate.upper, "excess"
        assert norm(gradient) / mu <= certificate.details["W2 to the best Gaussian"], "radius"
        assert abs(certificate.details["ELBO"] + value) <= found.value_error
        certificate.verify(Subject(problem, w))
        if target.likelihood == "normal":  # the best Gaussian is the posterior itself
            rate = H**-1
            mean = rate * (rows.T * mp.matrix(y.tolist())) / mp.mpf(float(noise)) ** 2
            off = mp.sqrt(sum((mp.mpf(float(w[i, 0])) - mean[i]) ** 2 for i in range(target.dim)))
            assert off <= certificate.details["means and deviations within"], "mean"
            S = np.vectorize(mp.mpf)(w[:, 1:]) @ np.vectorize(mp.mpf)(w[:, 1:]).T
            apart = norm(S - np.array(rate.tolist()))
            assert apart <= certificate.details["covariances within"], "covariance"
    return certified


@pytest.fixture(autouse=True)
def precision():
    with mp.workdps(80), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_no_certificate_is_false():
    assert sum(assert_honest(seed) for seed in range(40)) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("block", range(15))
def test_no_certificate_is_false_in_1500_cases(block):
    assert sum(assert_honest(1000 + seed) for seed in range(100 * block, 100 * block + 100)) >= 40


def test_lying_constants_are_not_believed():
    """What a target says about itself is computed again from its data."""
    honest = vi.logistic_regression([[1.0], [2.0]], [0, 1], prior_scale=2.0)
    problem = RegressionELBO(honest)
    w = problem.gaussian.pack(1.0, 1.0)
    truthful = certify_regression(problem, w)
    liar = dataclasses.replace(honest, strong_convexity=1e6, smoothness=1e7)
    assert certify_regression(RegressionELBO(liar), w).upper == truthful.upper
    other = dataclasses.replace(honest, function=another_density)
    with pytest.raises(CertificateError, match="regression's data"):
        certify_regression(RegressionELBO(other), w)
    X, y, P, constant, noise = honest.data
    for data in ((X, 3 * y, P, constant, noise), (X, y, np.array([[np.nan]]), constant, noise)):
        with pytest.raises(CertificateError):
            certify_regression(RegressionELBO(dataclasses.replace(honest, data=data)), w)


def another_density(z, data):
    return -z.sum()
