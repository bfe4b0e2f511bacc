"""Projections in divergence against a general solver on enumerated states, and what they must satisfy."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from cumulant.errors import TooWide
from cumulant.graphical import FastMixing, Ising, SamplingPlan, complete, grid, project, project_reverse_kl
from cumulant.graphical.mixing.kl_projection import project_kl


def log_law(theta, edges, n):
    """``log p`` of all states."""
    x = np.array(list(itertools.product((-1, 1), repeat=n)))
    score = x @ theta[:n] + (x[:, edges[:, 0]] * x[:, edges[:, 1]]) @ theta[n:]
    top = score.max()
    return score - top - np.log(np.exp(score - top).sum())


def divergence(theta, model, kind):
    p, q = (log_law(each, model.edges, model.n_variables) for each in (model.theta, theta))
    return float(np.exp(p) @ (p - q) if kind == "kl" else np.exp(q) @ (q - p))


def norm(theta, model):
    W = np.zeros((model.n_variables,) * 2)
    W[model.edges[:, 0], model.edges[:, 1]] = np.abs(theta[model.n_variables :])
    return np.linalg.eigvalsh(W + W.T)[-1]


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    edges = complete(4)
    return Ising(edges, rng.choice([-1, 1], len(edges)) * rng.uniform(0.3, 0.8, len(edges)), 0.3 * rng.normal(size=4))


@pytest.mark.parametrize("kind", ["kl", "reverse"])
def test_no_general_solver_finds_less(model, kind):
    nearest, radius = project_kl(model, FastMixing(0.9), kind), 0.9
    found = minimize(
        divergence,
        project(model, 0.8).model.theta,
        args=(model, kind),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda theta: radius - norm(theta, model)},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert norm(found.x, model) <= radius + 1e-7
    assert_allclose(nearest.value, divergence(nearest.model.theta, model, kind), atol=1e-12)
    assert_allclose(nearest.value, found.fun, atol=2e-8)
    assert_allclose(nearest.model.theta, found.x, atol=2e-4)
    assert norm(nearest.model.theta, model) <= radius * (1 + 1e-9)
    assert nearest.residual <= 1e-7
    euclidean = project(model, radius).model
    assert nearest.value < divergence(euclidean.theta, model, kind)


@pytest.mark.parametrize("kind", ["kl", "reverse"])
def test_boxes_against_a_solver_with_bounds(model, kind):
    nearest = project_kl(model, FastMixing(0.25, "box"), kind)
    bounds = [(None, None)] * 4 + [(-0.25, 0.25)] * 6
    start = np.concatenate([model.fields, np.zeros(6)])
    found = minimize(
        divergence, start, args=(model, kind), method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert_allclose(nearest.value, found.fun, atol=1e-8)
    assert_allclose(nearest.model.theta, found.x, atol=1e-3)


def test_a_model_in_the_set_stays_where_it_is(model):
    inside = project(model, 0.5).model
    for kind in ("kl", "reverse"):
        nearest = project_kl(inside, FastMixing(0.9), kind)
        assert_allclose(nearest.model.theta, inside.theta, atol=1e-6)
        assert nearest.value < 1e-12


def test_the_reverse_projection_by_sampling_is_that_of_enumeration(model):
    mixing = FastMixing(0.9)
    exact = project_kl(model, mixing, "reverse")
    start = project(model, 0.9).model
    found = project_reverse_kl(model, mixing, plan=SamplingPlan(120, 2000, 60), rng=0)
    assert norm(found.model.theta, model) <= 0.9 * (1 + 1e-9)
    reached = divergence(found.model.theta, model, "reverse")
    fell = divergence(start.theta, model, "reverse") - reached
    assert reached - exact.value < 0.02 * (divergence(start.theta, model, "reverse") - exact.value)
    assert abs(found.decrease - fell) < 0.1 * fell
    assert found.residual < 3 * found.noise


def test_a_large_model_is_projected_to_where_it_is_stationary():
    edges = grid(6, 6)
    rng = np.random.default_rng(2)
    model = Ising(edges, rng.choice([-0.6, 0.6], len(edges)), 0.5 * rng.normal(size=36))
    found = project_reverse_kl(model, FastMixing(0.8), plan=SamplingPlan(60, 1000, 400), rng=0)
    assert found.decrease > 0.05
    assert found.residual < 3 * found.noise
    exact = [found.model.kl(model), project(model, 0.8).model.kl(model)]  # by elimination
    assert abs(found.decrease - (exact[1] - exact[0])) < 0.15 * found.decrease


def test_what_is_refused(model):
    with pytest.raises(ValueError, match="'kl', 'reverse'"):
        project_kl(model, FastMixing(), "euclidean")
    with pytest.raises(TypeError, match="FastMixing"):
        project_kl(model, 0.9)
    with pytest.raises(ValueError, match="evidence"):
        project_kl(model.given({0: 1}), FastMixing())
    with pytest.raises(ValueError, match="named twice"):
        project_kl(Ising([(0, 1), (1, 0)], 1.0), FastMixing())
    with pytest.raises(TooWide, match="at most 16 spins"):
        project_kl(Ising(grid(5, 5), 1.0), FastMixing())
