"""Unknowns in a pytree, through `run`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.problems.trees import is_tree

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)


class Line(NamedTuple):
    weights: object
    intercept: object


def loss(line, data):
    x, y = data
    return jnp.mean((x @ line["weights"] + line["intercept"] - y) ** 2) / 2 + 0.05 * jnp.sum(line["weights"] ** 2)


def named_loss(line, data):
    return loss(line._asdict(), data)


def exact():
    centred = X - X.mean(axis=0)
    weights = np.linalg.solve(centred.T @ centred / 20 + 0.1 * np.eye(3), centred.T @ (Y - Y.mean()) / 20)
    return weights, Y.mean() - X.mean(axis=0) @ weights


START = {"weights": np.zeros(3), "intercept": np.zeros(())}


@pytest.mark.parametrize("solver", [optim.Newton(), optim.LBFGS(), optim.GradientDescent(optim.Armijo())], ids=str)
def test_a_dictionary_of_arrays_is_minimised_over(solver):
    problem = optim.Objective(loss, (X, Y), strong_convexity=0.01)
    result = optim.run(solver, problem, START, tol=1e-12, max_steps=5000)
    weights, intercept = exact()
    assert result.status == "converged"
    assert result.name.endswith("on Objective")
    assert type(result.x["weights"]) is np.ndarray
    assert result.x["weights"].dtype == np.float64
    np.testing.assert_allclose(result.x["weights"], weights, atol=1e-5)
    np.testing.assert_allclose(result.x["intercept"], intercept, atol=1e-5)
    result.certificate.verify(result.subject)


def test_named_tuples_and_jax_arrays_come_back_as_they_were():
    problem = optim.Objective(named_loss, (jnp.asarray(X), jnp.asarray(Y)))
    start = Line(jnp.zeros(3), jnp.zeros(()))
    seen = []
    result = optim.run(optim.GradientDescent(0.3), problem, start, tol=None, max_steps=50, callback=seen.append)
    assert isinstance(result.x, Line)
    assert isinstance(result.x.weights, jax.Array)
    assert isinstance(seen[0].x, Line)
    np.testing.assert_allclose(result.x.weights, exact()[0], atol=1e-3)


def test_checkpoints_of_trees(tmp_path):
    problem = optim.Objective(loss, (X, Y))
    settings = {"tol": None, "checkpoint": tmp_path / "tree"}
    whole = optim.run(optim.GradientDescent(0.3), problem, START, tol=None, max_steps=20)
    optim.run(optim.GradientDescent(0.3), problem, START, max_steps=7, **settings)
    again = optim.run(optim.GradientDescent(0.3), problem, START, max_steps=20, **settings)
    for name in START:
        np.testing.assert_array_equal(whole.x[name], again.x[name])
    other = {"weights": np.zeros(3), "intercept": np.zeros(1)}
    with pytest.raises(ValueError, match="another"):
        optim.run(optim.GradientDescent(0.3), problem, other, max_steps=20, **settings)


def test_what_is_a_tree():
    assert not any(map(is_tree, [1.0, [1.0, 2.0], [[1.0], [2.0]], (1.0, 2.0), np.ones(2), jnp.ones(2)]))
    assert all(map(is_tree, [{"a": 1.0}, (np.ones(2), 1.0), Line(1.0, 2.0)]))


def test_a_tree_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        optim.run(optim.Newton(), optim.Objective(loss, (X, Y)), {"weights": [0, np.nan, 0], "intercept": 0.0})


# Penalties ------------------------------------------------------------------------------------------------------------


def squared_loss(line, data):
    x, y = data
    return jnp.mean((x @ line["weights"] + line["intercept"] - y) ** 2) / 2


def vector_loss(x, data):
    return squared_loss({"intercept": x[0], "weights": x[1:]}, data)


def solved(penalty, start=START, function=squared_loss, **known):
    problem = optim.Composite(optim.Objective(function, (X, Y), **known), penalty)
    solver = optim.AcceleratedProximalGradient(restart=True)
    return optim.run(solver, problem, start, tol=1e-9, residual_tol=1e-10, max_steps=20_000)


def test_a_tree_of_penalties_has_one_for_each_part():
    result = solved({"weights": optim.L1(0.3), "intercept": None})
    flat = solved(optim.L1([0.0, 0.3, 0.3, 0.3]), np.zeros(4), vector_loss)
    assert result.status == flat.status == "stationary"
    assert np.sum(result.x["weights"] == 0) == np.sum(flat.x == 0) > 0
    np.testing.assert_allclose(result.x["weights"], flat.x[1:], atol=1e-9)
    np.testing.assert_allclose(result.x["intercept"], flat.x[0], atol=1e-9)
    assert result.value == pytest.approx(flat.value, abs=1e-14)


@pytest.mark.parametrize("penalty", [optim.ElasticNet(0.1, 0.2), optim.Box(-0.1, 0.3), optim.L2Ball(0.3)], ids=str)
def test_one_penalty_speaks_of_all_leaves(penalty):
    known = {"convex": True, "smoothness": float(np.linalg.norm(X, 2) ** 2 / 20 + 1)}
    result, flat = solved(penalty, **known), solved(penalty, np.zeros(4), vector_loss, **known)
    np.testing.assert_allclose(result.x["weights"], flat.x[1:], atol=1e-8)
    assert result.status == flat.status == "converged"
    assert result.certificate.verify(result.subject).upper <= result.certificate.upper
    assert result.certificate.upper == pytest.approx(flat.certificate.upper, rel=1e-3, abs=1e-13)


def test_sets_and_penalties_beside_each_other_are_certified():
    parts = {"weights": optim.Box(-0.1, 0.3), "intercept": optim.ElasticNet(0.1, 1.0)}
    result = solved(parts, {"weights": np.full(3, 9.0), "intercept": 1.0}, convex=True)
    assert result.status == "converged"
    assert np.all((result.x["weights"] >= -0.1) & (result.x["weights"] <= 0.3))
    fresh = result.certificate.verify(result.subject)
    assert "x is in the set, up to rounding" in {each.text for each in fresh.assumptions}
    best = solved(parts, convex=True, strong_convexity=1e-4)
    assert result.value - best.value <= result.certificate.upper + 1e-14


def shrink_all(v, step, weight):
    return jax.tree.map(lambda leaf: leaf / (1 + step * weight), v)


def half_squares(x, weight):
    return weight * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(x)) / 2


def test_a_proximal_map_of_your_own_takes_the_tree():
    own = solved(optim.ProximalMap(shrink_all, half_squares, 0.3), strong_convexity=1e-3)
    ours = solved(optim.ElasticNet(0.0, 0.3))
    np.testing.assert_allclose(own.x["weights"], ours.x["weights"], atol=1e-8)
    assert own.status == "stationary"
    assert own.certificate is None  # nothing is known of its conjugate
    with pytest.raises(TypeError, match=r"prox must be a function of \(v, step, data\)"):
        optim.ProximalMap(half_squares, half_squares)


def test_trees_of_penalties_that_do_not_fit():
    with pytest.raises(ValueError, match="penalty must be a tree that begins as x0 does"):
        solved({"weight": optim.L1(0.1), "intercept": None})
    for wrong in (None, "l1", {"weights": 0.1, "intercept": None}, optim.L1):
        with pytest.raises(TypeError, match="penalty must have the methods prox and value"):
            optim.Composite(optim.Objective(squared_loss, (X, Y)), wrong)
