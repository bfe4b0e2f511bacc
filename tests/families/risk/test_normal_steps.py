"""Constants of mirror descent for normals and for products, and steps that leave the domain where nobody looks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.families import (
    Beta,
    Dirichlet,
    FiniteFamily,
    Gamma,
    InverseGaussian,
    LogNormal,
    MultivariateNormal,
    MultivariateNormalDiagonal,
    MultivariateNormalIsotropic,
    MultivariateNormalKnownMean,
    Normal,
    NormalKnownVariance,
    Product,
    VonMises,
    risk,
)
from cumulant.families.risk.normal_steps import full_constant, shared_constant
from cumulant.families.risk.step_domain import can_leave

KINDS = ("variance", "optimum")


def divergence(first, second):
    """``KL`` between normals with batches of means and covariances."""
    (m, S), (n, R) = first, second
    inverse, apart = np.linalg.inv(R), m - n
    logs = np.linalg.slogdet(R)[1] - np.linalg.slogdet(S)[1]
    trace = np.einsum("...ij,...ji->...", inverse, S)
    return 0.5 * (trace + np.einsum("...i,...ij,...j->...", apart, inverse, apart) - m.shape[-1] + logs)


def outer(x):
    return x[..., :, None] * x[..., None, :]


def symmetrised(first, second):
    return divergence(first, second) + divergence(second, first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 3])
def test_constants_of_normals_against_simulation(kind, d):
    """The definitions draw by draw, with raw second moments: of mean and covariance, and of the covariance alone."""
    rng, zero = np.random.default_rng(d), np.zeros(d)
    for gamma in (0.02, 0.2):
        V, S = (np.cov(rng.normal(size=(d, 3 * d + 5))).reshape(d, d) for _ in range(2))
        S *= 0.5 * np.linalg.eigvalsh(V)[0] / np.linalg.eigvalsh(S)[-1]
        at = rng.normal(size=d)
        truth = at + (1.0 if kind == "variance" else 0.1) * rng.normal(size=d)
        x = truth + rng.normal(size=(40_000, d)) @ np.linalg.cholesky(S).T
        here, there, squares = V + outer(at), S + outer(truth), outer(x - truth)
        if kind == "variance":
            m, n = (1 - gamma) * at + gamma * x, (1 - gamma) * at + gamma * truth
            moved = m, (1 - gamma) * here + gamma * outer(x) - outer(m)
            free = symmetrised(moved, (n, (1 - gamma) * here + gamma * there - outer(n))) / gamma**2
            known = symmetrised((zero, (1 - gamma) * V + gamma * squares), (zero, (1 - gamma) * V + gamma * S))
            known /= gamma**2
        else:
            m = at + 2 * gamma * (x - truth)
            moved = m, here + 2 * gamma * (outer(x) - there) - outer(m)
            free = divergence(moved, (at, V)) / (2 * gamma**2)
            known = divergence((zero, V + 2 * gamma * (squares - S)), (zero, V)) / (2 * gamma**2)
        for values, exact in (
            (free, full_constant(kind, gamma, at, V, truth, S)),
            (known, full_constant(kind, gamma, truth, V, truth, S, True)),
        ):
            assert abs(values.mean() - exact) < 4 * values.std() / 200 < 0.08 * exact


def test_one_variance_for_all_coordinates_against_simulation():
    rng, d, v, w = np.random.default_rng(5), 4, 1.3, 0.5
    mean, truth = rng.normal(size=d), np.zeros(d)
    mean *= 0.4
    x = np.sqrt(w) * rng.normal(size=(100_000, d))
    for gamma in (0.02, 0.15):
        for kind in KINDS:
            share = gamma if kind == "variance" else 2 * gamma
            base = (1 - gamma) * mean if kind == "variance" else mean - share * truth
            m = base + share * x
            second = (1 - gamma if kind == "variance" else 1) * (d * v + mean @ mean) + share * np.sum(x**2, axis=1)
            second -= 0.0 if kind == "variance" else share * (d * w + truth @ truth)
            variance = (second - np.sum(m**2, axis=1)) / d
            m0 = (1 - gamma) * mean + gamma * truth if kind == "variance" else mean
            centre = v
            if kind == "variance":
                centre = ((1 - gamma) * (d * v + mean @ mean) + gamma * (d * w + truth @ truth) - m0 @ m0) / d
            apart, ratio = np.sum((m - m0) ** 2, axis=1), variance / centre
            values = 0.5 * (apart / centre + d * (ratio - 1 - np.log(ratio)))
            if kind == "variance":
                values += 0.5 * (apart / variance + d * (1 / ratio - 1 + np.log(ratio)))
            values /= gamma**2 if kind == "variance" else 2 * gamma**2
            exact = shared_constant(kind, gamma, mean, v, truth, w)
            assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(len(x))


def test_families_that_are_one_another():
    """One coordinate; a known mean as a gamma type; independent coordinates; parts of a product; states in a list."""
    theta, mu, gamma = np.array([0.3, -0.8, -0.4, -0.7]), np.array([0.1, -0.2, 1.9, 1.2]), 0.1
    product = Product((Normal(), NormalKnownVariance(2.0)))
    for kind in KINDS:
        parts = [risk.smd_assumption(Normal(), theta[[i, i + 2]], kind, mu[[i, i + 2]], gamma) for i in (0, 1)]
        for same in (MultivariateNormal(1), MultivariateNormalIsotropic(1), LogNormal()):
            assert_allclose(risk.smd_assumption(same, theta[[0, 2]], kind, mu[[0, 2]], gamma), parts[0], rtol=1e-11)
        diagonal = risk.smd_assumption(MultivariateNormalDiagonal(2), theta, kind, mu, gamma)
        assert_allclose(diagonal, sum(parts), rtol=1e-11)
        known = risk.smd_assumption(MultivariateNormalKnownMean([0.0]), [-0.5], kind, [0.7], gamma)
        assert_allclose(known, risk.smd_assumption_gamma(kind, 0.7, gamma, 0.5), rtol=1e-11)
        found = risk.smd_assumption(product, [0.3, -0.4, 0.2], kind, [0.1, 1.9, 5.0], gamma)
        assert_allclose(found, parts[0] + 1.0, rtol=1e-11)  # of a normal of known variance it is 1
        coin = FiniteFamily([[0.0], [1.0]])
        assert_allclose(risk.smd_assumption(coin, [0.5], kind, [0.4], gamma), _coin(kind, gamma), rtol=1e-10)


def _coin(kind, gamma):
    """A coin of probability ``1 / (1 + exp(-1/2))`` at the iterate 0.4."""
    p, at, x = 1 / (1 + np.exp(-0.5)), 0.4, np.array([1.0, 0.0])
    if kind == "variance":
        a, b = (1 - gamma) * at + gamma * x, (1 - gamma) * at + gamma * p
        values = (a - b) * (np.log(a / (1 - a)) - np.log(b / (1 - b))) / gamma**2
    else:
        a = at + 2 * gamma * (x - p)
        values = (a * np.log(a / at) + (1 - a) * np.log((1 - a) / (1 - at))) / (2 * gamma**2)
    return values @ [p, 1 - p]


@pytest.mark.parametrize("gamma", [0.01, 1e-4, 1e-7])
def test_constants_of_normals_tend_to_the_dimension(gamma):
    """As steps vanish, ``E |T - mu*|_F^2 = d``, in any coordinates."""
    rng, d = np.random.default_rng(2), 3
    covariance = np.cov(rng.normal(size=(d, 20)))
    at, known = rng.normal(size=d), d * (d + 1) / 2
    for kind in KINDS:
        for size, found in (
            (d + known, full_constant(kind, gamma, at, covariance, at, covariance)),
            (known, full_constant(kind, gamma, at, covariance, at, covariance, True)),
            (d + 1, shared_constant(kind, gamma, at, 2.0, at, 2.0)),
        ):
            assert abs(found / size - 1) < 12 * gamma + 1e-6


def test_the_variance_condition_of_a_normal_grows_without_bound():
    """One direction of the iterate collapses: no constant serves all iterates, in any number of dimensions."""
    found = [
        full_constant("variance", 0.1, np.zeros(3), np.diag([small, 1.0, 1.0]), np.zeros(3), np.eye(3))
        for small in (1.0, 1e-2, 1e-4, 1e-6)
    ]
    assert np.all(np.diff(np.log(found)) > 2.0)


def test_steps_that_leave_the_domain_where_nobody_looks():
    """Just beyond the edge an observation of probability 1e-4 and less makes the constant infinite."""
    gamma, share = 0.1, 0.2
    for beyond in (1e-2, 1e-5, 1e-8, -1e-8, -1e-2):
        mean = 0.3
        at = [mean, share + mean**2 / (1 - share) - beyond]
        assert np.isinf(risk.smd_assumption(Normal(), [0.0, -0.5], "optimum", at, gamma)) == (beyond > 0)
        wide = full_constant("optimum", gamma, np.zeros(2), np.diag([share - beyond, 1.0]), np.zeros(2), np.eye(2))
        assert np.isinf(wide) == (beyond > 0)


EDGES = [
    # a family, a truth, and iterates as a function of how far beyond the edge
    (Gamma(), [1.5, -2.0], lambda t, e: t * 0.2 + [0.8 * np.log(0.5 / 0.8) + e, 0.5]),
    (InverseGaussian(), [-1.0, -2.0], lambda t, e: t * 0.2 + [2.0, (0.8 - e) ** 2 / 2.0]),
    (Beta(), [1.2, 0.7], lambda t, e: t * 0.2 + 0.8 * np.log([0.3, 0.7]) + e),
    (Dirichlet(4), [1.2, 0.7, 3.0, 0.5], lambda t, e: t * 0.2 + 0.8 * np.log([0.1, 0.2, 0.3, 0.4]) + e),
    (VonMises(), [0.9, 1.2], lambda t, e: t * 0.2 + (0.8 + e) * np.array([0.6, 0.8])),
]


@pytest.mark.parametrize(("family", "theta", "iterate"), EDGES, ids=[str(family) for family, *_ in EDGES])
def test_the_edge_in_closed_form_is_that_of_the_domain(family, theta, iterate):
    """Beyond it some observation is outside; before it none of a fine grid, or of many draws, is."""
    truth = np.asarray(family.to_mean(np.asarray(theta)))
    x = np.linspace(1e-5, 1, 10**5)[:-1]
    if isinstance(family, Dirichlet):
        x = np.random.default_rng(0).dirichlet(np.ones(4), 10**5)
    elif not isinstance(family, Beta):
        x = 2 * np.pi * x if isinstance(family, VonMises) else x / (1 - x)
    T = np.asarray(family.statistics(x))
    for beyond in (0.02, -1e-6):
        mu = iterate(truth, beyond)
        assert can_leave(family, mu, truth, 0.2) == (beyond > 0)
        moved = mu + 0.2 * (T - truth)
        assert np.all(np.asarray(family.in_mean_domain(moved))) == (beyond < 0)
    assert can_leave(family, iterate(truth, 1e-12), truth, 0.2)
