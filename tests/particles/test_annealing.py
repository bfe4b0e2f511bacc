"""Annealing and hot coupling against enumeration: weights, moves, unbiasedness, intervals, certificates, refusals."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from tests.reference import annealing as reference

from cumulant import graphical, particles, sampling
from cumulant.errors import DomainError
from cumulant.graphical.samplers.colouring import Neighbours
from cumulant.particles import annealing_kernels as kernels
from cumulant.particles.ising_bridge import IsingBridge, Spins
from cumulant.particles.temperatures import Temperatures
from cumulant.pytrees import pytree

TORUS = graphical.Ising(graphical.torus(4, 4), 0.45)
GLASS = graphical.spin_glass(graphical.grid(3, 4), couplings=0.9, fields=0.4, rng=1)
SIGNS = graphical.Ising(graphical.grid(3, 4), 0.6 * np.random.default_rng(2).choice([-1, 1], 17))
DENSE = graphical.spin_glass(graphical.complete(6), couplings=0.4, fields=0.3, rng=3)
POTTS = graphical.Potts(graphical.grid(2, 3), 0.8, np.random.default_rng(4).normal(size=(6, 3)))
MODELS = {"torus": TORUS, "glass": GLASS, "signs": SIGNS, "dense": DENSE, "potts": POTTS}


def relative(model, method, runs, **settings):
    """Estimates of Z over the exact one."""
    exact = model.log_partition()
    return np.exp([method(model, rng=seed, n_jobs=1, **settings).log_partition() - exact for seed in range(runs)])


def unbiased(found):
    return abs(found.mean() - 1.0) < 4 * found.std(ddof=1) / np.sqrt(found.size)


# Kernels --------------------------------------------------------------------------------------------------------------


def test_spins_in_lanes_are_those_of_the_reference():
    rng = np.random.default_rng(0)
    edges, n = graphical.grid(3, 3), 9
    old, new, fields = rng.normal(size=12), rng.normal(size=12), rng.normal(size=9)
    x, graph = rng.choice(np.array([-1, 1], np.int8), (n, 5)), Neighbours.of(n, edges)
    sites = np.array([0, 2, 4, 6, 8])
    wanted, logs = reference.draw_spins(x, sites, edges, old, new, fields, 7, 3, 11)
    found = np.zeros(5)
    flat = (sites, graph.indptr, graph.neighbours, old[graph.edge], new[graph.edge], fields)
    kernels.draw_spins(x, *flat, found, 7, 3, 11)
    assert (x == wanted).all()
    np.testing.assert_allclose(found, logs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("edges", [graphical.grid(3, 3), graphical.torus(4, 4), [(0, k) for k in range(1, 8)]])
def test_spins_in_words_are_those_of_the_reference(edges):
    rng = np.random.default_rng(0)
    edges = np.asarray(edges)
    n, lanes = edges.max() + 1, 64 * kernels.WORDS
    signs, graph = rng.choice([-1, 1], len(edges)), Neighbours.of(n, edges)
    bits = rng.integers(0, 2, (n, lanes))
    sites = np.flatnonzero(graphical.colouring(n, edges) == 0)
    digits = (1 / (1 + np.exp(-0.7 * np.arange(8.0))) * 2**52).astype(np.uint64)
    gains = rng.normal(size=8)
    gains[0] = 0.0
    wanted, logs = reference.draw_words(bits, sites, edges, signs, digits, gains, 5, 2, 9)
    x, found = Spins.of(2 * bits.T.astype(np.int8) - 1, True).values[0], np.zeros(lanes)
    flips = np.where(signs[graph.edge] < 0, np.uint64(2**64 - 1), np.uint64(0))
    kernels.draw_words(x, sites, graph.indptr, graph.neighbours, flips, digits, gains, found, 5, 2, 9)
    assert (2 * wanted - 1 == Spins(x[None], lanes).rows().T).all()
    np.testing.assert_allclose(found, logs, rtol=1e-12, atol=1e-13)


def test_energies_are_sums_over_edges():
    x = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (12, 7))
    out = np.ones(7)
    kernels.add_energies(x, GLASS.edges, GLASS.couplings, out)
    i, j = GLASS.edges.T
    np.testing.assert_allclose(out - 1, (GLASS.couplings[:, None] * x[i] * x[j]).sum(axis=0))


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("n", [1, 5, 64, 1025])
def test_particles_in_blocks_are_chosen_as_rows_are(words, n):
    rows = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), (n, 3))
    spins, chosen = Spins.of(rows, words), np.random.default_rng(1).integers(0, n, n)
    assert (spins.rows() == rows).all()
    assert (spins[chosen].rows() == rows[chosen]).all()


def test_one_jump_of_the_sheet():
    """4 x 4 torus from 0 to 0.3 in one step: the mean weight, and the effective size of both kinds of weights."""
    model = graphical.Ising(graphical.torus(4, 4), 0.3)
    assert model.log_partition() == pytest.approx(12.785523325714, abs=1e-9)
    for weights, share in (("rb", 0.206), ("naive", 0.005)):
        result = particles.anneal(model, 100_000, 1, weights=weights, rng=0)
        gap = np.exp(result.log_partition() - model.log_partition()) - 1
        assert abs(gap) < 4 * result.log_partition_error
        assert result.ess / 100_000 == pytest.approx(share, rel=0.1 if weights == "rb" else 0.6)


# Unbiasedness ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.0, 1.0])
@pytest.mark.parametrize(("name", "weights"), [("torus", "rb"), ("glass", "rb"), ("signs", "rb"), ("dense", None),
                                           ("torus", "naive"), ("potts", None)])  # fmt: skip
def test_annealing_is_unbiased(name, weights, threshold):
    settings = {"n_particles": 20, "temperatures": 5, "weights": weights, "ess_threshold": threshold}
    assert unbiased(relative(MODELS[name], particles.anneal, 400, **settings))


@pytest.mark.parametrize(
    ("name", "weights", "groups"), [("glass", "rb", 1), ("glass", "naive", None), ("dense", None, 3)]
)
def test_hot_coupling_is_unbiased(name, weights, groups):
    settings = {"n_particles": 20, "steps_per_group": 2, "weights": weights, "groups": groups, "ess_threshold": 0.9}
    assert unbiased(relative(MODELS[name], particles.hot_coupling, 300, **settings))


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["rb", "naive"])
@pytest.mark.parametrize("method", [particles.anneal, particles.hot_coupling])
@pytest.mark.parametrize("name", ["torus", "glass"])
def test_both_are_unbiased_over_thousands_of_runs(name, method, weights):
    steps = {"temperatures": 6} if method is particles.anneal else {"steps_per_group": 6}
    found = relative(MODELS[name], method, 5000, n_particles=30, weights=weights, ess_threshold=0.7, **steps)
    assert unbiased(found)
    assert found.std(ddof=1) / np.sqrt(found.size) < 0.01


def test_a_path_is_not_run_again_by_the_particles_that_chose_it():
    chosen = particles.anneal(GLASS, 30, share=0.8, rng=0)
    path = chosen.bridge.frozen(chosen.outcomes[0])
    with pytest.raises(ValueError, match="designed with the random numbers of this rng"):
        particles.run(path, 30, rng=0)
    assert particles.run(path, 30, rng=1).certificate is not None


def test_a_pilot_makes_chosen_temperatures_unbiased_and_certified():
    found = [particles.anneal(GLASS, 30, share=0.8, pilot=True, rng=seed, n_jobs=1) for seed in range(300)]
    assert unbiased(np.exp([each.log_partition() - GLASS.log_partition() for each in found]))
    assert all(each.certificate is not None for each in found)
    assert particles.anneal(GLASS, 30, share=0.8, rng=0).certificate is None


def test_the_certificate_fails_as_rarely_as_it_says():
    exact, delta, runs = GLASS.log_partition(), 0.2, 300
    above = sum(
        particles.anneal(GLASS, 5, 3, n_islands=8, rng=seed, delta=delta, n_jobs=1).certificate.lower > exact
        for seed in range(runs)
    )
    assert above <= binom.ppf(0.999, runs, delta)


# Errors of single runs ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resampling", "threshold"),
    [("stratified", 0.0), ("stratified", 0.5), ("stratified", 0.9), ("stratified", 1.0), ("systematic", 0.9),
     ("residual", 0.9), ("multinomial", 0.9)],
)  # fmt: skip
def test_intervals_hold_as_often_as_they_say(resampling, threshold):
    exact = TORUS.log_partition()
    settings = {"resampling": resampling, "ess_threshold": threshold, "n_jobs": 1}
    found = [particles.anneal(TORUS, 500, 20, rng=seed, **settings) for seed in range(1000)]
    inside = np.mean([exact in each.interval(0.95) for each in found])
    assert 0.93 <= inside <= 0.97
    claimed = np.sqrt(np.mean([each.log_partition_error**2 for each in found]))
    assert claimed == pytest.approx(np.std([each.log_partition() for each in found]), rel=0.1)


def test_an_error_that_is_not_known_is_said_to_be_infinite():
    result = particles.anneal(GLASS, 20, 50, resampling="multinomial", ess_threshold=1.0, rng=0)
    assert result.log_partition_error == np.inf
    assert result.interval().lower == -np.inf
    assert "±" not in str(result)


# The rest of the contract ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["torus", "glass", "dense", "potts"])
def test_the_answer_does_not_depend_on_threads(name):
    one, two = (particles.anneal(MODELS[name], 1100, 4, rng=5, n_jobs=jobs) for jobs in (1, 2))
    assert one.log_partition() == two.log_partition()
    assert (one.draws.values == two.draws.values).all()


@pytest.mark.parametrize("name", ["glass", "signs", "dense", "potts"])
def test_means_and_evidence(name):
    model = MODELS[name]
    value = int(np.asarray(model.labels.numbers(np.zeros(model.n_variables, np.int64)))[1])
    given = model.given({1: value})
    methods = [particles.anneal] if name == "potts" else [particles.anneal, particles.hot_coupling]
    for method in methods:
        result = method(given, 4000, rng=0)
        assert given.log_partition() in result.interval(0.999)
        assert (result.draws.flat[:, 1] == value).all()
        for v, wanted in enumerate(given.marginals()):
            values = model.labels.numbers(np.arange(len(wanted))[:, None].repeat(model.n_variables, axis=1))[:, v]
            found = result.expect(lambda x, v=v, values=values: (x[:, v, None] == values).astype(float))
            np.testing.assert_allclose(found, wanted, atol=0.05)


def test_names_are_those_of_the_model():
    model = graphical.Ising([(0, 1), (1, 2)], 0.5, names=["a", "b", "c"])
    assert particles.anneal(model, 50, 5, rng=0).draws["b"].shape == (1, 50)


def test_particles_can_be_saved(tmp_path):
    model = graphical.Ising([(0, 1), (1, 2)], 0.5, [0.3, 0.0, -0.2], names=["a", "b", "c"])
    for settings in ({"n_islands": 2}, {"sampler": graphical.ColouredGibbs()}):
        draws = particles.anneal(model, 40, 3, rng=0, **settings).draws
        again = sampling.Draws.load(draws.save(tmp_path / "particles"))
        assert (again.values == draws.values).all()
        assert (again.mean() == draws.mean()).all()
        assert (again["b"] == draws["b"]).all()
        assert (again.log_normaliser, again.settings) == (draws.log_normaliser, draws.settings)


def test_particles_for_arviz_are_resampled_island_by_island():
    pytest.importorskip("arviz")
    model = graphical.Ising([(0, 1), (1, 2)], 0.5, [0.3, 0.0, -0.2], names=["a", "b", "c"])
    result = particles.anneal(model, 4000, 3, ess_threshold=0.0, n_islands=2, rng=0)
    posterior = result.to_arviz()["posterior"]
    for at, name in enumerate("abc"):
        chains = np.asarray(posterior[name])
        assert chains.shape == (2, 4000)
        assert set(np.unique(chains)) <= {-1, 1}
        for chain, outcome in zip(chains, result.outcomes, strict=True):
            wanted = outcome.population.weights @ result.bridge.draws(outcome.population.x)[:, at]
            assert abs(chain.mean() - wanted) < 4 / np.sqrt(4000)  # of stratified resampling: less


def test_impossible_states_have_weight_zero():
    table = [[0.0, -np.inf], [-np.inf, 0.3]]
    model = graphical.FactorGraph([2, 2, 2], [((0, 1), table), ((1, 2), [[0.1, 0.5], [0.4, -0.2]])])
    for settings in ({"temperatures": 10}, {"temperatures": None}):
        result = particles.anneal(model, 2000, rng=0, **settings)
        assert model.log_partition() in result.interval(0.999)
        assert (result.expect(lambda x: x[:, 0] != x[:, 1])) == 0.0
    found = np.exp([particles.anneal(model, 4, 3, rng=s).log_partition() - model.log_partition() for s in range(500)])
    assert unbiased(found)


BARRED = np.array([[0.0, 0.0], [0.0, -np.inf]])
SETS = graphical.FactorGraph(
    [2] * 16, [((int(i), int(j)), BARRED) for i, j in graphical.grid(4, 4)]
)  # independent ones


def test_constraints_are_switched_on_by_and_by():
    """1,234 of 65,536 states satisfy all 24: of 500 independent draws nine or so."""
    exact = np.log(1234)
    assert SETS.log_partition() == pytest.approx(exact)
    found = [particles.anneal(SETS, 500, 10, rng=seed, n_jobs=1) for seed in range(40)]
    assert min(each.trace["ess"][1] for each in found) > 250
    inside = sum(exact in each.interval(0.95) for each in found)
    assert all(each.log_partition_error < 0.15 for each in found)
    assert inside >= binom.ppf(0.001, len(found), 0.92)
    for settings in ({"share": 0.7}, {"temperatures": [0.0, 1.0]}, {"chain_length": 5}):
        result = particles.anneal(SETS, 2000, **{"temperatures": 10, "rng": 0, **settings})
        assert abs(result.log_partition() - exact) < 0.5
        states = result.draws.flat[np.exp(result.draws.log_weights.ravel()) > 0]
        assert not (states[:, SETS.structure.scopes[0::2]] & states[:, SETS.structure.scopes[1::2]]).any()
    runs = np.exp([particles.anneal(SETS, 10, 4, rng=s, n_jobs=1).log_partition() - exact for s in range(400)])
    assert unbiased(runs)


def _above(x, least):
    return jnp.where(x[0] > least, -jnp.sum(x**2) / 2, -jnp.inf)


def test_the_error_is_not_known_where_few_particles_are_possible():
    """A normal number above 2.05, which 20 of 1,000 draws are: no group of lineages has members enough."""
    for least, known in ((2.05, 0), (1.3, 5)):
        target, exact = sampling.Target(_above, 1, least), np.log(np.sqrt(2 * np.pi) * ndtr(-least))
        found = [particles.anneal(target, 1000, 4, sampler=sampling.RandomWalk(0.5), rng=s) for s in range(6)]
        finite = [each.interval(0.999) for each in found if np.isfinite(each.log_partition_error)]
        assert len(finite) >= known
        assert known or not finite
        assert all(exact in each for each in finite)


def test_a_single_spin_and_spins_without_edges_are_exact():
    for model in (graphical.Ising([], 0.0, [0.7]), graphical.Ising([], 0.0, [0.7, -0.2, 0.0])):
        for method in (particles.anneal, particles.hot_coupling):
            result = method(model, 10, rng=0)
            assert result.log_partition() == pytest.approx(model.log_partition(), abs=1e-12)
            assert result.log_partition_error < 1e-7


def test_a_tree_is_exact_by_hot_coupling():
    model = graphical.Ising([(0, 1), (1, 2), (1, 3)], [0.5, -0.8, 1.2], [0.1, 0.0, -0.3, 0.2])
    result = particles.hot_coupling(model, 4000, rng=0)
    assert result.log_partition() == pytest.approx(model.log_partition(), abs=1e-12)
    error = 4 / np.sqrt(4000)
    np.testing.assert_allclose(result.mean(), model.mean()[:4], atol=error)


def test_the_order_of_edges_names_the_tree():
    model = graphical.Ising([(0, 1), (1, 2), (2, 0), (2, 3)], [1.0, 0.2, 0.5, 0.1])
    bridge = particles.hot_coupling(model, 10, steps_per_group=1, rng=0).bridge
    assert bridge.group.tolist() == [-1, 0, -1, -1]
    assert particles.hot_coupling(model, 10, [0], steps_per_group=1, rng=0).bridge.group.tolist() == [0, -1, -1, -1]
    with pytest.raises(DomainError, match="cycle"):
        particles.hot_coupling(model, 10, [3])
    with pytest.raises(ValueError, match="from 0 to 3"):
        particles.hot_coupling(model, 10, [4])
    with pytest.raises(ValueError, match="once"):
        particles.hot_coupling(model, 10, [1, 1])


def test_several_edges_between_two_spins():
    model = graphical.Ising([(0, 1), (0, 1), (1, 2), (2, 0)], [0.5, 0.4, 0.3, 0.2])
    for method in (particles.anneal, particles.hot_coupling):
        assert model.log_partition() in method(model, 500, rng=0).interval(0.999)


def test_words_and_lanes_agree():
    """The same torus by bits and, with a field that changes nothing much, by bytes."""
    bridge = particles.anneal(TORUS, 10, 1, rng=0).bridge
    assert isinstance(bridge, IsingBridge)
    assert bridge._by_words
    tiny = graphical.Ising(TORUS.edges, TORUS.couplings, 1e-12)
    one, other = (particles.anneal(model, 20_000, 10, rng=0) for model in (TORUS, tiny))
    assert not other.bridge._by_words
    gap = one.log_partition() - other.log_partition()
    assert abs(gap) < 4 * np.hypot(one.log_partition_error, other.log_partition_error)


# Densities ------------------------------------------------------------------------------------------------------------


def _normal(x):
    return -jnp.sum((x - 1.0) ** 2) / 2


NORMAL = sampling.Target(_normal, 2)


@pytest.mark.parametrize("sampler", [sampling.RandomWalk(1.0), sampling.MALA(0.4), sampling.HMC(0.5, 4), None])
def test_densities(sampler):
    result = particles.anneal(NORMAL, 1000, 10, sampler=sampler, rng=0)
    assert (result.certificate is None) == (sampler is None)
    assert np.log(2 * np.pi) in result.interval(0.999)
    np.testing.assert_allclose(result.mean(), [1.0, 1.0], atol=0.2)


def test_densities_with_a_pilot_are_unbiased():
    found = [particles.anneal(NORMAL, 50, None, pilot=True, rng=seed) for seed in range(60)]
    assert unbiased(np.exp([each.log_partition() - np.log(2 * np.pi) for each in found]))
    assert all(each.certificate is not None for each in found)


def _two_modes(x):
    """Narrow normals at -2.5 and 2.5 with 3/4 and 1/4 of ``Z = 1``: between them deviations are 50 times theirs."""
    logs = [jnp.log(p) - jnp.sum(((x - m) / 0.05) ** 2) / 2 for m, p in ((-2.5, 0.75), (2.5, 0.25))]
    return jnp.logaddexp(*logs) - x.size * jnp.log(0.05 * jnp.sqrt(2 * jnp.pi))


def test_moves_become_short_enough_for_modes_that_are_far_apart():
    results = [particles.anneal(sampling.Target(_two_modes, 2), 1000, None, rng=seed) for seed in range(4)]
    assert abs(np.mean([each.log_partition() for each in results])) < 0.15
    shares = [each.expect(lambda x: x[:, 0] < 0) for each in results]
    assert abs(np.mean(shares) - 0.75) < 0.1
    assert all(np.nanmedian(each.trace["accepted"]) > 0.4 for each in results)


def _exponential(x):
    return -jnp.sum(x["rate"])


def test_constrained_targets_are_given_in_their_own_space():
    target = sampling.constrained(_exponential, {"rate": (2,), "other": ()}, {"rate": "positive", "other": "positive"})
    target = dataclasses.replace(target, function=lambda x: -jnp.sum(x["rate"]) - x["other"])
    result = particles.anneal(target, 1000, 20, rng=0)
    assert result.draws["rate"].shape == (1, 1000, 2)
    assert (result.draws.values > 0).all()
    assert 0.0 in result.interval(0.999)
    np.testing.assert_allclose(result.mean(), 1.0, atol=0.2)


def _half_defined(x):
    return jnp.where(x[0] > 1.0, jnp.nan, -jnp.sum(x**2) / 2)


@pytree
@dataclasses.dataclass(frozen=True)
class Broken(sampling.RandomWalk):
    """A kernel that leads to NaN."""

    def step(self, target, state):
        return state._replace(x=jnp.where(state.x > 0.5, jnp.nan, state.x))


def test_densities_that_are_nan_count_as_zero_and_kernels_that_are_nan_are_refused():
    target = sampling.Target(_half_defined, 1)
    result = particles.anneal(target, 1000, 10, sampler=sampling.RandomWalk(1.0), rng=0)
    assert np.log(np.sqrt(2 * np.pi) * ndtr(1.0)) in result.interval(0.999)
    assert result.trace["undefined"][1] == pytest.approx(1000 * ndtr(-1.0), rel=0.3)
    with pytest.raises(FloatingPointError, match="steps of Broken made particles NaN"):
        particles.anneal(NORMAL, 1000, 10, sampler=Broken(1.0), rng=0)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "settings", "error", "words"),
    [
        (GLASS, {"n_particles": 0}, ValueError, "n_particles"),
        (GLASS, {"temperatures": [0.0, 0.7, 0.5, 1.0]}, ValueError, "temperatures"),
        (GLASS, {"temperatures": 0}, ValueError, "temperatures"),
        (GLASS, {"share": 1.5}, ValueError, "share"),
        (GLASS, {"weights": "best"}, ValueError, "weights"),
        (DENSE, {"weights": "rb"}, DomainError, "two colours"),
        (POTTS, {"weights": "rb"}, ValueError, "Ising"),
        (GLASS, {"sweeps": 0}, ValueError, "sweeps"),
        (GLASS, {"sampler": sampling.MALA(0.1)}, ValueError, "sampler"),
        (GLASS, {"resampling": "sorted"}, ValueError, "resampling"),
        (NORMAL, {"weights": "rb"}, ValueError, "weights"),
        (NORMAL, {"start": 3.0}, TypeError, "start"),
        (GLASS.given(dict.fromkeys(range(12), 1)), {}, ValueError, "no variable that is free"),
        (3.0, {}, TypeError, "model"),
    ],
)
def test_bad_input_is_refused(model, settings, error, words):
    with pytest.raises(error, match=words):
        particles.anneal(model, **settings)


def test_bad_input_to_hot_coupling_is_refused():
    for model, settings, words in ((POTTS, {}, "Ising"), (GLASS, {"groups": 0}, "groups"),
                                   (GLASS, {"steps_per_group": 0}, "steps_per_group")):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=words):
            particles.hot_coupling(model, **settings)


def test_impossible_models_are_refused():
    model = graphical.FactorGraph([2, 2], [((0,), [-np.inf, -np.inf]), ((0, 1), np.zeros((2, 2)))])
    with pytest.raises(DomainError, match="impossible"):
        particles.anneal(model, 10, 5, rng=0)


def test_temperatures_that_were_used_can_be_used_again():
    first = particles.anneal(GLASS, 200, share=0.7, rng=0)
    again = Temperatures.used(first.outcomes[0])
    assert again.values[0] == 0.0
    assert again.values[-1] == 1.0
    assert (np.diff(again.values) > 0).all()
    assert particles.anneal(GLASS, 200, again.values, rng=1).certificate is not None
