"""When and why `run` ends: the status, and what it is relative to."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from tests.optim.cases import LASSO, LOGISTIC, RIDGE

ZERO = np.zeros(4)


def double_well(x, _):
    return jnp.sum((x**2 - 1) ** 2 / 4)


@jax.custom_vjp
def uphill(x):
    return jnp.sum(x**2)


uphill.defvjp(lambda x: (uphill(x), x), lambda x, out: (-2 * out * x,))


def wrong_gradient(x, _):
    return uphill(x)


def test_a_gradient_of_exactly_zero_is_stationary_without_a_certificate():
    result = optim.run(optim.GradientDescent(0.1), optim.Objective(double_well), [0.0, 1.0])
    assert (result.status, result.work) == ("stationary", 0)
    assert result.certificate is None
    assert result.refusal
    assert "zero within rounding" in result.message


@pytest.mark.parametrize(
    "solver",
    [
        optim.GradientDescent(0.1),
        optim.GradientDescent(optim.Armijo()),
        optim.PreconditionedGradient(np.ones(2), 0.1),
        optim.HeavyBall(0.05, 0.3),
        optim.AcceleratedGradient(0.1),
        optim.Newton(),
        optim.LBFGS(),
    ],
    ids=lambda solver: type(solver).__name__,
)
def test_a_gradient_that_is_numerically_zero_is_stationary(solver):
    result = optim.run(solver, optim.Objective(double_well), [0.7, -1.3], max_steps=20_000)
    assert result.status == "stationary"
    assert result.work < 10_000
    np.testing.assert_allclose(np.abs(result.x), 1.0, rtol=1e-7)
    assert result.message in str(result)


def test_a_search_that_finds_no_step_says_so():
    problem = optim.Objective(wrong_gradient)
    for solver in (optim.GradientDescent(optim.Armijo()), optim.PreconditionedGradient(np.ones(2), optim.Armijo())):
        result = optim.run(solver, problem, [1.0, 2.0])
        assert (result.status, result.work) == ("stationary", 1)
        assert "no step makes progress" in result.message
        np.testing.assert_allclose(result.x, [1.0, 2.0], rtol=1e-15)


@pytest.mark.parametrize(
    "solver",
    [optim.GradientDescent(), optim.GradientDescent(optim.Armijo()), optim.ConjugateGradient(), optim.LBFGS()],
    ids=["fixed", "Armijo", "conjugate", "L-BFGS"],
)
def test_what_rounding_keeps_from_the_tolerance_ends_as_rounding(solver):
    result = optim.run(solver, RIDGE, ZERO, tol=0.0, max_steps=100_000)
    assert result.status == "rounding"
    assert result.work < 2_000
    assert 0 < result.certificate.upper < 1e-14 * result.scale
    result.certificate.verify(result.subject)


def test_proximal_residuals_end_runs_too():
    result = optim.run(optim.ProximalGradient(), LASSO, np.ones(4), tol=0.0, max_steps=100_000)
    assert result.status == "rounding"
    assert result.work < 50_000


def test_without_a_tolerance_all_steps_are_taken():
    result = optim.run(optim.GradientDescent(0.1), optim.Objective(double_well), [0.0, 1.0], tol=None, max_steps=17)
    assert (result.status, result.work) == ("max_steps", 17)


def test_the_end_does_not_depend_on_how_a_run_is_cut():
    whole = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=0.0, max_steps=100_000)
    seen = []
    cut = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=0.0, max_steps=100_000, callback=lambda s: seen.append(s))
    assert (whole.status, whole.work) == (cut.status, cut.work)
    np.testing.assert_array_equal(whole.x, cut.x)


def test_a_checkpoint_resumes_to_the_same_end(tmp_path):
    whole = optim.run(optim.GradientDescent(), RIDGE, ZERO, tol=0.0, max_steps=100_000)
    settings = {"tol": 0.0, "checkpoint": tmp_path / "run"}
    optim.run(optim.GradientDescent(), RIDGE, ZERO, max_steps=whole.work - 5, **settings)
    again = optim.run(optim.GradientDescent(), RIDGE, ZERO, max_steps=100_000, **settings)
    assert (whole.status, whole.work) == (again.status, again.work)
    np.testing.assert_array_equal(whole.x, again.x)


def test_the_scale_says_what_the_tolerance_is_relative_to():
    shifted = optim.Quadratic(np.diag([1.0, 3.0]), np.zeros(2))  # the minimum is 0
    result = optim.run(optim.GradientDescent(), shifted, [1.0, 1.0], tol=(1e-3, 1e-3))
    assert result.status == "converged"
    assert result.scale == max(abs(result.value), 1e-3)
    assert result.certificate.upper <= 1e-3 * result.scale
    assert optim.run(optim.GradientDescent(), shifted, [1.0, 1.0], tol=1e-3).work < result.work
    with pytest.raises(ValueError, match="scale of tol must be finite"):
        optim.run(optim.GradientDescent(), shifted, [1.0, 1.0], tol=(1e-3, -1.0))


@pytest.mark.parametrize(("answer", "status"), [(True, "stopped"), ("max_steps", "max_steps"), ("no status", None)])
def test_a_callback_ends_a_run_at_the_first_record_that_spends_a_budget(answer, status):
    def spent(name, most):
        return lambda snapshot: answer if snapshot.measures[name] >= most else None

    settings = {"tol": None, "max_steps": 200}
    solver = optim.SGA(gradients=optim.gradients.ByRows("random", 2))
    result = optim.run(solver, LOGISTIC, ZERO, callback=spent("gradients", 100), rng=0, **settings)
    compiled = optim.run(
        optim.MirrorDescent(optim_entropy()), RIDGE, ZERO, callback=spent("travelled", 3.0), **settings
    )
    if status is None:
        assert result.work == compiled.work == 200
        return
    assert (result.status, compiled.status) == (status, status)
    gradients, travelled = result.trace["gradients"], compiled.trace["travelled"]
    assert gradients[-1] >= 100 > gradients[-2]
    assert travelled[-1] >= 3.0 > travelled[-2]


def optim_entropy():
    from cumulant.geometry import Euclidean

    return Euclidean()


class CountState(NamedTuple):
    x: Any
    count: int


@dataclasses.dataclass(frozen=True)
class Stops(optim.Solver):
    """A host solver that says when it is stuck."""

    at: int
    backend: ClassVar[str] = "host"

    def init(self, problem, x0, rng):
        return CountState(x0, 0)

    def step(self, problem, state):
        return CountState(state.x, state.count + 1)

    def measure(self, problem, state):
        return {"value": problem.value(state.x), "stuck": state.count >= self.at}

    def certify(self, problem, state):
        return optim.certify_optimality(problem, state.x)


def test_a_solver_may_say_that_it_is_stuck():
    certified = optim.run(Stops(3), RIDGE, ZERO)
    assert (certified.status, certified.work) == ("rounding", 3)
    bare = optim.run(Stops(3), optim.Objective(double_well), ZERO)
    assert (bare.status, bare.work) == ("stationary", 3)


def test_early_stopping_keeps_the_best_answer_and_refuses_no_patience():
    seen = []

    def score(x):
        seen.append(float(x[0]))
        return -abs(float(x[0]) - 0.5)

    stopping = optim.EarlyStopping(score, patience=4)
    result = optim.run(optim.GradientDescent(0.1), optim.Quadratic([[1.0]], [1.0]), [0.0], callback=stopping)
    assert result.status == "stopped"
    assert stopping.scores == [-abs(x - 0.5) for x in seen]
    assert stopping.best_x[0] == min(seen, key=lambda x: abs(x - 0.5))
    assert len(seen) == int(np.argmax(stopping.scores)) + 1 + 4
    with pytest.raises(ValueError, match="patience must be a whole number of at least 1"):
        optim.EarlyStopping(score, patience=0)


def test_what_is_not_a_problem_or_a_solver_is_refused():
    with pytest.raises(TypeError, match=r"problem must be an optim\.Problem"):
        optim.run(optim.GradientDescent(), lambda x: x, ZERO)
    with pytest.raises(TypeError, match=r"solver must be an optim\.Solver"):
        optim.run("descent", RIDGE, ZERO)
