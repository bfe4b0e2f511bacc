"""NumPy in, float64 NumPy out; JAX in, JAX out: for everything public here that takes arrays and is called directly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim import interior_point as ip
from cumulant.optim.analysis.flows import Exponential, Hadamard, PositiveSemidefinite, PowerMap, Signed
from cumulant.optim.problems.penalties import NoPenalty

V, U = np.array([0.7, 0.1, 0.4]), np.array([0.2, -0.3, 0.1])
PENALTIES = [
    NoPenalty(), optim.L1(0.3), optim.L1(np.array([0.1, 0.2, 0.0])), optim.ElasticNet(0.3, 0.7),
    optim.GroupLasso([0, 0, 1], 0.3), optim.GroupLasso([0, 0, 1], [0.3, 0.2]), optim.Box(-0.5, 0.5),
    optim.NonNegative(), optim.Simplex(), optim.L1Ball(0.7), optim.L2Ball(0.7),
]  # fmt: skip
LOSSES = [optim.LogisticLoss(), optim.SquaredHingeLoss(), optim.SmoothedHingeLoss(0.7)]
SETS = [ip.Bounds(-0.1, 2.3), ip.QuadraticConstraints(np.eye(3)[None] / 3, np.ones((1, 3)) / 7, [-2.0])]


def calls():
    for each in PENALTIES:
        name = type(each).__name__
        yield f"{name}.value", each.value, (V,)
        yield f"{name}.prox", each.prox, (V, 0.3)
        yield f"{name}.conjugate_point", each.conjugate_point, (U,)
        yield f"{name}.dual_scale", each.dual_scale, (U, 1e-3)
    for each in LOSSES:
        for method in ("value", "slope", "curvature"):
            yield f"{type(each).__name__}.{method}", getattr(each, method), (V,)
        yield f"{type(each).__name__}.conjugate", each.conjugate, (-V,)
    for each in SETS:
        name, m = type(each).__name__, each.value(V).size
        weights = np.linspace(0.1, 0.7, m)
        for method, arguments in {
            "value": (V,), "jacobian": (V,), "jacobian_apply": (V, U), "jacobian_transpose": (V, weights),
            "lagrangian_hessian": (V, weights), "solve": (V, weights, 0.7, weights, U),
            "max_step": (V, -each.value(V), U, 0.7), "multipliers": (V, U), "reach": (V, U),
            "lift": (V, -each.value(V), 0.3),
        }.items():  # fmt: skip
            yield f"{name}.{method}", getattr(each, method), arguments
    for each, z in [(PowerMap(3.0), V), (Exponential(), V), (Signed(), V[:2]), (Hadamard(), V[:2])]:
        yield f"{type(each).__name__}.point", each.point, (z,)
    yield "PositiveSemidefinite.point", PositiveSemidefinite().point, (np.outer(V, U),)
    yield "barrier_from_gap", ip.barrier_from_gap, (0.3, V, V)
    yield "MehrotraSigma.sigma", ip.MehrotraSigma().sigma, (0.7, 0.3)
    yield "damped_bb", ip.damped_bb, (1.3, V, U, 0.1)
    yield "damped_bfgs", ip.damped_bfgs, (np.eye(3) * 1.3, V, U)
    yield "sherman_morrison", ip.sherman_morrison, (np.eye(3) * 1.3, V, U)
    yield "soft_threshold", optim.soft_threshold, (V, 0.3)
    yield "LeastSquares.term_gradient", optim.LeastSquares(np.eye(3), V).term_gradient, (U, np.array([0, 2]))


def floats(answer):
    return [leaf for leaf in jax.tree.leaves(answer) if not isinstance(leaf, int)]


# In one test, not one for each: what is tested is that none was forgotten.
@pytest.mark.parametrize("narrow", [False, True], ids=["NumPy", "JAX"])
def test_the_rule_of_precision(narrow):
    wrong = []
    for name, function, arguments in calls():
        if narrow:
            arguments = [jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
            if not name.endswith(("value", "prox", "point", "gap")):
                continue
        answer = floats(function(*arguments))
        fine = (
            all(isinstance(leaf, jax.Array) and leaf.dtype != np.float64 for leaf in answer)
            if narrow
            else all(isinstance(leaf, np.ndarray | np.generic) and leaf.dtype == np.float64 for leaf in answer)
        )
        if not (answer and fine):
            wrong.append((name, [(type(leaf).__name__, leaf.dtype) for leaf in answer]))
    assert not wrong


def test_steps_of_a_schedule_are_in_double_precision():
    assert float(optim.InverseSqrt(0.1, 3.0)(7)) == 0.1 / (1 + np.sqrt(7 / 3.0))
    assert isinstance(optim.InverseSqrt(0.1, 3.0)(jnp.arange(3)), jax.Array)


def test_a_penalty_in_float64_equals_its_formula():
    """Where float32 would be off in the eighth digit."""
    assert optim.L1(0.3).value(V) == pytest.approx(0.36, rel=1e-15)
    assert optim.ElasticNet(0.3, 0.7).value(V) == pytest.approx(0.36 + 0.35 * 0.66, rel=1e-15)
    group = optim.GroupLasso([0, 0, 1], 0.3)
    assert group.value(V) == pytest.approx(0.3 * (np.sqrt(0.5) + 0.4), rel=1e-15)
    np.testing.assert_allclose(group.prox(V, 0.5), V * (1 - 0.15 / np.sqrt([0.5, 0.5, 0.16])), rtol=1e-14)
