"""Unknowns in a pytree, through `run`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cumulant import optim
from cumulant.optim.driver.flattening import is_tree

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
