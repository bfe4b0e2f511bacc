"""Statements on interior-point stochastic approximation (Carbonetto 2009, chapter 2) that other tests leave open."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import expon, norm
from sklearn.datasets import load_diabetes

from cumulant import families, optim
from cumulant.optim.gradients import Noisy
from cumulant.optim.interior_point import (
    Harmonic,
    InteriorPoint,
    InteriorPointSA,
    PowerSigma,
    central_path,
    damped_bfgs,
    l1_regularize,
    log_barrier,
)
from cumulant.precision import float64
from tests.optim.interior_point.cases import CORNER, FIACCO


@pytest.fixture(scope="module")
def diabetes():
    """The data, and the Lasso at 1/2 by solving the optimality conditions on its four active columns."""
    X, y = load_diabetes(return_X_y=True)
    y, active = y - y.mean(), [2, 3, 6, 8]
    signs = np.array([1.0, 1.0, -1.0, 1.0])
    A, exact = X[:, active], np.zeros(10)
    exact[active] = np.linalg.solve(A.T @ A / 442, A.T @ y / 442 - 0.5 * signs)
    np.testing.assert_array_equal(np.sign(exact[active]), signs)
    assert np.max(np.abs(np.delete(X.T @ (X @ exact - y) / 442, active))) < 0.5
    return optim.LeastSquares(X, y), exact


def test_the_batch_method_reaches_the_lasso_to_ten_digits_in_thirty_steps(diabetes):
    loss, exact = diabetes
    problem = l1_regularize(loss, 0.5, "bound")
    result = optim.run(InteriorPoint(z0=0.25), problem, problem.start(), tol=1e-15, max_steps=30)
    found = problem.coefficients(result.x)
    np.testing.assert_allclose(found, exact, atol=1e-10 * np.max(np.abs(exact)))
    assert 0 <= result.value - 2152.1229925887 < 1e-8


@pytest.mark.slow
def test_both_formulations_agree(diabetes):
    loss, _ = diabetes
    found = []
    for formulation in ("split", "bound"):
        problem = l1_regularize(loss, 0.5, formulation)
        result = optim.run(InteriorPoint(z0=0.25), problem, problem.start(), tol=1e-13, max_steps=80)
        found.append(problem.coefficients(result.x))
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_a_thousand_damped_updates_meet_their_secant_equation():
    """``B_new dx = t dy + (1 - t) B dx``, and ``det B_new / det B = 1 - t (1 - <dx, dy> / <dx, B dx>) >= gamma``."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(1000, 3, 3))
    B = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(3)
    dx, dy = rng.normal(size=(2, 1000, 3))
    caps = rng.uniform(0.01, 1.0, size=1000)
    with float64():
        new = jax.jit(jax.vmap(lambda B, dx, dy, cap: damped_bfgs(B, dx, dy, 0.75, cap)[::2]))(B, dx, dy, caps)
        after, t = (np.asarray(each) for each in new)
    moved = np.einsum("nij,nj->ni", B, dx)
    damped = t[:, None] * dy + (1 - t[:, None]) * moved
    np.testing.assert_allclose(np.einsum("nij,nj->ni", after, dx), damped, atol=1e-11)
    curve, pair = np.sum(dx * moved, axis=1), np.sum(dx * dy, axis=1)
    ratio = np.linalg.det(after) / np.linalg.det(B)
    np.testing.assert_allclose(ratio, 1 - t * (1 - pair / curve), rtol=1e-8)
    assert ratio.min() >= 0.75 - 1e-9
    assert np.all(t <= caps)
    assert np.mean(t < caps) > 0.05  # damping, and not the cap alone, was at work
    assert np.all(np.linalg.eigvalsh(after) > 0)


def test_the_gap_and_the_errors_under_unit_noise():
    """Steps 1/(1 + k), sigma = k^-0.9, ten seeds, at 100, 1000 and 5000 steps: the published means."""
    marks = np.array([0, 100, 1000, 5000])
    solver = InteriorPointSA(Harmonic(1), PowerSigma(0.9), Noisy(1.0))

    def go(seed):
        def part(state, ends):
            state = jax.lax.fori_loop(*ends, lambda _, s: solver.step(CORNER, s), state)
            return state, jnp.concatenate([state.x, state.z, jnp.vdot(state.slack, state.z)[None]])

        start = solver.init(CORNER, jnp.ones(2), jax.random.PRNGKey(seed))
        return jax.lax.scan(part, start, (marks[:-1], marks[1:]))[1]

    with float64():
        found = np.asarray(jax.jit(jax.vmap(go))(np.arange(10)))
    first, multiplier, gap = found[:, :, 0], found[:, :, 2], found[:, :, 4]
    np.testing.assert_allclose(gap.mean(axis=0), [0.057, 0.0058, 0.0012], rtol=0.1)
    error = first.std(axis=0, ddof=1) / np.sqrt(10)
    assert np.all(np.abs(first.mean(axis=0) - [0.027, 0.0029, 0.00058]) <= 4 * error + 1e-5)
    assert multiplier[:, -1].mean() == pytest.approx(0.995, abs=0.03)


def test_the_barrier_values_go_to_the_minimum_with_mu():
    """``f_mu(x_mu) -> f*`` and ``0 <= f(x_mu) - f* <= m mu`` (Wright 1992, theorem 5), on a path in closed form."""
    mus = 10.0 ** -np.arange(0.0, 7.0, 2.0)
    path = central_path(FIACCO, mus, [1.0, 2.0])
    values = path.x.sum(axis=1)  # the minimum is zero, at the origin
    assert np.all((values > 0) & (values <= 2 * mus * (1 + 1e-9)))
    barrier = np.array([float(log_barrier(FIACCO, mu).value(x)) for mu, x in zip(mus, path.x, strict=True)])
    assert np.all(np.diff(np.abs(barrier[1:])) < 0)
    assert abs(barrier[-1]) < 1e-4


def test_the_laplace_law_is_a_scale_mixture_of_normal_laws():
    """``w | tau ~ N(0, tau)``, ``tau ~ Exp(rate gamma)``: density ``sqrt(gamma/2) exp(-sqrt(2 gamma) |w|)``."""
    gamma = 1.7
    family = families.LaplaceKnownCentre(0.0)
    theta = family.natural(scale=1 / np.sqrt(2 * gamma))
    for w, published in ((0.3, 0.53023651), (1.0, 0.14585120), (2.0, 0.02307334)):
        mixed = quad(lambda s, w=w: norm.pdf(w, scale=s) * expon.pdf(s**2, scale=1 / gamma) * 2 * s, 0, np.inf)[0]
        assert mixed == pytest.approx(published, abs=1e-8)
        assert np.exp(float(family.log_prob(w, theta))) == pytest.approx(mixed, rel=1e-7)
