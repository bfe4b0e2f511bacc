"""Mirror descent: one step by hand, the implicit step, the simplex, its certificates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError, DomainError
from cumulant.geometry import Burg, Euclidean, Hypentropy, LogDet, Power, Shannon, VonNeumann
from cumulant.optim.certify.mirror_descent import certify_relative, certify_simplex, relative_constants
from tests.optim.cases import A, Y, poisson_fit

TARGET = optim.Quadratic(np.eye(2), np.array([2.0, 1.0]))  # |x - (2, 1)|^2 / 2, up to a constant


def linear(x, data):
    return jnp.vdot(data, x)


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        (Euclidean(), (1.1, 1.9)),
        (Shannon(), (1.10517092, 1.80967484)),
        (Burg(), (1.11111111, 1.66666667)),
        (Power(0.5), (1.10803324, 1.74455927)),
        (Hypentropy(0.7), (0.7 * np.sinh(np.arcsinh(1 / 0.7) + 0.1), 0.7 * np.sinh(np.arcsinh(2 / 0.7) - 0.1))),
    ],
    ids=str,
)
def test_one_step_of_vectors(entropy, expected):
    result = optim.run(optim.MirrorDescent(entropy, 0.1), TARGET, [1.0, 2.0], max_steps=1, tol=None)
    np.testing.assert_allclose(result.x, expected, atol=5e-9)


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        (VonNeumann(), [[1.79461347, 0.91806652], [0.91806652, 2.05979419]]),
        (LogDet(), [[1.61953953, 0.79663836], [0.79663836, 2.01348157]]),
    ],
    ids=str,
)
def test_one_step_of_matrices(entropy, expected):
    problem = optim.Objective(linear, np.array([[1.0, 0.3], [0.3, -0.5]]), convex=True)
    result = optim.run(optim.MirrorDescent(entropy, 0.1), problem, [[2.0, 1.0], [1.0, 2.0]], max_steps=1, tol=None)
    np.testing.assert_allclose(result.x, expected, atol=5e-9)


def test_exponentiated_gradient_on_the_simplex():
    problem = optim.Objective(linear, np.array([1.0, 2.0, 3.0]), smoothness=0.0, convex=True)
    solver = optim.MirrorDescent(Shannon(), 0.5, constraint="simplex")
    result = optim.run(solver, problem, np.full(3, 1 / 3), max_steps=10, tol=None)
    np.testing.assert_allclose(result.x, (0.993262357, 0.006692549, 4.50940e-5), atol=5e-9)
    assert np.sum(result.x) == pytest.approx(1.0, abs=1e-15)
    true_gap = result.value - 1.0
    assert true_gap <= result.certificate.upper
    assert result.certificate.bound == pytest.approx(true_gap, rel=1e-12)  # for a linear function it is exact


def test_a_step_that_would_leave_the_domain_is_halved():
    # Burg: x / (1 + tau x g) needs 1 + tau x g > 0.
    problem = optim.Quadratic(np.eye(1), np.array([10.0]))
    result = optim.run(optim.MirrorDescent(Burg(), 1.0), problem, [2.0], max_steps=40, tol=None)
    assert np.all(np.isfinite(result.trace.value))
    assert result.x[0] > 0
    assert result.trace["travelled"][1] == 0.5**5  # 1 - 16 tau > 0 first holds at tau = 1/32
    assert result.value < problem.value(np.array([2.0]))


def test_relative_strong_convexity_certifies_poisson_like_fits():
    # -log x + x/c is one-smooth and one-strongly convex relative to Burg.
    def fit(x, c):
        return jnp.sum(x / c - jnp.log(x))

    c = np.array([0.5, 3.0])
    problem = optim.Objective(
        fit, c, reference=Burg(), relative_smoothness=1.0, relative_strong_convexity=1.0, convex=True
    )
    for x in (np.array([0.4, 2.0]), np.array([0.49, 3.2]), np.array([5.0, 5.0])):
        gap = float(problem.value(x) - problem.value(c))
        certificate = certify_relative((problem, Burg()), x)
        assert gap <= certificate.upper + 1e-15
        assert certificate.bound == pytest.approx(gap, rel=1e-9)  # equality: D_f = D_psi
        certificate.verify(Subject((problem, Burg()), x))
    result = optim.run(optim.MirrorDescent(Burg()), problem, [1.0, 1.0])
    assert (result.status, result.work) == ("converged", 1)
    np.testing.assert_allclose(result.x, c, rtol=1e-13)
    # Twice as curved as promised: the bound must still hold, now strictly.
    weak = optim.Objective(
        fit, c, reference=Burg(), relative_smoothness=1.0, relative_strong_convexity=0.5, convex=True
    )
    x = np.array([0.45, 2.5])
    assert float(problem.value(x) - problem.value(c)) < certify_relative((weak, Burg()), x).upper


def test_the_euclidean_certificate_is_that_of_gradient_descent():
    problem = optim.LeastSquares(A, Y, 0.3)
    mirror = optim.run(optim.MirrorDescent(Euclidean()), problem, np.zeros(4), tol=1e-8)
    plain = optim.run(optim.GradientDescent(), problem, np.zeros(4), tol=1e-8)
    np.testing.assert_allclose(mirror.x, plain.x, rtol=1e-12)
    assert mirror.certificate.bound == pytest.approx(plain.certificate.bound, rel=1e-9)
    assert mirror.work == plain.work


def test_the_simplex_certificate_is_above_the_true_gap():
    problem = optim.Quadratic(A.T @ A, A.T @ Y)
    solver = optim.MirrorDescent(Shannon(), constraint="simplex")
    result = optim.run(solver, problem, np.full(4, 0.25), tol=1e-6, max_steps=20_000, every=10)
    assert result.status == "converged"
    exact = minimize(
        problem.value,
        np.full(4, 0.25),
        jac=problem.gradient,
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert result.value - exact.fun <= result.certificate.upper
    assert exact.fun - result.value <= 1e-9
    rng = np.random.default_rng(0)
    for x in rng.dirichlet(np.ones(4), size=20):
        assert problem.value(x) - exact.fun <= certify_simplex(problem, x).upper + 1e-9


def test_the_rate_is_a_certificate_when_the_radius_is_known():
    problem = optim.Objective(
        poisson_fit, (np.eye(2), np.array([2.0, 3.0])), convex=True, reference=Burg(), relative_smoothness=5.0
    )
    best = np.array([2.0, 3.0])
    radius = float(Burg().divergence(best, np.ones(2)))
    result = optim.run(optim.MirrorDescent(Burg(), radius=radius), problem, np.ones(2), max_steps=40, tol=None)
    assert result.certificate.bound == pytest.approx(5.0 * radius / 40)
    assert 0 <= result.value - problem.value(best) <= result.certificate.bound
    assumed = [a.status for a in result.certificate.assumptions].count("assumed")
    assert assumed == 4  # radius, convexity, smoothness, exact steps
    # With steps that are too long the theorem does not apply, and nothing is claimed.
    long = optim.run(optim.MirrorDescent(Burg(), 0.3, radius=radius), problem, np.ones(2), max_steps=40, tol=None)
    assert long.certificate is None
    assert "not shown that every step is at most one over the relative smoothness" in long.refusal
    unknown = optim.run(optim.MirrorDescent(Burg()), problem, np.ones(2), max_steps=4, tol=None)
    assert unknown.certificate is None
    assert "not shown that a bound on D(x*|x0) is known (radius was not given)" in unknown.refusal
    assert "strongly convex relative to Burg()" in unknown.refusal


@pytest.mark.parametrize("entropy", [Shannon(), Hypentropy(0.3)], ids=str)
def test_an_implicit_step_minimises_what_it_should(entropy):
    C, b, x0, tau = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 3.0]), np.array([0.4, 0.7]), 5.0
    problem = optim.Quadratic(C, b)
    result = optim.run(optim.MirrorDescent(entropy, tau, implicit=True), problem, x0, max_steps=1, tol=None)
    residual = tau * (C @ result.x - b) + np.asarray(entropy.gradient(result.x)) - np.asarray(entropy.gradient(x0))
    np.testing.assert_allclose(residual, 0, atol=1e-10)
    bounds = None if isinstance(entropy, Hypentropy) else [(1e-6, None)] * 2
    found = minimize(
        lambda x: problem.value(x) + entropy.divergence(x, x0) / tau, x0, bounds=bounds, options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(result.x, found.x, atol=1e-5)


@pytest.mark.parametrize("tau", [0.3, 40.0])
def test_an_implicit_step_on_the_simplex_minimises_over_it(tau):
    C, b = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.5]]), np.array([1.0, 0.5, 0.3])
    x0, problem = np.array([0.2, 0.7, 0.1]), optim.Quadratic(C, b)
    solver = optim.MirrorDescent(Shannon(), tau, implicit=True, constraint="simplex")
    x = optim.run(solver, problem, x0, max_steps=1, tol=None).x
    assert x.sum() == pytest.approx(1.0, abs=1e-14)
    stationary = tau * (C @ x - b) + np.log(x / x0)  # one number, the multiplier of the sum
    assert np.ptp(stationary) < 1e-9
    slsqp = minimize(
        lambda y: problem.value(y) + np.sum(y * np.log(y / x0)) / tau,
        np.full(3, 1 / 3),
        bounds=[(1e-9, 1)] * 3,
        constraints={"type": "eq", "fun": lambda y: y.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(x, slsqp.x, atol=1e-5)


def test_implicit_steps_on_the_simplex_obey_their_rate_and_are_certified():
    C, b = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 0.5]]), np.array([1.0, 0.5, 0.3])
    problem, x0 = optim.Quadratic(C, b), np.full(3, 1 / 3)
    best = optim.run(optim.MirrorDescent(Shannon(), 500.0, implicit=True, constraint="simplex"), problem, x0, tol=1e-13)
    result = optim.run(
        optim.MirrorDescent(Shannon(), 2.0, implicit=True, constraint="simplex"), problem, x0, max_steps=30, tol=None
    )
    radius = float(Shannon().divergence(best.x, x0))
    bound = lambda k: optim.rates.implicit_mirror(2.0, radius, k)  # noqa: E731
    assert optim.compare_with_rate(result.trace, bound, optimum=best.value).holds
    gap = result.value - best.value
    assert 0 <= gap <= result.certificate.upper <= np.log(3) / 60 * (1 + 1e-9)


@pytest.mark.parametrize("constraint", ["simplex", None])
def test_implicit_steps_too_long_to_be_solved_are_not_certified_by_their_length(constraint):
    """Newton's method does not solve them: 1e-12 was claimed of a point off by 2e-4, 3e-15 of one that never moved."""
    problem, x0 = optim.Quadratic(np.diag([2.0, 1.0, 0.5]), [2.0, 1.0, 1.0]), np.array([0.5, 0.2, 0.3])
    x, radius = (np.array([4.0, 1.0, 2.0]) / 7, None) if constraint else (np.array([1.0, 1.0, 2.0]), 10.0)
    best = problem.value(x)
    for tau in (1.0, 1e4, 1e8, 1e12, 1e20, 1e300):
        solver = optim.MirrorDescent(Shannon(), tau, implicit=True, constraint=constraint, radius=radius)
        for steps in (1, 5):
            result = optim.run(solver, problem, x0, max_steps=steps, tol=None)
            assert result.certificate is None or problem.value(result.x) - best <= result.certificate.upper + 1e-14
            if constraint:
                assert abs(result.x.sum() - 1) < 1e-14
                result.certificate.verify(result.subject)
            assert (result.certificate is not None) or "every implicit step was solved" in result.refusal


