"""Names of variables and states: every question, in both directions, against the same model by numbers."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from cumulant.errors import DomainError
from cumulant.graphical import (
    BoltzmannMachine,
    CausalFactorGraph,
    FactorGraph,
    Ising,
    PairwiseMRF,
    Potts,
    noisy_or,
    read_uai,
    write_uai,
)

RNG = np.random.default_rng(5)
NAMES = ["rain", "hose", "grass"]
TWO, THREE = ["no", "yes"], ["dry", "damp", "wet"]
TABLES = [((0, 1), RNG.normal(size=(2, 2))), ((1, 2), RNG.normal(size=(2, 3))), ((2,), RNG.normal(size=3))]
MIXED = {"rain": TWO, "hose": TWO, "grass": THREE}
EDGES = [(0, 1), (1, 2)]

MODELS = {
    "factor graph": (FactorGraph([2, 2, 3], TABLES), {"states": MIXED}),
    "pairwise": (PairwiseMRF([[0, 1], [0.3, 0], [0, 0, 1]], EDGES, [t for _, t in TABLES[:2]]), {"states": MIXED}),
    "ising": (Ising(EDGES, [0.5, -0.7], [0.1, 0.2, 0.3]), {"states": TWO}),
    "boltzmann": (BoltzmannMachine(EDGES, [0.5, -0.7], [0.1, 0.2, 0.3]), {"states": TWO}),
    "potts": (Potts(EDGES, 0.4, RNG.normal(size=(3, 3))), {"states": THREE}),
    "causal": (
        CausalFactorGraph([2, 2, 2], [((0,), [0.0, 1.0]), ((1,), [0.5, 0.0])], [noisy_or(2, [0, 1], [0.9, 0.4], 0.1)]),
        {"states": TWO},
    ),
}


def named(name):
    plain, labels = MODELS[name]
    match plain:
        case PairwiseMRF():
            return PairwiseMRF([[0, 1], [0.3, 0], [0, 0, 1]], EDGES, [t for _, t in TABLES[:2]], names=NAMES, **labels)
        case FactorGraph():
            tables = [([NAMES[v] for v in scope], table) for scope, table in TABLES]
            return FactorGraph([2, 2, 3], tables, names=NAMES, **labels)
        case Ising() | BoltzmannMachine():
            return type(plain)(EDGES, plain.couplings, plain.fields, names=NAMES, **labels)
        case Potts():
            return Potts(EDGES, plain.couplings, plain.fields.reshape(3, 3), names=NAMES, **labels)
    tables = [(["rain"], [0.0, 1.0]), (["hose"], [0.5, 0.0])]
    effect = noisy_or("grass", ["rain", "hose"], [0.9, 0.4], 0.1)
    return CausalFactorGraph([2, 2, 2], tables, [effect], names=NAMES, **labels)


@pytest.mark.parametrize("name", MODELS)
def test_names_and_numbers_give_the_same_answers(name, tmp_path):
    plain, model = MODELS[name][0], named(name)
    states = [model.labels.allowed(v) for v in range(3)]
    values = [plain.labels.allowed(v) for v in range(3)]
    assert_allclose(model.log_partition(), plain.log_partition(), rtol=1e-13)
    for v, variable in enumerate(NAMES):
        assert_allclose(model.marginal(variable), plain.marginal(v), rtol=1e-13)
        assert_allclose(model.marginals()[variable], model.marginals()[v], rtol=0)
        for state, value in zip(states[v], values[v], strict=True):
            given, by_number = model.given({variable: state}), model.given({v: value})
            assert given == by_number
            assert_allclose(given.marginals()[(v + 1) % 3], plain.given({v: value}).marginals()[(v + 1) % 3])
    assert_allclose(model.marginal(["grass", "rain"]), plain.marginal([2, 0]), rtol=1e-13)
    rows, numbers = np.array(list(itertools.product(*states))), np.array(list(itertools.product(*values)))
    assert_allclose(np.exp(plain.log_prob(numbers)).sum(), 1.0)
    joint = np.exp(plain.log_prob(numbers)).reshape([len(some) for some in states])
    assert_allclose(model.marginal(["rain", "hose"]), joint.sum(axis=2))
    assert_allclose(model.log_prob(rows), plain.log_prob(numbers), rtol=1e-12)
    assert_allclose(model.log_prob(numbers), plain.log_prob(numbers), rtol=1e-12)
    frame = pd.DataFrame(rows, columns=NAMES)[["grass", "rain", "hose"]]
    assert_allclose(model.log_prob(frame), plain.log_prob(numbers), rtol=1e-12)
    assert_allclose(model.log_prob(dict(zip(NAMES, rows[3], strict=True))), plain.log_prob(numbers[3]), rtol=1e-12)
    x, score = model.map()
    best, same = plain.map()
    assert_allclose(score, same)
    assert [states[v].index(value) for v, value in enumerate(x)] == [values[v].index(w) for v, w in enumerate(best)]
    assert model.marginal_map(["grass"])[0] in states[2]
    drawn, counted = model.sample(50, rng=1), plain.sample(50, rng=1)
    for v in range(3):
        assert_array_equal([states[v].index(s) for s in drawn[:, v]], [values[v].index(s) for s in counted[:, v]])
    if name != "causal":  # its chains have impossible states
        chains = model.sample(5, rng=1, method="systematic", chains=2, burn_in=3)
        assert set(np.unique(chains.values)) <= {value for some in values for value in some}  # R-hat needs numbers
    assert set(drawn[:, 2]) <= set(states[2])
    again = type(model).load(model.given({"hose": states[1][1]}).save(tmp_path / "model.npz"))
    assert again == model.given({"hose": states[1][1]})
    assert again.given({"rain": states[0][0]}).labels.names == tuple(NAMES)


@pytest.mark.parametrize("name", ["ising", "potts", "boltzmann"])
def test_names_stay_with_the_factor_graph(name):
    model = named(name)
    tables = model.given({"rain": model.labels.allowed(0)[0]}).to_factor_graph()
    assert tables.labels.names == tuple(NAMES)
    assert_allclose(tables.marginal("grass"), model.given({0: model.labels.allowed(0)[0]}).marginal("grass"))


def test_data_frames_name_variables_and_states():
    prior = pd.DataFrame({"rain": ["no", "yes"], "value": np.log([0.8, 0.2])})
    wet = pd.DataFrame(
        {"rain": ["no", "no", "yes", "yes"], "grass": ["dry", "wet"] * 2, "value": np.log([0.9, 0.1, 0.3, 0.7])}
    )
    model = FactorGraph.from_pandas([prior, wet])
    assert model.labels.names == ("rain", "grass")
    assert_allclose(model.given({"grass": "wet"}).marginal("rain"), np.array([0.08, 0.14]) / 0.22)
    numbers = FactorGraph.from_pandas([wet.assign(rain=[0, 0, 1, 1], grass=[0, 1, 0, 1])])
    assert numbers.labels.states is None
    assert_allclose(numbers.given({"rain": 1}).marginal("grass"), [0.3, 0.7])
    with pytest.raises(ValueError, match="names in all columns or in none; column 'rain' has numbers"):
        FactorGraph.from_pandas([wet.assign(rain=[0, 0, 1, 1])])


def test_a_uai_file_keeps_numbers_alone(tmp_path):
    model = named("factor graph")
    write_uai(tmp_path / "model.uai", model)
    again = read_uai(tmp_path / "model.uai")
    assert again.labels.names is None
    assert_allclose(again.marginals()[2], model.marginals()["grass"])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: m.given({"snow": 1}), ValueError, "no variable 'snow': there are rain, hose, grass"),
        (
            lambda m: m.given({"rain": "maybe"}),
            DomainError,
            r"'rain' has no state 'maybe': its states are \('no', 'yes'\)",
        ),
        (lambda m: m.given({"rain": "no"}).given({0: "yes"}), ValueError, "already given the value 'no'"),
        (lambda m: m.marginal("snow"), ValueError, "no variable 'snow'"),
        (lambda m: m.marginals()["snow"], KeyError, "no variable 'snow'"),
        (lambda m: m.log_prob(["no", "no", "snow"]), DomainError, "'grass' has no state 'snow'"),
        (lambda m: m.log_prob({"rain": "no", "hose": "no"}), ValueError, "'grass' is missing"),
        (lambda m: FactorGraph([2], [], names=["a", "b"]), ValueError, "one name for each of the 1 variables; got 2"),
        (lambda m: FactorGraph([2, 2], [], names=["a", "a"]), ValueError, "'a' comes twice"),
        (lambda m: FactorGraph([2], [], names=[0]), ValueError, "whole numbers mean positions"),
        (lambda m: FactorGraph([2], [], states=[["a"]]), ValueError, "must be 2 names; got 1"),
        (lambda m: FactorGraph([2, 2], [], states={0: TWO}), ValueError, "no entry for variable 1"),
        (lambda m: FactorGraph([2], [((["b"]), [0, 0])], names=["a"]), ValueError, "no variable 'b'"),
    ],
)
def test_unknown_names_are_refused_with_those_there_are(make, error, message):
    with pytest.raises(error, match=message):
        make(named("factor graph"))
