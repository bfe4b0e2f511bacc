"""The model: probabilities of what is observed, by enumeration in exact arithmetic and against published digits."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from cumulant.certificates import Subject
from cumulant.errors import TooWide
from cumulant.graphical import RegionGraph
from cumulant.relational import RULES, Network, SmokersModel
from tests.reference import relational as reference
from tests.relational.networks import READINGS, STUDY, T3, THETA, extreme_theta, random_network


def network(attribute, ties):
    return Network.from_edges(attribute, sorted(ties))


# Published numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_probabilities_of_all_observations_sum_to_one(influence, n):
    """Check 1: 64 observations of three people."""
    model = SmokersModel(THETA, influence)
    values = [model.log_likelihood(network(*each)) for each in reference.evidence(n)]
    assert len(values) == 2 ** (n + n * (n - 1) // 2)
    assert_allclose(np.exp(values).sum(), 1.0, rtol=0, atol=1e-12)


def test_two_people():
    """Check 2, the last by hand."""
    model = SmokersModel(THETA)
    p = {(tuple(s), len(f) > 0): np.exp(model.log_likelihood(network(s, f))) for s, f in reference.evidence(2)}
    assert_allclose(sum(v for (_, tied), v in p.items() if tied), 0.18656, atol=1e-12)
    assert_allclose(sum(v for (s, _), v in p.items() if s[0]), 0.26801, atol=1e-12)
    by_hand = 0.36 * 0.09 * 0.7 + 2 * (0.24 * 0.3 * 0.4 * 0.5) + 0.16 * 0.05 * 0.04
    assert_allclose([p[(1, 1), True], by_hand], 0.0518, atol=1e-12)


@pytest.mark.parametrize(("influence", "log_p"), [("independent", -5.196211060), ("ordered", -5.201028600)])
def test_three_people(influence, log_p):
    """Check 3, and check 4: the factor graph has the same sum."""
    model = SmokersModel(THETA, influence)
    assert_allclose(model.log_likelihood(T3), log_p, rtol=0, atol=1e-9)
    for causal in (False, True):
        assert_allclose(model.factor_graph(T3, causal).log_partition(), log_p, rtol=0, atol=1e-9)


def test_the_joint_of_three_people():
    """Check 3."""
    published = (
        0.00087837, 0.00270772, 0.02496431, 0.11631807, 0.19763410, 0.18567203, 0.19659392, 0.27523149,
    )  # fmt: skip
    table = SmokersModel(THETA).log_joint(T3)
    assert_allclose(np.exp(table - np.logaddexp.reduce(table, axis=None)).ravel(), published, rtol=0, atol=5e-9)


def test_the_factor_graph_of_three_people():
    """Checks 4 and 23: 13 variables, 19 factors; every state by brute force; counting numbers by Moebius."""
    graph = SmokersModel(THETA).factor_graph(T3)
    assert (graph.n_variables, len(graph.factors)) == (13, 19)
    states = np.indices((2,) * 13).reshape(13, -1)
    total = sum(table[tuple(states[list(scope)])] for scope, table in graph.factors)
    assert_allclose(np.logaddexp.reduce(total), -5.196211060, rtol=0, atol=1e-9)
    marginals = graph.marginals()
    assert_allclose([marginals[v][1] for v in (3, 4, 5, 6)], (0.349266, 0.542558, 0.309297, 0.133634), atol=1e-6)
    regions = RegionGraph.bethe(graph)
    degree = np.bincount(np.concatenate([scope for scope, _ in graph.factors]), minlength=13)
    found = {next(iter(r.variables)): c for r, c in zip(regions.inner, regions.counting, strict=True)}
    assert found == {v: 1 - degree[v] for v in range(13)}
    regions.check(graph.structure)  # each factor and each variable is counted once


@pytest.mark.parametrize("influence", READINGS)
def test_numbers_of_people_matter_in_the_ordered_reading_alone(influence):
    """Check 22."""
    rng = np.random.default_rng(3)
    model, net = SmokersModel(THETA, influence), random_network(7, rng, 0.6)
    order = np.array([3, 1, 6, 0, 5, 2, 4])
    moved = net.permuted(order)
    for method in ("exact", "bethe"):
        off = abs(model.log_likelihood(net, method) - model.log_likelihood(moved, method))
        assert off < 1e-8 if influence == "independent" else off > 1e-4
    for method in ("exact", "loopy"):
        off = np.abs(model.posterior(net, method).independence[order] - model.posterior(moved, method).independence)
        assert off.max() < 1e-7 if influence == "independent" else off.max() > 1e-4


# Independent references -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_in_exact_arithmetic(influence, seed):
    """Ordinary and extreme probabilities, and the whole table of z."""
    rng = np.random.default_rng(seed)
    for share in (0.0, 0.3, 1.0):
        theta, net = extreme_theta(rng, share), random_network(4, rng, rng.choice([0.3, 0.7, 1.0]))
        model = SmokersModel(theta, influence)
        attribute, ties = reference.observed(net)
        truth = reference.log_likelihood(theta, attribute, ties, influence == "ordered")
        assert_allclose(model.log_likelihood(net), truth, rtol=1e-13, atol=1e-12)
        table, exact = model.log_joint(net), reference.rational(theta)
        for z in np.ndindex(2, 2, 2, 2):
            expected = reference.log(reference.joint(exact, attribute, ties, z, influence == "ordered"))
            assert_allclose(table[z], expected, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("influence", READINGS)
def test_elimination_against_enumeration_of_twelve_people(influence):
    rng = np.random.default_rng(5)
    for n, density in ((9, 0.5), (12, 0.3)):
        net = random_network(n, rng, density)
        theta = rng.uniform(0.05, 0.95, 14)
        states = np.ndindex((2,) * n)
        truth = np.log(sum(reference.joint(theta, *reference.observed(net), z, influence == "ordered") for z in states))
        assert_allclose(SmokersModel(theta, influence).log_likelihood(net), truth, atol=1e-10)
        graph = SmokersModel(theta, influence).factor_graph(net, causal=True)
        assert_allclose(graph.log_partition(), truth, atol=1e-9)


# Intervals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("seed", range(6))
def test_the_interval_contains_the_truth_at_extreme_probabilities(influence, seed):
    rng = np.random.default_rng(100 + seed)
    for share in (0.2, 0.6, 1.0):
        theta, net = extreme_theta(rng, share), random_network(5, rng, rng.choice([0.3, 0.7, 1.0]))
        truth = reference.log_likelihood(theta, *reference.observed(net), influence == "ordered")
        interval = SmokersModel(theta, influence).bound_log_likelihood(net)
        assert interval.lower <= truth <= interval.upper
        assert interval.width < 1e-6


def test_many_friends_who_always_sway_leave_a_chance_that_nobody_does():
    """The chance that none of four friends sways is 1e-48 here; taken for 0, the certified interval missed by 115."""
    one = 1 - 2.0**-53
    theta = (one, one, 1e-12, 0.9, 1e-6, 1e-100, one, 1e-60, 0.01, one, 1e-6, 1e-100, one, one)
    net = Network.from_edges([0, 0, 1, 1, 0], [(x, y) for x in range(5) for y in range(x)])
    model = SmokersModel(theta, "ordered")
    truth = reference.log_likelihood(theta, *reference.observed(net), ordered=True)
    assert_allclose(truth, -275.598222492129)
    for graph in (model.factor_graph(net), model.factor_graph(net, causal=True)):
        assert_allclose(graph.log_partition(), truth)
    assert truth in model.bound_log_likelihood(net)


@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
def test_a_wide_interval_contains_the_truth(density):
    """Without elimination, with little memory and little work: the bounds, not the exact way."""
    rng = np.random.default_rng(int(10 * density))
    net, theta = random_network(12, rng, density), rng.uniform(0.02, 0.98, 14)
    model = SmokersModel(theta)
    interval = model.bound_log_likelihood(net, exact=False, max_memory=2**12, max_work=5, time_limit=None)
    assert interval.lower < model.log_likelihood(net) < interval.upper
    assert 0.01 < interval.width < 100.0
    graph = model.factor_graph(net, causal=True)
    assert interval.certificate.verify(Subject(graph, interval)).upper <= interval.certificate.upper
    other = SmokersModel(theta[::-1].copy()).factor_graph(net, causal=True)
    with pytest.raises(Exception, match="does not hold"):
        interval.certificate.verify(Subject(other, interval))


def test_annealing_is_unbiased():
    """exp of the estimates has the mean p(attribute, ties), within four standard errors of 200 short runs."""
    model, net = SmokersModel(STUDY), SmokersModel(STUDY).sample(9, 4)
    truth = model.log_likelihood(net)
    ratios = np.exp([
        model.log_likelihood(net, "ais", n_particles=10, temperatures=4, rng=seed).log_partition() - truth
        for seed in range(200)
    ])  # fmt: skip
    assert ratios.std() > 0.05  # few temperatures: there is something to be biased
    assert abs(ratios.mean() - 1) < 4 * ratios.std(ddof=1) / np.sqrt(ratios.size)


def test_annealing_covers():
    """The lower bound fails in at most 5 per cent of the runs, and a longer run is near the truth."""
    model, net = SmokersModel(STUDY, "ordered"), SmokersModel(STUDY).sample(14, 1)
    truth = model.log_likelihood(net)
    runs = [model.log_likelihood(net, "ais", n_particles=20, temperatures=5, rng=seed) for seed in range(100)]
    missed = sum(run.certificate.lower > truth for run in runs)
    assert missed <= 5 + 3 * np.sqrt(100 * 0.05 * 0.95)
    long = model.log_likelihood(net, "ais", n_particles=400, temperatures=100, rng=0)
    assert abs(long.log_partition() - truth) < 5 * long.log_partition_error < 0.5
    exact = model.posterior(net, "exact").independence
    assert (np.abs(long.draws.mean("independent") - exact) < 5 * 0.5 / np.sqrt(long.ess)).all()
    assert_allclose(long.draws.mean("theta"), STUDY)


@pytest.mark.parametrize("seed", range(5))
def test_annealing_at_extreme_probabilities_claims_nothing_false(seed):
    """Particles may miss the mass: then the bound is low, and never above."""
    rng = np.random.default_rng(seed)
    theta, net = extreme_theta(rng, 0.7), random_network(6, rng, 0.6)
    model = SmokersModel(theta)
    truth = reference.log_likelihood(theta, *reference.observed(net))
    found = model.log_likelihood(net, "ais", n_particles=50, temperatures=20, rng=seed)
    assert found.certificate.lower <= truth
    assert not np.isnan(found.log_partition())


# Cases at the border --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("method", ["exact", "bethe"])
def test_one_person(influence, method):
    """p(smokes) = theta_0 theta_7 + (1 - theta_0) theta_10."""
    model = SmokersModel(THETA, influence)
    found = [model.log_likelihood(Network([value], [[0]]), method) for value in (1, 0)]
    assert_allclose(np.exp(found), (0.6 * 0.3 + 0.4 * 0.2, 1 - (0.6 * 0.3 + 0.4 * 0.2)), atol=1e-12)
    assert Network([1], [[0]]).edges.shape == (0, 2)


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("density", [0.0, 1.0])
def test_nobody_and_everybody_tied(influence, density):
    rng = np.random.default_rng(1)
    net = random_network(6, rng, density)
    assert net.n_ties == 15 * density
    model = SmokersModel(THETA, influence)
    truth = reference.log_likelihood(THETA, *reference.observed(net), influence == "ordered")
    assert_allclose(model.log_likelihood(net), truth, atol=1e-12)
    found = model.posterior(net)
    assert found.converged
    assert abs(found.log_likelihood - truth) < 0.2
    assert truth in model.bound_log_likelihood(net)


@pytest.mark.parametrize("certain", [0.0, 1.0])
@pytest.mark.parametrize("influence", READINGS)
def test_everybody_or_nobody_independent(certain, influence):
    """One z is possible: every method is exact, for any number of people."""
    model = SmokersModel((certain, *THETA[1:]), influence)
    small, large = random_network(5, np.random.default_rng(0), 0.5), random_network(60, np.random.default_rng(0), 0.2)
    truth = reference.log_likelihood(model.theta, *reference.observed(small), influence == "ordered")
    assert_allclose([model.log_likelihood(small, way) for way in ("exact", "bethe")], truth, atol=1e-9)
    assert_allclose(model.log_likelihood(large, "bethe"), model.log_likelihood(large), rtol=1e-10)
    assert_allclose(model.log_likelihood(large, "ais", n_particles=5, temperatures=3, rng=0).log_partition(),
                    model.log_likelihood(large), rtol=1e-10)  # fmt: skip
    for method in ("exact", "loopy", "double_loop", "gibbs"):
        assert_allclose(model.posterior(large, method).independence, certain)
    table = model.log_joint(small)
    assert np.isfinite(table).sum() == 1
    assert table[(int(certain),) * 5] == pytest.approx(truth)


def test_a_likelihood_of_messages_that_did_not_settle_is_flagged():
    model = SmokersModel(STUDY)
    net = model.sample(30, 0)
    with pytest.warns(ConvergenceWarning, match="did not settle: the log-likelihood is not to be relied on"):
        model.log_likelihood(net, "bethe", max_sweeps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.log_likelihood(net, "bethe")


# Input ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "ties", "error", "words"),
    [
        ([1, 0], [[0, 1], [0, 0]], ValueError, r"symmetric; ties\[0, 1\] is 1 and ties\[1, 0\] is not"),
        ([1, 0], [[0, 1], [1, 1]], ValueError, "person 1 is tied to itself"),
        ([1, np.nan], [[0, 1], [1, 0]], ValueError, "attribute must be finite"),
        ([1, 0], [[0, np.nan], [np.nan, 0]], ValueError, "ties must be finite"),
        ([1, 2], [[0, 1], [1, 0]], ValueError, "attribute must hold 0 and 1 only; got 2"),
        ([1, 0], [[0, 0.5], [0.5, 0]], ValueError, "ties must hold 0 and 1 only; got 0.5"),
        ([1, 0, 1], [[0, 1], [1, 0]], ValueError, "row and a column for each of 3 people"),
        ([1, 0], [0, 1], ValueError, "ties must have 2 axes"),
        ([], np.zeros((0, 0)), ValueError, "at least one person"),
        (["yes", "no"], [[0, 1], [1, 0]], TypeError, "attribute must be an array of real numbers"),
    ],
)
def test_networks_are_checked(attribute, ties, error, words):
    with pytest.raises(error, match=words):
        Network(attribute, ties)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Network.from_edges([1, 0], [(0, 2)]), ValueError, "people from 0 to 1; got 0 to 2"),
        (lambda: Network.from_edges([1, 0], [(0, -1)]), ValueError, "people from 0 to 1; got -1"),
        (lambda: Network.from_edges([1, 0], [(0, 0)]), ValueError, "person 0 is tied to itself"),
        (lambda: Network.from_edges([1, 0], [(0.0, 1.0)]), ValueError, "pairs of whole numbers"),
        (lambda: Network.from_edges([1, 0], [0, 1]), ValueError, "pairs of whole numbers"),
        (lambda: Network.from_edges([], []), ValueError, "at least one person"),
        (lambda: T3.with_attribute(3, True), ValueError, "x must be a person from 0 to 2; got 3"),
        (lambda: T3.with_tie(1, 1, True), ValueError, "x and y must be two people; got 1 twice"),
        (lambda: T3.permuted([0, 1, 1]), ValueError, "each of the numbers 0 to 2 once"),
        (lambda: SmokersModel([0.5] * 13), ValueError, "must hold 14 probabilities"),
        (lambda: SmokersModel((1.1, *THETA[1:])), ValueError, r"theta\[0\], independent, must be between 0 and 1"),
        (lambda: SmokersModel((*THETA[:7], 1.0, *THETA[8:])), ValueError, r"theta\[7\].*strictly between 0 and 1"),
        (lambda: SmokersModel((*THETA[:13], 0.0)), ValueError, r"theta\[13\], attribute_torn, .*got 0"),
        (lambda: SmokersModel((*THETA[:13], np.nan)), ValueError, "theta must be finite"),
        (lambda: SmokersModel(THETA, "friends"), ValueError, "influence must be one of 'independent', 'ordered'"),
        (lambda: SmokersModel().replace(smokes=0.5), TypeError, "smokes is not an argument of replace"),
        (lambda: SmokersModel().sample(0), ValueError, "n must be a whole number of at least 1"),
        (lambda: SmokersModel().posterior(T3, "lbp"), ValueError, "method must be one of"),
        (lambda: SmokersModel().posterior([1, 0]), TypeError, "network must be a Network; got list"),
        (lambda: SmokersModel().log_likelihood(T3, "smc"), ValueError, "method must be one of"),
        (lambda: SmokersModel().log_likelihood(T3, "exact", tol=1), TypeError, "tol is not an argument"),
        (lambda: SmokersModel().posterior(T3, damping=1.0), ValueError, "damping must be at least 0 and below 1"),
        (lambda: SmokersModel().posterior(T3, damping=np.nan), ValueError, "damping must be at least 0 and below 1"),
        (lambda: SmokersModel().posterior(T3, tol=-1.0), ValueError, "tol must be finite and not negative"),
        (lambda: SmokersModel().posterior(T3, max_sweeps=0), ValueError, "max_sweeps must be a whole number"),
        (lambda: SmokersModel().posterior(T3, "double_loop", linearised=0.0), ValueError, "linearised must be above 0"),
        (lambda: SmokersModel().posterior(T3, "exact", tol=1e-9), TypeError, "tol is not an argument of .*'exact'"),
        (lambda: SmokersModel().posterior(T3, start=1), ValueError, "start must be a Posterior by method"),
    ],
)  # fmt: skip
def test_arguments_are_checked(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_messages_of_another_network_are_refused():
    model = SmokersModel(THETA)
    with pytest.raises(ValueError, match="start must be a Posterior of the same network"):
        model.posterior(T3, start=model.posterior(T3.with_attribute(0, False)))


def test_more_people_than_can_be_enumerated_are_refused_with_what_to_do_instead():
    net = random_network(21, np.random.default_rng(0))
    model = SmokersModel(THETA)
    for call in (model.log_likelihood, model.log_joint, lambda each: model.posterior(each, "exact")):
        with pytest.raises(TooWide, match="bound_log_likelihood"):
            call(net)
    star = Network.from_edges([0] + [1] * 20, [(0, x) for x in range(1, 21)])
    with pytest.raises(TooWide, match="causal=True"):
        model.factor_graph(star)
    assert model.factor_graph(star, causal=True).n_variables == 63


def test_rules_have_names():
    model = SmokersModel(THETA)
    assert list(model.parameters.values()) == list(THETA)
    assert [rule.name for rule in RULES] == list(model.parameters)
    assert model.replace(sway_with=0.1).theta[8] == 0.1
    assert "influence of independent friends" in str(model)
