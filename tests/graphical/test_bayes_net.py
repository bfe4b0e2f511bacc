import itertools
import time
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from cumulant.errors import DomainError, FileFormatError, TooWide
from cumulant.graphical import BayesNet, read_bif, write_bif
from tests.graphical.networks import joint_table, random_net


@pytest.fixture(scope="module")
def net():
    """Four variables given out of topological order; "d" has two parents, not in the order of the axes."""
    rng = np.random.default_rng(0)
    return BayesNet(
        {
            "d": rng.dirichlet(np.ones(4), size=(2, 3)),
            "b": rng.dirichlet(np.ones(3), size=2),
            "a": rng.dirichlet(np.ones(2)),
            "c": rng.dirichlet(np.ones(2), size=2),
        },
        parents={"d": ("c", "b"), "b": ("a",), "c": ("a",)},
    )


def joint_by_hand(net):
    """``p(d, b, a, c)`` by the definition, one state at a time."""
    t = net.tables
    p = np.zeros((4, 3, 2, 2))
    for d, b, a, c in product(*map(range, p.shape)):
        p[d, b, a, c] = t["a"][a] * t["b"][a, b] * t["c"][a, c] * t["d"][c, b, d]
    return p


def test_the_table_is_the_product_of_the_conditionals(net):
    assert net.variables == ("d", "b", "a", "c")
    assert net.cardinalities == (4, 3, 2, 2)
    assert_allclose(net.table(), joint_by_hand(net), rtol=1e-13)
    assert_allclose(net.table().sum(), 1.0, rtol=1e-13)


def test_log_prob_is_that_of_the_table(net):
    x = np.array(list(product(*map(range, net.cardinalities))))
    assert_allclose(net.log_prob(x), np.log(joint_by_hand(net)).ravel(), rtol=1e-12)
    assert net.log_prob(x.reshape(4, 3, 4, 4)).shape == (4, 3, 4)
    assert net.log_prob([0, 1, 1, 0]).shape == ()


def test_marginals_and_conditionals_are_those_of_the_table(net):
    p = joint_by_hand(net)
    assert_allclose(net.marginals()["b"], p.sum(axis=(0, 2, 3)), rtol=1e-13)
    assert_allclose(net.marginal(["a", "d"]), p.sum(axis=(1, 3)).T, rtol=1e-13)
    assert_allclose(net.marginal(["c", "d", "b"]), p.sum(axis=2).transpose(2, 0, 1), rtol=1e-13)
    assert_allclose(net.conditional("a", {"d": 3, "c": 1}), p[3, :, :, 1].sum(0) / p[3, :, :, 1].sum(), rtol=1e-13)
    assert_allclose(net.conditional(["c", "a"], {"b": 2}), (p[:, 2].sum(0) / p[:, 2].sum()).T, rtol=1e-13)


def test_entropy_and_divergence_are_those_of_the_table(net):
    other = net.do({"b": [0.2, 0.3, 0.5]})
    p, q = (
        joint_by_hand(net),
        joint_by_hand(BayesNet({**net.tables, "b": np.tile([0.2, 0.3, 0.5], (2, 1))}, net.parents)),
    )
    assert_allclose(net.entropy(), stats.entropy(p.ravel()), rtol=1e-12)
    assert_allclose(net.kl(other), stats.entropy(p.ravel(), q.ravel()), rtol=1e-11)
    assert net.kl(net) == 0.0


def test_the_divergence_does_not_depend_on_the_order_of_the_variables(net):
    shuffled = BayesNet({name: net.tables[name] for name in "acbd"}, net.parents)
    assert abs(net.kl(shuffled)) < 1e-14
    other = net.do({"a": [0.5, 0.5]})
    assert_allclose(net.kl(other), shuffled.kl(other), rtol=1e-12)


def test_draws_have_the_frequencies_of_the_table(net):
    n = 40_000
    x = net.sample(n, rng=1)
    assert x.shape == (n, 4)
    counts = np.zeros(net.cardinalities)
    np.add.at(counts, tuple(x.T), 1)
    assert stats.chisquare(counts.ravel(), n * net.table().ravel()).pvalue > 1e-3
    assert np.array_equal(x, net.sample(n, rng=1))
    assert not np.array_equal(x, net.sample(n, rng=2))


