import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.graphical import SCM, BayesNet, Mechanism, factorises


def normal(rng, n):
    return rng.standard_normal(n)


def linear():
    """z -> x -> y and z -> y, linear with normal noise: every moment is known."""
    return SCM(
        {
            "y": Mechanism(lambda x, z, u: 2.0 * x - 3.0 * z + u, ("x", "z"), normal),
            "x": Mechanism(lambda z, u: 0.5 * z + u, ("z",), normal),
            "z": Mechanism(lambda u: u, (), normal),
        }
    )


def test_a_linear_model_has_the_covariance_of_the_equations():
    n = 100_000
    draws = linear().sample(n, rng=0)
    assert list(draws) == ["y", "x", "z"]
    # (I - B)^-1 (I - B)^-T for (y, x, z)
    coefficients = np.array([[0.0, 2.0, -3.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    inverse = np.linalg.inv(np.eye(3) - coefficients)
    expected = inverse @ inverse.T
    found = np.cov(np.stack(list(draws.values())), bias=True)
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n)
    assert (np.abs(found - expected) <= 4 * spread).all()


def test_do_cuts_the_arrows_into_the_variable_only():
    model, done = linear(), linear().do({"x": 1.5})
    assert set(done.graph.edges) == {("x", "y"), ("z", "y")}
    before, after = model.sample(1000, rng=4), done.sample(1000, rng=4)
    assert (after["x"] == 1.5).all()
    assert_allclose(after["z"], before["z"], rtol=0)  # what is upstream does not change, draw by draw
    assert_allclose(after["y"] - before["y"], 2.0 * (1.5 - before["x"]), atol=1e-12)  # the same noise: unit effects


def test_the_same_seed_gives_the_same_draws_and_a_generator_advances():
    model = linear()
    assert_allclose(model.sample(5, rng=1)["y"], model.sample(5, rng=1)["y"], rtol=0)
    rng = np.random.default_rng(0)
    assert not np.array_equal(model.sample(5, rng)["y"], model.sample(5, rng)["y"])
    assert model.sample(0, rng=0)["y"].shape == (0,)


def test_vectors_and_several_interventions():
    model = SCM(
        {
            "v": Mechanism(lambda u: u, (), lambda rng, n: rng.normal(size=(n, 3))),
            "s": Mechanism(lambda v, u: v.sum(-1), ["v"]),
        }
    )
    draws = model.do({"v": [1.0, 2.0, 3.0]}).sample(4, rng=0)
    assert draws["v"].shape == (4, 3)
    assert_allclose(draws["s"], 6.0)
    both = model.do({"v": np.zeros(3), "s": 7}).sample(2, rng=0)
    assert_allclose(both["s"], 7)


def binary(probability):
    """A coin whose chance of one depends on the parents."""
    return lambda *inputs: (inputs[-1] < probability(*inputs[:-1])).astype(int)


def effect(model, n=200_000):
    """(P(y = 1 | x = 1), P(y = 1 | do(x = 1))) and their standard errors, by simulation."""
    seen = model.sample(n, rng=0)
    chosen = seen["y"][seen["x"] == 1]
    set_to = model.do({"x": 1}).sample(n, rng=1)["y"]
    error = np.sqrt(0.25 / chosen.size + 0.25 / n)
    return chosen.mean(), set_to.mean(), error


HEALS = Mechanism(binary(lambda x, z: 0.2 + 0.3 * x + 0.4 * z), ("x", "z"))


def test_a_confounder_makes_seeing_and_doing_differ():
    """z -> x, z -> y, x -> y (Le Priol 2021, figure 2.1 and equation 2.38)."""
    model = SCM(
        {"z": Mechanism(binary(lambda: 0.5)), "x": Mechanism(binary(lambda z: 0.1 + 0.8 * z), ("z",)), "y": HEALS}
    )
    seeing, doing, error = effect(model)
    assert abs(doing - 0.7) < 4 * error  # 0.5 (0.5 + 0.9)
    assert abs(seeing - 0.86) < 4 * error  # P(z = 1 | x = 1) = 0.9
    assert seeing - doing > 10 * error


def test_with_the_arrow_reversed_seeing_is_doing_although_no_table_can_tell():
    """x -> z, x -> y, z -> y: the claim after equation 2.38 of Le Priol (2021).

    Both graphs are complete, so that each allows every joint table: the same table comes from either, and yet only one
    of the two models says that seeing is doing.
    """
    model = SCM(
        {"x": Mechanism(binary(lambda: 0.5)), "z": Mechanism(binary(lambda x: 0.1 + 0.8 * x), ("x",)), "y": HEALS}
    )
    seeing, doing, error = effect(model)
    assert abs(doing - 0.86) < 4 * error
    assert abs(seeing - doing) < 4 * error

    confounded = BayesNet(
        {"z": [0.5, 0.5], "x": [[0.9, 0.1], [0.1, 0.9]], "y": [[[0.8, 0.2], [0.4, 0.6]], [[0.5, 0.5], [0.1, 0.9]]]},
        parents={"x": ["z"], "y": ["x", "z"]},
    )
    reversed_arrow = BayesNet(
        {"x": [0.5, 0.5], "z": [[0.9, 0.1], [0.1, 0.9]], "y": confounded.tables["y"]},
        parents={"z": ["x"], "y": ["x", "z"]},
    )
    assert confounded.kl(reversed_arrow) < 1e-14  # one joint distribution
    for net in (confounded, reversed_arrow):
        assert factorises(confounded.marginal(["x", "y", "z"]), net.graph, variables="xyz")
    assert_allclose(reversed_arrow.do({"x": 1}).marginals()["y"], reversed_arrow.conditional("y", {"x": 1}), rtol=1e-13)
    assert_allclose(confounded.do({"x": 1}).marginals()["y"][1], 0.7, rtol=1e-13)
    assert_allclose(confounded.conditional("y", {"x": 1})[1], 0.86, rtol=1e-13)


@pytest.mark.parametrize(
    ("mechanisms", "error", "words"),
    [
        ({}, ValueError, "at least one"),
        ({"a": lambda u: u}, TypeError, "must be a Mechanism; got function"),
        ({"a": Mechanism(lambda b, u: u, ("b",))}, ValueError, "'b', which is not one of the variables"),
        ({"a": Mechanism(lambda b, u: u, ("b",)), "b": Mechanism(lambda a, u: u, ("a",))}, ValueError, "cycle"),
    ],
)
def test_impossible_models_are_refused(mechanisms, error, words):
    with pytest.raises(error, match=words):
        SCM(mechanisms)


def test_wrong_draws_are_refused_by_name():
    with pytest.raises(ValueError, match=r"'a' must return 3 draws; got shape \(2,\)"):
        SCM({"a": Mechanism(lambda u: u[:2])}).sample(3, rng=0)
    with pytest.raises(ValueError, match="'a' returned NaN at draw 1"):
        SCM({"a": Mechanism(lambda u: np.array([0.0, np.nan, 1.0]))}).sample(3, rng=0)
    with pytest.raises(ValueError, match="n must be"):
        linear().sample(-1)
    with pytest.raises(ValueError, match="'w' is not a variable"):
        linear().do({"w": 1})
