"""SGD, SGA, SAG, SAGA and SVRG: against plain loops, against each other through JAX, and against exact answers."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from cumulant import optim
from cumulant.optim.finite_sums.finite_sum_kernels import draws
from tests.reference import stochastic_gradient as plain

N, P = 11, 4
RNG = np.random.default_rng(3)
A = RNG.normal(size=(N, P)) * (RNG.uniform(size=(N, P)) < 0.6)
A[2] = 0.0  # an empty row
SIGNS, CLASSES = np.sign(RNG.normal(size=N)), RNG.integers(0, 3, size=N)
TARGETS = RNG.normal(size=N)


def problems(A, l2, reduction="mean"):
    return {
        "square": optim.LeastSquares(A, TARGETS, l2=l2, reduction=reduction),
        "logistic": optim.Logistic(A, SIGNS, l2=l2, reduction=reduction),
        "squared hinge": optim.MarginLoss(A, SIGNS, optim.SquaredHingeLoss(), l2=l2, reduction=reduction),
        "smoothed hinge": optim.MarginLoss(A, SIGNS, optim.SmoothedHingeLoss(0.5), l2=l2, reduction=reduction),
        "classes": optim.MultinomialLogistic(A, CLASSES, l2=l2, reduction=reduction),
    }


CASES = [(name, layout) for name in problems(A, 0.1) for layout in ("dense", "sparse")]


def set_up(name, layout):
    """The problem, its targets, scale and penalty; sums rather than means in the dense layout."""
    reduction, l2 = ("sum", 0.9) if layout == "dense" else ("mean", 0.1)
    problem = problems(A if layout == "dense" else sparse.csr_array(A), l2, reduction)[name]
    y = {"square": TARGETS, "classes": CLASSES}.get(name, SIGNS)
    x0 = RNG.normal(size=problem.shape)
    return problem, y, (N if reduction == "sum" else 1.0), l2, x0


def go(solver, problem, x0, steps, rng=7):
    return optim.run(solver, problem, x0, max_steps=steps, tol=None, rng=rng, every=steps)


def advance(solver, problem, x0, steps, rng=7):
    """The answer and the state after so many steps, with nothing measured."""
    state = solver.init(problem, x0.copy(), rng)
    for _ in range(steps):
        state = solver.step(problem, state)
    return solver.solution(problem, state), state


@pytest.mark.parametrize(("name", "layout"), CASES)
def test_the_kernels_agree_with_plain_loops(name, layout):
    problem, y, scale, l2, x0 = set_up(name, layout)
    X = x0.reshape(P, -1)
    orders = np.array([draws(7, sweep, N, 3 * 8) for sweep in (0, 1)]).reshape(2 * 8, 3)
    # A step of 1 / l2 makes the scale of the weights exactly zero, the next ones negative or small.
    sizes = np.where(np.arange(16) == 5, 1 / l2, 0.03 / (1 + np.arange(16.0) / 4))
    schedule = lambda k: sizes[np.asarray(k).astype(int)]  # noqa: E731
    iterates = plain.sgd(name, A, y, l2, scale, X, orders, sizes)
    three = optim.gradients.ByRows("random", 3)
    last, _ = advance(optim.SGD(schedule, three, updates=8), problem, x0, 2)
    mean, _ = advance(optim.SGA(schedule, three, updates=8), problem, x0, 2)
    np.testing.assert_allclose(last.reshape(P, -1), iterates[-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mean.reshape(P, -1), iterates.mean(axis=0), rtol=1e-9, atol=1e-11)

    order = np.concatenate([draws(7, sweep, N, 2 * N) for sweep in (0, 1)])
    zero, start = np.zeros((N, P, X.shape[1])), plain.gradients(name, A, y, X)
    for normalise in ("seen", "all"):
        solver = optim.SAG(0.02, normalise, updates=2 * N)
        expected, _ = plain.reduced("SAG", name, A, y, l2, scale, X, order, 0.02, zero, normalise)
        np.testing.assert_allclose(advance(solver, problem, x0, 2)[0].reshape(P, -1), expected, rtol=1e-9, atol=1e-11)
    expected, stored = plain.reduced("SAGA", name, A, y, l2, scale, X, order, 0.02, start)
    x, state = advance(optim.SAGA(0.02, updates=2 * N), problem, x0, 2)
    np.testing.assert_allclose(x.reshape(P, -1), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(state.total.reshape(P, -1), stored.sum(axis=0), rtol=1e-9, atol=1e-11)
    inner, _ = plain.reduced("SVRG", name, A, y, l2, scale, X, order[: 2 * N], 0.02, start)
    inner, _ = plain.reduced(
        "SVRG", name, A, y, l2, scale, inner, order[2 * N :], 0.02, plain.gradients(name, A, y, inner)
    )
    np.testing.assert_allclose(
        advance(optim.SVRG(0.02), problem, x0, 2)[0].reshape(P, -1), inner, rtol=1e-9, atol=1e-11
    )


def test_a_penalty_so_strong_that_the_scale_of_the_weights_shrinks_a_thousandfold_at_every_update():
    problem = optim.LeastSquares(A, TARGETS, l2=0.999)
    X = np.ones((P, 1))
    order = draws(1, 0, N, N)
    expected = plain.sgd("square", A, TARGETS, 0.999, 1.0, X, order[:, None], np.ones(N)).mean(axis=0)
    x, _ = advance(optim.SGA(1.0), problem, np.ones(P), 1, rng=1)
    np.testing.assert_allclose(x, expected[:, 0], rtol=1e-10)
    expected, _ = plain.reduced("SAG", "square", A, TARGETS, 0.999, 1.0, X, order, 1.0, np.zeros((N, P, 1)))
    x, _ = advance(optim.SAG(1.0, "all"), problem, np.ones(P), 1, rng=1)
    np.testing.assert_allclose(x, expected[:, 0], rtol=1e-10)


def logistic_term(x, row):
    a, y = row
    return jnp.logaddexp(0.0, -y * (a @ x))


FINITE = optim.FiniteSum(
    logistic_term, (A, SIGNS), l2=0.1, term_smoothness=np.sum(A**2, axis=1) / 4, convex=True
)  # fmt: skip


@dataclass(frozen=True)
class MyLoss:
    """The logistic loss, as a user would write it."""

    largest_curvature = 0.25
    self_concordance = None

    def value(self, margin):
        return jnp.logaddexp(0.0, -margin)

    def slope(self, margin):
        return -1 / (1 + jnp.exp(margin))

    def curvature(self, margin):
        return 1 / (2 + jnp.exp(margin) + jnp.exp(-margin))

    def conjugate(self, u):
        return jnp.where((u <= 0) & (u >= -1), jax_entropy(-u), jnp.inf)


def jax_entropy(q):
    from jax.scipy.special import xlogy

    return xlogy(q, q) + xlogy(1 - q, 1 - q)


SOLVERS = [optim.SGD(), optim.SGA(), optim.SAG(), optim.SAGA(), optim.SVRG(), optim.SVRG(snapshot="random")]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: f"{type(s).__name__} {getattr(s, 'snapshot', '')}")
def test_a_function_of_the_user_goes_the_same_way_as_the_kernels(solver):
    kernels = go(solver, optim.Logistic(A, SIGNS, l2=0.1), np.zeros(P), 4)
    through_jax = go(solver, FINITE, np.zeros(P), 4)
    np.testing.assert_allclose(through_jax.x, kernels.x, rtol=1e-10, atol=1e-13)
    own = go(solver, optim.MarginLoss(A, SIGNS, MyLoss(), l2=0.1), np.zeros(P), 4)
    np.testing.assert_allclose(own.x, kernels.x, rtol=1e-10, atol=1e-13)
    assert kernels.trace["gradients"][-1] == through_jax.trace["gradients"][-1] > 0


def test_variance_reduced_methods_converge_and_are_certified():
    problem = optim.Logistic(A, SIGNS, l2=0.1)
    best = minimize(
        lambda x: np.mean(np.logaddexp(0, -SIGNS * (A @ x))) + 0.05 * x @ x, np.zeros(P), tol=1e-14
    ).fun  # fmt: skip
    for solver in (optim.SAG(), optim.SAGA(), optim.SVRG()):
        result = optim.run(solver, problem, np.zeros(P), tol=1e-9, rng=0)
        assert result.status == "converged"
        assert result.value - best <= result.certificate.upper <= 1e-9 * result.scale
        assert result.certificate.verify(result.subject).bound <= result.certificate.upper


def test_the_problem_knows_its_value_gradient_and_constants():
    x, v = RNG.normal(size=P), RNG.normal(size=P)
    same = optim.Logistic(A, SIGNS, l2=0.1)
    np.testing.assert_allclose(FINITE.value(x), same.value(x), rtol=1e-12)
    np.testing.assert_allclose(FINITE.value_and_gradient(x)[1], same.gradient(x), rtol=1e-10)
    np.testing.assert_allclose(FINITE.gradient(x), same.gradient(x), rtol=1e-10)
    np.testing.assert_allclose(FINITE.hessian_apply(x, v), same.hessian_apply(x, v), rtol=1e-9)
    assert FINITE.n_terms == N
    assert FINITE.strong_convexity == 0.1
    assert FINITE.smoothness >= same.smoothness
    certificate = optim.run(optim.LBFGS(), FINITE, x, tol=1e-10).certificate
    assert "assumed" in str(certificate)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_gradients_of_the_terms_add_up(layout):
    for name in problems(A, 0.1):
        problem, y, _, l2, x = set_up(name, layout)
        every = problem.term_gradient(x, np.arange(N))
        assert every.shape == (N, *problem.shape)
        np.testing.assert_allclose(problem.weight * every.sum(axis=0), problem.gradient(x), rtol=1e-11, atol=1e-13)
        share = l2 / (problem.weight * N) * x
        if name == "square":
            np.testing.assert_allclose(every, A * (A @ x - y)[:, None] + share, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(problem.term_gradient(x, 3), every[3], rtol=1e-14)
        if name == "logistic":
            slopes = -y / (1 + np.exp(y * (A @ x)))
            np.testing.assert_allclose(every, A * slopes[:, None] + share, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="i must be a whole number from 0 to 10, or a vector of them; got 11"):
        problem.term_gradient(x, 11)


def test_the_gradients_of_the_terms_of_a_function_of_the_user():
    x = RNG.normal(size=P)
    every = FINITE.term_gradient(x, np.arange(N))
    np.testing.assert_allclose(every.mean(axis=0), FINITE.gradient(x), rtol=1e-12)
    np.testing.assert_allclose(every, optim.Logistic(A, SIGNS, l2=0.1).term_gradient(x, np.arange(N)), rtol=1e-12)
    with pytest.raises(ValueError, match="i must be a whole number from 0 to 10"):
        FINITE.term_gradient(x, -1)


def test_lbfgs_solves_what_scipy_solves():
    problem = optim.MultinomialLogistic(A, CLASSES, l2=0.1)
    result = optim.run(optim.LBFGS(memory=5, iterations=7), problem, np.zeros((P, 3)), tol=1e-13)
    assert result.status == "converged"
    assert 1 < result.work < 10
    assert np.linalg.norm(problem.gradient(result.x)) < 1e-6
    assert result.trace["evaluations"][-1] >= result.trace["iterations"][-1] > 0
    with pytest.raises(TypeError, match="needs a problem with a gradient"):
        optim.run(optim.LBFGS(), optim.Composite(problem, optim.L1(0.1)), np.zeros((P, 3)))
    with pytest.raises(ValueError, match="memory must be a positive whole number; got 0"):
        optim.LBFGS(memory=0)


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="take LeastSquares, Logistic"):
        go(optim.SGD(), optim.Quadratic(np.eye(2), np.ones(2)), np.zeros(2), 1)
    with pytest.raises(TypeError, match="dense matrix"):
        go(optim.SAGA(), optim.MarginLoss(sparse.csr_array(A), SIGNS, MyLoss()), np.zeros(P), 1)
    with pytest.raises(ValueError, match="needs the smoothness of the terms"):
        go(optim.SAG(), optim.FiniteSum(logistic_term, (A, SIGNS)), np.zeros(P), 1)
    with pytest.raises(ValueError, match="one leading axis of the same length"):
        optim.FiniteSum(logistic_term, (A, SIGNS[:-1]))
    with pytest.raises(ValueError, match="NaN"):
        optim.FiniteSum(logistic_term, (A * np.nan, SIGNS))
    with pytest.raises(ValueError, match="term_smoothness must be a number or 11"):
        optim.FiniteSum(logistic_term, (A, SIGNS), term_smoothness=[1.0])
    with pytest.raises(ValueError, match="step_size must give positive"):
        go(optim.SGD(lambda k: -k), optim.LeastSquares(A, TARGETS), np.zeros(P), 1)
    for make, message in (
        (lambda: optim.SGD(-1.0), "step_size must be a positive number or a schedule"),
        (lambda: optim.SAG(normalise="some"), "normalise must be 'seen' or 'all'"),
        (lambda: optim.SAGA(np.nan), "step_size must be a positive number"),
        (lambda: optim.SVRG(snapshot="first"), "snapshot must be 'last' or 'random'"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