def test_a_state_of_probability_zero_is_never_drawn():
    third = np.full(3, 1 / 3)
    net = BayesNet({"x": [*(third / third.sum()), 0.0]})
    assert net.sample(100_000, rng=0).max() == 2
    assert net.log_prob([3]) == -np.inf


def test_do_is_the_truncated_product(net):
    done = net.do({"b": 2})
    p = joint_by_hand(net)
    cut = p / net.tables["b"].T[None, :, :, None]  # drop p(b | a), keep the rest
    expected = np.zeros_like(p)
    expected[:, 2] = cut[:, 2]
    assert_allclose(done.table(), expected, rtol=1e-12)
    assert_allclose(done.marginals()["a"], net.marginals()["a"], rtol=1e-13)
    assert set(done.graph.edges) == {("a", "c"), ("c", "d"), ("b", "d")}


def test_do_by_a_distribution_is_the_mixture_of_do_by_states(net):
    weights = [0.2, 0.3, 0.5]
    mixture = sum(w * net.do({"b": b}).table() for b, w in enumerate(weights))
    assert_allclose(net.do({"b": weights}).table(), mixture, rtol=1e-12)


def test_the_scm_of_a_network_has_its_distribution_before_and_after_do(net):
    n = 40_000
    for model, tables in ((net.scm(), net), (net.scm().do({"c": 1}), net.do({"c": 1}))):
        draws = model.sample(n, rng=3)
        for name, expected in tables.marginals().items():
            found = np.bincount(draws[name], minlength=expected.size) / n
            assert (np.abs(found - expected) <= 4 * np.sqrt(expected * (1 - expected) / n)).all()


def test_a_long_chain_is_asked_by_elimination_and_refuses_its_joint_table():
    chain = BayesNet(
        {i: np.full((3, 3), 1 / 3) if i else np.full(3, 1 / 3) for i in range(40)}, {i: [i - 1] for i in range(1, 40)}
    )
    with pytest.raises(TooWide, match=r"40 variables.*ask for marginals"):
        chain.table()
    assert_allclose(chain.entropy(), 40 * np.log(3))
    assert chain.kl(chain) == pytest.approx(0, abs=1e-12)
    assert_allclose(chain.conditional(0, {1: 0}), np.full(3, 1 / 3))
    assert_allclose(list(chain.marginals().values()), np.full((40, 3), 1 / 3))
    assert chain.sample(10, rng=0).shape == (10, 40)
    assert_allclose(chain.log_prob(np.zeros(40, dtype=int)), -40 * np.log(3))


def test_the_room_can_be_set():
    net = BayesNet({"a": [0.5, 0.5], "b": [0.5, 0.5]})
    with pytest.raises(TooWide, match="max_states = 3"):
        net.table(max_states=3)


@pytest.mark.parametrize(
    ("tables", "parents", "words"),
    [
        ({}, {}, "at least one"),
        ({"a": [0.5, 0.6]}, {}, "'a' must add up to 1; row 0 adds up to 1.1"),
        ({"a": [1.5, -0.5]}, {}, "smallest entry is -0.5"),
        ({"a": [0.5, np.nan]}, {}, "'a' must hold probabilities"),
        ({"a": 1.0}, {}, "last axis"),
        ({"a": [0.5, 0.5]}, {"a": ["b"]}, "'b', which is not one of the variables"),
        ({"a": [0.5, 0.5]}, {"b": ["a"]}, "'b', which has no table"),
        (
            {"aa": [0.5, 0.5], "b": np.full((2, 2), 0.5)},
            {"b": "aa"},
            "the parents of 'b' must be a list of names; got 'aa'",
        ),
        ({"a": [0.5, 0.5], "b": [0.5, 0.5]}, {"b": ["a"]}, r"shape \(2, 2\) for its parents"),
        ({"a": np.full((2, 2), 0.5), "b": np.full((2, 2), 0.5)}, {"a": ["b"], "b": ["a"]}, "cycle; it has"),
        ({"a": np.full((2, 2), 0.5)}, {"a": ["a"]}, "itself"),
        ({"a": [0.5, 0.5], "b": np.full((2, 2, 2), 0.5)}, {"b": ["a", "a"]}, "different variables"),
    ],
)
def test_impossible_networks_are_refused(tables, parents, words):
    with pytest.raises(ValueError, match=words):
        BayesNet(tables, parents)


