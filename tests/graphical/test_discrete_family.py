"""Discrete families beyond the laws: compiled programs, solvers of `optim`, evidence, width, impossible states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant import families, graphical, optim
from cumulant.errors import CertificateError, DomainError, TooWide
from cumulant.optim.problems.likelihoods import newton_decrement

MODEL = graphical.Ising(graphical.grid(2, 2), [0.3, -0.4, 0.5, 0.2], [0.1, 0.2, -0.3, 0.4])
FAMILY, THETA = MODEL.family, MODEL.theta


def test_single_parameters_in_compiled_programs_keep_float64():
    with jax.enable_x64(True):
        theta = jnp.asarray(THETA)
        value, gradient = jax.jit(jax.value_and_grad(FAMILY.log_partition))(theta)
        hessian = jax.jit(jax.hessian(FAMILY.log_partition))(theta)
        back = jax.jit(FAMILY.to_natural)(gradient)
        derivative = jax.jacrev(FAMILY.to_natural)(gradient)
        entropy = jax.grad(FAMILY.entropy)(theta)
        found = jax.tree.map(np.asarray, (value, gradient, hessian, back, derivative, entropy))
    value, gradient, hessian, back, derivative, entropy = found
    assert value == FAMILY.log_partition(THETA)
    assert_allclose(gradient, MODEL.mean(), rtol=0, atol=1e-15)
    assert_allclose(hessian, FAMILY.fisher(THETA), rtol=0, atol=1e-15)
    assert_allclose(back, THETA, atol=1e-14)
    assert_allclose(derivative @ hessian, np.eye(FAMILY.dim), atol=1e-12)
    assert_allclose(entropy, -hessian @ THETA, atol=1e-14)  # dH = -<theta, d mu>


def test_float32_comes_back_as_float32():
    assert FAMILY.log_partition(jnp.asarray(THETA, jnp.float32)).dtype == jnp.float32
    assert FAMILY.to_mean(jnp.asarray(THETA, jnp.float32)).dtype == jnp.float32


def test_mirror_descent_in_the_cumulant_lands_at_once():
    problem = optim.NegativeLogLikelihood(FAMILY, MODEL.mean())
    result = optim.run(optim.MirrorDescent(problem.reference), problem, np.zeros(FAMILY.dim))
    assert (result.status, result.work) == ("converged", 1)
    assert_allclose(result.x, THETA, atol=1e-13)
    assert result.certificate.verify(result.subject).upper < 1e-20


def test_stochastic_mirror_descent_is_the_map_estimate():
    x = MODEL.sample(60, rng=0)
    prior = families.ConjugatePrior(FAMILY.to_mean(np.zeros(FAMILY.dim)), 5.0)
    solver = optim.StochasticMirrorDescent(FAMILY, optim.InverseCount(5.0))
    problem = optim.SampleLikelihood.of(FAMILY, x)
    result = optim.run(solver, problem, np.zeros(FAMILY.dim), max_steps=60, tol=None)
    assert_allclose(result.x, FAMILY.map(x, prior), atol=1e-10)


def test_no_certificate_without_an_estimate():
    problem = optim.NegativeLogLikelihood(FAMILY, np.ones(FAMILY.dim))
    with pytest.raises(CertificateError, match=r"maximum-likelihood estimate exists .*it would be certain"):
        problem.certify(np.zeros(FAMILY.dim))
    graph = graphical.FactorGraph([2, 2], [((0,), [0.0, 0.0]), ((0, 1), np.zeros((2, 2)))]).family
    outside = optim.NegativeLogLikelihood(graph, [0.5, 0.5, 0.3, 0.3, 0.2, 0.2])  # tables that disagree about x_0
    with pytest.raises(CertificateError, match="affine hull of the statistics, up to rounding"):
        outside.certify(np.zeros(6))
    with pytest.raises(DomainError, match=r"agree where they share variables; got .* off by"):
        graph.to_natural(outside.mean)


@pytest.mark.parametrize("seed", range(4))
def test_the_decrement_bounds_the_gap_wherever_it_is_finite(seed):
    rng = np.random.default_rng(seed)
    edges = graphical.complete(4)
    family = graphical.Ising(edges, 0.0).family
    best = 0.5 * rng.normal(size=family.dim)
    T = family.statistics(np.array(np.meshgrid(*[[-1, 1]] * 4, indexing="ij")).reshape(4, -1).T).astype(np.longdouble)
    p = np.exp(T @ best)
    p /= p.sum()
    mean = (p @ T).astype(float)
    problem = optim.NegativeLogLikelihood(family, mean)
    for size in (1e-6, 1e-3, 1e-2, 0.05):
        theta = best + size * rng.normal(size=family.dim)
        found = newton_decrement(family, mean, theta)
        moved = (T - mean) @ (theta - best)
        gap = np.log1p(p @ (np.expm1(moved) - moved))  # log E exp(moved), whose first order is zero
        assert not gap > found.upper
        assert size > 1e-4 or np.isfinite(found.upper)
        if np.isfinite(found.upper):
            assert problem.certify(theta).upper == pytest.approx(found.upper)


def test_the_covariance_given_evidence():
    given = MODEL.given({1: -1})
    states = np.array(np.meshgrid(*[[-1, 1]] * 4, indexing="ij")).reshape(4, -1).T
    p = np.exp(given.log_prob(states))
    T = FAMILY.statistics(states)
    assert_allclose(given.covariance(), (T - p @ T).T @ (p[:, None] * (T - p @ T)), atol=1e-15)


def test_impossible_states():
    model = graphical.FactorGraph([2, 2], [((0, 1), [[0.0, -np.inf], [0.5, 1.0]])])
    family = model.family
    p = np.exp([0.0, -np.inf, 0.5, 1.0])
    p /= p.sum()
    assert_allclose(family.to_mean(model.theta), p)
    assert_allclose(family.fisher(model.theta), np.diag(p) - np.outer(p, p), atol=1e-16)
    assert family.in_domain(model.theta)
    assert not FAMILY.in_domain(np.full(FAMILY.dim, -np.inf))
    assert family.kl(np.zeros(4), model.theta) == np.inf
    assert_allclose(family.kl(model.theta, np.zeros(4)), np.log(4) + (p[p > 0] * np.log(p[p > 0])).sum())
    with pytest.raises(DomainError, match=r"statistic 1 has mean 0, and its values reach from 0 to 1"):
        family.to_natural(p)
    with pytest.raises(DomainError, match="every state is impossible"):
        family.to_mean(np.full(4, -np.inf))


def test_what_is_too_wide_names_the_interval():
    wide = graphical.Ising(graphical.complete(60), 0.1)
    family, theta = wide.family, wide.theta
    for ask in (
        wide.log_partition, wide.mean, wide.marginals, wide.entropy, wide.covariance, wide.map,
        lambda: wide.kl(wide), lambda: wide.log_prob(np.ones(60)), lambda: wide.marginal(3),
        lambda: family.log_partition(theta), lambda: family.to_mean(theta), lambda: family.fisher(theta),
    ):  # fmt: skip
        with pytest.raises(TooWide, match="bound_log_partition"):
            ask()
    with pytest.raises(TooWide, match="method='mcmc'"):
        wide.sample()
    with pytest.raises(TooWide, match="covariance of 1830 statistics"):
        family.fisher(theta, max_memory=2**20)


def test_families_are_told_apart_by_their_contents():
    other = graphical.Ising(graphical.grid(2, 2), 0.0, names=["a", "b", "c", "d"]).family
    same = graphical.Ising(graphical.grid(2, 2), 1.0).family
    assert same == FAMILY
    assert hash(FAMILY) == hash(same)
    assert FAMILY.fingerprint() == same.fingerprint()
    assert other != FAMILY
    assert FAMILY.fingerprint() != other.fingerprint()
    leaves, structure = jax.tree.flatten(FAMILY)
    assert not leaves
    assert structure == jax.tree.structure(same)
    assert structure != jax.tree.structure(other)
