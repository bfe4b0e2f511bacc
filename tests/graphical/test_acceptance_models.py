"""Every discrete model answers every question, by every method: one walk over all of them."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.errors import DomainError, FileFormatError, TooWide
from cumulant.graphical import (
    BoltzmannMachine,
    CausalFactorGraph,
    FactorGraph,
    Ising,
    PairwiseMRF,
    Potts,
    noisy_or,
)

RNG = np.random.default_rng(11)
EDGES = [(0, 1), (1, 2), (2, 0)]
STRENGTHS, LEAK = (0.8, 0.3), 0.05


def noisy_table():
    """``log p(x_2 | x_0, x_1)`` of the noisy-OR below, from its definition."""
    off = [[(1 - LEAK) * (1 - STRENGTHS[0]) ** a * (1 - STRENGTHS[1]) ** b for b in (0, 1)] for a in (0, 1)]
    return np.log(np.stack([off, 1 - np.array(off)], axis=-1))


FIELDS, TABLE = RNG.normal(size=(3, 3)), RNG.normal(size=(2, 3))
MODELS = {
    "FactorGraph": FactorGraph([2, 3, 1], [((1, 0), TABLE.T), ((0,), [0.3, -0.2]), ((), 0.7), ((2, 1), [[0.1, 0, 1]])]),
    "PairwiseMRF": PairwiseMRF([[0.0, 1.0], [0.5, 0.0, 0.2]], [(0, 1)], [TABLE]),
    "Ising": Ising(EDGES, FIELDS[0], FIELDS[1]),
    "BoltzmannMachine": BoltzmannMachine(EDGES, FIELDS[0], FIELDS[1]),
    "Potts": Potts(EDGES, FIELDS[0], FIELDS),
    "CausalFactorGraph": CausalFactorGraph([2, 2, 2], [((0,), [0.0, 0.5])], [noisy_or(2, [0, 1], STRENGTHS, LEAK)]),
}
EXACT = (None, "elimination", "enumeration")
APPROXIMATE = ("mean_field", "structured_mean_field", "loopy", "double_loop")


def score(name, x):
    """``log p(x) + A`` of the definition."""
    if name == "FactorGraph":
        return TABLE[x[0], x[1]] + (0.3, -0.2)[x[0]] + 0.7 + (0.1, 0, 1)[x[1]]
    if name == "PairwiseMRF":
        return TABLE[x[0], x[1]] + x[0] + (0.5, 0.0, 0.2)[x[1]]
    if name == "CausalFactorGraph":
        return 0.5 * x[0] + noisy_table()[tuple(x)]
    if name == "Potts":
        return sum(FIELDS[i, x[i]] for i in range(3)) + sum(
            J * (x[i] == x[j]) for J, (i, j) in zip(FIELDS[0], EDGES, strict=True)
        )
    return FIELDS[1] @ x + sum(J * x[i] * x[j] for J, (i, j) in zip(FIELDS[0], EDGES, strict=True))


def states_of(model):
    return np.array(list(itertools.product(*(model.labels.allowed(v) for v in range(model.n_variables)))), dtype=int)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seen", [False, True], ids=["whole", "given"])
def test_every_question_by_every_exact_method(name, seen, tmp_path):
    model = MODELS[name]
    states = states_of(model)
    scores = np.array([score(name, x) for x in states])
    if seen:
        model = model.given({0: int(states[-1, 0])})
        scores[states[:, 0] != states[-1, 0]] = -np.inf
    log_z = np.logaddexp.reduce(scores)
    p = np.exp(scores - log_z)
    there = p > 0
    other = MODELS[name]
    log_q = np.array([score(name, x) for x in states])
    log_q -= np.logaddexp.reduce(log_q)
    divergence = np.sum(p[there] * ((scores - log_z)[there] - log_q[there]))
    for method in EXACT:
        assert_allclose(model.log_partition(method=method), log_z, rtol=1e-12)
        single = model.marginals(method=method)
        for v in range(model.n_variables):
            values = sorted(set(states[:, v].tolist()))
            assert_allclose(single[v], [p[states[:, v] == x].sum() for x in values], atol=1e-12)
        assert_allclose(model.entropy(method=method), -np.sum(p[there] * (scores - log_z)[there]), atol=1e-12)
        assert_allclose(model.kl(other, method=method), divergence, atol=1e-12)
        assert_allclose(model.log_prob(states, method=method)[there], (scores - log_z)[there], atol=1e-12)
        assert np.isneginf(model.log_prob(states, method=method)[~there]).all()
        mean = model.mean(method=method)
        assert mean.shape == model.theta.shape == (model.family.dim,)
        if name != "CausalFactorGraph":  # theta of that has the tables of hidden variables too
            assert_allclose(mean, p @ model.family.statistics(states), atol=1e-12)
            T = model.family.statistics(states) - mean
            assert_allclose(model.covariance(), T.T @ (p[:, None] * T), atol=1e-12)
    n = 4000
    draws = model.sample(n, rng=0)
    for x, q in zip(states, p, strict=True):
        share = (draws == x).all(axis=1).mean()
        assert abs(share - q) <= 4.5 * np.sqrt(q * (1 - q) / n)
    again = type(model).load(model.save(tmp_path / "model"))
    assert again == model
    assert again.evidence == model.evidence
    assert_allclose(again.log_partition(), log_z, rtol=1e-12)
    with pytest.raises(FileFormatError):
        (Ising if name != "Ising" else Potts).load(tmp_path / "model.npz")


@pytest.mark.parametrize("name", MODELS)
def test_every_question_by_every_approximation(name):
    model = MODELS[name]
    states, log_z = states_of(model), model.log_partition()
    for method in APPROXIMATE:
        value = model.log_partition(method=method)
        assert np.isfinite(value)
        if method.endswith("mean_field"):
            assert value <= log_z
        single = model.marginals(method=method)
        assert all(abs(np.sum(q) - 1) < 1e-9 and np.min(q) >= 0 for q in single)
        assert len(single) == model.n_variables
        mean = model.mean(method=method)
        assert mean.shape == model.theta.shape
        assert np.isfinite(mean).all()
        assert np.isfinite([model.entropy(method=method), model.kl(MODELS[name], method=method)]).all()
        assert_allclose(model.log_prob(states, method=method) + value, model.log_prob(states) + log_z, atol=1e-9)
    for method in ("systematic", "random", "chromatic", "blocked"):
        if name == "CausalFactorGraph":
            with pytest.raises(DomainError, match="impossible"):
                model.sample(2, rng=0, method=method, chains=2, burn_in=2)
        else:
            draws = model.sample(2, rng=0, method=method, chains=2, burn_in=2)
            assert draws.values.shape == (2, 2, model.n_variables)


def test_entropy_of_wide_causal_models_is_refused_until_the_causes_are_given():
    n = 40
    prior = [((i,), np.log([0.9, 0.1])) for i in range(n)]
    model = CausalFactorGraph([2] * (n + 1), prior, [noisy_or(n, range(n), [0.5] * n, leak=0.1)])
    with pytest.raises(TooWide, match="sample"):
        model.entropy()
    given = model.given({i: i % 2 for i in range(n - 2)})
    p_off = 0.9 * 0.5 ** ((n - 2) // 2)  # before the two causes that are left
    expected = 0.0
    for a, b in itertools.product((0, 1), repeat=2):
        q = (0.1 if a else 0.9) * (0.1 if b else 0.9)
        for r in (p_off * 0.5 ** (a + b), 1 - p_off * 0.5 ** (a + b)):
            expected -= q * r * np.log(q * r)
    assert_allclose(given.entropy(), expected, rtol=1e-11)
    dense = given.to_factor_graph()
    assert_allclose(dense.log_partition(), given.log_partition(), rtol=1e-12)
    assert given.kl(dense) < 1e-12
    assert dense.kl(given) < 1e-12


def test_tables_from_data_frames():
    pandas = pytest.importorskip("pandas")
    pair = pandas.DataFrame({1: [0, 1, 2, 0, 1, 2], 0: [0, 0, 0, 1, 1, 1], "value": TABLE.ravel()})
    constant = pandas.DataFrame({"value": [0.7]})
    single = pandas.DataFrame({0: [1, 0], "value": [-0.2, 0.3]})
    model = FactorGraph.from_pandas([pair, constant, single])
    assert model == FactorGraph([2, 3], [((1, 0), TABLE.T), ((), 0.7), ((0,), [0.3, -0.2])])
    sparse = FactorGraph.from_pandas([pair[:-1]], cardinalities=[2, 3, 4], missing=-np.inf)
    assert sparse.log_prob([1, 2, 0]) == -np.inf
    assert_allclose(sparse.marginals()[2], 0.25)
    for frames, options, message in (
        ([pair[:-1]], {}, "5 rows for 6 states"),
        ([pair.rename(columns={"value": "log"})], {}, "no column 'value'"),
        ([pair.rename(columns={0: "a"})], {}, "number of a variable"),
        ([pair], {"cardinalities": [2, 2]}, "do not have"),
        ([pandas.concat([pair, pair[:1]])], {}, "one row for each state"),
        ([pair.assign(value=np.nan)], {}, "NaN"),
        ([pair.astype({0: float})], {}, "whole numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            FactorGraph.from_pandas(frames, **options)