def test_impossible_questions_are_refused(net):
    with pytest.raises(ValueError, match="last axis"):
        net.log_prob([0, 1])
    with pytest.raises(TypeError, match="whole numbers"):
        net.log_prob([0.5, 1.0, 1.0, 0.0])
    with pytest.raises(DomainError, match="variable 'd' has no state 4"):
        net.log_prob([4, 0, 0, 0])
    with pytest.raises(ValueError, match="'e' is not a variable"):
        net.do({"e": 0})
    with pytest.raises(ValueError, match="variable 'b' has no state 3"):
        net.do({"b": 3})
    with pytest.raises(ValueError, match="3 probabilities"):
        net.do({"b": [0.5, 0.5]})
    with pytest.raises(ValueError, match="both asked for and given"):
        net.conditional("a", {"a": 0})
    with pytest.raises(ValueError, match="named once"):
        net.marginal(["a", "a"])
    with pytest.raises(TypeError, match="given must be a mapping of variables to states; got 'b'"):
        net.query("a", "b")
    with pytest.raises(TypeError, match="evidence must be a mapping"):
        net.given([("b", 1)])
    with pytest.raises(TypeError, match="parents must be a mapping of variables to lists of their parents; got"):
        BayesNet.fit({"a": [0, 1], "b": [0, 1]}, [("a", "b")])
    with pytest.raises(DomainError, match="variable 'b' has no state 3"):
        net.query("a", {"b": 3})
    with pytest.raises(ValueError, match="'e' is not a variable of the network; there are 'd', 'b', 'a', 'c'"):
        net.map("e")
    with pytest.raises(
        TypeError, match="there is no option 'max_mem': exact answers take order, max_memory and n_jobs"
    ):
        net.query("a", max_mem=3)
    with pytest.raises(ValueError, match="same variables"):
        net.kl(BayesNet({"a": [0.5, 0.5]}))
    with pytest.raises(TypeError, match="BayesNet"):
        net.kl("net")
    with pytest.raises(DomainError, match="probability zero"):
        BayesNet({"a": [1.0, 0.0], "b": [0.5, 0.5]}).conditional("b", {"a": 1})


def test_the_graph_is_that_of_the_parents(net):
    assert set(net.graph.edges) == {("c", "d"), ("b", "d"), ("a", "b"), ("a", "c")}


@pytest.mark.parametrize("seed", range(6))
def test_questions_by_name_are_answered_as_by_enumeration(seed):
    """Marginals of sets, conditionals, and best states, of all variables and of some, for networks with zeros."""
    rng = np.random.default_rng(seed)
    net = random_net(rng, 7, zeros=0.2 * (seed % 2))
    p, names = joint_table(net), list(net.variables)
    x = np.unravel_index(int(rng.choice(p.size, p=p.ravel() / p.sum())), p.shape)
    chosen = [names[k] for k in rng.permutation(7)[:4]]
    asked, given = chosen[:2], {name: f"s{x[names.index(name)]}" for name in chosen[2:]}
    axes = [names.index(name) for name in asked]
    cut = np.zeros_like(p)
    where = tuple(x[k] if name in given else slice(None) for k, name in enumerate(names))
    cut[where] = p[where]
    table = cut.sum(axis=tuple(k for k in range(7) if k not in axes))
    table = table if axes[0] < axes[1] else table.T
    assert_allclose(net.conditional(asked, given), table / table.sum(), atol=1e-13)
    answer = net.query(asked, given)
    assert answer[f"s{x[axes[0]]}", f"s{x[axes[1]]}"] == pytest.approx(table[x[axes[0]], x[axes[1]]] / table.sum())
    alone = net.query(asked[0], given)
    assert list(alone) == list(net.states[asked[0]])
    assert_allclose(list(alone.values()), table.sum(axis=1) / table.sum(), atol=1e-13)
    assert_allclose(net.marginals(given)[asked[0]], table.sum(axis=1) / table.sum(), atol=1e-13)
    best, score = net.map(given=given)
    assert np.exp(score) == pytest.approx(cut.max())
    assert p[tuple(int(best[name][1:]) for name in names)] == pytest.approx(cut.max())
    some, score = net.map(asked, given)
    assert np.exp(score) == pytest.approx(table.max())
    assert table[tuple(int(some[name][1:]) for name in asked)] == pytest.approx(table.max())