@pytest.mark.slow
def test_an_implicit_step_of_a_matrix():
    problem = optim.Objective(lambda_square, np.array([[1.0, 0.2], [0.2, 3.0]]), convex=True)
    x0 = np.array([[2.0, 0.5], [0.5, 1.0]])
    result = optim.run(optim.MirrorDescent(VonNeumann(), 0.8, implicit=True), problem, x0, max_steps=1, tol=None)
    gradient = np.asarray(VonNeumann().gradient(result.x)) - np.asarray(VonNeumann().gradient(x0))
    np.testing.assert_allclose(gradient + 0.8 * (result.x - problem.data), 0, atol=1e-9)


def lambda_square(x, target):
    return jnp.sum((x - target) ** 2) / 2


def test_mirror_descent_on_a_likelihood_lands_on_the_estimate_in_one_step():
    from cumulant import families

    family, x = families.Normal(), np.random.default_rng(2).normal(1.0, 2.0, 30)
    problem = optim.NegativeLogLikelihood(family, np.mean(family.statistics(x), axis=0))
    result = optim.run(optim.MirrorDescent(problem.reference), problem, [0.0, -0.5], tol=1e-10)
    assert (result.status, result.work) == ("converged", 1)
    np.testing.assert_allclose(result.x, family.mle(x), rtol=1e-10)


