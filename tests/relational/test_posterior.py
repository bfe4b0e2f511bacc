"""Posteriors against the enumeration of every latent variable, gates included, and against published digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from cumulant.relational import Counts, Network, SmokersModel
from cumulant.relational.parameters import PAIR_RULES
from tests.reference import relational as reference
from tests.relational.networks import READINGS, T3, THETA, extreme_theta, random_network


def compare(found, truth, **tolerance):
    """Everything a posterior says."""
    net = found.network
    n = net.n_people
    assert_allclose(found.independence, [truth["independence"][x] for x in range(n)], **tolerance)
    for x, z, a, b in np.ndindex(n, 2, 2, 2):
        assert_allclose(found.habits[x, z, a, b], truth["habits"][x, z, a, b], **tolerance)
    for x, y in net.pairs:
        for u, v in np.ndindex(2, 2):
            assert_allclose(found.pair_beliefs[x, y, u, v], truth["pairs"][x, y, u, v], **tolerance)
            assert_allclose(found.pair_beliefs[y, x, v, u], truth["pairs"][x, y, u, v], **tolerance)
    assert [tuple(each) for each in found.gate_people.tolist()] == sorted(reference.observed(net)[1])
    assert_allclose(found.gates, [truth["gates"][tuple(each)] for each in found.gate_people.tolist()], **tolerance)
    assert_allclose(found.counts.successes, [truth["successes"][k] for k in range(14)], **tolerance)
    assert_allclose(found.counts.trials, [truth["trials"][k] for k in range(14)], **tolerance)


# Published numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("influence", "published"),
    [("independent", (0.855132, 0.613108, 0.579929)), ("ordered", (0.859261, 0.606662, 0.586811))],
)
def test_three_people(influence, published):
    """Check 3."""
    assert_allclose(SmokersModel(THETA, influence).posterior(T3, "exact").independence, published, rtol=0, atol=5e-7)


def test_who_is_swayed_among_three_people():
    """Check 4."""
    found = SmokersModel(THETA).posterior(T3, "exact")
    assert_allclose(found.encouraged, (0.349266, 0.542558, 0.309297), rtol=0, atol=5e-7)
    assert_allclose(found.discouraged, (0.133634, 0, 0), rtol=0, atol=5e-7)


def test_counts_of_three_people():
    """Check 9, with the MAP update."""
    counts = SmokersModel(THETA).posterior(T3, "exact").counts
    a = (
        2.048169, 0, 0.460904, 0.471825, 0.119026, 0.918817, 0.029429, 1.468239, 1.201121, 0.133634, 0.108099, 0.003663,
        0.405254, 0.014745,
    )  # fmt: skip
    b = (
        3, 0, 0.852453, 0.471825, 0.307406, 1.140375, 0.227941, 2.048169, 2.323371, 0.579929, 0.449324, 0.003663,
        0.484100, 0.014745,
    )  # fmt: skip
    assert_allclose(counts.successes, a, rtol=0, atol=6e-7)
    assert_allclose(counts.trials, b, rtol=0, atol=6e-7)
    update = counts.map_estimate(4.0, 4.0)[[0, 1, 3, 12]]
    assert_allclose(update, (0.560908, 0.5, 0.536452, 0.525170), rtol=0, atol=6e-7)


# Enumeration ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("influence", READINGS)
@pytest.mark.parametrize("seed", range(4))
def test_exact_beliefs_and_counts_are_those_of_all_worlds(influence, seed):
    """For one to four people, every z and every gate a world of its own."""
    rng = np.random.default_rng(seed)
    for n, density in ((1, 0.0), (2, 1.0), (3, 1.0), (4, 0.4)):
        net, theta = random_network(n, rng, density), rng.uniform(0.05, 0.95, 14)
        if net.n_ties > 4:
            net = Network.from_edges(net.attribute, net.edges[:4])
        truth = reference.posterior(theta, *reference.observed(net), influence == "ordered")
        found = SmokersModel(theta, influence).posterior(net, "exact")
        assert_allclose(found.log_likelihood, truth["log_likelihood"], atol=1e-11)
        compare(found, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("influence", READINGS)
def test_exact_beliefs_at_extreme_probabilities(influence):
    """Worlds are summed as fractions, so that nothing is lost."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        net, theta = random_network(3, rng, 0.7), extreme_theta(rng, 0.6)
        truth = reference.posterior(reference.rational(theta), *reference.observed(net), influence == "ordered")
        truth = {
            name: {key: float(value) for key, value in each.items()} if isinstance(each, dict) else each
            for name, each in truth.items()
        }
        truth = {name: _zero_elsewhere(each) if isinstance(each, dict) else each for name, each in truth.items()}
        compare(SmokersModel(theta, influence).posterior(net, "exact"), truth, rtol=0, atol=1e-9)


def _zero_elsewhere(values):
    return reference.defaultdict(float, values)


