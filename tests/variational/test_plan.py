"""Plans: what is promised before a run holds on the mean over runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import variational as vi
from cumulant.errors import CertificateError
from tests.variational.test_parts import COV, MEAN


@pytest.mark.parametrize("method", ["prox", "proj"])
def test_the_promise_holds_on_the_mean_over_runs(method):
    ahead = vi.plan(vi.gaussian(MEAN, COV), accuracy=1.0, method=method)
    assert ahead.promise.upper <= 1.0
    with jax.enable_x64(True):

        def one(key):
            state = ahead.solver.init(ahead.problem, jnp.asarray(ahead.start), key)
            step = lambda _, s: ahead.solver.step(ahead.problem, s)  # noqa: E731
            return jax.lax.fori_loop(0, ahead.steps, step, state).mean

        answers = np.asarray(jax.jit(jax.vmap(one))(jax.vmap(jax.random.PRNGKey)(jnp.arange(8))))
    P, gaps = np.linalg.inv(COV), []
    for w in answers:
        S, off = w[:, 1:] @ w[:, 1:].T, w[:, 0] - MEAN
        gaps.append((np.trace(P @ S) + off @ P @ off - 2 - np.linalg.slogdet(P @ S)[1]) / 2)
    assert 0 < np.mean(gaps) + 3 * np.std(gaps) / np.sqrt(8) <= ahead.promise.upper


def test_constants_that_are_not_known_are_refused_and_those_given_are_assumed():
    def half_square(z):
        return -jnp.sum(z**2) / 2

    with pytest.raises(CertificateError, match="smoothness"):
        vi.plan(vi.Target(half_square, 2))
    with pytest.raises(CertificateError, match="strongly convex"):
        vi.plan(vi.Target(half_square, 2, smoothness=1.0))
    given = vi.plan(vi.Target(half_square, 2, smoothness=1.0, strong_convexity=1.0), accuracy=1.0)
    assert given.promise.assumptions[0].status == "assumed"
    with pytest.raises(ValueError, match="accuracy"):
        vi.plan(vi.gaussian(MEAN, COV), accuracy=-1)
    with pytest.raises(ValueError, match="method"):
        vi.plan(vi.gaussian(MEAN, COV), method="sgd")