def test_d_separation_is_independence_in_networks_with_random_tables():
    """All pairs given all sets in random networks of five variables, against the joint table."""
    for seed in range(4):
        net = random_net(np.random.default_rng(seed), 5, max_parents=2, most_states=2)
        p, names = joint_table(net), net.variables
        for i, j in itertools.combinations(range(5), 2):
            rest = [k for k in range(5) if k not in (i, j)]
            for given in itertools.chain.from_iterable(itertools.combinations(rest, r) for r in range(4)):
                joint = p.sum(axis=tuple(k for k in rest if k not in given), keepdims=True)
                gap = joint * joint.sum((i, j), keepdims=True) - joint.sum(i, keepdims=True) * joint.sum(
                    j, keepdims=True
                )
                separated = net.is_d_separated(names[i], names[j], [names[k] for k in given])
                assert separated == (np.abs(gap).max() < 1e-12)
    assert net.is_d_separated([names[0]], [], [names[1]])
    with pytest.raises(ValueError, match="no variable in common"):
        net.is_d_separated("v0", "v1", ["v1"])
    with pytest.raises(ValueError, match="'v9' is not a variable"):
        net.is_d_separated("v0", "v9")


def test_a_network_of_1041_variables_answers_at_once():
    """As many variables as the largest published ones, up to 21 states: by name, against the whole model."""
    rng = np.random.default_rng(0)
    net = random_net(rng, 1041, max_parents=3, window=5, most_states=5)
    whole = net.marginals()  # compiles, and is the truth: nothing is left out there
    given = {"v1000": "s1", "v500": "s0", "v40": "s1"}
    begin = time.process_time()
    found = net.conditional("v700", {})
    seen = net.conditional(["v702", "v20"], given)
    states, score = net.map(["v41", "v999"], given)
    assert time.process_time() - begin < 3.0
    assert_allclose(found, whole["v700"], atol=1e-12)
    base = net.given(given).log_partition()
    one = net.given({**given, "v702": "s1", "v20": "s0"}).log_partition()
    assert_allclose(seen[1, 0], np.exp(one - base), rtol=1e-9)
    assert_allclose(net.given({**given, **states}).log_partition(), score, rtol=1e-10)
    assert len(net.map(given=given)[0]) == 1041


def test_too_wide_names_the_memory_and_no_joint_table():
    """A variable with all of 30 others above it in layers: no advice to raise max_states to 4.5e17."""
    net = random_net(np.random.default_rng(1), 37, window=37, most_states=4)
    with pytest.raises(TooWide, match="ask for marginals, a conditional or map") as refusal:
        net.table()
    assert "raise max_states" not in str(refusal.value)
    assert_allclose(net.conditional("v3", {"v30": "s0"}).sum(), 1.0)
    with pytest.raises(TooWide, match="max_memory"):
        net.conditional("v3", {"v36": "s0", "v30": "s1"}, max_memory=64)


def test_a_network_is_saved_and_loaded_and_written_as_bif_to_the_last_bit(tmp_path):
    net = random_net(np.random.default_rng(3), 40, zeros=0.1)
    again = BayesNet.load(net.save(tmp_path / "net"))
    write_bif(tmp_path / "net.bif", net)
    read = read_bif(tmp_path / "net.bif")
    for other in (again, read):
        assert other.variables == net.variables
        assert other.parents == net.parents
        assert other.states == net.states
        assert all(np.array_equal(other.tables[name], table) for name, table in net.tables.items())
    odd = BayesNet({"a b": [0.25, 0.75], 3: [[1.0, 0.0], [0.5, 0.5]]}, {3: ["a b"]})
    write_bif(tmp_path / "odd.bif", odd)
    assert read_bif(tmp_path / "odd.bif").query("3", {"a b": "1"}) == pytest.approx({"0": 0.5, "1": 0.5})
    assert BayesNet.load(odd.save(tmp_path / "odd")).variables == ("a b", 3)
    with pytest.raises(TypeError, match="strings or whole numbers to be saved"):
        BayesNet({("a", 1): [1.0]}).save(tmp_path / "x")
    with pytest.raises(ValueError, match="without quotation marks"):
        write_bif(tmp_path / "x.bif", BayesNet({'a"': [1.0]}))
    with pytest.raises(FileFormatError, match="not a BayesNet"):
        BayesNet.load(net.model.save(tmp_path / "factors"))
