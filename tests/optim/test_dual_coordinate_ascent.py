"""The dual coordinate engine: against plain loops, through JAX, and what it certifies."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp, xlogy
from scipy import sparse

from cumulant import optim
from cumulant.certificates import Subject
from cumulant.errors import CertificateError
from cumulant.optim.finite_sums.dual_coordinate_kernels import coins
from tests.optim.test_finite_sums import CLASSES, SIGNS, A, MyLoss, N, P, problems
from tests.reference import dual_coordinate as plain

L2 = 0.05
PROBLEMS = problems(sparse.csr_array(A), L2)
SAMPLINGS = ("uniform", "importance", "gap", "gap-importance", "max", "residual")


@dataclass(frozen=True)
class Classes:
    """The log-loss over three classes, as a user would write it."""

    smoothness = 0.5

    def value(self, scores, target):
        return logsumexp(scores) - scores[target.astype(int)]

    def conjugate(self, slopes, target):
        law = slopes + jax.nn.one_hot(target.astype(int), 3)
        return jnp.sum(xlogy(law, law))


USER = optim.DualProblem(sparse.csr_array(A), CLASSES, Classes(), L2, outputs=3)


def ascend(problem, sampling, passes, **settings):
    solver = optim.DualCoordinateAscent(sampling, 0.7, subprecision=1e-13, **settings)
    return solver, optim.run(solver, problem, np.zeros(problem.shape), max_steps=passes, tol=None, rng=5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_kernel_agrees_with_plain_loops(name):
    problem = PROBLEMS[name]
    y = {"square": problem.y, "classes": CLASSES}.get(name, SIGNS)
    conditions = optim.conditions_of(problem)
    outputs = 3 if name == "classes" else 1
    start = 0.01 * np.array([plain.slope(name, np.zeros(outputs), t) for t in y])
    pairs = np.concatenate([coins(5, sweep, N) for sweep in (0, 1)])
    for sampling in SAMPLINGS if name in ("logistic", "classes") else ("gap",):
        weights = {"importance": conditions, "gap-importance": 100 * conditions, "residual": 100 * conditions**0.5}
        first = weights.get(sampling, np.full(N, 100.0))
        U, learned, gaps = plain.ascend(name, A, y, L2, start, first, sampling, conditions, 0.7, pairs)
        _, result = ascend(problem, sampling, 2)
        np.testing.assert_allclose(result.state.slopes, U, rtol=1e-7, atol=1e-9, err_msg=sampling)
        np.testing.assert_allclose(result.x.reshape(P, -1), -A.T @ U / (N * L2), rtol=1e-7, atol=1e-9)
        if sampling not in ("uniform", "importance"):
            half = len(result.state.tree) // 2
            np.testing.assert_allclose(result.state.tree[half : half + N], learned, rtol=1e-6, atol=1e-9)
        assert np.all(gaps >= -1e-12)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_loss_of_the_user_goes_the_same_way_as_the_kernel(sampling):
    # Once every row was visited, the largest of gaps that are closed is a matter of rounding.
    passes = 1 if sampling == "max" else 2
    _, kernel = ascend(PROBLEMS["logistic"], sampling, passes)
    _, own = ascend(optim.MarginLoss(sparse.csr_array(A), SIGNS, MyLoss(), l2=L2), sampling, passes)
    np.testing.assert_allclose(own.x, kernel.x, rtol=1e-8, atol=1e-11)
    assert own.trace.bound[-1] == pytest.approx(kernel.trace.bound[-1], rel=1e-6, abs=1e-12)


def test_several_scores_and_the_other_steps():
    _, kernel = ascend(PROBLEMS["classes"], "uniform", 3)
    _, own = ascend(USER, "uniform", 3)
    np.testing.assert_allclose(own.x, kernel.x, atol=1e-9)
    # Golden section sees values only: it cannot do better than the root of the rounding unit.
    _, golden = ascend(PROBLEMS["classes"], "uniform", 3, step_rule="bounded")
    np.testing.assert_allclose(golden.x, kernel.x, atol=1e-6)
    own, other = optim.MarginLoss(A, SIGNS, MyLoss(), l2=L2), PROBLEMS["logistic"]
    _, golden = ascend(own, "uniform", 1, step_rule="bounded")
    # Thirty evaluations: to 5e-7 of the way.
    np.testing.assert_allclose(golden.x, ascend(other, "uniform", 1)[1].x, atol=1e-5)
    _, fixed = ascend(PROBLEMS["classes"], "uniform", 3, step_rule="fixed")
    assert np.all(np.diff(fixed.trace["dual"]) > 0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_dual_rises_and_the_gap_is_certified(name):
    problem = PROBLEMS[name]
    solver, result = ascend(problem, "gap", 6)
    assert np.all(np.diff(result.trace["dual"]) >= -1e-13)
    best = optim.run(optim.LBFGS(), problem, np.zeros(problem.shape), tol=1e-13).value
    assert np.all(result.trace.value >= best - 1e-12)
    assert np.all(result.trace["dual"] <= best + 1e-12)  # weak duality, at every record
    theta = solver.theta(problem, result.state)
    np.testing.assert_allclose(optim.primal_point(problem, theta), result.x, atol=1e-14)
    assert optim.dual_value(problem, theta) == result.trace["dual"][-1]
    gaps, residuals = solver.gaps(problem, result.state)
    assert np.mean(gaps) == pytest.approx(result.trace.bound[-1], rel=1e-9, abs=1e-14)
    assert np.all(gaps >= 0)
    assert np.all(residuals >= 0)
    certificate = optim.certify_duality(problem, (result.x, theta))
    assert result.value - best <= certificate.upper
    assert certificate.verify(Subject(problem, (result.x, theta))).bound == certificate.bound
    with pytest.raises(CertificateError, match="does not hold"):
        certificate.verify(Subject(problem, (result.x + 1.0, theta)))


def test_fresh_gaps_and_sums_instead_of_means():
    mean, total = (
        optim.Logistic(A, SIGNS, l2=L2),
        optim.Logistic(A, SIGNS, l2=L2 * N, reduction="sum"),
    )
    _, first = ascend(mean, "gap-importance", 3, refresh=True)
    _, second = ascend(total, "gap-importance", 3, refresh=True)
    np.testing.assert_allclose(second.x, first.x, rtol=1e-9)
    assert second.trace.bound[-1] == pytest.approx(N * first.trace.bound[-1], rel=1e-6)
    assert first.trace["gradients"][-1] == 6 * N


def test_the_conjugate_pair_of_a_dual_problem():
    rng = np.random.default_rng(0)
    x, other = rng.normal(size=(P, 3)), PROBLEMS["classes"]
    assert float(USER.value(x)) == pytest.approx(float(other.value(x)), rel=1e-12)
    np.testing.assert_allclose(USER.gradient(x), other.gradient(x), rtol=1e-10)
    np.testing.assert_allclose(USER.slopes(x), other.slopes(x), atol=1e-14)
    assert float(USER.conjugate(USER.slopes(x))) == pytest.approx(float(other.conjugate(other.slopes(x))), rel=1e-10)
    assert USER.smoothness == pytest.approx(other.smoothness, rel=1e-12)
    # Fenchel: the gap of a pair is |grad P|^2 / (2 l2) when the slopes are those of x.
    gap = float(USER.value(x)) - optim.dual_value(USER, USER.slopes(x))
    assert gap == pytest.approx(np.sum(np.asarray(USER.gradient(x)) ** 2) / (2 * L2), rel=1e-10)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="needs l2 > 0"):
        ascend(optim.Logistic(A, SIGNS), "gap", 1)
    with pytest.raises(TypeError, match="dual coordinate ascent takes"):
        ascend(optim.Quadratic(np.eye(2), np.ones(2)), "gap", 1)
    with pytest.raises(TypeError, match="has no smoothness"):
        optim.DualProblem(A, SIGNS, MyLoss())
    with pytest.raises(ValueError, match="one row for each target"):
        optim.DualProblem(A, SIGNS[:-1], Classes())
    for settings, message in (
        ({"sampling": "best"}, "sampling must be one of .uniform"),
        ({"step_rule": "newton"}, "step_rule must be one of"),
        ({"nonuniformity": 2.0}, "nonuniformity"),
        ({"epsilon": 0.0}, "epsilon must be in"),
        ({"updates": 0}, "updates must be a positive whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            optim.DualCoordinateAscent(**settings)