def test_measured_constants_are_inside_of_the_proven_ones_and_reach_them():
    rng = np.random.default_rng(4)
    matrix, b = rng.exponential(size=(6, 2)), rng.poisson(5.0, size=6) + 1.0
    problem = optim.Objective(poisson_fit, (matrix, b), convex=True)
    points = rng.exponential(size=(300, 2)) * 10.0 ** rng.uniform(-3, 3, size=(300, 1))
    found = relative_constants(problem, Burg(), points=points)
    assert found.status == "assumed"
    for x in points[:20]:  # the same by a product of matrices: diag(x) H diag(x)
        H = np.stack([problem.hessian_apply(x, unit) for unit in np.eye(2)]) * np.outer(x, x)
        assert found.strong_convexity - 1e-9 <= np.linalg.eigvalsh(H)[0]
        assert np.linalg.eigvalsh(H)[-1] <= found.smoothness + 1e-9
    assert found.smoothness <= b.sum() * (1 + 1e-9)
    euclidean = relative_constants(TARGET, Euclidean(), points=[[0.0, 0.0]])
    np.testing.assert_allclose(euclidean[:2], [1.0, 1.0])
    with pytest.raises(ValueError, match="inside the domain"):
        relative_constants(TARGET, Burg(), points=[[-1.0, 1.0]])
    with pytest.raises(ValueError, match=r"vectors of shape \(2,\)"):
        relative_constants(TARGET, Burg(), points=np.ones((1, 3)))