# What must hold for every posterior -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "loopy", "double_loop", "gibbs"])
@pytest.mark.parametrize("influence", READINGS)
def test_beliefs_are_distributions_and_counts_add_up(method, influence):
    """Checks 10 and 11: every pair uses one of the rules 1 to 6, every person one of 7 and 10 to 13."""
    rng = np.random.default_rng(8)
    for n, density in ((1, 0.0), (2, 1.0), (9, 0.5), (6, 1.0)):
        net = random_network(n, rng, density)
        found = SmokersModel(rng.uniform(0.1, 0.9, 14), influence).posterior(
            net, method, **({"n_sweeps": 50, "burn_in": 5, "rng": 0} if method == "gibbs" else {})
        )
        counts = found.counts
        assert_allclose(counts.trials[0], n)
        assert_allclose(counts.trials[7], counts.successes[0], atol=1e-9)
        assert_allclose(counts.trials[1:7].sum(), n * (n - 1) / 2, atol=1e-7)
        assert_allclose(counts.trials[10:].sum(), n - counts.successes[0], atol=1e-7)
        assert_allclose(counts.successes[1:7].sum(), net.n_ties, atol=1e-7)
        assert_allclose(counts.successes[7] + counts.successes[10:].sum(), net.attribute.sum(), atol=1e-7)
        assert (counts.successes <= counts.trials + 1e-12).all()
        assert_allclose(found.habits.sum(axis=(1, 2, 3)), 1.0, atol=1e-9)
        assert_allclose(found.habits[:, 1].sum(axis=(1, 2)), found.independence, atol=1e-7)
        for x, y in net.pairs:
            assert_allclose(found.pair_beliefs[x, y].sum(), 1.0, atol=1e-9)
            assert_allclose(found.pair_beliefs[x, y, 1].sum(), found.independence[x], atol=1e-7)


# Gibbs sampling -------------------------------------------------------------------------------------------------------


def test_gibbs_finds_the_joint_of_three_people():
    """Check 21: 10^5 sweeps."""
    found = SmokersModel(THETA).posterior(T3, "gibbs", n_sweeps=25_000, burn_in=100, n_chains=4, rng=0)
    assert_allclose(found.independence, (0.855132, 0.613108, 0.579929), rtol=0, atol=0.01)
    exact = SmokersModel(THETA).posterior(T3, "exact")
    assert_allclose(found.counts.successes, exact.counts.successes, rtol=0, atol=0.01)
    assert_allclose(found.counts.trials, exact.counts.trials, rtol=0, atol=0.01)
    assert (found.log_likelihood, found.free_energy, found.converged) == (None, None, None)
    assert str(found) == "Gibbs sampling, 100000 sweeps"
    with pytest.raises(Exception, match=r"'ais'\) estimates it"):
        found.require_log_likelihood()
    with pytest.raises(Exception, match="ask for them with pairs=True"):
        SmokersModel(THETA).posterior(T3, pairs=False).require_pair_beliefs()


@pytest.mark.parametrize("influence", READINGS)
def test_gibbs_against_enumeration(influence):
    """Twelve chains give the error: five standard errors of their mean for each belief."""
    rng = np.random.default_rng(2)
    net, model = random_network(8, rng, 0.5), SmokersModel(rng.uniform(0.15, 0.85, 14), influence)
    exact = model.posterior(net, "exact")
    runs = [model.posterior(net, "gibbs", n_sweeps=1500, burn_in=50, n_chains=1, rng=seed) for seed in range(12)]
    for name in ("independence", "gates", "habits", "pair_beliefs"):
        values = np.array([getattr(run, name) for run in runs])
        error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert (np.abs(values.mean(axis=0) - getattr(exact, name)) <= 5.5 * error + 1e-12).all(), name


def test_seeds_decide_and_threads_do_not():
    net = random_network(10, np.random.default_rng(0), 0.4)
    options = {"n_sweeps": 50, "burn_in": 5, "n_chains": 3}
    one, two, other = (
        SmokersModel(THETA).posterior(net, "gibbs", **options, rng=seed, n_jobs=jobs).independence
        for seed, jobs in ((1, 1), (1, 3), (2, 1))
    )
    assert (one == two).all()
    assert (one != other).any()


# Counts ---------------------------------------------------------------------------------------------------------------


def test_rules_of_pairs():
    """The published table: none, one or both smoke; of one independent person, whether that one does; neither."""
    for s_x, s_y, tied, u, v in np.ndindex(2, 2, 2, 2, 2):
        expected = reference.rule_of_pair([s_x, s_y], [u, v], 0, 1)
        assert PAIR_RULES[4 * s_x + 2 * s_y + tied, 2 * u + v] == expected


def test_a_rule_that_was_never_used_has_no_estimate_without_a_prior():
    counts = Counts(np.ones(14), np.full(14, 2.0)) + Counts.zeros()
    assert_allclose(counts.map_estimate(1.0, 1.0), 0.5)
    with pytest.raises(ValueError, match="rule 3, tie_both, was never used"):
        Counts(np.zeros(14), np.where(np.arange(14) == 3, 0.0, 1.0)).map_estimate(1.0, 1.0)
