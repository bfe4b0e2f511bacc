"""Plans: what is promised before a run holds on the mean over runs, and is not far above it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import variational as vi
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim import rates, schedules
from tests.variational.test_parts import COV, MEAN


def divergences(answers, mean, cov):
    """``KL(q_w | N(mean, cov))``, answer by answer."""
    P, gaps = np.linalg.inv(cov), []
    for w in answers:
        S, off = w[:, 1:] @ w[:, 1:].T, w[:, 0] - mean
        gaps.append((np.trace(P @ S) + off @ P @ off - len(mean) - np.linalg.slogdet(P @ S)[1]) / 2)
    return np.array(gaps)


def carried_out(ahead, seeds):
    with jax.enable_x64(True):

        def one(key):
            state = ahead.solver.init(ahead.problem, jnp.asarray(ahead.start), key)
            step = lambda _, s: ahead.solver.step(ahead.problem, s)  # noqa: E731
            return jax.lax.fori_loop(0, ahead.steps, step, state).mean

        return np.asarray(jax.jit(jax.vmap(one))(jax.vmap(jax.random.PRNGKey)(jnp.arange(seeds))))


@pytest.mark.parametrize("method", ["prox", "proj"])
def test_the_promise_holds_on_the_mean_over_runs_and_is_within_a_factor_of_50(method):
    ahead = vi.plan(vi.gaussian(MEAN, COV), accuracy=0.05, method=method)
    assert ahead.promise.upper <= 0.05
    gaps = divergences(carried_out(ahead, 30), MEAN, COV)
    assert np.mean(gaps) + 3 * np.std(gaps) / np.sqrt(30) <= ahead.promise.upper
    assert ahead.promise.upper <= 50 * np.mean(gaps)


def correlated(d, kappa, seed):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    S = (Q * np.geomspace(1, 1 / kappa, d)) @ Q.T
    return rng.normal(size=d), (S + S.T) / 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["prox", "proj"])
@pytest.mark.parametrize(
    ("d", "kappa", "accuracy", "factor"),
    [(1, 2.0, 0.05, 50), (2, 3.0, 0.03, 50), (5, 2.0, 0.1, 50), (10, 2.0, 0.1, 50), (5, 10.0, 0.3, 500)],
)
def test_promises_over_100_seeds(method, d, kappa, accuracy, factor):
    """Within a factor of 50 at moderate conditioning; the theorem's worst case is further away at ten."""
    mean, cov = correlated(d, kappa, d)
    least, most = np.linalg.eigvalsh(np.linalg.inv(cov))[[0, -1]] * ([0.7, 1.4] if d == 1 else [1.0, 1.0])
    data = (mean, np.linalg.inv(cov))
    target = vi.Target(half_quadratic, d, data, smoothness=float(most), strong_convexity=float(least))
    ahead = vi.plan(target, accuracy, method)
    gaps = divergences(carried_out(ahead, 100), mean, cov)
    assert np.mean(gaps) + 3 * np.std(gaps) / 10 <= ahead.promise.upper <= accuracy
    assert ahead.promise.upper <= factor * np.mean(gaps), ahead.promise.upper / np.mean(gaps)


def half_quadratic(z, data):
    mean, precision = data
    return -(z - mean) @ precision @ (z - mean) / 2


def test_the_promise_verifies_and_another_route_does_not():
    ahead = vi.plan(vi.gaussian(MEAN, COV), accuracy=0.5)
    assert ahead.promise.verify(ahead.subject).upper <= 0.5
    target, route = ahead.subject
    for other in (
        route._replace(lengths=np.maximum(route.lengths // 2, 1)),
        route._replace(sizes=10 * route.sizes),
        route._replace(mean=route.mean + 5.0),
        route._replace(lengths=route.lengths + 0.5),
    ):
        with pytest.raises(CertificateError):
            ahead.promise.verify(Subject(target, other))
    with pytest.raises(CertificateError):
        dataclasses.replace(ahead.promise, bound=ahead.promise.bound / 10).verify(ahead.subject)


def test_constants_that_are_not_known_are_refused_and_those_given_are_assumed():
    def half_square(z):
        return -jnp.sum(z**2) / 2

    with pytest.raises(CertificateError, match="smoothness"):
        vi.plan(vi.Target(half_square, 2))
    with pytest.raises(CertificateError, match="strongly convex"):
        vi.plan(vi.Target(half_square, 2, smoothness=1.0))
    given = vi.plan(vi.Target(half_square, 2, smoothness=2.0, strong_convexity=1.0), accuracy=1.0)
    assert given.promise.assumptions[0].status == "assumed"
    with pytest.raises(ValueError, match="accuracy"):
        vi.plan(vi.gaussian(MEAN, COV), accuracy=-1)
    with pytest.raises(ValueError, match="method"):
        vi.plan(vi.gaussian(MEAN, COV), method="sgd")


@pytest.mark.parametrize("seed", range(20))
def test_the_constants_of_a_plan_hold_for_gaussian_targets(seed):
    """The variance at the best Gaussian in closed form, and the distance of the start, at random conditioning."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    A = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-2, 2, size=d)
    S = A @ A.T + 10.0 ** rng.uniform(-3, 1) * np.eye(d)
    P = np.linalg.inv(S)
    mu, M = np.linalg.eigvalsh(P)[[0, -1]] * [1 - 1e-9, 1 + 1e-9]
    C = np.linalg.cholesky(S)
    # pi = C^-T u =: B u; the squares of entries B_i u u_j, j <= i: |B_i|^2 + 2 B_ij^2, and their means are B_ij.
    B = np.linalg.inv(C).T
    lower = np.tri(d)
    moment = np.sum(B**2) + np.sum(lower * (np.sum(B**2, axis=1)[:, None] + 2 * B**2)) - np.sum(lower * B**2)
    assert moment <= vi.EnergyGradient().variance(d, M, mu).b * (1 + 1e-6)
    c = M**-0.5
    assert np.sum((C - c * np.eye(d)) ** 2) <= d / mu - 2 * c * d / np.sqrt(M) + c**2 * d + 1e-9 * d / mu


@pytest.mark.parametrize("seed", range(5))
def test_stages_are_the_recursion_step_by_step_and_reach_their_goal(seed):
    rng = np.random.default_rng(seed)
    mu, L = 1.0, 1.0 + rng.exponential() * 5
    noise, far = (rng.exponential() * L**2, rng.exponential()), 1.0 + rng.exponential()
    sizes, lengths = rates.plan_stages(mu, L, noise, far, 0.05)
    bounds = rates.staged_sgd(mu, L, noise, sizes, lengths, far)
    assert bounds[-1] <= 0.05
    schedule, e = schedules.Stages(sizes, np.cumsum(lengths)), far
    for k in range(int(lengths.sum())):
        size = schedule(k)
        e = (1 - size * mu) ** 2 * e + size**2 * (noise[1] ** 0.5 + (noise[0] * e) ** 0.5) ** 2
    assert 0.5 * bounds[-1] <= e <= bounds[-1] * (1 + 1e-9)
    with pytest.raises(ValueError, match="too long"):
        rates.staged_sgd(mu, L, (noise[0], 1.0), [1 / L], [10], 1e-3)
    with pytest.raises(ValueError, match="at most"):
        rates.staged_sgd(mu, L, noise, [3 / L], [10], far)