def test_the_constants_relative_to_an_entropy():
    problem = optim.LeastSquares(A, Y, 0.3)
    assert relative_constants(problem, Euclidean())[:2] == (problem.smoothness, problem.strong_convexity)
    assert relative_constants(problem, Shannon()).smoothness is None
    on_simplex = relative_constants(problem, Shannon(), "simplex").smoothness
    assert on_simplex == pytest.approx(np.max(np.abs(A.T @ A / 12 + 0.3 * np.eye(4))))
    assert on_simplex < problem.smoothness
    # D_f <= L KL on the simplex, by sampling
    rng = np.random.default_rng(1)
    x, y = rng.dirichlet(np.ones(4) * 0.3, size=(2, 500))
    d = np.einsum("ij,jk,ik->i", x - y, A.T @ A / 12 + 0.3 * np.eye(4), x - y) / 2
    kl = np.asarray(Shannon().divergence(x, y))
    assert np.all(d <= on_simplex * kl * (1 + 1e-9))
    assert np.max(d / kl) > 0.2 * on_simplex
    assert jax.tree.leaves(Shannon()) == []


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: optim.MirrorDescent(Burg(), constraint="simplex"),
            ValueError,
            "the simplex needs the Shannon entropy",
        ),
        (
            lambda: optim.MirrorDescent(Shannon(), constraint="box"),
            ValueError,
            "constraint must be None or 'simplex'; got 'box'",
        ),
        (lambda: optim.MirrorDescent(Shannon(), -1.0), ValueError, "step_size must be a positive number or a schedule"),
        (lambda: optim.MirrorDescent(Shannon(), 1.0, radius=-1.0), ValueError, "radius, a bound on"),
        (lambda: optim.run(optim.MirrorDescent(Shannon()), TARGET, [1.0, 2.0]), ValueError, "step_size is needed"),
        (lambda: optim.run(optim.MirrorDescent(Shannon(), 0.1), TARGET, [0.0, 2.0]), DomainError, "off its boundary"),
        (lambda: optim.run(optim.MirrorDescent(Shannon(), 0.1), TARGET, [-1.0, 2.0]), DomainError, "must be"),
        (
            lambda: optim.run(optim.MirrorDescent(Shannon(), 0.1, constraint="simplex"), TARGET, [1.0, 2.0]),
            DomainError,
            "its entries add up to one",
        ),
        (
            lambda: optim.run(optim.MirrorDescent("Shannon", 0.1), TARGET, [1.0, 2.0]),
            TypeError,
            "entropy must be an Entropy",
        ),
    ],
)
def test_bad_settings_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_no_certificate_on_the_simplex_for_a_function_that_is_not_convex():
    saddle = optim.Quadratic(np.diag([-1.0, 1.0]), np.zeros(2))
    with pytest.raises(CertificateError, match="not shown that the objective is convex"):
        certify_simplex(saddle, np.array([0.5, 0.5]))
    result = optim.run(optim.MirrorDescent(Shannon(), 0.1, constraint="simplex"), saddle, [0.5, 0.5], max_steps=3)
    assert result.certificate is None
    assert np.all(np.isinf(result.trace.bound))
